//! pagefold, by method.

use super::{Columns, Engine, ROWS_PER_TRANSACTION, What, two};
use pagefold_engine::database::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table};
use pagefold_lab_engine::data::{EXTENDED_PRICE, LINE_NUMBER, Lineitem, ORDER_KEY, Outcome, QUANTITY};
use pagefold_lab_engine::database::create;
use pagefold_types::{Value, ValueRef};
use pagefold_utility::{LoadOptions, Silent, load};
use std::path::Path;
use std::sync::Arc;

/// pagefold, by method.
pub(crate) struct Pagefold {
    method: Method,
    format: IndexFormat,
    page_bytes: usize,
    key_page_bytes: usize,
    table: Arc<Table>,
    index: Arc<Index>,
    database: Database,
}

impl Pagefold {
    /// Loads.
    pub(crate) fn load(
        folder: &Path,
        data: &Lineitem,
        method: Method,
        page_bytes: usize,
        (format, key_page_bytes): (IndexFormat, usize),
        memory_bytes: usize,
    ) -> Outcome<Pagefold> {
        let database = create(folder, memory_bytes)?;
        let columns = data.table.schema().columns();
        let primary_key = [ORDER_KEY, LINE_NUMBER].map(|column| columns[column].name.clone()).to_vec();
        let options = LoadOptions {
            method: method.into(),
            page_bytes,
            primary_key,
            key_format: format.into(),
            key_page_bytes: Some(key_page_bytes),
            ..LoadOptions::default()
        };
        load(&database, "lineitem", std::slice::from_ref(&data.path), &options, &Silent)?;
        let table = database.table("lineitem")?;
        let index = pagefold_utility::primary_key_index(&table)?;
        Ok(Pagefold { method, format, page_bytes, key_page_bytes, table, index, database })
    }

    fn buffer(&self, columns: Columns) -> RowBuffer {
        match columns {
            Columns::Two => RowBuffer::for_columns(&self.table, &[QUANTITY, EXTENDED_PRICE]),
            Columns::All | Columns::Batches => RowBuffer::default(),
        }
    }
}

/// The name of pagefold with a method, a page size, and the format and page size of the key.
pub(crate) fn name(method: Method, page_bytes: usize, (format, key_page_bytes): (IndexFormat, usize)) -> String {
    format!("pagefold {method} of {} KB, {format} key of {} KB", page_bytes / 1024, key_page_bytes / 1024)
}

impl Engine for Pagefold {
    fn name(&self) -> String {
        name(self.method, self.page_bytes, (self.format, self.key_page_bytes))
    }

    fn size_bytes(&self) -> Outcome<u64> {
        let table: u64 = self.table.data_sets().map(|d| u64::from(d.page_count()) * d.page_bytes() as u64).sum();
        let index = self.index.data_set();
        Ok(table + u64::from(index.page_count()) * index.page_bytes() as u64)
    }

    fn offers(&self, what: What) -> bool {
        what != What::Seek(Columns::Batches)
    }

    fn seek(&mut self, keys: &[(i64, i64)], columns: Columns) -> Outcome<i64> {
        let mut sum = 0;
        let layout = self.table.layout();
        let mut transaction = self.database.begin(TransactionOptions::default());
        let mut buffer = self.buffer(columns);
        for (order, line) in keys {
            let key = [ValueRef::Int(*order), ValueRef::Int(*line)];
            let found = transaction.get_with(&self.table, &self.index, &key, &mut buffer, |_, record| two(layout, record))?;
            sum += found.ok_or("a key is missing")??;
        }
        Ok(sum)
    }

    fn scan(&mut self, columns: Columns) -> Outcome<i64> {
        let mut sum = 0;
        let layout = self.table.layout();
        let wanted = (columns == Columns::Two).then(|| vec![QUANTITY, EXTENDED_PRICE]);
        let request = ScanRequest { columns: wanted, ..ScanRequest::default() };
        let scan = self.database.begin(TransactionOptions::default()).read_view()?.scan(&self.table, &request)?;
        if self.method == Method::Page || columns == Columns::Batches {
            for batch in scan {
                let batch = batch?;
                let summed = batch.columns().iter().filter(|column| [QUANTITY, EXTENDED_PRICE].contains(&column.number()));
                sum += summed.map(|column| column.ints().iter().sum::<i64>()).sum::<i64>();
            }
            return Ok(sum);
        }
        let (quantity, price) = (layout.reader(QUANTITY)?, layout.reader(EXTENDED_PRICE)?);
        let mut rows = scan.into_rows();
        while let Some((_, record)) = rows.next_record()? {
            sum += quantity.decimal(record)?.unwrap_or(0) as i64;
            sum += price.decimal(record)?.unwrap_or(0) as i64;
        }
        Ok(sum)
    }

    fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()> {
        let value = Value::Decimal(i128::from(quantity));
        let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
        let mut buffer = RowBuffer::for_columns(&self.table, &[]);
        for group in keys.chunks(ROWS_PER_TRANSACTION) {
            let mut transaction = self.database.begin(options);
            for (order, line) in group {
                let key = [ValueRef::Int(*order), ValueRef::Int(*line)];
                let rid = transaction.get_with(&self.table, &self.index, &key, &mut buffer, |rid, _| rid)?.ok_or("a key is missing")?;
                if !transaction.update(&self.table, rid, &[(QUANTITY, value.as_ref())])? {
                    return Err("a row is missing".into());
                }
            }
            transaction.commit()?;
        }
        Ok(())
    }
}

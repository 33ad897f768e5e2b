//! pagefold, by method.

use crate::engine::{Change, Engine, Sum};
use pagefold_engine::database::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::{RowBuffer, Table};
use pagefold_lab_engine::data::{Outcome, QUANTITY};
use pagefold_lab_engine::database::{Stored, create_lineitem};
use pagefold_types::{Value, ValueRef};
use pagefold_utility::{ReorgOptions, Silent, reorg};
use std::path::Path;
use std::sync::Arc;

const COMMENT: usize = 15;

fn options() -> TransactionOptions {
    TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() }
}

pub(crate) struct Pagefold {
    database: Database,
    table: Arc<Table>,
    key: Arc<Index>,
    /// Up to the last checkpoint that was seen.
    log_bytes: u64,
    since: u64,
    at_once: bool,
}

impl Pagefold {
    /// An empty table with its primary key. `at_once`: a transaction that only inserts gives all its rows at once.
    pub(crate) fn create(folder: &Path, stored: Stored, memory_bytes: usize, at_once: bool) -> Outcome<Pagefold> {
        let (database, table, key) = create_lineitem(folder, stored, memory_bytes)?;
        Ok(Pagefold { database, table, key, log_bytes: 0, since: 0, at_once })
    }
}

impl Engine for Pagefold {
    fn transaction(&mut self, changes: &[Change<'_>]) -> Outcome<()> {
        let mut transaction = self.database.begin(options());
        let mut buffer = RowBuffer::for_columns(&self.table, &[]);
        let mut find = |transaction: &mut pagefold_engine::database::Transaction<'_>, (order, line): (i64, i64)| -> Outcome<_> {
            let key = [ValueRef::Int(order), ValueRef::Int(line)];
            Ok(transaction.get_with(&self.table, &self.key, &key, &mut buffer, |rid, _| rid)?.ok_or("a key is missing")?)
        };
        let only_inserts = changes.iter().all(|change| matches!(change, Change::Insert(_)));
        let one_by_one = if self.at_once && only_inserts {
            transaction.insert_rows(&self.table, |rows| {
                changes.iter().try_for_each(|change| if let Change::Insert(row) = change { rows.push(&row.values) } else { Ok(()) })
            })?;
            &[]
        } else {
            changes
        };
        for change in one_by_one {
            match *change {
                Change::Insert(row) => _ = transaction.insert(&self.table, &row.values)?,
                Change::Update(key, quantity, comment) => {
                    let rid = find(&mut transaction, key)?;
                    let values = [(QUANTITY, ValueRef::Decimal(i128::from(quantity))), (COMMENT, ValueRef::Text(comment))];
                    transaction.update(&self.table, rid, &values)?;
                }
                Change::Delete(key) => {
                    let rid = find(&mut transaction, key)?;
                    transaction.delete(&self.table, rid)?;
                }
            }
        }
        transaction.commit()?;
        // A checkpoint begins the count anew.
        let since = self.database.log_bytes_since_checkpoint();
        self.log_bytes += if since >= self.since { since - self.since } else { since };
        self.since = since;
        Ok(())
    }

    fn sum(&mut self) -> Outcome<Sum> {
        let request = ScanRequest { columns: Some(vec![QUANTITY, COMMENT]), ..ScanRequest::default() };
        let scan = self.database.begin(options()).read_view()?.scan(&self.table, &request)?;
        let mut sum = (0, 0, 0);
        for row in scan.into_rows() {
            let values = row?.1;
            sum.0 += 1;
            for value in values {
                match value {
                    Value::Decimal(quantity) => sum.1 += quantity as i64,
                    Value::Text(comment) => sum.2 += comment.len() as u64,
                    _ => {}
                }
            }
        }
        Ok(sum)
    }

    fn size_bytes(&mut self) -> Outcome<u64> {
        let table: u64 = self.table.data_sets().map(|d| u64::from(d.page_count()) * d.page_bytes() as u64).sum();
        let index = self.key.data_set();
        Ok(table + u64::from(index.page_count()) * index.page_bytes() as u64)
    }

    fn compact(&mut self) -> Outcome<()> {
        for object in ["lineitem", "key"] {
            reorg(&self.database, object, &ReorgOptions::default(), &Silent)?;
        }
        (self.table, self.key) = (self.database.table("lineitem")?, self.database.index("key")?);
        Ok(())
    }

    fn images(&self) -> u64 {
        self.table.images_built()
    }

    fn log_bytes(&self) -> u64 {
        self.log_bytes
    }
}

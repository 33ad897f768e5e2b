//! The engines under one interface.

use pagefold_engine::Error as EngineError;
use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, RowBuffer, Table};
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab_engine::data::{EXTENDED_PRICE, LINE_NUMBER, Lineitem, ORDER_KEY, Outcome, QUANTITY};
use pagefold_types::{RowLayout, Value, ValueRef};
use pagefold_utility::{LoadOptions, Silent, load};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// What is measured of an engine. Keys are (order key, line number).
pub(crate) trait Engine {
    /// Its name in the report.
    fn name(&self) -> String;
    /// Bytes of its files: table and primary key.
    fn size_bytes(&self) -> Outcome<u64>;
    /// Looks keys up, and reads the two columns or all; returns the sum of the two.
    fn seek(&mut self, keys: &[(i64, i64)], columns: Columns) -> Outcome<i64>;
    /// Reads the two columns of all rows, or all; returns the sum of the two.
    fn scan(&mut self, columns: Columns) -> Outcome<i64>;
    /// Sets the quantity of rows to a value, 100 rows a transaction where there are such.
    fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()>;
}

/// Which columns are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// The two that are summed up.
    Two,
    /// All 16.
    All,
}

/// Rows in a transaction of updates.
pub(crate) const ROWS_PER_TRANSACTION: usize = 100;

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
        let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
        let database = Database::open(Arc::new(OsStorage), Arc::new(OsClock), folder, OpenMode::Create, settings)?;
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
        let index = pagefold_utility::primary_key_index(&database, &table)?;
        Ok(Pagefold { method, format, page_bytes, key_page_bytes, table, index, database })
    }

    fn buffer(&self, columns: Columns) -> RowBuffer {
        match columns {
            Columns::Two => RowBuffer::for_columns(&self.table, &[QUANTITY, EXTENDED_PRICE]),
            Columns::All => RowBuffer::default(),
        }
    }
}

/// The name of pagefold with a method, a page size, and the format and page size of the key.
pub(crate) fn name(method: Method, page_bytes: usize, (format, key_page_bytes): (IndexFormat, usize)) -> String {
    format!("pagefold {method} of {} KB, {format} key of {} KB", page_bytes / 1024, key_page_bytes / 1024)
}

fn two(layout: &RowLayout, record: &[u8]) -> Result<i64, pagefold_types::RecordError> {
    Ok((layout.decimal_at(record, QUANTITY)?.unwrap_or(0) + layout.decimal_at(record, EXTENDED_PRICE)?.unwrap_or(0)) as i64)
}

impl Engine for Pagefold {
    fn name(&self) -> String {
        name(self.method, self.page_bytes, (self.format, self.key_page_bytes))
    }

    fn size_bytes(&self) -> Outcome<u64> {
        let table: u64 = self.table.partitions().map(|d| u64::from(d.page_count()) * d.page_bytes() as u64).sum();
        let index = self.index.data_set();
        Ok(table + u64::from(index.page_count()) * index.page_bytes() as u64)
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
        let mut transaction = self.database.begin(TransactionOptions::default());
        if self.method == Method::Page {
            let all: Vec<usize> = match columns {
                Columns::Two => vec![QUANTITY, EXTENDED_PRICE],
                Columns::All => (0..layout.column_count()).collect(),
            };
            transaction.scan_columns(&self.table, &all, None, |batch| {
                let summed = batch.columns().iter().filter(|column| [QUANTITY, EXTENDED_PRICE].contains(&column.number()));
                sum += summed.map(|column| column.ints().iter().sum::<i64>()).sum::<i64>();
                Ok::<_, EngineError>(ControlFlow::Continue(()))
            })?;
            return Ok(sum);
        }
        let (quantity, price) = (layout.reader(QUANTITY)?, layout.reader(EXTENDED_PRICE)?);
        let mut buffer = self.buffer(columns);
        transaction.scan_with(&self.table, &mut buffer, |_, record| {
            let damaged = |e: pagefold_types::RecordError| EngineError::Value(e.to_string());
            sum += quantity.decimal(record).map_err(damaged)?.unwrap_or(0) as i64;
            sum += price.decimal(record).map_err(damaged)?.unwrap_or(0) as i64;
            Ok::<_, EngineError>(ControlFlow::Continue(()))
        })?;
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

#[cfg(feature = "rivals")]
pub(crate) use rivals::{Lmdb, Sqlite};

#[cfg(feature = "rivals")]
mod rivals {
    use super::{Columns, Engine, ROWS_PER_TRANSACTION, two};
    use heed::types::Bytes;
    use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags};
    use pagefold_lab_engine::data::{Lineitem, Outcome, QUANTITY};
    use pagefold_types::{RowLayout, ValueRef, text};
    use rusqlite::{Connection, params};
    use std::path::{Path, PathBuf};

    fn folder_bytes(folder: &Path) -> Outcome<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(folder)? {
            sum += entry?.metadata()?.len();
        }
        Ok(sum)
    }

    /// LMDB by heed: the packed record under a key of 12 bytes, no sync.
    pub(crate) struct Lmdb {
        env: Env,
        database: Database<Bytes, Bytes>,
        folder: PathBuf,
        layout: RowLayout,
    }

    fn lmdb_key((order, line): (i64, i64)) -> [u8; 12] {
        let mut key = [0; 12];
        key[..8].copy_from_slice(&order.to_be_bytes());
        key[8..].copy_from_slice(&(line as u32).to_be_bytes());
        key
    }

    impl Lmdb {
        /// Loads, in key order with MDB_APPEND.
        pub(crate) fn load(folder: &Path, data: &Lineitem) -> Outcome<Lmdb> {
            std::fs::create_dir_all(folder)?;
            let mut options = EnvOpenOptions::new();
            options.map_size(64 << 30).max_dbs(1);
            // SAFETY: the folder is this program's own; nobody else opens or changes the files.
            #[expect(unsafe_code, reason = "heed's interface")]
            let env = unsafe {
                options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD);
                options.open(folder)?
            };
            let mut transaction = env.write_txn()?;
            let database: Database<Bytes, Bytes> = env.create_database(&mut transaction, Some("lineitem"))?;
            data.records(|record| {
                let key = lmdb_key(data.key(record)?);
                Ok(database.put_with_flags(&mut transaction, PutFlags::APPEND, &key, record)?)
            })?;
            transaction.commit()?;
            Ok(Lmdb { env, database, folder: folder.into(), layout: RowLayout::new(data.table.schema())? })
        }
    }

    impl Engine for Lmdb {
        fn name(&self) -> String {
            "LMDB, no sync".into()
        }

        fn size_bytes(&self) -> Outcome<u64> {
            // The file is as long as the pages in use: it grows at its end only.
            let transaction = self.env.read_txn()?;
            let stat = self.database.stat(&transaction)?;
            let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
            debug_assert!(folder_bytes(&self.folder).is_ok());
            Ok(pages as u64 * u64::from(stat.page_size))
        }

        fn seek(&mut self, keys: &[(i64, i64)], _: Columns) -> Outcome<i64> {
            let transaction = self.env.read_txn()?;
            let mut sum = 0;
            for key in keys {
                let record = self.database.get(&transaction, &lmdb_key(*key))?.ok_or("a key is missing")?;
                sum += two(&self.layout, record)?;
            }
            Ok(sum)
        }

        fn scan(&mut self, _: Columns) -> Outcome<i64> {
            let transaction = self.env.read_txn()?;
            let mut sum = 0;
            for entry in self.database.iter(&transaction)? {
                sum += two(&self.layout, entry?.1)?;
            }
            Ok(sum)
        }

        fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()> {
            let mut record = Vec::new();
            for group in keys.chunks(ROWS_PER_TRANSACTION) {
                let mut transaction = self.env.write_txn()?;
                for key in group {
                    let key = lmdb_key(*key);
                    record.clear();
                    record.extend_from_slice(self.database.get(&transaction, &key)?.ok_or("a key is missing")?);
                    self.layout.patch_fixed(&mut record, QUANTITY, ValueRef::Decimal(i128::from(quantity)))?;
                    self.database.put(&mut transaction, &key, &record)?;
                }
                transaction.commit()?;
            }
            Ok(())
        }
    }

    /// SQLite: a WITHOUT ROWID table, decimals as integers of hundredths, everything cached, no sync.
    pub(crate) struct Sqlite {
        connection: Connection,
        path: PathBuf,
    }

    impl Sqlite {
        /// Loads in one transaction, in key order.
        pub(crate) fn load(path: &Path, data: &Lineitem) -> Outcome<Sqlite> {
            let mut connection = Connection::open(path)?;
            connection.execute_batch(
                "pragma page_size = 4096; pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -4000000; pragma mmap_size = 0;
                 create table lineitem (l_orderkey integer, l_partkey integer, l_suppkey integer, l_linenumber integer, l_quantity integer,
                 l_extendedprice integer, l_discount integer, l_tax integer, l_returnflag text, l_linestatus text, l_shipdate integer,
                 l_commitdate integer, l_receiptdate integer, l_shipinstruct text, l_shipmode text, l_comment text,
                 primary key (l_orderkey, l_linenumber)) without rowid;",
            )?;
            let layout = &data.layout;
            let transaction = connection.transaction()?;
            {
                let mut insert = transaction.prepare("insert into lineitem values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")?;
                data.records(|record| {
                    for column in 0..layout.column_count() {
                        match layout.value(record, column)? {
                            ValueRef::Int(v) => insert.raw_bind_parameter(column + 1, v)?,
                            ValueRef::Decimal(v) => insert.raw_bind_parameter(column + 1, v as i64)?,
                            ValueRef::Text(v) => insert.raw_bind_parameter(column + 1, v)?,
                            other => insert.raw_bind_parameter(column + 1, text::to_text(other, &layout.data_type(column)))?,
                        }
                    }
                    insert.raw_execute()?;
                    Ok(())
                })?;
            }
            transaction.commit()?;
            connection.execute_batch("pragma wal_checkpoint(truncate)")?;
            Ok(Sqlite { connection, path: path.into() })
        }
    }

    impl Engine for Sqlite {
        fn name(&self) -> String {
            "SQLite, no sync".into()
        }

        fn size_bytes(&self) -> Outcome<u64> {
            Ok(std::fs::metadata(&self.path)?.len())
        }

        fn seek(&mut self, keys: &[(i64, i64)], columns: Columns) -> Outcome<i64> {
            let names = if columns == Columns::Two { "" } else { ", *" };
            let mut query = self.connection.prepare_cached(&format!(
                "select l_quantity, l_extendedprice{names} from lineitem where l_orderkey = ? and l_linenumber = ?"
            ))?;
            let count = query.column_count();
            let mut sum = 0;
            let transaction = self.connection.unchecked_transaction()?;
            for (order, line) in keys {
                sum += query.query_row(params![order, line], |row| {
                    (2..count).try_for_each(|column| row.get_ref(column).map(drop))?;
                    Ok(row.get::<_, i64>(0)? + row.get::<_, i64>(1)?)
                })?;
            }
            drop(transaction);
            Ok(sum)
        }

        fn scan(&mut self, columns: Columns) -> Outcome<i64> {
            if columns == Columns::Two {
                return Ok(self
                    .connection
                    .query_row("select sum(l_quantity) + sum(l_extendedprice) from lineitem", [], |row| row.get(0))?);
            }
            let mut query = self.connection.prepare_cached("select l_quantity, l_extendedprice, * from lineitem")?;
            let count = query.column_count();
            let mut rows = query.query([])?;
            let mut sum = 0;
            while let Some(row) = rows.next()? {
                (2..count).try_for_each(|column| row.get_ref(column).map(drop))?;
                sum += row.get::<_, i64>(0)? + row.get::<_, i64>(1)?;
            }
            Ok(sum)
        }

        fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()> {
            for group in keys.chunks(ROWS_PER_TRANSACTION) {
                let transaction = self.connection.transaction()?;
                {
                    let mut update =
                        transaction.prepare_cached("update lineitem set l_quantity = ? where l_orderkey = ? and l_linenumber = ?")?;
                    for (order, line) in group {
                        update.execute(params![quantity, order, line])?;
                    }
                }
                transaction.commit()?;
            }
            Ok(())
        }
    }
}

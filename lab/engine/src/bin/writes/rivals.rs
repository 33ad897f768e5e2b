//! SQLite and LMDB, as they are often used where nobody syncs each commit.

use crate::engine::{Change, Engine, Sum};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use pagefold_lab::lineitem::layout;
use pagefold_lab_engine::data::{Outcome, QUANTITY};
use pagefold_types::{RowLayout, ValueRef};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};

const COMMENT: usize = 15;

/// A WITHOUT ROWID table, WAL, synchronous NORMAL; decimals as integers of hundredths.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    pub(crate) fn create(folder: &Path) -> Outcome<Sqlite> {
        let path = folder.join("sqlite");
        let connection = Connection::open(&path)?;
        let columns: Vec<String> =
            (0..16).map(|i| format!("c{i} {}", if [8, 9, 13, 14, 15].contains(&i) { "text" } else { "integer" })).collect();
        connection.execute_batch(&format!(
            "pragma page_size = 4096; pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -1000000;
             create table lineitem ({}, primary key (c0, c3)) without rowid;",
            columns.join(", ")
        ))?;
        Ok(Sqlite { connection, path })
    }
}

impl Engine for Sqlite {
    fn transaction(&mut self, changes: &[Change<'_>]) -> Outcome<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("insert into lineitem values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")?;
            let mut update = transaction.prepare_cached("update lineitem set c4 = ?, c15 = ? where c0 = ? and c3 = ?")?;
            let mut delete = transaction.prepare_cached("delete from lineitem where c0 = ? and c3 = ?")?;
            for change in changes {
                match *change {
                    Change::Insert(row) => {
                        for (i, value) in row.values.iter().enumerate() {
                            match *value {
                                ValueRef::Int(v) => insert.raw_bind_parameter(i + 1, v)?,
                                ValueRef::Decimal(v) => insert.raw_bind_parameter(i + 1, v as i64)?,
                                ValueRef::Text(v) => insert.raw_bind_parameter(i + 1, v)?,
                                _ => return Err("another type".into()),
                            }
                        }
                        insert.raw_execute()?;
                    }
                    Change::Update(key, quantity, comment) => _ = update.execute(params![quantity, comment, key.0, key.1])?,
                    Change::Delete(key) => _ = delete.execute(params![key.0, key.1])?,
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn sum(&mut self) -> Outcome<Sum> {
        let query = "select count(*), sum(c4), sum(length(c15)) from lineitem";
        let get = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get::<_, i64>(2)? as u64));
        Ok(self.connection.query_row(query, [], get)?)
    }

    fn compact(&mut self) -> Outcome<()> {
        Ok(self.connection.execute_batch("vacuum")?)
    }

    fn size_bytes(&mut self) -> Outcome<u64> {
        self.connection.execute_batch("pragma wal_checkpoint(truncate)")?;
        Ok(std::fs::metadata(&self.path)?.len())
    }
}

/// The packed record under a key of 12 bytes, no sync.
pub(crate) struct Lmdb {
    env: Env,
    database: Database<Bytes, Bytes>,
    layout: RowLayout,
}

impl Lmdb {
    pub(crate) fn create(folder: &Path) -> Outcome<Lmdb> {
        let mut options = EnvOpenOptions::new();
        options.map_size(16 << 30).max_dbs(1);
        // SAFETY: the folder is this program's own; nobody else opens or changes the files.
        #[expect(unsafe_code, reason = "heed's interface")]
        let env = unsafe {
            options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD);
            options.open(folder)?
        };
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, Some("lineitem"))?;
        transaction.commit()?;
        Ok(Lmdb { env, database, layout: layout() })
    }
}

pub(crate) fn key_bytes((order, line): (i64, i64)) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&order.to_be_bytes());
    key[8..].copy_from_slice(&(line as u32).to_be_bytes());
    key
}

/// The record of a row with another quantity and comment.
pub(crate) fn changed(layout: &RowLayout, before: &[u8], quantity: i64, comment: &str, record: &mut Vec<u8>) -> Outcome<()> {
    let mut values = (0..16).map(|i| layout.value(before, i)).collect::<Result<Vec<_>, _>>()?;
    (values[QUANTITY], values[COMMENT]) = (ValueRef::Decimal(i128::from(quantity)), ValueRef::Text(comment));
    record.clear();
    layout.encode(&values, record)?;
    Ok(())
}

/// Adds a row to what there is.
pub(crate) fn add(layout: &RowLayout, record: &[u8], sum: &mut Sum) -> Outcome<()> {
    let (ValueRef::Decimal(quantity), ValueRef::Text(comment)) = (layout.value(record, QUANTITY)?, layout.value(record, COMMENT)?) else {
        return Err("another type".into());
    };
    *sum = (sum.0 + 1, sum.1 + quantity as i64, sum.2 + comment.len() as u64);
    Ok(())
}

impl Engine for Lmdb {
    fn transaction(&mut self, changes: &[Change<'_>]) -> Outcome<()> {
        let mut transaction = self.env.write_txn()?;
        let mut record = Vec::new();
        for change in changes {
            match *change {
                Change::Insert(row) => {
                    record.clear();
                    self.layout.encode(&row.values, &mut record)?;
                    // As with a primary key: one that is there is not replaced.
                    let flags = heed::PutFlags::NO_OVERWRITE;
                    self.database.put_with_flags(&mut transaction, flags, &key_bytes(row.key), &record)?;
                }
                Change::Update(key, quantity, comment) => {
                    let key = key_bytes(key);
                    let before = self.database.get(&transaction, &key)?.ok_or("a key is missing")?.to_vec();
                    changed(&self.layout, &before, quantity, comment, &mut record)?;
                    self.database.put(&mut transaction, &key, &record)?;
                }
                Change::Delete(key) => _ = self.database.delete(&mut transaction, &key_bytes(key))?,
            }
        }
        Ok(transaction.commit()?)
    }

    fn sum(&mut self) -> Outcome<Sum> {
        let transaction = self.env.read_txn()?;
        let mut sum = Sum::default();
        for entry in self.database.iter(&transaction)? {
            add(&self.layout, entry?.1, &mut sum)?;
        }
        Ok(sum)
    }

    /// Rows that came in key order fill its pages.
    fn compact(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn size_bytes(&mut self) -> Outcome<u64> {
        let transaction = self.env.read_txn()?;
        let stat = self.database.stat(&transaction)?;
        Ok((stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64 * u64::from(stat.page_size))
    }
}

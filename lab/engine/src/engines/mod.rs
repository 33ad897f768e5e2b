//! The engines under one interface.

#[cfg(feature = "rivals-large")]
mod duckdb;
#[cfg(feature = "rivals")]
mod lmdb;
mod pagefold;
#[cfg(feature = "rivals-large")]
mod rocksdb;
#[cfg(feature = "rivals")]
mod sqlite;

pub(crate) use self::pagefold::{Pagefold, name};
#[cfg(feature = "rivals-large")]
pub(crate) use self::{duckdb::DuckDb, rocksdb::RocksDb};
#[cfg(feature = "rivals")]
pub(crate) use self::{lmdb::Lmdb, sqlite::Sqlite};

use pagefold_lab_engine::data::{EXTENDED_PRICE, Outcome, QUANTITY};
use pagefold_types::{RecordError, RowLayout};

/// What is measured of an engine. Keys are (order key, line number).
pub(crate) trait Engine {
    /// Its name in the report.
    fn name(&self) -> String;
    /// Bytes of its files: table and primary key.
    fn size_bytes(&self) -> Outcome<u64>;
    /// Is this measured of it?
    fn offers(&self, what: What) -> bool {
        what != What::Scan(Columns::Batches)
    }
    /// Looks keys up, and reads the two columns or all; returns the sum of the two.
    fn seek(&mut self, keys: &[(i64, i64)], columns: Columns) -> Outcome<i64>;
    /// Reads the two columns of all rows, or all; returns the sum of the two.
    fn scan(&mut self, columns: Columns) -> Outcome<i64>;
    /// Sets the quantity of rows to a value, 100 rows a transaction where there are such.
    fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()>;
}

/// A thing to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Look-ups.
    Seek(Columns),
    /// All rows.
    Scan(Columns),
    /// Changes of one column.
    Update,
}

/// Which columns are read, and how they are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// The two that are summed up.
    Two,
    /// All 16, in the form the engine has them.
    All,
    /// All 16 by column, an array of values each: what an Arrow reader gets.
    Batches,
}

/// Rows in a transaction of updates.
pub(crate) const ROWS_PER_TRANSACTION: usize = 100;

/// The sum of the two columns of a record.
fn two(layout: &RowLayout, record: &[u8]) -> Result<i64, RecordError> {
    Ok((layout.decimal_at(record, QUANTITY)?.unwrap_or(0) + layout.decimal_at(record, EXTENDED_PRICE)?.unwrap_or(0)) as i64)
}

/// A key as bytes whose order is that of the keys, for engines that store nothing else.
#[cfg(feature = "rivals")]
fn key_bytes((order, line): (i64, i64)) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&order.to_be_bytes());
    key[8..].copy_from_slice(&(line as u32).to_be_bytes());
    key
}

/// Bytes of the files in a folder.
#[cfg(feature = "rivals-large")]
fn folder_bytes(folder: &std::path::Path) -> Outcome<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        sum += entry?.metadata()?.len();
    }
    Ok(sum)
}

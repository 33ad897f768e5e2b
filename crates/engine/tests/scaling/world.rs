//! A database with many tables, each with an index.

use pagefold_engine::database::{Database, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn storage() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

pub(crate) fn open(storage: &Arc<dyn Storage>, mode: OpenMode) -> Database {
    open_with(storage, mode, Settings::default())
}

pub(crate) fn open_with(storage: &Arc<dyn Storage>, mode: OpenMode, settings: Settings) -> Database {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(Arc::clone(storage), clock, Path::new("db"), mode, Settings { pools, ..settings }).unwrap()
}

pub(crate) fn table_name(i: u64) -> String {
    format!("t{i:05}")
}

/// With so many tables; each has a row if that is asked for.
pub(crate) fn with_tables(storage: &Arc<dyn Storage>, tables: u64, method: Method, row: bool) -> Database {
    let database = open(storage, OpenMode::Create);
    let mut change = database.change();
    for i in 0..tables {
        let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false), Column::new("v", DataType::BigInt, false)]).unwrap();
        let table = change.create_table(TableAttributes { method, ..TableAttributes::new(table_name(i), schema) }).unwrap();
        change.create_index(&table, IndexAttributes::new(format!("i{i:05}"), vec![(0, Direction::Ascending)], true)).unwrap();
    }
    change.commit().unwrap();
    if row {
        let mut transaction = database.begin(TransactionOptions::default());
        for table in database.tables().unwrap() {
            transaction.insert(&table, &[ValueRef::Int(0), ValueRef::Int(0)]).unwrap();
        }
        transaction.commit().unwrap();
    }
    database
}

//! Tables whose indexes are built at every page size.

use crate::random::Rng;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::index::Index;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_io::{MemoryStorage, SimulatedClock};
use pagefold_types::{Column, DataType, Direction, Schema, Value, ValueRef};
use pagefold_utility::{IndexOptions, Silent, create_index};
use std::path::Path;
use std::sync::Arc;

/// A database with a table of so many rows: `up` ascends, `random` does not, both are unique; `few` has 500 values; `name` is a text, of which three rows in a row have the same.
pub(crate) fn database(rows: u64, memory_bytes: usize) -> Database {
    let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
    let clock = Arc::new(SimulatedClock::new(std::time::Duration::ZERO));
    let database = Database::open(Arc::new(MemoryStorage::new()), clock, Path::new("db"), OpenMode::Create, settings).unwrap();
    let column = |name: &str, data_type: DataType| Column::new(name, data_type, false);
    let columns = vec![
        column("up", DataType::BigInt),
        column("random", DataType::BigInt),
        column("few", DataType::Integer),
        column("name", DataType::Varchar(None)),
    ];
    let mut transaction = database.begin(pagefold_engine::database::TransactionOptions::default());
    let table = transaction.create_table(TableAttributes::new("t", Schema::new(columns).unwrap())).unwrap();
    let mut random = Rng(1);
    let mut batch: Vec<[Value; 4]> = Vec::new();
    for row in 0..rows {
        // A permutation: odd multipliers are, modulo a power of two.
        let scattered = (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8) as i64;
        let name = format!("customer {} of {}", row / 3 * 7919 % rows, "x".repeat((row / 3 % 11) as usize));
        batch.push([Value::Int(row as i64 * 5), Value::Int(scattered), Value::Int(random.below(500) as i64), Value::Text(name)]);
        if batch.len() == 5_000 || row + 1 == rows {
            for values in batch.drain(..) {
                let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                transaction.insert(&table, &values).unwrap();
            }
        }
    }
    transaction.commit().unwrap();
    database
}

pub(crate) fn build(database: &Database, columns: &[&str], options: &IndexOptions) -> Arc<Index> {
    let columns: Vec<(String, Direction)> = columns.iter().map(|name| ((*name).to_owned(), Direction::Ascending)).collect();
    create_index(database, "i", "t", &columns, options, &Silent).unwrap();
    database.index("i").unwrap()
}

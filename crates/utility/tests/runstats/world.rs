//! A table of every kind of column, and the rows that are in it.

use crate::random::Rng;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, Value, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Nothing goes on in the background: a dictionary that is renewed there takes pages between two looks that are compared.
pub(crate) fn open(storage: &Arc<dyn Storage>, mode: OpenMode) -> Database {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(Arc::clone(storage), clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

pub(crate) fn storage() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

pub(crate) fn columns() -> Vec<Column> {
    let column = |name, data_type, nullable| Column::new(name, data_type, nullable);
    vec![
        column("id", DataType::BigInt, false),
        column("kind", DataType::Integer, true),
        column("city", DataType::Varchar(Some(40)), true),
        column("note", DataType::Varchar(None), false),
        column("price", DataType::Decimal { precision: 12, scale: 2 }, false),
        column("wide", DataType::Decimal { precision: 30, scale: 4 }, true),
        column("ratio", DataType::Double, true),
        column("code", DataType::Char(6), false),
        column("flag", DataType::Boolean, false),
        column("part", DataType::Integer, false),
        column("mark", DataType::Uuid, true),
        column("rare", DataType::SmallInt, true),
    ]
}

/// Row number `id`: some columns skewed, some in clusters, some nearly always NULL.
pub(crate) fn row(random: &mut Rng, id: i64) -> Vec<Value> {
    let or_null = |is_null: bool, value: Value| if is_null { Value::Null } else { value };
    let skewed = {
        let (a, b) = (random.below(1_000), random.below(1_000));
        (a * b / 1_000) as i64 / 5
    };
    let city = ["Oslo", "Bergen", "Å", "", "Tromsø in the north"][(random.below(3) + random.below(3)) as usize];
    let note = "word ".repeat(random.below(6) as usize) + &random.below(1 << 20).to_string();
    // Rows of a page are NULL together.
    let is_poor = (id / 50) % 5 == 0;
    vec![
        Value::Int(id),
        or_null(random.below(5) == 0, Value::Int(skewed)),
        or_null(is_poor, Value::Text(city.into())),
        Value::Text(note),
        Value::Decimal(i128::from(random.below(200)) * 25 - 1_000),
        or_null(random.below(2) == 0, Value::Decimal(i128::pow(10, 20) * (i128::from(random.below(40)) - 20))),
        or_null(random.below(10) == 0, Value::Double((random.below(2_001) as f64 - 1_000.0) / 8.0)),
        Value::Text(format!("{:<6}", ["A", "BB", "CCC"][random.below(3) as usize])),
        Value::Boolean(random.below(20) == 0),
        Value::Int(id / 7),
        or_null(random.below(3) > 0, Value::Uuid((random.below(1 << 40) as u128).to_be_bytes())),
        or_null(random.below(200) > 0, Value::Int(random.below(9) as i64)),
    ]
}

fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

/// A table `t` with a unique index on `id` and one on (kind, part), and rows in it by transactions.
pub(crate) fn make(database: &Database, method: Method, page_bytes: usize, rows: i64, seed: u64) -> Arc<Table> {
    let schema = Schema::new(columns()).unwrap();
    let attributes = TableAttributes { method, primary_key: vec![0], ..TableAttributes::new("t", schema).with_page_bytes(page_bytes) };
    let mut transaction = database.begin(TransactionOptions::default());
    let table = transaction.create_table(attributes).unwrap();
    let index = |name: &str, columns: &[usize], unique| {
        let columns = columns.iter().map(|column| (*column, Direction::Ascending)).collect();
        IndexAttributes { page_bytes: 2048, ..IndexAttributes::new(name, columns, unique) }
    };
    transaction.create_index(&table, index("t_id", &[0], true)).unwrap();
    transaction.create_index(&table, index("t_kind", &[1, 9], false)).unwrap();
    transaction.commit().unwrap();
    insert(database, &table, 0..rows, seed);
    table
}

pub(crate) fn insert(database: &Database, table: &Table, ids: std::ops::Range<i64>, seed: u64) {
    let mut random = Rng(seed);
    let mut transaction = database.begin(TransactionOptions::default());
    for id in ids {
        transaction.insert(table, &refs(&row(&mut random, id))).unwrap();
    }
    transaction.commit().unwrap();
}

/// All rows with their RIDs, as a scan gives them.
pub(crate) fn rows(database: &Database, table: &Arc<Table>) -> Vec<(Rid, Vec<Value>)> {
    let mut scan = database.read_view().scan(table, &ScanRequest::default()).unwrap().into_rows();
    let mut rows = Vec::new();
    while let Some((rid, record)) = scan.next_record().unwrap() {
        rows.push((rid, table.values(record).unwrap()));
    }
    rows
}

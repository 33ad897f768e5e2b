//! What a transaction that changes every row of a table takes in memory: versions beyond their limit lie in a file, and one lock stands for
//! all rows.

use allocation_counter::measure;
use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::{OsClock, OsStorage};
use pagefold_types::{Column, DataType, Rid, Schema, ValueRef};
use std::sync::Arc;

const VERSION_BYTES: u64 = 2 << 20;
/// So many that the buffer of the log has its full size.
const ROWS: i64 = 100_000;
/// A row is noted for what is removed after the commit, and, where its length changes, for the room that taking back needs; maps double.
const BYTES_PER_ROW: u64 = 160;

fn update_of_every_row(method: Method, rows: i64, changes: &[(usize, ValueRef<'_>)]) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, version_bytes: VERSION_BYTES, row_locks_max: 500, ..Settings::default() };
    let path = directory.path().join("db");
    let database = Database::open(Arc::new(OsStorage), Arc::new(OsClock), &path, OpenMode::Create, settings).unwrap();
    let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
    let mut change = database.change();
    change.create_table(TableAttributes { method, ..TableAttributes::new("t", Schema::new(columns).unwrap()) }).unwrap();
    change.commit().unwrap();
    let table = database.table("t").unwrap();
    let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
    let mut rids: Vec<Rid> = Vec::new();
    for first in (0..rows).step_by(200) {
        let mut transaction = database.begin(options);
        let texts =
            (first..first + 200).map(|n| transaction.insert(&table, &[ValueRef::Int(n), ValueRef::Text(&"text ".repeat(20))]).unwrap());
        rids.extend(texts);
        transaction.commit().unwrap();
    }
    let mut transaction = database.begin(options);
    let taken = measure(|| {
        for rid in &rids {
            assert!(transaction.update(&table, *rid, changes).unwrap());
        }
    });
    assert!(database.version_file_bytes() > 50 * rows as u64);
    transaction.rollback().unwrap();
    assert_eq!((database.version_bytes(), database.version_file_bytes()), (0, 0));
    taken.bytes_max
}

#[test]
fn every_row_in_one_transaction() {
    for method in [Method::None, Method::Huffman, Method::Page] {
        for changes in [[(0, ValueRef::Int(-1))], [(1, ValueRef::Text("short"))]] {
            let [few, many] = [ROWS, 2 * ROWS].map(|rows| update_of_every_row(method, rows, &changes));
            let per_row = many.saturating_sub(few) / ROWS as u64;
            println!("{method}, {changes:?}: {few} bytes at so many rows, {many} at twice as many: {per_row} a row more");
            assert!(per_row <= BYTES_PER_ROW, "{method}: {per_row} bytes for each row");
        }
    }
}

//! Rows that a view counts without a look at them: beside writers who commit, take back and move rows.

use super::*;
use crate::pool::PoolSettings;
use crate::table_space::{Method, Table, TableAttributes};
use crate::test_random::Random;
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROWS: u64 = 3_000;

/// A table of [`ROWS`] rows in several partitions.
fn with_rows(method: Method) -> (Database, Arc<Table>, Vec<Rid>) {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 1, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let database = Database::open(storage, clock, Path::new("db"), OpenMode::Create, Settings { pools, ..Settings::default() }).unwrap();
    let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
    let attributes = TableAttributes { method, partition_bytes: 256 << 10, ..TableAttributes::new("t", Schema::new(columns).unwrap()) };
    let mut change = database.change();
    change.create_table(attributes).unwrap();
    change.commit().unwrap();
    let table = database.table("t").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let rids = (0..ROWS as i64).map(|n| t.insert(&table, &[ValueRef::Int(n), ValueRef::Text(&text(n))]).unwrap()).collect();
    t.commit().unwrap();
    (database, table, rids)
}

fn text(n: i64) -> String {
    format!("{n} ").repeat((n % 40) as usize)
}

/// What a view counts; whether headers alone said so.
fn count(table: &Table, view: &ReadView) -> (u64, bool) {
    let by_headers = table.rows_seen(view.snapshot());
    let counted = view.count_rows(table, || Ok::<_, crate::Error>(())).unwrap();
    if let Some(rows) = by_headers {
        assert_eq!(rows, counted);
    }
    (counted, by_headers.is_some())
}

#[test]
fn headers_count_for_those_who_see_all_that_is_there() {
    for method in Method::ALL {
        let (database, table, rids) = with_rows(method);
        let now = || count(&table, &database.read_view());
        assert_eq!(now(), (ROWS, true));
        let before = database.read_view();
        let mut t = database.begin(TransactionOptions::default());
        let savepoint = t.savepoint();
        t.delete(&table, rids[0]).unwrap();
        assert_eq!(now(), (ROWS, false), "others do not see it");
        assert_eq!(count(&table, &t.read_view().unwrap()), (ROWS - 1, true), "who did it does");
        t.roll_back_to(savepoint).unwrap();
        assert_eq!(count(&table, &t.read_view().unwrap()), (ROWS, true));
        t.delete(&table, rids[1]).unwrap();
        t.rollback().unwrap();
        assert_eq!(now(), (ROWS, true), "nothing has come of it");
        let mut t = database.begin(TransactionOptions::default());
        t.delete(&table, rids[2]).unwrap();
        let own = t.read_view().unwrap();
        t.commit().unwrap();
        assert_eq!(count(&table, &before), (ROWS, false), "a view of before");
        assert_eq!(count(&table, &own).0, ROWS - 1);
        assert_eq!(now(), (ROWS - 1, true));
        let mut t = database.begin(TransactionOptions::default());
        t.keep_definition(&table).unwrap();
        t.commit().unwrap();
        assert_eq!(count(&table, &before), (ROWS, false));
        assert_eq!(now(), (ROWS - 1, true));
    }
}

#[test]
fn as_many_are_counted_beside_writers_who_leave_as_many() {
    for method in [Method::None, Method::Page, Method::Fixed] {
        let (database, table, rids) = with_rows(method);
        let done = AtomicBool::new(false);
        let (database, table, done) = (&database, &table, &done);
        std::thread::scope(|scope| {
            let writers: Vec<_> = rids
                .chunks(rids.len() / 2)
                .enumerate()
                .map(|(writer, own)| {
                    let mut own = own.to_vec();
                    scope.spawn(move || {
                        for round in 0..300 {
                            let mut random = Random(round * 2 + writer as u64);
                            let mut t = database.begin(TransactionOptions::default());
                            let mut after = own.clone();
                            for _ in 0..1 + random.below(8) {
                                let at = random.below(after.len() as u64) as usize;
                                let n = random.below(4_000) as i64;
                                match random.below(3) {
                                    // Rows that grow and shrink move, alone and with others.
                                    0 => assert!(t.update(table, after[at], &[(1, ValueRef::Text(&text(n)))]).unwrap()),
                                    1 => {
                                        let savepoint = t.savepoint();
                                        assert!(t.delete(table, after[at]).unwrap());
                                        t.roll_back_to(savepoint).unwrap();
                                    }
                                    _ => {
                                        assert!(t.delete(table, after[at]).unwrap());
                                        after[at] = t.insert(table, &[ValueRef::Int(n), ValueRef::Text(&text(n))]).unwrap();
                                    }
                                }
                            }
                            if random.below(3) == 0 {
                                t.rollback().unwrap();
                            } else {
                                t.commit().unwrap();
                                own = after;
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let view = database.read_view();
                    assert_eq!(count(table, &view).0, ROWS);
                    std::thread::yield_now();
                    assert_eq!(count(table, &view).0, ROWS, "later");
                }
            });
            let results: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            results.into_iter().for_each(|result| result.unwrap());
        });
        assert_eq!(count(table, &database.read_view()), (ROWS, true));
    }
}

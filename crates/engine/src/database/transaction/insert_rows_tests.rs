//! Rows that come many at once are the rows that come one by one, on other pages.

use super::*;
use crate::database::{OpenMode, ScanRequest, Settings};
use crate::index::{IndexAttributes, IndexFormat};
use crate::pool::PoolSettings;
use crate::table_space::{Method, TableAttributes};
use pagefold_io::{FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Schema, Value, ValueRef};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

fn open(storage: &FaultStorage, mode: OpenMode) -> Database {
    let pools = PoolSettings { memory_bytes: 8 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let log = crate::log::LogSettings { segment_bytes: 256 << 10, ..crate::log::LogSettings::default() };
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, log, ..Settings::default() }).unwrap()
}

fn create(storage: &FaultStorage, method: Method, page_bytes: usize, format: IndexFormat) -> Database {
    let database = open(storage, OpenMode::Create);
    let columns = vec![
        Column::new("n", DataType::BigInt, false),
        Column::new("t", DataType::Varchar(None), true),
        Column::new("m", DataType::Integer, true),
    ];
    let attributes = TableAttributes { method, ..TableAttributes::new("t", Schema::new(columns).unwrap()).with_page_bytes(page_bytes) };
    let mut change = database.change();
    let table = change.create_table(attributes).unwrap();
    let key = IndexAttributes::new("key", vec![(0, Direction::Ascending)], true).with_format(format, 8192);
    change.create_index(&table, key).unwrap();
    let other = IndexAttributes::new("m", vec![(2, Direction::Descending)], false).with_format(format, 8192);
    change.create_index(&table, other).unwrap();
    change.commit().unwrap();
    database
}

fn text(n: i64) -> String {
    // Now and then one that lies outside.
    if n % 997 == 5 { "far ".repeat(3_000) } else { format!("row {n} {}", "carefully final ".repeat((n % 5) as usize)) }
}

/// Numbers that are no ascending order, each once.
fn shuffled(numbers: Range<i64>) -> impl Iterator<Item = i64> + Clone {
    let length = numbers.end - numbers.start;
    (0..length).map(move |i| numbers.start + i * 7919 % length)
}

fn insert(t: &mut Transaction<'_>, table: &Table, numbers: impl Iterator<Item = i64>) -> Result<u64> {
    t.insert_rows(table, |rows| {
        for n in numbers {
            let text = text(n);
            let text = if n % 11 == 0 { ValueRef::Null } else { ValueRef::Text(&text) };
            rows.push(&[ValueRef::Int(n), text, ValueRef::Int(n % 13)])?;
        }
        Ok(())
    })
}

fn expected(n: i64) -> Vec<Value> {
    vec![Value::Int(n), if n % 11 == 0 { Value::Null } else { Value::Text(text(n)) }, Value::Int(n % 13)]
}

fn check(database: &Database, numbers: Range<i64>) {
    let table = database.table("t").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let view = t.read_view().unwrap();
    let mut found: Vec<Vec<Value>> = view.scan(&table, &ScanRequest::default()).unwrap().into_rows().map(|row| row.unwrap().1).collect();
    drop(view);
    found.sort_by_key(|row| if let Value::Int(n) = row[0] { n } else { i64::MIN });
    let all: Vec<i64> = numbers.collect();
    assert_eq!(found.len(), all.len());
    assert!(found.iter().zip(&all).all(|(row, n)| *row == expected(*n)));
    assert_eq!(table.row_count(), all.len() as u64);
    for (name, keys) in [("key", 1), ("m", 0)] {
        let index = database.index(name).unwrap();
        for n in all.iter().step_by(37) {
            let rids = t.find(&table, &index, &[ValueRef::Int(if keys == 1 { *n } else { n % 13 })]).unwrap();
            let rows: Vec<_> = rids.iter().map(|rid| t.row(&table, *rid).unwrap().unwrap()).collect();
            assert!(rows.contains(&expected(*n)));
            assert!(keys == 0 || rids.len() == 1);
        }
        assert_eq!(index.data_set().facts().rows, all.len() as u64);
    }
}

fn data_pages(database: &Database) -> u64 {
    database.table("t").unwrap().data_sets().map(|data_set| u64::from(data_set.facts().data_pages)).sum()
}

#[test]
fn rows_come_all_at_once_under_every_method() {
    for (at, method) in Method::ALL.into_iter().enumerate() {
        for page_bytes in [2048, 16384] {
            let storage = FaultStorage::new(FaultOptions::default());
            let database = create(&storage, method, page_bytes, IndexFormat::ALL[at % IndexFormat::ALL.len()]);
            let table = database.table("t").unwrap();
            let mut t = database.begin(TransactionOptions::default());
            assert_eq!(insert(&mut t, &table, shuffled(0..5_000)).unwrap(), 5_000);
            // Those who began before do not see them.
            let mut before = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
            let mut seen = || {
                let view = before.read_view().unwrap();
                view.scan(&table, &ScanRequest::default()).unwrap().into_rows().count()
            };
            assert_eq!(seen(), 0);
            t.commit().unwrap();
            assert_eq!(seen(), 0);
            drop(before);
            check(&database, 0..5_000);
            // To a savepoint, and all the way.
            let mut t = database.begin(TransactionOptions::default());
            insert(&mut t, &table, 5_000..7_000).unwrap();
            let savepoint = t.savepoint();
            insert(&mut t, &table, shuffled(7_000..9_000)).unwrap();
            let index = database.index("key").unwrap();
            let rid = t.find(&table, &index, &[ValueRef::Int(8_000)]).unwrap()[0];
            t.update(&table, rid, &[(1, ValueRef::Text(&"longer ".repeat(90)))]).unwrap();
            t.roll_back_to(savepoint).unwrap();
            t.commit().unwrap();
            check(&database, 0..7_000);
            let mut t = database.begin(TransactionOptions::default());
            insert(&mut t, &table, 7_000..9_000).unwrap();
            t.rollback().unwrap();
            check(&database, 0..7_000);
            // A key that is there, and one that comes twice.
            let mut t = database.begin(TransactionOptions::default());
            insert(&mut t, &table, 7_000..8_000).unwrap();
            let twice = insert(&mut t, &table, (8_000..11_000).chain([6_999]));
            assert!(matches!(twice, Err(Error::DuplicateKey { .. })), "{twice:?}");
            let twice = insert(&mut t, &table, (8_000..11_000).chain([10_000]));
            assert!(matches!(twice, Err(Error::DuplicateKey { .. })), "{twice:?}");
            t.commit().unwrap();
            check(&database, 0..8_000);
            drop((table, index));
            drop(database);
            check(&open(&storage, OpenMode::Write), 0..8_000);
        }
    }
}

#[test]
fn pages_are_as_full_as_a_load_makes_them_and_encoded_once() {
    for method in [Method::None, Method::Row, Method::Page] {
        let storage = FaultStorage::new(FaultOptions::default());
        let database = create(&storage, method, 8192, IndexFormat::Prefix);
        let table = database.table("t").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        for part in 0..5 {
            insert(&mut t, &table, part * 8_000..part * 8_000 + 8_000).unwrap();
        }
        t.commit().unwrap();
        let pages = data_pages(&database);
        assert!(table.images_built() < pages, "{method}: {} pages built anew of {pages}", table.images_built());
        // One by one it takes about as many.
        let other = FaultStorage::new(FaultOptions::default());
        let database = create(&other, method, 8192, IndexFormat::Prefix);
        let table = database.table("t").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        for n in 0..40_000 {
            let row = expected(n);
            t.insert(&table, &row.iter().map(Value::as_ref).collect::<Vec<_>>()).unwrap();
        }
        t.commit().unwrap();
        let one_by_one = data_pages(&database);
        assert!(pages * 100 <= one_by_one * 103, "{method}: {pages} pages, one by one {one_by_one}");
    }
}

#[test]
fn room_that_deletes_leave_is_used_again() {
    for method in Method::ALL {
        let storage = FaultStorage::new(FaultOptions::default());
        let database = create(&storage, method, 4096, IndexFormat::Plain);
        let table = database.table("t").unwrap();
        let index = database.index("key").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        insert(&mut t, &table, 0..12_000).unwrap();
        t.commit().unwrap();
        let pages = data_pages(&database);
        for round in 0..6 {
            // The oldest go, or every second one.
            let mut t = database.begin(TransactionOptions::default());
            let (from, step) = if round % 2 == 0 { (0, 1) } else { (1, 2) };
            let mut gone = Vec::new();
            for n in (from..12_000 * (round + 1)).step_by(step) {
                if gone.len() == 5_000 {
                    break;
                }
                if let Some(rid) = t.find(&table, &index, &[ValueRef::Int(n)]).unwrap().first() {
                    assert!(t.delete(&table, *rid).unwrap());
                    gone.push(n);
                }
            }
            t.commit().unwrap();
            database.remove_leftovers().unwrap();
            let mut t = database.begin(TransactionOptions::default());
            insert(&mut t, &table, 100_000 * (round + 1)..100_000 * (round + 1) + gone.len() as i64).unwrap();
            t.commit().unwrap();
            assert_eq!(table.row_count(), 12_000);
        }
        let now = data_pages(&database);
        assert!(now * 4 <= pages * 5, "{method}: {now} pages, {pages} at first");
    }
}

#[test]
fn a_row_that_is_refused_fails_the_statement_whoever_is_told() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = create(&storage, Method::Page, 4096, IndexFormat::Prefix);
    let table = database.table("t").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let far = "far ".repeat(3_000);
    let done = t.insert_rows(&table, |rows| {
        rows.push(&[ValueRef::Int(1), ValueRef::Text(&far), ValueRef::Null])?;
        // A NULL where there is none, behind a value that is outside by then.
        let refused = rows.push(&[ValueRef::Null, ValueRef::Text(&far), ValueRef::Null]);
        assert!(matches!(refused, Err(Error::Value(_))));
        rows.push(&[ValueRef::Int(2), ValueRef::Null, ValueRef::Null])
    });
    assert!(matches!(done, Err(Error::Value(_))), "{done:?}");
    let wide = t.insert_rows(&table, |rows| rows.push_record(&[0; 5_000]));
    assert!(matches!(wide, Err(Error::Value(_))), "{wide:?}");
    assert_eq!(t.insert_rows(&table, |_| Ok(())).unwrap(), 0);
    t.commit().unwrap();
    check(&database, 0..0);
}

#[test]
fn a_slot_that_somebody_has_locked_is_no_obstacle() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = create(&storage, Method::None, 4096, IndexFormat::Prefix);
    let table = database.table("t").unwrap();
    let index = database.index("key").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    insert(&mut t, &table, 0..2_000).unwrap();
    t.commit().unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let mut rids = Vec::new();
    for n in 0..2_000 {
        rids.push(t.find(&table, &index, &[ValueRef::Int(n)]).unwrap()[0]);
        assert!(t.delete(&table, rids[n as usize]).unwrap());
    }
    t.commit().unwrap();
    database.remove_leftovers().unwrap();
    // One who waits for a row that goes has its lock then.
    let mut waiter = database.begin(TransactionOptions::default());
    assert!(!waiter.lock(&table, rids[0]).unwrap());
    let pages = data_pages(&database);
    let mut t = database.begin(TransactionOptions::default());
    insert(&mut t, &table, 0..2_000).unwrap();
    t.commit().unwrap();
    assert!(data_pages(&database) <= pages + 3, "{} pages, {pages} before", data_pages(&database));
    waiter.rollback().unwrap();
    check(&database, 0..2_000);
}

/// Beside each other, and while dictionaries are trained: a page is cut by one dictionary, and there is another one when it is filled.
#[test]
fn threads_insert_rows_while_dictionaries_come() {
    const THREADS: i64 = 3;
    const BATCHES: i64 = 4;
    const ROWS: i64 = 3_000;
    for method in Method::ALL {
        let storage = FaultStorage::new(FaultOptions::default());
        drop(create(&storage, method, 4096, IndexFormat::Prefix));
        let pools = PoolSettings { memory_bytes: 32 << 20, background_threads: 1, ..PoolSettings::default() };
        let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
        let settings = Settings { pools, ..Settings::default() };
        let database = Database::open(Arc::new(storage.clone()), clock, Path::new("db"), OpenMode::Write, settings).unwrap();
        let table = database.table("t").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while table.row_count() < (THREADS * BATCHES * ROWS) as u64 {
                    database.renew_dictionaries("t").unwrap();
                    std::thread::yield_now();
                }
            });
            for thread in 0..THREADS {
                let (database, table) = (&database, &table);
                scope.spawn(move || {
                    for batch in 0..BATCHES {
                        // Their keys lie among each other.
                        let numbers = shuffled(batch * ROWS..(batch + 1) * ROWS).map(|n| n * THREADS + thread);
                        let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
                        let mut t = database.begin(options);
                        assert_eq!(insert(&mut t, table, numbers.clone()).unwrap(), ROWS as u64);
                        if batch % 3 == 1 {
                            t.rollback().unwrap();
                            t = database.begin(options);
                            insert(&mut t, table, numbers).unwrap();
                        }
                        t.commit().unwrap();
                    }
                });
            }
        });
        let has_dictionary = table.dictionary().is_some();
        assert!(has_dictionary == method.dictionary_type().is_some() || method == Method::Page, "{method}: dictionary: {has_dictionary}");
        check(&database, 0..THREADS * BATCHES * ROWS);
    }
}

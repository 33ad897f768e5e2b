//! A change is atomic: after a crash at any I/O call the database is as before or as after.

use super::*;
use crate::log::LogSettings;
use crate::pool::By;
use crate::pool::PoolSettings;
use crate::table_space::{BulkLoader, DataPages, TableAttributes};
use crate::{Error, Result};
use pagefold_format::page;
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, OpenOptions, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(storage: &FaultStorage, mode: OpenMode) -> Result<Database> {
    // Without background threads the calls come in the same order each time.
    let pools = PoolSettings { memory_bytes: 1 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    // Small, since images of all files are made again and again.
    let log = LogSettings { segment_bytes: 64 << 10, ..LogSettings::default() };
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, log, double_write_bytes: 64 << 10, ..Settings::default() })
}

fn schema() -> Schema {
    Schema::new(vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)]).unwrap()
}

fn create(database: &Database, name: &str, rows: i64) -> Result<()> {
    let mut change = database.change();
    if database.table(name).is_ok() {
        change.drop_table(name)?;
    }
    let table = change.create_table(TableAttributes::new(name, schema()))?;
    let mut loader = BulkLoader::new(&table)?;
    for n in 0..rows {
        let mut record = Vec::new();
        table.build_record(By::Nobody, &[ValueRef::Int(n), ValueRef::Text("some text")], &mut record)?;
        loader.push(&record, |_, _| Ok::<_, Error>(()))?;
    }
    loader.finish(|_, _| Ok::<_, Error>(()))?;
    change.commit()
}

fn contents(database: &Database) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for table in database.tables().unwrap() {
        let mut expected = 0;
        table
            .visit_newest(DataPages::of(&table), |_, record| {
                assert_eq!(table.layout().int_at(record, 0).unwrap(), Some(expected));
                expected += 1;
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(table.row_count(), expected as u64);
        all.push((table.name().to_string(), expected as u64));
    }
    all
}

/// How many data sets there are when both control slots name the same catalog.
fn files(database: &Database, storage: &FaultStorage) -> usize {
    (0..2).for_each(|_| database.checkpoint().unwrap());
    storage.list(Path::new("db/data")).unwrap().len()
}

#[test]
fn a_crash_at_any_call_leaves_before_or_after() {
    let mut states = 0;
    for sector_bytes in [512, 4096] {
        let base = FaultStorage::new(FaultOptions { seed: 1, sector_bytes, ..FaultOptions::default() });
        let database = open(&base, OpenMode::Create).unwrap();
        create(&database, "a", 500).unwrap();
        create(&database, "b", 30).unwrap();
        drop(database);
        let before = vec![("a".to_string(), 500), ("b".to_string(), 30)];
        let after = vec![("a".to_string(), 700), ("b".to_string(), 30)];
        for call in 0.. {
            let run = base.crash_image(CrashPolicy::KeepAll);
            let start = run.calls();
            run.crash_at(start + call);
            let done = open(&run, OpenMode::Write).and_then(|database| create(&database, "a", 700));
            let finished = !run.is_crashed();
            for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(call), CrashPolicy::Random(call + 1_000_000)] {
                let image = run.crash_image(policy);
                let database = open(&image, OpenMode::Write).unwrap_or_else(|e| panic!("call {call}, {policy:?}: {e}"));
                let found = contents(&database);
                assert!(found == before || found == after, "call {call}, {policy:?}: {found:?}");
                assert!(done.is_err() || found == after, "call {call}, {policy:?}: an acknowledged change is lost");
                assert_eq!(files(&database, &image), 3, "call {call}, {policy:?}: space leaked");
                states += 1;
            }
            if finished {
                assert!(done.is_ok());
                break;
            }
        }
    }
    assert!(states > 100, "only {states} states");
}

#[test]
fn a_crash_while_a_database_is_made() {
    for call in 0.. {
        let storage = FaultStorage::new(FaultOptions { seed: 2, ..FaultOptions::default() });
        storage.crash_at(call);
        let done = open(&storage, OpenMode::Create).is_ok();
        let finished = !storage.is_crashed();
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(call)] {
            let image = storage.crash_image(policy);
            if done {
                open(&image, OpenMode::Read).unwrap();
            }
            let database = open(&image, OpenMode::Create).unwrap();
            create(&database, "a", 5).unwrap();
            assert_eq!(contents(&database).len(), 1);
        }
        if finished {
            break;
        }
    }
}

#[test]
fn errors_at_any_call_leave_the_database_usable() {
    use pagefold_io::{Failure, Repeat};
    let base = FaultStorage::new(FaultOptions { seed: 3, ..FaultOptions::default() });
    create(&open(&base, OpenMode::Create).unwrap(), "a", 500).unwrap();
    for (failure, repeat) in [(Failure::NoSpace, Repeat::Once), (Failure::NoSpace, Repeat::Forever), (Failure::Io, Repeat::Once)] {
        for call in 0.. {
            let run = base.crash_image(CrashPolicy::KeepAll);
            let start = run.calls();
            run.error_at(start + call, failure, repeat);
            let outcome = open(&run, OpenMode::Write).and_then(|database| create(&database, "a", 700));
            let met = run.calls() > start + call;
            run.clear_faults();
            let database = open(&run, OpenMode::Write).unwrap();
            let found = contents(&database);
            let acceptable = found == [("a".to_string(), 500)] || found == [("a".to_string(), 700)];
            assert!(acceptable && (outcome.is_err() || found[0].1 == 700), "{failure:?} at call {call}: {found:?}");
            assert_eq!(files(&database, &run), 2);
            if !met {
                break;
            }
        }
    }
}

/// The moment in which a commit is in the log, and still waits for the device or its turn.
#[test]
fn a_checkpoint_during_a_commit_does_not_undo_it() {
    for commits in [true, false] {
        let storage = FaultStorage::new(FaultOptions::default());
        let database = open(&storage, OpenMode::Create).unwrap();
        create(&database, "a", 3).unwrap();
        let table = database.table("a").unwrap();
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.insert(&table, &[ValueRef::Int(3), ValueRef::Text("some text")]).unwrap();
        if commits {
            transaction.log_commit().unwrap();
        }
        database.checkpoint().unwrap();
        let image = storage.crash_image(CrashPolicy::DropAll);
        let found = contents(&open(&image, OpenMode::Write).unwrap());
        assert_eq!(found, [("a".to_string(), if commits { 4 } else { 3 })]);
        drop(transaction);
    }
}

#[test]
fn two_writers_are_refused_and_readers_are_not() {
    let storage = FaultStorage::new(FaultOptions::default());
    let writer = open(&storage, OpenMode::Create).unwrap();
    create(&writer, "a", 3).unwrap();
    assert!(matches!(open(&storage, OpenMode::Write), Err(Error::Locked(..))));
    let reader = open(&storage, OpenMode::Read).unwrap();
    assert_eq!(contents(&reader), vec![("a".to_string(), 3)]);
    assert!(matches!(create(&reader, "b", 1), Err(Error::ReadOnly(_))));
    drop(writer);
    open(&storage, OpenMode::Write).unwrap();
}

#[test]
fn not_a_database() {
    let storage = FaultStorage::new(FaultOptions::default());
    assert!(matches!(open(&storage, OpenMode::Read), Err(Error::NotADatabase(_))));
    storage.create_directory(Path::new("db")).unwrap();
    assert!(matches!(open(&storage, OpenMode::Write), Err(Error::NotADatabase(_))));
}

/// Who drops a table waits for those who change its rows, and they for him. Other tables have nothing to do with it.
#[test]
fn rows_and_objects_wait_for_each_other() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create).unwrap();
    create(&database, "t", 10).unwrap();
    let table = database.table("t").unwrap();
    let row = [ValueRef::Int(10), ValueRef::Text("more")];
    let at_once = TransactionOptions { lock_timeout: Duration::ZERO, ..TransactionOptions::default() };
    let mut writer = database.begin(TransactionOptions::default());
    writer.insert(&table, &row).unwrap();
    create(&database, "u", 1).unwrap();
    assert!(matches!(database.change_within(Duration::ZERO).drop_table("t"), Err(Error::Lock(_))));
    // Nobody asks for whole objects any more, and the writer is known all the same.
    assert!(matches!(database.change_within(Duration::ZERO).lock_table("t"), Err(Error::Lock(_))));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut change = database.change();
            change.lock_table("t").unwrap();
            database.table("t").unwrap().row_count()
        });
        while database.core.locks.waiting() == 0 {
            std::thread::yield_now();
        }
        writer.insert(&table, &row).unwrap();
        writer.commit().unwrap();
        assert_eq!(waits.join().unwrap(), 12);
    });
    let mut change = database.change();
    change.drop_table("t").unwrap();
    let mut late = database.begin(at_once);
    assert!(matches!(late.insert(&table, &row), Err(Error::Lock(_))));
    let mut other = database.begin(at_once);
    other.insert(&database.table("u").unwrap(), &row).unwrap();
    other.commit().unwrap();
    drop((change, late));
    let mut writer = database.begin(at_once);
    writer.insert(&table, &row).unwrap();
    writer.rollback().unwrap();
    assert_eq!(table.row_count(), 12);
    assert!(database.core.locks.is_empty());
}

/// What is committed is there after a crash, also when the catalog on disk does not say so yet; and what is dropped is not.
#[test]
fn definitions_are_in_the_log() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create).unwrap();
    create(&database, "t", 1).unwrap();
    create(&database, "u", 3).unwrap();
    let control = database.objects.read().control;
    let mut change = database.change();
    change.drop_table("t").unwrap();
    change.commit().unwrap();
    // Given up.
    let mut change = database.change();
    change.drop_table("u").unwrap();
    change.create_table(TableAttributes::new("u", schema())).unwrap();
    drop(change);
    assert_eq!(database.objects.read().control, control, "no catalog was written");
    for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll] {
        let image = storage.crash_image(policy);
        for _ in 0..2 {
            let again = open(&image, OpenMode::Write).unwrap();
            assert!(again.table("t").is_err());
            assert_eq!(again.table("u").unwrap().row_count(), 3);
            assert_eq!(files(&again, &image), 2);
        }
    }
}

/// Write counters never go back, also of pages that redo makes anew without a look at what is on disk, and of which the map on disk does not know the last write.
#[test]
fn a_page_that_redo_makes_anew_has_a_higher_write_counter() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create).unwrap();
    create(&database, "t", 1).unwrap();
    let table = database.table("t").unwrap();
    let insert = |n| {
        let mut transaction = database.begin(TransactionOptions::default());
        let rid = transaction.insert(&table, &[ValueRef::Int(n), ValueRef::Text("some text")]).unwrap();
        transaction.commit().unwrap();
        rid
    };
    let first = insert(1).page();
    let rid = (2..).map(insert).find(|rid| rid.page() != first).unwrap();
    let data_set = Arc::clone(table.partition(rid.partition()).unwrap());
    database.write_dirty_pages(&data_set).unwrap();
    assert_eq!(insert(0).page(), rid.page());
    let counter = |storage: &FaultStorage| {
        let path = crate::directory::data_set_path(Path::new("db"), data_set.file_id());
        let mut bytes = vec![0; data_set.page_bytes()];
        let file = storage.open(&path, &OpenOptions::read_only()).unwrap();
        file.read_at(&mut bytes, u64::from(rid.page()) * data_set.page_bytes() as u64).unwrap();
        page::verify(&bytes, &data_set.identity(rid.page())).unwrap();
        (page::lsn(&bytes), page::write_counter(&bytes))
    };
    let image = storage.crash_image(CrashPolicy::KeepAll);
    let before = counter(&image);
    open(&image, OpenMode::Write).unwrap().close().unwrap();
    let after = counter(&image);
    assert!(after.0 > before.0 && after.1 > before.1, "{before:?}, {after:?}");
}

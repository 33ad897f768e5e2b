//! What happens by itself: checkpoints, removal of what readers needed, syncs, and what a panic there does; and what each durability promises.

use super::*;
use crate::core::Work;
use crate::pool::PoolSettings;
use crate::table_space::{DataPages, Table, TableAttributes};
use pagefold_io::{Clock, CrashPolicy, FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CHECKPOINT_BYTES: u64 = 256 << 10;

fn open(storage: &FaultStorage, mode: OpenMode, background_threads: usize) -> Database {
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads, ..PoolSettings::default() };
    open_with_clock(storage, mode, pools, Arc::new(SimulatedClock::new(Duration::from_secs(1))))
}

fn open_with_clock(storage: &FaultStorage, mode: OpenMode, pools: PoolSettings, clock: Arc<dyn Clock>) -> Database {
    let log = crate::log::LogSettings { segment_bytes: 64 << 10, ..crate::log::LogSettings::default() };
    let settings = Settings { pools, log, checkpoint_bytes: CHECKPOINT_BYTES, ..Settings::default() };
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let database = Database::open(storage, clock, Path::new("db"), mode, settings).unwrap();
    if mode == OpenMode::Create {
        let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
        let mut change = database.change();
        change.create_table(TableAttributes::new("t", Schema::new(columns).unwrap())).unwrap();
        change.commit().unwrap();
    }
    database
}

fn insert(database: &Database, durability: Durability, numbers: std::ops::Range<i64>) -> Vec<Rid> {
    let table = database.table("t").unwrap();
    let mut transaction = database.begin(TransactionOptions { durability, ..TransactionOptions::default() });
    let text = "text ".repeat(40);
    let rids = numbers.map(|n| transaction.insert(&table, &[ValueRef::Int(n), ValueRef::Text(&text)]).unwrap()).collect();
    transaction.commit().unwrap();
    rids
}

fn count(table: &Table) -> u64 {
    let mut rows = 0;
    let visited = table.visit_newest(DataPages::of(table), |_, _| {
        rows += 1;
        Ok::<_, crate::Error>(())
    });
    visited.unwrap();
    rows
}

#[test]
fn a_checkpoint_comes_when_the_log_has_grown() {
    for background_threads in [0, 1] {
        let storage = FaultStorage::new(FaultOptions::default());
        let database = open(&storage, OpenMode::Create, background_threads);
        let mut segments_max = 0;
        for part in 0..60 {
            insert(&database, Durability::Durable, part * 200..part * 200 + 200);
            if background_threads == 0 {
                assert!(database.log_bytes_since_checkpoint() < CHECKPOINT_BYTES + (32 << 10));
            }
            // The thread comes round to it some time.
            while database.log_bytes_since_checkpoint() >= CHECKPOINT_BYTES {
                std::thread::yield_now();
            }
            let log = storage.list(Path::new("db/log")).unwrap();
            segments_max = segments_max.max(log.iter().filter(|path| path.to_string_lossy().contains("/0")).count());
        }
        assert!(segments_max <= 20, "{segments_max} segments: the log is not recycled");
        drop(database);
        assert_eq!(count(&open(&storage, OpenMode::Write, 0).table("t").unwrap()), 60 * 200);
    }
}

#[test]
fn a_long_transaction_is_no_obstacle() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create, 0);
    insert(&database, Durability::Durable, 0..12_000);
    assert!(database.log_bytes_since_checkpoint() < CHECKPOINT_BYTES + (32 << 10));
    assert_eq!(count(&database.table("t").unwrap()), 12_000);
}

#[test]
fn small_transactions_go_on_where_a_checkpoint_gives_log_back() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create, 0);
    let (table, rids) = (database.table("t").unwrap(), insert(&database, Durability::Durable, 0..400));
    database.checkpoint().unwrap();
    database.checkpoint().unwrap();
    // Room for three segments more: the next checkpoint would be due later.
    storage.set_capacity(Some(storage.taken_bytes() + 3 * (64 << 10)));
    for round in 0..20 {
        let text = ["other".repeat(40), "texts".repeat(40)][round % 2].clone();
        for rid in &rids {
            let mut transaction = database.begin(TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() });
            assert!(transaction.update(&table, *rid, &[(1, ValueRef::Text(&text))]).unwrap());
            transaction.commit().unwrap();
        }
    }
}

/// The log ends near the end of a segment when there is no room for the one behind the next: nothing can be given back before it has come into the next.
#[test]
fn the_log_goes_on_into_the_last_segment_that_there_is_room_for() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create, 0);
    let (table, rids) = (database.table("t").unwrap(), insert(&database, Durability::Durable, 0..100));
    // The catalog has its room.
    database.checkpoint().unwrap();
    database.checkpoint().unwrap();
    storage.set_capacity(Some(storage.taken_bytes()));
    let begun = database.log_end();
    for round in 0..3_000 {
        let mut transaction = database.begin(TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() });
        let text = ["other", "texts"][round % 2];
        let done = transaction.update(&table, rids[round % 100], &[(1, ValueRef::Text(text))]);
        assert!(done.unwrap_or_else(|e| panic!("round {round}, log {} of {begun}: {e}", database.log_end())));
        transaction.commit().unwrap();
    }
    assert!(database.log_end() - begun > 3 * (64 << 10), "{} bytes of log", database.log_end() - begun);
}

/// Making a segment writes what there is room for before it fails.
#[test]
fn who_frees_space_on_a_full_device_does_not_ask_for_a_segment_each_time() {
    let storage = FaultStorage::new(FaultOptions::default());
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    let log = crate::log::LogSettings { segment_bytes: 4 << 20, ..crate::log::LogSettings::default() };
    let settings = Settings { pools, log, checkpoint_bytes: u64::MAX, ..Settings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let database = Database::open(Arc::new(storage.clone()), clock, Path::new("db"), OpenMode::Create, settings).unwrap();
    let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
    let mut change = database.change();
    change.create_table(TableAttributes::new("t", Schema::new(columns).unwrap())).unwrap();
    change.commit().unwrap();
    let (table, rids) = (database.table("t").unwrap(), insert(&database, Durability::Off, 0..1_200));
    let begin = || database.begin(TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() });
    // It keeps the log.
    let mut keeper = begin();
    assert!(keeper.update(&table, rids[0], &[(1, ValueRef::Text("kept"))]).unwrap());
    storage.set_capacity(Some(storage.taken_bytes()));
    let update = |turn: usize| {
        let mut transaction = begin();
        transaction.update(&table, rids[1], &[(1, ValueRef::Text(["x", "y"][turn % 2]))])?;
        transaction.commit()
    };
    assert!((0..).find_map(|turn| update(turn).err()).unwrap().is_no_room());
    let asked = storage.calls_of(pagefold_io::CallKind::Allocate);
    for rid in &rids[2..] {
        let mut transaction = begin();
        // A lock writes nothing.
        let view = transaction.read_view().unwrap();
        let locked = transaction.lock_seen(&view, &table, *rid, RowLock::Exclusive, LockWait::Wait);
        assert_eq!(locked.unwrap(), Locked::Unchanged);
        assert!(transaction.delete(&table, *rid).unwrap());
        transaction.commit().unwrap();
    }
    let asked = storage.calls_of(pagefold_io::CallKind::Allocate) - asked;
    assert!((1..60).contains(&asked), "a segment was asked for {asked} times in {} transactions", rids.len() - 2);
    keeper.rollback().unwrap();
}

#[test]
fn what_a_reader_needed_goes_when_it_ends() {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create, 1);
    let table = database.table("t").unwrap();
    for by_rollback in [false, true] {
        let rids = insert(&database, Durability::Durable, 0..50);
        let mut reader = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
        assert!(reader.row(&table, rids[0]).unwrap().is_some());
        let mut deleter = database.begin(TransactionOptions::default());
        for rid in &rids {
            assert!(deleter.delete(&table, *rid).unwrap());
        }
        deleter.commit().unwrap();
        assert!(reader.row(&table, rids[7]).unwrap().is_some());
        assert!(database.core.leftovers.may_be_there());
        if by_rollback {
            reader.rollback().unwrap()
        } else {
            reader.commit().unwrap()
        }
        // No commit follows.
        while database.core.leftovers.may_be_there() {
            std::thread::yield_now();
        }
        assert!(table.ghost_record(rids[0], 0).unwrap().is_none());
    }
}

#[test]
fn each_durability_keeps_what_it_promises() {
    // What a process that is killed leaves, and what a machine that loses power does.
    let kept = |storage: &FaultStorage, policy| count(&open(&storage.crash_image(policy), OpenMode::Write, 0).table("t").unwrap());
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create, 0);
    insert(&database, Durability::Durable, 0..10);
    assert_eq!((kept(&storage, CrashPolicy::KeepAll), kept(&storage, CrashPolicy::DropAll)), (10, 10));
    insert(&database, Durability::Relaxed, 10..20);
    assert_eq!((kept(&storage, CrashPolicy::KeepAll), kept(&storage, CrashPolicy::DropAll)), (20, 10));
    insert(&database, Durability::Off, 20..30);
    assert_eq!((kept(&storage, CrashPolicy::KeepAll), kept(&storage, CrashPolicy::DropAll)), (20, 10));
    insert(&database, Durability::Durable, 30..40);
    assert_eq!((kept(&storage, CrashPolicy::KeepAll), kept(&storage, CrashPolicy::DropAll)), (40, 40));
    insert(&database, Durability::Off, 40..50);
    drop(database);
    assert_eq!(kept(&storage, CrashPolicy::DropAll), 50);
    // With a thread for it, a relaxed commit is synced soon.
    let database = open(&storage, OpenMode::Write, 1);
    insert(&database, Durability::Relaxed, 50..60);
    while kept(&storage, CrashPolicy::DropAll) < 60 {
        std::thread::yield_now();
    }
}

/// The thread for what is short panics when it waits for more commits to sync.
#[derive(Debug)]
struct PanickingClock(SimulatedClock);

impl Clock for PanickingClock {
    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn unix_time(&self) -> Duration {
        self.0.unix_time()
    }

    fn thread_cpu(&self) -> Duration {
        self.0.thread_cpu()
    }

    fn process_cpu(&self) -> Duration {
        self.0.process_cpu()
    }

    fn sleep(&self, duration: Duration) {
        assert_ne!(std::thread::current().name(), Some("pagefold-maintenance"), "the clock stands still");
        self.0.sleep(duration);
    }
}

#[test]
fn a_panic_of_the_thread_is_told_to_who_writes_next() {
    let storage = FaultStorage::new(FaultOptions::default());
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 1, ..PoolSettings::default() };
    let clock = Arc::new(PanickingClock(SimulatedClock::new(Duration::from_secs(1))));
    let mut database = open_with_clock(&storage, OpenMode::Create, pools, clock);
    insert(&database, Durability::Durable, 0..10);
    assert!(database.core.maintenance.ask(Work::Leftovers));
    // Its sync is asked for, and the thread panics.
    insert(&database, Durability::Relaxed, 10..20);
    assert!(database.maintenance.as_mut().unwrap().join().is_err());
    assert!(!database.core.maintenance.ask(Work::Leftovers), "nobody is there to do it");
    let table = database.table("t").unwrap();
    let mut writer = database.begin(TransactionOptions::default());
    let refused = writer.insert(&table, &[ValueRef::Int(20), ValueRef::Text("")]).map(drop);
    assert!(matches!(&refused, Err(crate::Error::Poisoned(reason)) if reason.contains("pagefold-maintenance")), "{refused:?}");
    drop(writer);
    drop(database);
    assert_eq!(count(&open(&storage, OpenMode::Write, 1).table("t").unwrap()), 20);
}

/// Refused on a page just made, too: the database can be used as before.
#[test]
fn versions_that_find_no_room_are_an_error_of_the_statement() {
    let storage: Arc<dyn Storage> = Arc::new(FaultStorage::new(FaultOptions::default()));
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    for version_bytes in [600, 4_000, 20_000] {
        let directory = format!("db{version_bytes}");
        let settings = Settings { pools, version_bytes, version_file_bytes: 0, ..Settings::default() };
        let database = Database::open(Arc::clone(&storage), clock.clone(), Path::new(&directory), OpenMode::Create, settings).unwrap();
        let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
        let mut change = database.change();
        // One row a page: each insert makes a page first.
        change.create_table(TableAttributes { maxrows: 1, ..TableAttributes::new("t", Schema::new(columns).unwrap()) }).unwrap();
        change.commit().unwrap();
        let table = database.table("t").unwrap();
        let mut transaction = database.begin(TransactionOptions::default());
        let refused = (0..1_000).find_map(|n| transaction.insert(&table, &[ValueRef::Int(n), ValueRef::Text("")]).err());
        assert!(matches!(refused, Some(crate::Error::VersionsFull(_))), "{refused:?}");
        transaction.rollback().unwrap();
        insert(&database, Durability::Durable, 0..2);
        assert_eq!(count(&table), 2);
    }
}

//! Statistics that are kept fresh in the background: after a share of the rows has changed and not before, of few pages, not on a full disk, and until it is closed.

use super::world::{insert, make, open, rows, storage};
use pagefold_engine::database::{Database, OpenMode, Settings, TransactionOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::ValueRef;
use pagefold_utility::{FreshCounts, FreshOptions, FreshStatistics, Silent, Workload, check_files, kept_statistics};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Often, so that a test need not wait.
fn often() -> FreshOptions {
    FreshOptions { interval: Duration::from_millis(5), busy: 1.0, rows_min: 100, pages_max: 64, ..FreshOptions::default() }
}

/// Waits until it has come to this.
fn wait(fresh: &FreshStatistics, what: &str, is_there: impl Fn(FreshCounts) -> bool) -> FreshCounts {
    for _ in 0..6_000 {
        let counts = fresh.counts();
        if is_there(counts) {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: {:?}", fresh.counts());
}

/// Rounds that began after now: all that was done before is seen in them.
fn rounds_more(fresh: &FreshStatistics) -> FreshCounts {
    let now = fresh.counts().rounds;
    wait(fresh, "more rounds", |counts| counts.rounds >= now + 3)
}

fn update(database: &Database, table: &Arc<Table>, count: usize) {
    let all = rows(database, table);
    let mut transaction = database.begin(TransactionOptions::default());
    all[..count].iter().for_each(|(rid, _)| assert!(transaction.update(table, *rid, &[(8, ValueRef::Boolean(true))]).unwrap()));
    transaction.commit().unwrap();
}

#[test]
fn they_are_gathered_when_a_share_of_the_rows_has_changed() {
    let database = Arc::new(open(&storage(), OpenMode::Create));
    let table = make(&database, Method::None, 2048, 99, 1);
    let fresh = FreshStatistics::start(&database, often()).unwrap();
    assert_eq!(rounds_more(&fresh).gathered, 0, "fewer rows than what is worth it");
    drop(fresh);
    insert(&database, &table, 1_000..3_901, 1);
    let fresh = FreshStatistics::start(&database, often()).unwrap();
    wait(&fresh, "the first time", |counts| counts.gathered == 1);
    assert_eq!((kept_statistics(&database, &[]).unwrap().tables.len(), table.rows_changed()), (1, 0));
    update(&database, &table, 300);
    assert_eq!(rounds_more(&fresh).gathered, 1, "10 % have not more than changed");
    drop(fresh);
    update(&database, &table, 1);
    // Of so many pages each is not looked at.
    let (pages, before) = (
        table.data_sets().map(|data_set| u64::from(data_set.facts().data_pages)).sum::<u64>(),
        Workload::of(&database).objects["t"].getpages,
    );
    let fresh = FreshStatistics::start(&database, often()).unwrap();
    let counts = wait(&fresh, "the second time", |counts| counts.gathered == 1);
    let read = Workload::of(&database).objects["t"].getpages - before;
    println!("{read} getpages of a table of {pages} pages");
    assert!(read <= 130 && read < pages, "{read} of {pages}");
    assert_eq!((table.rows_changed(), counts.failed), (0, 0));
    // What is committed later counts for the next time.
    let share = FreshOptions { share: 0.5, ..often() };
    drop(fresh);
    let fresh = FreshStatistics::start(&database, share).unwrap();
    update(&database, &table, 1_400);
    assert_eq!(rounds_more(&fresh).gathered, 0);
    drop(fresh);
    // Nobody else has it.
    assert_eq!(Arc::strong_count(&database), 1);
    drop(table);
    Arc::into_inner(database).unwrap().close().unwrap();
}

#[test]
fn what_nobody_has_used_is_not_opened() {
    let storage = storage();
    let database = open(&storage, OpenMode::Create);
    make(&database, Method::None, 2048, 500, 1);
    database.close().unwrap();
    let database = Arc::new(open(&storage, OpenMode::Write));
    let fresh = FreshStatistics::start(&database, often()).unwrap();
    assert_eq!((rounds_more(&fresh).gathered, database.opened_tables().len()), (0, 0));
    database.table("t").unwrap();
    wait(&fresh, "used", |counts| counts.gathered == 1);
}

#[test]
fn a_full_disk_and_crashes_leave_them_as_they_were() {
    let disk = FaultStorage::new(FaultOptions { seed: 3, log_calls_max: 0, ..FaultOptions::default() });
    let open = |disk: &FaultStorage, mode| {
        let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
        let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        Database::open(storage, clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
    };
    let database = Arc::new(open(&disk, OpenMode::Create));
    let table = make(&database, Method::None, 2048, 600, 1);
    database.checkpoint().unwrap();
    // Nothing has room but what goes into segments of the log that are there.
    disk.set_capacity(Some(0));
    let fresh = FreshStatistics::start(&database, often()).unwrap();
    let counts = rounds_more(&fresh);
    println!("on a full disk: {counts:?}");
    disk.set_capacity(None);
    wait(&fresh, "with room again", |counts| counts.gathered >= 1);
    // Beside writers, and a crash at some calls of them and of it.
    let mut images = 0;
    for turn in 0..12 {
        update(&database, &table, 100);
        std::thread::sleep(Duration::from_millis(turn));
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(turn)] {
            let image = disk.crash_image(policy);
            let found = open(&image, OpenMode::Write);
            assert_eq!(rows(&found, &found.table("t").unwrap()).len(), 600);
            let kept = kept_statistics(&found, &[]).unwrap();
            assert_eq!((kept.tables.len(), kept.without.len()), (1, 0), "turn {turn}, {policy:?}");
            drop(found);
            assert!(check_files(&image, Path::new("db"), &Silent).unwrap().errors.is_empty());
            images += 1;
        }
    }
    let counts = wait(&fresh, "again beside writers", |counts| counts.gathered >= 3 && counts.failed == 0);
    println!("{images} images, {counts:?}");
}

fn is_at_work(database: &Database) -> bool {
    database.metrics().contains("runstats t")
}

#[test]
fn it_ends_while_it_works() {
    let database = Arc::new(open(&storage(), OpenMode::Create));
    let table = make(&database, Method::None, 2048, 6_000, 1);
    // So slow that it is amid the table for as long as nobody ends it.
    let slow = FreshOptions { busy: 0.01, ..often() };
    let fresh = FreshStatistics::start(&database, slow).unwrap();
    while !is_at_work(&database) && fresh.counts().rounds == 0 {
        std::thread::yield_now();
    }
    drop(fresh);
    assert!(Arc::strong_count(&database) == 1 && !is_at_work(&database));
    drop(table);
}

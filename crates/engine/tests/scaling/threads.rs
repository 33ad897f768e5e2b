//! Many threads that commit, each a row of its own or all the same one: counted, and (when asked for) measured.

use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::table_space::{Table, TableAttributes};
use pagefold_io::{Clock, CountingStorage, MemoryStorage, OsClock, OsStorage, SlowSync, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

struct Accounts {
    database: Database,
    table: Arc<Table>,
    rids: Vec<Rid>,
}

impl Accounts {
    fn new(storage: Arc<dyn Storage>, folder: &Path, rows: i64) -> Accounts {
        let database = Database::open(storage, Arc::new(OsClock), folder, OpenMode::Create, Settings::default()).unwrap();
        let columns = vec![Column::new("number", DataType::BigInt, false), Column::new("balance", DataType::BigInt, false)];
        let mut change = database.change();
        change.create_table(TableAttributes::new("account", Schema::new(columns).unwrap())).unwrap();
        change.commit().unwrap();
        let table = database.table("account").unwrap();
        let mut transaction = database.begin(TransactionOptions::default());
        let rids = (0..rows).map(|n| transaction.insert(&table, &[ValueRef::Int(n), ValueRef::Int(0)]).unwrap()).collect();
        transaction.commit().unwrap();
        Accounts { database, table, rids }
    }

    fn update(&self, row: usize, durability: Durability, committing: impl FnOnce()) {
        let options = TransactionOptions { durability, ..TransactionOptions::default() };
        let mut transaction = self.database.begin(options);
        assert!(transaction.update(&self.table, self.rids[row], &[(1, ValueRef::Int(row as i64))]).unwrap());
        committing();
        transaction.commit().unwrap();
    }

    /// Commits a second of so many threads in that time, and processor time of one in us; `row` is that of a thread.
    fn rate(&self, threads: usize, time: Duration, durability: Durability, row: impl Fn(usize) -> usize + Sync) -> (f64, f64) {
        let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
        let (start, cpu) = (OsClock.monotonic(), OsClock.process_cpu());
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (stop, commits, row) = (&stop, &commits, &row);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        self.update(row(thread), durability, || ());
                        commits.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            OsClock.sleep(time);
            stop.store(true, Ordering::Relaxed);
        });
        let commits = commits.load(Ordering::Relaxed) as f64;
        let (time, cpu) = (OsClock.monotonic() - start, OsClock.process_cpu() - cpu);
        (commits / time.as_secs_f64(), cpu.as_secs_f64() * 1e6 / commits)
    }
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

/// While one syncs, the others come and wait: then one of them syncs for all. A sync that takes long enough for everybody to come (here it lasts until they have) serves half of them on the average:
/// those who were served by the one before are on their way meanwhile.
#[test]
fn threads_that_commit_share_syncs() {
    const THREADS: i64 = 32;
    const COMMITS: i64 = 50;
    let (committing, at_work) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let storage = CountingStorage::new(memory());
    let everybody_came = {
        let (committing, at_work) = (Arc::clone(&committing), Arc::clone(&at_work));
        move || {
            while committing.load(Ordering::SeqCst) < at_work.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // A thread counts as come some steps before its record is in the log.
            OsClock.sleep(Duration::from_millis(1));
        }
    };
    let accounts = Accounts::new(Arc::new(SlowSync::new(Arc::new(storage.clone()), everybody_came)), Path::new("db"), 10_000);
    let before = storage.counts();
    at_work.store(THREADS, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (accounts, committing, at_work) = (&accounts, &committing, &at_work);
            scope.spawn(move || {
                for _ in 0..COMMITS {
                    accounts.update(thread as usize * 100, Durability::Durable, || _ = committing.fetch_add(1, Ordering::SeqCst));
                    committing.fetch_sub(1, Ordering::SeqCst);
                }
                at_work.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    let (commits, syncs) = ((THREADS * COMMITS) as u64, storage.counts().since(&before).syncs);
    println!("{commits} commits by {THREADS} threads: {syncs} syncs, {:.1} commits each", commits as f64 / syncs as f64);
    assert!(commits >= syncs * THREADS as u64 / 3, "{commits} commits took {syncs} syncs");
}

/// Threads that change one row: who runs does not wait for one who sleeps, so there are fewer waits than changes. Who is woken gets it, or was passed once.
#[test]
fn a_row_that_everybody_changes() {
    for threads in [10, 50, 200] {
        let accounts = Accounts::new(memory(), Path::new("db"), 1);
        let mut holder = accounts.database.begin(TransactionOptions::default());
        assert!(holder.update(&accounts.table, accounts.rids[0], &[(1, ValueRef::Int(0))]).unwrap());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..100).for_each(|_| accounts.update(0, Durability::Off, || ())));
            }
            while accounts.database.waiting_transactions() < threads {
                std::thread::yield_now();
            }
            holder.commit().unwrap();
        });
        let (commits, (waits, wake_ups)) = (threads as u64 * 100, accounts.database.lock_waits());
        println!("{commits} commits by {threads} threads: {waits} waits, {wake_ups} wake-ups");
        assert!((threads as u64..=commits / 4 * 3).contains(&waits) && (waits..=2 * waits).contains(&wake_ups));
    }
}

/// The numbers of a variable of the environment.
fn numbers(name: &str, default: &str) -> Vec<usize> {
    std::env::var(name).unwrap_or_else(|_| default.into()).split(',').map(|n| n.parse().unwrap()).collect()
}

#[test]
#[ignore = "measures: MS a run, THREADS, DURABILITY 0 to 2"]
fn rates_of_a_row_that_everybody_changes() {
    let time = Duration::from_millis(numbers("MS", "1000")[0] as u64);
    let durability = [Durability::Off, Durability::Relaxed, Durability::Durable][numbers("DURABILITY", "0")[0]];
    let accounts = Accounts::new(memory(), Path::new("db"), 1000);
    for threads in numbers("THREADS", "1,2,10,50,200") {
        let before = accounts.database.lock_waits();
        let (rate, cpu) = accounts.rate(threads, time, durability, |_| 500);
        let waits = accounts.database.lock_waits();
        println!("{threads} threads: {rate:.0} commits/s, {cpu:.1} us each, {} waits, {} wake-ups", waits.0 - before.0, waits.1 - before.1);
    }
}

#[test]
#[ignore = "measures: MS a run, THREADS, SYNC in us; without, this device"]
fn rates_of_durable_commits() {
    let time = Duration::from_millis(numbers("MS", "1000")[0] as u64);
    let folder = tempfile::tempdir().unwrap();
    let sync = std::env::var("SYNC").ok().map(|us| Duration::from_micros(us.parse().unwrap()));
    let (inner, path): (Arc<dyn Storage>, _) = match sync {
        Some(sync) => (Arc::new(SlowSync::new(memory(), move || OsClock.sleep(sync))), "db".into()),
        None => (Arc::new(OsStorage), folder.path().join("db")),
    };
    let storage = CountingStorage::new(inner);
    let accounts = Accounts::new(Arc::new(storage.clone()), &path, 10_000);
    for threads in numbers("THREADS", "1,8,32,64") {
        let before = storage.counts().syncs;
        let (rate, cpu) = accounts.rate(threads, time, Durability::Durable, |thread| thread * 100);
        let syncs = (storage.counts().syncs - before) as f64 / time.as_secs_f64();
        println!("{threads} threads: {rate:.0} commits/s, {cpu:.1} us each, {syncs:.0} syncs/s, {:.1} commits a sync", rate / syncs);
    }
}

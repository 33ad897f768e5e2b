//! Statistics that are kept fresh in the background of an open database: a thread gathers them again of tables of which a share of the rows has changed.
//!
//! Invariants:
//! - nothing depends on it: what it does is RUNSTATS of a sample, which anybody may run at any time; what fails is tried again later, ever more rarely;
//! - it disturbs nobody: of each object at most twice [`FreshOptions::pages_max`] pages are read, and of its time the thread works a small part;
//! - whoever ends it waits for a few pages at most;
//! - tables that nobody has used since the database was opened are not opened for it.

use super::{RunstatsOptions, Sample, is_stale_by, runstats};
use crate::{Error, Progress, Unit};
use pagefold_engine::database::Database;
use pagefold_io::{Clock, OsClock};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// A pause within a table: its snapshot keeps old versions of rows for as long.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// What failed is passed over for so many rounds at most.
const ROUNDS_MAX: u32 = 64;

/// When statistics are gathered again, and how gently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreshOptions {
    /// The share of a table's rows that must have changed.
    pub share: f64,
    /// So many rows must have changed in any case.
    pub rows_min: u64,
    /// Time between two looks at the counters.
    pub interval: Duration,
    /// Pages that are read of a table or index; of one with fewer than twice as many, all.
    pub pages_max: u64,
    /// The part of its time that the thread works.
    pub busy: f64,
}

impl Default for FreshOptions {
    /// 10 % of the rows and 1,000 at least, looked for once a minute; 400 pages, in a twentieth of the time.
    fn default() -> FreshOptions {
        FreshOptions { share: 0.1, rows_min: 1_000, interval: Duration::from_secs(60), pages_max: 400, busy: 0.05 }
    }
}

/// What the thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreshCounts {
    /// Looks at the counters of all tables.
    pub rounds: u64,
    /// Tables whose statistics were gathered again.
    pub gathered: u64,
    /// Tables of which that failed.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    stopped: Condvar,
    rounds: AtomicU64,
    gathered: AtomicU64,
    failed: AtomicU64,
}

impl Shared {
    /// Waits; true: it is to end.
    fn wait(&self, time: Duration) -> bool {
        let mut stop = self.stop.lock();
        if !*stop {
            self.stopped.wait_for(&mut stop, time);
        }
        *stop
    }
}

/// The thread. It ends when this is dropped, and holds the database only while it works.
#[derive(Debug)]
pub struct FreshStatistics {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FreshStatistics {
    /// Starts it. `None` when the system has no thread: statistics are as old as they are then.
    #[must_use]
    pub fn start(database: &Arc<Database>, options: FreshOptions) -> Option<FreshStatistics> {
        let shared = Arc::new(Shared::default());
        let (database, own) = (Arc::downgrade(database), Arc::clone(&shared));
        let run = move || keep_fresh(&database, options, &own);
        let thread = std::thread::Builder::new().name("pagefold-runstats".into()).spawn(run).ok()?;
        Some(FreshStatistics { shared, thread: Some(thread) })
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> FreshCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        FreshCounts { rounds: of(&self.shared.rounds), gathered: of(&self.shared.gathered), failed: of(&self.shared.failed) }
    }
}

impl Drop for FreshStatistics {
    fn drop(&mut self) {
        *self.shared.stop.lock() = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing that anybody waits for.
            let _ = thread.join();
        }
    }
}

/// Passed over for so many rounds, of how many the last time.
type Waiting = BTreeMap<String, (u32, u32)>;

fn keep_fresh(database: &Weak<Database>, options: FreshOptions, shared: &Shared) {
    let (mut waiting, mut seed) = (Waiting::new(), 0);
    while !shared.wait(options.interval) {
        let Some(database) = database.upgrade() else { return };
        seed += 1;
        round(&database, options, seed, shared, &mut waiting);
        shared.rounds.fetch_add(1, Ordering::Relaxed);
    }
}

fn round(database: &Database, options: FreshOptions, seed: u64, shared: &Shared, waiting: &mut Waiting) {
    let mut stale = Vec::new();
    for table in database.opened_tables() {
        if is_stale_by(&table, options.share, options.rows_min) {
            stale.push(table.name().to_owned());
        }
    }
    waiting.retain(|name, _| stale.contains(name));
    for name in stale {
        if let Some((rounds, _)) = waiting.get_mut(&name).filter(|(rounds, _)| *rounds > 0) {
            *rounds -= 1;
            continue;
        }
        let pace = Pace { busy: options.busy, shared, worked_from: Mutex::new(OsClock.monotonic()) };
        let sample = RunstatsOptions { sample: Sample::Pages(options.pages_max), seed, keep: true };
        match runstats(database, std::slice::from_ref(&name), &sample, &pace) {
            Ok(_) => {
                waiting.remove(&name);
                shared.gathered.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::Interrupted) => return,
            // Damage, a full disk, or it is another table now.
            Err(_) => {
                let last = waiting.get(&name).map_or(0, |(_, last)| *last);
                let next = (last * 2).clamp(1, ROUNDS_MAX);
                waiting.insert(name, (next, next));
                shared.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        if pace.interrupted() {
            return;
        }
    }
}

/// Works a part of the time: each look is followed by a pause as long as what came before it asks for.
struct Pace<'s> {
    busy: f64,
    shared: &'s Shared,
    worked_from: Mutex<Duration>,
}

impl Progress for Pace<'_> {
    fn start(&self, _phase: &str, _total: Option<u64>, _unit: Unit) {}

    fn advance(&self, _n: u64) {}

    fn finish(&self) {}

    fn interrupted(&self) -> bool {
        let mut from = self.worked_from.lock();
        let pause = OsClock.monotonic().saturating_sub(*from).mul_f64((1.0 / self.busy.clamp(0.01, 1.0)) - 1.0);
        let is_stopped = self.shared.wait(pause.min(PAUSE_MAX));
        *from = OsClock.monotonic();
        is_stopped
    }
}

//! Begin, commit, abort, and what checkpoints and purge need to know about all transactions.
//!
//! Invariants:
//! - Commits take place one after the other. A transaction's commit word is stored before the counter of commits is: a snapshot that read
//!   the new counter sees it, one that read the old counter never does, whatever the order of its later reads.
//! - Ids and timestamps ascend. Timestamps begin anew at each start: versions do not outlive the process.
//! - Lock order: the turn to commit, then whatever `at_commit` locks. Taking a snapshot never waits for a commit.

use super::pins::{Pin, PinTable, Pins};
use super::snapshot::{Age, Horizon, Snapshot, SnapshotTable};
use super::state::TransactionState;
use crate::hash::FastMap;
use crate::steps::step;
use pagefold_io::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SHARDS: u64 = 16;

#[derive(Debug, Default)]
#[repr(align(128))]
struct ActiveShard(Mutex<FastMap<u64, Arc<TransactionState>>>);

/// All transactions of a database.
#[derive(Debug)]
pub struct Transactions {
    clock: Arc<dyn Clock>,
    next_id: AtomicU64,
    /// The newest timestamp given to a commit, 0 before the first.
    last_commit: AtomicU64,
    commit_turn: Mutex<()>,
    snapshots: SnapshotTable,
    /// Of transactions that remember RIDs from one statement to the next.
    pins: PinTable,
    /// The last commit at the end of any statement of a transaction with a pin.
    last_end: AtomicU64,
    active: Box<[ActiveShard]>,
    /// Monotonic time at the last tick, in milliseconds: once a second, or whenever somebody looks. So a transaction that begins asks no clock.
    tick_ms: AtomicU64,
}

impl Transactions {
    /// No transaction yet; the first one gets `first_id` (or 1, since 0 means none).
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, first_id: u64) -> Transactions {
        Transactions {
            clock,
            next_id: AtomicU64::new(first_id.max(1)),
            last_commit: AtomicU64::new(0),
            commit_turn: Mutex::new(()),
            snapshots: SnapshotTable::new(),
            pins: PinTable::new(),
            last_end: AtomicU64::new(0),
            active: (0..SHARDS).map(|_| ActiveShard::default()).collect(),
            tick_ms: AtomicU64::new(0),
        }
    }

    /// A new transaction. It stays active until [`commit`](Self::commit), [`abort`](Self::abort) or [`end_read_only`](Self::end_read_only).
    #[must_use]
    pub fn begin(&self) -> Arc<TransactionState> {
        let begun_ms = self.tick_ms.load(Ordering::Relaxed);
        let state = Arc::new(TransactionState::new(self.next_id.fetch_add(1, Ordering::Relaxed), begun_ms));
        self.shard(&state).0.lock().insert(state.id(), Arc::clone(&state));
        state
    }

    /// The next transaction gets at least this id: what recovery found.
    pub(crate) fn continue_from(&self, id: u64) {
        self.next_id.fetch_max(id, Ordering::Relaxed);
    }

    /// The id that the next transaction will get: what a checkpoint keeps.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// The newest commit's timestamp, 0 before the first.
    #[must_use]
    pub fn last_commit(&self) -> u64 {
        self.last_commit.load(Ordering::Acquire)
    }

    /// A snapshot of what is committed now, and of the changes of transaction `own` (0 for none).
    #[must_use]
    pub fn snapshot(&self, own: u64) -> Snapshot {
        self.snapshots.take(own, &self.last_commit, || self.clock.monotonic())
    }

    /// Makes the changes visible to every snapshot taken from now on, and returns the commit's timestamp. Its log record is durable by
    /// now, where that was asked for. `at_commit` runs with the timestamp just before, in the order of commits; it must not commit or
    /// abort anything itself.
    ///
    /// # Panics
    /// When the transaction is not active.
    pub fn commit(&self, state: &TransactionState, at_commit: impl FnOnce(u64)) -> u64 {
        let turn = self.commit_turn.lock();
        assert!(state.is_active(), "transaction {} has ended already", state.id());
        let timestamp = self.last_commit.load(Ordering::Relaxed) + 1;
        at_commit(timestamp);
        state.publish(timestamp);
        self.last_commit.store(timestamp, Ordering::Release);
        drop(turn);
        self.remove(state);
        timestamp
    }

    /// Ends a transaction that has changed nothing, without a timestamp of its own.
    ///
    /// # Panics
    /// When the transaction is not active.
    pub fn end_read_only(&self, state: &TransactionState) {
        assert!(state.is_active(), "transaction {} has ended already", state.id());
        state.publish(self.last_commit().max(1));
        self.remove(state);
    }

    /// Ends a transaction whose changes have all been taken back.
    ///
    /// # Panics
    /// When the transaction is not active.
    pub fn abort(&self, state: &TransactionState) {
        assert!(state.is_active(), "transaction {} has ended already", state.id());
        state.publish_abort();
        self.remove(state);
    }

    /// Of a transaction that remembers RIDs from one statement to the next, when its first statement begins.
    pub(crate) fn pin(&self, state: &TransactionState) -> Pin {
        self.pins.take(state.id(), &self.last_commit)
    }

    /// A statement of a transaction with a pin has ended.
    #[inline]
    pub(crate) fn statement_ends(&self, pin: &Pin) {
        let last_commit = self.last_commit();
        // All threads share it: it is written only where it changes.
        if self.last_end() < last_commit {
            self.last_end.fetch_max(last_commit, Ordering::Relaxed);
        }
        pin.statement_ends(last_commit);
    }

    /// The last commit at the end of any statement of a transaction with a pin.
    pub(crate) fn last_end(&self) -> u64 {
        self.last_end.load(Ordering::Relaxed)
    }

    /// All pins.
    pub(crate) fn pins(&self) -> Pins {
        self.pins.all(&self.last_commit)
    }

    /// All pins as they were a while ago.
    pub(crate) fn recent_pins(&self) -> Arc<Pins> {
        self.pins.recent(&self.last_commit)
    }

    /// The timestamp at or before which all commits are seen by every snapshot, now and later.
    #[must_use]
    pub fn oldest_snapshot(&self) -> u64 {
        self.snapshots.oldest(&self.last_commit)
    }

    /// All snapshots in use, for those who drop versions that lie between them.
    #[must_use]
    pub fn horizon(&self) -> Horizon {
        self.snapshots.horizon(&self.last_commit)
    }

    /// A horizon for those who can do with one that is a little out of date: it allows to drop less.
    #[must_use]
    pub fn recent_horizon(&self) -> Arc<Horizon> {
        self.snapshots.recent_horizon(&self.last_commit)
    }

    /// The transactions that have not ended. For a checkpoint: those that begin to log while the list is made may be missing, their first
    /// record then lies behind the position at which the checkpoint began.
    #[must_use]
    pub fn active(&self) -> Vec<Arc<TransactionState>> {
        let mut all: Vec<_> = self.active.iter().flat_map(|shard| shard.0.lock().values().cloned().collect::<Vec<_>>()).collect();
        all.sort_unstable_by_key(|state| state.id());
        all
    }

    /// The clock by which transactions note when they begin goes on.
    pub(crate) fn tick(&self) {
        self.tick_ms.store(self.clock.monotonic().as_millis() as u64, Ordering::Relaxed);
    }

    /// How long a transaction has been running, to the time between two ticks.
    pub(crate) fn age(&self, state: &TransactionState) -> Duration {
        let now = self.clock.monotonic().as_millis() as u64;
        Duration::from_millis(now.saturating_sub(state.begun_ms()))
    }

    /// How long ago the oldest snapshot was taken, and how many commits there were since; `None` when there is none.
    pub(crate) fn oldest_snapshot_age(&self) -> Option<(Duration, u64)> {
        self.snapshot_age().map(|age| (age.time, age.commits))
    }

    /// Monotonic time.
    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// How far the oldest snapshot is behind; `None` when there is none.
    pub(super) fn snapshot_age(&self) -> Option<Age> {
        self.snapshots.age(&self.last_commit, self.clock.monotonic())
    }

    fn shard(&self, state: &TransactionState) -> &ActiveShard {
        &self.active[(state.id() % SHARDS) as usize]
    }

    fn remove(&self, state: &TransactionState) {
        step();
        self.shard(state).0.lock().remove(&state.id());
    }
}

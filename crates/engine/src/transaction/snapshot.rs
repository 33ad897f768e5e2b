//! Snapshots, and the table of those that are in use.
//!
//! Invariants:
//! - A shard's timestamps ascend: a snapshot reads the counter while it holds the shard, and the counter never goes back.
//! - A [`Horizon`] that is out of date allows less to be dropped, never more: snapshots that have ended are still in it, and those taken since are at its last commit or above.
//! - [`SnapshotTable::horizon`] reads the counter before it visits the shards. So a snapshot that it misses was registered after the
//!   visit to its shard and has a timestamp at or above that counter value.

use super::state::TransactionState;
use crate::steps::stepping;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const SHARDS: usize = 16;

/// One state of the database: the changes of all transactions committed at or before a timestamp, and of one transaction of its own.
///
/// While it lives, no version that it needs is dropped.
#[derive(Debug)]
pub struct Snapshot {
    timestamp: u64,
    own: u64,
    shard: Arc<Shard>,
}

impl Snapshot {
    /// Commits at or before it are seen.
    #[must_use]
    pub fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The transaction whose own changes are seen, 0 for none.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.own
    }

    /// Whether changes of this transaction are part of the snapshot. The answer for one snapshot and one transaction never changes while
    /// that transaction is not the snapshot's own and not rolled back.
    #[must_use]
    #[inline]
    pub fn sees(&self, state: &TransactionState) -> bool {
        state.committed_by(self.timestamp) || state.id() == self.own
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shard.remove(self.timestamp);
    }
}

/// Which snapshots there are, as of one moment, and what that allows to drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// Ascending, distinct.
    in_use: Vec<u64>,
    last_commit: u64,
}

impl Horizon {
    /// Commits at or before it are seen by every snapshot, now and later.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.in_use.first().map_or(self.last_commit, |&first| first.min(self.last_commit))
    }

    /// The newest snapshot in use that does not see the commit at `commit`.
    #[must_use]
    pub fn newest_before(&self, commit: u64) -> Option<u64> {
        self.in_use.get(self.in_use.partition_point(|&timestamp| timestamp < commit).checked_sub(1)?).copied()
    }

    /// The oldest snapshot in use, if it does not see the commit at `commit`.
    #[must_use]
    pub fn oldest_before(&self, commit: u64) -> Option<u64> {
        self.in_use.first().copied().filter(|&timestamp| timestamp < commit)
    }

    /// Whether there is a snapshot of this timestamp.
    #[must_use]
    pub fn has(&self, timestamp: u64) -> bool {
        self.in_use.binary_search(&timestamp).is_ok()
    }

    /// Whether some snapshot, now or later, sees the commit at `from` but not the one at `until`.
    #[must_use]
    pub fn separates(&self, from: u64, until: u64) -> bool {
        // Later snapshots are at `last_commit` or above.
        let first = self.in_use.partition_point(|&timestamp| timestamp < from);
        until > self.last_commit || self.in_use.get(first).is_some_and(|&timestamp| timestamp < until)
    }
}

/// How far the oldest snapshot in use is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Age {
    /// Since it was taken.
    pub(super) time: Duration,
    /// Commits since.
    pub(super) commits: u64,
}

#[derive(Debug, Clone, Copy)]
struct InUse {
    timestamp: u64,
    snapshots: u32,
    /// Monotonic time at which the first of them was taken.
    since: Duration,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<VecDeque<InUse>>);

impl Shard {
    fn remove(&self, timestamp: u64) {
        let mut in_use = self.0.lock();
        let found = in_use.binary_search_by_key(&timestamp, |group| group.timestamp);
        let Ok(at) = found else {
            debug_assert!(false, "snapshot {timestamp} is not registered");
            return;
        };
        in_use[at].snapshots -= 1;
        if in_use[at].snapshots == 0 {
            in_use.remove(at);
        }
    }
}

/// The snapshots in use, sharded by thread.
#[derive(Debug)]
pub(super) struct SnapshotTable {
    shards: [Arc<Shard>; SHARDS],
    recent: Mutex<Arc<Horizon>>,
}

/// A recent horizon is renewed after one commit for so many of its snapshots: so each commit pays for a few.
const SNAPSHOTS_PER_COMMIT: usize = 16;

impl SnapshotTable {
    pub(super) fn new() -> SnapshotTable {
        SnapshotTable { shards: std::array::from_fn(|_| Arc::default()), recent: Mutex::default() }
    }

    /// A snapshot at the present value of `last_commit`.
    pub(super) fn take(&self, own: u64, last_commit: &AtomicU64, now: impl FnOnce() -> Duration) -> Snapshot {
        let shard = &self.shards[shard_of_thread()];
        let mut in_use = shard.0.lock();
        let timestamp = last_commit.load(Ordering::Acquire);
        match in_use.back_mut() {
            Some(newest) if newest.timestamp == timestamp => newest.snapshots += 1,
            _ => in_use.push_back(InUse { timestamp, snapshots: 1, since: now() }),
        }
        drop(in_use);
        Snapshot { timestamp, own, shard: Arc::clone(shard) }
    }

    pub(super) fn oldest(&self, last_commit: &AtomicU64) -> u64 {
        let mut oldest = last_commit.load(Ordering::Acquire);
        for shard in &self.shards {
            if let Some(first) = shard.0.lock().front() {
                oldest = oldest.min(first.timestamp);
            }
        }
        oldest
    }

    pub(super) fn horizon(&self, last_commit: &AtomicU64) -> Horizon {
        let last_commit = last_commit.load(Ordering::Acquire);
        let mut in_use = Vec::new();
        for shard in &self.shards {
            in_use.extend(shard.0.lock().iter().map(stepping).map(|group| group.timestamp));
        }
        in_use.sort_unstable();
        in_use.dedup();
        Horizon { in_use, last_commit }
    }

    /// A horizon that may be out of date, unless there are few snapshots: what it costs a commit does not grow with their number.
    pub(super) fn recent_horizon(&self, last_commit: &AtomicU64) -> Arc<Horizon> {
        let mut recent = self.recent.lock();
        let commits = last_commit.load(Ordering::Acquire).saturating_sub(recent.last_commit);
        if commits >= (recent.in_use.len() / SNAPSHOTS_PER_COMMIT) as u64 {
            *recent = Arc::new(self.horizon(last_commit));
        }
        Arc::clone(&recent)
    }

    /// Of the oldest snapshot; `None` when there is none.
    pub(super) fn age(&self, last_commit: &AtomicU64, now: Duration) -> Option<Age> {
        let first = self.shards.iter().filter_map(|shard| shard.0.lock().front().copied()).min_by_key(|first| first.timestamp)?;
        let commits = last_commit.load(Ordering::Acquire).saturating_sub(first.timestamp);
        Some(Age { time: now.saturating_sub(first.since), commits })
    }
}

fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    SHARD.with(Cell::get)
}

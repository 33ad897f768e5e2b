//! Pins of transactions that remember RIDs from one statement to the next (READ COMMITTED): while one
//! lives, the slot of a row that its transaction may have seen comes to hold no other row.
//!
//! It may have seen what was there at some moment from its first statement to the end of its latest one.
//! So an idle transaction keeps slots of rows that were there then, and none of those that come later.
//!
//! Invariants:
//! - while a statement runs its pin says that it may see everything. It says so before the statement
//!   looks at anything, so whoever reads the pins after a row's deletion was committed, and finds an
//!   earlier end there, knows that the statement does not see the row;
//! - [`Pins`] that are out of date keep more slots than needed, never fewer.

use crate::hash::FastMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const SHARDS: usize = 16;
/// A statement runs.
const EVERYTHING: u64 = u64::MAX;
/// Pins at hand are renewed after one commit for so many of them: so each commit pays for a few.
const PINS_PER_COMMIT: usize = 16;

#[derive(Debug)]
struct Remembered {
    /// The last commit when the first statement began.
    since: u64,
    /// The last commit when the latest statement ended.
    seen: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<FastMap<u64, Arc<Remembered>>>);

/// The pin of a transaction.
#[derive(Debug)]
pub(crate) struct Pin {
    transaction: u64,
    remembered: Arc<Remembered>,
    shard: Arc<Shard>,
}

impl Pin {
    /// A statement is about to look at rows. The fence stands against that of [`PinTable::all`].
    #[inline]
    pub(crate) fn statement_begins(&self) {
        self.remembered.seen.store(EVERYTHING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The statement has ended; `last_commit` was read after its last look.
    #[inline]
    pub(crate) fn statement_ends(&self, last_commit: u64) {
        self.remembered.seen.store(last_commit, Ordering::Release);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.shard.0.lock().remove(&self.transaction);
    }
}

/// All pins, as they were at one time.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Since when, ascending, and the most that this one or any before it has seen.
    in_use: Vec<(u64, u64)>,
    /// What idle ones have seen, ascending.
    idle: Vec<u64>,
    last_commit: u64,
}

impl Pins {
    /// Rows that were deleted at or before this are remembered by nobody.
    pub(crate) fn oldest(&self) -> u64 {
        self.in_use.first().map_or(self.last_commit, |first| first.0.min(self.last_commit))
    }

    /// The newest one that is older than a commit.
    pub(crate) fn newest_before(&self, commit: u64) -> Option<u64> {
        self.in_use.get(self.in_use.partition_point(|pin| pin.0 < commit).checked_sub(1)?).map(|pin| pin.0)
    }

    /// Whether there is one of this timestamp.
    pub(crate) fn has(&self, since: u64) -> bool {
        self.in_use.binary_search_by_key(&since, |pin| pin.0).is_ok()
    }

    /// Whether some transaction may remember a row that came after the commit at `born` and was deleted by that at `died`.
    pub(crate) fn may_remember(&self, born: u64, died: u64) -> bool {
        let older = self.in_use.partition_point(|pin| pin.0 < died);
        died > self.last_commit || older.checked_sub(1).is_some_and(|newest| self.in_use[newest].1 > born)
    }

    /// Whether an idle one has seen something after `from`, up to `until`.
    pub(super) fn is_idle_between(&self, from: u64, until: u64) -> bool {
        let first = self.idle.partition_point(|seen| *seen <= from);
        self.idle.get(first).is_some_and(|seen| *seen <= until)
    }
}

/// All pins, sharded by transaction.
#[derive(Debug)]
pub(super) struct PinTable {
    shards: [Arc<Shard>; SHARDS],
    recent: Mutex<Arc<Pins>>,
}

impl PinTable {
    pub(super) fn new() -> PinTable {
        PinTable { shards: std::array::from_fn(|_| Arc::default()), recent: Mutex::default() }
    }

    /// The pin of a transaction whose first statement begins.
    pub(super) fn take(&self, transaction: u64, last_commit: &AtomicU64) -> Pin {
        let shard = &self.shards[transaction as usize % SHARDS];
        let mut in_use = shard.0.lock();
        let since = last_commit.load(Ordering::Acquire);
        let remembered = Arc::new(Remembered { since, seen: AtomicU64::new(EVERYTHING) });
        in_use.insert(transaction, Arc::clone(&remembered));
        drop(in_use);
        Pin { transaction, remembered, shard: Arc::clone(shard) }
    }

    /// All of them.
    pub(super) fn all(&self, last_commit: &AtomicU64) -> Pins {
        let last_commit = last_commit.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let mut in_use = Vec::new();
        for shard in &self.shards {
            in_use.extend(shard.0.lock().values().map(|pin| (pin.since, pin.seen.load(Ordering::Acquire))));
        }
        in_use.sort_unstable();
        let mut idle: Vec<u64> = in_use.iter().map(|pin| pin.1).filter(|seen| *seen != EVERYTHING).collect();
        idle.sort_unstable();
        let mut most = 0;
        for pin in &mut in_use {
            most = most.max(pin.1);
            pin.1 = most;
        }
        Pins { in_use, idle, last_commit }
    }

    /// All of them as they were a while ago, unless they are few: what it costs a commit does not grow with their number.
    pub(super) fn recent(&self, last_commit: &AtomicU64) -> Arc<Pins> {
        let mut recent = self.recent.lock();
        let commits = last_commit.load(Ordering::Acquire).saturating_sub(recent.last_commit);
        if commits >= (recent.in_use.len() / PINS_PER_COMMIT) as u64 {
            *recent = Arc::new(self.all(last_commit));
        }
        Arc::clone(&recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_pin_keeps_what_was_there_while_it_looked() {
        let (table, last_commit) = (PinTable::new(), AtomicU64::new(10));
        let pin = table.take(1, &last_commit);
        last_commit.store(15, Ordering::Release);
        assert!(table.all(&last_commit).may_remember(12, 14), "a statement runs");
        pin.statement_ends(15);
        last_commit.store(30, Ordering::Release);
        let pins = table.all(&last_commit);
        assert!(pins.may_remember(0, 11) && pins.may_remember(14, 30) && pins.may_remember(0, 30));
        assert!(!pins.may_remember(0, 10), "deleted before");
        assert!(!pins.may_remember(15, 30) && !pins.may_remember(20, 21), "came after");
        assert!(pins.may_remember(20, 31), "not known yet");
        assert!(pins.is_idle_between(14, 15) && !pins.is_idle_between(15, 30) && !pins.is_idle_between(0, 14));
        let other = table.take(2, &last_commit);
        other.statement_ends(30);
        last_commit.store(50, Ordering::Release);
        let pins = table.all(&last_commit);
        assert_eq!((pins.oldest(), pins.newest_before(50), pins.newest_before(20)), (10, Some(30), Some(10)));
        assert!(!pins.may_remember(20, 25) && pins.may_remember(20, 40) && !pins.may_remember(30, 40));
        other.statement_begins();
        assert!(table.all(&last_commit).may_remember(45, 50));
        drop((pin, other));
        assert!(!table.all(&last_commit).may_remember(0, 50));
    }
}

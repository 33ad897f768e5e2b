//! Who changes rows of a table: so that it can be told whether the rows that its headers count are those that a snapshot sees.
//!
//! Headers count what is on the pages now, with what has not been committed. So their count is that of a snapshot when all who have ever begun
//! to change rows have ended, are seen by the snapshot, and nobody begins while the headers are read.
//!
//! Invariants:
//! - a transaction is entered before it changes the first row, and taken out after its commit has its timestamp, or after all that it did has
//!   been taken back; one whose rollback has failed stays;
//! - headers between which counts move that belong to the same rows change while [`BufferManager::moving_counts`] is held.
//!
//! [`BufferManager::moving_counts`]: crate::pool::BufferManager::moving_counts

use crate::transaction::Snapshot;
use parking_lot::Mutex;

/// The writers of a table.
#[derive(Debug, Default)]
pub(crate) struct Writers(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By transaction, those that have not ended.
    active: Vec<u64>,
    /// How many have ever begun.
    began: u64,
    /// When the newest one was committed.
    newest_commit: u64,
}

impl Writers {
    /// A transaction that is not entered is going to change rows.
    pub(crate) fn begins(&self, transaction: u64) {
        let mut inner = self.0.lock();
        debug_assert!(!inner.active.contains(&transaction));
        inner.active.push(transaction);
        inner.began += 1;
    }

    /// It was committed at this moment, or (`None`) everything was taken back.
    pub(crate) fn ended(&self, transaction: u64, commit: Option<u64>) {
        let mut inner = self.0.lock();
        inner.active.retain(|active| *active != transaction);
        inner.newest_commit = inner.newest_commit.max(commit.unwrap_or(0));
    }

    /// What the snapshot sees of the rows is what is there: then how many had begun, for [`are_as_then`](Self::are_as_then).
    pub(crate) fn all_seen_by(&self, snapshot: &Snapshot) -> Option<u64> {
        let inner = self.0.lock();
        let seen = inner.newest_commit <= snapshot.timestamp() && inner.active.iter().all(|active| *active == snapshot.own());
        seen.then_some(inner.began)
    }

    /// Nobody has begun since.
    pub(crate) fn are_as_then(&self, began: u64) -> bool {
        self.0.lock().began == began
    }
}

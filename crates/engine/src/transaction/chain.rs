//! The versions of one row.
//!
//! Invariants:
//! - Entries are in the order of the changes. Since a row's lock is held until its transaction ends, commit timestamps ascend along the
//!   chain and only the newest entry can be of a transaction that has not ended. So for one snapshot the entries that it sees come first.
//! - Several changes of one row by one transaction are one entry with a count. Nobody ever sees a state between them: the transaction
//!   itself sees the page, everybody else the state before the first. The count makes taking back, in reverse order, exact.
//! - An entry between two neighbours may be dropped when no snapshot separates its commit from the older one's: of several commits that
//!   every snapshot either sees or does not see together, the oldest entry stays. It holds the state before all of them, and is what a
//!   reader that sees none of them depends on (the writer of the next version). An entry of a transaction with read views stays, and so
//!   does the one behind it: these views see it and are older than its commit.
//!   Steam (Böttcher, Leis, Neumann, Kemper 2019) prunes chains in this way.

use super::snapshot::{Horizon, Snapshot};
use super::state::TransactionState;
use std::sync::Arc;

/// What a row was before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// There was no such row.
    Absent,
    /// It was there, with this stored body.
    Present(Arc<[u8]>),
    /// It was there, with the bytes that its page still has under the mark of deletion.
    NotDeleted,
}

/// What a snapshot sees of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// What the page has (a row marked deleted is none).
    Current,
    /// No row.
    Absent,
    /// This stored body.
    Present(Arc<[u8]>),
    /// What the page has, the mark of deletion disregarded.
    NotDeleted,
}

impl Before {
    fn seen(&self) -> Seen {
        match self {
            Before::Absent => Seen::Absent,
            Before::Present(body) => Seen::Present(Arc::clone(body)),
            Before::NotDeleted => Seen::NotDeleted,
        }
    }

    /// Memory held beside the entry itself: the body and its two reference counts.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Before::Present(body) => body.len() + 16,
            Before::Absent | Before::NotDeleted => 0,
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) by: Arc<TransactionState>,
    pub(super) before: Before,
    pub(super) changes: u32,
}

/// Never empty, except while its owner removes it.
#[derive(Debug)]
pub(super) enum Chain {
    One(Entry),
    /// Oldest first.
    Many(Vec<Entry>),
}

/// From here on a binary search pays.
const LINEAR: usize = 8;

impl Chain {
    pub(super) fn new(by: &Arc<TransactionState>, before: Before) -> Chain {
        Chain::One(Entry { by: Arc::clone(by), before, changes: 1 })
    }

    /// A chain of these, oldest first; `None` of none.
    pub(super) fn of(mut entries: Vec<Entry>) -> Option<Chain> {
        if entries.len() > 1 { Some(Chain::Many(entries)) } else { entries.pop().map(Chain::One) }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        match self {
            Chain::One(entry) => std::slice::from_ref(entry),
            Chain::Many(entries) => entries,
        }
    }

    /// Of the entries, without what they hold.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Chain::One(_) => 0,
            Chain::Many(entries) => entries.capacity() * size_of::<Entry>(),
        }
    }

    pub(super) fn newest_body_bytes(&self) -> usize {
        self.entries().last().map_or(0, |entry| entry.before.heap_bytes())
    }

    /// With the bodies of all entries.
    pub(super) fn bytes(&self) -> usize {
        self.heap_bytes() + self.entries().iter().map(|entry| entry.before.heap_bytes()).sum::<usize>()
    }

    pub(super) fn newest_by(&self) -> Option<&Arc<TransactionState>> {
        self.entries().last().map(|entry| &entry.by)
    }

    /// The bodies before all changes.
    pub(super) fn bodies(&self) -> Vec<Arc<[u8]>> {
        let bodies = self.entries().iter().filter_map(|entry| match &entry.before {
            Before::Present(body) => Some(Arc::clone(body)),
            Before::Absent | Before::NotDeleted => None,
        });
        bodies.collect()
    }

    /// Who inserted the row, when the chain begins with that.
    pub(super) fn inserted_by(&self) -> Option<&Arc<TransactionState>> {
        self.entries().first().filter(|entry| entry.before == Before::Absent).map(|entry| &entry.by)
    }

    /// Bytes of bodies held by a transaction that has not ended.
    pub(super) fn uncommitted_bytes(&self) -> usize {
        self.entries().last().filter(|entry| entry.by.is_active()).map_or(0, |entry| size_of::<Entry>() + entry.before.heap_bytes())
    }

    /// What the snapshot sees. `unseen` gets the writer of the first version that it does not see.
    pub(super) fn look(&self, snapshot: &Snapshot, unseen: impl FnOnce(&Arc<TransactionState>)) -> Seen {
        let entries = self.entries();
        let mut end = entries.len();
        let linear_from = end.saturating_sub(LINEAR);
        while end > linear_from && !snapshot.sees(&entries[end - 1].by) {
            end -= 1;
        }
        if end == linear_from {
            end = entries[..end].partition_point(|entry| snapshot.sees(&entry.by));
        }
        entries.get(end).map_or(Seen::Current, |first_unseen| {
            unseen(&first_unseen.by);
            first_unseen.before.seen()
        })
    }

    /// Whether it was made one more change of the newest entry.
    pub(super) fn push(&mut self, by: &Arc<TransactionState>, before: Before) -> bool {
        if let Some(newest) = self.newest_mut() {
            if newest.by.id() == by.id() {
                newest.changes += 1;
                // The page no longer has what the first change left there.
                if newest.before == Before::NotDeleted && matches!(before, Before::Present(_)) {
                    newest.before = before;
                }
                return true;
            }
            debug_assert!(!newest.by.is_active(), "two transactions change a row at once");
            debug_assert!(newest.before != Before::NotDeleted, "a deleted row is overwritten while snapshots may need it");
        }
        let entry = Entry { by: Arc::clone(by), before, changes: 1 };
        match self {
            Chain::Many(entries) => entries.push(entry),
            Chain::One(_) => {
                let one = std::mem::replace(self, Chain::Many(Vec::with_capacity(4)));
                if let (Chain::Many(entries), Chain::One(first)) = (self, one) {
                    entries.extend([first, entry]);
                }
            }
        }
        false
    }

    /// Undoes one push of `by`; `None` when the newest entry is not of that transaction. `Some(true)` when nothing is left.
    pub(super) fn take_back(&mut self, by: u64) -> Option<bool> {
        let newest = self.newest_mut().filter(|newest| newest.by.id() == by)?;
        newest.changes -= 1;
        if newest.changes > 0 {
            return Some(false);
        }
        match self {
            Chain::One(_) => *self = Chain::Many(Vec::new()),
            Chain::Many(entries) => drop(entries.pop()),
        }
        Some(self.entries().is_empty())
    }

    /// Drops what every snapshot sees. `true` when nothing is left.
    pub(super) fn forget(&mut self, oldest: u64) -> bool {
        let seen_by_all = self.entries().iter().rposition(|entry| entry.by.committed_by(oldest)).map_or(0, |newest| newest + 1);
        if seen_by_all > 0 {
            match self {
                Chain::One(_) => *self = Chain::Many(Vec::new()),
                Chain::Many(entries) => drop(entries.drain(..seen_by_all)),
            }
        }
        self.entries().is_empty()
    }

    /// Drops what no snapshot needs: [`forget`](Self::forget), and what lies between snapshots. `true` when nothing is left.
    pub(super) fn prune(&mut self, horizon: &Horizon) -> bool {
        if self.forget(horizon.oldest()) {
            return true;
        }
        if let Chain::Many(entries) = self {
            let mut older_commit = None;
            entries.retain(|entry| {
                // Its views see it, whatever they see of what was committed just before and after.
                let commit = entry.by.commit_timestamp().filter(|_| !entry.by.has_views());
                let needless = matches!((older_commit, commit), (Some(older), Some(commit)) if !horizon.separates(older, commit));
                older_commit = commit;
                !needless
            });
            if entries.len() * 4 < entries.capacity() {
                entries.shrink_to(4.max(entries.len()));
            }
        }
        false
    }

    fn newest_mut(&mut self) -> Option<&mut Entry> {
        match self {
            Chain::One(entry) => Some(entry),
            Chain::Many(entries) => entries.last_mut(),
        }
    }
}

//! What an open database does at this moment, as values: what [`metrics`](super::metrics) puts into text, and SQL into tables.
//!
//! Invariants:
//! - nothing is counted for this: what is there anyway is read, while everything goes on. What belongs together may have been read at two moments;
//! - lists are bounded, whatever there is.

use super::open::DatabaseState;
use crate::CounterValues;
use crate::core::RunningUtility;
use crate::transaction::{LockHeld, LockWait, Mode, Resource, TransactionState};
use pagefold_types::Rid;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A buffer pool.
#[derive(Clone, Debug)]
pub struct PoolActivity {
    /// Its name.
    pub name: String,
    /// Bytes of a page in memory.
    pub frame_bytes: u64,
    /// Bytes that it may take.
    pub limit_bytes: u64,
    /// Bytes that it has taken.
    pub used_bytes: u64,
    /// Of the objects in it, since the database was opened.
    pub counters: CounterValues,
}

/// A table or an index that was used.
#[derive(Clone, Debug)]
pub struct ObjectActivity {
    /// Its name.
    pub name: String,
    /// It is an index.
    pub is_index: bool,
    /// Since the database was opened.
    pub counters: CounterValues,
}

/// A transaction that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct TransactionActivity {
    /// Its number.
    pub id: u64,
    /// Since it began, right to a second.
    pub age: Duration,
    /// Rows, keys and tables that it has locked.
    pub locks: u64,
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// This row of a table.
    Row(Rid),
    /// A key of an index.
    Key,
    /// A key of a table, for those that refer to it.
    Reference,
}

/// A lock that a transaction has, or waits for.
#[derive(Clone, Debug)]
pub struct LockActivity {
    /// The transaction.
    pub transaction: u64,
    /// What it is about.
    pub kind: LockKind,
    /// The table or index, if it has a name that others know.
    pub object: Option<String>,
    /// How it is locked, or to be.
    pub mode: Mode,
    /// Of a wait: one of those that are waited for.
    pub waits_for: Option<u64>,
}

/// The log, and what transactions leave in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogActivity {
    /// Position of the end of the log.
    pub end_bytes: u64,
    /// Log that a crash would have to be redone.
    pub since_checkpoint_bytes: u64,
    /// When there is so much, a checkpoint is written.
    pub checkpoint_bytes: u64,
    /// Since the database was opened.
    pub checkpoints: u64,
    /// Commits that changed something.
    pub commits: u64,
    /// Memory of old versions of rows.
    pub version_bytes: u64,
    /// Bytes of the file for those that find no room in memory.
    pub version_file_bytes: u64,
    /// Since the oldest snapshot in use was taken; 0 without one.
    pub oldest_snapshot_age: Duration,
    /// Commits since then.
    pub oldest_snapshot_commits: u64,
    /// Files of tables and indexes that are open.
    pub open_files: u64,
}

/// A utility that runs.
#[derive(Clone, Debug)]
pub struct UtilityActivity {
    /// Such as `reorg orders`.
    pub name: String,
    /// What it is at.
    pub phase: String,
    /// Of what `done` and `total` are numbers.
    pub unit: &'static str,
    /// What of the phase is done.
    pub done: u64,
    /// What the phase has to do, if that is known.
    pub total: Option<u64>,
    /// Since it began.
    pub elapsed: Duration,
}

impl DatabaseState {
    /// Bytes of the filters that tell which keys an index does not have; at most a quarter of what buffer pools may take.
    #[must_use]
    pub fn key_filter_bytes(&self) -> usize {
        self.core.manager.filter_memory().taken()
    }

    /// The buffer pools, by name.
    #[must_use]
    pub fn pool_activity(&self) -> Vec<PoolActivity> {
        let manager = &self.core.manager;
        let mut pools = manager.pools();
        pools.sort_by(|a, b| a.name().cmp(b.name()));
        let mut activity = Vec::with_capacity(pools.len());
        for pool in &pools {
            activity.push(PoolActivity {
                name: pool.name().to_owned(),
                frame_bytes: pool.frame_bytes() as u64,
                limit_bytes: pool.limit_bytes() as u64,
                used_bytes: pool.used_bytes() as u64,
                counters: manager.pool_counters(pool),
            });
        }
        activity
    }

    /// The tables and indexes that somebody has used since the database was opened.
    #[must_use]
    pub fn object_activity(&self) -> Vec<ObjectActivity> {
        let objects = self.objects.read();
        let mut used = Vec::new();
        for table in objects.tables.opened() {
            let mut counters = CounterValues::default();
            table.data_sets().for_each(|data_set| counters += data_set.counters());
            used.push(ObjectActivity { name: table.name().to_owned(), is_index: false, counters });
        }
        used.extend(objects.indexes.opened().map(|index| ObjectActivity {
            name: index.name().to_owned(),
            is_index: true,
            counters: index.data_set().counters(),
        }));
        used.retain(|object| object.counters.getpages > 0);
        used
    }

    /// The transactions that have not ended, the oldest first.
    #[must_use]
    pub fn transaction_activity(&self) -> Vec<TransactionActivity> {
        let transactions = &self.core.transactions;
        transactions.tick();
        // The oldest have the lowest numbers.
        let activity = |state: &Arc<TransactionState>| TransactionActivity {
            id: state.id(),
            age: transactions.age(state),
            locks: self.core.locks.held(state.id()) as u64,
        };
        transactions.active().iter().map(activity).collect()
    }

    /// Locks that transactions have, so many at most, by transaction. They are looked at one after the other: some may have been given up by now.
    #[must_use]
    pub fn lock_activity(&self, most: usize) -> Vec<LockActivity> {
        let held = self.core.locks.held_now(most).into_iter();
        held.filter_map(|LockHeld { transaction, resource, mode }| self.lock_of(transaction, resource, mode, None)).collect()
    }

    /// Locks that transactions wait for, so many at most.
    #[must_use]
    pub fn wait_activity(&self, most: usize) -> Vec<LockActivity> {
        let waits = self.core.locks.waits_now(most).into_iter();
        waits.filter_map(|LockWait { waiter, resource, mode, holder }| self.lock_of(waiter, resource, mode, Some(holder))).collect()
    }

    fn lock_of(&self, transaction: u64, resource: Resource, mode: Mode, waits_for: Option<u64>) -> Option<LockActivity> {
        let (object, is_index) = self.locked_object(resource)?;
        let kind = match resource {
            Resource::Row(_, rid) => LockKind::Row(rid),
            Resource::Key(..) => LockKind::Key,
            Resource::Reference(..) => LockKind::Reference,
            _ if is_index => LockKind::Index,
            _ => LockKind::Table,
        };
        Some(LockActivity { transaction, kind, object, mode, waits_for })
    }

    /// The table or index that a resource is of, with its name, if it has one, and whether it is an index.
    pub(super) fn locked_object(&self, resource: Resource) -> Option<(Option<String>, bool)> {
        let object = resource.object()?;
        let objects = self.objects.read();
        if let Some(table) = objects.tables.by_id(object) {
            return Some((Some(table.name.to_string()), false));
        }
        let index = objects.indexes.by_id(object).map(|place| place.name.to_string());
        let is_index = index.is_some();
        Some((index, is_index))
    }

    /// The log, and what transactions leave in memory.
    #[must_use]
    pub fn log_activity(&self) -> LogActivity {
        let core = &self.core;
        let (oldest_snapshot_age, oldest_snapshot_commits) = core.transactions.oldest_snapshot_age().unwrap_or_default();
        LogActivity {
            end_bytes: core.log().map_or(0, |log| log.end()),
            since_checkpoint_bytes: self.log_bytes_since_checkpoint(),
            checkpoint_bytes: core.checkpoint_bytes,
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
            commits: core.transactions.last_commit(),
            version_bytes: core.versions.bytes(),
            version_file_bytes: core.versions.file_bytes(),
            oldest_snapshot_age,
            oldest_snapshot_commits,
            open_files: core.files.count() as u64,
        }
    }

    /// The utilities that run, the first ones of very many.
    #[must_use]
    pub fn utility_activity(&self) -> Vec<UtilityActivity> {
        let now = self.core.manager.clock().monotonic();
        let activity = |running: RunningUtility| UtilityActivity {
            name: running.name,
            phase: running.phase.name,
            unit: running.phase.unit,
            done: running.done,
            total: running.phase.total,
            elapsed: now.saturating_sub(running.begun),
        };
        self.core.running.now().into_iter().map(activity).collect()
    }
}

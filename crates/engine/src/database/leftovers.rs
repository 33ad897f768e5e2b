//! What committed transactions leave for older snapshots, and its removal: ghosts of deleted rows, index entries of rows and keys that are no more, large values.
//!
//! Invariants:
//! - something left is entered here before the record that leaves it is in the log, and goes out of here when it is gone from the pages: so a checkpoint knows all of it;
//! - removing something twice does no harm: a ghost is removed only while it is one, an entry only when its row has another key by now. So after a crash everything that might be left is
//!   removed again;
//! - the entries of a row go before its slot does, so an index never leads to another row.

use super::open::Database;
use crate::index::Index;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Mode, Resource, TransactionState};
use crate::{Error, Result};
use pagefold_format::log::{CheckpointLeftover, Leftover, Lsn};
use pagefold_types::Rid;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Who holds the locks of removals: no transaction has this id.
const REMOVER: u64 = u64::MAX;

/// All leftovers of a database.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    lists: Mutex<Lists>,
    /// One who removes at a time. While nobody does, the lists say what is on the pages.
    removing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Lists {
    /// Of transactions that run.
    running: BTreeMap<u64, Vec<Entered>>,
    /// Of those that are committed, in the order of their commits.
    committed: VecDeque<Committed>,
}

/// What a running transaction would leave.
#[derive(Clone, Debug)]
struct Entered {
    /// Start of the transaction's record before the one that leaves it.
    after: Lsn,
    left: Leftover,
}

/// What is to be removed.
enum Next {
    Left(Leftover),
    /// Versions, when nothing else is left of a transaction.
    Rows(Vec<(u32, Rid)>),
}

/// What a committed transaction left.
#[derive(Debug)]
struct Committed {
    timestamp: u64,
    left: Vec<Leftover>,
    /// Rows with versions.
    rows: Vec<(u32, Rid)>,
}

impl Leftovers {
    /// A transaction is about to leave this.
    pub(crate) fn enter(&self, transaction: &TransactionState, left: Leftover) {
        let entered = Entered { after: transaction.last_lsn(), left };
        self.lists.lock().running.entry(transaction.id()).or_default().push(entered);
    }

    /// A transaction is committed; what it left may go when every snapshot sees the commit.
    pub(crate) fn committed(&self, transaction: u64, timestamp: u64, rows: Vec<(u32, Rid)>) {
        let mut lists = self.lists.lock();
        let left = lists.running.remove(&transaction).unwrap_or_default().into_iter().map(|e| e.left).collect();
        lists.committed.push_back(Committed { timestamp, left, rows });
    }

    /// A transaction is taken back down to its record at `last`; 0: wholly.
    pub(crate) fn taken_back(&self, transaction: u64, last: Lsn) {
        let mut lists = self.lists.lock();
        if last == 0 {
            lists.running.remove(&transaction);
        } else if let Some(entered) = lists.running.get_mut(&transaction) {
            entered.retain(|e| e.after < last);
        }
    }

    /// Everything, for a checkpoint.
    pub(crate) fn all(&self) -> Vec<CheckpointLeftover> {
        let lists = self.lists.lock();
        let committed = lists.committed.iter().flat_map(|c| &c.left);
        let committed = committed.map(|left| CheckpointLeftover { transaction: 0, after: 0, left: left.clone() });
        let running = lists.running.iter().flat_map(|(id, entered)| entered.iter().map(|e| (*id, e)));
        committed.chain(running.map(|(transaction, e)| CheckpointLeftover { transaction, after: e.after, left: e.left.clone() })).collect()
    }

    /// Keeps everybody from removing, for as long as the guard lives.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.removing.lock()
    }

    /// What to remove next; `None` when some snapshot needs all there is.
    fn next(&self, oldest: u64) -> Option<Next> {
        let mut lists = self.lists.lock();
        if lists.committed.front()?.timestamp > oldest {
            return None;
        }
        match lists.committed.front()?.left.last() {
            Some(left) => Some(Next::Left(left.clone())),
            None => lists.committed.pop_front().map(|first| Next::Rows(first.rows)),
        }
    }

    /// What came last of [`Self::next`] is removed.
    fn removed(&self) {
        if let Some(first) = self.lists.lock().committed.front_mut() {
            first.left.pop();
        }
    }
}

impl Database {
    /// Removes what no snapshot needs any more. Called after commits; who finds another at it does nothing.
    ///
    /// # Errors
    /// When a page is damaged or cannot be written.
    pub fn remove_leftovers(&self) -> Result<()> {
        let leftovers = &self.core.leftovers;
        let Some(_turn) = leftovers.removing.try_lock() else { return Ok(()) };
        let oldest = self.core.transactions.oldest_snapshot();
        while let Some(next) = leftovers.next(oldest) {
            match next {
                Next::Left(left) if self.remove_leftover(&left)? => leftovers.removed(),
                // Somebody changes the row just now: next time.
                Next::Left(_) => return Ok(()),
                Next::Rows(rows) => {
                    for (object, rid) in rows {
                        self.core.versions.forget(object, rid, oldest);
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes one, if it is still there. False when that has to wait.
    pub(super) fn remove_leftover(&self, left: &Leftover) -> Result<bool> {
        match left {
            Leftover::Ghost { object_id, rid, kind } => {
                let Some(table) = self.table_by_id(*object_id) else { return Ok(true) };
                if let Some(record) = table.ghost_record(*rid, *kind)? {
                    let mut key = Vec::new();
                    for index in self.indexes_of(&table) {
                        key_of(&table, &index, &record, &mut key)?;
                        index.tree().delete(&key, *rid)?;
                    }
                    table.purge(*rid, *kind, &record)?;
                }
                Ok(true)
            }
            Leftover::Entry { object_id, key, rid } => {
                let Some(index) = self.index_by_id(*object_id) else { return Ok(true) };
                let table = self.table_of(&index)?;
                // Without the lock, the row could get this key again between the look at it and the removal.
                let row = Resource::Row(table.object_id, *rid);
                if self.core.locks.lock(REMOVER, row, Mode::Exclusive, Duration::ZERO).is_err() {
                    return Ok(false);
                }
                let removed = self.remove_entry(&table, &index, key, *rid);
                self.core.locks.release_all(REMOVER);
                removed.map(|()| true)
            }
            Leftover::LargeValue { object_id, value } => {
                self.table_by_id(*object_id).map_or(Ok(()), |table| table.free_large(*value)).map(|()| true)
            }
        }
    }

    fn remove_entry(&self, table: &Table, index: &Index, key: &[u8], rid: Rid) -> Result<()> {
        let mut own = Vec::new();
        let found = table.read(rid, &mut RowBuffer::default(), |record| key_of(table, index, record, &mut own))?;
        if found.transpose()?.is_none() || own != key {
            index.tree().delete(key, rid)?;
        }
        Ok(())
    }

    pub(super) fn table_by_id(&self, object_id: u32) -> Option<Arc<Table>> {
        self.objects.read().tables.values().find(|table| table.object_id == object_id).cloned()
    }

    pub(super) fn index_by_id(&self, object_id: u32) -> Option<Arc<Index>> {
        self.objects.read().indexes.values().find(|index| index.object_id == object_id).cloned()
    }
}

/// The key of a record in an index.
pub(crate) fn key_of(table: &Table, index: &Index, record: &[u8], key: &mut Vec<u8>) -> Result<()> {
    key.clear();
    let encoded = index.key_layout().encode_from_record(table.layout(), record, key);
    encoded.map(drop).map_err(|e| Error::Value(format!("index \"{}\": {e}", index.name())))
}

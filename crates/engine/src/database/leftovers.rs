//! What committed transactions leave for older snapshots, and its removal: ghosts of deleted rows, index entries of rows and keys that are no more, large values.
//!
//! Invariants:
//! - something left is entered here before the record that leaves it is in the log, and goes out of here when it is gone from the pages: so a checkpoint knows all of it;
//! - each is removed once while the database is open. After a crash, when no transaction runs, removing something again does no harm: a ghost is removed only while it is one, an entry only
//!   when its row has another key by now; large values are told from new ones by the log. So everything that might be left is removed then;
//! - no checkpoint lists what has been removed already;
//! - the entries of a row go before its slot does, so an index never leads to another row;
//! - while an entry may be left, the filter has its row's page. Who has copied a leaf knows by the count of removals whether that still holds for the copy.

use super::open::DatabaseState;
use crate::index::Index;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Mode, PageFilter, Resource, TransactionState};
use crate::{Error, Result};
use pagefold_format::log::{CheckpointLeftover, Leftover, Lsn};
use pagefold_types::Rid;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

/// Who holds the locks of removals: no transaction has this id.
const REMOVER: u64 = u64::MAX;

/// All leftovers of a database.
#[derive(Debug)]
pub(crate) struct Leftovers {
    lists: Mutex<Lists>,
    /// One who removes at a time. While nobody does, the lists say what is on the pages.
    removing: Mutex<()>,
    /// Pages with rows that entries may be left of, by index.
    entries: PageFilter,
    /// Number of entries taken out of indexes, here or by rollbacks.
    removals: AtomicU64,
}

impl Default for Leftovers {
    fn default() -> Leftovers {
        Leftovers { lists: Mutex::default(), removing: Mutex::default(), entries: PageFilter::new(), removals: AtomicU64::new(0) }
    }
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

/// What a committed transaction left.
#[derive(Clone, Debug)]
struct Committed {
    timestamp: u64,
    left: VecDeque<Leftover>,
    /// Rows with versions.
    rows: Vec<(u32, Rid)>,
}

impl Leftovers {
    /// A transaction is about to leave this.
    pub(crate) fn enter(&self, transaction: &TransactionState, left: Leftover) {
        self.count(&left, PageFilter::enter);
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
        let Some(entered) = lists.running.get_mut(&transaction) else { return };
        entered.retain(|e| {
            let stays = e.after < last;
            if !stays {
                self.count(&e.left, PageFilter::leave);
            }
            stays
        });
        if entered.is_empty() {
            lists.running.remove(&transaction);
        }
    }

    fn count(&self, left: &Leftover, change: impl Fn(&PageFilter, u64)) {
        if let Leftover::Entry { object_id, rid, .. } = left {
            change(&self.entries, PageFilter::hash_of_row(*object_id, *rid));
        }
    }

    /// An entry has been taken out of an index, and its row's versions and the filter may forget it after this.
    pub(crate) fn entry_removed(&self) {
        self.removals.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Number of entries that have been removed. To be read before a leaf is copied.
    pub(crate) fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Whether an entry in the copy of a leaf may be that of a key which the row no longer has for all snapshots, whoever has removed it since. `removals` is from before the copy.
    pub(crate) fn may_be_left(&self, index: u32, rid: Rid, removals: u64) -> bool {
        self.entries.may_have(PageFilter::hash_of_row(index, rid)) || {
            fence(Ordering::Acquire);
            self.removals.load(Ordering::Relaxed) != removals
        }
    }

    /// Keeps everybody from removing, for as long as the guard lives.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.removing.lock()
    }

    /// Has any commit left something that is still there?
    pub(crate) fn are_there(&self) -> bool {
        !self.lists.lock().committed.is_empty()
    }

    /// Everything, for a checkpoint. What transactions have left whose commit is in the log by now, though not published, is left for good.
    pub(crate) fn all(&self, ended: &[Arc<TransactionState>]) -> Vec<CheckpointLeftover> {
        let lists = self.lists.lock();
        let committed = lists.committed.iter().flat_map(|c| &c.left);
        let committed = committed.map(|left| CheckpointLeftover { transaction: 0, after: 0, left: left.clone() });
        let id_of = |id: u64| if ended.iter().any(|state| state.id() == id) { 0 } else { id };
        let running = lists.running.iter().flat_map(|(id, entered)| entered.iter().map(move |e| (id_of(*id), e)));
        committed.chain(running.map(|(transaction, e)| CheckpointLeftover { transaction, after: e.after, left: e.left.clone() })).collect()
    }

    /// What comes next of the oldest list that every snapshot can do without, and when that list was committed; `None` in the end.
    fn next(&self, oldest: u64) -> Option<(u64, Option<Leftover>)> {
        let lists = self.lists.lock();
        let first = lists.committed.front().filter(|first| first.timestamp <= oldest)?;
        Some((first.timestamp, first.left.front().cloned()))
    }

    /// What came next is removed.
    fn removed(&self, left: &Leftover) {
        self.count(left, PageFilter::leave);
        if let Some(first) = self.lists.lock().committed.front_mut() {
            first.left.pop_front();
        }
    }
}

impl DatabaseState {
    /// Removes what no snapshot needs any more. Called after commits; who finds another at it does nothing.
    ///
    /// # Errors
    /// When a page is damaged or cannot be written.
    pub fn remove_leftovers(&self) -> Result<()> {
        let leftovers = &self.core.leftovers;
        let Some(_turn) = leftovers.removing.try_lock() else { return Ok(()) };
        let oldest = self.core.transactions.oldest_snapshot();
        while let Some((committed, next)) = leftovers.next(oldest) {
            let Some(left) = next else {
                let first = leftovers.lists.lock().committed.pop_front();
                for (object, rid) in first.iter().flat_map(|first| &first.rows) {
                    self.core.versions.forget(*object, *rid, committed);
                }
                continue;
            };
            if !self.remove_leftover(&left, committed)? {
                // Somebody changes the row just now: next time.
                return Ok(());
            }
            leftovers.removed(&left);
        }
        Ok(())
    }

    /// Removes one, left by the commit at `committed`, if it is still there. False when that has to wait.
    pub(super) fn remove_leftover(&self, left: &Leftover, committed: u64) -> Result<bool> {
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
                let removed = self.remove_entry(&table, &index, key, *rid, committed);
                self.core.locks.release_all(REMOVER);
                removed.map(|()| true)
            }
            Leftover::LargeValue { object_id, value } => {
                self.table_by_id(*object_id).map_or(Ok(()), |table| table.free_large(*value)).map(|()| true)
            }
        }
    }

    fn remove_entry(&self, table: &Table, index: &Index, key: &[u8], rid: Rid, committed: u64) -> Result<()> {
        let mut own = Vec::new();
        let mut has_key = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
        let has_it = table.read(rid, &mut RowBuffer::default(), &mut has_key)?.transpose()?.unwrap_or(false);
        // If it got the key again later and then lost it, the entry is left of that now, and older snapshots may need it.
        if !has_it && !table.had_after(rid, committed, &mut has_key)? {
            index.tree().delete(key, rid)?;
            self.core.leftovers.entry_removed();
        }
        Ok(())
    }

    pub(super) fn table_by_id(&self, object_id: u32) -> Option<Arc<Table>> {
        self.objects.read().table(object_id)
    }

    pub(super) fn index_by_id(&self, object_id: u32) -> Option<Arc<Index>> {
        self.objects.read().index(object_id)
    }
}

/// The key of a record in an index.
pub(crate) fn key_of(table: &Table, index: &Index, record: &[u8], key: &mut Vec<u8>) -> Result<()> {
    key.clear();
    let encoded = index.key_layout().encode_from_record(table.layout(), record, key);
    encoded.map(drop).map_err(|e| Error::Value(format!("index \"{}\": {e}", index.name())))
}

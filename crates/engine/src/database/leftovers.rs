//! What committed transactions leave for older snapshots, and its removal: ghosts of deleted rows, index entries of rows and keys that are no more, large values.
//!
//! Invariants:
//! - something left is entered here before the record that leaves it is in the log, and goes out of here when it is gone from the pages: so a checkpoint knows all of it;
//! - each is removed once while the database is open. After a crash, when no transaction runs, removing something again does no harm: a ghost is removed only while it is one, an entry only
//!   when its row has another key by now; large values are told from new ones by the log. So everything that might be left is removed then;
//! - no checkpoint lists what has been removed already;
//! - something goes when no snapshot needs it, however old some snapshots are: what a row was between two of them is needed by none. So under a long reader the lists grow with the rows that it
//!   sees otherwise, and not with the changes;
//! - a removal may need a page and some of the log, which is made sure of before it changes anything. What finds no room is held like what a snapshot needs, and tried again;
//! - the slot of a deleted row is not used again while a transaction may remember its RID (`Transactions::pin`); rows that came and went while it was idle it does not remember;
//! - while an entry may be left, the filter has its row's page. Who has copied a leaf knows by the count of removals whether that still holds for the copy.

use super::open::DatabaseState;
use crate::index::Index;
use crate::steps::stepping;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Horizon, Mode, PageFilter, Pins, Resource, TransactionState};
use crate::{Error, Result};
use pagefold_format::log::{CheckpointLeftover, Leftover, Lsn};
use pagefold_types::Rid;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// All leftovers of a database.
#[derive(Debug)]
pub(crate) struct Leftovers {
    lists: Mutex<Lists>,
    /// One who removes at a time. While nobody does, the lists say what is on the pages.
    removing: Mutex<()>,
    /// Pages with rows that entries may be left of, by index; with deleted rows, by table.
    filter: PageFilter,
    /// Number of entries taken out of indexes, here or by rollbacks.
    removals: AtomicU64,
}

impl Default for Leftovers {
    fn default() -> Leftovers {
        Leftovers { lists: Mutex::default(), removing: Mutex::default(), filter: PageFilter::new(), removals: AtomicU64::new(0) }
    }
}

#[derive(Debug, Default)]
struct Lists {
    /// Of transactions that run.
    running: BTreeMap<u64, Vec<Entered>>,
    /// Of those that are committed, in the order of their commits.
    committed: VecDeque<Committed>,
    held: Held,
    /// How much of the committed ones waits for its turn.
    waiting: usize,
}

/// What a running transaction would leave.
#[derive(Clone, Debug)]
struct Entered {
    /// Start of the transaction's record before the one that leaves it: never less than in an earlier one.
    after: Lsn,
    left: Leftover,
}

/// What a committed transaction left.
#[derive(Clone, Debug)]
struct Committed {
    timestamp: u64,
    left: VecDeque<Leftover>,
    /// Rows that got versions by it.
    rows: Vec<(u32, Rid)>,
}

/// What some snapshot, somebody who changes the row, or a full disk kept from going when its turn came; each with the timestamp of the last commit that left it.
#[derive(Debug, Default)]
struct Held {
    left: BTreeMap<Leftover, u64>,
    rows: BTreeMap<(u32, Rid), u64>,
    /// When they were last looked at: the oldest snapshot and the last commit.
    looked_at: (u64, u64),
}

/// What was held and may go by now.
#[derive(Debug, Default)]
struct Due {
    left: Vec<(Leftover, u64)>,
    rows: Vec<(u32, Rid)>,
}

/// A snapshot that is so many commits old is not waited for: what it does not need goes before it ends.
const LONG_COMMITS: u64 = 256;

/// Nor is any when so much waits.
const MANY: usize = 4096;

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
        let left: VecDeque<Leftover> = lists.running.remove(&transaction).unwrap_or_default().into_iter().map(|e| e.left).collect();
        lists.waiting += left.len();
        lists.committed.push_back(Committed { timestamp, left, rows });
    }

    /// A transaction is taken back down to its record at `last`; 0: wholly.
    pub(crate) fn taken_back(&self, transaction: u64, last: Lsn) {
        let mut lists = self.lists.lock();
        let Some(entered) = lists.running.get_mut(&transaction) else { return };
        while let Some(e) = entered.pop_if(|e| stepping(e).after >= last) {
            self.count(&e.left, PageFilter::leave);
        }
        if entered.is_empty() {
            lists.running.remove(&transaction);
        }
    }

    fn count(&self, left: &Leftover, change: impl Fn(&PageFilter, u64)) {
        if let Leftover::Entry { object_id, rid, .. } | Leftover::Ghost { object_id, rid, .. } = left {
            change(&self.filter, PageFilter::hash_of_row(*object_id, *rid));
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

    /// Whether an entry in the copy of a leaf may be that of a key which the row no longer has for all snapshots, or (given the table) of a row that is deleted, whoever has removed it since.
    /// `removals` is from before the copy.
    pub(crate) fn may_be_left(&self, object: u32, rid: Rid, removals: u64) -> bool {
        self.filter.may_have(PageFilter::hash_of_row(object, rid)) || {
            fence(Ordering::Acquire);
            self.removals.load(Ordering::Relaxed) != removals
        }
    }

    /// Keeps everybody from removing, for as long as the guard lives.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.removing.lock()
    }

    /// Has any commit left something that is still there? Perhaps, while others are at the lists: readers ask this, who wait for nobody.
    pub(crate) fn may_be_there(&self) -> bool {
        let Some(lists) = self.lists.try_lock() else { return true };
        !lists.committed.is_empty() || !lists.held.left.is_empty() || !lists.held.rows.is_empty()
    }

    /// Everything, for a checkpoint. What transactions have left whose commit is in the log by now, though not published, is left for good.
    pub(crate) fn all(&self, ended: &[Arc<TransactionState>]) -> Vec<CheckpointLeftover> {
        let lists = self.lists.lock();
        let committed = lists.committed.iter().flat_map(|c| &c.left).chain(lists.held.left.keys());
        let committed = committed.map(|left| CheckpointLeftover { transaction: 0, after: 0, left: left.clone() });
        let ended: BTreeSet<u64> = ended.iter().map(|state| state.id()).collect();
        let running = lists.running.iter().flat_map(|(id, entered)| {
            let id = if ended.contains(id) { 0 } else { *id };
            entered.iter().map(move |e| (id, e))
        });
        committed.chain(running.map(|(transaction, e)| CheckpointLeftover { transaction, after: e.after, left: e.left.clone() })).collect()
    }

    /// The oldest list, when its turn has come: every snapshot sees the commit, or those that do not are old.
    fn next(&self, oldest: u64, newest_commit: u64, newest_before: impl Fn(u64) -> Option<u64>) -> Option<Committed> {
        let lists = self.lists.lock();
        let first = lists.committed.front()?;
        let long_ago = |snapshot: u64| snapshot + LONG_COMMITS <= newest_commit;
        let due = first.timestamp <= oldest || lists.waiting > MANY || newest_before(first.timestamp).is_none_or(long_ago);
        due.then(|| first.clone())
    }

    /// Something of the oldest list is gone, or is held.
    fn done(&self, left: &Leftover, held: Option<u64>) {
        let mut lists = self.lists.lock();
        let gone = lists.committed.front_mut().is_some_and(|first| first.left.pop_front().is_some());
        lists.waiting -= usize::from(gone);
        match held {
            None => self.count(left, PageFilter::leave),
            // It counts once, however often it was left.
            Some(timestamp) => {
                if lists.held.left.insert(left.clone(), timestamp).is_some() {
                    self.count(left, PageFilter::leave);
                }
            }
        }
    }

    /// The oldest list is done; `rows` still have versions.
    fn finish(&self, timestamp: u64, rows: &[(u32, Rid)]) {
        let mut lists = self.lists.lock();
        lists.committed.pop_front();
        lists.held.rows.extend(rows.iter().map(|row| (*row, timestamp)));
    }

    /// Recovery could not remove this, as there is no room.
    pub(super) fn hold_back(&self, left: Leftover) {
        self.count(&left, PageFilter::enter);
        if let Some(again) = self.lists.lock().held.left.insert(left.clone(), 0) {
            debug_assert_eq!(again, 0, "recovery comes before all commits");
            self.count(&left, PageFilter::leave);
        }
    }

    /// What was held and may go by now: all that every snapshot can do without. While there are snapshots, it is looked for only when the oldest one has ended, and not at every commit.
    fn due(&self, oldest: u64, newest_commit: u64) -> Due {
        let mut lists = self.lists.lock();
        let (oldest_then, commit_then) = lists.held.looked_at;
        if oldest < newest_commit && (oldest == oldest_then || newest_commit < commit_then + LONG_COMMITS) {
            return Due::default();
        }
        lists.held.looked_at = (oldest, newest_commit);
        let left = lists.held.left.iter().filter(|(_, timestamp)| **timestamp <= oldest);
        let left = left.map(|(left, timestamp)| (left.clone(), *timestamp)).collect();
        let rows = lists.held.rows.iter().filter(|(_, timestamp)| **timestamp <= oldest);
        Due { left, rows: rows.map(|(row, _)| *row).collect() }
    }

    /// Something held is gone.
    fn released(&self, left: &Leftover) {
        if self.lists.lock().held.left.remove(left).is_some() {
            self.count(left, PageFilter::leave);
        }
    }
}

impl DatabaseState {
    /// Removes what no snapshot needs any more.
    ///
    /// # Errors
    /// When a page is damaged or cannot be written.
    pub fn remove_leftovers(&self) -> Result<()> {
        let _turn = self.core.leftovers.removing.lock();
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.horizon(), &transactions.pins())
    }

    /// The same, after a commit; who finds another at it leaves it to him.
    pub(super) fn remove_leftovers_unless_busy(&self) -> Result<()> {
        let Some(_turn) = self.core.leftovers.removing.try_lock() else { return Ok(()) };
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.recent_horizon(), &transactions.recent_pins())
    }

    fn remove_in_turn(&self, horizon: &Horizon, pins: &Pins) -> Result<()> {
        let (leftovers, transactions) = (&self.core.leftovers, &self.core.transactions);
        let newest_commit = transactions.last_commit();
        let oldest = horizon.oldest().min(pins.oldest());
        let Due { left, rows } = leftovers.due(oldest, newest_commit);
        for (left, timestamp) in left {
            if self.remove_leftover(&left, timestamp, horizon, pins)? {
                leftovers.released(&left);
            }
        }
        for (object, rid) in rows {
            if !self.core.versions.needed(object, rid, horizon)?.0 {
                leftovers.lists.lock().held.rows.remove(&(object, rid));
            }
        }
        let newest_before = |commit| horizon.newest_before(commit).max(pins.newest_before(commit));
        while let Some(next) = leftovers.next(oldest, newest_commit, newest_before) {
            for left in &next.left {
                let gone = self.remove_leftover(left, next.timestamp, horizon, pins)?;
                leftovers.done(left, (!gone).then_some(next.timestamp));
            }
            let mut rows = Vec::new();
            for (object, rid) in next.rows {
                if self.core.versions.needed(object, rid, horizon)?.0 {
                    rows.push((object, rid));
                }
            }
            leftovers.finish(next.timestamp, &rows);
        }
        Ok(())
    }

    /// Removes one, left by the commit at `committed`, if it is still there. False when a snapshot needs it, somebody changes its row just now, or there is no room for it.
    pub(super) fn remove_leftover(&self, left: &Leftover, committed: u64, horizon: &Horizon, pins: &Pins) -> Result<bool> {
        // A record that found no room in the log would come when pages have changed already.
        let prepared = if self.core.writable { self.core.manager.prepare_log() } else { Ok(()) };
        match prepared.and_then(|()| self.try_to_remove(left, committed, horizon, pins)) {
            Err(error) if error.is_no_room() => Ok(false),
            removed => removed,
        }
    }

    fn try_to_remove(&self, left: &Leftover, committed: u64, horizon: &Horizon, pins: &Pins) -> Result<bool> {
        match left {
            Leftover::Ghost { object_id, rid, kind } => {
                let Some(table) = self.table_by_id(*object_id) else { return Ok(true) };
                let page = (table.partition(rid.partition())?.file_id(), rid.page());
                let remembered = pins.may_remember(self.core.births.of(page, rid.slot()), committed);
                if remembered || table.is_needed(*rid, horizon, |_| Ok(true))? {
                    return Ok(false);
                }
                let record = table.ghost_record(*rid, *kind)?;
                // Another row may lie there by now, whose kind is another one.
                debug_assert!(record.is_some(), "the deleted row {rid} is gone already");
                if let Some(record) = record {
                    let mut key = Vec::new();
                    for index in table.indexes().iter() {
                        key_of(&table, index, &record, &mut key)?;
                        index.tree().delete(&key, *rid)?;
                        self.core.leftovers.entry_removed();
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
                let Some(_locked) = self.core.locks.lock_for_removal(row, Mode::Exclusive) else { return Ok(false) };
                self.remove_entry(&table, &index, key, *rid, horizon)
            }
            Leftover::LargeValue { object_id, value } => {
                // Which row had it is not known: it stays while any snapshot is older.
                if committed > horizon.oldest() {
                    return Ok(false);
                }
                self.table_by_id(*object_id).map_or(Ok(()), |table| table.free_large(*value)).map(|()| true)
            }
        }
    }

    /// False when a snapshot still comes to the row by this entry.
    fn remove_entry(&self, table: &Table, index: &Index, key: &[u8], rid: Rid, horizon: &Horizon) -> Result<bool> {
        let mut own = Vec::new();
        let mut has_key = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
        if table.read(rid, &mut RowBuffer::default(), &mut has_key)?.transpose()?.unwrap_or(false) {
            // It is the row's again. When that ends, it is left anew.
            return Ok(true);
        }
        if table.is_needed(rid, horizon, &mut has_key)? {
            return Ok(false);
        }
        index.tree().delete(key, rid)?;
        self.core.leftovers.entry_removed();
        Ok(true)
    }
}

/// The key of a record in an index.
pub(crate) fn key_of(table: &Table, index: &Index, record: &[u8], key: &mut Vec<u8>) -> Result<()> {
    key.clear();
    let encoded = index.key_layout().encode_from_record(table.layout(), record, key);
    encoded.map(drop).map_err(|e| Error::Value(format!("index \"{}\": {e}", index.name())))
}

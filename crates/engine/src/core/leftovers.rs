//! What committed transactions leave for older snapshots: ghosts of deleted rows, index entries of rows and keys that are no more, large values. What removes them is `database/leftovers.rs`.
//!
//! Invariants:
//! - something left is entered here before the record that leaves it is in the log, and goes out of here when it is gone from the pages: so a checkpoint knows all of it;
//! - no checkpoint lists what has been removed already;
//! - while an entry may be left, the filter has its row's page. Who has copied a leaf knows by the count of removals whether that still holds for the copy.

use super::held::{Held, Waits};
use crate::steps::stepping;
use crate::transaction::{PageFilter, TransactionState};
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
    /// What some snapshot, somebody who changes the row, or a full disk kept from going when its turn came.
    held: Held<Arc<Leftover>>,
    /// Rows whose versions some snapshot needed when their turn came.
    rows: Held<(u32, Rid)>,
    /// How much of the committed ones waits for its turn.
    waiting: usize,
    full: FullDisk,
}

/// How long what found no room is left alone.
#[derive(Debug, Default)]
struct FullDisk {
    /// So many turns from now on.
    pause: u32,
    /// After so many turns the last try came.
    last_pause: u32,
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
pub(crate) struct Committed {
    pub(crate) timestamp: u64,
    pub(crate) left: VecDeque<Leftover>,
    /// Rows that got versions by it.
    pub(crate) rows: Vec<(u32, Rid)>,
}

/// What is held, and may go now; each with the timestamp of the last commit that left it.
pub(crate) struct Due {
    pub(crate) left: Vec<(Arc<Leftover>, u64)>,
    pub(crate) rows: Vec<((u32, Rid), u64)>,
    /// What is held from this number on has been tried.
    pub(crate) tried_from: u64,
    /// The same of rows.
    pub(crate) rows_tried_from: u64,
}

/// Tries of what found no room are at most so many turns apart.
const PAUSE_MAX: u32 = 64;

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

    /// The same, unless somebody removes just now.
    pub(crate) fn try_hold(&self) -> Option<MutexGuard<'_, ()>> {
        self.removing.try_lock()
    }

    /// Has any commit left something that is still there? Perhaps, while others are at the lists: readers ask this, who wait for nobody.
    pub(crate) fn may_be_there(&self) -> bool {
        let Some(lists) = self.lists.try_lock() else { return true };
        !lists.committed.is_empty() || !lists.held.is_empty() || !lists.rows.is_empty()
    }

    /// Everything, for a checkpoint. What transactions have left whose commit is in the log by now, though not published, is left for good.
    pub(crate) fn all(&self, ended: &[Arc<TransactionState>]) -> Vec<CheckpointLeftover> {
        let lists = self.lists.lock();
        let committed = lists.committed.iter().flat_map(|c| &c.left).chain(lists.held.iter().map(|left| &**left));
        let committed = committed.map(|left| CheckpointLeftover { transaction: 0, after: 0, left: left.clone() });
        let ended: BTreeSet<u64> = ended.iter().map(|state| state.id()).collect();
        let running = lists.running.iter().flat_map(|(id, entered)| {
            let id = if ended.contains(id) { 0 } else { *id };
            entered.iter().map(move |e| (id, e))
        });
        committed.chain(running.map(|(transaction, e)| CheckpointLeftover { transaction, after: e.after, left: e.left.clone() })).collect()
    }

    /// The oldest list, when its turn has come: every snapshot sees the commit, or those that do not are old.
    pub(crate) fn next(&self, oldest: u64, newest_commit: u64, newest_before: impl Fn(u64) -> Option<u64>) -> Option<Committed> {
        let lists = self.lists.lock();
        let first = lists.committed.front()?;
        let long_ago = |snapshot: u64| snapshot + LONG_COMMITS <= newest_commit;
        let due = first.timestamp <= oldest || lists.waiting > MANY || newest_before(first.timestamp).is_none_or(long_ago);
        due.then(|| first.clone())
    }

    /// Something of the oldest list is gone, or is held.
    pub(crate) fn done(&self, left: &Leftover, timestamp: u64, held: Option<Waits>) {
        let mut lists = self.lists.lock();
        let taken = lists.committed.front_mut().and_then(|first| first.left.pop_front());
        lists.waiting -= usize::from(taken.is_some());
        match held {
            None => self.count(left, PageFilter::leave),
            // It counts once, however often it was left.
            Some(waits) => {
                if lists.held.hold(Arc::new(taken.unwrap_or_else(|| left.clone())), timestamp, waits) {
                    self.count(left, PageFilter::leave);
                }
            }
        }
    }

    /// The oldest list is done; `rows` still have versions.
    pub(crate) fn finish(&self, timestamp: u64, rows: &[((u32, Rid), Waits)]) {
        let mut lists = self.lists.lock();
        lists.committed.pop_front();
        for (row, waits) in rows {
            lists.rows.hold(*row, timestamp, *waits);
        }
    }

    /// Recovery could not remove this, as there is no room.
    pub(crate) fn hold_back(&self, left: Leftover) {
        self.count(&left, PageFilter::enter);
        if self.lists.lock().held.hold(Arc::new(left.clone()), 0, Waits::NoRoom) {
            self.count(&left, PageFilter::leave);
        }
    }

    /// What is held and waits for snapshots that are not there any more: with `all` of them, or those that are due.
    pub(crate) fn due(&self, all: bool, newest_commit: u64, is_there: impl Fn(u64) -> bool) -> Due {
        let mut lists = self.lists.lock();
        let left = lists.held.due(all, newest_commit, &is_there);
        let rows = lists.rows.due(all, newest_commit, is_there);
        Due { left, rows, tried_from: lists.held.next_number(), rows_tried_from: lists.rows.next_number() }
    }

    /// The first that was busy, or found no room, before `number`.
    pub(crate) fn first(&self, no_room: bool, number: u64) -> Option<(Arc<Leftover>, u64)> {
        self.lists.lock().held.first(no_room, number)
    }

    /// The first row that was busy before `number`.
    pub(crate) fn first_row(&self, number: u64) -> Option<((u32, Rid), u64)> {
        self.lists.lock().rows.first(false, number)
    }

    /// A row whose versions are held has been tried again.
    pub(crate) fn tried_row(&self, row: (u32, Rid), timestamp: u64, held: Option<Waits>) {
        let rows = &mut self.lists.lock().rows;
        match held {
            Some(waits) => _ = rows.hold(row, timestamp, waits),
            None => _ = rows.release(&row),
        }
    }

    /// Something held has been tried again.
    pub(crate) fn tried(&self, left: &Arc<Leftover>, timestamp: u64, held: Option<Waits>) {
        let mut lists = self.lists.lock();
        match held {
            Some(waits) => _ = lists.held.hold(Arc::clone(left), timestamp, waits),
            None => {
                if lists.held.release(left) {
                    self.count(left, PageFilter::leave);
                }
            }
        }
    }

    /// Whether what found no room is left alone in this turn.
    pub(crate) fn is_pausing(&self) -> bool {
        let pause = &mut self.lists.lock().full.pause;
        let is_pausing = *pause > 0;
        *pause = pause.saturating_sub(1);
        is_pausing
    }

    /// What found no room has been tried again, in vain perhaps.
    pub(crate) fn end_of_pause(&self, in_vain: bool) {
        let full = &mut self.lists.lock().full;
        full.last_pause = if in_vain { (2 * full.last_pause).clamp(1, PAUSE_MAX) } else { 0 };
        full.pause = full.last_pause;
    }
}

//! What committed transactions leave for older snapshots, and its removal: ghosts of deleted rows, index entries of rows and keys that are no more, large values.
//!
//! Invariants:
//! - something left is entered here before the record that leaves it is in the log, and goes out of here when it is gone from the pages: so a checkpoint knows all of it;
//! - each is removed once while the database is open. After a crash, when no transaction runs, removing something again does no harm: a ghost is removed only while it is one, an entry only
//!   when its row has another key by now; large values are told from new ones by the log. So everything that might be left is removed then;
//! - no checkpoint lists what has been removed already;
//! - something goes when no snapshot needs it, however old some snapshots are: what a row was between two of them is needed by none. So under a long reader the lists grow with the rows that it
//!   sees otherwise, and not with the changes;
//! - a removal may need a page and some of the log, which is made sure of before it changes anything. What finds no room is held like what a snapshot needs, and tried again: where nothing is removed, one a
//!   turn, and not in every turn;
//! - the slot of a deleted row is not used again while a transaction may remember its RID (`Transactions::pin`); rows that came and went while it was idle it does not remember;
//! - while an entry may be left, the filter has its row's page. Who has copied a leaf knows by the count of removals whether that still holds for the copy.

use super::held::{Held, Waits};
use super::open::DatabaseState;
use crate::index::Index;
use crate::pool::Frees;
use crate::recovery::ObjectsById;
use crate::steps::stepping;
use crate::table_space::{RowBuffer, Table, is_visiting};
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
struct Committed {
    timestamp: u64,
    left: VecDeque<Leftover>,
    /// Rows that got versions by it.
    rows: Vec<(u32, Rid)>,
}

/// What became of something that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone.
    Gone,
    /// Some snapshot needs it, or somebody may remember its RID.
    Needed,
    /// Somebody changes its row just now.
    Busy,
    /// There is no room for its removal.
    NoRoom,
}

/// One who removes, while he does.
struct Turn<'a> {
    horizon: &'a Horizon,
    pins: &'a Pins,
    /// He was asked to: he tries everything once, whatever it costs.
    is_thorough: bool,
    removed: u32,
    /// What found no room.
    failed: u32,
}

impl Turn<'_> {
    /// So that what finds no room costs little beside what does: where nothing can be removed, one try.
    fn goes_on(&self) -> bool {
        self.is_thorough || self.failed <= self.removed / REMOVED_PER_FAILURE
    }

    /// What something waits for that could not be removed.
    fn waits(&self, removal: Removal, left: &Leftover, committed: u64) -> Waits {
        let of_snapshots = match left {
            Leftover::LargeValue { .. } => self.horizon.oldest_before(committed),
            Leftover::Entry { .. } | Leftover::Ghost { .. } => self.newest_before(committed),
        };
        match (removal, of_snapshots) {
            (Removal::NoRoom, _) => Waits::NoRoom,
            (Removal::Needed, Some(snapshot)) => Waits::For(snapshot),
            (Removal::Needed | Removal::Busy | Removal::Gone, _) => Waits::Busy,
        }
    }

    /// The newest snapshot or pin that is older than a commit.
    fn newest_before(&self, commit: u64) -> Option<u64> {
        self.horizon.newest_before(commit).max(self.pins.newest_before(commit))
    }

    fn is_there(&self, snapshot: u64) -> bool {
        self.horizon.has(snapshot) || self.pins.has(snapshot)
    }
}

/// For so many removals in a turn one may find no room.
const REMOVED_PER_FAILURE: u32 = 8;

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
    fn next(&self, oldest: u64, newest_commit: u64, newest_before: impl Fn(u64) -> Option<u64>) -> Option<Committed> {
        let lists = self.lists.lock();
        let first = lists.committed.front()?;
        let long_ago = |snapshot: u64| snapshot + LONG_COMMITS <= newest_commit;
        let due = first.timestamp <= oldest || lists.waiting > MANY || newest_before(first.timestamp).is_none_or(long_ago);
        due.then(|| first.clone())
    }

    /// Something of the oldest list is gone, or is held.
    fn done(&self, left: &Leftover, timestamp: u64, held: Option<Waits>) {
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
    fn finish(&self, timestamp: u64, rows: &[((u32, Rid), Waits)]) {
        let mut lists = self.lists.lock();
        lists.committed.pop_front();
        for (row, waits) in rows {
            lists.rows.hold(*row, timestamp, *waits);
        }
    }

    /// Recovery could not remove this, as there is no room.
    pub(super) fn hold_back(&self, left: Leftover) {
        self.count(&left, PageFilter::enter);
        if self.lists.lock().held.hold(Arc::new(left.clone()), 0, Waits::NoRoom) {
            self.count(&left, PageFilter::leave);
        }
    }

    /// Something held has been tried again.
    fn tried(&self, left: &Arc<Leftover>, timestamp: u64, held: Option<Waits>) {
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
    fn is_pausing(&self) -> bool {
        let pause = &mut self.lists.lock().full.pause;
        let is_pausing = *pause > 0;
        *pause = pause.saturating_sub(1);
        is_pausing
    }

    /// What found no room has been tried again, in vain perhaps.
    fn end_of_pause(&self, in_vain: bool) {
        let full = &mut self.lists.lock().full;
        full.last_pause = if in_vain { (2 * full.last_pause).clamp(1, PAUSE_MAX) } else { 0 };
        full.pause = full.last_pause;
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
        self.remove_in_turn(&transactions.horizon(), &transactions.pins(), (true, true))
    }

    /// The same, when a snapshot has ended.
    pub(super) fn remove_leftovers_in_background(&self) -> Result<()> {
        let _turn = self.core.leftovers.removing.lock();
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.horizon(), &transactions.pins(), (true, false))
    }

    /// The same, after a commit; who finds another at it leaves it to him.
    pub(super) fn remove_leftovers_unless_busy(&self) -> Result<()> {
        let Some(_turn) = self.core.leftovers.removing.try_lock() else { return Ok(()) };
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.recent_horizon(), &transactions.recent_pins(), (false, false))
    }

    /// `all`: every snapshot that something waits for is looked for.
    fn remove_in_turn(&self, horizon: &Horizon, pins: &Pins, (all, is_thorough): (bool, bool)) -> Result<()> {
        let (leftovers, newest_commit) = (&self.core.leftovers, self.core.transactions.last_commit());
        let mut turn = Turn { horizon, pins, is_thorough, removed: 0, failed: 0 };
        let (due, rows, number, row_number) = {
            let mut lists = leftovers.lists.lock();
            let due = lists.held.due(all, newest_commit, |snapshot| turn.is_there(snapshot));
            let rows = lists.rows.due(all, newest_commit, |snapshot| turn.is_there(snapshot));
            // What is held from here on has been tried.
            (due, rows, lists.held.next_number(), lists.rows.next_number())
        };
        for (left, timestamp) in due {
            let held = self.remove_one(&left, timestamp, &mut turn)?;
            leftovers.tried(&left, timestamp, held);
        }
        for (row, timestamp) in rows {
            self.forget_row(row, timestamp, &turn)?;
        }
        let oldest = horizon.oldest().min(pins.oldest());
        while let Some(next) = leftovers.next(oldest, newest_commit, |commit| turn.newest_before(commit)) {
            for left in &next.left {
                let held = self.remove_one(left, next.timestamp, &mut turn)?;
                leftovers.done(left, next.timestamp, held);
            }
            let mut rows = Vec::new();
            for row in next.rows {
                if self.core.versions.needed(row.0, row.1, horizon)?.0 {
                    rows.push((row, turn.newest_before(next.timestamp).map_or(Waits::Busy, Waits::For)));
                }
            }
            leftovers.finish(next.timestamp, &rows);
        }
        self.try_again(number, row_number, &mut turn)
    }

    /// Tries again what was busy, or found no room.
    fn try_again(&self, number: u64, row_number: u64, turn: &mut Turn<'_>) -> Result<()> {
        let leftovers = &self.core.leftovers;
        let first = |no_room| leftovers.lists.lock().held.first(no_room, number);
        while let Some((left, timestamp)) = first(false) {
            let held = self.remove_one(&left, timestamp, turn)?;
            leftovers.tried(&left, timestamp, held);
            if held == Some(Waits::Busy) && !turn.is_thorough {
                break;
            }
        }
        let first_row = || leftovers.lists.lock().rows.first(false, row_number);
        while let Some((row, timestamp)) = first_row() {
            if !self.forget_row(row, timestamp, turn)? && !turn.is_thorough {
                break;
            }
        }
        if first(true).is_none() || !turn.goes_on() || (!turn.is_thorough && leftovers.is_pausing()) {
            return Ok(());
        }
        let before = turn.removed;
        while let Some((left, timestamp)) = first(true).filter(|_| turn.goes_on()) {
            let held = self.remove_one(&left, timestamp, turn)?;
            leftovers.tried(&left, timestamp, held);
        }
        leftovers.end_of_pause(turn.removed == before);
        Ok(())
    }

    /// Removes something, if enough of the turn could be removed. What it waits for if it is still there.
    fn remove_one(&self, left: &Leftover, committed: u64, turn: &mut Turn<'_>) -> Result<Option<Waits>> {
        if !turn.goes_on() {
            return Ok(Some(Waits::NoRoom));
        }
        let removal = self.remove_leftover(left, committed, turn.horizon, turn.pins)?;
        match removal {
            Removal::Gone => turn.removed += 1,
            Removal::Needed | Removal::Busy => {}
            Removal::NoRoom => turn.failed += 1,
        }
        Ok((removal != Removal::Gone).then(|| turn.waits(removal, left, committed)))
    }

    /// Forgets the versions of a row that is held, if no snapshot needs them any more.
    fn forget_row(&self, row: (u32, Rid), timestamp: u64, turn: &Turn<'_>) -> Result<bool> {
        let is_needed = self.core.versions.needed(row.0, row.1, turn.horizon)?.0;
        let rows = &mut self.core.leftovers.lists.lock().rows;
        if is_needed {
            rows.hold(row, timestamp, turn.newest_before(timestamp).map_or(Waits::Busy, Waits::For));
        } else {
            rows.release(&row);
        }
        Ok(!is_needed)
    }

    /// Removes one, left by the commit at `committed`, if it is still there.
    pub(super) fn remove_leftover(&self, left: &Leftover, committed: u64, horizon: &Horizon, pins: &Pins) -> Result<Removal> {
        // A record that found no room in the log would come when pages have changed already.
        let prepared = if self.core.writable { self.core.manager.prepare_log_to_free(Frees::Rows) } else { Ok(()) };
        match prepared.and_then(|()| self.try_to_remove(left, committed, horizon, pins)) {
            Err(error) if error.is_no_room() => Ok(Removal::NoRoom),
            removed => removed,
        }
    }

    /// A transaction has ended, and still has the locks of its rows: those that it left away from home go home where there is room by now. What cannot go stays, for the next change.
    pub(super) fn bring_rows_home(&self, state: &TransactionState) {
        let rows = state.take_away();
        // A visitor has a page latched.
        if rows.is_empty() || !self.core.writable || is_visiting(&self.core) {
            return;
        }
        let mut table: Option<Arc<Table>> = None;
        // Pages that host some of them, a place there, and whether one has been long.
        let mut pages: BTreeMap<(u32, u16, u32), (Rid, bool)> = BTreeMap::new();
        let mut table_of = |object| {
            if table.as_ref().is_none_or(|table| table.object_id != object) {
                table = self.table_by_id(object).ok().flatten();
            }
            table.clone()
        };
        // Whoever needs a page that cannot be read or written meets that error again.
        for ((object, rid), was_long) in rows {
            let Some(table) = table_of(object) else { continue };
            match self.core.manager.prepare_log().and_then(|()| table.bring_home(rid)) {
                Ok(Some(at)) => pages.entry((object, at.partition(), at.page())).or_insert((at, false)).1 |= was_long,
                Ok(None) => {}
                Err(_) => return,
            }
        }
        for ((object, ..), (at, had_long)) in pages {
            let Some(table) = table_of(object) else { continue };
            let leave = |()| if had_long { table.leave_after_long_rows(at) } else { table.leave_thin_page(at) };
            if self.core.manager.prepare_log().and_then(leave).is_err() {
                return;
            }
        }
    }

    fn try_to_remove(&self, left: &Leftover, committed: u64, horizon: &Horizon, pins: &Pins) -> Result<Removal> {
        match left {
            Leftover::Ghost { object_id, rid, kind } => {
                let Some(table) = ObjectsById::table(self, *object_id)? else { return Ok(Removal::Gone) };
                let page = (table.partition(rid.partition())?.file_id(), rid.page());
                let remembered = pins.may_remember(self.core.births.of(page, rid.slot()), committed);
                if remembered || table.is_needed(*rid, horizon, |_| Ok(true))? {
                    return Ok(Removal::Needed);
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
                Ok(Removal::Gone)
            }
            Leftover::Entry { object_id, key, rid } => {
                let Some(index) = ObjectsById::index(self, *object_id)? else { return Ok(Removal::Gone) };
                let table = self.table_of(&index)?;
                // Without the lock, the row could get this key again between the look at it and the removal.
                let row = Resource::Row(table.object_id, *rid);
                let Some(_locked) = self.core.locks.lock_for_removal(row, Mode::Exclusive) else { return Ok(Removal::Busy) };
                self.remove_entry(&table, &index, key, *rid, horizon)
            }
            Leftover::LargeValue { object_id, value } => {
                // Which row had it is not known: it stays while any snapshot is older.
                if committed > horizon.oldest() {
                    return Ok(Removal::Needed);
                }
                self.table_by_id(*object_id)?.map_or(Ok(()), |table| table.free_large(*value)).map(|()| Removal::Gone)
            }
        }
    }

    /// Needed when a snapshot still comes to the row by this entry.
    fn remove_entry(&self, table: &Table, index: &Index, key: &[u8], rid: Rid, horizon: &Horizon) -> Result<Removal> {
        let mut own = Vec::new();
        let mut has_key = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
        if table.read(rid, &mut RowBuffer::default(), &mut has_key)?.transpose()?.unwrap_or(false) {
            // It is the row's again. When that ends, it is left anew.
            return Ok(Removal::Gone);
        }
        if table.is_needed(rid, horizon, &mut has_key)? {
            return Ok(Removal::Needed);
        }
        index.tree().delete(key, rid)?;
        self.core.leftovers.entry_removed();
        Ok(Removal::Gone)
    }
}

/// The key of a record in an index.
pub(crate) fn key_of(table: &Table, index: &Index, record: &[u8], key: &mut Vec<u8>) -> Result<()> {
    key.clear();
    let encoded = index.key_layout().encode_from_record(table.layout(), record, key);
    encoded.map(drop).map_err(|e| Error::Value(format!("index \"{}\": {e}", index.name())))
}

//! Removing what committed transactions have left for older snapshots (`core/leftovers.rs`): ghosts of deleted rows, index entries of rows and keys that are no more, large values.
//!
//! Invariants:
//! - each is removed once while the database is open. After a crash, when no transaction runs, removing something again does no harm: a ghost is removed only while it is one, an entry only
//!   when its row has another key by now; large values are told from new ones by the log. So everything that might be left is removed then;
//! - something goes when no snapshot needs it, however old some snapshots are: what a row was between two of them is needed by none. So under a long reader the lists grow with the rows that it
//!   sees otherwise, and not with the changes;
//! - a removal may need a page and some of the log, which is made sure of before it changes anything. What finds no room, or a damaged page, is held like what a snapshot needs, and tried again: where
//!   nothing is removed, one a turn, and not in every turn. A checkpoint has it, so it is tried after the next opening, too, and goes when the index is built anew or the object is dropped;
//! - the slot of a deleted row is not used again while a transaction may remember its RID (`Transactions::pin`); rows that came and went while it was idle it does not remember.

use super::ghosts::{Ghost, WithoutEntries};
use super::open::DatabaseState;
use crate::core::{Due, Waits};
use crate::index::Index;
use crate::pool::Frees;
use crate::recovery::ObjectsById;
use crate::table_space::{RowBuffer, Table, is_visiting};
use crate::transaction::{Horizon, Mode, Pins, Resource, TransactionState};
use crate::{Error, Result};
use pagefold_format::log::Leftover;
use pagefold_types::Rid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What became of something that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone.
    Gone,
    /// Some snapshot needs it, or somebody may remember its RID.
    Needed,
    /// Somebody changes its row just now.
    Busy,
    /// There is no room for its removal, or a page that it needs is damaged.
    NotNow,
}

/// One who removes, while he does.
struct Turn<'a> {
    horizon: &'a Horizon,
    pins: &'a Pins,
    /// He was asked to: he tries everything once, whatever it costs.
    is_thorough: bool,
    removed: u32,
    /// What found no room, or a damaged page.
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
            (Removal::NotNow, _) => Waits::NoRoom,
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

impl DatabaseState {
    /// Removes what no snapshot needs any more.
    ///
    /// # Errors
    /// When a page is damaged or cannot be written.
    pub fn remove_leftovers(&self) -> Result<()> {
        let _turn = self.core.leftovers.hold();
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.horizon(), &transactions.pins(), (true, true))
    }

    /// The same, when a snapshot has ended.
    pub(super) fn remove_leftovers_in_background(&self) -> Result<()> {
        let _turn = self.core.leftovers.hold();
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.horizon(), &transactions.pins(), (true, false))
    }

    /// The same, after a commit; who finds another at it leaves it to him.
    pub(super) fn remove_leftovers_unless_busy(&self) -> Result<()> {
        let Some(_turn) = self.core.leftovers.try_hold() else { return Ok(()) };
        let transactions = &self.core.transactions;
        self.remove_in_turn(&transactions.recent_horizon(), &transactions.recent_pins(), (false, false))
    }

    /// `all`: every snapshot that something waits for is looked for.
    fn remove_in_turn(&self, horizon: &Horizon, pins: &Pins, (all, is_thorough): (bool, bool)) -> Result<()> {
        let (leftovers, newest_commit) = (&self.core.leftovers, self.core.transactions.last_commit());
        let mut turn = Turn { horizon, pins, is_thorough, removed: 0, failed: 0 };
        let Due { left, rows, tried_from, rows_tried_from } = leftovers.due(all, newest_commit, |snapshot| turn.is_there(snapshot));
        for (left, timestamp) in left {
            let held = self.remove_one(&left, timestamp, &mut turn, &mut WithoutEntries::default())?;
            leftovers.tried(&left, timestamp, held);
        }
        for (row, timestamp) in rows {
            self.forget_row(row, timestamp, &turn)?;
        }
        let oldest = horizon.oldest().min(pins.oldest());
        while let Some(next) = leftovers.next(oldest, newest_commit, |commit| turn.newest_before(commit)) {
            let left: Vec<Leftover> = next.left.into();
            let mut rest = left.as_slice();
            while !rest.is_empty() {
                let (count, mut without) = match turn.failed {
                    0 => self.take_entries_out(rest, next.timestamp, (horizon, pins)),
                    _ => (rest.len(), WithoutEntries::default()),
                };
                let (some, behind) = rest.split_at(count);
                for left in some {
                    let held = self.remove_one(left, next.timestamp, &mut turn, &mut without)?;
                    leftovers.done(left, next.timestamp, held);
                }
                rest = behind;
            }
            let mut rows = Vec::new();
            for row in next.rows {
                if self.core.versions.needed(row.0, row.1, horizon)?.0 {
                    rows.push((row, turn.newest_before(next.timestamp).map_or(Waits::Busy, Waits::For)));
                }
            }
            leftovers.finish(next.timestamp, &rows);
        }
        self.try_again(tried_from, rows_tried_from, &mut turn)
    }

    /// Tries again what was busy, or found no room.
    fn try_again(&self, number: u64, row_number: u64, turn: &mut Turn<'_>) -> Result<()> {
        let leftovers = &self.core.leftovers;
        let first = |no_room| leftovers.first(no_room, number);
        while let Some((left, timestamp)) = first(false) {
            let held = self.remove_one(&left, timestamp, turn, &mut WithoutEntries::default())?;
            leftovers.tried(&left, timestamp, held);
            if held == Some(Waits::Busy) && !turn.is_thorough {
                break;
            }
        }
        while let Some((row, timestamp)) = leftovers.first_row(row_number) {
            if !self.forget_row(row, timestamp, turn)? && !turn.is_thorough {
                break;
            }
        }
        if first(true).is_none() || !turn.goes_on() || (!turn.is_thorough && leftovers.is_pausing()) {
            return Ok(());
        }
        let before = turn.removed;
        while let Some((left, timestamp)) = first(true).filter(|_| turn.goes_on()) {
            let held = self.remove_one(&left, timestamp, turn, &mut WithoutEntries::default())?;
            leftovers.tried(&left, timestamp, held);
        }
        leftovers.end_of_pause(turn.removed == before);
        Ok(())
    }

    /// Removes something, if enough of the turn could be removed. What it waits for if it is still there.
    fn remove_one(&self, left: &Leftover, committed: u64, turn: &mut Turn<'_>, without: &mut WithoutEntries) -> Result<Option<Waits>> {
        if !turn.goes_on() {
            return Ok(Some(Waits::NoRoom));
        }
        let removal = self.remove_with(left, committed, (turn.horizon, turn.pins), without)?;
        match removal {
            Removal::Gone => turn.removed += 1,
            Removal::Needed | Removal::Busy => {}
            Removal::NotNow => turn.failed += 1,
        }
        Ok((removal != Removal::Gone).then(|| turn.waits(removal, left, committed)))
    }

    /// Forgets the versions of a row that is held, if no snapshot needs them any more.
    fn forget_row(&self, row: (u32, Rid), timestamp: u64, turn: &Turn<'_>) -> Result<bool> {
        let is_needed = self.core.versions.needed(row.0, row.1, turn.horizon)?.0;
        let waits = || turn.newest_before(timestamp).map_or(Waits::Busy, Waits::For);
        self.core.leftovers.tried_row(row, timestamp, is_needed.then(waits));
        Ok(!is_needed)
    }

    /// Removes one, left by the commit at `committed`, if it is still there.
    pub(super) fn remove_leftover(&self, left: &Leftover, committed: u64, horizon: &Horizon, pins: &Pins) -> Result<Removal> {
        self.remove_with(left, committed, (horizon, pins), &mut WithoutEntries::default())
    }

    fn remove_with(&self, left: &Leftover, committed: u64, needs: (&Horizon, &Pins), without: &mut WithoutEntries) -> Result<Removal> {
        // A record that found no room in the log would come when pages have changed already.
        let prepared = if self.core.writable { self.core.manager.prepare_log_to_free(Frees::Rows) } else { Ok(()) };
        match prepared.and_then(|()| self.try_to_remove(left, committed, needs, without)) {
            // What is damaged takes nothing else away: who needs the page meets the error, and whoever opens the database goes on.
            Err(error) if error.is_no_room() || error.is_damage() => Ok(Removal::NotNow),
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

    fn try_to_remove(
        &self,
        left: &Leftover,
        committed: u64,
        (horizon, pins): (&Horizon, &Pins),
        without: &mut WithoutEntries,
    ) -> Result<Removal> {
        match left {
            Leftover::Ghost { object_id, rid, kind } => {
                let ghost = Ghost { object_id: *object_id, rid: *rid, kind: *kind };
                self.remove_ghost(ghost, committed, (horizon, pins), without)
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

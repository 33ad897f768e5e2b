//! Room that running transactions may need to take their changes back.
//!
//! A row that a transaction has changed may have to become again what it was at any moment since. Two
//! things are kept for that until the transaction ends, and nobody else gets them: so a full disk never
//! fails a rollback.
//!
//! - On the page where the row lies: as many bytes as it takes to be as long again as it ever was in
//!   that time. Where rows lie by column that is not known, as a page is rebuilt meanwhile; there it is
//!   what a pointer takes, so that the row can move away.
//! - Where rows lie by column, bytes of pages yet to be taken, for the row to move to.
//!
//! Deleted rows need no such thing, as ghosts keep their bytes. Nothing of this is on disk: after a
//! crash the room is still there, since nobody was given it.
//!
//! Invariants:
//! - what is kept on a page is changed under its exclusive latch, and looked at under it; only the end
//!   of a transaction gives room free without;
//! - a row is changed by one running transaction at a time, so it has one entry at most. When the row
//!   goes to another page, by whomever it is moved, its entry goes with it;
//! - while changes are taken back, step by step, the entry stays: nobody gets the room in between.

use crate::Result;
use crate::data_set::DataSet;
use crate::hash::{self, FastMap};
use crate::transaction::TransactionState;
use pagefold_types::Rid;
use parking_lot::{Mutex, MutexGuard};
use std::collections::hash_map::Entry;
use std::sync::Arc;

const SHARDS: usize = 16;

/// A row: its table, and its RID at home.
type Row = (u32, Rid);

/// What is kept for a row.
#[derive(Debug)]
struct Kept {
    transaction: u64,
    /// Where the row lies.
    data_set: Arc<DataSet>,
    page: u32,
    bytes: usize,
    /// Bytes reserved for it of pages yet to be taken, and where.
    reserved: Option<(Arc<DataSet>, usize)>,
}

/// Everything kept in a database.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    shards: [Mutex<FastMap<Row, Kept>>; SHARDS],
}

impl Reservations {
    fn shard(&self, (object, rid): Row) -> MutexGuard<'_, FastMap<Row, Kept>> {
        self.shards[(hash::of_pair(object, rid.to_u64()) >> 60) as usize].lock()
    }

    /// Bytes kept for a row on the page where it lies; `None` when it has no entry.
    pub(crate) fn of_row(&self, row: Row) -> Option<usize> {
        self.shard(row).get(&row).map(|kept| kept.bytes)
    }

    /// Where pages are reserved for a row.
    pub(crate) fn reserve_of(&self, row: Row) -> Option<Arc<DataSet>> {
        self.shard(row).get(&row).and_then(|kept| kept.reserved.as_ref()).map(|(data_set, _)| Arc::clone(data_set))
    }

    /// Keeps `bytes` for a row that a transaction changes, on the page where it lies from now on. An entry that keeps nothing is not made.
    pub(crate) fn keep(&self, state: &TransactionState, row: Row, place: (&Arc<DataSet>, u32), bytes: usize) {
        let mut rows = self.shard(row);
        match rows.entry(row) {
            Entry::Occupied(mut entry) => {
                debug_assert_eq!(entry.get().transaction, state.id(), "a row that two transactions change");
                entry.get_mut().put(place, bytes);
            }
            Entry::Vacant(entry) if bytes > 0 => {
                place.0.keep(place.1, bytes as isize, 1);
                state.note_kept(row.0, row.1);
                entry.insert(Kept::new(state, place, bytes, None));
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Reserves so many bytes of pages yet to be taken for a row, which lies on a page that is latched, unless it has as many. How many more these are. `stays`: the row stays on that page, and so
    /// many bytes are kept for it there.
    ///
    /// # Errors
    /// When there is no room: nothing has happened then.
    pub(crate) fn reserve(
        &self,
        state: &TransactionState,
        row: Row,
        place: (&Arc<DataSet>, u32),
        stays: Option<usize>,
        last: &Arc<DataSet>,
        bytes: usize,
    ) -> Result<usize> {
        match self.shard(row).entry(row) {
            Entry::Occupied(mut entry) => {
                let kept = entry.get_mut();
                let (data_set, before) = kept.reserved.as_ref().map_or((last, 0), |(data_set, bytes)| (data_set, *bytes));
                let more = bytes.saturating_sub(before);
                if more > 0 {
                    drop(data_set.reserve(more)?);
                    kept.reserved = Some((Arc::clone(data_set), bytes));
                }
                if let Some(bytes) = stays {
                    kept.put(place, bytes);
                }
                Ok(more)
            }
            Entry::Vacant(entry) => {
                let (data_set, page) = place;
                let kept = Kept::new(state, place, stays.unwrap_or(0), Some((Arc::clone(last), bytes)));
                let mut space = last.reserve(bytes)?;
                if Arc::ptr_eq(last, data_set) {
                    space.keep(page, kept.bytes as isize, 1);
                } else {
                    drop(space);
                    data_set.keep(page, kept.bytes as isize, 1);
                }
                state.note_kept(row.0, row.1);
                entry.insert(kept);
                Ok(bytes)
            }
        }
    }

    /// A row lies on this page from now on, as it is or as it was before a change that is taken back; so many bytes are kept there, if anything is kept for it.
    pub(crate) fn moved(&self, row: Row, place: (&Arc<DataSet>, u32), bytes: usize) {
        if let Some(kept) = self.shard(row).get_mut(&row) {
            kept.put(place, bytes);
        }
    }

    /// There is no such row any more.
    pub(crate) fn forget(&self, row: Row) {
        if let Some(kept) = self.shard(row).remove(&row) {
            kept.end();
        }
    }

    /// The transaction is ended, and still has the locks of its rows.
    pub(crate) fn release(&self, state: &TransactionState) {
        for row in state.take_kept() {
            let mut rows = self.shard(row);
            if rows.get(&row).is_some_and(|kept| kept.transaction == state.id())
                && let Some(kept) = rows.remove(&row)
            {
                kept.end();
            }
        }
    }
}

impl Kept {
    fn new(
        state: &TransactionState,
        (data_set, page): (&Arc<DataSet>, u32),
        bytes: usize,
        reserved: Option<(Arc<DataSet>, usize)>,
    ) -> Kept {
        Kept { transaction: state.id(), data_set: Arc::clone(data_set), page, bytes, reserved }
    }

    fn put(&mut self, (data_set, page): (&Arc<DataSet>, u32), bytes: usize) {
        if Arc::ptr_eq(&self.data_set, data_set) && self.page == page {
            let more = bytes as isize - self.bytes as isize;
            if more != 0 {
                data_set.keep(page, more, 0);
            }
        } else {
            self.data_set.keep(self.page, -(self.bytes as isize), -1);
            data_set.keep(page, bytes as isize, 1);
            (self.data_set, self.page) = (Arc::clone(data_set), page);
        }
        self.bytes = bytes;
    }

    fn end(self) {
        let mut space = self.data_set.space();
        space.keep(self.page, -(self.bytes as isize), -1);
        if let Some((data_set, bytes)) = &self.reserved {
            if !Arc::ptr_eq(data_set, &self.data_set) {
                drop(space);
                space = data_set.space();
            }
            space.reserve(-(*bytes as i64));
        }
    }
}

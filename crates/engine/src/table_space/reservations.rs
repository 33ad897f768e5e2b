//! Room on pages that running transactions may need to take their changes back.
//!
//! A row that a transaction has changed may have to become again what it was at any moment since.
//! So on the page where it lies, as many bytes are kept free as it takes to be as long again as it
//! ever was in that time. Nobody else gets them before the transaction ends: taking a change back
//! finds its room where the row is, and a full disk never fails a rollback. Deleted rows need no such
//! thing, as ghosts keep their bytes. Nothing of this is on disk: after a crash the room is still
//! there, since nobody was given it.
//!
//! A page on which something is kept, be it no bytes, is not rebuilt: a row of its column part finds
//! its encoding as it was.
//!
//! Invariants:
//! - what is kept on a page is changed under its exclusive latch, and looked at under it; only the end
//!   of a transaction gives room free without;
//! - the free bytes of a page are at least those that are kept there;
//! - a row is changed by one running transaction at a time, so it has one entry at most. When the row
//!   goes to another page, by whomever it is moved, its entry goes with it;
//! - while changes are taken back, step by step, the entry stays: nobody gets the room in between.

use crate::data_set::DataSet;
use crate::transaction::{FastMap, TransactionState};
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
}

/// Everything kept in a database.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    shards: [Mutex<FastMap<Row, Kept>>; SHARDS],
}

/// Bytes that are to be kept for a row when it becomes shorter by `shrunk` bytes (longer, if that is
/// negative), and `kept` were until now.
pub(crate) fn kept_after(kept: usize, shrunk: isize) -> usize {
    kept.saturating_add_signed(shrunk)
}

impl Reservations {
    fn shard(&self, (object, rid): Row) -> MutexGuard<'_, FastMap<Row, Kept>> {
        let hash = (u64::from(object) ^ rid.to_u64()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.shards[(hash >> 60) as usize].lock()
    }

    /// Bytes kept for a row on the page where it lies; `None` when it has no entry.
    pub(crate) fn of_row(&self, object: u32, rid: Rid) -> Option<usize> {
        self.shard((object, rid)).get(&(object, rid)).map(|kept| kept.bytes)
    }

    /// A transaction changes a row, which lies on `page` from now on: it becomes shorter by `shrunk`
    /// bytes. Where nothing has to be kept, there is an entry only if `always` asks for one.
    pub(crate) fn change(
        &self,
        state: &TransactionState,
        (object, rid): Row,
        (data_set, page): (&Arc<DataSet>, u32),
        shrunk: isize,
        always: bool,
    ) {
        let mut rows = self.shard((object, rid));
        match rows.entry((object, rid)) {
            Entry::Occupied(mut entry) => {
                let kept = entry.get_mut();
                debug_assert_eq!(kept.transaction, state.id(), "a row that two transactions change");
                let bytes = kept_after(kept.bytes, shrunk);
                kept.put(data_set, page, bytes);
            }
            Entry::Vacant(entry) => {
                let bytes = kept_after(0, shrunk);
                if bytes > 0 || always {
                    data_set.space().keep(page, bytes as isize, 1);
                    entry.insert(Kept { transaction: state.id(), data_set: Arc::clone(data_set), page, bytes });
                    state.note_kept(object, rid);
                }
            }
        }
    }

    /// A change of a row is taken back where it lies: it becomes shorter by `shrunk` bytes.
    pub(crate) fn taken_back(&self, object: u32, rid: Rid, shrunk: isize) {
        if let Some(kept) = self.shard((object, rid)).get_mut(&(object, rid)) {
            let (data_set, bytes) = (Arc::clone(&kept.data_set), kept_after(kept.bytes, shrunk));
            kept.put(&data_set, kept.page, bytes);
        }
    }

    /// A row has been moved to another page, as it is.
    pub(crate) fn moved(&self, object: u32, rid: Rid, data_set: &Arc<DataSet>, page: u32) {
        if let Some(kept) = self.shard((object, rid)).get_mut(&(object, rid)) {
            kept.put(data_set, page, kept.bytes);
        }
    }

    /// There is no such row any more.
    pub(crate) fn forget(&self, object: u32, rid: Rid) {
        if let Some(kept) = self.shard((object, rid)).remove(&(object, rid)) {
            kept.drop_room();
        }
    }

    /// The transaction is ended, and still has the locks of its rows.
    pub(crate) fn release(&self, state: &TransactionState) {
        for row in state.take_kept() {
            let mut rows = self.shard(row);
            if rows.get(&row).is_some_and(|kept| kept.transaction == state.id())
                && let Some(kept) = rows.remove(&row)
            {
                kept.drop_room();
            }
        }
    }
}

impl Kept {
    fn put(&mut self, data_set: &Arc<DataSet>, page: u32, bytes: usize) {
        if Arc::ptr_eq(&self.data_set, data_set) && self.page == page {
            let more = bytes as isize - self.bytes as isize;
            if more != 0 {
                data_set.space().keep(page, more, 0);
            }
        } else {
            self.drop_room();
            data_set.space().keep(page, bytes as isize, 1);
            (self.data_set, self.page) = (Arc::clone(data_set), page);
        }
        self.bytes = bytes;
    }

    fn drop_room(&self) {
        self.data_set.space().keep(self.page, -(self.bytes as isize), -1);
    }
}

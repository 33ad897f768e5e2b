//! Where rows lie by column: pages that were taken for rows that moved while a change was taken back.
//!
//! Their room is kept, with the row that each was taken for, until its transaction has ended: so each page
//! that is reserved for taking back takes as many rows as it was reserved for.

use parking_lot::Mutex;

/// Partition and number.
type Place = (u16, u32);

/// Those of a table that may have room.
#[derive(Debug, Default)]
pub(super) struct UndoPages(Mutex<Vec<Place>>);

impl UndoPages {
    /// A page was taken.
    pub(super) fn add(&self, page: Place) {
        self.0.lock().push(page);
    }

    /// It has no room any more, or is one like any other.
    pub(super) fn remove(&self, page: Place) {
        self.0.lock().retain(|other| *other != page);
    }

    /// All of them, the last one first.
    pub(super) fn all(&self) -> Vec<Place> {
        self.0.lock().iter().rev().copied().collect()
    }
}

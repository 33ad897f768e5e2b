//! Where rows lie by column: pages that were taken for rows that moved while a change was taken back.
//!
//! Their room is kept, with the row that each was taken for, until its transaction has ended: so each page
//! that is reserved for taking back takes as many rows as it was reserved for.

use parking_lot::Mutex;

/// Those of a partition that may have room, by number.
#[derive(Debug, Default)]
pub(super) struct UndoPages(Mutex<Vec<u32>>);

impl UndoPages {
    /// A page was taken.
    pub(super) fn add(&self, page: u32) {
        self.0.lock().push(page);
    }

    /// It has no room any more, or is one like any other.
    pub(super) fn remove(&self, page: u32) {
        self.0.lock().retain(|other| *other != page);
    }

    /// All of them, the last one first.
    pub(super) fn all(&self) -> Vec<u32> {
        self.0.lock().iter().rev().copied().collect()
    }
}

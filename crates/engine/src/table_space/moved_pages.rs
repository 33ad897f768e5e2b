//! Where rows lie by column: the pages for rows that are away from home, and the room on each.
//!
//! Such pages take no other rows, as they cannot be brought into columns. What is known here comes from
//! changes since the table was opened: a page that is not known is one like any other, on which rows
//! are put by themselves.
//!
//! Invariant: a page that is known here is set apart in the space map, so that a search for room for other
//! rows does not find it.

use crate::data_set::DataSet;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Partition and number.
pub(super) type PlaceOfPage = (u16, u32);

/// So many pages with room are looked at before a new one is taken.
const CANDIDATES: usize = 8;

/// All of them, of a table.
#[derive(Debug, Default)]
pub(super) struct MovedPages(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Free bytes.
    free: BTreeMap<PlaceOfPage, usize>,
    /// The page that took a row last.
    last: PlaceOfPage,
}

impl MovedPages {
    /// A new page, with so many free bytes.
    pub(super) fn add(&self, data_set: &DataSet, page: PlaceOfPage, free: usize) {
        let mut known = self.0.lock();
        known.free.insert(page, free);
        known.last = page;
        data_set.space().set_apart(page.1, true);
    }

    /// If it is one of them, it has so many free bytes now; without rows it is one no longer.
    pub(super) fn note(&self, data_set: &DataSet, page: PlaceOfPage, free: usize, is_empty: bool) {
        match self.0.lock().free.get_mut(&page) {
            Some(known) if !is_empty => *known = free,
            Some(_) => {}
            None => return,
        }
        if is_empty {
            self.remove(data_set, page);
        }
    }

    /// It is one of them no longer.
    pub(super) fn remove(&self, data_set: &DataSet, page: PlaceOfPage) {
        if self.0.lock().free.remove(&page).is_some() {
            data_set.space().set_apart(page.1, false);
        }
    }

    /// Some with room for so many bytes, first the one that took a row last.
    pub(super) fn with_room(&self, bytes: usize) -> Vec<PlaceOfPage> {
        let known = self.0.lock();
        let order = known.free.range(known.last..).chain(known.free.range(..known.last));
        order.filter(|(_, free)| **free >= bytes).map(|(page, _)| *page).take(CANDIDATES).collect()
    }

    /// It takes a row.
    pub(super) fn took(&self, page: PlaceOfPage) {
        self.0.lock().last = page;
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_comes_first() {
        let pages = MovedPages::default();
        (1..=4).for_each(|page| _ = pages.0.lock().free.insert((0, page), 100));
        pages.took((0, 3));
        assert_eq!(pages.with_room(50), [(0, 3), (0, 4), (0, 1), (0, 2)]);
        pages.0.lock().free.insert((0, 3), 40);
        assert_eq!(pages.with_room(50), [(0, 4), (0, 1), (0, 2)]);
        assert_eq!(pages.with_room(101), []);
    }
}

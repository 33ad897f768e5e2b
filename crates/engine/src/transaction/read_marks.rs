//! Marks of what serializable transactions have read (SIREAD locks: Cahill, Röhm, Fekete 2008): rows, pages, objects, key ranges.
//!
//! Invariants:
//! - A mark never gets weaker while its owner is kept: it is replaced only by one that covers it. Too coarse a mark costs a needless
//!   abort, a lost one would cost serializability.
//! - The tables by target and the lists by owner have the same marks.
//! - An owner has at most [`MarkLimits::per_transaction`] marks, and one for each object that it has read as a whole.

use super::hash::FastMap;
use pagefold_types::Rid;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

/// When marks are made coarser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLimits {
    /// A transaction that has read more rows of a page has read the page.
    pub rows_per_page: usize,
    /// One that has more marks within a table, or key ranges within an index, has read it all.
    pub per_object: usize,
    /// One that has more marks altogether has read all of the objects where it has most of them.
    pub per_transaction: usize,
    /// Marks of all transactions together; above, those of committed ones are thrown together.
    pub total: usize,
    /// Committed transactions kept apart; above, the older half of them is thrown together.
    pub committed: usize,
}

impl Default for MarkLimits {
    fn default() -> MarkLimits {
        MarkLimits { rows_per_page: 8, per_object: 1024, per_transaction: 8192, total: 1 << 18, committed: 1024 }
    }
}

/// Bounds of a key range.
pub(super) type Range = (Bound<Box<[u8]>>, Bound<Box<[u8]>>);

#[derive(Debug, Clone)]
enum PageMarks {
    Whole,
    Slots(Vec<u16>),
}

#[derive(Debug, Clone)]
enum ObjectMarks {
    Whole,
    Parts(Parts),
}

#[derive(Debug, Clone, Default)]
struct Parts {
    pages: FastMap<u64, PageMarks>,
    keys: BTreeSet<Box<[u8]>>,
    ranges: Vec<Range>,
    count: usize,
}

#[derive(Debug, Default)]
struct Owner {
    objects: FastMap<u32, ObjectMarks>,
    count: usize,
}

#[derive(Debug, Default)]
struct IndexMarks {
    keys: BTreeMap<Box<[u8]>, Vec<u64>>,
    ranges: Vec<(Range, u64)>,
}

/// All marks.
#[derive(Debug)]
pub(super) struct ReadMarks {
    limits: MarkLimits,
    owners: FastMap<u64, Owner>,
    objects: FastMap<u32, Vec<u64>>,
    /// By page of the RID.
    pages: FastMap<(u32, u64), Vec<u64>>,
    rows: FastMap<(u32, u64), Vec<u64>>,
    indexes: FastMap<u32, IndexMarks>,
    /// Sum of the owners' counts.
    total: usize,
}

fn page_of(rid: u64) -> u64 {
    rid >> 12
}

fn take_out<K: std::hash::Hash + Eq>(map: &mut FastMap<K, Vec<u64>>, key: &K, owner: u64) {
    if let Some(owners) = map.get_mut(key) {
        owners.retain(|&other| crate::steps::stepping(other) != owner);
        if owners.is_empty() {
            map.remove(key);
        }
    }
}

impl ReadMarks {
    pub(super) fn new(limits: MarkLimits) -> ReadMarks {
        ReadMarks {
            limits,
            owners: FastMap::default(),
            objects: FastMap::default(),
            pages: FastMap::default(),
            rows: FastMap::default(),
            indexes: FastMap::default(),
            total: 0,
        }
    }

    /// Number of marks of all owners.
    pub(super) fn len(&self) -> usize {
        self.total
    }

    /// Whether the tables by target are empty.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.pages.is_empty() && self.rows.is_empty() && self.indexes.is_empty() && self.owners.is_empty()
    }

    /// The parts of an object that the owner has marked; `None` when it has marked the whole.
    fn parts(&mut self, owner: u64, object: u32) -> Option<&mut Parts> {
        let owner = self.owners.entry(owner).or_default();
        match owner.objects.entry(object).or_insert_with(|| ObjectMarks::Parts(Parts::default())) {
            ObjectMarks::Whole => None,
            ObjectMarks::Parts(parts) => Some(parts),
        }
    }

    pub(super) fn mark_row(&mut self, owner: u64, object: u32, rid: Rid) {
        let limit = self.limits.rows_per_page;
        let (rid, slot) = (rid.to_u64(), rid.slot());
        let page = page_of(rid);
        let Some(parts) = self.parts(owner, object) else { return };
        let slots = match parts.pages.entry(page).or_insert_with(|| PageMarks::Slots(Vec::new())) {
            PageMarks::Whole => return,
            PageMarks::Slots(slots) => slots,
        };
        if slots.contains(&slot) {
            return;
        }
        if slots.len() < limit {
            slots.push(slot);
            self.rows.entry((object, rid)).or_default().push(owner);
            self.added(owner, object);
        } else {
            self.mark_page(owner, object, page);
        }
    }

    fn mark_page(&mut self, owner: u64, object: u32, page: u64) {
        let Some(parts) = self.parts(owner, object) else { return };
        let Some(PageMarks::Slots(slots)) = parts.pages.insert(page, PageMarks::Whole) else { return };
        self.pages.entry((object, page)).or_default().push(owner);
        for &slot in &slots {
            take_out(&mut self.rows, &(object, page << 12 | u64::from(slot)), owner);
        }
        self.removed(owner, object, slots.len());
        self.added(owner, object);
    }

    pub(super) fn mark_object(&mut self, owner: u64, object: u32) {
        let owned = self.owners.entry(owner).or_default();
        match owned.objects.insert(object, ObjectMarks::Whole) {
            Some(ObjectMarks::Whole) => return,
            Some(ObjectMarks::Parts(parts)) => {
                owned.count -= parts.count;
                self.total -= parts.count;
                self.unlist(owner, object, &parts);
            }
            None => {}
        }
        self.objects.entry(object).or_default().push(owner);
        self.total += 1;
    }

    pub(super) fn mark_range(&mut self, owner: u64, index: u32, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        let Some(parts) = self.parts(owner, index) else { return };
        match (low, high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => {
                if parts.keys.contains(low) {
                    return;
                }
                parts.keys.insert(low.into());
                self.indexes.entry(index).or_default().keys.entry(low.into()).or_default().push(owner);
            }
            _ => {
                let range: Range = (low.map(Box::from), high.map(Box::from));
                if parts.ranges.last() == Some(&range) {
                    return;
                }
                parts.ranges.push(range.clone());
                self.indexes.entry(index).or_default().ranges.push((range, owner));
            }
        }
        self.added(owner, index);
    }

    /// Owners that have read the row, or the page or table that it lies in. One may come several times.
    pub(super) fn readers_of_row(&self, object: u32, rid: Rid) -> Vec<u64> {
        let rid = rid.to_u64();
        let found = [self.rows.get(&(object, rid)), self.pages.get(&(object, page_of(rid))), self.objects.get(&object)];
        found.into_iter().flatten().flatten().copied().collect()
    }

    /// Owners that have looked for the key, whether it was there or not. One may come several times.
    pub(super) fn readers_of_key(&self, index: u32, key: &[u8]) -> Vec<u64> {
        let mut readers = self.objects.get(&index).cloned().unwrap_or_default();
        if let Some(marks) = self.indexes.get(&index) {
            readers.extend(marks.keys.get(key).into_iter().flatten());
            let covering = marks.ranges.iter().map(crate::steps::stepping).filter(|(range, _)| contains(range, key));
            readers.extend(covering.map(|&(_, owner)| owner));
        }
        readers
    }

    /// Takes all marks of an owner away.
    pub(super) fn remove(&mut self, owner: u64) {
        let Some(owned) = self.owners.remove(&owner) else { return };
        self.total -= owned.count;
        for (object, marks) in owned.objects {
            match marks {
                ObjectMarks::Whole => {
                    take_out(&mut self.objects, &object, owner);
                    self.total -= 1;
                }
                ObjectMarks::Parts(parts) => self.unlist(owner, object, &parts),
            }
        }
    }

    /// Gives all marks of an owner to another one.
    pub(super) fn hand_over(&mut self, from: u64, to: u64) {
        let Some(owned) = self.owners.get(&from) else { return };
        let objects = owned.objects.clone();
        self.remove(from);
        for (object, marks) in objects {
            match marks {
                ObjectMarks::Whole => self.mark_object(to, object),
                ObjectMarks::Parts(parts) => {
                    for (page, marks) in parts.pages {
                        match marks {
                            PageMarks::Whole => self.hand_over_page(to, object, page),
                            PageMarks::Slots(slots) => {
                                slots
                                    .iter()
                                    .filter_map(|&slot| Rid::from_u64(page << 12 | u64::from(slot)))
                                    .for_each(|rid| self.mark_row(to, object, rid));
                            }
                        }
                    }
                    for key in parts.keys {
                        self.mark_range(to, object, Bound::Included(&key), Bound::Included(&key));
                    }
                    for (low, high) in parts.ranges {
                        self.mark_range(to, object, low.as_ref().map(AsRef::as_ref), high.as_ref().map(AsRef::as_ref));
                    }
                }
            }
        }
    }

    fn hand_over_page(&mut self, to: u64, object: u32, page: u64) {
        let Some(parts) = self.parts(to, object) else { return };
        parts.pages.entry(page).or_insert_with(|| PageMarks::Slots(Vec::new()));
        self.mark_page(to, object, page);
    }

    /// Removes parts from the tables by target.
    fn unlist(&mut self, owner: u64, object: u32, parts: &Parts) {
        for (&page, marks) in &parts.pages {
            match marks {
                PageMarks::Whole => take_out(&mut self.pages, &(object, page), owner),
                PageMarks::Slots(slots) => {
                    slots.iter().for_each(|&slot| take_out(&mut self.rows, &(object, page << 12 | u64::from(slot)), owner));
                }
            }
        }
        if parts.keys.is_empty() && parts.ranges.is_empty() {
            return;
        }
        let Some(marks) = self.indexes.get_mut(&object) else { return };
        for key in &parts.keys {
            if let Some(owners) = marks.keys.get_mut(key) {
                owners.retain(|&other| crate::steps::stepping(other) != owner);
                if owners.is_empty() {
                    marks.keys.remove(key);
                }
            }
        }
        if !parts.ranges.is_empty() {
            marks.ranges.retain(|&(_, other)| crate::steps::stepping(other) != owner);
        }
        if marks.keys.is_empty() && marks.ranges.is_empty() {
            self.indexes.remove(&object);
        }
    }

    fn removed(&mut self, owner: u64, object: u32, marks: usize) {
        if let Some(parts) = self.parts(owner, object) {
            parts.count -= marks;
        }
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.count -= marks;
        }
        self.total -= marks;
    }

    /// Counts one more mark, and makes marks coarser where there are too many.
    fn added(&mut self, owner: u64, object: u32) {
        self.total += 1;
        let Some(owned) = self.owners.get_mut(&owner) else { return };
        owned.count += 1;
        if let Some(ObjectMarks::Parts(parts)) = owned.objects.get_mut(&object) {
            parts.count += 1;
            if parts.count > self.limits.per_object {
                return self.mark_object(owner, object);
            }
        }
        if owned.count > self.limits.per_transaction {
            let parts = owned.objects.iter().filter_map(|(&object, marks)| match marks {
                ObjectMarks::Parts(parts) => Some((parts.count, object)),
                ObjectMarks::Whole => None,
            });
            if let Some((_, most)) = parts.max() {
                self.mark_object(owner, most);
            }
        }
    }
}

fn contains((low, high): &Range, key: &[u8]) -> bool {
    let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (low.as_ref().map(AsRef::as_ref), high.as_ref().map(AsRef::as_ref));
    RangeBounds::<[u8]>::contains(&bounds, key)
}

//! Marks of what serializable transactions have read (SIREAD locks: Cahill, Röhm, Fekete 2008): rows, pages, objects, key ranges.
//!
//! Invariants:
//! - A mark never gets weaker while its owner is kept: it is replaced only by one that covers it. Too coarse a mark costs a needless
//!   abort, a lost one would cost serializability.
//! - The tables by target and the lists by owner have the same marks.
//! - Ranges of one owner within an index do not meet: those that do become one, which covers the same keys.
//! - An owner has at most [`MarkLimits::per_transaction`] marks, and one for each object that it has read as a whole.

use super::interval_tree::{Cut, IntervalTree};
use crate::hash::FastMap;
use crate::steps::step;
use pagefold_types::Rid;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

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

/// Owners of marks on one target: mostly it is one.
#[derive(Debug)]
enum Owners {
    One(u64),
    Many(BTreeSet<u64>),
}

impl Owners {
    fn add(&mut self, owner: u64) {
        match self {
            Owners::One(first) => *self = Owners::Many(BTreeSet::from([*first, owner])),
            Owners::Many(owners) => _ = owners.insert(owner),
        }
    }

    /// True when nobody is left.
    fn take_out(&mut self, owner: u64) -> bool {
        step();
        match self {
            Owners::One(only) => *only == owner,
            Owners::Many(owners) => owners.remove(&owner) && owners.is_empty(),
        }
    }

    fn append_to(&self, all: &mut Vec<u64>) {
        match self {
            Owners::One(owner) => all.push(*owner),
            Owners::Many(owners) => all.extend(owners),
        }
    }
}

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
    /// By their low ends.
    ranges: BTreeMap<Cut, Cut>,
    count: usize,
}

#[derive(Debug, Default)]
struct Owner {
    objects: FastMap<u32, ObjectMarks>,
    count: usize,
}

#[derive(Debug, Default)]
struct IndexMarks {
    keys: BTreeMap<Box<[u8]>, Owners>,
    ranges: IntervalTree,
}

/// All marks.
#[derive(Debug)]
pub(super) struct ReadMarks {
    limits: MarkLimits,
    owners: FastMap<u64, Owner>,
    objects: FastMap<u32, Owners>,
    /// By page of the RID.
    pages: FastMap<(u32, u64), Owners>,
    rows: FastMap<(u32, u64), Owners>,
    indexes: FastMap<u32, IndexMarks>,
    /// Sum of the owners' counts.
    total: usize,
}

fn page_of(rid: u64) -> u64 {
    rid >> 12
}

fn put_in<K: std::hash::Hash + Eq>(map: &mut FastMap<K, Owners>, key: K, owner: u64) {
    map.entry(key).and_modify(|owners| owners.add(owner)).or_insert(Owners::One(owner));
}

fn take_out<K: std::hash::Hash + Eq>(map: &mut FastMap<K, Owners>, key: &K, owner: u64) {
    if map.get_mut(key).is_some_and(|owners| owners.take_out(owner)) {
        map.remove(key);
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
            put_in(&mut self.rows, (object, rid), owner);
            self.added(owner, object);
        } else {
            self.mark_page(owner, object, page);
        }
    }

    fn mark_page(&mut self, owner: u64, object: u32, page: u64) {
        let Some(parts) = self.parts(owner, object) else { return };
        let Some(PageMarks::Slots(slots)) = parts.pages.insert(page, PageMarks::Whole) else { return };
        put_in(&mut self.pages, (object, page), owner);
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
        put_in(&mut self.objects, object, owner);
        self.total += 1;
    }

    /// All keys of a range of an index; or one key, both bounds included and equal.
    pub(super) fn mark_range(&mut self, owner: u64, index: u32, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        match (low, high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => self.mark_key(owner, index, low),
            _ => self.mark_between(owner, index, Cut::low(low), Cut::high(high)),
        }
    }

    fn mark_key(&mut self, owner: u64, index: u32, key: &[u8]) {
        let Some(parts) = self.parts(owner, index) else { return };
        if parts.keys.contains(key) {
            return;
        }
        parts.keys.insert(key.into());
        let owners = &mut self.indexes.entry(index).or_default().keys;
        owners.entry(key.into()).and_modify(|owners| owners.add(owner)).or_insert(Owners::One(owner));
        self.added(owner, index);
    }

    fn mark_between(&mut self, owner: u64, index: u32, mut low: Cut, mut high: Cut) {
        if low >= high {
            return;
        }
        let Some(parts) = self.parts(owner, index) else { return };
        if let Some((before, until)) = parts.ranges.range(..=&low).next_back().filter(|(_, until)| **until >= low) {
            if *until >= high {
                return;
            }
            low = before.clone();
        }
        let met: Vec<(Cut, Cut)> = parts.ranges.range(&low..=&high).map(|(low, high)| (low.clone(), high.clone())).collect();
        met.iter().for_each(|(low, _)| _ = parts.ranges.remove(low));
        if let Some((_, last)) = met.last() {
            high = high.max(last.clone());
        }
        parts.ranges.insert(low.clone(), high.clone());
        let ranges = &mut self.indexes.entry(index).or_default().ranges;
        met.iter().for_each(|(low, _)| ranges.remove(low, owner));
        ranges.insert(low, high, owner);
        self.removed(owner, index, met.len());
        self.added(owner, index);
    }

    /// Owners that have read the row, or the page or table that it lies in. One may come several times.
    pub(super) fn readers_of_row(&self, object: u32, rid: Rid) -> Vec<u64> {
        let rid = rid.to_u64();
        let found = [self.rows.get(&(object, rid)), self.pages.get(&(object, page_of(rid))), self.objects.get(&object)];
        let mut readers = Vec::new();
        found.into_iter().flatten().for_each(|owners| owners.append_to(&mut readers));
        readers
    }

    /// Owners that have looked for the key, whether it was there or not. One may come several times.
    pub(super) fn readers_of_key(&self, index: u32, key: &[u8]) -> Vec<u64> {
        let mut readers = Vec::new();
        if let Some(owners) = self.objects.get(&index) {
            owners.append_to(&mut readers);
        }
        if let Some(marks) = self.indexes.get(&index) {
            if let Some(owners) = marks.keys.get(key) {
                owners.append_to(&mut readers);
            }
            marks.ranges.containing(key, |owner| readers.push(owner));
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
                        self.mark_key(to, object, &key);
                    }
                    for (low, high) in parts.ranges {
                        self.mark_between(to, object, low, high);
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
            if marks.keys.get_mut(key).is_some_and(|owners| owners.take_out(owner)) {
                marks.keys.remove(key);
            }
        }
        parts.ranges.keys().for_each(|low| marks.ranges.remove(low, owner));
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

//! What a change of a leaf would take, before it is made.
//!
//! Invariant: a plan looks at the entry, its two neighbours and the header. Only an insert of a slot larger than any before (on a leaf that folds) looks at all entries: RIDs then
//! take more bits all over the leaf. The encoder is never called.

use super::header::FOLDED_PAGE_BYTES;
use super::leaf::{Leaf, Place, rid_lower_bound};
use crate::FormatError;
use pagefold_codec::index::cost::{Neighbour, count_cost, entry_cost, first_rid_cost, joint_cost, next_rid_cost};
use pagefold_codec::index::layout::{Entry, MAP_BYTES, RID_BYTES, Shape};
use pagefold_codec::index::slot_bits_for;
use pagefold_types::Rid;

/// An insert, worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsertPlan {
    /// Where the RID goes.
    pub place: Place,
    /// As an entry of its own, or into the RID list of the entry at `place`.
    pub new_entry: bool,
    /// Bytes that entries and key map grow by.
    pub bytes: usize,
    /// Folded size afterwards; 0 unless the leaf folds.
    pub folded_bytes: usize,
    /// Slot bits afterwards.
    pub slot_bits: u8,
}

impl InsertPlan {
    /// Does the leaf take it, in memory and, if it folds, on disk?
    #[inline]
    #[must_use]
    pub fn fits(&self, leaf: &Leaf<'_>) -> bool {
        self.bytes <= leaf.free_bytes() && self.folded_bytes <= FOLDED_PAGE_BYTES
    }
}

/// Folded bytes of all entries, header not included.
pub(super) fn body_cost<'a>(shape: Shape, entries: impl Iterator<Item = Entry<'a>>) -> usize {
    let mut before = Neighbour::NONE;
    entries
        .map(|entry| {
            let cost = entry_cost(shape, before, &entry);
            before = Neighbour::of(&entry);
            cost
        })
        .sum()
}

pub(super) fn check_key(shape: Shape, key: &[u8]) -> Result<(), FormatError> {
    let fixed = usize::from(shape.fixed_key_bytes);
    if fixed != 0 && key.len() != fixed {
        return Err(FormatError::new(format!("key of {} bytes in an index of {fixed}-byte keys", key.len())));
    }
    if key.len() > usize::from(u16::MAX) {
        return Err(FormatError::new("key longer than a page"));
    }
    Ok(())
}

impl<'a> Leaf<'a> {
    fn neighbour_before(&self, entry: usize) -> Neighbour<'a> {
        entry.checked_sub(1).map_or(Neighbour::NONE, |i| Neighbour::of(&self.entry(i)))
    }

    /// Works out an insert. In a unique index it is the caller who refuses a second RID of a key.
    ///
    /// # Errors
    /// When (key, RID) is there already, or the key has a wrong length.
    pub fn plan_insert(&self, key: &[u8], rid: Rid) -> Result<InsertPlan, FormatError> {
        check_key(self.shape, key)?;
        let (entry, found) = if self.shape.single {
            let (place, found) = self.lower_bound_rid(key, rid);
            if found {
                return Err(already());
            }
            (place.entry, false)
        } else {
            self.lower_bound(key)
        };
        let old = self.entry(entry);
        if found && old.rid_count() == 0 {
            return Err(FormatError::new("an entry without RIDs"));
        }
        let at = if found {
            let (at, there) = rid_lower_bound(old.rids, rid);
            if there {
                return Err(already());
            }
            at
        } else {
            0
        };
        let bytes = if found { RID_BYTES } else { self.shape.entry_bytes(key.len(), 1) + MAP_BYTES };
        let mut plan =
            InsertPlan { place: Place { entry, rid: at }, new_entry: !found, bytes, folded_bytes: 0, slot_bits: self.shape.slot_bits };
        if self.folds() {
            plan.slot_bits = self.shape.slot_bits.max(slot_bits_for(rid.slot()));
            let shape = Shape { slot_bits: plan.slot_bits, ..self.shape };
            let base = if plan.slot_bits == self.shape.slot_bits {
                self.folded_bytes()
            } else {
                super::header::LEAF_HEADER_BYTES + body_cost(shape, self.entries())
            };
            let (more, less) = if found { self.list_change(shape, entry, at, rid) } else { self.entry_change(shape, entry, key, rid) };
            plan.folded_bytes = (base + more).saturating_sub(less);
        }
        Ok(plan)
    }

    /// What a new entry in front of entry `i` adds to the fold, and what it takes away.
    fn entry_change(&self, shape: Shape, i: usize, key: &[u8], rid: Rid) -> (usize, usize) {
        let before = self.neighbour_before(i);
        let rid = rid.to_u64();
        let mut more = joint_cost(shape, before, key, rid) + count_cost(shape, 1);
        let mut less = 0;
        if i < self.entries {
            let next = self.entry(i);
            more += joint_cost(shape, Neighbour { key, last_rid: rid }, next.key, next.rid(0));
            less += joint_cost(shape, before, next.key, next.rid(0));
        }
        (more, less)
    }

    /// What a RID in front of RID `at` of entry `i` adds to the fold, and what it takes away.
    fn list_change(&self, shape: Shape, i: usize, at: usize, rid: Rid) -> (usize, usize) {
        let entry = self.entry(i);
        let n = entry.rid_count();
        let rid = rid.to_u64();
        let mut more = count_cost(shape, n + 1);
        let mut less = count_cost(shape, n);
        if at == 0 {
            let before = self.neighbour_before(i).last_rid;
            more += first_rid_cost(shape, before, rid);
            less += first_rid_cost(shape, before, entry.rid(0));
        } else {
            more += next_rid_cost(shape, entry.rid(at - 1), rid);
        }
        if at < n {
            more += next_rid_cost(shape, rid, entry.rid(at));
            if at > 0 {
                less += next_rid_cost(shape, entry.rid(at - 1), entry.rid(at));
            }
        } else if i + 1 < self.entries {
            let next = self.entry(i + 1).rid(0);
            more += first_rid_cost(shape, rid, next);
            less += first_rid_cost(shape, entry.rid(n - 1), next);
        }
        (more, less)
    }

    /// The place of (key, RID) and the folded size without it.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn plan_remove(&self, key: &[u8], rid: Rid) -> Result<(Place, usize), FormatError> {
        let (place, found) = self.lower_bound_rid(key, rid);
        if !found {
            return Err(FormatError::new(format!("no entry with RID {rid} for this key")));
        }
        if !self.folds() {
            return Ok((place, 0));
        }
        // The change is that of inserting it into what would be left, the other way round.
        let shape = self.shape;
        let i = place.entry;
        let entry = self.entry(i);
        let n = entry.rid_count();
        let before = self.neighbour_before(i);
        let (mut more, mut less) = (0, 0);
        if n <= 1 {
            less += joint_cost(shape, before, entry.key, entry.rid(0)) + count_cost(shape, 1);
            if i + 1 < self.entries {
                let next = self.entry(i + 1);
                less += joint_cost(shape, Neighbour::of(&entry), next.key, next.rid(0));
                more += joint_cost(shape, before, next.key, next.rid(0));
            }
        } else {
            less += count_cost(shape, n);
            more += count_cost(shape, n - 1);
            let at = place.rid;
            if at == 0 {
                less += first_rid_cost(shape, before.last_rid, entry.rid(0));
                more += first_rid_cost(shape, before.last_rid, entry.rid(1));
            } else {
                less += next_rid_cost(shape, entry.rid(at - 1), entry.rid(at));
            }
            if at + 1 < n {
                less += next_rid_cost(shape, entry.rid(at), entry.rid(at + 1));
                if at > 0 {
                    more += next_rid_cost(shape, entry.rid(at - 1), entry.rid(at + 1));
                }
            } else if i + 1 < self.entries {
                let next = self.entry(i + 1).rid(0);
                less += first_rid_cost(shape, entry.rid(n - 1), next);
                more += first_rid_cost(shape, entry.rid(n - 2), next);
            }
        }
        Ok((place, (self.folded_bytes() + more).saturating_sub(less)))
    }
}

fn already() -> FormatError {
    FormatError::new("this key and RID are there already")
}

//! Ranges of slots whose rows lie on another page, and of slots that hold rows of another page.
//!
//! Layout: `docs/file-format.md`, "Version 2: with a column part". A page that has no room for its rows any
//! more forwards some of its slots as a range: their rows lie in slots of another page, which hosts them.
//! Each of the two pages has the range in its table, which names the other one. A row costs nothing by that.
//!
//! Invariants of a valid table:
//! - ranges ascend by their first slot and do not overlap; all their slots are below the slot count;
//! - a range has at least one slot, and the slots there are slots, too.

use crate::FormatError;
use crate::page::{get_u16, put_u16};
use pagefold_types::{RID_BYTES, Rid, SLOT_MAX};

/// Bytes of a range: first slot and flag, number of slots, RID of the first one there, 0.
pub const RANGE_BYTES: usize = 12;
const _: () = assert!(2 + 2 + RID_BYTES + 1 == RANGE_BYTES);

const HOSTED: u16 = 1 << 15;

/// A range of slots of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot.
    pub first: u16,
    /// How many.
    pub count: u16,
    /// The rows are of another page, which is their home; else they lie on another page.
    pub hosted: bool,
    /// The slot there of the first one: its home, or where it lies.
    pub there: Rid,
}

impl SlotRange {
    /// As in the table. The last byte is not looked at.
    #[must_use]
    pub fn from_bytes(bytes: [u8; RANGE_BYTES]) -> SlotRange {
        let word = get_u16(&bytes, 0);
        let mut there = [0; RID_BYTES];
        there.copy_from_slice(&bytes[4..4 + RID_BYTES]);
        SlotRange { first: word & SLOT_MAX, count: get_u16(&bytes, 2), hosted: word & HOSTED != 0, there: Rid::from_bytes(there) }
    }

    /// As in the table.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RANGE_BYTES] {
        let mut bytes = [0; RANGE_BYTES];
        put_u16(&mut bytes, 0, self.first | if self.hosted { HOSTED } else { 0 });
        put_u16(&mut bytes, 2, self.count);
        bytes[4..4 + RID_BYTES].copy_from_slice(&self.there.to_bytes());
        bytes
    }

    /// The slot behind its last one.
    #[must_use]
    pub fn end(&self) -> u16 {
        self.first.saturating_add(self.count)
    }

    /// Is the slot one of it?
    #[must_use]
    pub fn contains(&self, slot: u16) -> bool {
        (self.first..self.end()).contains(&slot)
    }

    /// The slot there of one of its slots.
    #[must_use]
    pub fn there(&self, slot: u16) -> Rid {
        let slot = self.there.slot().saturating_add(slot.saturating_sub(self.first)).min(SLOT_MAX);
        Rid::new(self.there.partition(), self.there.page(), slot)
    }

    /// The same range as the other page has it, when this one has that RID.
    #[must_use]
    pub fn seen_from_there(&self, partition: u16, page: u32) -> SlotRange {
        SlotRange { first: self.there.slot(), count: self.count, hosted: !self.hosted, there: Rid::new(partition, page, self.first) }
    }
}

/// The table of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRanges<'a> {
    bytes: &'a [u8],
}

impl<'a> SlotRanges<'a> {
    /// These bytes; what is left behind the last whole range is not looked at.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> SlotRanges<'a> {
        SlotRanges { bytes }
    }

    /// How many.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / RANGE_BYTES
    }

    /// None?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn raw(&self, index: usize) -> Option<&'a [u8; RANGE_BYTES]> {
        self.bytes.as_chunks().0.get(index)
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = SlotRange> + use<'a> {
        self.bytes.as_chunks().0.iter().map(|bytes| SlotRange::from_bytes(*bytes))
    }

    /// The range of a slot, as it lies in the table.
    #[inline]
    #[must_use]
    pub(super) fn raw_of(&self, slot: u16) -> Option<&'a [u8; RANGE_BYTES]> {
        if self.is_empty() {
            return None;
        }
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            if self.raw(middle).is_some_and(|bytes| get_u16(bytes, 0) & SLOT_MAX <= slot) { from = middle + 1 } else { to = middle }
        }
        self.raw(from.checked_sub(1)?).filter(|bytes| SlotRange::from_bytes(**bytes).contains(slot))
    }

    /// The range of a slot.
    #[inline]
    #[must_use]
    pub fn of(&self, slot: u16) -> Option<SlotRange> {
        self.raw_of(slot).map(|bytes| SlotRange::from_bytes(*bytes))
    }

    /// Slots of the ranges that are hosted, or of those that are not.
    #[must_use]
    pub fn slots(&self, hosted: bool) -> usize {
        self.iter().filter(|range| range.hosted == hosted).map(|range| usize::from(range.count)).sum()
    }

    /// Checks the invariants named at the top of this file.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self, slots: u16) -> Result<(), FormatError> {
        let mut end = 0;
        for range in self.iter() {
            let last_there = u32::from(range.there.slot()) + u32::from(range.count);
            let last = u32::from(range.first) + u32::from(range.count);
            if range.count == 0 || range.first < end || last > u32::from(slots) || last_there > u32::from(SLOT_MAX) + 1 {
                return Err(FormatError::new(format!(
                    "range of {} slots from {} on, there {}, among {slots} slots and behind {end}",
                    range.count, range.first, range.there
                )));
            }
            end = range.end();
        }
        if self
            .bytes
            .as_chunks::<RANGE_BYTES>()
            .0
            .iter()
            .any(|bytes| bytes[RANGE_BYTES - 1] != 0 || get_u16(bytes, 0) & !(HOSTED | SLOT_MAX) != 0)
        {
            return Err(FormatError::new("range with bits that mean nothing"));
        }
        Ok(())
    }
}

/// Appends ranges as they lie in a table.
pub fn put_ranges(ranges: &[SlotRange], out: &mut Vec<u8>) {
    ranges.iter().for_each(|range| out.extend_from_slice(&range.to_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ranges: &[SlotRange]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_ranges(ranges, &mut bytes);
        bytes
    }

    #[test]
    fn slots_and_their_ranges() {
        let forwarded = SlotRange { first: 3, count: 4, hosted: false, there: Rid::new(1, 70, 9) };
        let hosted = SlotRange { first: 10, count: 1, hosted: true, there: Rid::new(0, 5, 0) };
        let bytes = table(&[forwarded, hosted]);
        let ranges = SlotRanges::new(&bytes);
        ranges.validate(11).unwrap();
        for slot in 0..20 {
            let expected = [forwarded, hosted].into_iter().find(|range| range.contains(slot));
            assert_eq!(ranges.of(slot), expected, "{slot}");
        }
        assert_eq!(forwarded.there(5), Rid::new(1, 70, 11));
        assert_eq!(forwarded.seen_from_there(0, 8), SlotRange { first: 9, count: 4, hosted: true, there: Rid::new(0, 8, 3) });
        assert_eq!((ranges.slots(false), ranges.slots(true)), (4, 1));
        assert!(SlotRanges::new(&[]).of(0).is_none());
    }

    #[test]
    fn what_no_table_has() {
        let range = |first, count, slot| SlotRange { first, count, hosted: false, there: Rid::new(0, 2, slot) };
        let refused = |ranges: &[SlotRange], slots| SlotRanges::new(&table(ranges)).validate(slots).is_err();
        assert!(!refused(&[range(0, 2, 0), range(2, 1, SLOT_MAX)], 3));
        assert!(refused(&[range(0, 0, 0)], 3), "no slots");
        assert!(refused(&[range(0, 4, 0)], 3), "beyond the page's");
        assert!(refused(&[range(0, 2, 0), range(1, 1, 0)], 3), "one in another");
        assert!(refused(&[range(2, 1, 0), range(0, 1, 0)], 3), "out of order");
        assert!(refused(&[range(0, 2, SLOT_MAX)], 3), "beyond the other page's");
        let mut bytes = table(&[range(0, 1, 0)]);
        bytes[RANGE_BYTES - 1] = 1;
        assert!(SlotRanges::new(&bytes).validate(3).is_err());
    }
}

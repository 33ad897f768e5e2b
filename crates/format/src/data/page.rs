//! Read-only view of a data page.
//!
//! Layout: `docs/file-format.md`, "Data page". Rows grow up from the header, slots grow down from the end of the page.
//!
//! Invariants of a valid page:
//! - every used slot's row lies in `DATA_HEADER_BYTES..low_end`, and rows do not overlap: their lengths and the garbage add up to that area;
//! - a free slot is four zero bytes; the last slot is not free (trailing free slots are cut off);
//! - a slot without kind bits but with an offset holds a ghost: a deleted row whose bytes are kept until nobody can need them;
//! - a slot keeps its number as long as its row lives.

use crate::FormatError;
use crate::page::{self, HEADER_BYTES, get_u16};

/// Bytes of the data page header: the common one and the dictionary version, and the number of rows.
pub const DATA_HEADER_BYTES: usize = HEADER_BYTES + 4;
const _: () = assert!(DATA_HEADER_BYTES == 36);
pub(super) const DICTIONARY_VERSION: usize = HEADER_BYTES;
pub(super) const ROWS: usize = DICTIONARY_VERSION + 2;

/// Bytes of a slot: offset with one bit of the kind, length with the other.
pub const SLOT_BYTES: usize = 4;

/// Format version of data pages.
pub const DATA_PAGE_VERSION: u8 = 1;

pub(super) const LOW_BITS: u16 = 0x7FFF;

/// How a slot's bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// The record itself.
    Raw,
    /// The record compressed with the dictionary version of the page.
    Compressed,
    /// The first byte says more: forward pointer, row away from home, other dictionary version.
    Special,
}

impl StoredKind {
    /// Its two bits in a slot.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            StoredKind::Raw => 1,
            StoredKind::Compressed => 2,
            StoredKind::Special => 3,
        }
    }

    /// The kind with these bits; `None` for 0, which is a free slot or a ghost.
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<StoredKind> {
        match bits {
            1 => Some(StoredKind::Raw),
            2 => Some(StoredKind::Compressed),
            3 => Some(StoredKind::Special),
            _ => None,
        }
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRow<'a> {
    /// How to read the bytes.
    pub kind: StoredKind,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Bytes that a row of `row_bytes` takes on a page, slot included.
#[must_use]
pub const fn row_space(row_bytes: usize) -> usize {
    row_bytes + SLOT_BYTES
}

/// The longest row a page of `page_bytes` can hold.
#[must_use]
pub const fn largest_row(page_bytes: usize) -> usize {
    page_bytes - DATA_HEADER_BYTES - SLOT_BYTES
}

/// View of a data page. Accessors do not panic on a page that was never validated; they may then return nonsense, but in bounds.
#[derive(Clone, Copy, Debug)]
pub struct DataPage<'a> {
    bytes: &'a [u8],
}

impl<'a> DataPage<'a> {
    /// Views these bytes as a data page; the caller has seen the page type.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> DataPage<'a> {
        DataPage { bytes }
    }

    /// Checks every invariant named at the top of this file.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), FormatError> {
        let version = page::page_version(self.bytes);
        if version != DATA_PAGE_VERSION {
            return Err(FormatError::new(format!("data page version {version}, this program knows {DATA_PAGE_VERSION}")));
        }
        let slots = usize::from(self.slot_count());
        let low_end = usize::from(page::low_end(self.bytes));
        let Some(slot_area) = self.bytes.len().checked_sub(slots * SLOT_BYTES) else {
            return Err(FormatError::new(format!("{slots} slots do not fit the page")));
        };
        if low_end < DATA_HEADER_BYTES || low_end > slot_area {
            return Err(FormatError::new(format!("end of rows at {low_end}, slots start at {slot_area}")));
        }
        let mut used = usize::from(page::garbage(self.bytes));
        let mut rows = 0;
        for slot in 0..self.slot_count() {
            let (offset, length, bits) = self.slot_fields(slot);
            if bits == 0 && offset == 0 {
                if length != 0 {
                    return Err(FormatError::new(format!("slot {slot} is free but not empty")));
                }
                continue;
            }
            if offset < DATA_HEADER_BYTES || offset + length > low_end {
                return Err(FormatError::new(format!("slot {slot} points to {offset}..{}, outside the rows", offset + length)));
            }
            used += length;
            rows += u16::from(bits != 0);
        }
        if slots > 0 && self.is_free(self.slot_count() - 1) {
            return Err(FormatError::new("the last slot is free"));
        }
        if used != low_end - DATA_HEADER_BYTES {
            return Err(FormatError::new(format!("rows and garbage take {used} bytes of {}", low_end - DATA_HEADER_BYTES)));
        }
        if rows != self.row_count() {
            return Err(FormatError::new(format!("{rows} slots in use, the header says {}", self.row_count())));
        }
        Ok(())
    }

    /// Number of slots, free ones and ghosts included.
    #[inline]
    #[must_use]
    pub fn slot_count(&self) -> u16 {
        page::count(self.bytes)
    }

    /// Number of rows, ghosts not counted.
    #[inline]
    #[must_use]
    pub fn row_count(&self) -> u16 {
        get_u16(self.bytes, ROWS)
    }

    /// Version of the dictionary that [`StoredKind::Compressed`] rows of this page use; 0 when none.
    #[inline]
    #[must_use]
    pub fn dictionary_version(&self) -> u16 {
        get_u16(self.bytes, DICTIONARY_VERSION)
    }

    /// (offset, length, kind bits); the slot must be below the slot count. Zeros where a damaged count leads outside the page.
    #[inline]
    pub(super) fn slot_fields(&self, slot: u16) -> (usize, usize, u16) {
        let Some(at) = self.bytes.len().checked_sub(SLOT_BYTES * (usize::from(slot) + 1)) else {
            return (0, 0, 0);
        };
        let offset = get_u16(self.bytes, at);
        let length = get_u16(self.bytes, at + 2);
        (usize::from(offset & LOW_BITS), usize::from(length & LOW_BITS), (offset >> 15) | (length >> 15) << 1)
    }

    /// The row in a slot; `None` when there is no such slot or it is free.
    #[inline]
    #[must_use]
    pub fn row(&self, slot: u16) -> Option<StoredRow<'a>> {
        if slot >= self.slot_count() {
            return None;
        }
        let (offset, length, bits) = self.slot_fields(slot);
        let kind = StoredKind::from_bits(bits)?;
        Some(StoredRow { kind, bytes: self.bytes.get(offset..offset + length)? })
    }

    /// The lowest free slot number; the next new one when none is free.
    #[must_use]
    pub fn free_slot(&self) -> u16 {
        if self.row_count() == self.slot_count() {
            return self.slot_count();
        }
        (0..self.slot_count()).find(|slot| self.is_free(*slot)).unwrap_or(self.slot_count())
    }

    /// Slot numbers that a row can be inserted into, ascending; the last one is the next new one.
    pub fn free_slots(&self) -> impl Iterator<Item = u16> {
        let none = self.row_count() == self.slot_count();
        let known = if none { 0..0 } else { 0..self.slot_count() };
        known.filter(|slot| self.is_free(*slot)).chain(std::iter::once(self.slot_count()))
    }

    /// Is this slot, below the slot count, empty?
    pub(super) fn is_free(&self, slot: u16) -> bool {
        let (offset, _, bits) = self.slot_fields(slot);
        bits == 0 && offset == 0
    }

    /// The bytes of the deleted row that a slot keeps; `None` when the slot is free or holds a row.
    #[must_use]
    pub fn ghost(&self, slot: u16) -> Option<&'a [u8]> {
        if slot >= self.slot_count() {
            return None;
        }
        let (offset, length, bits) = self.slot_fields(slot);
        if bits != 0 || offset == 0 { None } else { self.bytes.get(offset..offset + length) }
    }

    /// Bytes that are neither header, row nor slot, garbage included.
    #[inline]
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        let slots = usize::from(self.slot_count()) * SLOT_BYTES;
        (self.bytes.len() + usize::from(page::garbage(self.bytes))).saturating_sub(slots + usize::from(page::low_end(self.bytes)))
    }

    /// Does a new row of `row_bytes` fit?
    #[must_use]
    pub fn fits(&self, row_bytes: usize) -> bool {
        let slot = if self.free_slot() == self.slot_count() { SLOT_BYTES } else { 0 };
        row_bytes + slot <= self.free_bytes()
    }

    /// Does the row in `slot` fit its page with `row_bytes` bytes?
    #[must_use]
    pub fn fits_in_place_of(&self, slot: u16, row_bytes: usize) -> bool {
        self.row(slot).is_some_and(|row| row_bytes <= self.free_bytes() + row.bytes.len())
    }
}

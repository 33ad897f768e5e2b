//! Read-only view of a data page.
//!
//! Layout: `docs/file-format.md`, "Data page". Rows grow up from the header, slots grow down from the end of the page.
//!
//! Invariants of a valid page:
//! - every used slot's row lies in `DATA_HEADER_BYTES..low_end`, and rows do not overlap: their lengths and the garbage add up to that area;
//! - a free slot is four zero bytes; the last slot is not free (trailing free slots are cut off);
//! - a slot without kind bits but with an offset holds a ghost: a deleted row whose bytes are kept until nobody can need them;
//! - a slot keeps its number as long as its row lives.
//!
//! A page of version 2 has a [column part](super::column_part) before its rows and another directory; all that asks for rows by slot holds for both.

use super::column_pack::column_rows_max;
use super::column_part::{self, COLUMN_PAGE_VERSION, ColumnPart, Directory, ENTRY_BYTES, Entry};
use super::ranges::SlotRanges;
use super::slot_reader::SlotReader;
use crate::FormatError;
use crate::page::{self, HEADER_BYTES, get_u16};
use pagefold_types::{Rid, SLOT_MAX};
use std::ops::Range;

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

/// Of what a row of an area takes, so much is about its own: the rest is dictionaries and the like (lines of TPC-H orders: 74 to 80 percent).
const OWN_PART: (usize, usize) = (3, 4);

/// How a slot's bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// The record itself.
    Raw,
    /// The record compressed with the dictionary version of the page.
    Compressed,
    /// The first byte says more: forward pointer, row away from home, other dictionary version.
    Special,
    /// A row of the page's column part. Never in a slot or an entry.
    Column,
    /// A slot of a range whose rows lie on another page: there may be a row. Never in a slot or an entry.
    Forwarded,
}

impl StoredKind {
    /// Its number: in a slot, two bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            StoredKind::Raw => 1,
            StoredKind::Compressed => 2,
            StoredKind::Special => 3,
            StoredKind::Column => 4,
            StoredKind::Forwarded => 5,
        }
    }

    /// The kind with this number; `None` for 0, which is a free slot or a ghost, and for what no row of its page has.
    #[inline(always)]
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<StoredKind> {
        match bits {
            1 => Some(StoredKind::Raw),
            2 => Some(StoredKind::Compressed),
            3 => Some(StoredKind::Special),
            4 => Some(StoredKind::Column),
            _ => None,
        }
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRow<'a> {
    /// How to read the bytes.
    pub kind: StoredKind,
    /// The bytes; of [`StoredKind::Column`] the column part, of [`StoredKind::Forwarded`] the range.
    pub bytes: &'a [u8],
    /// The slot.
    pub slot: u16,
    /// Of [`StoredKind::Column`] the row's number in the column part.
    pub area_row: u16,
    /// Of a row that the page hosts for another one: its home.
    pub home: Option<Rid>,
}

impl StoredRow<'_> {
    /// Bytes that are the row's own.
    #[must_use]
    pub fn own_bytes(&self) -> usize {
        if matches!(self.kind, StoredKind::Column | StoredKind::Forwarded) { 0 } else { self.bytes.len() }
    }
}

/// Where a slot's row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Free,
    /// By itself. A ghost's kind is not known where slots are plain.
    Single {
        offset: usize,
        length: usize,
        kind: Option<StoredKind>,
        ghost: bool,
    },
    /// In the column part.
    Column {
        ghost: bool,
    },
    /// On another page, if there is one.
    Forwarded,
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

/// The record of a slot with these fields; `None` of one that is free, or points outside the page.
#[inline(always)]
fn raw_record(bytes: &[u8], fields: [u8; SLOT_BYTES]) -> Option<&[u8]> {
    let fields = u32::from_le_bytes(fields);
    let (offset, length) = ((fields & u32::from(LOW_BITS)) as usize, (fields >> 16) as usize);
    let is_row = fields & u32::from(!LOW_BITS) == u32::from(!LOW_BITS);
    bytes.get(offset..offset + length).filter(|_| is_row)
}

impl<'a> DataPage<'a> {
    /// Views these bytes as a data page; the caller has seen the page type.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> DataPage<'a> {
        DataPage { bytes }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Checks every invariant named at the top of this file.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), FormatError> {
        let slots = self.slot_count();
        let low_end = usize::from(page::low_end(self.bytes));
        if usize::from(slots) > usize::from(SLOT_MAX) + 1 {
            return Err(FormatError::new(format!("{slots} slots")));
        }
        let (start, used, rows) = match page::page_version(self.bytes) {
            DATA_PAGE_VERSION => self.validate_slots()?,
            COLUMN_PAGE_VERSION => column_part::validate(self, self.bytes)?,
            version => {
                return Err(FormatError::new(format!(
                    "data page version {version}, this program knows {DATA_PAGE_VERSION} and {COLUMN_PAGE_VERSION}"
                )));
            }
        };
        let directory = self.bytes.len() - self.directory_bytes();
        if low_end < start || low_end > directory {
            return Err(FormatError::new(format!("end of rows at {low_end}, the directory starts at {directory}")));
        }
        if slots > 0 && self.is_free(slots - 1) {
            return Err(FormatError::new("the last slot is free"));
        }
        let used = used + usize::from(page::garbage(self.bytes));
        if used != low_end - start {
            return Err(FormatError::new(format!("rows and garbage take {used} bytes of {}", low_end - start)));
        }
        if rows != self.row_count() {
            return Err(FormatError::new(format!("{rows} slots in use, the header says {}", self.row_count())));
        }
        Ok(())
    }

    /// Where the rows begin, the bytes of all of them, and their number, ghosts not counted.
    fn validate_slots(&self) -> Result<(usize, usize, u16), FormatError> {
        let slots = self.slot_count();
        let low_end = usize::from(page::low_end(self.bytes));
        if usize::from(slots) * SLOT_BYTES > self.bytes.len() {
            return Err(FormatError::new(format!("{slots} slots do not fit the page")));
        }
        let (mut used, mut rows) = (0, 0);
        for slot in 0..slots {
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
        Ok((DATA_HEADER_BYTES, used, rows))
    }

    /// Has it a column part and its directory?
    #[inline]
    #[must_use]
    pub fn has_columns(&self) -> bool {
        page::page_version(self.bytes) == COLUMN_PAGE_VERSION
    }

    /// Its column part, if it has one.
    #[must_use]
    pub fn column_part(&self) -> Option<ColumnPart<'a>> {
        self.has_columns().then(|| column_part::part(self.bytes))
    }

    /// The ranges of slots whose rows lie on other pages, or are of other pages.
    #[inline]
    #[must_use]
    pub fn ranges(&self) -> SlotRanges<'a> {
        SlotReader::new(*self).ranges()
    }

    /// The entries of the rows that lie by themselves on a page with a column part; damaged ones are left out.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let directory = self.has_columns().then(|| Directory::new(self.bytes));
        (0..directory.map_or(0, |directory| directory.count())).filter_map(move |index| directory?.entry(index))
    }

    /// The slots whose rows lie in the column part, 32 at a time and a bit for each. `None` without a column part, and where the rows of that are not those of the slots of the same numbers.
    pub fn slots_in_area(&self) -> Option<impl Iterator<Item = u32> + use<'a>> {
        self.has_columns().then(|| Directory::new(self.bytes)).and_then(Directory::slots_in_area)
    }

    /// The rows that lie by themselves on a page with a column part, by slot: as [`Self::row`] gives them, without a search for each.
    pub fn rows_by_themselves(&self) -> impl Iterator<Item = StoredRow<'a>> + use<'a> {
        let (slots, slot_count) = (SlotReader::new(*self), self.slot_count());
        let directory = self.has_columns().then(|| Directory::new(self.bytes));
        let entries = (0..directory.map_or(0, |directory| directory.count())).filter_map(move |index| directory?.entry(index));
        entries.filter(move |entry| !entry.ghost && entry.slot < slot_count).filter_map(move |entry| slots.of_entry(&entry))
    }

    /// Of each of these slots the row of the column part that it has; `None` where it has none, a ghost, or one that the page hosts.
    pub fn area_rows(&self, slots: impl Iterator<Item = u16>) -> impl Iterator<Item = Option<u16>> {
        let reader = SlotReader::new(*self);
        slots.map(move |slot| match reader.area_row(slot)? {
            (row, false) if reader.home_of(slot).is_none() => Some(row),
            _ => None,
        })
    }

    /// Where its rows one by one begin.
    pub(super) fn rows_start(&self) -> usize {
        self.column_part().map_or(DATA_HEADER_BYTES, |part| column_part::AREA + part.area().len())
    }

    /// Bytes of slots, or of entries and states.
    pub(super) fn directory_bytes(&self) -> usize {
        if self.has_columns() { Directory::new(self.bytes).bytes() } else { usize::from(self.slot_count()) * SLOT_BYTES }
    }

    /// By how many bytes the directory grows when a row comes to lie by itself in a slot, at most the slot count.
    #[must_use]
    pub fn directory_growth(&self, slot: u16) -> usize {
        if self.has_columns() {
            if Directory::new(self.bytes).find(slot).is_ok() { 0 } else { ENTRY_BYTES }
        } else if slot == self.slot_count() {
            SLOT_BYTES
        } else {
            0
        }
    }

    /// Where the row of a slot below the slot count is.
    #[inline]
    pub(super) fn find(&self, slot: u16) -> Place {
        SlotReader::new(*self).find(slot)
    }

    /// Of a slot that the page has for a row of another page: the home of that.
    #[inline]
    #[must_use]
    pub fn home_of(&self, slot: u16) -> Option<Rid> {
        SlotReader::new(*self).home_of(slot)
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

    /// Number of rows, when each of them has its home on the page and lies on it. `None`: some are of another page, or lie on one.
    #[must_use]
    pub fn rows_at_home(&self) -> Option<usize> {
        if self.has_columns() {
            let is_moved = |entry: Entry| !entry.ghost && entry.kind == StoredKind::Special;
            return (self.ranges().is_empty() && !self.entries().any(is_moved)).then(|| self.row_count().into());
        }
        let start = self.bytes.len().checked_sub(usize::from(self.slot_count()) * SLOT_BYTES)?;
        let (mut rows, mut special) = (0_u32, 0_u32);
        // Both bits of the kind at once, in a form that takes several slots in a step.
        for slot in self.bytes[start..].as_chunks::<SLOT_BYTES>().0 {
            let fields = u32::from_le_bytes(*slot);
            let (low, high) = (fields >> 15 & 1, fields >> 31);
            rows += low | high;
            special |= low & high;
        }
        (special == 0).then_some(rows as usize)
    }

    /// Slots and records of a page whose rows are all [`StoredKind::Raw`]; `None` of others.
    #[must_use]
    pub fn raw_records(&self) -> Option<impl Iterator<Item = (u16, &'a [u8])> + use<'a>> {
        let (bytes, slots) = (self.bytes, self.raw_slots()?);
        Some((0..).zip(slots.iter().rev()).filter_map(move |(slot, fields)| Some((slot, raw_record(bytes, *fields)?))))
    }

    /// The records of some slots of a page whose rows are all [`StoredKind::Raw`], but of those that are free or not there; `None` of others.
    pub fn raw_records_of(&self, slots: impl Iterator<Item = u16>) -> Option<impl Iterator<Item = (u16, &'a [u8])>> {
        let (bytes, known) = (self.bytes, self.raw_slots()?);
        Some(slots.filter_map(move |slot| {
            let fields = known.len().checked_sub(usize::from(slot) + 1).map(|at| known[at])?;
            Some((slot, raw_record(bytes, fields)?))
        }))
    }

    /// The slots of a page whose rows are all raw, the last one first.
    fn raw_slots(&self) -> Option<&'a [[u8; SLOT_BYTES]]> {
        if self.has_columns() {
            return None;
        }
        let start = self.bytes.len().checked_sub(usize::from(self.slot_count()) * SLOT_BYTES)?;
        let slots = self.bytes[start..].as_chunks::<SLOT_BYTES>().0;
        // The high bit of the kind, of all slots: what is no record, or not by itself.
        let all = slots.iter().fold(0, |all, slot| all | u32::from_le_bytes(*slot));
        (all >> 31 == 0).then_some(slots)
    }

    /// Version of the dictionary that [`StoredKind::Compressed`] rows of this page use; 0 when none.
    #[inline]
    #[must_use]
    pub fn dictionary_version(&self) -> u16 {
        get_u16(self.bytes, DICTIONARY_VERSION)
    }

    /// (offset, length, kind bits); the slot must be below the slot count. Zeros where a damaged count leads outside the page.
    #[inline(always)]
    pub(super) fn slot_fields(&self, slot: u16) -> (usize, usize, u16) {
        let Some(at) = self.bytes.len().checked_sub(SLOT_BYTES * (usize::from(slot) + 1)) else {
            return (0, 0, 0);
        };
        let offset = get_u16(self.bytes, at);
        let length = get_u16(self.bytes, at + 2);
        (usize::from(offset & LOW_BITS), usize::from(length & LOW_BITS), (offset >> 15) | (length >> 15) << 1)
    }

    /// The row in a slot; `None` when there is no such slot or it is free. Of a slot whose rows lie elsewhere: where.
    #[inline]
    #[must_use]
    pub fn row(&self, slot: u16) -> Option<StoredRow<'a>> {
        SlotReader::new(*self).row(slot)
    }

    /// The row in a slot below the slot count of a page without a column part: kind and bytes. As [`row`](Self::row), with less to look at.
    #[inline(always)]
    #[must_use]
    pub fn plain_row(&self, slot: u16) -> Option<(StoredKind, &'a [u8])> {
        let (kind, range) = self.plain_span(slot)?;
        Some((kind, &self.bytes[range]))
    }

    /// As [`plain_row`](Self::plain_row), with the place of the bytes, which lies in the page.
    #[inline(always)]
    #[must_use]
    pub fn plain_span(&self, slot: u16) -> Option<(StoredKind, Range<usize>)> {
        let (offset, length, bits) = self.slot_fields(slot);
        let range = offset..offset + length;
        (range.end <= self.bytes.len()).then_some((StoredKind::from_bits(bits)?, range))
    }

    /// The lowest free slot number; the next new one when none is free.
    #[must_use]
    pub fn free_slot(&self) -> u16 {
        self.free_slots().next().unwrap_or_default()
    }

    /// Slot numbers that a row can be inserted into, ascending; the last one is the next new one.
    pub fn free_slots(&self) -> impl Iterator<Item = u16> {
        let known = if self.none_is_free() { 0..0 } else { 0..self.slot_count() };
        let slots = SlotReader::new(*self);
        known.filter(move |slot| slots.is_free(*slot)).chain(std::iter::once(self.slot_count()))
    }

    fn none_is_free(&self) -> bool {
        usize::from(self.row_count()) + self.ranges().slots(false) == usize::from(self.slot_count())
    }

    /// Is this slot, below the slot count, empty, and one of the page's own?
    pub(super) fn is_free(&self, slot: u16) -> bool {
        SlotReader::new(*self).is_free(slot)
    }

    /// The deleted row that a slot keeps; `None` when the slot is free or holds a row. Where slots are plain, it is of `kind`.
    #[must_use]
    pub fn ghost(&self, slot: u16, kind: StoredKind) -> Option<StoredRow<'a>> {
        SlotReader::new(*self).ghost(slot, kind)
    }

    /// May no row be added, whatever room there is? A page with a column part has no more rows than could become forward pointers.
    #[must_use]
    pub fn is_full(&self, maxrows: u16) -> bool {
        let has_most = || self.has_columns() && self.slots_in_use_exceed(column_rows_max(self.bytes.len(), maxrows).saturating_sub(1));
        self.row_count() >= maxrows || self.slot_count() > SLOT_MAX && self.free_slot() > SLOT_MAX || has_most()
    }

    /// Are more than so many slots in use: by rows, ghosts or pointers, and not by rows that another page hosts?
    #[must_use]
    pub fn slots_in_use_exceed(&self, most: usize) -> bool {
        let slots = usize::from(self.slot_count()).saturating_sub(self.ranges().slots(false));
        slots > most && SlotReader::new(*self).in_use() > most
    }

    /// The lowest of so many free slots side by side; those behind the last one are free, too, and those of `given`.
    #[must_use]
    pub fn free_run(&self, count: u16, given: Range<u16>) -> u16 {
        let mut first = 0;
        let slots = SlotReader::new(*self);
        for slot in 0..self.slot_count() {
            if !slots.is_free(slot) && !given.contains(&slot) {
                first = slot + 1;
            } else if slot + 1 - first == count {
                break;
            }
        }
        first
    }

    /// Bytes that are neither header, row nor directory, garbage included.
    #[inline]
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        (self.bytes.len() + usize::from(page::garbage(self.bytes)))
            .saturating_sub(self.directory_bytes() + usize::from(page::low_end(self.bytes)))
    }

    /// About how many bytes are free when the page is rebuilt with its rows by column: rows by themselves take as much as those of the area then, and what the area has for slots without a row goes,
    /// but for what they share with others. Without an area nobody knows: half of what the rows take.
    #[must_use]
    pub fn room_when_rebuilt(&self) -> usize {
        let singles = usize::from(page::low_end(self.bytes)).saturating_sub(self.rows_start() + usize::from(page::garbage(self.bytes)));
        let Some(part) = self.column_part().filter(|part| part.rows() > 0) else { return self.free_bytes() + singles / 2 };
        let directory = Directory::new(self.bytes);
        let per_row = part.area().len() / part.rows();
        let gain = (singles + directory.count() * ENTRY_BYTES).saturating_sub(directory.count() * per_row);
        self.free_bytes() + gain + part.rows().saturating_sub(directory.in_area()) * per_row * OWN_PART.0 / OWN_PART.1
    }

    /// Does a new row of `row_bytes` fit?
    #[must_use]
    pub fn fits(&self, row_bytes: usize) -> bool {
        row_bytes + self.directory_growth(self.free_slot()) <= self.free_bytes()
    }

    /// Does the row in `slot` fit its page with `row_bytes` bytes?
    #[must_use]
    pub fn fits_in_place_of(&self, slot: u16, row_bytes: usize) -> bool {
        self.row(slot).is_some_and(|row| row_bytes + self.directory_growth(slot) <= self.free_bytes() + row.own_bytes())
    }
}

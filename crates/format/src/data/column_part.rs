//! The part of a data page that holds rows by column, and the directory that such a page has in the place of slots.
//!
//! Layout: `docs/file-format.md`, "Data page, version 2". Behind the header lie the column header and the area ([`pagefold_codec::page`]); row i of the area is the row of slot i as it was when
//! the page was built; on a sparse page the i-th of those that a map names. Rows one by one follow, as on a page without an area. At the end of the page lie the [ranges](super::ranges) of slots whose rows lie elsewhere or are of
//! elsewhere, before them the states of the slots that the area has, before these an entry for each slot whose row lies one by one. A slot of a forwarded range that has an entry is
//! where that says: a row that moved by itself.
//!
//! Invariants of a valid page, beside those of [`DataPage`](super::DataPage):
//! - the area has the length that its own header says, and as many rows as there are states, or on a sparse page bits in the map;
//! - entries ascend by slot; a slot that the area has, has an entry exactly if its state is [`State::Entry`];
//! - an area with no rows has no bytes;

use super::forms::{dictionary_of, layout_of};
use super::page::{DATA_HEADER_BYTES, DataPage, StoredKind};
use super::ranges::{RANGE_BYTES, SlotRanges};
use super::stored::STORED_BYTES_MIN;
use crate::FormatError;
use crate::page::{self, get_u16, put_u16};
use pagefold_codec::page::{ColumnArea, ROWS_MAX};
use pagefold_types::SLOT_MAX;

/// Format version of data pages with a column part.
pub const COLUMN_PAGE_VERSION: u8 = 2;

/// Bytes of the column header: length of the area, number of entries, dictionary version and layout of the area, number of ranges with a flag.
pub const COLUMN_HEADER_BYTES: usize = 8;
pub(super) const AREA_BYTES: usize = DATA_HEADER_BYTES;
pub(super) const ENTRIES: usize = AREA_BYTES + 2;
pub(super) const AREA_DICTIONARY: usize = ENTRIES + 2;
/// Where the area begins.
pub(super) const AREA: usize = DATA_HEADER_BYTES + COLUMN_HEADER_BYTES;
pub(super) const RANGES: usize = AREA_DICTIONARY + 2;
/// In the number of ranges: the page is sparse.
pub(super) const SPARSE: u16 = 1 << 15;
/// Bytes of the number of slots of a map, behind which it lies.
const MAP_SLOTS_BYTES: usize = 2;
const _: () = assert!(AREA == 44 && AREA_DICTIONARY == 40 && RANGES == 42);

/// Where rows one by one begin on a page whose area is empty.
pub const COLUMN_ROWS_START: usize = AREA;

/// Bytes of an entry: slot and kind, offset, length.
pub const ENTRY_BYTES: usize = 6;

/// Bytes before the columns of an area, which no change in place touches: its rows, columns and length.
const AREA_HEADER_BYTES: usize = 6;

/// What a row takes on its page at least once it has moved: its entry and a forward pointer.
pub const MOVED_SPACE: usize = ENTRY_BYTES + STORED_BYTES_MIN;

const SLOT_BITS: u32 = 12;
const _: () = assert!(SLOT_MAX == (1 << SLOT_BITS) - 1 && ROWS_MAX == SLOT_MAX as usize + 1);
const GHOST: u16 = 1 << 14;

/// Where the row of a slot is that the area has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Free,
    /// In the area.
    Area,
    /// In the area, but deleted.
    Ghost,
    /// Where the slot's entry says.
    Entry,
}

impl State {
    fn from_bits(bits: u8) -> State {
        match bits & 3 {
            0 => State::Free,
            1 => State::Area,
            2 => State::Ghost,
            _ => State::Entry,
        }
    }
}

/// An entry: a row that lies by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its slot.
    pub slot: u16,
    /// How to read the bytes.
    pub kind: StoredKind,
    /// Deleted?
    pub ghost: bool,
    /// Where it is.
    pub offset: u16,
    /// Its bytes.
    pub length: u16,
}

impl Entry {
    /// As in the directory; `None` for a kind that there is not.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Option<Entry> {
        let word = get_u16(&bytes, 0);
        let kind = StoredKind::from_bits(word >> SLOT_BITS & 3)?;
        Some(Entry { slot: word & SLOT_MAX, kind, ghost: word & GHOST != 0, offset: get_u16(&bytes, 2), length: get_u16(&bytes, 4) })
    }

    /// As in the directory.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        put_u16(&mut bytes, 0, self.slot | self.kind.bits() << SLOT_BITS | if self.ghost { GHOST } else { 0 });
        put_u16(&mut bytes, 2, self.offset);
        put_u16(&mut bytes, 4, self.length);
        bytes
    }
}

/// The column header and area of a page: what a row in it is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPart<'a> {
    bytes: &'a [u8],
}

impl<'a> ColumnPart<'a> {
    /// These bytes, which begin with a column header.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> ColumnPart<'a> {
        ColumnPart { bytes }
    }

    /// Version of the dictionary of the area's string codes; 0: it has none.
    #[must_use]
    pub fn dictionary(&self) -> u16 {
        dictionary_of(self.form()).unwrap_or(0)
    }

    /// The layout of the area's records.
    #[inline]
    #[must_use]
    pub fn layout(&self) -> u8 {
        layout_of(self.form())
    }

    fn form(&self) -> u16 {
        self.bytes.get(4..6).map_or(0, |bytes| get_u16(bytes, 0))
    }

    /// The area.
    #[inline]
    #[must_use]
    pub fn area(&self) -> &'a [u8] {
        self.bytes.get(COLUMN_HEADER_BYTES..).unwrap_or_default()
    }

    /// Rows of the area.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> usize {
        self.area().get(..2).map_or(0, |bytes| usize::from(get_u16(bytes, 0)).min(ROWS_MAX))
    }
}

/// Bytes of a map of so many slots, with their number.
#[must_use]
pub(super) const fn map_bytes(slots: usize) -> usize {
    slots.div_ceil(8) + MAP_SLOTS_BYTES
}

/// Bytes of the states of so many slots.
#[must_use]
pub const fn state_bytes(rows: usize) -> usize {
    rows.div_ceil(4)
}

/// Directory of a page of this version. No access leaves the page, whatever its bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory<'a> {
    bytes: &'a [u8],
    /// Where the ranges begin.
    ranges: usize,
    /// Of a sparse page, where the map begins.
    map: Option<usize>,
    /// Where the states begin.
    states: usize,
    /// Where the entries begin.
    entries: usize,
    rows: usize,
    count: usize,
}

impl<'a> Directory<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Directory<'a> {
        let word = get_u16(bytes, RANGES);
        let ranges = bytes.len().saturating_sub(usize::from(word & !SPARSE) * RANGE_BYTES);
        let (rows, map) = match ranges.checked_sub(MAP_SLOTS_BYTES) {
            Some(at) if word & SPARSE != 0 => {
                let slots = usize::from(get_u16(bytes, at)).min(ROWS_MAX);
                (slots, Some(ranges.saturating_sub(map_bytes(slots))))
            }
            _ => (part(bytes).rows(), None),
        };
        let states = map.unwrap_or(ranges).saturating_sub(state_bytes(rows));
        let count = usize::from(get_u16(bytes, ENTRIES)).min(states / ENTRY_BYTES);
        Directory { bytes, ranges, map, states, entries: states - count * ENTRY_BYTES, rows, count }
    }

    #[inline]
    pub(super) fn ranges(&self) -> SlotRanges<'a> {
        SlotRanges::new(&self.bytes[self.ranges..])
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() - self.entries
    }

    /// Slots with a state: those that the area has rows for are among them.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The row that the area has for a slot.
    #[inline]
    pub(super) fn area_row(&self, slot: u16) -> Option<u16> {
        if usize::from(slot) >= self.rows {
            return None;
        }
        let Some(map) = self.map else { return Some(slot) };
        let (byte, bit) = (usize::from(slot / 8), slot % 8);
        let map = self.bytes.get(map..self.ranges)?;
        let own = *map.get(byte)?;
        if own >> bit & 1 == 0 {
            return None;
        }
        let (words, rest) = map.get(..byte)?.as_chunks::<8>();
        let before = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum::<u32>();
        let before = before + rest.iter().map(|byte| byte.count_ones()).sum::<u32>() + (own & ((1 << bit) - 1)).count_ones();
        Some(before as u16)
    }

    /// Slots that the map names, and whether it has bits beyond them; `None` where there is none.
    fn mapped(&self) -> Option<(usize, bool)> {
        let map = self.bytes.get(self.map?..self.ranges.saturating_sub(MAP_SLOTS_BYTES))?;
        let rest = self.rows % 8;
        let beyond = rest != 0 && map.last().is_some_and(|last| last >> rest != 0);
        Some((map.iter().map(|byte| byte.count_ones() as usize).sum(), beyond))
    }

    /// Slots with a row or ghost in the area: those with exactly one bit of their state set.
    pub(super) fn in_area(&self) -> usize {
        let states = &self.bytes[self.states..(self.states + state_bytes(self.rows)).min(self.bytes.len())];
        let (words, rest) = states.as_chunks::<8>();
        let of_words =
            words.iter().map(|word| u64::from_le_bytes(*word)).map(|word| ((word ^ word >> 1) & 0x5555_5555_5555_5555).count_ones());
        let of_rest = rest.iter().map(|byte| ((byte ^ byte >> 1) & 0x55).count_ones());
        (of_words.chain(of_rest).sum::<u32>() as usize).min(self.rows)
    }

    /// Slots with a row in the area, 32 at a time and a bit for each; nothing is set behind the last one. `None` on a sparse page, where the rows of the area are not those of the slots of the same numbers.
    pub(super) fn slots_in_area(self) -> Option<impl Iterator<Item = u32> + use<'a>> {
        let states = self.bytes.get(self.states..(self.states + state_bytes(self.rows)).min(self.bytes.len())).unwrap_or_default();
        let rest = self.rows % 32;
        let words = states.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            in_area(u64::from_le_bytes(word))
        });
        let last = self.rows.div_ceil(32).saturating_sub(1);
        let within = move |(at, word): (usize, u32)| if at == last && rest != 0 { word & ((1 << rest) - 1) } else { word };
        self.map.is_none().then(|| words.enumerate().map(within))
    }

    /// Where the entries begin.
    pub(super) fn start(&self) -> usize {
        self.entries
    }

    #[inline]
    pub(super) fn state(&self, slot: u16) -> State {
        let slot = usize::from(slot);
        if slot >= self.rows {
            return State::Entry;
        }
        self.bytes.get(self.states + slot / 4).map_or(State::Free, |byte| State::from_bits(byte >> (slot % 4 * 2)))
    }

    /// Offset of entry `index`.
    pub(super) fn at(&self, index: usize) -> usize {
        self.entries + index * ENTRY_BYTES
    }

    fn raw(&self, index: usize) -> [u8; ENTRY_BYTES] {
        let at = self.at(index);
        self.bytes.get(at..at + ENTRY_BYTES).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
    }

    pub(super) fn entry(&self, index: usize) -> Option<Entry> {
        Entry::from_bytes(self.raw(index))
    }

    /// The number of a slot's entry; else the one it would have.
    #[inline]
    pub(super) fn find(&self, slot: u16) -> Result<usize, usize> {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = usize::midpoint(from, to);
            let found = get_u16(self.bytes, self.at(middle)) & SLOT_MAX;
            match found.cmp(&slot) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<Entry>> + '_ {
        (0..self.count).map(|index| self.entry(index))
    }
}

/// Of 32 states, a bit for each that is [`State::Area`].
fn in_area(states: u64) -> u32 {
    let mut bits = states & !(states >> 1) & 0x5555_5555_5555_5555;
    // Every second bit, pushed together: pairs, then fours, and so on.
    for (shift, mask) in [(1, 0x3333_3333_3333_3333), (2, 0x0F0F_0F0F_0F0F_0F0F), (4, 0x00FF_00FF_00FF_00FF), (8, 0x0000_FFFF_0000_FFFF)] {
        bits = (bits | bits >> shift) & mask;
    }
    (bits | bits >> 16) as u32
}

/// The column part of a page of this version.
#[inline]
pub(super) fn part(bytes: &[u8]) -> ColumnPart<'_> {
    ColumnPart::new(part_bytes(bytes))
}

#[inline]
pub(super) fn part_bytes(bytes: &[u8]) -> &[u8] {
    let area = usize::from(get_u16(bytes, AREA_BYTES));
    bytes.get(DATA_HEADER_BYTES..AREA + area).unwrap_or_default()
}

/// Sets the state of a slot that the area has.
pub(super) fn set_state(page: &mut [u8], slot: u16, state: State) {
    let directory = Directory::new(page);
    let slot = usize::from(slot);
    if slot >= directory.rows {
        return;
    }
    let at = directory.states + slot / 4;
    let shift = slot % 4 * 2;
    if let Some(byte) = page.get_mut(at) {
        *byte = *byte & !(3 << shift) | (state as u8) << shift;
    }
}

/// Writes a slot's entry; a new one takes its room from the free bytes before the directory.
pub(super) fn put_entry(page: &mut [u8], entry: Entry) {
    let directory = Directory::new(page);
    let (start, count) = (directory.start(), directory.count());
    let at = match directory.find(entry.slot) {
        Ok(index) => directory.at(index),
        Err(index) => {
            let end = directory.at(index);
            page.copy_within(start..end, start - ENTRY_BYTES);
            put_u16(page, ENTRIES, count as u16 + 1);
            set_state(page, entry.slot, State::Entry);
            end - ENTRY_BYTES
        }
    };
    page[at..at + ENTRY_BYTES].copy_from_slice(&entry.to_bytes());
}

/// Takes a slot's entry away, if it has one. The slot is free.
pub(super) fn remove_entry(page: &mut [u8], slot: u16) {
    let directory = Directory::new(page);
    let (start, count) = (directory.start(), directory.count());
    if let Ok(index) = directory.find(slot) {
        let at = directory.at(index);
        page.copy_within(start..at, start + ENTRY_BYTES);
        put_u16(page, ENTRIES, count as u16 - 1);
    }
    set_state(page, slot, State::Free);
}

/// Replaces bytes of the area.
pub(super) fn patch(page: &mut [u8], at: u16, bytes: &[u8]) -> Result<(), FormatError> {
    let at = usize::from(at);
    let area = part(page).area().len();
    if page::page_version(page) != COLUMN_PAGE_VERSION || at < AREA_HEADER_BYTES || at + bytes.len() > area {
        return Err(FormatError::new(format!("change of bytes {at}..{} of an area of {area}", at + bytes.len())));
    }
    page[AREA + at..AREA + at + bytes.len()].copy_from_slice(bytes);
    Ok(())
}

/// Checks what is peculiar to a page of this version; returns where its rows begin, and the bytes and number of the rows one by one, and of all rows, ghosts not counted.
pub(super) fn validate(page: &DataPage<'_>, bytes: &[u8]) -> Result<(usize, usize, u16), FormatError> {
    let refuse = |what: String| Err(FormatError::new(what));
    let area_bytes = usize::from(get_u16(bytes, AREA_BYTES));
    if AREA + area_bytes > bytes.len() {
        return refuse(format!("an area of {area_bytes} bytes"));
    }
    let area = part(bytes).area();
    if !area.is_empty() && (area.len() < AREA_HEADER_BYTES || ColumnArea::len_at(area) != Some(area_bytes) || part(bytes).rows() == 0) {
        return refuse(format!("the area of {area_bytes} bytes says that it has {:?}", ColumnArea::len_at(area)));
    }
    let directory = Directory::new(bytes);
    if directory.count != usize::from(get_u16(bytes, ENTRIES)) || directory.start() < AREA + area_bytes {
        return refuse(format!("{} entries do not fit the page", get_u16(bytes, ENTRIES)));
    }
    let ranges = directory.ranges();
    if ranges.len() != usize::from(get_u16(bytes, RANGES) & !SPARSE) {
        return refuse(format!("{} ranges do not fit the page", get_u16(bytes, RANGES) & !SPARSE));
    }
    if get_u16(bytes, RANGES) & SPARSE != 0 && (area.is_empty() || directory.mapped() != Some((part(bytes).rows(), false))) {
        return refuse(format!("a map that names {:?} slots for {} rows", directory.mapped(), part(bytes).rows()));
    }
    ranges.validate(page.slot_count())?;
    let low_end = usize::from(page::low_end(bytes));
    let slots = page.slot_count();
    let (mut used, mut rows, mut before) = (0, 0, None);
    let mut with_state = 0;
    for entry in directory.iter() {
        let Some(entry) = entry else { return refuse("an entry of no kind".into()) };
        let (offset, length) = (usize::from(entry.offset), usize::from(entry.length));
        if before.is_some_and(|before| before >= entry.slot) || entry.slot >= slots {
            return refuse(format!("the entry of slot {} is out of order, or beyond {slots}", entry.slot));
        }
        if offset < AREA + area_bytes || offset + length > low_end {
            return refuse(format!("slot {} points to {offset}..{}, outside the rows", entry.slot, offset + length));
        }
        if directory.state(entry.slot) != State::Entry {
            return refuse(format!("slot {} has an entry, but its state is another", entry.slot));
        }
        with_state += usize::from(usize::from(entry.slot) < directory.rows());
        used += length;
        rows += u16::from(!entry.ghost);
        before = Some(entry.slot);
    }
    for slot in 0..directory.rows() as u16 {
        match directory.state(slot) {
            State::Entry => with_state = with_state.wrapping_sub(1),
            State::Free => {}
            State::Area | State::Ghost if slot >= slots => return refuse(format!("slot {slot} is in use, there are {slots}")),
            State::Area | State::Ghost if directory.area_row(slot).is_none() => {
                return refuse(format!("slot {slot} is in use, and the area has no row for it"));
            }
            State::Area => rows += 1,
            State::Ghost => {}
        }
    }
    if with_state != 0 {
        return refuse("a slot has no entry where its state says that it has one".into());
    }
    Ok((AREA + area_bytes, used, rows))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn states_become_bits() {
        let mut states = 0x0123_4567_89AB_CDEF_u64;
        for _ in 0..1000 {
            states = states.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let is_area = |slot: u32| State::from_bits((states >> (2 * slot)) as u8) == State::Area;
            let expected = (0..32).fold(0, |bits, slot| bits | u32::from(is_area(slot)) << slot);
            assert_eq!(in_area(states), expected, "{states:x}");
        }
    }
}

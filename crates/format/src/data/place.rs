//! Putting bytes on a data page: the free space between rows and directory, and what the directory says.
//!
//! Every function leaves rows where the directory says they are; that there is room, or a row, the [ops](super::ops) have seen to.

use super::column_part::{self, AREA_BYTES, AREA_DICTIONARY, Directory, ENTRIES, ENTRY_BYTES, Entry, RANGES, SPARSE, State};
use super::page::{DATA_PAGE_VERSION, DataPage, Place, ROWS, SLOT_BYTES, StoredKind};
use super::ranges::RANGE_BYTES;
use crate::page::{self, get_u16, put_u16};

pub(super) fn add_rows(page: &mut [u8], change: i32) {
    let rows = i32::from(get_u16(page, ROWS)) + change;
    put_u16(page, ROWS, rows as u16);
}

/// Bytes between the rows and the directory.
pub(super) fn contiguous(page: &[u8]) -> usize {
    page.len().saturating_sub(DataPage::new(page).directory_bytes()).saturating_sub(usize::from(page::low_end(page)))
}

/// Where the row of a slot lies by itself; bits 0 stand for a ghost. A slot that had no place may need room in the directory for it.
fn set_single(page: &mut [u8], slot: u16, offset: usize, length: usize, kind: Option<StoredKind>, ghost: bool) {
    if DataPage::new(page).has_columns() {
        let kind = kind.unwrap_or(StoredKind::Raw);
        column_part::put_entry(page, Entry { slot, kind, ghost, offset: offset as u16, length: length as u16 });
        return;
    }
    let bits = kind.filter(|_| !ghost).map_or(0, StoredKind::bits);
    let at = page.len() - SLOT_BYTES * (usize::from(slot) + 1);
    put_u16(page, at, offset as u16 | bits << 15);
    put_u16(page, at + 2, length as u16 | (bits >> 1) << 15);
}

/// Makes a row a ghost, or a ghost a row, of this kind where slots are plain.
pub(super) fn set_ghost(page: &mut [u8], slot: u16, ghost: bool, kind: StoredKind) {
    match DataPage::new(page).find(slot) {
        Place::Single { offset, length, kind: known, .. } => {
            let columns = DataPage::new(page).has_columns();
            set_single(page, slot, offset, length, if columns { known } else { Some(kind) }, ghost);
        }
        Place::Column { .. } => column_part::set_state(page, slot, if ghost { State::Ghost } else { State::Area }),
        Place::Free | Place::Forwarded => {}
    }
}

/// Moves all rows that lie by themselves together, so that there is no garbage. They keep the order they lie in.
pub(super) fn compact(page: &mut [u8]) {
    let view = DataPage::new(page);
    let mut end = view.rows_start();
    // One number a row, which sorts by offset: pages are compacted often where rows grow by a code at a time.
    let mut rows: Vec<u64> = Vec::with_capacity(view.slot_count().into());
    for slot in 0..view.slot_count() {
        if let Place::Single { offset: offset @ 1.., length, .. } = view.find(slot) {
            rows.push((offset as u64) << 32 | (length as u64) << 16 | u64::from(slot));
        }
    }
    rows.sort_unstable();
    // Rows that lie side by side move together.
    let (mut run, mut run_to) = (end..end, end);
    for row in rows {
        let (offset, length, slot) = ((row >> 32) as usize, usize::from((row >> 16) as u16), row as u16);
        if offset != run.end {
            page.copy_within(run, run_to);
            (run, run_to) = (offset..offset, end);
        }
        run.end += length;
        if let Place::Single { kind, ghost, .. } = DataPage::new(page).find(slot) {
            set_single(page, slot, end, length, kind, ghost);
        }
        end += length;
    }
    page.copy_within(run, run_to);
    page::set_low_end(page, end as u16);
    page::set_garbage(page, 0);
}

/// Puts a row behind the others, for which the page has room, be it in pieces. What the slot held before is garbage already; `growth` is what the directory grows by.
pub(super) fn append(page: &mut [u8], slot: u16, kind: StoredKind, bytes: &[u8], growth: usize) {
    if bytes.len() + growth > contiguous(page) {
        compact(page);
    }
    let offset = usize::from(page::low_end(page));
    if slot >= page::count(page) {
        page::set_count(page, slot + 1);
    }
    // First the directory: it must not be moved over by the row, nor the row by it.
    set_single(page, slot, offset, bytes.len(), Some(kind), false);
    page[offset..offset + bytes.len()].copy_from_slice(bytes);
    page::set_low_end(page, (offset + bytes.len()) as u16);
}

/// Writes a shorter row, or one as long, over that of a slot.
pub(super) fn overwrite(page: &mut [u8], slot: u16, offset: usize, length: usize, kind: StoredKind, bytes: &[u8]) {
    page[offset..offset + bytes.len()].copy_from_slice(bytes);
    set_single(page, slot, offset, bytes.len(), Some(kind), false);
    add_garbage(page, length - bytes.len());
}

/// Forgets where the row of a slot is, which keeps its place in the directory.
pub(super) fn forget(page: &mut [u8], slot: u16) {
    if let Place::Single { length, .. } = DataPage::new(page).find(slot) {
        set_single(page, slot, 0, 0, None, true);
        add_garbage(page, length);
    }
}

fn add_garbage(page: &mut [u8], bytes: usize) {
    let garbage = page::garbage(page) + bytes as u16;
    page::set_garbage(page, garbage);
}

/// Empties a slot that holds a row or a ghost. Free slots at the end are cut off; a page without slots is as good as new.
pub(super) fn free(page: &mut [u8], slot: u16) {
    let columns = DataPage::new(page).has_columns();
    if let Place::Single { length, .. } = DataPage::new(page).find(slot) {
        add_garbage(page, length);
        if !columns {
            set_single(page, slot, 0, 0, None, true);
        }
    }
    if columns {
        column_part::remove_entry(page, slot);
    }
    cut_free_slots(page);
}

fn cut_free_slots(page: &mut [u8]) {
    let columns = DataPage::new(page).has_columns();
    let mut slots = page::count(page);
    while slots > 0 && DataPage::new(page).is_free(slots - 1) {
        slots -= 1;
    }
    page::set_count(page, slots);
    if slots == 0 {
        if columns {
            page::set_page_version(page, DATA_PAGE_VERSION);
        }
        let start = DataPage::new(page).rows_start();
        page::set_low_end(page, start as u16);
        page::set_garbage(page, 0);
    }
}

/// Puts another table of ranges in the place of a page's, which has room for it.
pub(super) fn set_ranges(page: &mut [u8], ranges: &[u8]) {
    let old = DataPage::new(page).ranges().len() * RANGE_BYTES;
    if ranges.len() > old + contiguous(page) {
        compact(page);
    }
    let (start, end) = (Directory::new(page).start(), page.len() - old);
    let fresh = start + old - ranges.len();
    page.copy_within(start..end, fresh);
    let at = page.len() - ranges.len();
    page[at..].copy_from_slice(ranges);
    let sparse = get_u16(page, RANGES) & SPARSE;
    put_u16(page, RANGES, (ranges.len() / RANGE_BYTES) as u16 | sparse);
    cut_free_slots(page);
}

/// What a page with a column part consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnImage<'a> {
    /// Slots, free ones included.
    pub slots: u16,
    /// Version of the dictionary of the area's string codes; 0: it has none.
    pub dictionary_version: u16,
    /// The area; empty: none.
    pub area: &'a [u8],
    /// Rows by themselves, one behind the other.
    pub rows: &'a [u8],
    /// Entries, states, map and ranges as they lie on the page.
    pub directory: &'a [u8],
    /// Number of the ranges.
    pub ranges: u16,
    /// Is there a map?
    pub sparse: bool,
}

impl ColumnImage<'_> {
    /// Bytes of the page that it takes.
    #[must_use]
    pub fn len(&self) -> usize {
        column_part::AREA + self.area.len() + self.rows.len() + self.directory.len()
    }

    /// Has it nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots == 0
    }

    /// Writes it to a page, whose common header and form stay. It is as long as the page at most.
    pub(super) fn write(&self, page: &mut [u8]) {
        page::set_page_version(page, column_part::COLUMN_PAGE_VERSION);
        page::set_count(page, self.slots);
        page::set_garbage(page, 0);
        page[AREA_BYTES..].fill(0);
        put_u16(page, AREA_BYTES, self.area.len() as u16);
        put_u16(page, AREA_DICTIONARY, self.dictionary_version);
        let rows = column_part::AREA + self.area.len();
        page[column_part::AREA..rows].copy_from_slice(self.area);
        let low_end = rows + self.rows.len();
        page[rows..low_end].copy_from_slice(self.rows);
        page::set_low_end(page, low_end as u16);
        let start = page.len() - self.directory.len();
        page[start..].copy_from_slice(self.directory);
        put_u16(page, RANGES, self.ranges | if self.sparse { SPARSE } else { 0 });
        let others = Directory::new(page).bytes();
        put_u16(page, ENTRIES, (self.directory.len().saturating_sub(others) / ENTRY_BYTES) as u16);
        let view = DataPage::new(page);
        let is_row = |slot: &u16| view.row(*slot).is_some_and(|row| row.kind != StoredKind::Forwarded);
        let rows = (0..self.slots).filter(is_row).count();
        put_u16(page, ROWS, rows as u16);
        debug_assert!(Directory::new(page).bytes() <= page.len());
        // One without slots has no column part either, and all its room.
        cut_free_slots(page);
    }
}

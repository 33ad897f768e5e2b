//! What lies in the slots of a data page.
//!
//! Invariant: nothing it gives lies outside the page, whatever its bytes are.

use super::column_part::{self, Directory, Entry, State};
use super::page::{DataPage, Place, StoredKind, StoredRow};
use super::ranges::SlotRanges;
use pagefold_types::Rid;

/// Reads the slots of a page: what its directory says of itself is read once.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotReader<'a> {
    page: DataPage<'a>,
    /// Of a page with a column part.
    directory: Option<Directory<'a>>,
}

impl<'a> SlotReader<'a> {
    #[inline]
    pub(super) fn new(page: DataPage<'a>) -> SlotReader<'a> {
        SlotReader { page, directory: page.has_columns().then(|| Directory::new(page.bytes())) }
    }

    /// Does it read these bytes?
    pub(super) fn reads(&self, page: DataPage<'_>) -> bool {
        std::ptr::eq(self.page.bytes(), page.bytes())
    }

    /// As [`DataPage::ranges`].
    #[inline]
    pub(super) fn ranges(&self) -> SlotRanges<'a> {
        self.directory.map_or(SlotRanges::new(&[]), |directory| directory.ranges())
    }

    /// Of a slot with a row or ghost in the area: which row of it, and whether it is a ghost.
    #[inline]
    pub(super) fn area_row(&self, slot: u16) -> Option<(u16, bool)> {
        let directory = self.directory.as_ref().filter(|_| slot < self.page.slot_count())?;
        let ghost = match directory.state(slot) {
            State::Area => false,
            State::Ghost => true,
            State::Free | State::Entry => return None,
        };
        Some((directory.area_row(slot).unwrap_or(u16::MAX), ghost))
    }

    /// As [`DataPage::row`].
    #[inline]
    pub(super) fn row(&self, slot: u16) -> Option<StoredRow<'a>> {
        if slot >= self.page.slot_count() {
            return None;
        }
        match self.find(slot) {
            Place::Single { offset, length, kind: Some(kind), ghost: false } => self.single(slot, offset, length, kind),
            Place::Column { ghost: false } => Some(self.column_row(slot)),
            Place::Forwarded => {
                let bytes = self.ranges().raw_of(slot)?;
                Some(StoredRow { kind: StoredKind::Forwarded, bytes, slot, area_row: 0, home: None })
            }
            _ => None,
        }
    }

    /// As [`DataPage::ghost`].
    #[inline]
    pub(super) fn ghost(&self, slot: u16, kind: StoredKind) -> Option<StoredRow<'a>> {
        if slot >= self.page.slot_count() {
            return None;
        }
        match self.find(slot) {
            Place::Single { offset, length, kind: known, ghost: true } => self.single(slot, offset, length, known.unwrap_or(kind)),
            Place::Column { ghost: true } => Some(self.column_row(slot)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn find(&self, slot: u16) -> Place {
        if let Some(directory) = &self.directory {
            return self.find_by_entry(directory, slot);
        }
        let (offset, length, bits) = self.page.slot_fields(slot);
        match StoredKind::from_bits(bits) {
            None if offset == 0 => Place::Free,
            kind => Place::Single { offset, length, kind, ghost: kind.is_none() },
        }
    }

    fn find_by_entry(&self, directory: &Directory<'a>, slot: u16) -> Place {
        let without_row = || match directory.ranges().of(slot) {
            Some(range) if !range.hosted => Place::Forwarded,
            _ => Place::Free,
        };
        match directory.state(slot) {
            State::Free => without_row(),
            State::Area => Place::Column { ghost: false },
            State::Ghost => Place::Column { ghost: true },
            State::Entry => match directory.find(slot).ok().and_then(|index| directory.entry(index)) {
                Some(entry) => {
                    Place::Single { offset: entry.offset.into(), length: entry.length.into(), kind: Some(entry.kind), ghost: entry.ghost }
                }
                None => without_row(),
            },
        }
    }

    /// Is this slot, below the slot count, empty, and one of the page's own?
    #[inline]
    pub(super) fn is_free(&self, slot: u16) -> bool {
        self.find(slot) == Place::Free && self.ranges().of(slot).is_none()
    }

    /// Slots with a row, a ghost or a pointer.
    pub(super) fn in_use(&self) -> usize {
        match &self.directory {
            Some(directory) => directory.in_area() + directory.count(),
            None => (0..self.page.slot_count()).filter(|slot| self.find(*slot) != Place::Free).count(),
        }
    }

    /// The row of an entry.
    #[inline]
    pub(super) fn of_entry(&self, entry: &Entry) -> Option<StoredRow<'a>> {
        self.single(entry.slot, entry.offset.into(), entry.length.into(), entry.kind)
    }

    fn single(&self, slot: u16, offset: usize, length: usize, kind: StoredKind) -> Option<StoredRow<'a>> {
        Some(StoredRow { kind, bytes: self.page.bytes().get(offset..offset + length)?, slot, area_row: 0, home: self.home_of(slot) })
    }

    fn column_row(&self, slot: u16) -> StoredRow<'a> {
        let area_row = self.directory.and_then(|directory| directory.area_row(slot)).unwrap_or(u16::MAX);
        let bytes = column_part::part_bytes(self.page.bytes());
        StoredRow { kind: StoredKind::Column, bytes, slot, area_row, home: self.home_of(slot) }
    }

    /// As [`DataPage::home_of`].
    #[inline]
    pub(super) fn home_of(&self, slot: u16) -> Option<Rid> {
        self.ranges().of(slot).filter(|range| range.hosted).map(|range| range.there(slot))
    }
}

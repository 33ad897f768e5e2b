//! Building a data page anew, with its rows by column.
//!
//! Invariants:
//! - every slot keeps its number, and its row or ghost; forward pointers, rows that are away from home, and ghosts that lie by themselves keep their bytes;
//! - slots of the area that have no row there repeat one nearby, or, where that would take more, a map says which slots have one.

use super::column_part::{ColumnPart, Entry, State, map_bytes, state_bytes};
use super::forms::RecordDecoder;
use super::page::{DataPage, StoredKind};
use super::place::ColumnImage;
use super::ranges::{SlotRange, put_ranges};
use super::stored::{Body, Stored};
use crate::FormatError;
use pagefold_codec::CodecError;
use pagefold_codec::page::{CarriedRows, PageEncoder};
use pagefold_codec::row::RowDictionary;

/// What a row that repeats another one takes, about.
const REPEATED_BYTES: usize = 2;

/// Rows of an area are carried over together if at least one in so many of it is.
const CARRIED_PART: usize = 8;

/// A row or ghost that comes to lie in a slot of a page that is built.
#[derive(Clone, Copy, Debug)]
pub struct PlacedRow<'p> {
    /// The slot.
    pub slot: u16,
    /// The page it comes from.
    pub page: DataPage<'p>,
    /// Its slot there. There may be nothing.
    pub at: u16,
}

/// A row that is new to a page that is built, or a pointer to where it is.
#[derive(Clone, Copy, Debug)]
pub enum SingleRow<'p> {
    /// By itself.
    Alone {
        /// The slot, in which no other row comes to lie.
        slot: u16,
        /// How it is stored; see [`Stored::build`].
        kind: StoredKind,
        /// The stored row.
        bytes: &'p [u8],
    },
    /// In the area.
    ByColumn {
        /// The slot.
        slot: u16,
        /// The row.
        body: Body<'p>,
    },
}

impl SingleRow<'_> {
    /// The slot.
    #[must_use]
    pub fn slot(&self) -> u16 {
        match self {
            SingleRow::Alone { slot, .. } | SingleRow::ByColumn { slot, .. } => *slot,
        }
    }
}

/// Builds pages anew; reused from page to page.
#[derive(Debug)]
pub struct ColumnBuilder {
    encoder: PageEncoder,
    dictionary_version: u16,
    area: Vec<u8>,
    rows: Vec<u8>,
    directory: Vec<u8>,
    record: Vec<u8>,
}

impl ColumnBuilder {
    /// `encoder` has string codes of the dictionary of this version; 0: it has none.
    #[must_use]
    pub fn new(encoder: PageEncoder, dictionary_version: u16) -> ColumnBuilder {
        ColumnBuilder { encoder, dictionary_version, area: Vec::new(), rows: Vec::new(), directory: Vec::new(), record: Vec::new() }
    }

    /// The version of the dictionary it uses.
    #[must_use]
    pub fn dictionary_version(&self) -> u16 {
        self.dictionary_version
    }

    /// The rows of a page, by column. `None` when that is not possible: they would be too long for any page, or there are ghosts of unknown kind.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn rebuild<'d>(
        &mut self,
        page: &DataPage<'_>,
        decoder: &RecordDecoder,
        dictionary: impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<ColumnImage<'_>>, FormatError> {
        let ranges: Vec<SlotRange> = page.ranges().iter().collect();
        self.build((0..page.slot_count()).map(|slot| PlacedRow { slot, page: *page, at: slot }), None, &ranges, decoder, dictionary)
    }

    /// A page with these rows, which ascend by slot, one more, and ranges. What lies in a slot of a forwarded range on its page comes along by its entry only. `None` as for [`Self::rebuild`].
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn build<'p, 'd>(
        &mut self,
        rows: impl Iterator<Item = PlacedRow<'p>>,
        single: Option<SingleRow<'p>>,
        ranges: &[SlotRange],
        decoder: &RecordDecoder,
        dictionary: impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<ColumnImage<'_>>, FormatError> {
        let mut slots = ranges.last().map_or(0, SlotRange::end);
        // The rows of the area, and how many slots up to the last of them have none.
        let (mut in_area, mut area_slots) = (0, 0);
        let mut placed = Vec::new();
        for PlacedRow { slot, page, at } in rows {
            let (row, ghost) = match page.row(at) {
                Some(row) => (Some(row), false),
                None => (page.ghost(at, StoredKind::Special), true),
            };
            let Some(row) = row.filter(|row| row.kind != StoredKind::Forwarded) else { continue };
            if ghost && !page.has_columns() {
                return Ok(None);
            }
            slots = slots.max(slot + 1);
            let body = match Stored::parse(row, page.dictionary_version())? {
                Stored::Home(body) | Stored::Hosted { body, .. } if !ghost || matches!(body, Body::Column { .. }) => Some(body),
                _ => None,
            };
            if body.is_some() {
                (in_area, area_slots) = (in_area + 1, usize::from(slot) + 1);
            }
            placed.push((slot, row.kind, row.bytes, ghost, body));
        }
        if let Some(single) = single {
            let slot = single.slot();
            slots = slots.max(slot + 1);
            let at = placed.partition_point(|placed| placed.0 < slot);
            placed.insert(
                at,
                match single {
                    SingleRow::Alone { kind, bytes, .. } => (slot, kind, bytes, false, None),
                    SingleRow::ByColumn { body, .. } => {
                        (in_area, area_slots) = (in_area + 1, area_slots.max(usize::from(slot) + 1));
                        (slot, StoredKind::Column, &[][..], false, Some(body))
                    }
                },
            );
        }
        // A row that repeats another takes some bytes, a slot of the map a bit.
        let sparse = (area_slots - in_area) * REPEATED_BYTES > map_bytes(area_slots);
        let mut states = vec![State::Free; usize::from(slots)];
        let mut map = vec![0u8; area_slots.div_ceil(8)];
        let mut entries = Vec::new();
        self.rows.clear();
        self.encoder.clear();
        let mut carried = self.carried(placed.iter().filter_map(|placed| placed.4), decoder, &dictionary)?;
        let mut area_rows = 0;
        for (slot, kind, bytes, ghost, body) in placed {
            let at = usize::from(slot);
            let Some(body) = body else {
                let offset = self.rows.len();
                self.rows.extend_from_slice(bytes);
                entries.push(Entry { slot, kind, ghost, offset: offset as u16, length: bytes.len() as u16 });
                states[at] = State::Entry;
                continue;
            };
            // Slots before the row repeat it, unless the map says that they have none.
            let times = if sparse { 1 } else { at + 1 - area_rows };
            let damaged = |e: CodecError| FormatError::new(format!("slot {slot}: {e}"));
            if let Some((rows, row)) = carried_row(&mut carried, body) {
                (0..times).try_for_each(|_| self.encoder.push_carried(rows, row)).map_err(damaged)?;
            } else {
                let record = decoder.decode(body, body.dictionary().and_then(&dictionary), &mut self.record)?;
                (0..times).try_for_each(|_| self.encoder.push(record)).map_err(damaged)?;
            }
            area_rows += times;
            map[at / 8] |= 1 << (at % 8);
            states[at] = if ghost { State::Ghost } else { State::Area };
        }
        self.area.clear();
        if area_rows > 0 && self.encoder.encode(area_rows, &mut self.area).is_none() {
            return Ok(None);
        }
        let start = super::column_part::AREA + self.area.len();
        self.directory.clear();
        for mut entry in entries {
            let Ok(offset) = u16::try_from(start + usize::from(entry.offset)) else { return Ok(None) };
            entry.offset = offset;
            self.directory.extend_from_slice(&entry.to_bytes());
        }
        let at = self.directory.len();
        self.directory.resize(at + state_bytes(area_slots), 0);
        for (slot, state) in states[..area_slots].iter().enumerate() {
            self.directory[at + slot / 4] |= (*state as u8) << (slot % 4 * 2);
        }
        if sparse {
            self.directory.extend_from_slice(&map);
            self.directory.extend_from_slice(&(area_slots as u16).to_le_bytes());
        }
        put_ranges(ranges, &mut self.directory);
        let dictionary_version = if self.area.is_empty() { 0 } else { self.dictionary_version };
        let ranges = ranges.len() as u16;
        Ok(Some(ColumnImage { slots, dictionary_version, area: &self.area, rows: &self.rows, directory: &self.directory, ranges, sparse }))
    }

    /// The areas of which enough rows come here that it is worthwhile to unpack them.
    fn carried<'p, 'd: 'p>(
        &self,
        bodies: impl Iterator<Item = Body<'p>>,
        decoder: &'p RecordDecoder,
        dictionary: &impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Vec<Carried<'p>>, FormatError> {
        let mut parts: Vec<(ColumnPart<'p>, Option<u16>, usize)> = Vec::new();
        for body in bodies {
            let Body::Column { part, .. } = body else { continue };
            match parts.iter_mut().find(|known| std::ptr::eq(known.0.area(), part.area())) {
                Some((_, _, rows)) => *rows += 1,
                None => parts.push((part, body.dictionary(), 1)),
            }
        }
        let carried = parts.into_iter().filter(|(part, _, rows)| rows * CARRIED_PART >= part.rows()).map(|(part, version, _)| {
            let area = decoder.area(part, version.and_then(dictionary))?;
            Ok((part.area(), CarriedRows::new(area, version == Some(self.dictionary_version))))
        });
        carried.collect()
    }
}

/// An area, by its bytes, and its rows.
type Carried<'p> = (&'p [u8], CarriedRows<'p>);

/// Where the row of a body is to be carried over from.
fn carried_row<'c, 'p>(carried: &'c mut [Carried<'p>], body: Body<'_>) -> Option<(&'c mut CarriedRows<'p>, usize)> {
    let Body::Column { part, row } = body else { return None };
    let found = carried.iter_mut().find(|(area, _)| std::ptr::eq(*area, part.area()));
    found.map(|(_, rows)| (rows, usize::from(row)))
}

//! Building a data page anew, with its rows by column.
//!
//! Invariants:
//! - every slot keeps its number, and its row or ghost; forward pointers and ghosts that lie by themselves keep their bytes;
//! - slots of the area that have no row there repeat one nearby, which takes next to nothing.

use super::column_part::{Entry, State, state_bytes};
use super::forms::RecordDecoder;
use super::page::{DataPage, StoredKind};
use super::place::ColumnImage;
use super::stored::{Body, Stored};
use crate::FormatError;
use pagefold_codec::page::PageEncoder;
use pagefold_codec::row::RowDictionary;

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

    /// The rows of a page, by column. `None` when that is not possible: they would be too long for any page, there are ghosts of unknown kind, or rows that are away from home, which pages with a column part do not have.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn rebuild<'d>(
        &mut self,
        page: &DataPage<'_>,
        decoder: &RecordDecoder,
        dictionary: impl Fn(u16) -> Option<&'d RowDictionary>,
    ) -> Result<Option<ColumnImage<'_>>, FormatError> {
        let slots = page.slot_count();
        let mut states = vec![State::Free; usize::from(slots)];
        let mut entries = Vec::new();
        self.rows.clear();
        self.encoder.clear();
        // Slots before the first row of the area repeat that one.
        let mut pending = 0;
        let mut area_rows = 0;
        for slot in 0..slots {
            let (row, ghost) = match page.row(slot) {
                Some(row) => (Some(row), false),
                None => (page.ghost(slot, StoredKind::Special), true),
            };
            let Some(row) = row else {
                pending += 1;
                continue;
            };
            if ghost && !page.has_columns() {
                return Ok(None);
            }
            let stored = Stored::parse(row, page.dictionary_version())?;
            match stored {
                Stored::Home(body) if !ghost || matches!(body, Body::Column { .. }) => {
                    let version = body.dictionary();
                    let record = decoder.decode(body, version.and_then(&dictionary), &mut self.record)?;
                    for _ in 0..=pending {
                        self.encoder.push(record).map_err(|e| FormatError::new(format!("slot {slot}: {e}")))?;
                    }
                    pending = 0;
                    area_rows = usize::from(slot) + 1;
                    states[usize::from(slot)] = if ghost { State::Ghost } else { State::Area };
                }
                Stored::Away { .. } => return Ok(None),
                _ => {
                    let offset = self.rows.len();
                    self.rows.extend_from_slice(row.bytes);
                    entries.push(Entry { slot, kind: row.kind, ghost, offset: offset as u16, length: row.bytes.len() as u16 });
                    states[usize::from(slot)] = State::Entry;
                    pending += 1;
                }
            }
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
        self.directory.resize(at + state_bytes(area_rows), 0);
        for (slot, state) in states[..area_rows].iter().enumerate() {
            self.directory[at + slot / 4] |= (*state as u8) << (slot % 4 * 2);
        }
        let dictionary_version = if self.area.is_empty() { 0 } else { self.dictionary_version };
        Ok(Some(ColumnImage { slots, dictionary_version, area: &self.area, rows: &self.rows, directory: &self.directory }))
    }
}

//! How LOAD and REORG fill data pages by column. The estimator counts pages with the same code.
//!
//! Invariants:
//! - a page holds as many of the rows that come next as fit its column part, or, if that are no more, as fit one by one: so never fewer than under the method `row`;
//! - pages with a column part keep a little room for rows that change, and no more rows than could all move away.

use super::column_part::{AREA, MOVED_SPACE, state_bytes};
use super::forms::{RecordEncoder, area_form};
use super::page::{DATA_HEADER_BYTES, row_space};
use super::place::ColumnImage;
use pagefold_codec::CodecError;
use pagefold_codec::page::{PageEncoder, PageSchema, PreparedRows, ROWS_MAX, RowPreparer};
use pagefold_codec::row::{Encoder, RowDictionary};
use pagefold_types::CompactLayout;
use std::sync::Arc;

/// Of a page's bytes, one in so many stays free for rows that change.
const RESERVE: usize = 32;

/// The most rows that may come to lie on a page with a column part: each may have to move.
#[must_use]
pub fn column_rows_max(page_bytes: usize, maxrows: u16) -> usize {
    ((page_bytes - AREA) / MOVED_SPACE).min(usize::from(maxrows)).min(ROWS_MAX)
}

/// An encoder of areas whose strings may have [codes](string_codes) of a dictionary.
#[must_use]
pub fn area_encoder(columns: PageSchema, codes: Option<Arc<Encoder>>) -> PageEncoder {
    PageEncoder::new(Arc::new(columns), codes)
}

/// What turns strings of columns into codes of a dictionary. Takes a millisecond or more to make, and can be shared.
#[must_use]
pub fn string_codes(dictionary: &RowDictionary) -> Arc<Encoder> {
    Arc::new(Encoder::new(dictionary.tokens()))
}

/// What comes onto the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedPage {
    /// Rows.
    pub rows: usize,
    /// In a column part? Else one by one.
    pub columns: bool,
    /// Bytes that the rows take with their slots, states and the column header.
    pub row_bytes: usize,
}

/// Cuts rows into pages.
#[derive(Debug)]
pub struct ColumnPacker {
    encoder: PageEncoder,
    single: RecordEncoder,
    /// No row takes less by itself, strings apart.
    space_min: usize,
    page_bytes: usize,
    pctfree: usize,
    maxrows: usize,
    rows_max: usize,
    /// Rows from which on a look is worthwhile, when more rows than may lie by column fit one by one.
    next_look: usize,
    dictionary_version: u16,
    /// Number of the layout of its records.
    layout: u8,
    area: Vec<u8>,
    directory: Vec<u8>,
}

impl ColumnPacker {
    /// For pages of this size, of which `pctfree` percent stay free, with at most `maxrows` rows each. `codes`: [string codes](string_codes) of a dictionary, and its version.
    #[must_use]
    pub fn new(
        (compact, columns): (CompactLayout, PageSchema),
        codes: Option<(u16, Arc<Encoder>)>,
        page_bytes: usize,
        pctfree: u8,
        maxrows: u16,
    ) -> ColumnPacker {
        let (version, codes) = codes.unzip();
        ColumnPacker {
            encoder: area_encoder(columns, codes),
            space_min: row_space(compact.header_len()),
            single: RecordEncoder::compact(compact),
            layout: 0,
            page_bytes,
            pctfree: usize::from(pctfree.min(99)),
            maxrows: maxrows.into(),
            rows_max: column_rows_max(page_bytes, maxrows),
            next_look: 0,
            dictionary_version: version.unwrap_or(0),
            area: Vec::new(),
            directory: Vec::new(),
        }
    }

    /// The same for records of another layout of the table than the first.
    #[must_use]
    pub fn of_layout(mut self, number: u8) -> ColumnPacker {
        self.single = self.single.of_layout(number);
        self.layout = number;
        self
    }

    /// Takes in a record. Look for [pages](Self::next_page) after each.
    ///
    /// # Errors
    /// When it is no record of the table.
    pub fn push(&mut self, record: &[u8]) -> Result<(), CodecError> {
        self.encoder.push(record)
    }

    /// Takes in as many rows, at least one, as come before the next look for [pages](Self::next_page), and says how many: of those with these records, which a
    /// [preparer](Self::preparer) has taken apart, the first as number `first`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Panics
    /// When there is no record, or `prepared` is of others.
    pub fn push_prepared(&mut self, records: &[&[u8]], prepared: &PreparedRows, first: usize) -> Result<usize, CodecError> {
        let rows = self.rows_at_next_look().saturating_sub(self.held()).clamp(1, records.len());
        self.encoder.push_prepared(&records[..rows], prepared, first)?;
        Ok(rows)
    }

    /// What other threads can take rows apart with.
    #[must_use]
    pub fn preparer(&self) -> RowPreparer {
        self.encoder.preparer()
    }

    /// With fewer rows than these, and more to come, there is no page.
    fn rows_at_next_look(&self) -> usize {
        self.encoder.rows_worth_a_trial().min(self.rows_max).max(self.next_look)
    }

    /// What the next page holds; `None`: more rows may fit. `last`: there are no more. [Take](Self::take) them before the next look.
    pub fn next_page(&mut self, last: bool) -> Option<PackedPage> {
        let held = self.held();
        let full = held >= self.rows_max;
        if held == 0 || !last && held < self.rows_at_next_look() {
            return None;
        }
        let rows = self.rows_that_fit(held);
        // Most pages have far more rows by column: how long each is by itself need not be known then.
        let (single, single_bytes) = if self.are_too_many_one_by_one(rows) { (0, 0) } else { self.rows_one_by_one() };
        if rows.max(single) == held && !last && !full {
            return None;
        }
        // The shortest rows: more of them than could all move away fit one by one.
        if single == held && single >= rows && !last && held < self.maxrows.min(ROWS_MAX) {
            self.next_look = (held + held / 16 + 1).min(self.maxrows).min(ROWS_MAX);
            return None;
        }
        self.next_look = 0;
        Some(if rows > single {
            let row_bytes = self.encoder.len_of(rows) + state_bytes(rows) + AREA - DATA_HEADER_BYTES;
            PackedPage { rows, columns: true, row_bytes }
        } else {
            PackedPage { rows: single, columns: false, row_bytes: single_bytes }
        })
    }

    fn rows_that_fit(&mut self, held: usize) -> usize {
        let room = (self.page_bytes - AREA) * (100 - self.pctfree) / 100;
        let reserve = (self.page_bytes / RESERVE).min(MOVED_SPACE * held);
        self.encoder.rows_that_fit(room.saturating_sub(reserve), self.rows_max, state_bytes)
    }

    fn room_one_by_one(&self) -> usize {
        (self.page_bytes - DATA_HEADER_BYTES) * (100 - self.pctfree) / 100
    }

    /// So many rows are certainly more than would fit one by one.
    fn are_too_many_one_by_one(&self, rows: usize) -> bool {
        rows > 1 && rows * self.space_min + self.encoder.variable_bytes(rows) > self.room_one_by_one()
    }

    /// As [`PagePacker`](super::PagePacker) counts: at least one.
    fn rows_one_by_one(&self) -> (usize, usize) {
        let room = self.room_one_by_one();
        let (mut rows, mut used) = (0, 0);
        for row in 0..self.held().min(self.maxrows) {
            let space = row_space(self.single.stored_len(self.record(row)).0);
            if rows > 0 && used + space > room {
                break;
            }
            used += space;
            rows += 1;
        }
        (rows, used)
    }

    /// The page of the first `rows` rows, by column.
    ///
    /// # Panics
    /// When it is not what [`next_page`](Self::next_page) has said.
    pub fn image(&mut self, rows: usize) -> ColumnImage<'_> {
        self.area.clear();
        let length = self.encoder.encode(rows, &mut self.area);
        assert!(length.is_some(), "an area that fits a page is not too long");
        self.directory.clear();
        self.directory.resize(rows / 4, 0x55);
        if !rows.is_multiple_of(4) {
            self.directory.push(0x55 & ((1 << (rows % 4 * 2)) - 1));
        }
        ColumnImage {
            slots: rows as u16,
            dictionary_version: area_form(self.layout, self.dictionary_version),
            area: &self.area,
            rows: &[],
            directory: &self.directory,
            ranges: 0,
            sparse: false,
        }
    }

    /// A record that it holds.
    ///
    /// # Panics
    /// When it holds fewer.
    #[must_use]
    pub fn record(&self, row: usize) -> &[u8] {
        self.encoder.held_record(row)
    }

    /// Lets go of the first rows.
    ///
    /// # Panics
    /// When it holds fewer.
    pub fn take(&mut self, rows: usize) {
        self.encoder.drain(rows);
    }

    /// How many rows it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.encoder.rows()
    }
}

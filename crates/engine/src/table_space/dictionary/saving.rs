//! How many pages a dictionary saves.
//!
//! Rows of a sample are put on pages by the arithmetic that LOAD fills them with, and the pages are scaled to all rows. Bytes would not do: where MAXROWS or PCTFREE say how many rows go on
//! a page, or one goes on a page in any case, shorter rows save none.
//!
//! Invariant: deterministic, so that LOAD and a full estimate decide alike. Of a table that the sample is all of, the pages are exact; by column, if they are few.

use super::super::attributes::Method;
use super::sample::SampledRecords;
use pagefold_codec::page::PageSchema;
use pagefold_codec::row::RowDictionary;
use pagefold_format::chain;
use pagefold_format::data::forms::{RecordEncoder, plain_len};
use pagefold_format::data::{ColumnPacker, DATA_HEADER_BYTES, PageFill, PagePacker, string_codes};
use pagefold_types::{CompactLayout, RowLayout};

/// So many bytes of records are put on pages by column at most: that takes as long as loading them, twice for each page size ...
const COLUMN_BYTES: usize = 512 << 10;
/// ... in runs of so many, since rows that lie by column are to be true neighbours.
const COLUMN_RUN_BYTES: usize = 128 << 10;

/// What a dictionary does for the rows of a sample.
#[derive(Debug)]
pub struct Saving<'s> {
    sample: &'s SampledRecords,
    dictionary: &'s RowDictionary,
    dictionary_bytes: usize,
    rows: Rows<'s>,
}

#[derive(Debug)]
enum Rows<'s> {
    /// Bytes in its slot of each row, without and with the dictionary.
    Single(Vec<[u16; 2]>),
    /// By column.
    Columns(&'s RowLayout),
}

impl<'s> Saving<'s> {
    /// Of a dictionary that the method's tables would have.
    #[must_use]
    pub fn new(sample: &'s SampledRecords, method: Method, layout: &'s RowLayout, dictionary: &'s RowDictionary) -> Saving<'s> {
        let rows = if method == Method::Page {
            Rows::Columns(layout)
        } else {
            let encoder = RecordEncoder::codes(1, dictionary);
            // No record is longer than a page of 32 KB, nor what is stored of it longer than the record by more than its tag.
            let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX);
            Rows::Single(sample.iter().map(|record| [length(plain_len(record)), length(encoder.stored_len(record).0)]).collect())
        };
        Saving { sample, dictionary, dictionary_bytes: dictionary.to_bytes().len(), rows }
    }

    /// Does the dictionary save more pages that are filled so than it takes, for `rows_total` rows like these?
    #[must_use]
    pub fn pays(&self, rows_total: u64, fill: PageFill) -> bool {
        let [without, with] = [false, true].map(|with| self.counted(with, fill).pages_of(rows_total));
        without - with > chain::pages_needed(self.dictionary_bytes, fill.page_bytes) as f64
    }

    /// The page sizes for which it pays.
    #[must_use]
    pub fn paying(&self, rows_total: u64, fills: &[PageFill]) -> Vec<usize> {
        fills.iter().filter(|fill| self.pays(rows_total, **fill)).map(|fill| fill.page_bytes).collect()
    }

    /// Pages that a row takes with the dictionary.
    pub(super) fn pages_per_row(&self, fill: PageFill) -> f64 {
        self.counted(true, fill).pages_per_row()
    }

    fn counted(&self, with: bool, fill: PageFill) -> Counted {
        match &self.rows {
            Rows::Single(lengths) => {
                let mut packer = PagePacker::new(fill.page_bytes, fill.pctfree, fill.maxrows);
                for length in lengths {
                    packer.push(length[usize::from(with)].into());
                }
                Counted {
                    rows: lengths.len() as u64,
                    pages: packer.pages(),
                    rows_on_last: packer.rows_on_last() as u64,
                    part_of_last: packer.part_of_last(),
                }
            }
            Rows::Columns(layout) => self.columns(layout, with, fill),
        }
    }

    fn columns(&self, layout: &RowLayout, with: bool, fill: PageFill) -> Counted {
        let layouts = (CompactLayout::new(layout.clone()), PageSchema::new(layout));
        let codes = with.then(|| (1, string_codes(self.dictionary)));
        let mut packer = ColumnPacker::new(layouts, codes, fill.page_bytes, fill.pctfree, fill.maxrows);
        let room = (fill.page_bytes - DATA_HEADER_BYTES) * (100 - usize::from(fill.pctfree.min(99))) / 100;
        let mut counted = Counted::default();
        let mut put = |packer: &mut ColumnPacker, last: bool| {
            while let Some(page) = packer.next_page(last) {
                counted.rows += page.rows as u64;
                counted.pages += 1;
                counted.rows_on_last = page.rows as u64;
                let bytes = page.row_bytes as f64 / room.max(1) as f64;
                counted.part_of_last = bytes.max(page.rows as f64 / f64::from(fill.maxrows.max(1))).min(1.0);
                packer.take(page.rows);
            }
        };
        for record in self.sample.runs(COLUMN_BYTES, COLUMN_RUN_BYTES) {
            // Records come from pages and packers: they are of the layout.
            if packer.push(record).is_ok() {
                put(&mut packer, false);
            }
        }
        put(&mut packer, true);
        counted
    }
}

/// Pages that some rows have been put on.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    rows: u64,
    pages: u64,
    rows_on_last: u64,
    part_of_last: f64,
}

impl Counted {
    /// Pages of so many rows, if those that were counted are like the others.
    fn pages_of(&self, rows_total: u64) -> f64 {
        if rows_total <= self.rows { self.pages as f64 } else { self.pages_per_row() * rows_total as f64 }
    }

    /// The last page says little of others, unless it is the only one.
    fn pages_per_row(&self) -> f64 {
        let (pages, rows) = match self.pages {
            0 | 1 => (self.part_of_last, self.rows),
            more => ((more - 1) as f64, self.rows - self.rows_on_last),
        };
        pages / rows.max(1) as f64
    }
}

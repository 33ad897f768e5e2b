//! How LOAD and REORG fill data pages in order. The estimator counts pages with the same arithmetic.

use super::page::{DATA_HEADER_BYTES, row_space};

/// How full pages get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFill {
    /// Page size.
    pub page_bytes: usize,
    /// Percent of each page left free, 0 to 99.
    pub pctfree: u8,
    /// The most rows on a page, 1 to 4,096.
    pub maxrows: u16,
}

/// Counts rows into pages.
#[derive(Clone, Copy, Debug)]
pub struct PagePacker {
    usable: usize,
    maxrows: usize,
    used: usize,
    rows: usize,
    pages: u64,
}

impl PagePacker {
    /// For pages of this size, of which `pctfree` percent stay free, with at most `maxrows` rows each.
    #[must_use]
    pub fn new(page_bytes: usize, pctfree: u8, maxrows: u16) -> PagePacker {
        let room = page_bytes - DATA_HEADER_BYTES;
        let usable = room * (100 - usize::from(pctfree.min(99))) / 100;
        PagePacker { usable, maxrows: usize::from(maxrows), used: 0, rows: 0, pages: 0 }
    }

    /// Adds a row of `stored_bytes`; true when it starts a page. A row longer than the usable part gets a page of its own.
    #[inline]
    pub fn push(&mut self, stored_bytes: usize) -> bool {
        let space = row_space(stored_bytes);
        let starts = self.pages == 0 || self.rows == self.maxrows || self.used + space > self.usable;
        if starts {
            self.pages += 1;
            self.used = 0;
            self.rows = 0;
        }
        self.used += space;
        self.rows += 1;
        starts
    }

    /// Rows on the last page.
    #[must_use]
    pub fn rows_on_last(&self) -> usize {
        self.rows
    }

    /// The part of the last page that is full, by bytes or rows: 0 to 1.
    #[must_use]
    pub fn part_of_last(&self) -> f64 {
        let bytes = self.used as f64 / self.usable.max(1) as f64;
        bytes.max(self.rows as f64 / self.maxrows.max(1) as f64).min(1.0)
    }

    /// Pages so far.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

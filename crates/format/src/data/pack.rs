//! How LOAD and REORG fill data pages in order. The estimator counts pages with the same arithmetic.

use super::page::{DATA_HEADER_BYTES, row_space};

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

    /// Pages so far.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

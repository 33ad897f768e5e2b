//! Data pages of one method and page size, filled as LOAD and REORG fill them.
//!
//! Invariants:
//! - pages are taken in the order of `BulkLoader`: the dictionary when a partition is opened, large values before the page of their row;
//! - so page numbers, slots and partitions are those of the load, and the pages of all kinds are counted.

use crate::pages::PageCounter;
use crate::sample::Shares;
use pagefold_format::chain;
use pagefold_format::data::{AWAY_OVERHEAD, DATA_HEADER_BYTES, PackedPage, PageFill, PagePacker, largest_row, row_space};
use pagefold_types::{PARTITION_MAX, Rid, SLOT_MAX};

/// How a table is stored, compression apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Page size.
    pub page_bytes: usize,
    /// Percent of each page left free.
    pub pctfree: u8,
    /// The most rows on a page.
    pub maxrows: u16,
    /// Bytes of a partition.
    pub partition_bytes: u64,
}

impl TableOptions {
    /// Defaults: nothing left free, partitions of 64 GB.
    #[must_use]
    pub fn new(page_bytes: usize) -> TableOptions {
        TableOptions { page_bytes, pctfree: 0, maxrows: SLOT_MAX + 1, partition_bytes: 64 << 30 }
    }

    /// The longest record that goes on a page, wherever it moves.
    #[must_use]
    pub fn record_bytes_max(&self) -> usize {
        largest_row(self.page_bytes) - AWAY_OVERHEAD
    }

    /// How full pages get.
    #[must_use]
    pub fn fill(&self) -> PageFill {
        PageFill { page_bytes: self.page_bytes, pctfree: self.pctfree, maxrows: self.maxrows }
    }

    /// Bytes of a data page for rows and slots.
    #[must_use]
    pub fn room(&self) -> usize {
        self.page_bytes - DATA_HEADER_BYTES
    }
}

/// Counts the pages of a table.
#[derive(Clone, Debug)]
pub struct TablePacker {
    options: TableOptions,
    dictionary_bytes: usize,
    packer: PagePacker,
    pages: PageCounter,
    partition: u16,
    number: u32,
    slot: u16,
    used: usize,
    full_used: u64,
    /// Pages that were added whole.
    column_pages: u64,
    pub(super) rows: u64,
    pub(super) row_bytes: u64,
    pub(super) large_pages: u64,
    pub(super) dictionary_pages: u64,
    /// Pages of all kinds, and those that are header or map, of partitions that are full.
    closed: (u64, u64),
    pub(super) shares: Shares,
}

impl TablePacker {
    /// An empty table, with a dictionary of so many bytes, if it has one.
    #[must_use]
    pub fn new(options: TableOptions, dictionary_bytes: Option<usize>) -> TablePacker {
        let mut packer = TablePacker {
            options,
            dictionary_bytes: dictionary_bytes.unwrap_or(0),
            packer: PagePacker::new(options.page_bytes, options.pctfree, options.maxrows),
            pages: PageCounter::new(options.page_bytes),
            partition: 0,
            number: 0,
            slot: 0,
            used: 0,
            full_used: 0,
            column_pages: 0,
            rows: 0,
            row_bytes: 0,
            large_pages: 0,
            dictionary_pages: 0,
            closed: (0, 0),
            shares: Shares::default(),
        };
        packer.store_dictionary();
        packer
    }

    fn chain(&mut self, bytes: usize) -> (u32, u64) {
        let count = chain::pages_needed(bytes, self.options.page_bytes).max(1);
        let first = self.pages.append();
        for _ in 1..count {
            self.pages.append();
        }
        (first, count as u64)
    }

    fn store_dictionary(&mut self) {
        if self.dictionary_bytes > 0 {
            self.dictionary_pages += self.chain(self.dictionary_bytes).1;
        }
    }

    /// How the table is stored.
    #[must_use]
    pub fn options(&self) -> &TableOptions {
        &self.options
    }

    /// Takes the pages of a large value that is stored in `stored_bytes`; gives its partition and first page. Its row comes next.
    pub fn large_value(&mut self, stored_bytes: usize) -> (u16, u32) {
        let (first, count) = self.chain(stored_bytes);
        self.large_pages += count;
        self.shares.own(count as f64);
        (self.partition, first)
    }

    /// Adds a row that takes `stored_bytes` on its page; gives its RID.
    #[inline]
    pub fn push(&mut self, stored_bytes: usize) -> Rid {
        let space = row_space(stored_bytes);
        if self.packer.push(stored_bytes) {
            self.full_used += self.used as u64;
            self.shares.close(1.0);
            self.start_page();
        } else {
            self.slot += 1;
        }
        self.used += space;
        self.row_bytes += space as u64;
        self.rows += 1;
        self.shares.row(space as f64);
        Rid::new(self.partition, self.number, self.slot)
    }

    /// Adds a page with the rows that a [`ColumnPacker`](pagefold_format::data::ColumnPacker) has put there. Not to be mixed with rows added one by one.
    pub fn push_page(&mut self, page: PackedPage) -> Rid {
        self.full_used += self.used as u64;
        self.shares.close(1.0);
        self.start_page();
        self.column_pages += 1;
        self.used = page.row_bytes;
        self.row_bytes += page.row_bytes as u64;
        self.rows += page.rows as u64;
        let each = page.row_bytes as f64 / page.rows.max(1) as f64;
        (0..page.rows).for_each(|_| self.shares.row(each));
        self.slot = page.rows.saturating_sub(1) as u16;
        Rid::new(self.partition, self.number, self.slot)
    }

    fn start_page(&mut self) {
        let full = u64::from(self.pages.count() + 2) * self.options.page_bytes as u64 > self.options.partition_bytes;
        if full && self.partition < PARTITION_MAX {
            self.closed.0 += u64::from(self.pages.count());
            self.closed.1 += 1 + u64::from(self.pages.map_pages());
            self.pages = PageCounter::new(self.options.page_bytes);
            self.partition += 1;
            self.store_dictionary();
        }
        self.number = self.pages.append();
        (self.slot, self.used) = (0, 0);
    }

    /// Pages with rows.
    #[must_use]
    pub fn data_pages(&self) -> u64 {
        self.packer.pages() + self.column_pages
    }

    /// Pages of all kinds.
    #[must_use]
    pub fn page_count(&self) -> u64 {
        self.closed.0 + u64::from(self.pages.count())
    }

    /// Header and map pages.
    pub(super) fn other_pages(&self) -> u64 {
        self.closed.1 + u64::from(self.pages.map_pages()) + u64::from(self.pages.count() > 0)
    }

    /// Ends a sample: the page being filled counts as the part that it is of a page as full as the others.
    pub(super) fn end_sample(&mut self) {
        let full = match self.data_pages() {
            0 => return,
            1 => self.options.room() as f64 * f64::from(100 - self.options.pctfree.min(99)) / 100.0,
            n => self.full_used as f64 / (n - 1) as f64,
        };
        let rows = f64::from(self.slot + 1) / f64::from(self.options.maxrows);
        self.shares.close((self.used as f64 / full).max(rows).min(1.0));
    }

    pub(super) fn dictionary_bytes(&self) -> usize {
        self.dictionary_bytes
    }
}

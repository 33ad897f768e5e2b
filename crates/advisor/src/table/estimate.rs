//! What comes out for a table.

use super::packer::{TableOptions, TablePacker};
use crate::pages::data_set_pages;
use crate::sample::{END_OF_SAMPLE, Interval};
use pagefold_format::chain;

/// A table under one method and page size. Counts of a sample are scaled to all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEstimate {
    /// The method's name.
    pub method: &'static str,
    /// How it is stored.
    pub options: TableOptions,
    /// Has it a dictionary?
    pub dictionary: bool,
    /// Rows.
    pub rows: u64,
    /// Rows that the dictionary makes shorter.
    pub compressed_rows: u64,
    /// Pages of all kinds.
    pub pages: Interval,
    /// Pages that hold rows.
    pub data_pages: Interval,
    /// Pages of large values.
    pub large_pages: u64,
    /// Dictionary pages.
    pub dictionary_pages: u64,
    /// Header and space-map pages.
    pub other_pages: u64,
    /// Bytes of the records, uncompressed.
    pub record_bytes: u64,
    /// Bytes of the rows as stored, slots included.
    pub row_bytes: u64,
}

/// What is known of a candidate beside what a sample's clusters show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// What its pages are multiplied with.
    pub scale: f64,
    /// What is added to the relative half-width: what is not known for another reason than the sample.
    pub margin: f64,
}

impl Default for Correction {
    fn default() -> Correction {
        Correction { scale: 1.0, margin: 0.0 }
    }
}

/// Where a saving comes from, in bytes; what is negative costs. The four add up to the difference in size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saving {
    /// Rows are shorter.
    pub encoding_bytes: i64,
    /// Free space of the present pages that packing them anew takes away.
    pub free_space_bytes: i64,
    /// Ends of pages that no row fits into.
    pub rounding_bytes: i64,
    /// Page headers, dictionary, large values, header and space-map pages.
    pub other_bytes: i64,
}

impl Saving {
    /// All of it.
    #[must_use]
    pub fn total_bytes(&self) -> i64 {
        self.encoding_bytes + self.free_space_bytes + self.rounding_bytes + self.other_bytes
    }
}

impl TableEstimate {
    pub(super) fn exact(
        method: &'static str,
        dictionary: bool,
        record_bytes: u64,
        compressed_rows: u64,
        packer: &TablePacker,
    ) -> TableEstimate {
        TableEstimate {
            method,
            options: *packer.options(),
            dictionary,
            rows: packer.rows,
            compressed_rows,
            pages: Interval::exact(packer.page_count()),
            data_pages: Interval::exact(packer.data_pages()),
            large_pages: packer.large_pages,
            dictionary_pages: packer.dictionary_pages,
            other_pages: packer.other_pages(),
            record_bytes,
            row_bytes: packer.row_bytes,
        }
    }

    /// `packer` has packed the clusters of a sample one behind the other.
    pub(super) fn of_sample(
        (method, dictionary): (&'static str, bool),
        (record_bytes, compressed_rows): (u64, u64),
        packer: &TablePacker,
        rows: u64,
        clusters: f64,
        correction: Correction,
    ) -> TableEstimate {
        let options = *packer.options();
        let scale = rows as f64 / packer.rows.max(1) as f64;
        let scaled = |n: u64| (n as f64 * scale).round() as u64;
        // Data and large-value pages vary together: one interval for both.
        let (per_row, relative) = packer.shares.estimator().ratio(clusters);
        let end = if relative > 0.0 { END_OF_SAMPLE / packer.data_pages().max(1) as f64 } else { 0.0 };
        let relative = relative + end + correction.margin;
        let content = Interval::around(per_row * correction.scale * rows as f64, relative);
        let large_pages = scaled(packer.large_pages);
        let data_pages = content.map(|pages| pages.saturating_sub(large_pages));
        let dictionary_pages =
            if packer.dictionary_bytes() > 0 { chain::pages_needed(packer.dictionary_bytes(), options.page_bytes) as u64 } else { 0 };
        let partition_pages = (options.partition_bytes / options.page_bytes as u64).max(16);
        // Every partition has a header page, map pages and the dictionary.
        let all = |content: u64| {
            let partitions = content.div_ceil(partition_pages.saturating_sub(dictionary_pages + 2).max(1)).max(1);
            let each = content / partitions;
            (0..partitions.min(4096))
                .map(|i| data_set_pages(each + u64::from(i < content % partitions) + dictionary_pages, options.page_bytes))
                .sum()
        };
        let pages = content.map(all);
        TableEstimate {
            method,
            options,
            dictionary,
            rows,
            compressed_rows: scaled(compressed_rows),
            pages,
            data_pages,
            large_pages,
            dictionary_pages,
            other_pages: pages.value - (content.value + dictionary_pages).min(pages.value),
            record_bytes: scaled(record_bytes),
            row_bytes: scaled(packer.row_bytes),
        }
    }

    /// Bytes of all pages.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.pages.value * self.options.page_bytes as u64
    }

    /// Bytes of data pages that neither rows nor headers take.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        (self.data_pages.value * self.options.room() as u64).saturating_sub(self.row_bytes)
    }

    /// What this saves against `before`, whose rows now lie in `data_pages` pages (of `pages` in all); for a table that does not exist yet, those of `before` itself.
    #[must_use]
    pub fn saving(&self, before: &TableEstimate, data_pages: u64, pages: u64) -> Saving {
        let room = before.options.room() as i64;
        let encoding_bytes = before.row_bytes as i64 - self.row_bytes as i64;
        let free_space_bytes = (data_pages as i64 - before.data_pages.value as i64) * room;
        let rounding_bytes = before.free_bytes() as i64 - self.free_bytes() as i64;
        let total = pages as i64 * before.options.page_bytes as i64 - self.size_bytes() as i64;
        Saving { encoding_bytes, free_space_bytes, rounding_bytes, other_bytes: total - encoding_bytes - free_space_bytes - rounding_bytes }
    }
}

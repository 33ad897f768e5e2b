//! Pages of a data set that hold nothing of a table or index: its header page, and the space-map pages that come due.
//!
//! Invariant: page numbers are those that a data set filled from its start gives out (`docs/file-format.md`, "Data set").

use pagefold_format::space_map::{is_map_page, words_per_page};

/// Counts and numbers the pages of a data set that is filled from its start.
#[derive(Clone, Copy, Debug)]
pub struct PageCounter {
    page_bytes: usize,
    count: u32,
    map_pages: u32,
}

impl PageCounter {
    /// A data set without a file.
    #[must_use]
    pub fn new(page_bytes: usize) -> PageCounter {
        PageCounter { page_bytes, count: 0, map_pages: 0 }
    }

    /// The number of the next page. The first one makes the file, with its header page; map pages are passed over.
    pub fn append(&mut self) -> u32 {
        self.count = self.count.max(1);
        if is_map_page(self.count, self.page_bytes) {
            self.count = self.count.saturating_add(1);
            self.map_pages += 1;
        }
        let number = self.count;
        self.count = self.count.saturating_add(1);
        number
    }

    /// All pages so far; 0 while there is no file.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Space-map pages among them.
    #[must_use]
    pub fn map_pages(&self) -> u32 {
        self.map_pages
    }
}

/// All pages of one data set in which `content` pages are neither header nor map.
#[must_use]
pub fn data_set_pages(content: u64, page_bytes: usize) -> u64 {
    if content == 0 { 0 } else { 1 + content + content.div_ceil(u64::from(words_per_page(page_bytes)) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_one_by_one_and_at_once() {
        for page_bytes in [2048, 4096, 32768] {
            let mut pages = PageCounter::new(page_bytes);
            assert_eq!((pages.count(), data_set_pages(0, page_bytes)), (0, 0));
            for content in 1..3 * u64::from(words_per_page(page_bytes)) {
                let number = pages.append();
                assert!(number > 1 && !is_map_page(number, page_bytes));
                assert_eq!(u64::from(pages.count()), data_set_pages(content, page_bytes));
                assert_eq!(u64::from(pages.count()), 1 + u64::from(pages.map_pages()) + content);
            }
        }
    }
}

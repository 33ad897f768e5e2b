//! Space-map pages: for each page of an interval its free-space class and its write counter.
//!
//! Layout: `docs/file-format.md`, "Space-map page". Map page `i` of a data set is page `1 + i * n`, where n is the number of words a page holds; it describes itself
//! and the n - 1 pages after it.
//!
//! Invariant: a word is class (low 8 bits) and write counter modulo 2^24 (high 24 bits). Counters only grow, so a page on disk whose counter is behind its word is a
//! lost write.

use crate::FormatError;
use crate::data::DATA_HEADER_BYTES;
use crate::page::{self, HEADER_BYTES, PageType, get_u32, put_u32};

/// Format version of space-map pages.
pub const SPACE_MAP_VERSION: u8 = 1;

/// Class of a page that is not allocated.
pub const CLASS_UNALLOCATED: u8 = 0;
/// Class of an allocated page that takes no rows: index, dictionary, large-value and map pages.
pub const CLASS_NO_ROWS: u8 = 1;
/// Class of a data page without useful room; `CLASS_FULL + k` has at least `k` parts in [`CLASS_PARTS`] of the page free.
pub const CLASS_FULL: u8 = 2;
/// Into how many parts a page is divided to class its free space.
pub const CLASS_PARTS: usize = 253;
/// Class of a data page without rows, pointers and slots. As no class that is rounded down to is as high, rows as wide as a page find it, and no other.
pub const CLASS_EMPTY: u8 = CLASS_FULL + CLASS_PARTS as u8;

/// Words in one map page.
#[must_use]
pub const fn words_per_page(page_bytes: usize) -> u32 {
    ((page_bytes - HEADER_BYTES) / 4) as u32
}

/// The class of a data page with so many free bytes: rounded down. An empty page has a class of its own, [`CLASS_EMPTY`].
#[must_use]
pub fn class_of(free_bytes: usize, page_bytes: usize) -> u8 {
    if free_bytes >= page_bytes - DATA_HEADER_BYTES { CLASS_EMPTY } else { CLASS_FULL + (free_bytes * CLASS_PARTS / page_bytes) as u8 }
}

/// The lowest class that guarantees so many free bytes, of those that an empty page has: rounded up.
#[must_use]
pub fn class_needed(bytes: usize, page_bytes: usize) -> u8 {
    let class = CLASS_FULL + (bytes * CLASS_PARTS).div_ceil(page_bytes).min(CLASS_PARTS) as u8;
    if class > class_not_empty(page_bytes) { CLASS_EMPTY } else { class }
}

/// The highest class of a data page that is not empty.
#[must_use]
pub fn class_not_empty(page_bytes: usize) -> u8 {
    class_of(page_bytes - DATA_HEADER_BYTES - 1, page_bytes)
}

/// One page's entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceWord(pub u32);

impl SpaceWord {
    /// Of a class and a write counter, of which the low 24 bits are kept.
    #[must_use]
    pub fn new(class: u8, write_counter: u32) -> SpaceWord {
        SpaceWord(u32::from(class) | write_counter << 8)
    }

    /// The free-space class.
    #[must_use]
    pub fn class(self) -> u8 {
        self.0 as u8
    }

    /// The low 24 bits of the write counter.
    #[must_use]
    pub fn write_counter(self) -> u32 {
        self.0 >> 8
    }

    /// How far the counter found in a page is ahead of this word: 0 when equal, negative when the page is behind.
    #[must_use]
    pub fn page_ahead(self, page_counter: u32) -> i32 {
        // 24-bit difference, sign-extended.
        ((page_counter.wrapping_sub(self.write_counter()) << 8) as i32) >> 8
    }
}

/// Is this the number of a map page?
#[must_use]
pub fn is_map_page(page_number: u32, page_bytes: usize) -> bool {
    page_number >= 1 && (page_number - 1).is_multiple_of(words_per_page(page_bytes))
}

/// The map page that describes `page_number` (not 0, the header page), and the index of its word there.
#[must_use]
pub fn locate(page_number: u32, page_bytes: usize) -> (u32, u32) {
    let n = words_per_page(page_bytes);
    let index = (page_number - 1) % n;
    (page_number - index, index)
}

/// Writes a map page image from the words of its interval.
///
/// # Panics
/// When there are more words than a page holds: the caller cuts intervals by [`words_per_page`].
pub fn build(page: &mut [u8], page_number: u32, words: &[SpaceWord]) {
    assert!(words.len() <= words_per_page(page.len()) as usize);
    page.fill(0);
    page::init_header(page, page_number, PageType::SpaceMap, SPACE_MAP_VERSION);
    page::set_count(page, words.len() as u16);
    for (i, word) in words.iter().enumerate() {
        put_u32(page, HEADER_BYTES + 4 * i, word.0);
    }
    page::set_low_end(page, (HEADER_BYTES + 4 * words.len()) as u16);
}

/// The words of a map page.
///
/// # Errors
/// When the page is not a map page of this version or its count is too large.
pub fn words(page: &[u8]) -> Result<impl Iterator<Item = SpaceWord> + '_, FormatError> {
    if page::page_type(page) != Some(PageType::SpaceMap) {
        return Err(FormatError::new("not a space-map page"));
    }
    let version = page::page_version(page);
    if version != SPACE_MAP_VERSION {
        return Err(FormatError::new(format!("space-map page version {version}, this program knows {SPACE_MAP_VERSION}")));
    }
    let count = usize::from(page::count(page));
    if count > words_per_page(page.len()) as usize {
        return Err(FormatError::new(format!("{count} words in a space-map page of {} bytes", page.len())));
    }
    Ok((0..count).map(move |i| SpaceWord(get_u32(page, HEADER_BYTES + 4 * i))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_never_promise_too_much() {
        for page_bytes in (1..=16).map(|k| k * 2048) {
            for free in 0..page_bytes {
                let class = class_of(free, page_bytes);
                assert!(class >= CLASS_FULL);
                // What a class is searched for with is there.
                assert!((0..=free).rev().take(200).all(|need| class_needed(need, page_bytes) > class || need <= free));
                // More than that is not, if an empty page has it at all.
                assert!(class_needed(free + 1, page_bytes) > class || free >= page_bytes - DATA_HEADER_BYTES);
            }
        }
    }

    #[test]
    fn map_pages_describe_every_page_once() {
        for page_bytes in [2048, 4096] {
            let n = words_per_page(page_bytes);
            for page_number in 1..4 * n {
                let (map, index) = locate(page_number, page_bytes);
                assert!(is_map_page(map, page_bytes) && map + index == page_number && index < n);
                assert_eq!(index == 0, is_map_page(page_number, page_bytes));
            }
        }
    }

    #[test]
    fn counters_wrap() {
        let word = SpaceWord::new(7, 0x0100_0002);
        assert_eq!((word.class(), word.write_counter()), (7, 2));
        assert_eq!(word.page_ahead(2), 0);
        assert_eq!(word.page_ahead(1), -1);
        assert_eq!(word.page_ahead(0xFF_FFFF), -3);
        assert_eq!(word.page_ahead(5), 3);
    }

    #[test]
    fn round_trip() {
        let mut page = vec![1u8; 2048];
        let original: Vec<SpaceWord> = (0..504).map(|i| SpaceWord::new(i as u8, i * 3)).collect();
        build(&mut page, 1, &original);
        assert_eq!(words(&page).unwrap().collect::<Vec<_>>(), original);
        page::set_count(&mut page, 505);
        assert!(words(&page).is_err());
    }
}

//! The header that every page starts with, page sizes, and the checksum.
//!
//! Layout: `docs/file-format.md`, "Page header". Each offset below is derived from the one before.
//!
//! Invariant: a page in a buffer frame has passed [`verify`]; the checksum on disk is computed by [`seal`] when the page is written, never earlier.

use crate::FormatError;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const CHECKSUM: usize = 0;
const LSN: usize = CHECKSUM + 8;
const PAGE_NUMBER: usize = LSN + 8;
const WRITE_COUNTER: usize = PAGE_NUMBER + 4;
const PAGE_TYPE: usize = WRITE_COUNTER + 4;
const PAGE_VERSION: usize = PAGE_TYPE + 1;
const COUNT: usize = PAGE_VERSION + 1;
const LOW_END: usize = COUNT + 2;
const GARBAGE: usize = LOW_END + 2;

/// Bytes of the common page header.
pub const HEADER_BYTES: usize = GARBAGE + 2;
const _: () = assert!(HEADER_BYTES == 32);

/// The smallest page.
pub const PAGE_SIZE_MIN: usize = 2 * 1024;
/// The largest page; offsets in a page fit 15 bits.
pub const PAGE_SIZE_MAX: usize = 32 * 1024;
/// Page sizes are multiples of this.
pub const PAGE_SIZE_STEP: usize = 2 * 1024;

/// A size between 2 and 32 KB in steps of 2 KB?
#[must_use]
pub fn is_page_size(bytes: usize) -> bool {
    (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&bytes) && bytes.is_multiple_of(PAGE_SIZE_STEP)
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageType {
    /// First page of a data set.
    Header = 1,
    /// Free-space classes and write counters.
    SpaceMap = 2,
    /// Rows.
    Data = 3,
    /// Index leaf, as in memory.
    Leaf = 4,
    /// Index non-leaf.
    NonLeaf = 5,
    /// Part of a compression dictionary.
    Dictionary = 6,
    /// Part of a large value.
    LargeValue = 7,
    /// Index leaf in its 4 KB form on disk.
    FoldedLeaf = 8,
    /// Index leaf that is compressed in memory, too.
    PrefixLeaf = 9,
}

/// By number, from 1 on.
const PAGE_TYPES: [PageType; 9] = {
    use PageType::{Data, Dictionary, FoldedLeaf, Header, LargeValue, Leaf, NonLeaf, PrefixLeaf, SpaceMap};
    [Header, SpaceMap, Data, Leaf, NonLeaf, Dictionary, LargeValue, FoldedLeaf, PrefixLeaf]
};

const _: () = {
    let mut at = 0;
    while at < PAGE_TYPES.len() {
        assert!(PAGE_TYPES[at] as usize == at + 1);
        at += 1;
    }
};

impl PageType {
    /// The type with this number.
    #[inline]
    #[must_use]
    pub fn from_u8(number: u8) -> Option<PageType> {
        PAGE_TYPES.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// What the checksum of a page is bound to, beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageIdentity {
    /// The database.
    pub database_id: u128,
    /// The data set in it.
    pub file_id: u32,
    /// The page in that.
    pub page_number: u32,
}

impl PageIdentity {
    fn seed(&self) -> u64 {
        let mut bytes = [0u8; 24];
        bytes[..16].copy_from_slice(&self.database_id.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.file_id.to_le_bytes());
        bytes[20..].copy_from_slice(&self.page_number.to_le_bytes());
        xxh3_64_with_seed(&bytes, 0)
    }
}

/// Reads a little-endian `u16`. The caller guarantees `at + 2 <= page.len()`.
#[inline]
#[must_use]
pub fn get_u16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

/// Reads a little-endian `u32`. The caller guarantees `at + 4 <= page.len()`.
#[inline]
#[must_use]
pub fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// Reads a little-endian `u64`. The caller guarantees `at + 8 <= page.len()`.
#[inline]
#[must_use]
pub fn get_u64(page: &[u8], at: usize) -> u64 {
    let mut b = [0u8; 8];
    b.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(b)
}

/// Writes a little-endian `u16`.
#[inline]
pub fn put_u16(page: &mut [u8], at: usize, value: u16) {
    page[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Writes a little-endian `u32`.
#[inline]
pub fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Writes a little-endian `u64`.
#[inline]
pub fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Writes a fresh header; the rest of the page stays as it is.
pub fn init_header(page: &mut [u8], page_number: u32, page_type: PageType, version: u8) {
    page[..HEADER_BYTES].fill(0);
    put_u32(page, PAGE_NUMBER, page_number);
    page[PAGE_TYPE] = page_type as u8;
    page[PAGE_VERSION] = version;
}

/// LSN of the last change.
#[inline]
#[must_use]
pub fn lsn(page: &[u8]) -> u64 {
    get_u64(page, LSN)
}

/// Sets the LSN of the last change.
#[inline]
pub fn set_lsn(page: &mut [u8], lsn: u64) {
    put_u64(page, LSN, lsn);
}

/// The page's number as it is stored in it.
#[inline]
#[must_use]
pub fn page_number(page: &[u8]) -> u32 {
    get_u32(page, PAGE_NUMBER)
}

/// How often the page has been written.
#[inline]
#[must_use]
pub fn write_counter(page: &[u8]) -> u32 {
    get_u32(page, WRITE_COUNTER)
}

/// Sets the write counter.
#[inline]
pub fn set_write_counter(page: &mut [u8], counter: u32) {
    put_u32(page, WRITE_COUNTER, counter);
}

/// The page's type, if it is one.
#[inline]
#[must_use]
pub fn page_type(page: &[u8]) -> Option<PageType> {
    PageType::from_u8(page[PAGE_TYPE])
}

/// Is this a page of that type? What an op asks before it changes anything: one read from a log may name any page.
///
/// # Errors
/// When it is of another type or no page at all.
#[inline]
pub fn expect_type(page: &[u8], wanted: PageType) -> Result<(), FormatError> {
    if is_of_type(page, wanted) { Ok(()) } else { Err(wrong_type(page, wanted)) }
}

/// The same where either is right.
#[inline]
#[must_use]
pub fn is_of_type(page: &[u8], wanted: PageType) -> bool {
    is_page_size(page.len()) && page[PAGE_TYPE] == wanted as u8
}

#[cold]
fn wrong_type(page: &[u8], wanted: PageType) -> FormatError {
    let found = page.get(PAGE_TYPE).copied().and_then(PageType::from_u8);
    FormatError::new(format!("change of a {wanted:?} page in {} bytes of type {found:?}", page.len()))
}

/// Sets the page type.
#[inline]
pub fn set_page_type(page: &mut [u8], page_type: PageType) {
    page[PAGE_TYPE] = page_type as u8;
}

/// Format version of the page type.
#[inline]
#[must_use]
pub fn page_version(page: &[u8]) -> u8 {
    page[PAGE_VERSION]
}

/// Sets the format version of the page type.
#[inline]
pub fn set_page_version(page: &mut [u8], version: u8) {
    page[PAGE_VERSION] = version;
}

/// Slots, entries, ... by page type.
#[inline]
#[must_use]
pub fn count(page: &[u8]) -> u16 {
    get_u16(page, COUNT)
}

/// Sets [`count`].
#[inline]
pub fn set_count(page: &mut [u8], count: u16) {
    put_u16(page, COUNT, count);
}

/// End of the used low area of the page, as an offset in bytes.
#[inline]
#[must_use]
pub fn low_end(page: &[u8]) -> u16 {
    get_u16(page, LOW_END)
}

/// Sets [`low_end`].
#[inline]
pub fn set_low_end(page: &mut [u8], end: u16) {
    put_u16(page, LOW_END, end);
}

/// Bytes in the low area that nothing refers to any more.
#[inline]
#[must_use]
pub fn garbage(page: &[u8]) -> u16 {
    get_u16(page, GARBAGE)
}

/// Sets [`garbage`].
#[inline]
pub fn set_garbage(page: &mut [u8], bytes: u16) {
    put_u16(page, GARBAGE, bytes);
}

fn checksum(page: &[u8], identity: &PageIdentity) -> u64 {
    xxh3_64_with_seed(&page[CHECKSUM + 8..], identity.seed())
}

/// Computes and stores the checksum: the last step before a page is written.
pub fn seal(page: &mut [u8], identity: &PageIdentity) {
    let sum = checksum(page, identity);
    put_u64(page, CHECKSUM, sum);
}

/// Checks length, checksum, page number and type of a page that was read. Structure is checked by the page type's own `validate`.
///
/// # Errors
/// [`FormatError`] with the reason; a page of zeros is told apart, as one that was never written.
pub fn verify(page: &[u8], identity: &PageIdentity) -> Result<PageType, FormatError> {
    if page.len() < PAGE_SIZE_MIN {
        return Err(FormatError::new(format!("page has {} bytes, fewer than {PAGE_SIZE_MIN}", page.len())));
    }
    let stored = get_u64(page, CHECKSUM);
    if stored != checksum(page, identity) {
        if page.iter().all(|b| *b == 0) {
            return Err(FormatError::new("page is all zeros: it was never written"));
        }
        return Err(FormatError::new("checksum does not match: damaged, or a page of another place"));
    }
    let number = page_number(page);
    if number != identity.page_number {
        return Err(FormatError::new(format!("page says it is page {number}")));
    }
    page_type(page).ok_or_else(|| FormatError::new(format!("unknown page type {}", page[PAGE_TYPE])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: PageIdentity = PageIdentity { database_id: 7, file_id: 3, page_number: 9 };

    fn sealed() -> Vec<u8> {
        let mut page = vec![0u8; 2048];
        init_header(&mut page, 9, PageType::Data, 1);
        page[100] = 5;
        seal(&mut page, &IDENTITY);
        page
    }

    #[test]
    fn every_bit_flip_is_found() {
        let mut page = sealed();
        assert_eq!(verify(&page, &IDENTITY).unwrap(), PageType::Data);
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&page, &IDENTITY).is_err(), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_page_in_the_wrong_place_is_found() {
        let page = sealed();
        for other in [
            PageIdentity { database_id: 8, ..IDENTITY },
            PageIdentity { file_id: 4, ..IDENTITY },
            PageIdentity { page_number: 10, ..IDENTITY },
        ] {
            assert!(verify(&page, &other).is_err());
        }
        assert!(verify(&[0; 2048], &IDENTITY).unwrap_err().to_string().contains("never written"));
    }

    #[test]
    fn page_sizes() {
        let sizes: Vec<usize> = (0..70_000).filter(|s| is_page_size(*s)).collect();
        assert_eq!(sizes, (1..=16).map(|k| k * 2048).collect::<Vec<_>>());
    }
}

//! Chained pages: a byte string longer than a page, for dictionaries and large values.
//!
//! Layout: `docs/file-format.md`, "Chained page". Each page names the next one and its place in the chain, so that a page of another chain is noticed.

use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType, get_u32, put_u32};

const NEXT: usize = HEADER_BYTES;
const SEQUENCE: usize = NEXT + 4;
const OWNER: usize = SEQUENCE + 4;

/// Bytes before the payload of a chained page.
pub const CHAIN_HEADER_BYTES: usize = OWNER + 4;
const _: () = assert!(CHAIN_HEADER_BYTES == 44);

/// Format version of chained pages.
pub const CHAIN_VERSION: u8 = 1;

/// Payload bytes in a page.
#[must_use]
pub const fn payload_bytes(page_bytes: usize) -> usize {
    page_bytes - CHAIN_HEADER_BYTES
}

/// Pages that a string of `bytes` takes.
#[must_use]
pub fn pages_needed(bytes: usize, page_bytes: usize) -> usize {
    bytes.div_ceil(payload_bytes(page_bytes))
}

/// What the pages of a large value with this tag have as their owner.
#[must_use]
pub fn owner_of_value(tag: u64) -> u32 {
    tag as u32
}

/// Writes a page of a chain. `next` is 0 in the last one; `owner` tells chains apart: a dictionary's version, or
/// [`owner_of_value`].
///
/// # Panics
/// When `payload` is longer than [`payload_bytes`], or `page_type` is not a chained one.
pub fn build(page: &mut [u8], page_number: u32, page_type: PageType, next: u32, sequence: u32, owner: u32, payload: &[u8]) {
    assert!(payload.len() <= payload_bytes(page.len()));
    assert!(matches!(page_type, PageType::Dictionary | PageType::LargeValue));
    page.fill(0);
    page::init_header(page, page_number, page_type, CHAIN_VERSION);
    put_u32(page, NEXT, next);
    put_u32(page, SEQUENCE, sequence);
    put_u32(page, OWNER, owner);
    page[CHAIN_HEADER_BYTES..CHAIN_HEADER_BYTES + payload.len()].copy_from_slice(payload);
    page::set_low_end(page, (CHAIN_HEADER_BYTES + payload.len()) as u16);
}

/// One page of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPage<'a> {
    /// Next page; 0 at the end.
    pub next: u32,
    /// Place in the chain, from 0.
    pub sequence: u32,
    /// What tells chains apart.
    pub owner: u32,
    /// Its part of the string.
    pub payload: &'a [u8],
}

impl<'a> ChainPage<'a> {
    /// Reads a page of a chain.
    ///
    /// # Errors
    /// When the page is of another type or version, or its length is out of range.
    pub fn parse(page: &'a [u8], page_type: PageType) -> Result<ChainPage<'a>, FormatError> {
        if page::page_type(page) != Some(page_type) {
            return Err(FormatError::new(format!("not a page of type {page_type:?}")));
        }
        let version = page::page_version(page);
        if version != CHAIN_VERSION {
            return Err(FormatError::new(format!("chained page version {version}, this program knows {CHAIN_VERSION}")));
        }
        let end = usize::from(page::low_end(page));
        let payload =
            page.get(CHAIN_HEADER_BYTES..end).ok_or_else(|| FormatError::new(format!("payload of a chained page ends at {end}")))?;
        Ok(ChainPage { next: get_u32(page, NEXT), sequence: get_u32(page, SEQUENCE), owner: get_u32(page, OWNER), payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        let mut page = vec![0u8; 2048];
        let payload = vec![7u8; payload_bytes(2048)];
        build(&mut page, 12, PageType::LargeValue, 13, 2, 10, &payload);
        let back = ChainPage::parse(&page, PageType::LargeValue).unwrap();
        assert_eq!(back, ChainPage { next: 13, sequence: 2, owner: 10, payload: &payload });
        assert!(ChainPage::parse(&page, PageType::Dictionary).is_err());
        page::set_low_end(&mut page, 3000);
        assert!(ChainPage::parse(&page, PageType::LargeValue).is_err());
        page::set_low_end(&mut page, 3);
        assert!(ChainPage::parse(&page, PageType::LargeValue).is_err());
    }
}

//! The header of a prefix leaf, behind the common page header. Layout: [`super`].

use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType, get_u16, get_u32, put_u16, put_u32};
use pagefold_codec::index::layout::MAP_BYTES;

const RESERVED: usize = HEADER_BYTES;
const FIXED_KEY_BYTES: usize = RESERVED + 2;
const SHARED: usize = FIXED_KEY_BYTES + 2;
const PAGE_BYTES: usize = SHARED + 2;
const NEXT: usize = PAGE_BYTES + 2;
const RIDS: usize = NEXT + 4;

/// Bytes of common and leaf header together; the shared bytes start here.
pub const PREFIX_HEADER_BYTES: usize = RIDS + 4;
const _: () = assert!(PREFIX_HEADER_BYTES == 48);

/// Bytes of a directory entry; the search over heads is that of a leaf's key map.
pub const DIRECTORY_BYTES: usize = MAP_BYTES;

/// Format version of prefix leaves.
pub const PREFIX_LEAF_VERSION: u8 = 1;

/// Blocks of more than one pair have at most this part of the page.
const BLOCK_PART: usize = 8;

/// Bytes of a block of more than one pair at most.
#[must_use]
pub fn block_bytes_max(page_bytes: usize) -> usize {
    page_bytes / BLOCK_PART
}

/// Makes an empty leaf of the whole slice.
pub(in super::super) fn format_leaf(page: &mut [u8], page_number: u32, fixed_key_bytes: u16, next: u32) {
    page.fill(0);
    page::init_header(page, page_number, PageType::PrefixLeaf, PREFIX_LEAF_VERSION);
    put_u16(page, FIXED_KEY_BYTES, fixed_key_bytes);
    put_u16(page, PAGE_BYTES, page.len() as u16);
    put_u32(page, NEXT, next);
    page::set_low_end(page, PREFIX_HEADER_BYTES as u16);
}

/// Checks what the header says by itself.
pub(super) fn validate(page: &[u8]) -> Result<(), FormatError> {
    if !page::is_page_size(page.len())
        || page::page_type(page) != Some(PageType::PrefixLeaf)
        || page::page_version(page) != PREFIX_LEAF_VERSION
    {
        return Err(FormatError::new(format!("not a prefix leaf of version {PREFIX_LEAF_VERSION}")));
    }
    if get_u16(page, RESERVED) != 0 || page::garbage(page) != 0 || usize::from(get_u16(page, PAGE_BYTES)) != page.len() {
        return Err(FormatError::new("header of the prefix leaf does not fit the page"));
    }
    Ok(())
}

#[inline]
pub(super) fn fixed_key_bytes(page: &[u8]) -> usize {
    usize::from(get_u16(page, FIXED_KEY_BYTES))
}

#[inline]
pub(super) fn shared_bytes(page: &[u8]) -> usize {
    usize::from(get_u16(page, SHARED))
}

pub(super) fn set_shared_bytes(page: &mut [u8], bytes: usize) {
    put_u16(page, SHARED, bytes as u16);
}

#[inline]
pub(super) fn next(page: &[u8]) -> u32 {
    get_u32(page, NEXT)
}

pub(super) fn rids(page: &[u8]) -> usize {
    get_u32(page, RIDS) as usize
}

pub(super) fn set_rids(page: &mut [u8], rids: usize) {
    put_u32(page, RIDS, rids as u32);
}

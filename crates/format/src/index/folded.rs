//! Leaf in memory to folded leaf on disk and back.
//!
//! The header is the leaf's own with another type, version and low end, and the length of the longest key.

use super::header::{self, FOLDED_LEAF_VERSION, FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LEAF_VERSION, LeafHeader};
use super::leaf::{self, Leaf};
use crate::FormatError;
use crate::page::{self, PageType, is_page_size};
use pagefold_codec::index::encode::encode;
use pagefold_codec::index::expand::{self, Body};

/// Writes the folded form of `leaf` to all of `out` (4,096 bytes); it takes [`Leaf::folded_bytes`] of them.
///
/// # Errors
/// When the leaf does not fold, or its tracked size is not that of its fold: then `out` holds anything.
pub fn fold(leaf: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
    let view = Leaf::new(leaf);
    if out.len() != FOLDED_PAGE_BYTES {
        return Err(FormatError::new(format!("folded leaf of {} bytes", out.len())));
    }
    if !view.folds() {
        return Err(FormatError::new("a leaf that does not fold"));
    }
    let longest = view.entries().map(|e| e.key.len()).max().unwrap_or(usize::from(view.shape().fixed_key_bytes));
    out[..LEAF_HEADER_BYTES].copy_from_slice(&leaf[..LEAF_HEADER_BYTES]);
    let used = encode(view.shape(), view.entries(), &mut out[LEAF_HEADER_BYTES..]).map_err(|e| FormatError::new(e.to_string()))?;
    let end = LEAF_HEADER_BYTES + used;
    if end != view.folded_bytes() {
        return Err(FormatError::new(format!("folded size is {end} bytes, not {} as tracked", view.folded_bytes())));
    }
    out[end..].fill(0);
    header::convert(out, PageType::FoldedLeaf, FOLDED_LEAF_VERSION, longest, end);
    Ok(())
}

/// Bytes that the leaf of this folded page takes in memory.
///
/// # Errors
/// When it is no page size.
pub fn expanded_bytes(folded: &[u8]) -> Result<usize, FormatError> {
    let bytes = LeafHeader::read(folded)?.page_bytes;
    if !is_page_size(bytes) {
        return Err(FormatError::new(format!("leaf of {bytes} bytes")));
    }
    Ok(bytes)
}

/// Expands `folded` (4,096 bytes) into `page`, all of it. What comes out is in bounds as [`leaf::validate`] would find.
///
/// # Errors
/// When the bytes are not a folded leaf for a page of this size; `page` then holds anything.
pub fn expand(folded: &[u8], page: &mut [u8]) -> Result<(), FormatError> {
    let header = LeafHeader::read(folded)?;
    if folded.len() != FOLDED_PAGE_BYTES
        || page::page_type(folded) != Some(PageType::FoldedLeaf)
        || page::page_version(folded) != FOLDED_LEAF_VERSION
    {
        return Err(FormatError::new(format!("not a folded leaf of version {FOLDED_LEAF_VERSION}")));
    }
    if header.page_bytes != page.len() || !is_page_size(page.len()) {
        return Err(FormatError::new(format!("folded leaf of {} bytes in an index of {}-byte leaves", header.page_bytes, page.len())));
    }
    if !header.kind.fold || header.folded_bytes != header.low_end || header.low_end < LEAF_HEADER_BYTES || header.low_end > folded.len() {
        return Err(FormatError::new("sizes in the header of the folded leaf do not agree"));
    }
    if header.common_prefix > header.longest_key || (header.entries == 0 && header.common_prefix != 0) {
        return Err(FormatError::new("common prefix longer than the longest key"));
    }
    page[..LEAF_HEADER_BYTES].copy_from_slice(&folded[..LEAF_HEADER_BYTES]);
    let body = Body { entries: header.entries, common_prefix: header.common_prefix, longest_key: header.longest_key };
    let done = expand::expand(header.kind.shape(), body, folded, LEAF_HEADER_BYTES..header.low_end, page, LEAF_HEADER_BYTES)
        .map_err(|e| FormatError::new(e.to_string()))?;
    if done.rids != header.rids {
        return Err(FormatError::new("number of RIDs in the header of the folded leaf is wrong"));
    }
    header::convert(page, PageType::Leaf, LEAF_VERSION, 0, done.low_end);
    debug_assert_eq!(leaf::validate(page), Ok(()));
    Ok(())
}

/// Checks a folded leaf by expanding it, and that it is the one fold of what comes out. For `check` and `print`; returns the leaf.
///
/// # Errors
/// What is wrong.
pub fn check_folded(folded: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut page = vec![0; expanded_bytes(folded)?];
    expand(folded, &mut page)?;
    leaf::check(&page)?;
    if folded[usize::from(page::low_end(folded))..].iter().any(|b| *b != 0) {
        return Err(FormatError::new("bytes after the body are not zero"));
    }
    let mut again = [0; FOLDED_PAGE_BYTES];
    fold(&page, &mut again)?;
    if again != *folded {
        return Err(FormatError::new("not the bytes that this leaf folds to"));
    }
    Ok(page)
}

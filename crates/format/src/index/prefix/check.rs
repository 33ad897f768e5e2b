//! Is it a prefix leaf? Structure, and everything.

use super::header::{self, DIRECTORY_BYTES, PREFIX_HEADER_BYTES};
use super::reader::PairReader;
use super::view::PrefixLeaf;
use crate::FormatError;
use crate::page;
use pagefold_codec::index::layout::key_head;

/// Checks the structure: blocks in directory order without gaps, every part of each within it, pairs counted right. Later accesses are in bounds.
///
/// # Errors
/// What is wrong.
pub fn validate(page: &[u8]) -> Result<(), FormatError> {
    if page.len() < PREFIX_HEADER_BYTES {
        return Err(FormatError::new("prefix leaf shorter than its header"));
    }
    header::validate(page)?;
    let leaf = PrefixLeaf::new(page);
    let directory = page.len().saturating_sub(DIRECTORY_BYTES * usize::from(page::count(page)));
    let mut at = PREFIX_HEADER_BYTES + header::shared_bytes(page);
    if leaf.low_end() > directory || at > leaf.low_end() {
        return Err(FormatError::new(format!("{} blocks do not fit the page", page::count(page))));
    }
    let mut rids = 0;
    for i in 0..leaf.blocks {
        let range = leaf.range(i);
        if range.start != at || range.end <= at || range.end > leaf.low_end() {
            return Err(FormatError::new(format!("block {i} is not where the one before ends")));
        }
        let block = leaf.block(i).ok_or_else(|| FormatError::new(format!("block {i} is damaged")))?;
        block.validate().map_err(|e| FormatError::new(format!("block {i}: {e}")))?;
        rids += block.pair_count();
        at = range.end;
    }
    if at != leaf.low_end() || rids != leaf.rid_count() {
        return Err(FormatError::new("sizes in the header of the prefix leaf are not those of its blocks"));
    }
    Ok(())
}

/// Checks all of [`validate`] and that pairs ascend, keys have their length, heads are those of the first keys, and free bytes are zero.
///
/// # Errors
/// What is wrong.
pub fn check(page: &[u8]) -> Result<(), FormatError> {
    validate(page)?;
    let leaf = PrefixLeaf::new(page);
    let mut reader = PairReader::new();
    let mut last: Option<(Vec<u8>, u64)> = None;
    let mut number = 0;
    while let Some((entries, _)) = reader.next_block(&leaf)? {
        // Within a block pairs ascend, or it would not have been decoded.
        let first = entries.pairs().next();
        if last.as_ref().zip(first).is_some_and(|(last, first)| (last.0.as_slice(), last.1) >= first) {
            return Err(FormatError::new(format!("pairs of blocks {} and {number} do not ascend", number - 1)));
        }
        // Where the first key ends within its head, zeros follow: what searches compare.
        if entries.pair_count() > 0 && leaf.head(number) != key_head(entries.key(0), leaf.shared.len()) {
            return Err(FormatError::new(format!("head of block {number} is not that of its first key")));
        }
        last = entries.last().map(|(key, rid)| (key.to_vec(), rid));
        number += 1;
    }
    if page[leaf.low_end()..page.len() - DIRECTORY_BYTES * leaf.blocks].iter().any(|b| *b != 0) {
        return Err(FormatError::new("free bytes are not zero"));
    }
    Ok(())
}

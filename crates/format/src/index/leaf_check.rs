//! Is it a leaf? Structure, and everything.

use super::header::{FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LEAF_VERSION, LeafHeader};
use super::leaf::Leaf;
use super::plan::body_cost;
use crate::FormatError;
use crate::page::{self, PageType};
use pagefold_codec::index::layout::{Entry, MAP_BYTES, common_prefix, key_head, u16_at};
use pagefold_codec::index::slot_bits_for;

/// Checks the structure of a leaf: every offset and length in bounds, entries in map order without gaps, counts right.
///
/// # Errors
/// What is wrong.
pub fn validate(page: &[u8]) -> Result<(), FormatError> {
    let header = LeafHeader::read(page)?;
    if page::page_type(page) != Some(PageType::Leaf) || page::page_version(page) != LEAF_VERSION {
        return Err(FormatError::new(format!("not a leaf of version {LEAF_VERSION}")));
    }
    if !page::is_page_size(page.len()) || header.page_bytes != page.len() & 0xFFFF || header.longest_key != 0 {
        return Err(FormatError::new("leaf header does not fit the page"));
    }
    if header.kind.fold != (header.folded_bytes != 0) || header.folded_bytes > FOLDED_PAGE_BYTES {
        return Err(FormatError::new(format!("folded size of {} bytes", header.folded_bytes)));
    }
    let map = page.len().saturating_sub(MAP_BYTES * header.entries);
    if map < LEAF_HEADER_BYTES || header.low_end > map {
        return Err(FormatError::new(format!("{} entries do not fit the page", header.entries)));
    }
    let shape = header.kind.shape();
    let mut at = LEAF_HEADER_BYTES;
    let mut rids = 0;
    let low = &page[..header.low_end.max(LEAF_HEADER_BYTES)];
    for i in 0..header.entries {
        if u16_at(page, page.len() - MAP_BYTES * (i + 1)) != Some(at as u16) {
            return Err(FormatError::new(format!("entry {i} is not where the one before ends")));
        }
        let entry = Entry::read(low, at, shape).ok_or_else(|| FormatError::new(format!("entry {i} is cut off")))?;
        at += shape.entry_bytes(entry.key.len(), entry.rid_count());
        rids += entry.rid_count();
    }
    if at != header.low_end || rids != header.rids {
        return Err(FormatError::new("sizes in the leaf header are not those of the entries"));
    }
    let leaf = Leaf::new(page);
    if leaf.entries > 0 && header.common_prefix > leaf.entry(0).key.len() {
        return Err(FormatError::new("common prefix longer than the first key"));
    }
    Ok(())
}

/// Checks all of [`validate`] and that the leaf is what its contents demand: keys and RIDs ascend, prefix, heads and folded size are exact, free bytes are zero.
///
/// # Errors
/// What is wrong.
pub fn check(page: &[u8]) -> Result<(), FormatError> {
    validate(page)?;
    let leaf = Leaf::new(page);
    let mut before: Option<Entry<'_>> = None;
    let prefix = if leaf.entries == 0 { 0 } else { common_prefix(leaf.entry(0).key, leaf.entry(leaf.entries - 1).key) };
    if prefix != leaf.prefix {
        return Err(FormatError::new(format!("common prefix is {prefix} bytes, not {}", leaf.prefix)));
    }
    for (i, entry) in leaf.entries().enumerate() {
        if let Some(b) = before {
            let ascends = b.key < entry.key || (leaf.shape.single && b.key == entry.key && b.rid(0) < entry.rid(0));
            if !ascends {
                return Err(FormatError::new(format!("keys of entries {} and {i} do not ascend", i - 1)));
            }
        }
        if leaf.head(i) != key_head(entry.key, prefix) {
            return Err(FormatError::new(format!("head of entry {i} is not that of its key")));
        }
        for r in 0..entry.rid_count() {
            let rid = entry.rid(r);
            if r > 0 && entry.rid(r - 1) >= rid {
                return Err(FormatError::new(format!("RIDs of entry {i} do not ascend")));
            }
            if slot_bits_for((rid & 0xFFF) as u16) > leaf.shape.slot_bits {
                return Err(FormatError::new(format!("slot of a RID of entry {i} has more than {} bits", leaf.shape.slot_bits)));
            }
        }
        before = Some(entry);
    }
    if leaf.folds() {
        let exact = LEAF_HEADER_BYTES + body_cost(leaf.shape, leaf.entries());
        if exact != leaf.folded_bytes() {
            return Err(FormatError::new(format!("folded size is {exact} bytes, not {}", leaf.folded_bytes())));
        }
    }
    if page[leaf.low_end()..page.len() - MAP_BYTES * leaf.entries].iter().any(|b| *b != 0) {
        return Err(FormatError::new("free bytes are not zero"));
    }
    Ok(())
}

//! A leaf written anew: blocks are gathered, with the bytes that their keys share known before, then put on the page.

use super::header::{self, DIRECTORY_BYTES, PREFIX_HEADER_BYTES};
use super::view::PrefixLeaf;
use crate::FormatError;
use crate::page::{self, put_u16};
use pagefold_codec::index::layout::{key_head, put_map};
use pagefold_codec::index::prefix::{Block, Entries, Plan};

/// Blocks in order, as they are on a leaf with these shared bytes.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) shared: usize,
    pub(super) bytes: Vec<u8>,
    /// Length and head of each.
    pub(super) list: Vec<(usize, u32)>,
    pub(super) rids: usize,
}

impl Blocks {
    pub(super) fn new(shared: usize) -> Blocks {
        Blocks::with_capacity(shared, 512, 4)
    }

    pub(super) fn with_capacity(shared: usize, bytes: usize, blocks: usize) -> Blocks {
        // The last bits are written eight bytes at a time.
        Blocks { shared, bytes: Vec::with_capacity(bytes + 8), list: Vec::with_capacity(blocks), rids: 0 }
    }

    /// Bytes of blocks and directory.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + DIRECTORY_BYTES * self.list.len()
    }

    pub(super) fn push_entries(&mut self, entries: &Entries, plan: &Plan) {
        plan.encode(entries, self.shared, &mut self.bytes);
        self.list.push((plan.bytes(self.shared), key_head(entries.key(0), self.shared)));
        self.rids += entries.pair_count();
    }

    /// # Errors
    /// When its keys do not begin with the shared bytes: in a leaf whose blocks are not in order.
    pub(super) fn push_block(&mut self, block: &Block<'_>, shared_bytes: &[u8]) -> Result<(), FormatError> {
        let start = self.bytes.len();
        let head = block.put_sharing(&shared_bytes[..self.shared], &mut self.bytes).map_err(|e| FormatError::new(e.to_string()))?;
        self.list.push((self.bytes.len() - start, head));
        self.rids += block.pair_count();
        Ok(())
    }

    pub(super) fn push_blocks(
        &mut self,
        leaf: &PrefixLeaf<'_>,
        blocks: std::ops::Range<usize>,
        shared_bytes: &[u8],
    ) -> Result<(), FormatError> {
        for i in blocks {
            self.push_block(&leaf.block(i).ok_or_else(|| FormatError::new(format!("block {i} is damaged")))?, shared_bytes)?;
        }
        Ok(())
    }

    /// Replaces all blocks of the page; `shared_bytes` are the first of any key.
    pub(super) fn put(&self, page: &mut [u8], shared_bytes: &[u8]) -> Result<(), FormatError> {
        let start = PREFIX_HEADER_BYTES + self.shared;
        if start + self.size() > page.len() {
            return Err(super::edit::no_room());
        }
        page[PREFIX_HEADER_BYTES..].fill(0);
        page[PREFIX_HEADER_BYTES..start].copy_from_slice(&shared_bytes[..self.shared]);
        page[start..start + self.bytes.len()].copy_from_slice(&self.bytes);
        let mut at = start;
        for (i, (bytes, head)) in self.list.iter().enumerate() {
            put_map(page, i, at, *head).map_err(|e| FormatError::new(e.to_string()))?;
            at += bytes;
        }
        header::set_shared_bytes(page, self.shared);
        header::set_rids(page, self.rids);
        page::set_low_end(page, at as u16);
        page::set_count(page, self.list.len() as u16);
        Ok(())
    }

    /// Puts the blocks in the place of `gone` blocks of the page, which shares as many bytes. There is room.
    pub(super) fn splice(&self, page: &mut [u8], first: usize, gone: usize, rids: usize) -> Result<(), FormatError> {
        let leaf = PrefixLeaf::new(page);
        let (blocks, low_end) = (leaf.blocks, leaf.low_end());
        let start = if first < blocks { leaf.range(first).start } else { low_end };
        let end = if gone > 0 { leaf.range(first + gone - 1).end } else { start };
        let new_end = start + self.bytes.len();
        let new_blocks = blocks - gone + self.list.len();
        if start < PREFIX_HEADER_BYTES || start > end || end > low_end || low_end > page.len() - DIRECTORY_BYTES * blocks {
            return Err(FormatError::new("the leaf is damaged"));
        }
        let new_low_end = low_end - end + new_end;
        if new_low_end + DIRECTORY_BYTES * new_blocks > page.len() {
            return Err(super::edit::no_room());
        }
        let by = (new_end as u16).wrapping_sub(end as u16);
        // What shrinks makes room for what grows.
        if new_blocks < blocks {
            move_directory(page, blocks, first + gone, new_blocks, by);
        }
        page.copy_within(end..low_end, new_end);
        page[start..new_end].copy_from_slice(&self.bytes);
        if new_low_end < low_end {
            page[new_low_end..low_end].fill(0);
        }
        if new_blocks >= blocks {
            move_directory(page, blocks, first + gone, new_blocks, by);
        }
        let mut at = start;
        for (i, (bytes, head)) in self.list.iter().enumerate() {
            put_map(page, first + i, at, *head).map_err(|e| FormatError::new(e.to_string()))?;
            at += bytes;
        }
        header::set_rids(page, rids);
        page::set_low_end(page, new_low_end as u16);
        page::set_count(page, new_blocks as u16);
        Ok(())
    }
}

/// Moves the directory entries of blocks `behind..blocks` so that there are `new_blocks` in all, and adds `by` (modulo 2^16) to their offsets. What it leaves is zeros.
fn move_directory(page: &mut [u8], blocks: usize, behind: usize, new_blocks: usize, by: u16) {
    let entry = |i: usize| page.len() - DIRECTORY_BYTES * i;
    let (from, to, new_from) = (entry(blocks), entry(behind), entry(new_blocks));
    for slot in page[from..to].chunks_exact_mut(DIRECTORY_BYTES) {
        let offset = u16::from_le_bytes([slot[0], slot[1]]).wrapping_add(by);
        put_u16(slot, 0, offset);
    }
    page.copy_within(from..to, new_from);
    if new_from > from {
        page[from..new_from].fill(0);
    }
}

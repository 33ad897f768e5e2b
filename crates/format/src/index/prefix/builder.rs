//! Packing prefix leaves in key order.
//!
//! Invariant: the size is exact after each block, with the bytes that all keys so far share; a leaf is never overfull, so nothing is tried.

use super::header::{DIRECTORY_BYTES, PREFIX_HEADER_BYTES, block_bytes_max, format_leaf};
use super::image::Blocks;
use crate::FormatError;
use pagefold_codec::bytes::common_prefix;
use pagefold_codec::index::prefix::{Block, Entries, Frame, HEAD_BYTES, PAIRS_MAX, Plan};
use pagefold_types::Rid;

/// A block of the leaf being packed, as it is where nothing is shared.
#[derive(Debug)]
struct Packed {
    key_bytes: usize,
    bytes: Vec<u8>,
    head: u32,
}

/// Takes pairs in order and gives leaves.
#[derive(Debug)]
pub struct PrefixLeafBuilder {
    fixed_key_bytes: usize,
    page_bytes: usize,
    free_bytes: usize,
    /// Not yet in a block.
    waiting: Entries,
    part: Entries,
    blocks: Vec<Packed>,
    /// First key of the leaf, cut to what all keys of its blocks share.
    shared: Vec<u8>,
    /// Whether `waiting` goes to the leaf's blocks or to the next leaf's.
    full: bool,
    /// Distinct keys of the leaf's blocks.
    keys: usize,
    /// The last pair in a block, of this leaf or the one before.
    last_key: Vec<u8>,
    last_rid: u64,
}

impl PrefixLeafBuilder {
    /// For leaves of this size that leave so many bytes free.
    #[must_use]
    pub fn new(page_bytes: usize, fixed_key_bytes: u16, free_bytes: usize) -> PrefixLeafBuilder {
        PrefixLeafBuilder {
            fixed_key_bytes: usize::from(fixed_key_bytes),
            page_bytes,
            free_bytes,
            waiting: Entries::new(),
            part: Entries::new(),
            blocks: Vec::new(),
            shared: Vec::new(),
            full: false,
            keys: 0,
            last_key: Vec::new(),
            last_rid: 0,
        }
    }

    /// Distinct keys in the blocks of the leaf.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys
    }

    /// Bytes that the blocks of the leaf leave free.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.page_bytes.saturating_sub(self.leaf_bytes())
    }

    /// The pair pushed last; `None` before the first.
    #[must_use]
    pub fn last(&self) -> Option<(&[u8], Rid)> {
        let (key, rid) = self.waiting.last().or_else(|| (!self.last_key.is_empty()).then_some((&self.last_key, self.last_rid)))?;
        Some((key, Rid::from_u64(rid)?))
    }

    /// Once a leaf is full: its last pair and the first of the next leaf.
    #[must_use]
    pub fn boundary(&self) -> Option<[(&[u8], Rid); 2]> {
        let (key, rid) = self.waiting.pairs().next()?;
        Some([(&self.last_key, Rid::from_u64(self.last_rid)?), (key, Rid::from_u64(rid)?)])
    }

    /// Adds a pair, greater than all before. True when a leaf is full: then [`PrefixLeafBuilder::finish`] must be called before the next pair.
    ///
    /// # Errors
    /// When the key has a wrong length, or is too long for a leaf.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<bool, FormatError> {
        if self.fixed_key_bytes != 0 && key.len() != self.fixed_key_bytes {
            return Err(FormatError::new(format!("key of {} bytes in an index of {}-byte keys", key.len(), self.fixed_key_bytes)));
        }
        self.waiting.push(key, rid.to_u64());
        if self.waiting.pair_count() >= PAIRS_MAX {
            self.close_block()?;
        }
        Ok(self.full)
    }

    /// Makes blocks of what waits, as long as they fit; what does not goes to the next leaf. True: the leaf is full.
    ///
    /// # Errors
    /// When a key is too long for a leaf.
    pub fn flush(&mut self) -> Result<bool, FormatError> {
        while !self.full && !self.waiting.is_empty() {
            self.close_block()?;
        }
        Ok(self.full)
    }

    /// Nothing packed, nothing waiting?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.waiting.is_empty()
    }

    /// Puts the leaf on `page` and begins the next one.
    ///
    /// # Errors
    /// When the page is shorter than said.
    pub fn finish(&mut self, page: &mut [u8], page_number: u32, next: u32) -> Result<(), FormatError> {
        format_leaf(page, page_number, self.fixed_key_bytes as u16, next);
        let mut blocks = Blocks::new(self.shared.len());
        for packed in self.blocks.drain(..) {
            let frame = Frame { fixed_key_bytes: self.fixed_key_bytes, shared: &[], head: packed.head };
            let block = Block::read(&packed.bytes, packed.bytes.len(), frame).map_err(|e| FormatError::new(e.to_string()))?;
            blocks.push_block(&block, &self.shared)?;
        }
        blocks.put(page, &self.shared)?;
        self.shared.clear();
        (self.full, self.keys) = (false, 0);
        Ok(())
    }

    /// A block of the first pairs that wait: the most that make a good block and fit the leaf, by halves.
    fn close_block(&mut self) -> Result<(), FormatError> {
        let n = self.waiting.pair_count();
        // A pair more than a block takes may wait when the leaf before was full.
        let mut take = n.min(PAIRS_MAX);
        loop {
            self.part.clear();
            self.part.extend(&self.waiting, 0, take);
            let plan = Plan::new(&self.part, self.fixed_key_bytes).ok_or_else(|| FormatError::new("key too long for a leaf"))?;
            let good = take == 1 || (!plan.is_slow() && plan.bytes(0) <= block_bytes_max(self.page_bytes));
            let shared = self.shared_with_part();
            // A leaf has one pair, however much is to stay free.
            let free_bytes = if self.blocks.is_empty() && take == 1 { 0 } else { self.free_bytes };
            if good && self.bytes_with(&plan, shared) + free_bytes <= self.page_bytes {
                let mut blocks = Blocks::new(0);
                blocks.push_entries(&self.part, &plan);
                self.shared.truncate(shared);
                if self.blocks.is_empty() {
                    self.shared.clear();
                    self.shared.extend_from_slice(&self.part.key(0)[..shared]);
                }
                let goes_on = !self.blocks.is_empty() && self.part.key(0) == self.last_key;
                self.keys += self.part.entry_count() - usize::from(goes_on);
                if let Some((key, rid)) = self.part.last() {
                    self.last_key.clear();
                    self.last_key.extend_from_slice(key);
                    self.last_rid = rid;
                }
                self.blocks.push(Packed { key_bytes: self.part.key(0).len(), bytes: blocks.bytes, head: blocks.list[0].1 });
                break;
            }
            if good && !self.blocks.is_empty() && (self.free_bytes > 0 || take <= PAIRS_MAX / 8) {
                // The leaf is full, but for a few.
                self.full = true;
                return Ok(());
            }
            take /= 2;
            if take == 0 {
                return Err(FormatError::new("key too long for a leaf"));
            }
        }
        self.part.clear();
        self.part.extend(&self.waiting, take, n);
        std::mem::swap(&mut self.part, &mut self.waiting);
        Ok(())
    }

    fn shared_with_part(&self) -> usize {
        let last = self.part.key(self.part.entry_count() - 1);
        if self.blocks.is_empty() { self.part.shared_bytes() } else { common_prefix(&self.shared, last) }
    }

    fn bytes_with(&self, plan: &Plan, shared: usize) -> usize {
        self.bytes_sharing(shared) + plan.bytes(shared) + DIRECTORY_BYTES
    }

    fn leaf_bytes(&self) -> usize {
        self.bytes_sharing(self.shared.len())
    }

    /// Bytes of the leaf as it is, on a page whose keys share so many bytes.
    fn bytes_sharing(&self, shared: usize) -> usize {
        let saved = |key_bytes: usize| key_bytes.saturating_sub(HEAD_BYTES) - key_bytes.saturating_sub(shared + HEAD_BYTES);
        let blocks: usize = self.blocks.iter().map(|b| b.bytes.len() - saved(b.key_bytes)).sum();
        PREFIX_HEADER_BYTES + shared + blocks + DIRECTORY_BYTES * self.blocks.len()
    }
}

//! Pairs of a prefix leaf one after the other, or a block at a time.

use super::super::leaf::Place;
use super::view::PrefixLeaf;
use crate::FormatError;
use pagefold_codec::index::prefix::Entries;
use pagefold_types::Rid;

/// Goes through the pairs of a leaf. Belongs to no leaf: one reader does for many, and keeps its buffers.
#[derive(Debug, Default)]
pub struct PairReader {
    entries: Entries,
    /// The block after the one in `entries`.
    next_block: usize,
    entry: usize,
    pair: usize,
}

impl PairReader {
    /// At the end of no leaf.
    #[must_use]
    pub fn new() -> PairReader {
        PairReader::default()
    }

    /// Goes to `place` of `leaf`.
    ///
    /// # Errors
    /// When the block there is damaged.
    pub fn seek(&mut self, leaf: &PrefixLeaf<'_>, place: Place) -> Result<(), FormatError> {
        self.next_block = place.entry;
        self.entries.clear();
        (self.entry, self.pair) = (0, 0);
        if place.entry < leaf.block_count() {
            self.load(leaf)?;
            self.pair = place.rid.min(self.entries.pair_count());
            self.entry = self.entries.entry_of(self.pair);
        }
        Ok(())
    }

    /// The next pair.
    ///
    /// # Errors
    /// When its block is damaged.
    #[inline]
    pub fn next(&mut self, leaf: &PrefixLeaf<'_>) -> Result<Option<(&[u8], Rid)>, FormatError> {
        if self.pair == self.entries.pair_count() {
            if self.next_block >= leaf.block_count() {
                return Ok(None);
            }
            self.load(leaf)?;
        }
        let rid = self.entries.all_rids()[self.pair];
        if self.pair == self.entries.first_pair(self.entry + 1) {
            self.entry += 1;
        }
        self.pair += 1;
        Ok(Some((self.entries.key(self.entry), Rid::from_u64(rid).unwrap_or(Rid::MIN))))
    }

    /// What is left of the current block, or else the next block, all at once: its pairs from the number on.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn next_block(&mut self, leaf: &PrefixLeaf<'_>) -> Result<Option<(&Entries, usize)>, FormatError> {
        if self.pair == self.entries.pair_count() {
            if self.next_block >= leaf.block_count() {
                return Ok(None);
            }
            self.load(leaf)?;
        }
        let from = std::mem::replace(&mut self.pair, self.entries.pair_count());
        Ok(Some((&self.entries, from)))
    }

    fn load(&mut self, leaf: &PrefixLeaf<'_>) -> Result<(), FormatError> {
        decode(leaf, self.next_block, &mut self.entries)?;
        self.next_block += 1;
        (self.entry, self.pair) = (0, 0);
        Ok(())
    }
}

/// The pair at any place of a leaf; places near each other come cheap. Keeps its buffers.
#[derive(Debug, Default)]
pub struct PlaceReader {
    entries: Entries,
    /// The block that is decoded.
    block: Option<usize>,
    entry: usize,
    pair: usize,
}

impl PlaceReader {
    /// At no place.
    #[must_use]
    pub fn new() -> PlaceReader {
        PlaceReader::default()
    }

    /// Forgets the leaf.
    pub fn reset(&mut self) {
        self.block = None;
    }

    /// Goes to a place of the leaf, the same one since the last reset.
    ///
    /// # Errors
    /// When there is no such place, or its block is damaged.
    #[inline]
    pub fn go(&mut self, leaf: &PrefixLeaf<'_>, place: Place) -> Result<(), FormatError> {
        if self.block != Some(place.entry) {
            self.block = None;
            decode(leaf, place.entry, &mut self.entries)?;
            self.block = Some(place.entry);
            self.entry = self.entries.entry_of(place.rid);
        }
        if place.rid >= self.entries.pair_count() {
            return Err(FormatError::new("place outside the leaf"));
        }
        while place.rid < self.entries.first_pair(self.entry) {
            self.entry -= 1;
        }
        while place.rid >= self.entries.first_pair(self.entry + 1) {
            self.entry += 1;
        }
        self.pair = place.rid;
        Ok(())
    }

    /// The pair it has gone to.
    ///
    /// # Panics
    /// When it has gone nowhere.
    #[inline]
    #[must_use]
    pub fn pair(&self) -> (&[u8], Rid) {
        let rid = Rid::from_u64(self.entries.all_rids()[self.pair]).unwrap_or(Rid::MIN);
        (self.entries.key(self.entry), rid)
    }

    /// Pairs of the block it has gone to.
    #[inline]
    #[must_use]
    pub fn pairs_of_block(&self) -> usize {
        self.entries.pair_count()
    }
}

/// The RIDs of a block, without its keys: kept for the next look at the same one.
#[derive(Debug, Default)]
pub struct BlockRids {
    packed: Vec<u64>,
    block: Option<usize>,
}

impl BlockRids {
    /// Forgets the leaf.
    pub fn reset(&mut self) {
        self.block = None;
    }

    /// The RIDs at a place and behind it in its block, packed, of the same leaf since the last reset: at least one.
    pub(in crate::index) fn of(&mut self, leaf: &PrefixLeaf<'_>, place: Place) -> Result<&[u64], FormatError> {
        if self.block != Some(place.entry) {
            self.block = None;
            self.packed.clear();
            let damaged = |e: &str| FormatError::new(format!("block {}: {e}", place.entry));
            let block = leaf.block(place.entry).ok_or_else(|| damaged("damaged"))?;
            block.rids(&mut self.packed).map_err(|e| damaged(&e.to_string()))?;
            self.block = Some(place.entry);
        }
        let rids = self.packed.get(place.rid..).filter(|rids| !rids.is_empty());
        rids.ok_or_else(|| FormatError::new("place outside the leaf"))
    }
}

/// The pairs of block `i`.
pub(super) fn decode(leaf: &PrefixLeaf<'_>, i: usize, out: &mut Entries) -> Result<(), FormatError> {
    let block = leaf.block(i).ok_or_else(|| FormatError::new(format!("block {i} is damaged")))?;
    block.decode(out).map_err(|e| FormatError::new(format!("block {i}: {e}")))
}

//! The changes of a prefix leaf. Each is worked out in full before the page changes, so an error leaves the page as it was.

use super::super::leaf::Place;
use super::change::{Change, put_blocks};
use super::header::DIRECTORY_BYTES;
use super::image::Blocks;
use super::reader::decode;
use super::view::PrefixLeaf;
use crate::FormatError;
use crate::wire::Reader;
use pagefold_codec::bytes::common_prefix;
use pagefold_codec::index::prefix::{Block, Entries, Frame, PAIRS_MAX};
use pagefold_types::Rid;

impl Change {
    /// Makes the change on the page it was worked out for, `key` being the key it was worked out for: what the op does.
    ///
    /// # Errors
    /// When it does not fit; the page is then unchanged.
    pub fn apply(&self, page: &mut [u8], key: &[u8]) -> Result<(), FormatError> {
        let leaf = PrefixLeaf::new(page);
        if !self.fits(&leaf) {
            return Err(no_room());
        }
        if self.new.shared == leaf.shared.len() && leaf.blocks > 0 {
            return self.new.splice(page, self.first, self.gone, self.rids);
        }
        let mut all = Blocks::new(self.new.shared);
        all.push_blocks(&leaf, 0..self.first, key)?;
        all.bytes.extend_from_slice(&self.new.bytes);
        all.list.extend_from_slice(&self.new.list);
        all.rids += self.new.rids;
        all.push_blocks(&leaf, self.first + self.gone..leaf.blocks, key)?;
        all.put(page, key)
    }
}

pub(in super::super) fn insert(page: &mut [u8], key: &[u8], rid: Rid) -> Result<(), FormatError> {
    PrefixLeaf::new(page).plan_insert(key, rid)?.apply(page, key)
}

pub(in super::super) fn remove(page: &mut [u8], key: &[u8], rid: Rid) -> Result<(), FormatError> {
    PrefixLeaf::new(page).plan_remove(key, rid)?.apply(page, key)
}

/// Keeps what lies before `cut`.
pub(in super::super) fn keep_first(page: &mut [u8], cut: Place) -> Result<(), FormatError> {
    keep(page, Place::default(), cut)
}

/// Keeps what lies at and behind `cut`.
pub(in super::super) fn keep_from(page: &mut [u8], cut: Place) -> Result<(), FormatError> {
    let end = PrefixLeaf::new(page).end();
    keep(page, cut, end)
}

fn keep(page: &mut [u8], from: Place, to: Place) -> Result<(), FormatError> {
    let leaf = PrefixLeaf::new(page);
    let (shared, blocks) = leaf.part(from, to)?;
    blocks.put(page, &shared)
}

impl PrefixLeaf<'_> {
    /// The pairs from `from` up to `to` in blocks, with the longest bytes that they share.
    fn part(&self, from: Place, to: Place) -> Result<(Vec<u8>, Blocks), FormatError> {
        for place in [from, to] {
            let pairs = self.block(place.entry).map_or(1, |b| b.pair_count());
            if place.entry > self.blocks || place.rid >= pairs {
                return Err(FormatError::new("cut outside the leaf"));
            }
        }
        let Some(last) = self.place_before(to).filter(|last| from <= *last) else { return Ok((Vec::new(), Blocks::new(0))) };
        let (mut low, mut high) = (Vec::new(), Vec::new());
        self.key(from, &mut low);
        self.key(last, &mut high);
        let mut blocks = Blocks::new(common_prefix(&low, &high));
        let mut entries = Entries::new();
        let mut push_part = |i: usize, from: usize, to: Option<usize>, blocks: &mut Blocks| {
            decode(self, i, &mut entries)?;
            let mut part = Entries::new();
            part.extend(&entries, from, to.unwrap_or(entries.pair_count()));
            put_blocks(&part, self.fixed_key_bytes, self.page.len(), None, PAIRS_MAX, blocks)
        };
        let mut next = from.entry;
        if from.rid > 0 || from.entry == to.entry {
            push_part(next, from.rid, (to.entry == next).then_some(to.rid), &mut blocks)?;
            next += 1;
        }
        if next <= to.entry {
            blocks.push_blocks(self, next..to.entry, &low)?;
            if to.rid > 0 {
                push_part(to.entry, 0, Some(to.rid), &mut blocks)?;
            }
        }
        Ok((low, blocks))
    }

    /// The pairs from `from` up to `to` as an `Append` op takes them, and the number of blocks they make.
    ///
    /// # Errors
    /// When a place is outside the leaf, or the leaf is damaged.
    pub fn run(&self, from: Place, to: Place) -> Result<(usize, Vec<u8>), FormatError> {
        let (shared, blocks) = self.part(from, to)?;
        let mut out = Vec::with_capacity(4 + blocks.size());
        out.extend_from_slice(&(blocks.shared as u16).to_le_bytes());
        out.extend_from_slice(&shared[..blocks.shared]);
        let mut at = 0;
        for (bytes, head) in &blocks.list {
            out.extend_from_slice(&(*bytes as u16).to_le_bytes());
            out.extend_from_slice(&head.to_le_bytes());
            out.extend_from_slice(&blocks.bytes[at..at + bytes]);
            at += bytes;
        }
        Ok((blocks.list.len(), out))
    }

    /// Where to cut a leaf in two so that about `part` of `of` parts of its bytes lie before the cut: between two blocks, or where there is one only, between two of its pairs. `None` when
    /// there are not two pairs.
    #[must_use]
    pub fn cut(&self, part: usize, of: usize) -> Option<Place> {
        if self.blocks < 2 {
            let pairs = self.block(0)?.pair_count();
            return (pairs > 1).then(|| Place { entry: 0, rid: (pairs * part / of.max(1)).clamp(1, pairs - 1) });
        }
        let start = self.range(0).start;
        let total = self.low_end().saturating_sub(start) + DIRECTORY_BYTES * self.blocks;
        let off = |i: &usize| (self.range(*i).start.saturating_sub(start) + DIRECTORY_BYTES * i).abs_diff(total * part / of.max(1));
        (1..self.blocks).min_by_key(off).map(|entry| Place { entry, rid: 0 })
    }

    /// All blocks of the leaf and those of a run, which order behind them or `in_front`, with the longest bytes that all share if the leaf is empty.
    fn with_run(&self, count: usize, run: &[u8], in_front: bool) -> Result<(Vec<u8>, Blocks), FormatError> {
        let mut reader = Reader::new(run);
        let bytes = usize::from(reader.u16()?);
        let run_shared = reader.take(bytes)?;
        if run_shared.len() > self.page.len() {
            return Err(FormatError::new("append: shared bytes longer than a page"));
        }
        let shared = if self.blocks == 0 { run_shared.to_vec() } else { self.shared[..common_prefix(self.shared, run_shared)].to_vec() };
        let mut last: Option<(Vec<u8>, u64)> = None;
        let mut entries = Entries::new();
        let mut blocks = Blocks::new(shared.len());
        if !in_front && let Some(i) = self.blocks.checked_sub(1) {
            decode(self, i, &mut entries)?;
            last = entries.last().map(|(key, rid)| (key.to_vec(), rid));
            blocks.push_blocks(self, 0..self.blocks, &shared)?;
        }
        for _ in 0..count {
            let (bytes, head) = (usize::from(reader.u16()?), reader.u32()?);
            let block = reader.take(bytes)?;
            let frame = Frame { fixed_key_bytes: self.fixed_key_bytes, shared: run_shared, head };
            let block = Block::read(block, block.len(), frame).map_err(|e| FormatError::new(e.to_string()))?;
            block.decode(&mut entries).map_err(|e| FormatError::new(e.to_string()))?;
            let first = entries.pairs().next();
            if last.as_ref().zip(first).is_some_and(|(last, first)| (last.0.as_slice(), last.1) >= first) {
                return Err(FormatError::new("append: pairs do not ascend"));
            }
            last = entries.last().map(|(key, rid)| (key.to_vec(), rid));
            blocks.push_block(&block, &shared)?;
        }
        if !reader.is_empty() {
            return Err(FormatError::new("append: bytes behind the last block"));
        }
        if in_front && self.blocks > 0 {
            decode(self, 0, &mut entries)?;
            if last.as_ref().zip(entries.pairs().next()).is_some_and(|(last, first)| (last.0.as_slice(), last.1) >= first) {
                return Err(FormatError::new("append: pairs do not ascend"));
            }
            blocks.push_blocks(self, 0..self.blocks, &shared)?;
        }
        Ok((shared, blocks))
    }
}

/// Blocks behind all there are, as [`PrefixLeaf::run`] gives them.
pub(in super::super) fn append(page: &mut [u8], count: usize, run: &[u8]) -> Result<(), FormatError> {
    let (shared, blocks) = PrefixLeaf::new(page).with_run(count, run, false)?;
    blocks.put(page, &shared)
}

/// The same, in front of all there are.
pub(in super::super) fn prepend(page: &mut [u8], count: usize, run: &[u8]) -> Result<(), FormatError> {
    let (shared, blocks) = PrefixLeaf::new(page).with_run(count, run, true)?;
    blocks.put(page, &shared)
}

pub(super) fn no_room() -> FormatError {
    FormatError::new("the leaf has no room for this")
}

//! The view of a prefix leaf that is searched.
//!
//! Invariants, once [`super::check::validate`] has passed: every block can be read. Whatever the bytes, no access panics: what is not there reads as empty.

use super::super::leaf::Place;
use super::super::search::{self, map_head, map_offset};
use super::header::{self, DIRECTORY_BYTES, PREFIX_HEADER_BYTES};
use crate::page;
use pagefold_codec::index::layout::{RID_BYTES, key_head};
use pagefold_codec::index::prefix::{Block, Entries, Frame, own_part};
use pagefold_types::Rid;
use std::cmp::Ordering;

/// A prefix leaf that can be searched. A [`Place`] in it is a block (its `entry`) and a pair of that block (its `rid`).
#[derive(Clone, Copy)]
pub struct PrefixLeaf<'a> {
    pub(in crate::index) page: &'a [u8],
    pub(super) blocks: usize,
    pub(super) fixed_key_bytes: usize,
    /// The bytes that all keys share.
    pub(super) shared: &'a [u8],
}

impl<'a> PrefixLeaf<'a> {
    /// A view of `page`.
    #[inline]
    #[must_use]
    pub fn new(page: &'a [u8]) -> PrefixLeaf<'a> {
        if page.len() < PREFIX_HEADER_BYTES {
            return PrefixLeaf { page: &[], blocks: 0, fixed_key_bytes: 0, shared: &[] };
        }
        let shared = page.get(PREFIX_HEADER_BYTES..PREFIX_HEADER_BYTES + header::shared_bytes(page)).unwrap_or(&[]);
        let blocks = usize::from(page::count(page)).min((page.len() - PREFIX_HEADER_BYTES) / DIRECTORY_BYTES);
        PrefixLeaf { page, blocks, fixed_key_bytes: header::fixed_key_bytes(page), shared }
    }

    /// Number of blocks.
    #[inline]
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks
    }

    /// No pair?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// RIDs of all keys.
    #[must_use]
    pub fn rid_count(&self) -> usize {
        if self.page.is_empty() { 0 } else { header::rids(self.page) }
    }

    /// Length of every key of the index; 0: lengths differ.
    #[must_use]
    pub fn fixed_key_bytes(&self) -> usize {
        self.fixed_key_bytes
    }

    /// Page after in key order; 0 when there is none.
    #[inline]
    #[must_use]
    pub fn next(&self) -> u32 {
        if self.page.is_empty() { 0 } else { header::next(self.page) }
    }

    /// Bytes that neither blocks nor directory use.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        (self.page.len() - DIRECTORY_BYTES * self.blocks).saturating_sub(self.low_end())
    }

    pub(super) fn low_end(&self) -> usize {
        if self.page.is_empty() { 0 } else { usize::from(page::low_end(self.page)) }
    }

    /// Where block `i` lies.
    #[inline]
    pub(super) fn range(&self, i: usize) -> std::ops::Range<usize> {
        let start = usize::from(map_offset::<DIRECTORY_BYTES>(self.page, i));
        let end = if i + 1 < self.blocks { usize::from(map_offset::<DIRECTORY_BYTES>(self.page, i + 1)) } else { self.low_end() };
        start..end
    }

    #[inline]
    pub(super) fn head(&self, i: usize) -> u32 {
        map_head::<DIRECTORY_BYTES>(self.page, i)
    }

    /// Block `i`; `None` when there is none, or it is damaged.
    #[inline(always)]
    #[must_use]
    pub fn block(&self, i: usize) -> Option<Block<'a>> {
        if i >= self.blocks {
            return None;
        }
        let range = self.range(i);
        let frame = Frame { fixed_key_bytes: self.fixed_key_bytes, shared: self.shared, head: self.head(i) };
        Block::read(self.page.get(range.start..)?, range.end.checked_sub(range.start)?, frame).ok()
    }

    /// The place behind all pairs.
    #[must_use]
    pub fn end(&self) -> Place {
        Place { entry: self.blocks, rid: 0 }
    }

    /// The RID at `place`; the smallest when there is none.
    #[inline]
    #[must_use]
    pub fn rid(&self, place: Place) -> Rid {
        self.block(place.entry).and_then(|b| Rid::from_u64(b.rid(place.rid))).unwrap_or(Rid::MIN)
    }

    /// The key at `place`, appended to `out`; nothing when there is none. For many pairs in a row: [`super::reader::PairReader`].
    pub fn key(&self, place: Place, out: &mut Vec<u8>) {
        let Some(block) = self.block(place.entry) else { return };
        if place.rid == 0 {
            return block.first_key(out);
        }
        let mut entries = Entries::new();
        if block.decode(&mut entries).is_ok() && place.rid < entries.pair_count() {
            out.extend_from_slice(entries.key(entries.entry_of(place.rid)));
        }
    }

    /// Last pair before `place`: the last of the leaf for [`PrefixLeaf::end`]. `None` when there is none.
    #[must_use]
    pub fn place_before(&self, place: Place) -> Option<Place> {
        if place.rid > 0 {
            return Some(Place { rid: place.rid - 1, ..place });
        }
        let entry = place.entry.min(self.blocks).checked_sub(1)?;
        Some(Place { entry, rid: self.block(entry)?.pair_count() - 1 })
    }

    /// What `key` has behind the bytes that all keys share; else how all keys order against it.
    #[inline]
    fn own<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Ordering> {
        match own_part(key, self.shared) {
            Some(own) => Ok(own),
            // `key` may be the beginning of the shared bytes: all keys are greater.
            None => Err(self.shared.cmp(key)),
        }
    }

    fn outside(&self, keys: Ordering) -> Place {
        if keys == Ordering::Greater { Place::default() } else { self.end() }
    }

    /// First place whose key is not less than `key`, and whether its key is `key`.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> (Place, bool) {
        let own = match self.own(key) {
            Ok(own) => own,
            Err(order) => return (self.outside(order), false),
        };
        let (block, found) = self.first_block(own, |_| Ordering::Equal);
        self.in_block_before(block, found, |b| b.lower_bound(own))
    }

    /// The first RID of `key`, with fewer steps than by its place.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<Rid> {
        let own = own_part(key, self.shared)?;
        let (block, found) = self.first_block(own, |_| Ordering::Equal);
        // The key's RIDs may begin in the block before.
        let before = block.checked_sub(1).and_then(|i| self.block(i)).and_then(|b| b.find(own));
        let rid = match before {
            Some(rid) => rid,
            None if found => self.block(block)?.first_rid(),
            None => return None,
        };
        Rid::from_u64(rid)
    }

    /// First place whose (key, RID) is not less than this one, and whether it is this one.
    #[inline]
    #[must_use]
    pub fn lower_bound_rid(&self, key: &[u8], rid: Rid) -> (Place, bool) {
        let own = match self.own(key) {
            Ok(own) => own,
            Err(order) => return (self.outside(order), false),
        };
        let rid = rid.to_u64();
        let (block, found) = self.first_block(own, |b| b.cmp_first_rid(rid));
        if found {
            return (Place { entry: block, rid: 0 }, true);
        }
        self.in_block_before(block, false, |b| b.lower_bound_pair(own, rid))
    }

    /// First place whose `key || RID` is not less than `search`, any string of bytes. Keys must be prefix-free.
    #[must_use]
    pub fn seek(&self, search: &[u8]) -> Place {
        let (place, found) = self.lower_bound(search);
        if found {
            return place;
        }
        // A key that `search` continues orders before it; its RIDs may not.
        let Some(before) = self.place_before(place) else { return place };
        let mut key = Vec::new();
        self.key(before, &mut key);
        let Some(rest) = search.strip_prefix(key.as_slice()) else { return place };
        let mut least = [0; RID_BYTES];
        let n = rest.len().min(RID_BYTES);
        least[..n].copy_from_slice(&rest[..n]);
        let (at, exact) = self.lower_bound_rid(&key, Rid::from_bytes(least));
        if exact && rest.len() > RID_BYTES { self.place_after(at) } else { at }
    }

    fn place_after(&self, place: Place) -> Place {
        let pairs = self.block(place.entry).map_or(0, |b| b.pair_count());
        if place.rid + 1 < pairs { Place { rid: place.rid + 1, ..place } } else { Place { entry: place.entry + 1, rid: 0 } }
    }

    /// First block whose first pair is not less than what is looked for.
    #[inline]
    pub(super) fn first_block(&self, own: &[u8], among_equal_keys: impl Fn(&Block<'a>) -> Ordering) -> (usize, bool) {
        search::lower_bound_by_halves::<DIRECTORY_BYTES>(self.page, self.blocks, key_head(own, 0), |i| match self.block(i) {
            Some(block) => block.cmp_first_key(own).then_with(|| among_equal_keys(&block)),
            None => Ordering::Less,
        })
    }

    /// The block before the first one that is not less may have the place.
    #[inline]
    fn in_block_before(&self, block: usize, found: bool, search: impl Fn(&Block<'a>) -> (usize, bool)) -> (Place, bool) {
        if let Some(before) = block.checked_sub(1).and_then(|i| self.block(i)) {
            let (pair, found) = search(&before);
            if pair < before.pair_count() {
                return (Place { entry: block - 1, rid: pair }, found);
            }
        }
        (Place { entry: block, rid: 0 }, found)
    }
}

//! What an insert or a removal makes of a block, and what the leaf then takes, before it is changed.

use super::header::{DIRECTORY_BYTES, PREFIX_HEADER_BYTES, block_bytes_max};
use super::image::Blocks;
use super::reader::decode;
use super::view::PrefixLeaf;
use crate::FormatError;
use pagefold_codec::bytes::common_prefix;
use pagefold_codec::index::prefix::{Entries, Inserted, PAIRS_MAX, Plan};
use pagefold_types::Rid;
use std::cell::RefCell;

/// A block of fewer pairs is joined with a neighbour when it loses one ...
const FEW_PAIRS: usize = PAIRS_MAX / 4;
/// ... if together they have no more than this.
const JOINED_PAIRS: usize = PAIRS_MAX / 4 * 3;

/// A block that gets more pairs than this by an insert is cut in two where the leaf has room for that: the inserts to come take time for each pair of their block. Not where the pair goes to an end of the
/// block: so ascending inserts leave full blocks, as a build does.
const INSERT_PAIRS: usize = PAIRS_MAX / 2;

/// ... and a part of the block's bytes, one in this many, is free beside the header of another block: else it is not tried.
const ROOM_TO_CUT: usize = 8;

/// Two numbers more take no more than this.
const APPENDED_BYTES: usize = 16;

thread_local! {
    /// The pairs of the block that is being changed, and what it is to be: kept for their allocations only.
    static PAIRS: RefCell<(Entries, Plan)> = RefCell::default();
}

/// A change, worked out: the blocks that take the place of others.
#[derive(Debug)]
pub struct Change {
    pub(super) first: usize,
    pub(super) gone: usize,
    pub(super) new: Blocks,
    /// RIDs of the leaf afterwards.
    pub(super) rids: usize,
    /// Bytes of the leaf afterwards, directory and header included.
    pub(super) bytes: usize,
}

impl Change {
    /// Does the leaf take it?
    #[inline]
    #[must_use]
    pub fn fits(&self, leaf: &PrefixLeaf<'_>) -> bool {
        self.bytes <= leaf.page.len()
    }

    /// Bytes that neither blocks nor directory will use; 0 when it does not fit.
    #[must_use]
    pub fn free_bytes(&self, leaf: &PrefixLeaf<'_>) -> usize {
        leaf.page.len().saturating_sub(self.bytes)
    }
}

/// Cuts `entries` into blocks: one if that is small enough and searched fast, else before or behind pair `at`, if that is the first or the last, else in the middle. `at` is the pair that was inserted; where that
/// is inside, blocks have at most `pairs_max` pairs.
pub(super) fn put_blocks(
    entries: &Entries,
    fixed_key_bytes: usize,
    page_bytes: usize,
    at: Option<usize>,
    pairs_max: usize,
    out: &mut Blocks,
) -> Result<(), FormatError> {
    let n = entries.pair_count();
    let inside = at.is_some_and(|at| at > 0 && at < n - 1);
    if !(inside && n > pairs_max)
        && let Some(plan) = Plan::new(entries, fixed_key_bytes)
        && (n == 1 || (!plan.is_slow() && plan.bytes(out.shared) <= block_bytes_max(page_bytes)))
    {
        out.push_entries(entries, &plan);
        return Ok(());
    }
    if n < 2 {
        return Err(FormatError::new("key longer than a block"));
    }
    let cut = match at {
        Some(0) => 1,
        Some(at) if at == n - 1 => at,
        _ => n / 2,
    };
    for range in [0..cut, cut..n] {
        let mut part = Entries::new();
        part.extend(entries, range.start, range.end);
        put_blocks(&part, fixed_key_bytes, page_bytes, None, PAIRS_MAX, out)?;
    }
    Ok(())
}

impl PrefixLeaf<'_> {
    fn check_key(&self, key: &[u8]) -> Result<(), FormatError> {
        let fixed = self.fixed_key_bytes;
        if fixed != 0 && key.len() != fixed {
            return Err(FormatError::new(format!("key of {} bytes in an index of {fixed}-byte keys", key.len())));
        }
        if key.len() > self.page.len() {
            return Err(FormatError::new("key longer than a page"));
        }
        Ok(())
    }

    /// Bytes of the leaf when these blocks are in the place of `gone` others.
    pub(super) fn bytes_with(&self, first: usize, gone: usize, new: &Blocks) -> usize {
        let kept: usize = if new.shared == self.shared.len() {
            let gone: usize = (first..first + gone).map(|i| self.range(i).len()).sum();
            self.low_end().saturating_sub(PREFIX_HEADER_BYTES + self.shared.len() + gone)
        } else {
            let others = (0..first).chain(first + gone..self.blocks);
            others.filter_map(|i| self.block(i)).map(|b| b.bytes_sharing(new.shared)).sum()
        };
        PREFIX_HEADER_BYTES + new.shared + kept + DIRECTORY_BYTES * (self.blocks - gone) + new.size()
    }

    /// Works out an insert.
    ///
    /// # Errors
    /// When (key, RID) is there already, the key has a wrong length, or the leaf is damaged.
    pub fn plan_insert(&self, key: &[u8], rid: Rid) -> Result<Change, FormatError> {
        self.check_key(key)?;
        let rid = rid.to_u64();
        PAIRS.with_borrow_mut(|(entries, plan)| match key.strip_prefix(self.shared) {
            Some(own) if self.blocks > 0 => {
                let (behind, found) = self.first_block(own, |b| b.cmp_first_rid(rid));
                if found {
                    return Err(already());
                }
                // The last block that begins before the pair, or the first.
                let first = behind.saturating_sub(1);
                match self.insert_among_codes(first, own, rid, plan)? {
                    Some(change) => Ok(change),
                    None => self.insert_among_pairs(first, self.shared.len(), key, rid, entries),
                }
            }
            _ => {
                let shared = if self.blocks == 0 { key.len() } else { common_prefix(self.shared, key) };
                let first = if self.shared < key { self.blocks.saturating_sub(1) } else { 0 };
                self.insert_among_pairs(first, shared, key, rid, entries)
            }
        })
    }

    /// As [`Self::insert_among_pairs`], where one block takes the pair and its keys need not be put together.
    fn insert_among_codes(&self, first: usize, own: &[u8], rid: u64, plan: &mut Plan) -> Result<Option<Change>, FormatError> {
        let block = self.block(first).ok_or_else(|| FormatError::new(format!("block {first} is damaged")))?;
        let pairs = block.pair_count() + 1;
        // Behind the last pair, with numbers as wide as those there are.
        let mut new = Blocks::with_capacity(self.shared.len(), block.byte_count() + APPENDED_BYTES, 1);
        if block.append(own, rid, &mut new.bytes) {
            let bytes = new.bytes.len();
            if bytes > block_bytes_max(self.page.len()) {
                return Ok(None);
            }
            return Ok(Some(self.in_its_place(first, new, (bytes, block.head()), pairs)));
        }
        let inserted = plan.insert(&block, own, rid).map_err(|e| FormatError::new(format!("block {first}: {e}")))?;
        let at = match inserted {
            Inserted::At(at) => at,
            Inserted::Known => return Err(already()),
            Inserted::Otherwise => return Ok(None),
        };
        let bytes = plan.bytes(self.shared.len());
        let inside = at > 0 && at + 1 < pairs;
        if (inside && pairs > INSERT_PAIRS && self.has_room_to_cut(block.byte_count())) || bytes > block_bytes_max(self.page.len()) {
            return Ok(None);
        }
        let head = plan.encode_inserted(&block, own, at, &mut new.bytes);
        Ok(Some(self.in_its_place(first, new, (bytes, head), pairs)))
    }

    /// One block with a pair more in the place of one; its size and the head of its first key.
    fn in_its_place(&self, first: usize, mut new: Blocks, block: (usize, u32), pairs: usize) -> Change {
        new.list.push(block);
        new.rids = pairs;
        let bytes = self.bytes_with(first, 1, &new);
        Change { first, gone: 1, new, rids: self.rid_count() + 1, bytes }
    }

    fn has_room_to_cut(&self, block_bytes: usize) -> bool {
        self.free_bytes() >= block_bytes / ROOM_TO_CUT + 4 * DIRECTORY_BYTES
    }

    /// An insert into block `first` of pairs put together, on a leaf that shares `shared` bytes then.
    fn insert_among_pairs(&self, first: usize, shared: usize, key: &[u8], rid: u64, entries: &mut Entries) -> Result<Change, FormatError> {
        let gone = usize::from(self.blocks > 0);
        entries.clear();
        if gone > 0 {
            decode(self, first, entries)?;
        }
        let at = entries.insert(key, rid).ok_or_else(already)?;
        let change = |pairs_max| {
            let mut new = Blocks::new(shared);
            put_blocks(entries, self.fixed_key_bytes, self.page.len(), Some(at), pairs_max, &mut new)?;
            let bytes = self.bytes_with(first, gone, &new);
            Ok(Change { first, gone, new, rids: self.rid_count() + 1, bytes })
        };
        if gone > 0 && shared == self.shared.len() && entries.pair_count() > INSERT_PAIRS && !self.has_room_to_cut(self.range(first).len())
        {
            return change(PAIRS_MAX);
        }
        let apart = change(INSERT_PAIRS)?;
        // In one block they take less.
        if apart.fits(self) || entries.pair_count() <= INSERT_PAIRS { Ok(apart) } else { change(PAIRS_MAX) }
    }

    /// Works out a removal. Where gaps are differences a removal makes one of them wider, so in rare cases it may not fit; then the leaf must be split first.
    ///
    /// # Errors
    /// When (key, RID) is not there, or the leaf is damaged.
    pub fn plan_remove(&self, key: &[u8], rid: Rid) -> Result<Change, FormatError> {
        self.check_key(key)?;
        let (place, found) = self.lower_bound_rid(key, rid);
        if !found {
            return Err(missing());
        }
        let mut entries = Entries::new();
        decode(self, place.entry, &mut entries)?;
        if !entries.remove(key, rid.to_u64()) {
            return Err(missing());
        }
        let change = |first, gone, new: Blocks| {
            let bytes = self.bytes_with(first, gone, &new);
            Change { first, gone, new, rids: self.rid_count().saturating_sub(1), bytes }
        };
        let shared = self.shared.len();
        let mut new = Blocks::new(shared);
        if entries.is_empty() {
            return Ok(change(place.entry, 1, new));
        }
        put_blocks(&entries, self.fixed_key_bytes, self.page.len(), None, PAIRS_MAX, &mut new)?;
        let alone = change(place.entry, 1, new);
        if !alone.fits(self) {
            // In two blocks the wider gap is nobody's.
            let mut apart = Blocks::new(shared);
            for range in [0..place.rid, place.rid..entries.pair_count()] {
                let mut part = Entries::new();
                part.extend(&entries, range.start, range.end);
                if !part.is_empty() {
                    put_blocks(&part, self.fixed_key_bytes, self.page.len(), None, PAIRS_MAX, &mut apart)?;
                }
            }
            let apart = change(place.entry, 1, apart);
            return Ok(if apart.fits(self) { apart } else { alone });
        }
        if entries.pair_count() < FEW_PAIRS {
            for first in [Some(place.entry), place.entry.checked_sub(1)].into_iter().flatten() {
                if let Some(joined) = self.joined(first, place.entry, &entries)? {
                    let joined = change(first, 2, joined);
                    if joined.bytes <= alone.bytes {
                        return Ok(joined);
                    }
                }
            }
        }
        Ok(alone)
    }

    /// Blocks `first` and the one behind it as one, `entries` being what `changed`, one of them, now has.
    fn joined(&self, first: usize, changed: usize, entries: &Entries) -> Result<Option<Blocks>, FormatError> {
        let other = if changed == first { first + 1 } else { first };
        if self.block(other).is_none_or(|b| b.pair_count() + entries.pair_count() > JOINED_PAIRS) {
            return Ok(None);
        }
        let mut beside = Entries::new();
        decode(self, other, &mut beside)?;
        let mut all = if other < changed { beside.clone() } else { entries.clone() };
        let behind = if other < changed { entries } else { &beside };
        if all.last() >= behind.pairs().next() {
            return Err(FormatError::new("pairs of the leaf do not ascend"));
        }
        all.extend(behind, 0, behind.pair_count());
        let mut new = Blocks::new(self.shared.len());
        put_blocks(&all, self.fixed_key_bytes, self.page.len(), None, PAIRS_MAX, &mut new)?;
        Ok((new.list.len() == 1).then_some(new))
    }
}

fn already() -> FormatError {
    FormatError::new("the entry is there already")
}

fn missing() -> FormatError {
    FormatError::new("no such entry")
}

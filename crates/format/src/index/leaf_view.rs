//! Leaves of either layout, as the B+tree sees them.
//!
//! A [`Place`] is an entry and a RID of its list in a plain leaf, a block and a pair of it in a prefix leaf. In both, places order like the (key, RID) pairs they stand for.

use super::header::{FOLDED_PAGE_BYTES, LeafKind};
use super::leaf::{self, Leaf, Place};
use super::leaf_edit;
use super::limits;
use super::ops::LeafOp;
use super::plan::InsertPlan;
use super::prefix::reader::{BlockRids, PairReader};
use super::prefix::{Change, PrefixLeaf};
use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType};
use pagefold_types::Rid;

/// The fill of a full leaf: see [`LeafView::fill`].
pub const FULL: usize = 1024;

/// How the leaves of an index are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafLayout {
    /// Entries as they are, in memory.
    Plain(LeafKind),
    /// Blocks of compressed pairs.
    Prefix {
        /// Length of every key; 0 when lengths differ.
        fixed_key_bytes: u16,
    },
}

impl LeafLayout {
    /// The op that makes an empty leaf.
    #[must_use]
    pub fn format_op(self, page_number: u32, next: u32) -> LeafOp<'static> {
        match self {
            LeafLayout::Plain(kind) => LeafOp::Format { page_number, kind, next },
            LeafLayout::Prefix { fixed_key_bytes } => LeafOp::FormatPrefix { page_number, fixed_key_bytes, next },
        }
    }
}

/// A leaf that can be searched.
#[derive(Clone, Copy)]
pub enum LeafView<'a> {
    /// Of a plain or a folded index.
    Plain(Leaf<'a>),
    /// Of a prefix index.
    Prefix(PrefixLeaf<'a>),
}

/// An insert, worked out.
#[derive(Debug)]
pub enum PlannedInsert {
    /// Into a plain leaf.
    Plain(InsertPlan),
    /// Into a prefix leaf.
    Prefix(Change),
}

impl PlannedInsert {
    /// Does the leaf take it?
    #[inline]
    #[must_use]
    pub fn fits(&self, leaf: &LeafView<'_>) -> bool {
        match (self, leaf) {
            (PlannedInsert::Plain(plan), LeafView::Plain(leaf)) => plan.fits(leaf),
            (PlannedInsert::Prefix(change), LeafView::Prefix(leaf)) => change.fits(leaf),
            _ => false,
        }
    }

    /// Does it, on the page that it was worked out for, with the same key and RID.
    ///
    /// # Errors
    /// When there is no room, or the page is damaged.
    pub fn apply(&self, page: &mut [u8], key: &[u8], rid: Rid) -> Result<(), FormatError> {
        match self {
            PlannedInsert::Plain(plan) => leaf_edit::insert_planned(page, plan, key, rid),
            PlannedInsert::Prefix(change) => change.apply(page, key),
        }
    }
}

impl<'a> LeafView<'a> {
    /// A view of `page`.
    #[inline]
    #[must_use]
    pub fn new(page: &'a [u8]) -> LeafView<'a> {
        if page.len() >= HEADER_BYTES && page::page_type(page) == Some(PageType::PrefixLeaf) {
            return LeafView::Prefix(PrefixLeaf::new(page));
        }
        LeafView::Plain(Leaf::new(page))
    }

    /// No pair?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            LeafView::Plain(leaf) => leaf.is_empty(),
            LeafView::Prefix(leaf) => leaf.is_empty(),
        }
    }

    /// RIDs of all keys.
    #[must_use]
    pub fn rid_count(&self) -> usize {
        match self {
            LeafView::Plain(leaf) => leaf.rid_count(),
            LeafView::Prefix(leaf) => leaf.rid_count(),
        }
    }

    /// Page after in key order; 0 when there is none.
    #[must_use]
    pub fn next(&self) -> u32 {
        match self {
            LeafView::Plain(leaf) => leaf.next(),
            LeafView::Prefix(leaf) => leaf.next(),
        }
    }

    /// Bytes in memory that nothing uses.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        match self {
            LeafView::Plain(leaf) => leaf.free_bytes(),
            LeafView::Prefix(leaf) => leaf.free_bytes(),
        }
    }

    /// Bytes of the folded form; 0 unless the leaf folds.
    #[must_use]
    pub fn folded_bytes(&self) -> usize {
        match self {
            LeafView::Plain(leaf) => leaf.folded_bytes(),
            LeafView::Prefix(_) => 0,
        }
    }

    /// Its layout, slot bits as they are now.
    #[must_use]
    pub fn layout(&self) -> LeafLayout {
        match self {
            LeafView::Plain(leaf) => LeafLayout::Plain(leaf.kind()),
            LeafView::Prefix(leaf) => LeafLayout::Prefix { fixed_key_bytes: leaf.fixed_key_bytes() as u16 },
        }
    }

    /// The place behind all pairs.
    #[inline]
    #[must_use]
    pub fn end(&self) -> Place {
        match self {
            LeafView::Plain(leaf) => Place { entry: leaf.entry_count(), rid: 0 },
            LeafView::Prefix(leaf) => leaf.end(),
        }
    }

    /// The first RID of `key`; `Err` when the leaf does not have the key: with whether it has greater ones.
    ///
    /// # Errors
    /// As said.
    #[inline]
    pub fn first_rid(&self, key: &[u8]) -> Result<Rid, bool> {
        match self {
            LeafView::Plain(leaf) => match leaf.lower_bound(key) {
                (i, true) => Ok(leaf::rid(&leaf.entry(i), 0)),
                (i, false) => Err(i < leaf.entry_count()),
            },
            LeafView::Prefix(leaf) => leaf.find(key).ok_or_else(|| leaf.lower_bound(key).0 < leaf.end()),
        }
    }

    /// First place whose key is not less than `key`, and whether its key is `key`.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> (Place, bool) {
        match self {
            LeafView::Plain(leaf) => {
                let (entry, found) = leaf.lower_bound(key);
                (Place { entry, rid: 0 }, found)
            }
            LeafView::Prefix(leaf) => leaf.lower_bound(key),
        }
    }

    /// First place whose (key, RID) is not less than this one, and whether it is this one.
    #[inline]
    #[must_use]
    pub fn lower_bound_rid(&self, key: &[u8], rid: Rid) -> (Place, bool) {
        match self {
            LeafView::Plain(leaf) => leaf.lower_bound_rid(key, rid),
            LeafView::Prefix(leaf) => leaf.lower_bound_rid(key, rid),
        }
    }

    /// First place whose `key || RID` is not less than `search`, any string of bytes. Keys must be prefix-free.
    #[must_use]
    pub fn seek(&self, search: &[u8]) -> Place {
        match self {
            LeafView::Plain(leaf) => leaf.seek(search),
            LeafView::Prefix(leaf) => leaf.seek(search),
        }
    }

    /// Appends the key at `place` to `out` and returns the RID there; `None` when there is none.
    pub fn pair(&self, place: Place, out: &mut Vec<u8>) -> Option<Rid> {
        if place >= self.end() {
            return None;
        }
        match self {
            LeafView::Plain(leaf) => {
                out.extend_from_slice(leaf.entry(place.entry).key);
                Some(leaf.rid(place))
            }
            LeafView::Prefix(leaf) => {
                leaf.key(place, out);
                Some(leaf.rid(place))
            }
        }
    }

    /// Appends the RIDs of as many pairs as `most` from `from` on that lie before `to`, and gives the place behind the last of them. Keys are not looked at. `block` is for calls with the same leaf.
    ///
    /// # Errors
    /// When the leaf is damaged.
    pub fn rids(&self, from: Place, to: Place, most: usize, block: &mut BlockRids, out: &mut Vec<Rid>) -> Result<Place, FormatError> {
        let mut place = from;
        let end = out.len() + most;
        match self {
            LeafView::Plain(leaf) => {
                while place < to && out.len() < end {
                    let entry = leaf.entry(place.entry);
                    out.push(leaf::rid(&entry, place.rid));
                    let is_last = place.rid + 1 >= entry.rid_count();
                    place = if is_last { Place { entry: place.entry + 1, rid: 0 } } else { Place { rid: place.rid + 1, ..place } };
                }
            }
            LeafView::Prefix(leaf) => {
                while place < to && out.len() < end {
                    let rids = block.of(leaf, place)?;
                    let before_to = if place.entry == to.entry { to.rid - place.rid } else { rids.len() };
                    let taken = before_to.min(end - out.len()).min(rids.len());
                    out.extend(rids[..taken].iter().map(|rid| Rid::from_u64(*rid).unwrap_or(Rid::MIN)));
                    let is_last = taken == rids.len();
                    place = if is_last { Place { entry: place.entry + 1, rid: 0 } } else { Place { rid: place.rid + taken, ..place } };
                }
            }
        }
        Ok(place)
    }

    /// Last place before `place`: the last of the leaf for [`LeafView::end`]. `None` when there is none.
    #[must_use]
    pub fn place_before(&self, place: Place) -> Option<Place> {
        match self {
            LeafView::Plain(_) if place.rid > 0 => Some(Place { rid: place.rid - 1, ..place }),
            LeafView::Plain(leaf) => {
                let entry = place.entry.min(leaf.entry_count()).checked_sub(1)?;
                Some(Place { entry, rid: leaf.entry(entry).rid_count().saturating_sub(1) })
            }
            LeafView::Prefix(leaf) => leaf.place_before(place),
        }
    }

    /// Does (key, RID) order behind all there are?
    #[must_use]
    pub fn is_behind_all(&self, key: &[u8], rid: Rid) -> bool {
        self.lower_bound_rid(key, rid).0 >= self.end()
    }

    /// Is the pair at `place`, which is (key, RID), the only one of its key?
    #[must_use]
    pub fn is_alone(&self, place: Place, key: &[u8], rid: Rid) -> bool {
        match self {
            LeafView::Plain(leaf) => {
                let entry = leaf.entry(place.entry);
                // In a unique index NULLs may make several entries with one key.
                let beside = |i: usize| i != place.entry && i < leaf.entry_count() && leaf.entry(i).key == entry.key;
                entry.rid_count() == 1 && !beside(place.entry.wrapping_sub(1)) && !beside(place.entry + 1)
            }
            LeafView::Prefix(leaf) => {
                let behind = match Rid::from_u64(rid.to_u64() + 1) {
                    Some(next) => leaf.lower_bound_rid(key, next).0,
                    None => leaf.end(),
                };
                // No pair of the key before this one, and none from the next one on.
                leaf.lower_bound(key).0 == place && (rid == Rid::MAX || leaf.lower_bound_rid(key, Rid::MAX) == (behind, false))
            }
        }
    }

    /// Number of keys, and their bytes. A prefix leaf is decoded for that.
    ///
    /// # Errors
    /// When the leaf is damaged.
    pub fn keys(&self) -> Result<(u64, u64), FormatError> {
        let (mut keys, mut bytes) = (0, 0);
        match self {
            LeafView::Plain(leaf) => {
                keys = leaf.entry_count() as u64;
                bytes = leaf.entries().map(|e| e.key.len() as u64).sum();
            }
            LeafView::Prefix(leaf) => {
                let mut reader = PairReader::new();
                let mut last = Vec::new();
                while let Some((entries, _)) = reader.next_block(leaf)? {
                    for i in 0..entries.entry_count() {
                        let key = entries.key(i);
                        if i > 0 || keys == 0 || key != last {
                            keys += 1;
                            bytes += key.len() as u64;
                        }
                    }
                    last.clear();
                    last.extend_from_slice(entries.last().map_or(&[], |last| last.0));
                }
            }
        }
        Ok((keys, bytes))
    }

    /// Calls `visit` with every pair, in order. `damaged` tells what becomes of an error of the leaf.
    ///
    /// # Errors
    /// When the leaf is damaged, and what `visit` returns.
    pub fn for_each<E>(&self, mut visit: impl FnMut(&[u8], Rid) -> Result<(), E>, damaged: impl FnOnce(FormatError) -> E) -> Result<(), E> {
        match self {
            LeafView::Plain(leaf) => {
                for entry in leaf.entries() {
                    for i in 0..entry.rid_count() {
                        visit(entry.key, leaf::rid(&entry, i))?;
                    }
                }
            }
            LeafView::Prefix(leaf) => {
                let mut reader = PairReader::new();
                loop {
                    match reader.next(leaf) {
                        Ok(Some((key, rid))) => visit(key, rid)?,
                        Ok(None) => break,
                        Err(error) => return Err(damaged(error)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Visits `count` pairs, or as many as there are, from number `from` on: what lies before is passed over without a look at it.
    ///
    /// # Errors
    /// As [`Self::for_each`].
    pub fn for_some<E>(
        &self,
        from: usize,
        count: usize,
        mut visit: impl FnMut(&[u8], Rid) -> Result<(), E>,
        damaged: impl FnOnce(FormatError) -> E,
    ) -> Result<(), E> {
        let (mut before, mut left) = (from, count);
        match self {
            LeafView::Plain(leaf) => {
                for entry in leaf.entries() {
                    let rids = entry.rid_count();
                    for i in before.min(rids)..rids {
                        if left == 0 {
                            return Ok(());
                        }
                        visit(entry.key, leaf::rid(&entry, i))?;
                        left -= 1;
                    }
                    before = before.saturating_sub(rids);
                }
                Ok(())
            }
            LeafView::Prefix(leaf) => {
                let mut block = 0;
                while let Some(pairs) = leaf.block(block).map(|block| block.pair_count()).filter(|pairs| before >= *pairs) {
                    before -= pairs;
                    block += 1;
                }
                let mut reader = PairReader::new();
                let sought = reader.seek(leaf, Place { entry: block, rid: before });
                let mut next = |reader: &mut PairReader| match reader.next(leaf) {
                    Ok(Some((key, rid))) => Ok(Some(visit(key, rid))),
                    Ok(None) => Ok(None),
                    Err(error) => Err(error),
                };
                let mut failed = sought.err();
                while left > 0 && failed.is_none() {
                    match next(&mut reader) {
                        Ok(Some(visited)) => visited?,
                        Ok(None) => break,
                        Err(error) => failed = Some(error),
                    }
                    left -= 1;
                }
                failed.map_or(Ok(()), |error| Err(damaged(error)))
            }
        }
    }

    /// Works out an insert.
    ///
    /// # Errors
    /// When (key, RID) is there already, the key has a wrong length, or the leaf is damaged.
    #[inline]
    pub fn plan_insert(&self, key: &[u8], rid: Rid) -> Result<PlannedInsert, FormatError> {
        match self {
            LeafView::Plain(leaf) => leaf.plan_insert(key, rid).map(PlannedInsert::Plain),
            LeafView::Prefix(leaf) => leaf.plan_insert(key, rid).map(PlannedInsert::Prefix),
        }
    }

    /// Works out a removal from a prefix leaf, which may not fit; a plain leaf has room for any.
    ///
    /// # Errors
    /// When (key, RID) is not there, or the leaf is damaged.
    #[inline]
    pub fn plan_remove(&self, key: &[u8], rid: Rid) -> Result<Option<Change>, FormatError> {
        match self {
            LeafView::Plain(_) => Ok(None),
            LeafView::Prefix(leaf) => leaf.plan_remove(key, rid).map(Some),
        }
    }

    /// Does the leaf take this change of it?
    #[must_use]
    pub fn takes(&self, change: &Change) -> bool {
        matches!(self, LeafView::Prefix(leaf) if change.fits(leaf))
    }

    /// Where to cut the leaf in two so that about `part` of `of` parts of it lie before the cut. `None` when there are not two RIDs.
    #[must_use]
    pub fn cut(&self, part: usize, of: usize) -> Option<Place> {
        match self {
            LeafView::Plain(leaf) => limits::cut(leaf, part, of),
            LeafView::Prefix(leaf) => leaf.cut(part, of),
        }
    }

    /// What lies from `from` up to `to`, as `Append` and `Prepend` take it.
    ///
    /// # Errors
    /// When the leaf is damaged.
    pub fn run(&self, from: Place, to: Place) -> Result<(usize, Vec<u8>), FormatError> {
        match self {
            LeafView::Plain(leaf) => Ok(leaf.run(from, to)),
            LeafView::Prefix(leaf) => leaf.run(from, to),
        }
    }

    /// How full the leaf is, of [`FULL`]: in memory or on disk, whichever is more.
    #[must_use]
    pub fn fill(&self) -> usize {
        let (bytes, free) = match self {
            LeafView::Plain(leaf) => (leaf.page.len(), leaf.free_bytes()),
            LeafView::Prefix(leaf) => (leaf.page.len(), leaf.free_bytes()),
        };
        let in_memory = (bytes - free) * FULL / bytes.max(1);
        in_memory.max(self.folded_bytes() * FULL / FOLDED_PAGE_BYTES)
    }
}

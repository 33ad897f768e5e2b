//! The view of a leaf that is searched. Layout: `pagefold_codec::index::layout`, [`super::header`].
//!
//! Invariants, once [`validate`] has passed: every access is in bounds and entries lie in map order without gaps. Whatever the bytes, no access panics:
//! what is not there reads as empty.
//!
//! The bytes of a leaf are a function of its header fields and contents: entries are kept in key order without gaps, what is free is zero, the common prefix is the longest.
//! So two leaves with the same contents are equal, redo cannot diverge, and a folded leaf expands to the very bytes it was made of.
//!
//! Deleted marks (for entries that must outlive their row until the oldest snapshot has passed) will use the top bit of the key map's offset: a single entry is marked by it, an
//! entry with a RID list then has a bitmap behind its RIDs. The folded form has RID code 15 for them. Version 1 refuses both.

use super::header;
pub use super::leaf_check::{check, validate};
use super::search::{self, map_head, map_offset};
use crate::page;
use pagefold_codec::index::layout::{Entry, MAP_BYTES, OFFSET_MASK, RID_BYTES, Shape, key_head};
use pagefold_types::Rid;
use std::cmp::Ordering;

/// A place among the RIDs of a leaf: RID `rid` of entry `entry`. One past the last entry is `(entries, 0)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Entry.
    pub entry: usize,
    /// RID in its list.
    pub rid: usize,
}

/// A leaf that can be searched.
#[derive(Clone, Copy)]
pub struct Leaf<'a> {
    pub(super) page: &'a [u8],
    pub(super) entries: usize,
    pub(super) shape: Shape,
    pub(super) prefix: usize,
}

const NO_ENTRY: Entry<'static> = Entry { key: &[], rids: &[] };

impl<'a> Leaf<'a> {
    /// A view of `page`.
    #[inline]
    #[must_use]
    pub fn new(page: &'a [u8]) -> Leaf<'a> {
        if page.len() < header::LEAF_HEADER_BYTES {
            return Leaf { page: &[], entries: 0, shape: Shape { fixed_key_bytes: 0, single: true, slot_bits: 12 }, prefix: 0 };
        }
        let (single, _) = header::flags(page);
        let entries = usize::from(page::count(page)).min(header::entries_max(page.len()));
        let shape = Shape { fixed_key_bytes: header::fixed_key_bytes(page), single, slot_bits: header::slot_bits(page).min(12) };
        Leaf { page, entries, shape, prefix: header::common_prefix(page) }
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// No entry?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// RIDs of all entries.
    #[must_use]
    pub fn rid_count(&self) -> usize {
        if self.page.is_empty() { 0 } else { header::rids(self.page) }
    }

    /// Layout of the entries.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Is it stored as a folded leaf?
    #[inline]
    #[must_use]
    pub fn folds(&self) -> bool {
        !self.page.is_empty() && header::flags(self.page).1
    }

    /// The kind its format op gave it, slot bits as they are now.
    #[must_use]
    pub fn kind(&self) -> header::LeafKind {
        header::LeafKind {
            single: self.shape.single,
            fold: self.folds(),
            fixed_key_bytes: self.shape.fixed_key_bytes,
            slot_bits: self.shape.slot_bits,
        }
    }

    /// Page after in key order; 0 when there is none. There is no link back: a split or merge then changes no page beside its own, and who goes backward
    /// descends anew.
    #[inline]
    #[must_use]
    pub fn next(&self) -> u32 {
        if self.page.is_empty() { 0 } else { header::next(self.page) }
    }

    /// Bytes that neither entries nor key map use.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        (self.page.len() - MAP_BYTES * self.entries).saturating_sub(self.low_end())
    }

    /// Bytes of the folded form, header included; 0 unless the leaf folds.
    #[must_use]
    pub fn folded_bytes(&self) -> usize {
        if self.page.is_empty() { 0 } else { header::folded_bytes(self.page) }
    }

    /// End of the entries.
    #[must_use]
    pub(super) fn low_end(&self) -> usize {
        if self.page.is_empty() { 0 } else { usize::from(page::low_end(self.page)) }
    }

    #[inline]
    pub(super) fn offset(&self, i: usize) -> usize {
        usize::from(map_offset::<MAP_BYTES>(self.page, i) & OFFSET_MASK)
    }

    pub(super) fn head(&self, i: usize) -> u32 {
        map_head::<MAP_BYTES>(self.page, i)
    }

    /// Entry `i`; empty when there is none.
    #[inline]
    #[must_use]
    pub fn entry(&self, i: usize) -> Entry<'a> {
        if i >= self.entries {
            return NO_ENTRY;
        }
        Entry::read(self.page, self.offset(i), self.shape).unwrap_or(NO_ENTRY)
    }

    /// All entries in order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Entry<'a>> + ExactSizeIterator + use<'a> {
        let leaf = *self;
        (0..self.entries).map(move |i| leaf.entry(i))
    }

    /// The RID at `place`; the smallest when there is none.
    #[inline]
    #[must_use]
    pub fn rid(&self, place: Place) -> Rid {
        rid(&self.entry(place.entry), place.rid)
    }

    /// Place of the last RID; `None` in an empty leaf.
    #[must_use]
    pub fn last_place(&self) -> Option<Place> {
        let entry = self.entries.checked_sub(1)?;
        Some(Place { entry, rid: self.entry(entry).rid_count().saturating_sub(1) })
    }

    /// First entry whose key is not less than `key`, and whether it is `key`. One past the last when all are less.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> (usize, bool) {
        self.search(key, |_| Ordering::Equal)
    }

    /// The entry with this key, the first of them when there are several (in a unique index, beside deleted ones).
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<Entry<'a>> {
        let (i, found) = self.lower_bound(key);
        found.then(|| self.entry(i))
    }

    /// First place whose (key, RID) is not less than this one, and whether it is this one.
    #[must_use]
    pub fn lower_bound_rid(&self, key: &[u8], rid: Rid) -> (Place, bool) {
        if self.shape.single {
            let (entry, found) = self.search(key, |entry| entry.rid(0).cmp(&rid.to_u64()));
            return (Place { entry, rid: 0 }, found);
        }
        let (entry, found) = self.lower_bound(key);
        if !found {
            return (Place { entry, rid: 0 }, false);
        }
        let at = self.entry(entry);
        let (n, found) = rid_lower_bound(at.rids, rid);
        if n < at.rid_count() { (Place { entry, rid: n }, found) } else { (Place { entry: entry + 1, rid: 0 }, false) }
    }

    /// First place whose `key || RID` is not less than `search`, any string of bytes. Keys must be prefix-free.
    #[must_use]
    pub fn seek(&self, search: &[u8]) -> Place {
        let (mut entry, found) = self.lower_bound(search);
        // A key that `search` continues orders before it; its RIDs may not.
        let mut place = Place { entry, rid: 0 };
        while !found && entry > 0 {
            entry -= 1;
            let at = self.entry(entry);
            let Some(rest) = search.strip_prefix(at.key) else { break };
            let n = at.rids.chunks_exact(RID_BYTES).take_while(|rid| *rid < rest).count();
            if n == at.rid_count() {
                break;
            }
            place = Place { entry, rid: n };
        }
        place
    }

    #[inline]
    fn search(&self, key: &[u8], among_equal_keys: impl Fn(&Entry<'a>) -> Ordering) -> (usize, bool) {
        if self.entries == 0 {
            return (0, false);
        }
        if self.prefix > 0 {
            let first = self.entry(0).key;
            let shared = first.get(..self.prefix).unwrap_or(first);
            match key.get(..shared.len()).map_or_else(|| key.cmp(shared), |start| start.cmp(shared)) {
                Ordering::Less => return (0, false),
                Ordering::Greater => return (self.entries, false),
                Ordering::Equal => {}
            }
        }
        let rest = key.get(self.prefix..).unwrap_or(&[]);
        search::lower_bound::<MAP_BYTES>(self.page, self.entries, key_head(rest, 0), |i| {
            let entry = self.entry(i);
            entry.key.get(self.prefix..).unwrap_or(&[]).cmp(rest).then_with(|| among_equal_keys(&entry))
        })
    }

    /// Entries from `from` up to `to` as an `Append` op takes them, and how many: a cut RID list becomes an entry of its own.
    #[must_use]
    pub fn run(&self, from: Place, to: Place) -> (usize, Vec<u8>) {
        let mut bytes = Vec::with_capacity(self.low_end());
        let mut count = 0;
        let last = if to.rid > 0 { to.entry + 1 } else { to.entry };
        for i in from.entry..last.min(self.entries) {
            let entry = self.entry(i);
            let first_rid = if i == from.entry { from.rid } else { 0 };
            let end_rid = if i == to.entry { to.rid } else { entry.rid_count() };
            let Some(rids) = entry.rids.get(first_rid * RID_BYTES..end_rid * RID_BYTES).filter(|r| !r.is_empty()) else { continue };
            put_entry(&mut bytes, self.shape, entry.key, rids);
            count += 1;
        }
        (count, bytes)
    }
}

/// Appends an entry in its expanded layout.
pub(super) fn put_entry(out: &mut Vec<u8>, shape: Shape, key: &[u8], rids: &[u8]) {
    if shape.fixed_key_bytes == 0 {
        out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    }
    if !shape.single {
        out.extend_from_slice(&((rids.len() / RID_BYTES) as u16).to_le_bytes());
    }
    out.extend_from_slice(key);
    out.extend_from_slice(rids);
}

/// RID number `i` of an entry; the smallest when there is none.
#[inline]
#[must_use]
pub fn rid(entry: &Entry<'_>, i: usize) -> Rid {
    Rid::from_u64(entry.rid(i)).unwrap_or(Rid::MIN)
}

/// First of the packed RIDs that is not less than `rid`, and whether it is `rid`.
#[must_use]
pub fn rid_lower_bound(rids: &[u8], rid: Rid) -> (usize, bool) {
    let wanted = rid.to_bytes();
    let (mut low, mut high) = (0, rids.len() / RID_BYTES);
    let mut found = false;
    while low < high {
        let middle = (low + high) / 2;
        let order = rids[middle * RID_BYTES..(middle + 1) * RID_BYTES].cmp(&wanted);
        if order == Ordering::Less {
            low = middle + 1;
        } else {
            high = middle;
            found = order == Ordering::Equal;
        }
    }
    (low, found)
}

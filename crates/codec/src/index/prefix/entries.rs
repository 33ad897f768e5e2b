//! The pairs of a block as they are, to be changed and encoded again.
//!
//! Invariant: (key, RID) pairs strictly ascend; pairs with one key are one entry.

use crate::bytes::common_prefix;

/// Keys with their RIDs, in order. Keeps its allocations when it is cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    keys: Vec<u8>,
    /// End of each entry's key in `keys`.
    key_ends: Vec<u32>,
    /// End of each entry's RIDs in `rids`.
    rid_ends: Vec<u32>,
    rids: Vec<u64>,
}

impl Entries {
    /// None.
    #[must_use]
    pub fn new() -> Entries {
        Entries::default()
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.rid_ends.clear();
        self.rids.clear();
    }

    /// Makes room for keys of about so many bytes and their RIDs.
    pub(super) fn reserve(&mut self, entries: usize, pairs: usize, key_bytes: usize) {
        self.keys.reserve((entries + 1) * key_bytes);
        self.key_ends.reserve(entries + 1);
        self.rid_ends.reserve(entries + 1);
        self.rids.reserve(pairs + 1);
    }

    /// Number of keys.
    #[inline]
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.key_ends.len()
    }

    /// Number of RIDs.
    #[inline]
    #[must_use]
    pub fn pair_count(&self) -> usize {
        self.rids.len()
    }

    /// No pair?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rids.is_empty()
    }

    /// Key of entry `i`.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    #[must_use]
    pub fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] };
        &self.keys[start as usize..self.key_ends[i] as usize]
    }

    /// Packed RIDs of entry `i`, ascending.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    #[must_use]
    pub fn rids(&self, i: usize) -> &[u64] {
        &self.rids[self.first_pair(i)..self.rid_ends[i] as usize]
    }

    /// Packed RIDs of all entries.
    #[inline]
    #[must_use]
    pub fn all_rids(&self) -> &[u64] {
        &self.rids
    }

    /// End of each entry's RIDs among all.
    #[inline]
    pub(super) fn rid_ends(&self) -> &[u32] {
        &self.rid_ends
    }

    /// Number of RIDs before entry `i`.
    #[inline]
    #[must_use]
    pub fn first_pair(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.rid_ends[i - 1] as usize }
    }

    /// The entry that has pair number `pair`.
    #[inline]
    #[must_use]
    pub fn entry_of(&self, pair: usize) -> usize {
        self.rid_ends.partition_point(|end| *end as usize <= pair)
    }

    /// All pairs in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.entry_count()).flat_map(move |i| self.rids(i).iter().map(move |rid| (self.key(i), *rid)))
    }

    /// The last pair.
    #[must_use]
    pub fn last(&self) -> Option<(&[u8], u64)> {
        Some((self.key(self.entry_count().checked_sub(1)?), *self.rids.last()?))
    }

    /// Adds a pair behind all others. The caller keeps the order.
    #[inline]
    pub fn push(&mut self, key: &[u8], rid: u64) {
        let n = self.entry_count();
        if n > 0 && self.key(n - 1) == key {
            self.rids.push(rid);
            self.rid_ends[n - 1] += 1;
        } else {
            self.keys.extend_from_slice(key);
            self.push_end(rid);
        }
    }

    /// Adds a pair whose key is another than the last one.
    #[inline]
    pub(super) fn push_key(&mut self, key: &[u8], rid: u64) {
        self.keys.extend_from_slice(key);
        self.push_end(rid);
    }

    /// Adds a pair whose key is `shared` bytes of the last one and `suffix`, and is another.
    #[inline]
    pub(super) fn push_suffix(&mut self, shared: usize, suffix: &[u8], rid: u64) {
        let end = self.keys.len();
        let start = match self.entry_count() {
            0 | 1 => 0,
            n => self.key_ends[n - 2] as usize,
        };
        self.keys.extend_from_within(start..(start + shared).min(end));
        self.keys.extend_from_slice(suffix);
        self.push_end(rid);
    }

    #[inline]
    fn push_end(&mut self, rid: u64) {
        self.key_ends.push(self.keys.len() as u32);
        self.rids.push(rid);
        self.rid_ends.push(self.rids.len() as u32);
    }

    /// Adds a RID to the last entry.
    #[inline]
    pub(super) fn push_rid(&mut self, rid: u64) {
        self.rids.push(rid);
        if let Some(end) = self.rid_ends.last_mut() {
            *end += 1;
        }
    }

    fn find(&self, key: &[u8]) -> (usize, bool) {
        let (mut low, mut high) = (0, self.entry_count());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, low < self.entry_count() && self.key(low) == key)
    }

    /// Puts a pair in its place: the number of pairs before it, or `None` when it is there already.
    pub fn insert(&mut self, key: &[u8], rid: u64) -> Option<usize> {
        let (entry, found) = self.find(key);
        let first = self.first_pair(entry);
        let at = if found {
            first + self.rids(entry).binary_search(&rid).err()?
        } else {
            let start = if entry == 0 { 0 } else { self.key_ends[entry - 1] };
            self.keys.splice(start as usize..start as usize, key.iter().copied());
            self.key_ends.insert(entry, start);
            self.key_ends[entry..].iter_mut().for_each(|end| *end += key.len() as u32);
            self.rid_ends.insert(entry, first as u32);
            first
        };
        self.rids.insert(at, rid);
        self.rid_ends[entry..].iter_mut().for_each(|end| *end += 1);
        Some(at)
    }

    /// Takes a pair out; false when it is not there.
    pub fn remove(&mut self, key: &[u8], rid: u64) -> bool {
        let (entry, found) = self.find(key);
        if !found {
            return false;
        }
        let Ok(at) = self.rids(entry).binary_search(&rid) else { return false };
        let at = self.first_pair(entry) + at;
        self.rids.remove(at);
        self.rid_ends[entry..].iter_mut().for_each(|end| *end -= 1);
        if self.first_pair(entry) == self.rid_ends[entry] as usize {
            let end = self.key_ends[entry];
            let start = if entry == 0 { 0 } else { self.key_ends[entry - 1] };
            self.keys.drain(start as usize..end as usize);
            self.key_ends.remove(entry);
            self.key_ends[entry..].iter_mut().for_each(|e| *e -= end - start);
            self.rid_ends.remove(entry);
        }
        true
    }

    /// Adds pairs `from..to` of `other` behind all there are.
    pub fn extend(&mut self, other: &Entries, from: usize, to: usize) {
        let mut pair = from;
        let mut entry = other.entry_of(from);
        while pair < to {
            let end = (other.rid_ends[entry] as usize).min(to);
            self.push(other.key(entry), other.rids[pair]);
            for rid in &other.rids[pair + 1..end] {
                self.push_rid(*rid);
            }
            pair = end;
            entry += 1;
        }
    }

    /// Bytes that first and last key share, and so all.
    #[must_use]
    pub fn shared_bytes(&self) -> usize {
        match self.entry_count() {
            0 => 0,
            n => common_prefix(self.key(0), self.key(n - 1)),
        }
    }
}

//! Two sets compared in bounded memory, by sums of hashes; only when they differ are the elements looked for.
//!
//! Three passes over both sides at most:
//! 1. [`Sum`]: the 128-bit hashes of each side are added up. Equal sums: equal sets (see the parent module for what that can miss).
//! 2. [`Buckets`]: the hashes are divided into buckets, each with the difference of both sides.
//! 3. [`Elements`]: elements of the buckets that differ are kept, and those that both sides have cancel out.

use pagefold_types::Rid;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// The hash of a key and a RID.
pub(crate) fn hash(key: &[u8], rid: Rid, scratch: &mut Vec<u8>) -> u128 {
    scratch.clear();
    scratch.extend_from_slice(key);
    scratch.extend_from_slice(&rid.to_bytes());
    xxh3_128(scratch)
}

/// Which of the two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Number and sum of hashes: of one side, or left less right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    count: u64,
    hashes: u128,
}

impl Sum {
    pub(crate) fn add(&mut self, hash: u128) {
        self.count = self.count.wrapping_add(1);
        self.hashes = self.hashes.wrapping_add(hash);
    }

    fn remove(&mut self, hash: u128) {
        self.count = self.count.wrapping_sub(1);
        self.hashes = self.hashes.wrapping_sub(hash);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// The second pass.
pub(crate) struct Buckets(Vec<Sum>);

impl Buckets {
    /// For sets of about so many elements: 64 a bucket, at most 32 MB.
    pub(crate) fn new(elements: u64) -> Buckets {
        let buckets = (elements / 64).clamp(1 << 10, 1 << 20).next_power_of_two();
        Buckets(vec![Sum::default(); buckets as usize])
    }

    fn index(&self, hash: u128) -> usize {
        hash as usize & (self.0.len() - 1)
    }

    pub(crate) fn add(&mut self, side: Side, hash: u128) {
        let index = self.index(hash);
        match side {
            Side::Left => self.0[index].add(hash),
            Side::Right => self.0[index].remove(hash),
        }
    }

    /// On to the third pass.
    pub(crate) fn elements(self) -> Elements {
        let differs = self.0.iter().map(|sum| *sum != Sum::default()).collect();
        Elements { differs, kept: HashMap::new(), bytes: 0, dropped: false }
    }
}

/// An element that one side has and the other has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// Page where it was found.
    pub(crate) page: u32,
    /// Partition of that page.
    pub(crate) partition: u16,
    pub(crate) key: Box<[u8]>,
    pub(crate) rid: Rid,
}

/// Bytes that kept elements may take.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// The third pass.
pub(crate) struct Elements {
    differs: Vec<bool>,
    kept: HashMap<u128, (Side, Element)>,
    bytes: usize,
    dropped: bool,
}

impl Elements {
    pub(crate) fn add(&mut self, side: Side, hash: u128, partition: u16, page: u32, key: &[u8], rid: Rid) {
        if !self.differs[hash as usize & (self.differs.len() - 1)] {
            return;
        }
        if self.kept.get(&hash).is_some_and(|(other, _)| *other != side) {
            if let Some((_, element)) = self.kept.remove(&hash) {
                self.bytes -= size_of::<Element>() + element.key.len();
            }
            return;
        }
        if self.bytes > KEPT_BYTES_MAX {
            self.dropped = true;
            return;
        }
        self.bytes += size_of::<Element>() + key.len();
        self.kept.insert(hash, (side, Element { page, partition, key: key.into(), rid }));
    }

    /// What only the left side has, and what only the right side has, by page and RID. `None` when there was too much to keep.
    pub(crate) fn finish(self) -> Option<(Vec<Element>, Vec<Element>)> {
        if self.dropped {
            return None;
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (side, element) in self.kept.into_values() {
            if side == Side::Left { left.push(element) } else { right.push(element) }
        }
        for side in [&mut left, &mut right] {
            side.sort_by(|a, b| (a.partition, a.page, a.rid, &a.key).cmp(&(b.partition, b.page, b.rid, &b.key)));
        }
        Some((left, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_exactly_what_differs() {
        let key = |i: u64| (i * 7).to_be_bytes();
        let rid = |i: u64| Rid::from_u64(i).unwrap();
        let left: Vec<u64> = (0..20_000).filter(|i| *i != 77 && *i != 9_000).collect();
        let right: Vec<u64> = (0..20_000).rev().filter(|i| *i != 5).collect();
        let mut scratch = Vec::new();
        let mut sums = [Sum::default(); 2];
        let mut buckets = Buckets::new(20_000);
        for (side, set) in [(Side::Left, &left), (Side::Right, &right)] {
            for i in set {
                let h = hash(&key(*i), rid(*i), &mut scratch);
                sums[side as usize].add(h);
                buckets.add(side, h);
            }
        }
        assert_ne!(sums[0], sums[1]);
        let mut elements = buckets.elements();
        for (side, set) in [(Side::Left, &left), (Side::Right, &right)] {
            for i in set {
                elements.add(side, hash(&key(*i), rid(*i), &mut scratch), 0, *i as u32, &key(*i), rid(*i));
            }
        }
        let (only_left, only_right) = elements.finish().unwrap();
        assert_eq!(only_left.iter().map(|e| e.page).collect::<Vec<_>>(), [5]);
        assert_eq!(only_right.iter().map(|e| e.page).collect::<Vec<_>>(), [77, 9_000]);
    }

    #[test]
    fn order_does_not_matter() {
        let mut a = Sum::default();
        let mut b = Sum::default();
        (0..100u128).for_each(|h| a.add(h * h));
        (0..100u128).rev().for_each(|h| b.add(h * h));
        assert_eq!(a, b);
        assert_eq!(a.count(), 100);
    }
}

//! Hashing of small fixed-size keys (object ids, page numbers, RIDs): a multiplication per word.
//!
//! Not for bytes that a user chooses: those go into ordered maps.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// 2^64 divided by the golden ratio, odd (Knuth, multiplicative hashing).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash map for keys of a few integers.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// A hash set of them.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<WordHasher>>;

/// Spreads a word over all bits; its top bits are the best ones.
pub(crate) fn spread(word: u64) -> u64 {
    let product = u128::from(word ^ MULTIPLIER) * u128::from(MULTIPLIER);
    (product as u64) ^ (product >> 64) as u64
}

/// Hash of an object's id with a number within that object.
pub(crate) fn of_pair(object: u32, number: u64) -> u64 {
    spread(number ^ u64::from(object).rotate_right(24))
}

/// See [`FastMap`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = spread(self.0.rotate_left(23) ^ word);
    }
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

//! A Bloom filter of the keys of an index, in memory: it says of almost every key that is not there that it is not.
//!
//! It is a split block Bloom filter (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007; with the multipliers of the Apache Parquet format): a key sets one bit
//! in each of the eight words of one block of 32 bytes. So a look costs one line of memory. With 12 bits a key some 0.6 % of other keys are taken for keys that are there.
//!
//! Invariants:
//! - a key that was added is never denied. Who asks knows of it otherwise than by the filter (a lock, a commit): so relaxed loads and stores do;
//! - all filters of a database together take no more than their [`FilterMemory`]; what a filter has it gives back when it goes.

use crate::pool::FilterMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64;

const WORDS_OF_BLOCK: usize = 8;
const BLOCK_BYTES: usize = WORDS_OF_BLOCK * 4;
/// Of filter, for each key that is expected.
const BITS_PER_KEY: usize = 12;
/// One of each word, odd: they make eight bit numbers of one half of a hash.
const SALTS: [u32; WORDS_OF_BLOCK] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The hash by which filters know a key.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

type Block = [AtomicU32; WORDS_OF_BLOCK];

/// The filter.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    blocks: Box<[Block]>,
    /// Keys that it is made for.
    expected: usize,
    added: AtomicUsize,
    memory: Arc<FilterMemory>,
}

impl KeyFilter {
    /// An empty one for so many keys; `None` when there is no room for it.
    pub(crate) fn new(expected: usize, memory: &Arc<FilterMemory>) -> Option<KeyFilter> {
        let blocks = expected.checked_mul(BITS_PER_KEY)?.div_ceil(BLOCK_BYTES * 8).max(1);
        if !memory.take(blocks.checked_mul(BLOCK_BYTES)?) {
            return None;
        }
        let blocks = (0..blocks).map(|_| Block::default()).collect();
        Some(KeyFilter { blocks, expected, added: AtomicUsize::new(0), memory: Arc::clone(memory) })
    }

    /// A key of this [hash] is there from now on.
    pub(crate) fn add(&self, hash: u64) {
        for (word, bit) in self.block(hash).iter().zip(bits(hash)) {
            // A bit that is set already costs no write: keys come again.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        self.added.fetch_add(1, Ordering::Relaxed);
    }

    /// May there be a key of this [hash]?
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.block(hash).iter().zip(bits(hash)).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Did a quarter more keys come than it is made for? It takes one of sixty others for one of them by then.
    pub(crate) fn is_worn(&self) -> bool {
        self.added.load(Ordering::Relaxed) > self.expected.saturating_add(self.expected / 4)
    }

    #[inline]
    fn block(&self, hash: u64) -> &Block {
        // The upper half tells the block, the lower half its bits.
        let at = (u128::from(hash) * self.blocks.len() as u128) >> 64;
        &self.blocks[at as usize]
    }
}

#[inline]
fn bits(hash: u64) -> [u32; WORDS_OF_BLOCK] {
    SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

impl Drop for KeyFilter {
    fn drop(&mut self) {
        self.memory.give_back(self.blocks.len() * BLOCK_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(keys: usize, expected: usize) -> KeyFilter {
        let filter = KeyFilter::new(expected, &FilterMemory::new(1 << 20)).unwrap();
        (0..keys).for_each(|key| filter.add(hash(&key.to_be_bytes())));
        filter
    }

    /// How many of a million keys that were not added it does not deny.
    fn taken_for_there(filter: &KeyFilter) -> usize {
        (1_000_000_000..1_001_000_000usize).filter(|key| filter.may_have(hash(&key.to_be_bytes()))).count()
    }

    #[test]
    fn no_key_is_denied_and_few_others_are_not() {
        let filter = with(20_000, 20_000);
        assert!((0..20_000usize).all(|key| filter.may_have(hash(&key.to_be_bytes()))));
        let wrong = taken_for_there(&filter);
        assert!((2_000..8_000).contains(&wrong), "{wrong} of a million");
    }

    #[test]
    fn one_that_is_worn_says_so_while_it_still_denies_most() {
        assert!(!with(25_000, 20_000).is_worn());
        let worn = with(25_001, 20_000);
        assert!(worn.is_worn());
        let wrong = taken_for_there(&worn);
        assert!((10_000..25_000).contains(&wrong), "{wrong} of a million");
    }

    #[test]
    fn an_empty_one_denies_all() {
        assert_eq!(taken_for_there(&with(0, 0)), 0);
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let memory = FilterMemory::new(4096);
        let first = KeyFilter::new(2_000, &memory).unwrap();
        assert_eq!(memory.taken(), 3008);
        assert!(KeyFilter::new(1_000, &memory).is_none());
        assert!(KeyFilter::new(usize::MAX, &memory).is_none());
        assert_eq!(memory.taken(), 3008);
        drop(first);
        assert_eq!(memory.taken(), 0);
        assert!(KeyFilter::new(1_000, &memory).is_some());
    }
}

//! The [filter](KeyFilter) of an index: made little by little by those who look for keys in vain, and made anew when it has worn.
//!
//! An index of which nobody asks has none. The more often a key is looked for that is not there, the sooner there is one: each such look is a descent, and every few of them read a piece of the index in
//! the order of its keys. So making it costs no more than the looks themselves, nobody waits for it, and no thread is needed.
//!
//! Invariants:
//! - it is said that a filter is being made before the first entry is read for it, and who adds an entry looks for that after he has added it: so an entry is read, or its key is added;
//! - only a filter for which all entries were read denies keys;
//! - a page that cannot be read ends it for good, and is nobody's error here: who needs the page says so.

use super::key_filter::{KeyFilter, hash};
use crate::Result;
use crate::pool::FilterMemory;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Looks in vain for one piece.
const LOOKS_PER_PIECE: u32 = 4;
/// A filter is made for so many keys at least: an index that is new will have more.
const KEYS_MIN: usize = 1024;

/// The filter of an index, as far as there is one.
#[derive(Debug, Default)]
pub(crate) struct KeptFilter {
    /// Is there one to which keys are to be added?
    is_there: AtomicBool,
    filters: RwLock<Filters>,
    looks: AtomicU32,
    making: Mutex<Making>,
}

#[derive(Debug, Default)]
struct Filters {
    complete: Option<Arc<KeyFilter>>,
    /// The next one: entries are being read for it.
    next: Option<Arc<KeyFilter>>,
}

/// How far the next one has come.
#[derive(Debug, Default)]
enum Making {
    #[default]
    NotBegun,
    /// Keys before this one were read.
    At(Vec<u8>),
    GivenUp,
}

/// Reads a piece of the index for a filter.
pub(crate) trait Pieces {
    /// About how many keys there are.
    fn keys(&self) -> usize;

    /// Reads some keys, from this one on, in their order. Where it goes on; `None`: there are no more.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    fn read(&self, from: &[u8], key: &mut dyn FnMut(&[u8])) -> Result<Option<Vec<u8>>>;
}

impl KeptFilter {
    /// Does it deny the key? `None`: there is none that could.
    #[inline]
    pub(crate) fn may_have(&self, key: &[u8]) -> Option<bool> {
        if !self.is_there.load(Ordering::Relaxed) {
            return None;
        }
        self.filters.read().complete.as_ref().map(|filter| filter.may_have(hash(key)))
    }

    /// An entry with this key was added.
    #[inline]
    pub(crate) fn added(&self, key: &[u8]) {
        if self.is_there.load(Ordering::SeqCst) {
            let filters = self.filters.read();
            filters.complete.iter().chain(&filters.next).for_each(|filter| filter.add(hash(key)));
        }
    }

    /// Somebody has looked for a key in vain, or a filter has not denied it: every few times a piece of the next filter is made, if one is needed.
    pub(crate) fn looked(&self, memory: &Arc<FilterMemory>, index: &dyn Pieces) {
        if self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS_PER_PIECE != LOOKS_PER_PIECE - 1 {
            return;
        }
        // Who finds another one at it leaves it to him.
        let Some(mut making) = self.making.try_lock() else { return };
        let from = match &mut *making {
            Making::GivenUp => return,
            Making::NotBegun => {
                if !self.begin(memory, index) {
                    return;
                }
                Vec::new()
            }
            Making::At(from) => std::mem::take(from),
        };
        let Some(next) = self.filters.read().next.clone() else { return };
        *making = match index.read(&from, &mut |key| next.add(hash(key))) {
            Ok(Some(from)) => Making::At(from),
            Ok(None) => {
                let mut filters = self.filters.write();
                filters.complete = filters.next.take();
                Making::NotBegun
            }
            Err(_) => {
                self.filters.write().next = None;
                Making::GivenUp
            }
        };
    }

    /// An empty filter, if one is needed and there is room.
    fn begin(&self, memory: &Arc<FilterMemory>, index: &dyn Pieces) -> bool {
        if self.filters.read().complete.as_ref().is_some_and(|filter| !filter.is_worn()) {
            return false;
        }
        // Half as many again as there are: more will come.
        let keys = index.keys();
        let Some(next) = KeyFilter::new((keys + keys / 2).max(KEYS_MIN), memory) else { return false };
        self.filters.write().next = Some(Arc::new(next));
        self.is_there.store(true, Ordering::SeqCst);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    /// Keys of two bytes, read three at a time.
    #[derive(Default)]
    struct Keys {
        there: Mutex<BTreeSet<[u8; 2]>>,
        reads: Cell<usize>,
        fails: Cell<bool>,
    }

    impl Pieces for Keys {
        fn keys(&self) -> usize {
            self.there.lock().len()
        }

        fn read(&self, from: &[u8], key: &mut dyn FnMut(&[u8])) -> Result<Option<Vec<u8>>> {
            self.reads.set(self.reads.get() + 1);
            if self.fails.get() {
                return Err(Error::Interrupted);
            }
            let there = self.there.lock();
            let mut behind = there.iter().filter(|own| own.as_slice() >= from);
            behind.by_ref().take(3).for_each(|own| key(own));
            Ok(behind.next().map(|next| next.to_vec()))
        }
    }

    fn add(filter: &KeptFilter, keys: &Keys, number: u16) {
        keys.there.lock().insert(number.to_be_bytes());
        filter.added(&number.to_be_bytes());
    }

    fn look(filter: &KeptFilter, keys: &Keys, memory: &Arc<FilterMemory>, pieces: usize) {
        (0..pieces * LOOKS_PER_PIECE as usize).for_each(|_| filter.looked(memory, keys));
    }

    #[test]
    fn it_denies_when_all_was_read_and_never_what_came_meanwhile() {
        let (filter, keys, memory) = (KeptFilter::default(), Keys::default(), FilterMemory::new(1 << 16));
        (0..20).for_each(|number| add(&filter, &keys, number * 2));
        assert_eq!(filter.may_have(&[0, 1]), None);
        // Behind what was read already, and before it.
        for (piece, number) in [None, Some(1), Some(999), Some(3), None, Some(30_000)].into_iter().enumerate() {
            number.into_iter().for_each(|number| add(&filter, &keys, number));
            assert_eq!(filter.may_have(&[0, 1]), None, "piece {piece}");
            look(&filter, &keys, &memory, 1);
        }
        look(&filter, &keys, &memory, 3);
        assert!(keys.there.lock().iter().all(|key| filter.may_have(key) == Some(true)));
        assert_eq!(filter.may_have(&[0, 5]), Some(false));
        add(&filter, &keys, 5);
        assert_eq!(filter.may_have(&[0, 5]), Some(true));
        let reads = keys.reads.get();
        look(&filter, &keys, &memory, 5);
        assert_eq!(keys.reads.get(), reads, "what is there is not made again");
    }

    #[test]
    fn one_that_is_worn_serves_until_the_next_is_made() {
        let (filter, keys, memory) = (KeptFilter::default(), Keys::default(), FilterMemory::new(1 << 16));
        look(&filter, &keys, &memory, 1);
        assert_eq!(filter.may_have(&[0, 0]), Some(false));
        let first = memory.taken();
        (0..3_000).for_each(|number| add(&filter, &keys, number));
        for _ in 0..999 {
            look(&filter, &keys, &memory, 1);
            assert!(memory.taken() > first && filter.may_have(&[0, 0]) == Some(true));
        }
        look(&filter, &keys, &memory, 1);
        assert!(keys.there.lock().iter().all(|key| filter.may_have(key) == Some(true)));
        assert_eq!(memory.taken(), (4_500 * 12usize).div_ceil(256) * 32, "the worn one is gone");
    }

    #[test]
    fn an_index_that_cannot_be_read_gets_none() {
        let (filter, keys, memory) = (KeptFilter::default(), Keys::default(), FilterMemory::new(1 << 16));
        add(&filter, &keys, 1);
        keys.fails.set(true);
        look(&filter, &keys, &memory, 4);
        assert_eq!((filter.may_have(&[0, 2]), keys.reads.get(), memory.taken()), (None, 1, 0));
    }

    #[test]
    fn without_room_there_is_none_until_there_is() {
        let (filter, keys, memory) = (KeptFilter::default(), Keys::default(), FilterMemory::new(2_000));
        let other = KeyFilter::new(1_000, &memory).unwrap();
        look(&filter, &keys, &memory, 2);
        assert_eq!((filter.may_have(&[0, 2]), keys.reads.get()), (None, 0));
        drop(other);
        look(&filter, &keys, &memory, 1);
        assert_eq!(filter.may_have(&[0, 2]), Some(false));
    }
}

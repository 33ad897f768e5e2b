//! The page word: where a page is in memory, and its latch, in 64 bits.
//!
//! | Bits | What |
//! |---|---|
//! | 0-31 | unit of its frame in the arena, plus 1; 0 when not resident |
//! | 32-45 | number of shared latches |
//! | 46 | exclusive latch; with no frame: a thread is reading the page |
//! | 47 | somebody waits for a change of this word |
//! | 48 | dirty |
//! | 49-50 | use counter of the replacement clock |
//! | 51 | frame belongs to the data set's second pool (non-leaf pages of a folded index) |
//! | 52 | being written: may be used, not evicted |
//!
//! Invariants: a latch is held only on a resident page, except the exclusive one while it is read; the frame changes only under the exclusive latch; the
//! bytes of a frame are written only under the exclusive latch and read only under a latch.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SHARED_ONE: u64 = 1 << 32;
const SHARED_MASK: u64 = 0x3FFF << 32;
const EXCLUSIVE: u64 = 1 << 46;
const WAITERS: u64 = 1 << 47;
const DIRTY: u64 = 1 << 48;
const USE_ONE: u64 = 1 << 49;
const USE_MASK: u64 = 3 << 49;
const SECOND_POOL: u64 = 1 << 51;
const WRITING: u64 = 1 << 52;
const UNIT_MASK: u64 = 0xFFFF_FFFF;

/// Tries before a thread goes to sleep.
const SPINS: u32 = 200;

/// Outcome of trying to latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latch {
    /// Latched; the frame's unit, and whether it is in the second pool.
    Taken(u32, bool),
    /// The page is not resident and nobody reads it.
    NotResident,
    /// Held in a way that excludes this.
    Busy,
}

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evict {
    /// The clock passes by: takes one use away, or evicts a page without uses.
    Clock,
    /// Only a page without uses; others keep theirs.
    Unused,
    /// Whatever its uses.
    Force,
}

/// What the replacement clock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// The page left memory; its frame is the caller's.
    Evicted,
    /// It would have, were it not dirty.
    Dirty,
    /// In use, or used since the clock came by.
    Kept,
}

/// One page's word.
#[derive(Debug, Default)]
pub(crate) struct PageWord(AtomicU64);

/// A snapshot, for reports and tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordState {
    pub(crate) resident: bool,
    pub(crate) dirty: bool,
}

fn frame_of(word: u64) -> Latch {
    Latch::Taken((word & UNIT_MASK) as u32 - 1, word & SECOND_POOL != 0)
}

impl PageWord {
    /// A snapshot.
    pub(crate) fn state(&self) -> WordState {
        let word = self.0.load(Ordering::Acquire);
        WordState { resident: word & UNIT_MASK != 0, dirty: word & DIRTY != 0 }
    }

    /// Tries for a shared latch. `touch` counts it as a use.
    #[inline]
    pub(crate) fn try_shared(&self, touch: bool) -> Latch {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & EXCLUSIVE != 0 || word & SHARED_MASK == SHARED_MASK {
                return Latch::Busy;
            }
            if word & UNIT_MASK == 0 {
                return Latch::NotResident;
            }
            let mut new = word + SHARED_ONE;
            if touch && word & USE_MASK != USE_MASK {
                new += USE_ONE;
            }
            match self.0.compare_exchange_weak(word, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return frame_of(word),
                Err(now) => word = now,
            }
        }
    }

    /// Tries for the exclusive latch.
    #[inline]
    pub(crate) fn try_exclusive(&self) -> Latch {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & (EXCLUSIVE | SHARED_MASK) != 0 {
                return Latch::Busy;
            }
            if word & UNIT_MASK == 0 {
                return Latch::NotResident;
            }
            let new = (word | EXCLUSIVE) + if word & USE_MASK == USE_MASK { 0 } else { USE_ONE };
            match self.0.compare_exchange_weak(word, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return frame_of(word),
                Err(now) => word = now,
            }
        }
    }

    /// Claims a page that is not resident, to read or create it.
    pub(crate) fn claim(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & (EXCLUSIVE | UNIT_MASK) != 0 {
                return false;
            }
            match self.0.compare_exchange_weak(word, word | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Gives a claimed page its frame; the exclusive latch stays.
    pub(crate) fn set_frame(&self, unit: u32, second_pool: bool, uses: u8) {
        let bits = u64::from(unit + 1) | if second_pool { SECOND_POOL } else { 0 } | (u64::from(uses.min(3)) * USE_ONE);
        self.0.fetch_or(bits, Ordering::Relaxed);
    }

    /// Gives up a claim: the page could not be read.
    pub(crate) fn abandon(&self) {
        let old = self.0.fetch_and(WAITERS, Ordering::Release);
        debug_assert!(old & EXCLUSIVE != 0 && old & UNIT_MASK == 0);
        self.wake(old);
    }

    /// Lets go of a shared latch.
    #[inline]
    pub(crate) fn release_shared(&self) {
        let old = self.0.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert!(old & SHARED_MASK != 0);
        self.wake(old);
    }

    /// Lets go of the exclusive latch.
    #[inline]
    pub(crate) fn release_exclusive(&self) {
        let old = self.0.fetch_and(!EXCLUSIVE, Ordering::Release);
        debug_assert!(old & EXCLUSIVE != 0);
        self.wake(old);
    }

    /// Marks the page dirty; true when it was clean. The caller holds the exclusive latch.
    pub(crate) fn set_dirty(&self) -> bool {
        self.0.fetch_or(DIRTY, Ordering::Relaxed) & DIRTY == 0
    }

    /// Takes a page for writing: clean from now on, but kept until [`Self::end_write`]. False when it is not dirty. The caller holds a shared latch.
    pub(crate) fn begin_write(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & DIRTY == 0 {
                return false;
            }
            debug_assert!(word & WRITING == 0, "two writers of one page");
            match self.0.compare_exchange_weak(word, (word & !DIRTY) | WRITING, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// The write has ended; after a failed one the page is dirty again.
    pub(crate) fn end_write(&self, written: bool) {
        if !written {
            self.0.fetch_or(DIRTY, Ordering::Relaxed);
        }
        self.0.fetch_and(!WRITING, Ordering::Release);
    }

    /// Takes the page in this frame, of the first or second pool, out of memory if nobody has it and it is clean.
    pub(crate) fn try_evict(&self, unit: u32, second: bool, how: Evict) -> Eviction {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let elsewhere = word & UNIT_MASK != u64::from(unit) + 1 || (word & SECOND_POOL != 0) != second;
            if elsewhere || word & (EXCLUSIVE | SHARED_MASK | WRITING) != 0 {
                return Eviction::Kept;
            }
            let used = word & USE_MASK != 0;
            let (new, outcome) = if used && how == Evict::Unused {
                return Eviction::Kept;
            } else if used && how == Evict::Clock {
                (word - USE_ONE, Eviction::Kept)
            } else if word & DIRTY != 0 {
                return Eviction::Dirty;
            } else {
                (word & WAITERS, Eviction::Evicted)
            };
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return outcome,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the page out of memory whatever its state, for a data set that is dropped; returns its frame. The caller knows that nobody uses it.
    pub(crate) fn discard(&self) -> Option<(u32, bool)> {
        let word = self.0.swap(0, Ordering::AcqRel);
        debug_assert!(word & (EXCLUSIVE | SHARED_MASK | WRITING) == 0);
        (word & UNIT_MASK != 0).then(|| ((word & UNIT_MASK) as u32 - 1, word & SECOND_POOL != 0))
    }

    /// Waits until the word has changed in a way that may help.
    #[cold]
    pub(crate) fn wait(&self, tries: u32) {
        if tries < SPINS {
            std::hint::spin_loop();
            return;
        }
        let (mutex, condition) = self.waiting_room();
        let mut guard = mutex.lock();
        let word = self.0.fetch_or(WAITERS, Ordering::Relaxed);
        if word & (EXCLUSIVE | SHARED_MASK) != 0 {
            // The time limit covers a release that saw the word before the bit was set.
            condition.wait_for(&mut guard, Duration::from_millis(1));
        }
    }

    #[inline]
    fn wake(&self, old: u64) {
        if old & WAITERS != 0 {
            self.wake_slowly();
        }
    }

    #[cold]
    fn wake_slowly(&self) {
        let (mutex, condition) = self.waiting_room();
        let _guard = mutex.lock();
        self.0.fetch_and(!WAITERS, Ordering::Relaxed);
        condition.notify_all();
    }

    fn waiting_room(&self) -> &'static (Mutex<()>, Condvar) {
        static ROOMS: [(Mutex<()>, Condvar); 64] = [const { (Mutex::new(()), Condvar::new()) }; 64];
        let address = std::ptr::from_ref(self) as usize / size_of::<PageWord>();
        &ROOMS[address % ROOMS.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_of_a_page() {
        let word = PageWord::default();
        assert_eq!(word.try_shared(true), Latch::NotResident);
        assert!(word.claim() && !word.claim());
        assert_eq!((word.try_shared(true), word.try_exclusive()), (Latch::Busy, Latch::Busy));
        word.set_frame(5, true, 0);
        word.release_exclusive();
        assert_eq!(word.try_shared(true), Latch::Taken(5, true));
        assert_eq!(word.try_exclusive(), Latch::Busy);
        word.release_shared();
        assert_eq!(word.try_exclusive(), Latch::Taken(5, true));
        assert!(word.set_dirty() && !word.set_dirty());
        assert_eq!(word.try_evict(5, true, Evict::Force), Eviction::Kept);
        word.release_exclusive();
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Kept);
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Kept);
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Dirty);
        assert_eq!(word.try_shared(false), Latch::Taken(5, true));
        assert!(word.begin_write());
        word.release_shared();
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Kept);
        word.end_write(true);
        assert_eq!(word.try_evict(4, true, Evict::Clock), Eviction::Kept);
        // Of a pool that has taken the frame over meanwhile.
        assert_eq!(word.try_evict(5, false, Evict::Force), Eviction::Kept);
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Evicted);
        assert_eq!(word.try_shared(true), Latch::NotResident);
        assert!(word.claim());
        word.abandon();
        assert!(word.claim());
    }

    #[test]
    fn exclusion_among_threads() {
        let word = PageWord::default();
        assert!(word.claim());
        word.set_frame(0, false, 0);
        word.release_exclusive();
        let inside = AtomicU64::new(0);
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..rounds {
                        let mut tries = 0;
                        let exclusive = i % 4 == 0;
                        loop {
                            let latch = if exclusive { word.try_exclusive() } else { word.try_shared(true) };
                            if latch != Latch::Busy {
                                break;
                            }
                            word.wait(tries);
                            tries += 1;
                        }
                        if exclusive {
                            assert_eq!(inside.fetch_add(1000, Ordering::SeqCst), 0);
                            inside.fetch_sub(1000, Ordering::SeqCst);
                            word.release_exclusive();
                        } else {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 1000);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            word.release_shared();
                        }
                    }
                });
            }
        });
        assert_eq!(word.try_exclusive(), Latch::Taken(0, false));
    }
}

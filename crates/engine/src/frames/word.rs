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
//! | 53-58 | how many wait for the exclusive latch |
//! | 59-63 | shared latches taken in turn since the last exclusive one, while somebody waited for that |
//!
//! Invariants:
//! - A latch is held only on a resident page, except the exclusive one while it is read; the frame
//!   changes only under the exclusive latch;
//!   the bytes of a frame are written only under the exclusive latch and read only under a latch.
//! - Who waits for the exclusive latch is passed by at most [`PASSES_MAX`] shared ones that are taken
//!   [in turn](Order::InTurn) before some exclusive one. Who holds another latch and is not known to
//!   come after it in the order of latches goes [ahead](Order::Ahead): it may have the very latch that
//!   is waited for.
//! - Bits 53-58 are the number of [`ExclusiveWait`]s that are counted, whatever becomes of the
//!   page.

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
const WAITING_ONE: u64 = 1 << 53;
const WAITING_MASK: u64 = 0x3F << 53;
const PASS_ONE: u64 = 1 << 59;
const PASSES_MASK: u64 = 0x1F << 59;
const UNIT_MASK: u64 = 0xFFFF_FFFF;

/// What stays when the page goes: others still wait.
const STAYS: u64 = WAITERS | WAITING_MASK;

/// So many shared latches, taken in turn, pass one who waits for the exclusive latch. More than
/// none, since each hand-over costs sleeps.
pub(crate) const PASSES_MAX: u64 = 16;
const _: () = assert!(PASSES_MAX <= PASSES_MASK / PASS_ONE);

/// Tries before a thread goes to sleep.
const SPINS: u32 = 200;

/// Tries, each of a sleep of at most a millisecond, after which a shared latch is taken ahead of
/// who waits for the exclusive one: what keeps that one waiting may be a visitor that waits
/// for us.
const PATIENCE: u32 = SPINS + 20;

/// Where a shared latch stands to those who wait for the exclusive one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Passes them only so often.
    InTurn,
    /// Passes them.
    Ahead,
}

impl Order {
    /// For a thread that holds so many latches, and must come after so many of them in the order of
    /// latches (of a tree: the parent).
    #[inline]
    pub(crate) fn of(held: u32, ordered: u32, tries: u32) -> Order {
        if held <= ordered && tries < PATIENCE { Order::InTurn } else { Order::Ahead }
    }
}

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

/// Is it the turn of one who waits for the exclusive latch?
#[inline]
fn is_closed(word: u64) -> bool {
    word & WAITING_MASK != 0 && (word & PASSES_MASK) / PASS_ONE >= PASSES_MAX
}

/// Somebody who waits for the exclusive latch of a page, until this is dropped.
#[derive(Debug)]
pub(crate) struct ExclusiveWait<'w> {
    word: &'w PageWord,
    /// Those beyond what the word can count wait without being counted.
    counted: bool,
}

impl Drop for ExclusiveWait<'_> {
    fn drop(&mut self) {
        if self.counted {
            let old = self.word.0.fetch_sub(WAITING_ONE, Ordering::Relaxed);
            debug_assert!(old & WAITING_MASK != 0);
            // Whom this one kept from the page, if it went without it.
            if old & EXCLUSIVE == 0 {
                self.word.wake(old);
            }
        }
    }
}

fn frame_of(word: u64) -> Latch {
    Latch::Taken((word & UNIT_MASK) as u32 - 1, word & SECOND_POOL != 0)
}

impl PageWord {
    /// A word in a state, to try all orders of what threads do.
    #[cfg(test)]
    pub(crate) fn from_bits(bits: u64) -> PageWord {
        PageWord(AtomicU64::new(bits))
    }

    /// Somebody who waits and is counted already.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> ExclusiveWait<'_> {
        ExclusiveWait { word: self, counted: true }
    }

    #[cfg(test)]
    pub(crate) fn bits(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A snapshot.
    pub(crate) fn state(&self) -> WordState {
        let word = self.0.load(Ordering::Acquire);
        WordState { resident: word & UNIT_MASK != 0, dirty: word & DIRTY != 0 }
    }

    /// Is nothing of it to be written, or being written?
    pub(crate) fn is_clean(&self) -> bool {
        self.0.load(Ordering::Acquire) & (DIRTY | WRITING) == 0
    }

    /// Tries for a shared latch. `touch` counts it as a use.
    #[inline]
    pub(crate) fn try_shared(&self, touch: bool, order: Order) -> Latch {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & EXCLUSIVE != 0 || word & SHARED_MASK == SHARED_MASK {
                return Latch::Busy;
            }
            if word & UNIT_MASK == 0 {
                return Latch::NotResident;
            }
            let mut new = word + SHARED_ONE;
            if word & WAITING_MASK != 0 && order == Order::InTurn {
                if is_closed(word) {
                    return Latch::Busy;
                }
                new += PASS_ONE;
            }
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
            let new = ((word | EXCLUSIVE) & !PASSES_MASK) + if word & USE_MASK == USE_MASK { 0 } else { USE_ONE };
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
        let old = self.0.fetch_and(STAYS, Ordering::Release);
        debug_assert!(old & EXCLUSIVE != 0 && old & UNIT_MASK == 0);
        self.wake(old);
    }

    /// Lets go of a shared latch.
    #[inline]
    pub(crate) fn release_shared(&self) {
        let old = self.0.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert!(old & SHARED_MASK != 0);
        // While others have it nobody can go on whom this one kept from it.
        if old & SHARED_MASK == SHARED_ONE {
            self.wake(old);
        }
    }

    /// Lets go of the exclusive latch.
    #[inline]
    pub(crate) fn release_exclusive(&self) {
        let old = self.0.fetch_and(!EXCLUSIVE, Ordering::Release);
        debug_assert!(old & EXCLUSIVE != 0);
        self.wake(old);
    }

    /// Makes the exclusive latch a shared one: nobody comes in between.
    pub(crate) fn downgrade(&self) {
        let old = self.0.fetch_add(SHARED_ONE.wrapping_sub(EXCLUSIVE), Ordering::Release);
        debug_assert!(old & EXCLUSIVE != 0 && old & SHARED_MASK == 0);
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
                (word & STAYS, Eviction::Evicted)
            };
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return outcome,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the page out of memory whatever its state, for a data set that is dropped; returns its frame. The caller knows that nobody uses it.
    pub(crate) fn discard(&self) -> Option<(u32, bool)> {
        let word = self.0.fetch_and(STAYS, Ordering::AcqRel);
        debug_assert!(word & (EXCLUSIVE | SHARED_MASK | WRITING) == 0);
        (word & UNIT_MASK != 0).then(|| ((word & UNIT_MASK) as u32 - 1, word & SECOND_POOL != 0))
    }

    /// One more who waits for the exclusive latch.
    #[cold]
    pub(crate) fn wait_for_exclusive(&self) -> ExclusiveWait<'_> {
        let count = |word: u64| (word & WAITING_MASK != WAITING_MASK).then(|| word + WAITING_ONE);
        let counted = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok();
        ExclusiveWait { word: self, counted }
    }

    /// Waits until the word has changed in a way that may help who wants a shared latch. True when
    /// that took a sleep.
    #[cold]
    pub(crate) fn wait_shared(&self, order: Order, tries: u32) -> bool {
        self.wait(tries, |word| word & EXCLUSIVE != 0 || order == Order::InTurn && is_closed(word))
    }

    /// The same for who claims the page, or wants it exclusively.
    #[cold]
    pub(crate) fn wait_exclusive(&self, tries: u32) -> bool {
        self.wait(tries, |word| word & (EXCLUSIVE | SHARED_MASK) != 0)
    }

    fn wait(&self, tries: u32, is_in_the_way: impl FnOnce(u64) -> bool) -> bool {
        if tries < SPINS {
            std::hint::spin_loop();
            return false;
        }
        let (mutex, condition) = self.waiting_room();
        let mut guard = mutex.lock();
        let word = self.0.fetch_or(WAITERS, Ordering::Relaxed);
        let sleeps = is_in_the_way(word);
        if sleeps {
            // The time limit covers a release that saw the word before the bit was set.
            condition.wait_for(&mut guard, Duration::from_millis(1));
        }
        sleeps
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
        assert_eq!(word.try_shared(true, Order::InTurn), Latch::NotResident);
        assert!(word.claim() && !word.claim());
        assert_eq!((word.try_shared(true, Order::InTurn), word.try_exclusive()), (Latch::Busy, Latch::Busy));
        word.set_frame(5, true, 0);
        word.release_exclusive();
        assert_eq!(word.try_shared(true, Order::InTurn), Latch::Taken(5, true));
        assert_eq!(word.try_exclusive(), Latch::Busy);
        word.release_shared();
        assert_eq!(word.try_exclusive(), Latch::Taken(5, true));
        assert!(word.set_dirty() && !word.set_dirty());
        assert_eq!(word.try_evict(5, true, Evict::Force), Eviction::Kept);
        word.release_exclusive();
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Kept);
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Kept);
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Dirty);
        assert_eq!(word.try_shared(false, Order::InTurn), Latch::Taken(5, true));
        assert!(word.begin_write());
        word.release_shared();
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Kept);
        word.end_write(true);
        assert_eq!(word.try_evict(4, true, Evict::Clock), Eviction::Kept);
        // Of a pool that has taken the frame over meanwhile.
        assert_eq!(word.try_evict(5, false, Evict::Force), Eviction::Kept);
        assert_eq!(word.try_evict(5, true, Evict::Clock), Eviction::Evicted);
        assert_eq!(word.try_shared(true, Order::InTurn), Latch::NotResident);
        assert!(word.claim());
        word.abandon();
        assert!(word.claim());
        word.set_frame(5, false, 2);
        word.downgrade();
        assert_eq!((word.try_exclusive(), word.try_shared(true, Order::InTurn)), (Latch::Busy, Latch::Taken(5, false)));
        word.release_shared();
        word.release_shared();
        assert_eq!(word.try_exclusive(), Latch::Taken(5, false));
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
                        let mut waits = None;
                        let exclusive = i % 4 == 0;
                        loop {
                            let latch = if exclusive { word.try_exclusive() } else { word.try_shared(true, Order::InTurn) };
                            if latch != Latch::Busy {
                                break;
                            }
                            if exclusive {
                                waits.get_or_insert_with(|| word.wait_for_exclusive());
                                word.wait_exclusive(tries);
                            } else {
                                word.wait_shared(Order::InTurn, tries);
                            }
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

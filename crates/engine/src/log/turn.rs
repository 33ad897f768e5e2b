//! Whose turn it is to write the log: one thread leads, the others wait until they are served or the turn is handed to them.
//!
//! Invariants:
//!
//! - At most one thread leads. The turn passes from hand to hand while anyone waits: nobody who comes later gets in between.
//! - Who ends a turn wakes those it has served and one heir, and nobody else. (Waking all costs each commit a second wake-up: most of those that wait have
//!   come while the group was being written and are served by the next.)
//! - The heir is the one who has waited longest, and is woken first: the device is idle until it runs.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;

const WAITS: u8 = 0;
const SERVED: u8 = 1;
const LEADS: u8 = 2;

/// A thread that waits, for what `T` says.
#[derive(Debug)]
struct Waiter<T> {
    wish: T,
    thread: Thread,
    state: AtomicU8,
}

impl<T> Waiter<T> {
    fn wake(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }
}

#[derive(Debug)]
struct State<T> {
    leading: bool,
    waiting: VecDeque<Arc<Waiter<T>>>,
}

/// The turn to lead, and who waits for it.
#[derive(Debug)]
pub(super) struct Turns<T>(Mutex<State<T>>);

impl<T> Default for Turns<T> {
    fn default() -> Turns<T> {
        Turns(Mutex::new(State { leading: false, waiting: VecDeque::new() }))
    }
}

impl<T> Turns<T> {
    /// True when the caller leads now and must call [`Self::end`]. False when there is nothing left to wait for by `is_done`, which is asked while nobody can end a turn, or when the
    /// caller has been woken as served.
    pub(super) fn take_or_wait(&self, wish: T, is_done: impl FnOnce() -> bool) -> bool {
        let waiter = {
            let mut state = self.0.lock();
            if is_done() {
                return false;
            }
            if !state.leading {
                state.leading = true;
                return true;
            }
            let waiter = Arc::new(Waiter { wish, thread: std::thread::current(), state: AtomicU8::new(WAITS) });
            state.waiting.push_back(Arc::clone(&waiter));
            waiter
        };
        loop {
            match waiter.state.load(Ordering::Acquire) {
                WAITS => std::thread::park(),
                outcome => return outcome == LEADS,
            }
        }
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// Ends the caller's turn: wakes whose wish is served, and hands the turn to the first of the others.
    pub(super) fn end(&self, is_served: impl Fn(&T) -> bool) {
        let mut served = Vec::new();
        let mut state = self.0.lock();
        state.waiting.retain(|waiter| {
            let is_served = is_served(&waiter.wish);
            if is_served {
                served.push(Arc::clone(waiter));
            }
            !is_served
        });
        let heir = state.waiting.pop_front();
        state.leading = heir.is_some();
        drop(state);
        if let Some(heir) = heir {
            heir.wake(LEADS);
        }
        for waiter in served {
            waiter.wake(SERVED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Many threads that each want a number reached; who leads raises it by some. Nobody waits for ever, one leads at a time.
    #[test]
    fn everyone_is_served() {
        const THREADS: u64 = 16;
        const WISHES: u64 = 500;
        let turns = Turns::default();
        let (next, reached, leaders, led) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let client = || {
            for _ in 0..WISHES {
                let wish = next.fetch_add(1, Ordering::SeqCst) + 1;
                while reached.load(Ordering::SeqCst) < wish {
                    if turns.take_or_wait(wish, || reached.load(Ordering::SeqCst) >= wish) {
                        assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "two lead");
                        led.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        reached.store(next.load(Ordering::SeqCst), Ordering::SeqCst);
                        assert_eq!(leaders.fetch_sub(1, Ordering::SeqCst), 1, "two lead");
                        turns.end(|&wish| reached.load(Ordering::SeqCst) >= wish);
                    }
                }
            }
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(client))));
        assert_eq!(reached.load(Ordering::SeqCst), THREADS * WISHES);
        assert_eq!(turns.waiting(), 0);
        let led = led.load(Ordering::SeqCst);
        assert!((1..=THREADS * WISHES).contains(&led));
        assert!(turns.take_or_wait(0, || false), "the turn is free at the end");
    }
}

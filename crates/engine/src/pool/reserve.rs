//! Frames beside the pools, for one thread at a time that would not have its pages together otherwise.
//!
//! A descent lets go of its latches when a page is not in memory, has it read, and starts again. Where memory is small,
//! the page may have left by then, or one above it: for the frame of the other, even, when both are of different
//! pools that share one chunk. So a descent could go round for ever. Therefore one that misses a page for the second time
//! waits for its turn. Whose turn it is gets frames for what it misses from here, and nobody takes them back
//! before its turn ends.
//!
//! Invariants:
//! - one thread at a time has the turn, and waits for it with no page of a tree latched;
//! - a frame given out in a turn stays with its page until the turn ends, unless the page is given back and made anew elsewhere;
//! - frames do not overlap, and no pool's clock or ring comes to one;
//! - a frame of an earlier turn is taken back when nobody has its page latched, and not before that.

use crate::frames::{RESERVE_BYTES, UNIT_BYTES};
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};

const UNITS: u32 = (RESERVE_BYTES / UNIT_BYTES) as u32;

/// A frame that has been given out.
#[derive(Debug)]
struct Held {
    first: u32,
    end: u32,
    /// Number of the turn.
    turn: u64,
}

/// The frames.
#[derive(Debug)]
pub(super) struct Reserve {
    first_unit: u32,
    turn: Mutex<()>,
    /// In the order of their units.
    held: Mutex<Vec<Held>>,
    /// Number of the last turn.
    turns: AtomicU64,
}

/// A thread's turn.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
}

impl Reserve {
    pub(super) fn new(first_unit: u32) -> Reserve {
        Reserve { first_unit, turn: Mutex::default(), held: Mutex::default(), turns: AtomicU64::new(0) }
    }

    /// Waits for a turn.
    pub(super) fn take_turn(&self) -> Turn<'_> {
        let turn = self.turn.lock();
        self.turns.fetch_add(1, Ordering::Relaxed);
        Turn { _turn: turn }
    }

    /// Turns so far.
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Does a frame that starts here belong to the reserve?
    pub(super) fn has(&self, unit: u32) -> bool {
        unit >= self.first_unit
    }

    /// A frame of so many units, for the turn that there is; `None` when there is no room.
    pub(super) fn take(&self, units: u32, _turn: &Turn<'_>) -> Option<u32> {
        let mut held = self.held.lock();
        let (mut at, mut first) = (0, self.first_unit);
        while at < held.len() && held[at].first - first < units {
            first = held[at].end;
            at += 1;
        }
        if first + units > self.first_unit + UNITS {
            return None;
        }
        held.insert(at, Held { first, end: first + units, turn: self.turns() });
        Some(first)
    }

    /// A frame's page has left.
    pub(super) fn give_back(&self, unit: u32) {
        let mut held = self.held.lock();
        let at = held.iter().position(|frame| frame.first == unit);
        debug_assert!(at.is_some(), "a frame is given back twice");
        if let Some(at) = at {
            held.remove(at);
        }
    }

    /// Frames given out in earlier turns.
    pub(super) fn of_earlier_turns(&self, _turn: &Turn<'_>) -> Vec<u32> {
        let now = self.turns();
        self.held.lock().iter().filter(|frame| frame.turn < now).map(|frame| frame.first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_sizes_do_not_overlap() {
        let reserve = Reserve::new(100);
        let turn = reserve.take_turn();
        let mut taken = Vec::new();
        for units in (1..=16).cycle() {
            let Some(unit) = reserve.take(units, &turn) else { break };
            assert!(unit >= 100 && unit + units <= 100 + UNITS && reserve.has(unit));
            assert!(taken.iter().all(|(first, of)| unit + units <= *first || first + of <= unit), "{unit} is taken");
            taken.push((unit, units));
        }
        assert!(taken.iter().map(|(_, units)| units).sum::<u32>() > UNITS - 16);
        assert!(reserve.of_earlier_turns(&turn).is_empty());
        // What is given back goes to who needs as much or less.
        let (unit, units) = taken[3];
        reserve.give_back(unit);
        assert_eq!(reserve.take(units + 16, &turn), None);
        assert_eq!(reserve.take(units, &turn), Some(unit));
        drop(turn);
        let turn = reserve.take_turn();
        assert_eq!((reserve.of_earlier_turns(&turn).len(), reserve.turns()), (taken.len(), 2));
        for (unit, _) in taken {
            reserve.give_back(unit);
        }
        assert!((0..32).all(|i| reserve.take(16, &turn) == Some(100 + 16 * i)));
        assert_eq!(reserve.take(1, &turn), None);
    }
}

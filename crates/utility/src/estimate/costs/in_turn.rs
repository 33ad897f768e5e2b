//! Times of several ways to do the same, taken in turn.
//!
//! A machine has slow moments, and other processes. So the work is done in small pieces, each by all contenders one behind the other; of the times that a piece took in several rounds the least counts. The first to do a piece pays for what all of them read: another one each time. It is processor
//! time of this thread, so what other processes do counts little.

use crate::Result;
use pagefold_io::{Clock, OsClock};
use std::time::Duration;

/// The least time of each piece, by contender.
pub(crate) struct InTurn {
    least: Vec<Vec<Duration>>,
    pieces: usize,
    rounds: usize,
}

impl InTurn {
    pub(crate) fn new(contenders: usize, pieces: usize) -> InTurn {
        InTurn { least: vec![vec![Duration::MAX; pieces]; contenders], pieces, rounds: 0 }
    }

    /// A round: `work` does a piece for a contender.
    pub(crate) fn round(&mut self, mut work: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        for piece in 0..self.pieces {
            for turn in 0..self.least.len() {
                let contender = (turn + piece + self.rounds) % self.least.len();
                let least = &mut self.least[contender];
                let start = OsClock.thread_cpu();
                work(contender, piece)?;
                let took = OsClock.thread_cpu().saturating_sub(start).max(Duration::from_nanos(1));
                least[piece] = least[piece].min(took);
            }
        }
        self.rounds += 1;
        Ok(())
    }

    /// Nanoseconds that each of `count` operations took, by contender.
    pub(crate) fn each_ns(&self, count: usize) -> impl Iterator<Item = f64> {
        self.least.iter().map(move |pieces| pieces.iter().sum::<Duration>().as_nanos() as f64 / count.max(1) as f64)
    }
}

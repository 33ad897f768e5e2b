//! Times of several ways to do the same, taken in turn.
//!
//! A machine has slow moments, and other processes. So the work is done in small pieces, each by all contenders one behind the other; of the times that a piece took in several rounds the least counts. The first to do a piece pays for what all of them read: another one each time. It is processor
//! time of this thread, so what other processes do counts little.

use crate::{Error, Progress, Result};
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

    /// A round: `work` does a piece for a contender. Between pieces it is asked whether to stop.
    pub(crate) fn round(&mut self, progress: &dyn Progress, mut work: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        for piece in 0..self.pieces {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
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

    /// Nanoseconds that each of `count` operations took, by contender; 0 where nothing was done, as where a table has no column to update.
    pub(crate) fn each_ns(&self, count: usize) -> impl Iterator<Item = f64> {
        let has_run = self.rounds > 0;
        self.least.iter().map(move |pieces| match has_run {
            true => pieces.iter().sum::<Duration>().as_nanos() as f64 / count.max(1) as f64,
            false => 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_done_takes_no_time() {
        let mut turns = InTurn::new(2, 3);
        assert_eq!(turns.each_ns(10).collect::<Vec<_>>(), [0.0, 0.0]);
        turns.round(&crate::Silent, |_, _| Ok(())).unwrap();
        assert!(turns.each_ns(10).all(|each| each > 0.0 && each < 1e9));
    }
}

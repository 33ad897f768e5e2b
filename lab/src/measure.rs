//! Comparing the speed of several ways to do the same thing.
//!
//! Times on a shared machine drift, so only ratios within one run mean much. All contenders run in turn within each round, in an order that
//! rotates from round to round; a ratio is the median of the ratios within the rounds. What runs on one thread and does no I/O is better measured
//! by [`Clock::Thread`]: time in which other processes had the processor does not count.
//!
//! ```
//! use pagefold_lab::measure::{Clock, Contender, interleave};
//!
//! let text = "a,b,c,".repeat(1000);
//! let results = interleave(
//!     Clock::Thread,
//!     7,
//!     vec![
//!         Contender::new("chars", || text.chars().filter(|&c| c == ',').count() as u64),
//!         Contender::new("bytes", || text.bytes().filter(|&b| b == b',').count() as u64),
//!     ],
//! );
//! let [chars, bytes] = results.as_slice() else { unreachable!() };
//! println!("{:.1} times as fast", bytes.speed_over(chars).median);
//! ```

use std::hint::black_box;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// What time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Time that passes.
    Wall,
    /// Processor time of the thread that runs the contenders.
    Thread,
    /// Processor time of all threads of this process.
    Process,
}

impl Clock {
    /// Seconds since some point.
    #[must_use]
    pub fn now_s(self) -> f64 {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(match self {
            Self::Wall => ClockId::Monotonic,
            Self::Thread => ClockId::ThreadCPUTime,
            Self::Process => ClockId::ProcessCPUTime,
        });
        tv_sec as f64 + tv_nsec as f64 / 1e9
    }
}

/// One way to do it.
pub struct Contender<'a> {
    name: String,
    run: Box<dyn FnMut() -> u64 + 'a>,
}

impl<'a> Contender<'a> {
    /// `run` does the whole work once and returns a number that depends on all of it, such as the bytes produced.
    pub fn new(name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// The times of one contender.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Name of the contender.
    pub name: String,
    /// Seconds of each round, in order.
    pub seconds: Vec<f64>,
}

/// The middle of some measured numbers and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Least.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Greatest.
    pub high: f64,
}

impl Spread {
    /// Of these numbers.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Self { low, median, high }
    }
}

impl Timing {
    /// Seconds of a round.
    #[must_use]
    pub fn spread(&self) -> Spread {
        Spread::of(self.seconds.iter().copied())
    }

    /// How many times as fast as `other` this one is.
    #[must_use]
    pub fn speed_over(&self, other: &Self) -> Spread {
        Spread::of(self.seconds.iter().zip(&other.seconds).map(|(own, others)| others / own))
    }
}

/// Runs each contender `rounds` times, and once before to warm up. Results are in the order of the contenders.
///
/// # Panics
/// When `rounds` is zero, or two contenders return different numbers: then they did not do the same.
#[must_use]
pub fn interleave(clock: Clock, rounds: usize, mut contenders: Vec<Contender<'_>>) -> Vec<Timing> {
    assert!(rounds > 0);
    let expected: Vec<u64> = contenders.iter_mut().map(|contender| black_box((contender.run)())).collect();
    for (contender, result) in contenders.iter().zip(&expected) {
        assert_eq!(*result, expected[0], "{} and {} differ", contender.name, contenders[0].name);
    }
    let mut timings: Vec<Timing> =
        contenders.iter().map(|contender| Timing { name: contender.name.clone(), seconds: Vec::with_capacity(rounds) }).collect();
    let count = contenders.len();
    for round in 0..rounds {
        for turn in 0..count {
            let index = (round + turn) % count;
            let start_s = clock.now_s();
            let result = black_box((contenders[index].run)());
            timings[index].seconds.push(clock.now_s() - start_s);
            assert_eq!(result, expected[0], "{} changed its result", timings[index].name);
        }
    }
    timings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_ratio() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { low: 1.0, median: 2.0, high: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0]).median, 2.5);
        let timing = |seconds: &[f64]| Timing { name: String::new(), seconds: seconds.to_vec() };
        assert_eq!(timing(&[1.0, 2.0]).speed_over(&timing(&[4.0, 2.0])), Spread { low: 1.0, median: 2.5, high: 4.0 });
    }

    #[test]
    fn every_contender_runs_in_every_round() {
        let (mut first, mut second) = (0, 0);
        let results = interleave(
            Clock::Wall,
            5,
            vec![
                Contender::new("first", || {
                    first += 1;
                    9
                }),
                Contender::new("second", || {
                    second += 1;
                    9
                }),
            ],
        );
        assert!(results.iter().all(|timing| timing.seconds.len() == 5));
        assert_eq!((first, second), (6, 6));
    }

    #[test]
    #[should_panic(expected = "differ")]
    fn different_results_are_found() {
        let _ = interleave(Clock::Wall, 1, vec![Contender::new("a", || 1), Contender::new("b", || 2)]);
    }
}

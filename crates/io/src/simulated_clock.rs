//! A clock that stands still until it is told to go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;

/// All its times advance together, by [`advance`](Self::advance) and by [`sleep`](Clock::sleep), which returns at once. Clones share the
/// time. Good for 584 years.
#[derive(Debug, Clone, Default)]
pub struct SimulatedClock {
    elapsed_ns: Arc<AtomicU64>,
    unix_start: Duration,
}

impl SimulatedClock {
    /// A clock whose Unix time starts at `unix_start`; its other times start at zero.
    #[must_use]
    pub fn new(unix_start: Duration) -> Self {
        Self { elapsed_ns: Arc::default(), unix_start }
    }

    /// Moves the time on. It stops at the end of its range.
    pub fn advance(&self, duration: Duration) {
        let step = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let later = |elapsed: u64| Some(elapsed.saturating_add(step));
        let _always_some = self.elapsed_ns.try_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns.load(Ordering::SeqCst))
    }
}

impl Clock for SimulatedClock {
    fn monotonic(&self) -> Duration {
        self.elapsed()
    }

    fn unix_time(&self) -> Duration {
        self.unix_start.saturating_add(self.elapsed())
    }

    fn thread_cpu(&self) -> Duration {
        self.elapsed()
    }

    fn process_cpu(&self) -> Duration {
        self.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_only_when_told() {
        let clock = SimulatedClock::new(Duration::from_secs(1000));
        let shared = clock.clone();
        assert_eq!((clock.monotonic(), clock.unix_time()), (Duration::ZERO, Duration::from_secs(1000)));
        clock.advance(Duration::from_millis(3));
        shared.sleep(Duration::from_millis(4));
        assert_eq!((clock.monotonic(), clock.thread_cpu()), (Duration::from_millis(7), Duration::from_millis(7)));
        assert_eq!(clock.unix_time(), Duration::from_millis(1_000_007));
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.monotonic(), Duration::from_nanos(u64::MAX));
    }
}

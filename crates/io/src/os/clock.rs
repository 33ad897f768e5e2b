//! The operating system's clocks.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::Clock;

/// The clocks of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsClock;

fn now(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    // Times before 1970 are a machine without a set clock: zero.
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Clock for OsClock {
    fn monotonic(&self) -> Duration {
        now(ClockId::Monotonic)
    }

    fn unix_time(&self) -> Duration {
        now(ClockId::Realtime)
    }

    fn thread_cpu(&self) -> Duration {
        now(ClockId::ThreadCPUTime)
    }

    fn process_cpu(&self) -> Duration {
        now(ClockId::ProcessCPUTime)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_never_go_back() {
        let clock = OsClock;
        let reading = |clock: &OsClock| [clock.monotonic(), clock.thread_cpu(), clock.process_cpu()];
        let mut last = reading(&clock);
        for _ in 0..1000 {
            let next = reading(&clock);
            assert!(last.iter().zip(&next).all(|(before, after)| before <= after));
            last = next;
        }
        assert!(clock.unix_time() > Duration::from_secs(1_600_000_000));
    }

    #[test]
    fn thread_cpu_is_the_calling_threads_own() {
        let clock = OsClock;
        let mut sum = 0u64;
        while clock.thread_cpu() < Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        let fresh = std::thread::spawn(move || clock.thread_cpu()).join().unwrap();
        assert!(fresh < clock.thread_cpu());
        assert!(clock.process_cpu() >= clock.thread_cpu());
    }
}

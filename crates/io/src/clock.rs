//! The clock seam.

use std::fmt::Debug;
use std::time::Duration;

/// Time, as far as anything in the project may know it.
///
/// The origin of [`monotonic`](Clock::monotonic), [`thread_cpu`](Clock::thread_cpu) and [`process_cpu`](Clock::process_cpu) is arbitrary:
/// only differences mean something.
pub trait Clock: Send + Sync + Debug {
    /// Elapsed time that never goes back.
    fn monotonic(&self) -> Duration;

    /// Time since 1970-01-01T00:00:00Z.
    fn unix_time(&self) -> Duration;

    /// CPU time that the calling thread has used.
    fn thread_cpu(&self) -> Duration;

    /// CPU time that all threads of the process have used together.
    fn process_cpu(&self) -> Duration;

    /// Returns when at least `duration` has passed on the monotonic clock.
    fn sleep(&self, duration: Duration);
}

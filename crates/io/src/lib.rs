//! The I/O and clock seam: operating system, memory, fault injection.
//!
//! Nothing else in the project touches files or time. A component that stores something takes an `Arc<dyn Storage>`, one that measures
//! or waits takes an `Arc<dyn Clock>`; tests hand in the simulated ones.

mod buffer;
mod clock;
mod error;
mod storage;

pub use buffer::AlignedBuffer;
pub use clock::Clock;
pub use error::{error_at, error_on, raw_os_error};
pub use storage::{File, Lock, OpenOptions, Storage, read_exact_at};

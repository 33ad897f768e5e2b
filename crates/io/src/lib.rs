//! The I/O and clock seam: operating system, memory, fault injection.
//!
//! Nothing else in the project touches files or time. A component that stores something takes an `Arc<dyn Storage>`, one that measures
//! or waits takes an `Arc<dyn Clock>`; tests hand in the simulated ones.

mod buffer;
mod clock;
mod counting;
mod error;
mod fault;
mod held;
mod memory;
mod named;
mod new_file;
mod os;
mod overlay;
mod random;
mod range;
mod simulated_clock;
mod slow_sync;
mod sparse;
mod storage;
mod stream;
mod tree;

pub use buffer::AlignedBuffer;
pub use clock::Clock;
pub use counting::{CountingStorage, IoCounts};
pub use error::{error_at, error_on, raw_os_error};
pub use fault::{Call, CallKind, CrashPolicy, Failure, Fault, FaultOptions, FaultStorage, Repeat, Trigger, is_simulated_crash};
pub use memory::MemoryStorage;
pub use new_file::NewFile;
pub use os::{OsClock, OsStorage, allow_open_files, let_others_go_first};
pub use overlay::Overlay;
pub use simulated_clock::SimulatedClock;
pub use slow_sync::SlowSync;
pub use storage::{File, Lock, LockKind, OpenOptions, Storage, read_exact_at};
pub use stream::{FileReader, FileWriter, directory_of, parent_directory, read_file};

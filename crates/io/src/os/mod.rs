//! The operating system's files and clock.

mod clock;
mod direct;
mod file;
mod lock;
mod storage;

pub use clock::OsClock;
pub use storage::OsStorage;

//! The operating system's files and clock.

mod clock;
mod direct;
mod file;
mod limits;
mod lock;
mod storage;

pub use clock::OsClock;
pub use limits::{allow_open_files, let_others_go_first};
pub use storage::OsStorage;

//! LOAD, EXPORT, CREATE INDEX, REORG, DROP, CHECK, PRINT, REPORT: what commands do, without a command line.

mod error;
mod options;
mod progress;

pub use error::{Error, Result};
pub use options::{IndexOptions, LoadMode, LoadOptions, ReorgOptions};
pub use progress::{Progress, Silent, Unit};

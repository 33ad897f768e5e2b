//! A database directory: opening, and changing atomically what is in it.

mod change;
mod control_file;
mod open;

#[cfg(test)]
mod tests;

pub use change::Change;
pub use control_file::{ControlFile, control_path, read_control};
pub use open::{Database, OpenMode, Settings};

//! On-disk formats: bytes and checked views of them.
//!
//! `docs/file-format.md` has the layout tables. Nothing here does I/O; `check` and `print` use these views on damaged files.

pub mod catalog;
pub mod chain;
pub mod control;
pub mod copy;
pub mod data;
pub mod data_set_header;
mod error;
pub mod index;
pub mod key_trace;
pub mod live_view;
pub mod log;
pub mod metrics_text;
pub mod op;
pub mod page;
pub mod space_map;
pub mod wire;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_random;

pub use error::FormatError;

//! On-disk formats: bytes and checked views of them.
//!
//! `docs/file-format.md` has the layout tables. Nothing here does I/O; `check` and `print` use these views on damaged files.

mod error;
pub mod page;

pub use error::FormatError;

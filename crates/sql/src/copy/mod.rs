//! COPY: rows of a table or query as text or columns of a file, and these as rows of a table.
//!
//! * `statement`: what the statement says
//! * `options`: its options, and which of them go together
//! * `record`: bytes to the texts of one row after the other
//! * `write`: rows to bytes
//! * `columnar`: files of columns that have types
//! * `file`: files that are read and written
//!
//! Invariants:
//! - what is written is read back as the same rows with the same options, unless NULL is written as a value may be;
//! - no more than one record of text is kept of what is read or written, and that has at most [`RECORD_BYTES_MAX`] bytes.

pub(crate) mod columnar;
pub(crate) mod file;
pub(crate) mod options;
pub(crate) mod record;
pub(crate) mod statement;
pub(crate) mod write;

use crate::SqlError;

/// The longest record, written or read: as long as a statement may be, so what COPY takes INSERT takes, too.
pub(crate) const RECORD_BYTES_MAX: usize = crate::parse::TEXT_BYTES_MAX;

/// 22P04: the input is not as the format has it.
fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new("22P04", message)
}

/// 54000: a record that is too long.
fn too_long() -> SqlError {
    SqlError::new("54000", format!("a row of more than {RECORD_BYTES_MAX} bytes; longer ones are neither read nor written"))
}

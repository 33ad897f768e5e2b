//! What goes wrong between files and rows. Each error names the file and, where there is one, line and column.

use arrow_schema::ArrowError;
use pagefold_types::{RecordError, SchemaError, ValueError};
use std::io;
use std::path::{Path, PathBuf};

/// Why rows could not be read, turned or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterchangeError {
    /// The operating system's refusal; it names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A line of a text file is not what it should be.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1, on which the row starts.
        line: u64,
        /// What is wrong, with column and value.
        reason: String,
    },
    /// A column's type has no counterpart.
    #[error("column \"{column}\" is of the Arrow type {arrow}, which cannot be stored: {reason}")]
    Unsupported {
        /// The column.
        column: String,
        /// Its Arrow type.
        arrow: String,
        /// Why.
        reason: &'static str,
    },
    /// The columns are not a possible schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The columns of a source are not those of the table.
    #[error("{0}")]
    Mismatch(String),
    /// A value does not fit the table. Rows are counted from 0 in the batch.
    #[error("row {}: {error}", row + 1)]
    Value {
        /// The row in the batch, from 0.
        row: usize,
        /// What is wrong.
        error: ValueError,
    },
    /// A record is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A large value could not be fetched.
    #[error("a large value cannot be read: {0}")]
    LargeValue(String),
    /// A value of a column could not be turned into its Arrow type, or back.
    #[error("column \"{column}\": {reason}")]
    Column {
        /// The column.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// Text in a format without quotes, or the like.
    #[error("row {row}, column \"{column}\" cannot be written: {reason}")]
    Write {
        /// The row of the output, from 1.
        row: u64,
        /// The column.
        column: String,
        /// Why.
        reason: &'static str,
    },
    /// Anything else of the Arrow libraries.
    #[error("{0}")]
    Arrow(ArrowError),
}

/// What the system says of a file or pipe stays that.
impl From<ArrowError> for InterchangeError {
    fn from(error: ArrowError) -> InterchangeError {
        match error {
            ArrowError::IoError(_, io) => InterchangeError::Io(io),
            other => InterchangeError::Arrow(other),
        }
    }
}

impl InterchangeError {
    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> InterchangeError {
        InterchangeError::File { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn line(path: &Path, line: u64, reason: impl Into<String>) -> InterchangeError {
        InterchangeError::Line { path: path.to_owned(), line, reason: reason.into() }
    }
}

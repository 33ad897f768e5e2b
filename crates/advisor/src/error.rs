//! What an estimate cannot be made of.

use pagefold_format::FormatError;
use pagefold_types::{RecordError, ValueError};

/// Result of an estimate.
pub type Result<T> = std::result::Result<T, AdvisorError>;

/// Why an estimate cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdvisorError {
    /// A record is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A row that no page takes, whatever is moved out of it.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Keys out of order, or one that no leaf takes.
    #[error(transparent)]
    Format(#[from] FormatError),
}

//! What can go wrong in a utility.

use pagefold_interchange::InterchangeError;

/// Result of a utility.
pub type Result<T> = std::result::Result<T, Error>;

/// A utility's error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From the engine.
    #[error(transparent)]
    Engine(#[from] pagefold_engine::Error),
    /// From reading or writing a file.
    #[error(transparent)]
    Interchange(#[from] InterchangeError),
    /// The user asked for something that cannot be: wrong use.
    #[error("{0}")]
    Usage(String),
    /// What was to be done cannot be done with this data.
    #[error("{0}")]
    Data(String),
    /// The user stopped it; nothing has changed.
    #[error("interrupted; the database is as it was")]
    Interrupted,
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Engine(error.into())
    }
}

//! What can go wrong in a utility.

use pagefold_engine::index::Index;
use pagefold_interchange::{InterchangeError, Source};
use std::sync::Arc;

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
    /// Two rows have the same key of a unique index that is built.
    #[error("{reason}")]
    KeyTwice {
        /// The index.
        index: Arc<Index>,
        /// The key as bytes.
        key: Vec<u8>,
        /// The values of the key.
        reason: String,
    },
    /// A row of a source does not fit.
    #[error("row {}: {reason}", row + 1)]
    Row {
        /// Which, from 0 in the order of the source.
        row: u64,
        /// Why.
        reason: String,
    },
    /// The user stopped it; nothing has changed.
    #[error("interrupted; the database is as it was")]
    Interrupted,
}

impl Error {
    /// Says it that something on disk is missing, or not what it should be?
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_damage())
    }

    /// Says it that the system does not give a file that is there?
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_refusal())
    }

    /// The same for a row of a source, when it is about a row: what went wrong elsewhere stays as it is.
    pub(crate) fn at_row(self, row: u64) -> Error {
        use pagefold_engine::Error as Engine;
        match self {
            Error::Engine(error @ (Engine::DuplicateKey { .. } | Engine::OutOfRange { .. } | Engine::Value(_))) => {
                Error::Row { row, reason: error.to_string() }
            }
            Error::Interchange(InterchangeError::Value { error, .. }) => Error::Row { row, reason: error.to_string() },
            other => other,
        }
    }

    /// Names file and line of the row that it is about.
    pub(crate) fn placed(self, source: &mut dyn Source) -> Error {
        match self {
            Error::Row { row, reason } => match source.place(row) {
                Some(place) => Error::Data(format!("{place}: {reason}")),
                None => Error::Row { row, reason },
            },
            other => other,
        }
    }
}

/// No thread could be started.
pub(crate) fn no_thread(error: &std::io::Error) -> Error {
    Error::Data(format!("a thread cannot be started: {error}"))
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Engine(error.into())
    }
}

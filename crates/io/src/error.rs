//! Errors that name the operation, the path and, where there is one, the offset.
//!
//! The kind of the cause is kept, and the cause itself is reachable through [`std::error::Error::source`].

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What an [`io::Error`] of this crate carries.
#[derive(Debug)]
struct Located {
    operation: &'static str,
    path: PathBuf,
    offset: Option<u64>,
    cause: io::Error,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl Error for Located {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// `cause` with the operation (a verb: "open", "remove") and the path before its message.
#[must_use]
pub fn error_on(operation: &'static str, path: &Path, cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), Located { operation, path: path.to_owned(), offset: None, cause })
}

/// `cause` with the operation (a verb: "read", "write"), the path and the offset before its message.
#[must_use]
pub fn error_at(operation: &'static str, path: &Path, offset: u64, cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), Located { operation, path: path.to_owned(), offset: Some(offset), cause })
}

/// The error at the bottom, below all that was said about it.
pub(crate) fn root_cause(mut error: &io::Error) -> &io::Error {
    while let Some(located) = error.get_ref().and_then(|inner| inner.downcast_ref::<Located>()) {
        error = &located.cause;
    }
    error
}

/// The code of the operating system, also of an error that [`error_on`] or [`error_at`] has wrapped.
#[must_use]
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    root_cause(error).raw_os_error()
}

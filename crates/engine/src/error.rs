//! What can go wrong in the engine. Every error names the object, and the page where there is one.

use pagefold_format::FormatError;
use std::io;
use std::sync::Arc;

/// Result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// An engine error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused; the message names the path.
    #[error("{0}")]
    Io(Arc<io::Error>),
    /// A page is not what it should be.
    #[error("{object}, page {page}: {reason}")]
    Corrupt {
        /// Table, index or file.
        object: String,
        /// Page number in its data set.
        page: u32,
        /// What is wrong.
        reason: String,
    },
    /// The control file or the catalog is not what it should be.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A directory that holds no database.
    #[error("{0} is not a pagefold database")]
    NotADatabase(String),
    /// A database of a format this program does not know.
    #[error("{path} has format version {found}, this program knows {known}")]
    NewerFormat {
        /// The file.
        path: String,
        /// Its version.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// Another process writes this database, or reads it where a reader has no room for a file of its own. The directory; then ": " and who it is, if that is known.
    #[error("{0} is being written by another process{1}")]
    Locked(String, String),
    /// Something else is going on that excludes this.
    #[error("not now: {0}")]
    Busy(String),
    /// A lock was not had: a deadlock, or a wait that took too long. The transaction is to be rolled back and tried again.
    #[error("{0}")]
    Lock(#[from] crate::transaction::LockError),
    /// Another transaction has changed the row since this one's snapshot was taken. The transaction is to be rolled back and tried again.
    #[error("{object}: row {rid} was changed by a transaction that committed after this one began")]
    Conflict {
        /// The table.
        object: String,
        /// The row.
        rid: pagefold_types::Rid,
    },
    /// Transactions that run at the same time depend on each other in a circle. The transaction is to be rolled back and tried again.
    #[error("{0}")]
    Serialization(#[from] crate::transaction::SerializationFailure),
    /// A database is to be made where there are files already, but no control file: perhaps those of a database that has lost it.
    #[error(
        "{path} is not a pagefold database, and not empty: it holds \"{first}\"{}, but no control file. Nothing was touched. If it was a \
         database, put its control file back or recover it from a copy; else choose another directory",
        if *others > 0 { format!(" and {others} more") } else { String::new() }
    )]
    NoControlFile {
        /// The directory.
        path: String,
        /// A file or directory in it.
        first: String,
        /// How many others there are.
        others: usize,
    },
    /// Somebody has cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// The database is closed.
    #[error("{0} is closed")]
    Closed(String),
    /// The memory for old row versions is full: a transaction that reads has been open for too long.
    #[error("{0}")]
    VersionsFull(String),
    /// A write was asked of a database opened for reading.
    #[error("{0} is open for reading only")]
    ReadOnly(String),
    /// No such table or index.
    #[error("no {kind} \"{name}\"{hint}")]
    Unknown {
        /// "table" or "index".
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// What there is instead, ready to append.
        hint: String,
    },
    /// A table or index that does not count for the snapshot of the transaction: it was dropped or replaced, or made later.
    #[error("{object} {why}")]
    Stale {
        /// The table or index.
        object: String,
        /// Why it does not count, and what helps.
        why: &'static str,
    },
    /// The name is taken.
    #[error("{kind} \"{name}\" already exists")]
    Exists {
        /// "table" or "index".
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A unique index has this key already.
    #[error("index \"{index}\": duplicate key {key}")]
    DuplicateKey {
        /// The index.
        index: String,
        /// The key's values.
        key: String,
    },
    /// An index that is damaged, or has not been kept since it was found so, where it is needed.
    #[error("index \"{index}\" is damaged ({reason}); \"pagefold rebuild-index\" builds it anew")]
    DamagedIndex {
        /// The index.
        index: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A row belongs in no partition of the table, or in another one.
    #[error("{object}: the key {key} {why}")]
    OutOfRange {
        /// The table.
        object: String,
        /// The values of the columns by which it is divided.
        key: String,
        /// What is wrong with them.
        why: &'static str,
    },
    /// A value cannot be stored.
    #[error("{0}")]
    Value(String),
    /// A parameter out of range.
    #[error("{0}")]
    Parameter(String),
    /// All frames of a pool are in use at once.
    #[error("buffer pool \"{0}\" has no frame left: raise the memory limit")]
    PoolFull(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A write failed earlier, or a thread that works in the background panicked; nothing more is written until the database is opened again.
    #[error("something failed earlier ({0}); open the database again")]
    Poisoned(String),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(Arc::new(error))
    }
}

impl From<crate::transaction::VersionError> for Error {
    fn from(error: crate::transaction::VersionError) -> Error {
        use crate::transaction::VersionError;
        match error {
            VersionError::Full(full) => Error::VersionsFull(full.to_string()),
            VersionError::File(error) => error.into(),
        }
    }
}

impl Error {
    /// Is there no room left on the device?
    #[must_use]
    pub fn is_no_room(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Error::Io(error) if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }

    /// Is it one of the operating system's, of one of these kinds?
    pub(crate) fn is_kind(&self, kinds: &[io::ErrorKind]) -> bool {
        matches!(self, Error::Io(error) if kinds.contains(&error.kind()))
    }

    /// Says it that something on disk is missing, or not what it should be? Not when the system has refused something, which it may not do the next time.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Io(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof),
            Error::Corrupt { .. } | Error::Damaged { .. } | Error::DamagedIndex { .. } => true,
            _ => false,
        }
    }

    /// Says it that the system does not give a file that is there: to this process, or because it is something else than a file?
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.is_kind(&[io::ErrorKind::PermissionDenied, io::ErrorKind::IsADirectory, io::ErrorKind::NotADirectory])
    }

    /// Have others been in the way, so that the same transaction may succeed when it is begun again?
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Lock(_) | Error::Conflict { .. } | Error::Serialization(_))
    }

    /// The SQLSTATE code of its class, as PostgreSQL has them.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        use crate::transaction::LockError;
        match self {
            Error::Io(_) if self.is_no_room() => "53100",
            Error::Io(_) => "58030",
            Error::Corrupt { .. } | Error::Damaged { .. } => "XX001",
            Error::DamagedIndex { .. } => "XX002",
            Error::NotADatabase(_) | Error::NoControlFile { .. } => "3D000",
            Error::NewerFormat { .. } => "0A000",
            Error::Locked(..) | Error::Busy(_) => "55006",
            Error::Lock(LockError::Deadlock { .. }) => "40P01",
            Error::Lock(_) => "55P03",
            Error::Conflict { .. } | Error::Serialization(_) => "40001",
            Error::Cancelled | Error::Interrupted => "57014",
            Error::Closed(_) | Error::Poisoned(_) => "57P01",
            Error::VersionsFull(_) => "53400",
            Error::PoolFull(_) => "53200",
            Error::ReadOnly(_) => "25006",
            Error::Unknown { kind: "table", .. } => "42P01",
            Error::Unknown { .. } => "42704",
            Error::Stale { .. } => "55000",
            Error::Exists { kind: "table", .. } => "42P07",
            Error::Exists { .. } => "42710",
            Error::DuplicateKey { .. } => "23505",
            Error::OutOfRange { .. } => "23514",
            Error::Value(_) => "22000",
            Error::Parameter(_) => "22023",
        }
    }

    /// A page of `object` is damaged.
    pub fn corrupt(object: impl Into<String>, page: u32, reason: impl ToString) -> Error {
        Error::Corrupt { object: object.into(), page, reason: reason.to_string() }
    }

    /// From a format error found on a page.
    pub fn format(object: &str, page: u32, error: &FormatError) -> Error {
        Error::corrupt(object, page, error)
    }
}

//! pagefold: an embedded row store whose tables and indexes are compressed at every level, and which says what compression will save and cost before
//! you commit to it.
//!
//! A database is a directory. One process writes it; others may read. Whoever changes which tables and indexes there are prepares a [`Change`] and commits that: it happens as a whole or
//! not at all. Whoever changes rows does so in a [`Transaction`]: committed, it survives a crash; otherwise nothing of it is ever seen.
//!
//! * [`Database`], [`Change`]: tables and indexes by name
//! * [`Transaction`]: rows and their index entries, with an [`Isolation`] from READ COMMITTED to SERIALIZABLE
//! * [`table`]: rows by RID, compressed by a [`table::Method`]
//! * [`index`]: B+trees ordered by (key, RID), plain or folded
//! * [`types`]: SQL types, values, the packed record, keys, conditions
//! * [`interchange`]: Parquet, CSV and Arrow record batches in and out
//! * [`utility`]: load, export, create index, reorg, drop, check, print, report
//! * [`backup`]: copies of a database in use, recovery to a point in time
//! * [`advisor`]: what each method and page size would give, before anything is changed
//! * [`io`]: storage and clock; nothing else touches files or time
//!
//! ```
//! use pagefold::index::IndexAttributes;
//! use pagefold::io::{MemoryStorage, OsClock};
//! use pagefold::table::TableAttributes;
//! use pagefold::types::{Column, DataType, Direction, Schema, Value, ValueRef};
//! use pagefold::{Database, OpenMode, Settings, TransactionOptions};
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In memory here; `pagefold::open("directory", ...)` for one on disk.
//! let storage = Arc::new(MemoryStorage::new());
//! let database = Database::open(storage, Arc::new(OsClock), Path::new("ships"), OpenMode::Create, Settings::default())?;
//!
//! let schema = Schema::new(vec![
//!     Column::new("name", DataType::Varchar(None), false),
//!     Column::new("built", DataType::Integer, true),
//! ])?;
//! let mut change = database.change();
//! let ships = change.create_table(TableAttributes::new("ship", schema))?;
//! let by_name = change.create_index(&ships, IndexAttributes::new("ship_pk", vec![(0, Direction::Ascending)], true))?;
//! change.commit()?;
//!
//! let mut transaction = database.begin(TransactionOptions::default());
//! let fram = transaction.insert(&ships, &[ValueRef::Text("Fram"), ValueRef::Int(1892)])?;
//! transaction.insert(&ships, &[ValueRef::Text("Vega"), ValueRef::Null])?;
//! transaction.commit()?;
//!
//! let mut transaction = database.begin(TransactionOptions::default());
//! transaction.update(&ships, fram, &[(1, ValueRef::Int(1893))])?;
//! transaction.rollback()?;
//!
//! let mut reader = database.begin(TransactionOptions::default());
//! let found = reader.find(&ships, &by_name, &[ValueRef::Text("Fram")])?;
//! assert_eq!(reader.row(&ships, found[0])?.expect("what the index finds is there")[1], Value::Int(1892));
//! # Ok(())
//! # }
//! ```

pub use pagefold_engine::database::{
    Change, Database, Durability, Isolation, OpenMode, Renewal, Savepoint, Settings, Transaction, TransactionOptions,
};
pub use pagefold_engine::pool::PoolSettings;
pub use pagefold_engine::{CounterValues, DataSet, Error, Extents, Result};

use std::path::Path;
use std::sync::Arc;

/// Opens or creates the database in a directory, with the operating system's files and clock.
///
/// # Errors
/// When there is none, it is damaged or of a newer format, another process writes it, or the directory cannot be used.
pub fn open(directory: impl AsRef<Path>, mode: OpenMode, settings: Settings) -> Result<Database> {
    Database::open(Arc::new(pagefold_io::OsStorage), Arc::new(pagefold_io::OsClock), directory.as_ref(), mode, settings)
}

/// Tables: rows addressed by RID.
pub mod table {
    pub use pagefold_engine::table_space::{
        BatchColumn, BatchValues, BulkLoader, ColumnBatch, Compressor, EncodedRow, LoadEncoder, Method, RowBuffer, ScanOutcome, Table,
        TableAttributes,
    };
}

/// Indexes: B+trees ordered by (key, RID).
pub mod index {
    pub use pagefold_engine::btree::{BTree, Cursor, Direction as CursorDirection, TreeLevel};
    pub use pagefold_engine::index::{FOLDED_DISK_BYTES, Index, IndexAttributes, IndexBuilder, IndexFormat};
}

/// Buffer pools and their counters.
pub mod pool {
    pub use pagefold_engine::pool::{BufferManager, CounterValues, Pool, PoolSettings};
}

/// SQL types, values, the packed record, keys, conditions on rows.
pub mod types {
    pub use pagefold_types::*;
}

/// Parquet, CSV and Arrow record batches in and out.
pub mod interchange {
    pub use pagefold_interchange::*;
}

/// Copies of a database in use, databases from copies and log, and the archive of the log.
pub mod backup {
    pub use pagefold_engine::backup::{
        ArchiveState, CopyReader, CopyReport, RecoverOptions, Recovered, Stop, Until, archive_state, copy_to_directory, copy_to_file,
        recover,
    };
    pub use pagefold_engine::{Progress, Silent, Unit};
}

/// LOAD, EXPORT, CREATE INDEX, REORG, DROP, CHECK, PRINT, REPORT.
pub mod utility {
    pub use pagefold_utility::*;
}

/// The estimator.
pub mod advisor {
    pub use pagefold_advisor::*;
}

/// Storage and clock: the operating system's, in memory, with faults.
pub mod io {
    pub use pagefold_io::*;
}

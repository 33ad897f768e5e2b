//! The engine's own interface, for tools: tables by handle, rows by RID, visitors, bulk builds.
//!
//! Programs that store rows want the crate's root instead. Here nothing hides how rows and index entries come together.

use pagefold_engine::Result;
use std::path::Path;
use std::sync::Arc;

pub use pagefold_engine::database::{
    Change, Database, Durability, GiveUp, GivenUp, IndexChange, Isolation, OpenMode, ReadView, Renewal, RowScan, Savepoint, Scan,
    ScanRequest, Settings, TableChange, Transaction, TransactionOptions, partition_name,
};
pub use pagefold_engine::database::{LIVE_INTERVAL, Onlooker, Watched};
pub use pagefold_engine::directory::{control_path, lock_path};
pub use pagefold_engine::pool::PoolSettings;
pub use pagefold_engine::{CounterValues, DataSet, Error, Extents};

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
        BatchColumn, BatchValues, BulkLoader, ColumnBatch, Compressor, LoadEncoder, Method, RowBuffer, Table, TableAttributes,
    };
}

/// Indexes: B+trees ordered by (key, RID).
pub mod index {
    pub use pagefold_engine::btree::{BTree, Cursor, Direction as CursorDirection, TreeLevel};
    pub use pagefold_engine::index::{
        FOLDED_DISK_BYTES, Index, IndexAttributes, IndexBuilder, IndexFormat, KeySpan, KeyTrace, RecordOptions,
    };
}

/// Buffer pools and their counters.
pub mod pool {
    pub use pagefold_engine::pool::{BufferManager, PoolSettings};
    pub use pagefold_engine::{CounterValues, Pool};
}

/// What the catalog says of tables, and of what has a name and no pages.
pub mod catalog {
    pub use pagefold_engine::catalog::OtherEntry;
    pub use pagefold_engine::database::{PartitionedTable, RangePartition};
    pub use pagefold_format::catalog::{ColumnNotes, Constraint, ConstraintKind, DefinedKind, Identity, Notes, Reference, Sequence};
}

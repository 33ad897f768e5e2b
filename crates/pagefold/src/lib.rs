//! pagefold: an embedded row store whose tables and indexes are compressed at every level, and which says what compression will save and cost before
//! you commit to it.
//!
//! A database is a directory. One process writes it; others may read. Everything happens in a [`Transaction`], tables and indexes too: committed, it survives a crash; otherwise nothing of it is ever seen.
//!
//! ```
//! use pagefold::{DataType, Database, TableDefinition};
//!
//! # fn main() -> pagefold::Result<()> {
//! // `Database::create("ships.db")` for one on disk.
//! let database = Database::in_memory()?;
//! let transaction = database.begin();
//! let definition = TableDefinition::new().column("name", DataType::Varchar(None)).nullable("built", DataType::Integer);
//! let ships = transaction.create_table("ship", definition.primary_key(["name"]))?;
//! ships.insert(("Fram", 1892))?;
//! ships.insert(("Vega", None::<i32>))?;
//! ships.update("Vega", [("built", 1872)])?;
//! let fram = ships.get("Fram")?.expect("it was inserted");
//! assert_eq!(fram.get::<i32>("built")?, 1892);
//! let names: Vec<String> = ships.range("G"..)?.map(|ship| ship?.get("name")).collect::<Result<_, _>>()?;
//! assert_eq!(names, ["Vega"]);
//! transaction.commit()?;
//! # Ok(())
//! # }
//! ```
//!
//! * [`Database`], [`Options`]: open, close, begin
//! * [`Transaction`]: tables and indexes come, go and are found; savepoints; commit. [`TransactionOptions`] has levels from READ COMMITTED to SERIALIZABLE
//! * [`Table`], [`ByIndex`], [`Select`], [`Rows`], [`Row`]: rows by key, in ranges, by conditions, some columns of them
//! * `RecordBatches`, `Table::insert_batch`: rows as Arrow record batches (feature `arrow`)
//! * `Database::query`, `Database::execute`, `Database::session`: SQL (feature `sql`)
//! * [`column()`], [`Condition`]: conditions built from values, or parsed
//! * [`TableDefinition`], [`IndexDefinition`]: columns, keys, compression ([`Method`], [`IndexFormat`])
//! * [`Error`]: one type for all of it, with [`Error::sqlstate`] and [`Error::is_retryable`]
//!
//! Beside it:
//!
//! * `sql`: sessions, errors with SQLSTATE (feature `sql`, which is on by default)
//! * [`types`]: SQL types, values, the packed record, keys, conditions
//! * `interchange`: Parquet, CSV and Arrow record batches in and out (feature `arrow`, which is on by default)
//! * `utility`: load, export, create index, reorg, drop, check, print, report (the same)
//! * [`backup`]: copies of a database in use, recovery to a point in time
//! * `advisor` (the same feature): what each method and page size would give, before anything is changed
//! * [`io`]: storage and clock; nothing else touches files or time
//! * [`engine`]: what all of this is built on, for tools

#[cfg(feature = "arrow")]
mod arrow;
mod condition;
mod database;
mod definition;
pub mod engine;
mod partitions;
mod row;
mod select;
#[cfg(feature = "sql")]
pub mod sql;
mod table;
mod transaction;

#[cfg(feature = "arrow")]
pub use arrow::RecordBatches;
pub use condition::IntoCondition;
pub use database::{Database, Options};
pub use definition::{IndexDefinition, PartitionDefinition, TableDefinition};
pub use pagefold_engine::database::{Durability, IndexChange, Isolation, Savepoint, TableChange, TransactionOptions};
pub use pagefold_engine::index::{IndexFormat, RecordOptions};
pub use pagefold_engine::table_space::Method;
pub use pagefold_engine::{Error, Result};
pub use pagefold_types::{Condition, DataType, Interval, Value, column, not};
pub use row::{AsValue, FromRow, FromValue, IntoValues, Row};
pub use select::{Rows, Select};
pub use table::{ByIndex, Table};
pub use transaction::Transaction;

/// SQL types, values, the packed record, keys, conditions on rows.
pub mod types {
    pub use pagefold_types::*;
}

/// Parquet, CSV and Arrow record batches in and out.
#[cfg(feature = "arrow")]
pub mod interchange {
    pub use pagefold_interchange::*;
}

/// Copies of a database in use, databases from copies and log, and the archive of the log.
pub mod backup {
    pub use pagefold_engine::backup::{
        CopyReader, CopyReport, MountOptions, MountedCopy, RecoverOptions, Recovered, Stop, Until, copy_tables_to_file, copy_to_directory,
        copy_to_file, recover,
    };
    pub use pagefold_engine::database::{ArchiveState, archive_state};
    pub use pagefold_engine::{Progress, Silent, Unit};
}

/// LOAD, EXPORT, CREATE INDEX, REORG, DROP, CHECK, PRINT, REPORT.
#[cfg(feature = "arrow")]
pub mod utility {
    pub use pagefold_utility::*;
}

/// The estimator.
#[cfg(feature = "arrow")]
pub mod advisor {
    pub use pagefold_advisor::*;
}

/// Storage and clock: the operating system's, in memory, with faults.
pub mod io {
    pub use pagefold_io::*;
}

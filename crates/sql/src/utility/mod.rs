//! Utilities as statements: ANALYZE, REORG, REINDEX, CHECK, ESTIMATE, ADVISE, BACKUP, SPLIT and MERGE of partitions.
//!
//! What they do is not part of this crate: who opens the database gives it [`Utilities`], which know how. So SQL needs neither the estimator nor what reads and writes files of other formats.
//!
//! * `statement`: what a statement says; `options`: what it says behind WITH
//!
//! Invariants:
//! - a utility is no part of a transaction: it has its own, and is refused within BEGIN;
//! - names are those of objects that were there when it began.

pub(crate) mod options;
pub(crate) mod statement;

use crate::SqlResult;
use crate::copy::columnar::ColumnFiles;
use pagefold_engine::Progress;
use pagefold_engine::database::Database;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_types::{DataType, Direction, Value};
use std::path::PathBuf;

/// A method or format of a REORG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<T> {
    /// The one that an estimate and the costs on this machine speak for.
    Auto,
    /// This one.
    Given(T),
}

/// How a REORG stores its object. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReorgWishes {
    /// Compression of a table.
    pub method: Option<Wanted<Method>>,
    /// Format of an index.
    pub format: Option<Wanted<IndexFormat>>,
    /// Page size.
    pub page_bytes: Option<usize>,
    /// Percent of each page left free.
    pub pctfree: Option<u8>,
    /// The dictionary is kept instead of training another.
    pub keep_dictionary: bool,
    /// Rows in the order of this index; of the primary key, where it is `primary-key`.
    pub order: Option<String>,
    /// Thin pages of a table are emptied a part at a time, and nothing else is done.
    pub incremental: bool,
    /// Rows that are moved at a time, at most.
    pub max_rows: Option<usize>,
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Portion {
    /// Everything.
    #[default]
    All,
    /// So many percent of the pages.
    Percent(f64),
    /// So many pages.
    Pages(u64),
}

/// What a statement asks for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Utility {
    /// ANALYZE: statistics of these tables, or all.
    Analyze {
        /// Names of tables.
        tables: Vec<String>,
        /// How much is looked at.
        portion: Portion,
        /// Are the figures given as rows?
        is_verbose: bool,
    },
    /// REORG: a table, partition or index is written anew.
    Reorg {
        /// Its name.
        object: String,
        /// How it is to be stored.
        wishes: ReorgWishes,
    },
    /// REINDEX: indexes are built from the rows of their table.
    Reindex {
        /// Their names.
        indexes: Vec<String>,
    },
    /// CHECK: every page of the database is looked at.
    Check,
    /// ESTIMATE: what a table takes under every method and page size.
    EstimateTable {
        /// Its name.
        table: String,
        /// How much is looked at.
        portion: Portion,
    },
    /// ESTIMATE: what an index takes in every format and page size.
    EstimateIndex {
        /// Its name.
        index: String,
        /// How much is looked at.
        portion: Portion,
    },
    /// ESTIMATE: the same of an index that is not there.
    EstimateNewIndex {
        /// Of which table.
        table: String,
        /// Its columns.
        columns: Vec<(String, Direction)>,
        /// No two rows with the same key?
        unique: bool,
        /// How much is looked at.
        portion: Portion,
    },
    /// ADVISE: how each of these objects, or all, is best stored.
    Advise {
        /// Names of tables and indexes.
        objects: Vec<String>,
        /// How much of each is looked at.
        portion: Portion,
    },
    /// ALTER TABLE ... SPLIT PARTITION: two in the place of one.
    SplitPartition {
        /// The table.
        table: String,
        /// The one.
        partition: String,
        /// The first key of the second of the two, as text; `None`: above all.
        at: Vec<Option<String>>,
        /// Names of the two.
        into: [String; 2],
    },
    /// ALTER TABLE ... MERGE PARTITIONS: one in the place of several that follow each other.
    MergePartitions {
        /// The table.
        table: String,
        /// The several.
        partitions: Vec<String>,
        /// Name of the one.
        into: String,
    },
    /// BACKUP: a copy in a file.
    Backup {
        /// The file, which is not there.
        file: PathBuf,
        /// Only these tables; all of them if none is named.
        tables: Vec<String>,
        /// A copy from before: only what has changed since is written.
        base: Option<PathBuf>,
    },
}

impl Utility {
    /// The word that it begins with, or two.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Utility::Analyze { .. } => "ANALYZE",
            Utility::Reorg { .. } => "REORG",
            Utility::Reindex { .. } => "REINDEX",
            Utility::Check => "CHECK",
            Utility::EstimateTable { .. } | Utility::EstimateIndex { .. } | Utility::EstimateNewIndex { .. } => "ESTIMATE",
            Utility::Advise { .. } => "ADVISE",
            Utility::SplitPartition { .. } | Utility::MergePartitions { .. } => "ALTER TABLE",
            Utility::Backup { .. } => "BACKUP",
        }
    }

    /// Does it write anything in the database?
    #[must_use]
    pub fn changes(&self) -> bool {
        matches!(
            self,
            Utility::Analyze { .. }
                | Utility::Reorg { .. }
                | Utility::Reindex { .. }
                | Utility::SplitPartition { .. }
                | Utility::MergePartitions { .. }
        )
    }
}

/// What a utility found or did, as rows.
#[derive(Clone, Debug, Default)]
pub struct UtilityAnswer {
    /// Names and types of columns; none where there are no rows.
    pub columns: Vec<(&'static str, DataType)>,
    /// Rows, each with a value for each column.
    pub rows: Vec<Vec<Value>>,
}

/// Runs utilities for sessions, and reads and writes files of columns for COPY.
pub trait Utilities: ColumnFiles {
    /// Runs one; `progress` is told how far it is, and says when it is to stop.
    ///
    /// # Errors
    /// Whatever is wrong, with a SQLSTATE; 57014 when it was stopped.
    fn run(&self, database: &Database, utility: &Utility, progress: &dyn Progress) -> SqlResult<UtilityAnswer>;
}

//! RECOVER of tables: as they were at a copy, or with log at a later moment, put back into a database that is in use.
//!
//! Invariants:
//! - all of it is one change: with the commit the tables are as they were then, with all indexes; before it, and when it fails, they are as they are;
//! - of a table that is recovered nobody changes a row from the beginning on, so nobody's commit is lost unseen; others go on.

use crate::index_build::KeyCollector;
use crate::progress::tell;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::backup::{MountOptions, MountedCopy, RecoverOptions, Stop};
use pagefold_engine::database::{Change, Database, ScanRequest, Settings, TakenTable, split_partition_name};
use pagefold_io::{Clock, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows between two looks at whether to stop.
const ROWS_PER_LOOK: u64 = 16 * 1024;

/// What tables are recovered from.
#[derive(Clone, Debug)]
pub struct RecoverTablesOptions {
    /// With which log, up to where. With the directory of the database among those that have log: up to now.
    pub recover: RecoverOptions,
    /// A table that has other columns by now is replaced.
    pub replace: bool,
    /// Memory for what is read from the copies.
    pub settings: Settings,
    /// Memory for keys that are sorted.
    pub sort_bytes: usize,
}

/// What was recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoverTablesReport {
    /// Each table, or partition.
    pub tables: Vec<RecoveredTable>,
    /// Indexes that were there, and were not then: they went.
    pub gone_indexes: Vec<String>,
    /// Position in the log up to which.
    pub log_end: u64,
    /// Why no further.
    pub stop: Stop,
    /// The latest time of a commit that was read from the log, in nanoseconds since 1970-01-01 UTC; 0 when there was none.
    pub last_commit_ns: u64,
}

/// A table that was recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTable {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Pages of it and of its indexes.
    pub pages: u64,
    /// Indexes that were recovered with it.
    pub indexes: Vec<String>,
    /// Indexes that were built from its rows.
    pub built_indexes: Vec<String>,
    /// It took the place of what there was.
    pub replaced: bool,
}

/// Puts tables, partitions (`table/partition`) or partitioned tables back as they were at a copy (with those that go on from it), and with log at a later moment.
///
/// # Errors
/// When one is not in the copies or was not there at that moment, has other columns now and is not to be replaced, or something is damaged. The database is then as it was.
pub fn recover_tables(
    database: &Database,
    (storage, clock): (&Arc<dyn Storage>, &Arc<dyn Clock>),
    directory: &Path,
    tables: &[String],
    copies: &[PathBuf],
    options: &RecoverTablesOptions,
    progress: &dyn Progress,
) -> Result<RecoverTablesReport> {
    if tables.is_empty() {
        return Err(Error::Usage("no table to recover".into()));
    }
    let progress: &dyn Progress = &database.watch(format!("recover {}", tables.join(", ")), progress);
    let mut change = database.change();
    // What is locked does not change: the log, if it goes up to now, has all of it.
    let dropped = tables.iter().map(|name| change.drop_to_replace(name)).collect::<pagefold_engine::Result<Vec<_>>>()?;
    let mount = MountOptions { recover: options.recover.clone(), tables: tables.to_vec(), scratch: Some(directory.join("recover")) };
    let mounted = MountedCopy::open(storage, clock, copies, &mount, progress)?;
    progress.start("applying the log", None, Unit::Bytes);
    let then = mounted.database(clock, options.settings)?;
    progress.finish();
    let mut report = RecoverTablesReport {
        tables: Vec::new(),
        gone_indexes: Vec::new(),
        log_end: mounted.end().0,
        stop: mounted.end().1,
        last_commit_ns: mounted.last_commit_ns(),
    };
    for (name, dropped) in tables.iter().zip(&dropped) {
        for taken in change.take_table(&then, name, dropped, options.replace, progress)? {
            for index in &taken.to_build {
                build(database, &change, &taken, index, options.sort_bytes, progress)?;
            }
            report.tables.push(of(&taken, dropped.is_something()));
        }
        let all: Vec<&String> = report.tables.iter().flat_map(|table| table.indexes.iter().chain(&table.built_indexes)).collect();
        // Of an index that each partition has a part of the parts have come.
        let is_there = |index: &String| {
            all.iter().any(|own| *own == index || split_partition_name(own).is_some_and(|(whole, _)| whole == index.as_str()))
        };
        let gone: Vec<String> = dropped.indexes.iter().filter(|index| !is_there(index)).cloned().collect();
        report.gone_indexes.extend(gone);
    }
    change.commit()?;
    Ok(report)
}

fn of(taken: &TakenTable, replaced: bool) -> RecoveredTable {
    let names = |indexes: &[Arc<pagefold_engine::index::Index>]| indexes.iter().map(|index| index.name().to_owned()).collect();
    let of_indexes = taken.indexes.iter().chain(&taken.to_build).map(|index| index.data_set());
    RecoveredTable {
        name: taken.table.name().to_owned(),
        rows: taken.table.row_count(),
        pages: taken.table.data_sets().chain(of_indexes).map(|data_set| u64::from(data_set.page_count())).sum(),
        indexes: names(&taken.indexes),
        built_indexes: names(&taken.to_build),
        replaced,
    }
}

/// Builds an index of a table that nobody sees yet.
fn build(
    database: &Database,
    change: &Change<'_>,
    taken: &TakenTable,
    index: &Arc<pagefold_engine::index::Index>,
    sort_bytes: usize,
    progress: &dyn Progress,
) -> Result<()> {
    let table = &taken.table;
    let mut collector = KeyCollector::new(database, Arc::clone(index), sort_bytes);
    progress.start(&format!("reading the keys of {}", table.name()), Some(table.row_count()), Unit::Rows);
    let mut rows = change.read_view().scan(table, &ScanRequest::default())?.into_rows();
    let mut read = 0u64;
    while let Some((rid, record)) = rows.next_record()? {
        collector.push_row(table, record, rid)?;
        read += 1;
        tell(read, ROWS_PER_LOOK, progress)?;
    }
    progress.finish();
    collector.build(progress)?;
    Ok(())
}

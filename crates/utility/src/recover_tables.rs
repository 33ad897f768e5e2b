//! RECOVER of tables: as they were at a copy, or with log at a later moment, put back into a database that is in use.
//!
//! Invariants:
//! - all of it is one change: with the commit the tables are as they were then, with all indexes; before it, and when it fails, they are as they are;
//! - of a table that is recovered nobody changes a row from the beginning on, so nobody's commit is lost unseen; others go on.

use crate::index_build::KeyCollector;
use crate::progress::tell;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::backup::{MountOptions, MountedCopy, RecoverOptions, Stop};
use pagefold_engine::database::{Change, Database, RangePartition, ScanRequest, Settings, TakenTable, split_partition_name};
use pagefold_io::{Clock, Storage};
use pagefold_types::{DataType, KeyRange, TimeUnit, ValueRef, text};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of the log.
const TIME: DataType = DataType::Timestamp { unit: TimeUnit::Nano, with_zone: false };
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
        let taken = match change.take_table(&then, name, dropped, options.replace, progress) {
            Err(pagefold_engine::Error::Unknown { .. }) if split_partition_name(name).is_some() => {
                let now = dropped.keys().cloned();
                return Err(lacking_partition((storage, clock), directory, (name, now), copies, options, progress)?);
            }
            taken => taken?,
        };
        for taken in taken {
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
    // Where keys are unique over all partitions, others may have those of the rows that come back.
    let mut wholes: Vec<&str> = tables.iter().map(|name| split_partition_name(name).map_or(name.as_str(), |(whole, _)| whole)).collect();
    wholes.sort_unstable();
    wholes.dedup();
    for name in wholes {
        match change.lock_partitioned_table(name) {
            Err(pagefold_engine::Error::Unknown { .. }) => {}
            whole => change.check_all_keys(&*whole?, progress)?,
        }
    }
    change.commit()?;
    Ok(report)
}

/// Why a partition was not there: what had its keys then, and how that has changed since.
fn lacking_partition(
    (storage, clock): (&Arc<dyn Storage>, &Arc<dyn Clock>),
    directory: &Path,
    (name, now): (&str, Option<KeyRange>),
    copies: &[PathBuf],
    options: &RecoverTablesOptions,
    progress: &dyn Progress,
) -> Result<Error> {
    let (whole, partition) = split_partition_name(name).unwrap_or((name, ""));
    // What else there was is known only where the whole is asked for.
    let mount = MountOptions { recover: options.recover.clone(), tables: vec![whole.into()], scratch: Some(directory.join("recover")) };
    let mounted = MountedCopy::open(storage, clock, copies, &mount, progress)?;
    let then = mounted.database(clock, options.settings)?;
    let mut why = match then.partitioned_table(whole) {
        Err(pagefold_engine::Error::Unknown { .. }) => format!("\"{whole}\" was not there then, or had no partitions"),
        table => {
            let table = table?;
            let begins_before = |a: &KeyRange, b: &KeyRange| b.end.as_ref().is_none_or(|end| a.start < *end);
            let overlaps = |now: &KeyRange, then: &KeyRange| begins_before(now, then) && begins_before(then, now);
            let had = |now: &KeyRange| table.partitions().iter().filter(|then| overlaps(now, then.keys())).collect::<Vec<_>>();
            let quoted = |names: &[&RangePartition]| {
                names.iter().map(|partition| format!("\"{}\"", partition.name())).collect::<Vec<_>>().join(", ")
            };
            let there_was = |why: &str| format!("partition \"{partition}\" of \"{whole}\" was not there then: {why}");
            match now.as_ref().map(|now| (now, had(now))) {
                None => there_was(&format!("there were {}", quoted(&table.own_partitions().iter().collect::<Vec<_>>()))),
                Some((_, had)) if had.is_empty() => there_was("no partition had its keys, it was added since (ADD or ROTATE)"),
                Some((_, had)) if had.len() > 1 => {
                    there_was(&format!("its keys were those of {}, which were put together since (MERGE)", quoted(&had)))
                }
                Some((now, had)) if had.iter().all(|then| then.keys() == now) => {
                    there_was(&format!("its keys were those of {}, which is not called so any more", quoted(&had)))
                }
                Some((_, had)) => there_was(&format!("its keys were among those of {}, which was divided since (SPLIT)", quoted(&had))),
            }
        }
    };
    if let Stop::TablesChanged(time) = mounted.end().1 {
        let time = text::to_text(ValueRef::Int(i64::try_from(time).unwrap_or(i64::MAX)), &TIME);
        why += &format!(
            "; the log goes up to {time} only, when tables were written anew or dropped (SPLIT, MERGE, LOAD, REORG, DROP): it does not hold their pages"
        );
    }
    Ok(Error::Usage(format!("{why}. Recover \"{whole}\", or take a copy that was made afterwards")))
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

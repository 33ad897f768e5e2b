//! What is done to a partitioned table, or an index of one, partition by partition: CREATE INDEX, REORG, DROP.
//!
//! Invariants:
//! - partitions are independent of each other: one that is done stays done, whatever becomes of the next;
//! - an index of all partitions is one when each has its own, and not before; when it cannot be built, what was built of it goes. After a crash those of single partitions are there, and are found when
//!   it is begun again.

use super::each;
use crate::drop::DropReport;
use crate::index_build::{IndexReport, build_index, stopped};
use crate::reorg::{ReorgReport, reorg_one};
use crate::{Error, IndexOptions, Progress, ReorgOptions, Result, Setting};
use pagefold_engine::Error as EngineError;
use pagefold_engine::database::{Database, PartitionedTable, RangePartition};
use pagefold_engine::index::IndexAttributes;
use std::sync::{Arc, Mutex, PoisonError};

/// Builds an index of each partition beside writers, several at once; then it is one of the table.
pub(crate) fn create_partitioned_index(
    database: &Database,
    whole: &PartitionedTable,
    attributes: &IndexAttributes,
    options: &IndexOptions,
    progress: &dyn Progress,
) -> Result<IndexReport> {
    let mut report = IndexReport::default();
    let sort_bytes = (options.sort_bytes / 4).max(1 << 20);
    let made = Mutex::new(Vec::new());
    // What cannot be is refused before anything is built.
    let lacking = || -> Result<Option<Vec<RangePartition>>> {
        let mut change = database.change();
        let lacking = change.complete_partitioned_index(whole.name(), attributes)?;
        if lacking.is_empty() {
            let whole = change.lock_partitioned_table(whole.name())?;
            change.check_keys_of_all(&whole, &attributes.name, Some(options.patience), progress).map_err(stopped)?;
            change.commit()?;
            return Ok(None);
        }
        Ok(Some(lacking))
    };
    while let Some(lacking) = lacking().map_err(|error| without(database, &made, error))? {
        let build = |partition: &RangePartition, progress: &dyn Progress| {
            let own = IndexAttributes { name: PartitionedTable::index_name(&attributes.name, partition), ..attributes.clone() };
            let name = own.name.clone();
            let built = build_index(database, partition.table_name(), own, &IndexOptions { sort_bytes, ..options.clone() }, progress)?;
            made.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            Ok(built)
        };
        let built = each(&format!("building index {}", attributes.name), &lacking, 0, progress, build);
        for built in built.map_err(|error| without(database, &made, error))? {
            report.rids += built.rids;
            report.keys += built.keys;
            report.pages += built.pages;
            report.size_bytes += built.size_bytes;
        }
        // Partitions that have come meanwhile get theirs.
    }
    Ok(report)
}

/// Drops what was built of an index before an error; the error.
fn without(database: &Database, made: &Mutex<Vec<String>>, error: Error) -> Error {
    for name in made.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let mut change = database.change();
        if let Err(left) = change.drop_index(&name).and_then(|_| change.commit()) {
            return Error::Data(format!("{error}; index \"{name}\" of one partition is there already, and could not be dropped: {left}"));
        }
    }
    error
}

/// Writes all partitions of a table, or all of an index, anew, several at once.
pub(crate) fn reorg_partitioned(
    database: &Database,
    name: &str,
    options: &ReorgOptions,
    progress: &dyn Progress,
) -> Result<Option<ReorgReport>> {
    let names: Vec<String> = match database.partitioned_table(name) {
        Ok(whole) => whole.partitions().iter().map(|partition| partition.table_name().to_owned()).collect(),
        Err(EngineError::Unknown { .. }) => match database.partitioned_index(name)? {
            Some((_, indexes)) => indexes,
            None => return Ok(None),
        },
        Err(error) => return Err(error.into()),
    };
    if options.method == Some(Setting::Auto) || options.format == Some(Setting::Auto) {
        return Err(Error::Usage(format!(
            "\"{name}\" has several partitions, which may want different methods: reorganize one, {}",
            names[0]
        )));
    }
    let mut report = ReorgReport::default();
    // Who goes by parts is to leave the machine to others.
    let threads = usize::from(options.incremental.is_some());
    for one in
        each(&format!("reorganizing {name}"), &names, threads, progress, |name, progress| reorg_one(database, name, options, progress))?
    {
        report.pages_before += one.pages_before;
        report.size_bytes_before += one.size_bytes_before;
        report.pages += one.pages;
        report.size_bytes += one.size_bytes;
        report.rows += one.rows;
        if let Some(one) = one.incremental {
            let all = report.incremental.get_or_insert_default();
            all.rows_moved += one.rows_moved;
            all.rows_left += one.rows_left;
            all.pages_free += one.pages_free;
            all.is_cut_short |= one.is_cut_short;
        }
    }
    Ok(Some(report))
}

/// Drops a partitioned table or index; `None` when there is none of this name.
pub(crate) fn drop_partitioned(database: &Database, name: &str) -> Result<Option<DropReport>> {
    let mut report = DropReport { freed_bytes: Some(0), ..DropReport::default() };
    let mut freed = |bytes: u64| *report.freed_bytes.get_or_insert(0) += bytes;
    let mut change = database.change();
    if let Some((_, indexes)) = database.partitioned_index(name)? {
        for index in indexes {
            freed(database.index(&index).map_or(0, |index| index.data_set().allocated_bytes()));
        }
        change.drop_partitioned_index(name)?;
        change.commit()?;
        return Ok(Some(DropReport { kind: "partitioned index", ..report }));
    }
    let whole: Arc<PartitionedTable> = match database.partitioned_table(name) {
        Err(EngineError::Unknown { .. }) => return Ok(None),
        found => found?,
    };
    report.indexes = database.partitioned_indexes_of(&whole);
    for table in change.drop_partitioned_table(name)? {
        let indexes = table.all_indexes();
        let data_sets = table.data_sets().chain(indexes.iter().map(|index| index.data_set()));
        *report.freed_bytes.get_or_insert(0) += data_sets.map(|data_set| data_set.allocated_bytes()).sum::<u64>();
    }
    change.commit()?;
    Ok(Some(DropReport { kind: "partitioned table", ..report }))
}

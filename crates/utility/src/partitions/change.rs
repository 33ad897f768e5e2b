//! Partitions that come and go: ADD, DROP, ROTATE, EXCHANGE in moments, whatever the size; SPLIT and MERGE, which write rows anew.
//!
//! Invariants:
//! - each is one change: after an error, an interrupt or a crash the table is as it was;
//! - while rows are written anew, those of the partitions concerned are read and not changed; other partitions are changed by anybody.

use crate::index_build::{KeyCollector, KeyCollectors};
use crate::partitions::{PartitionText, Tables};
use crate::progress::tell;
use crate::reorg::sample_table;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::database::partition_name;
use pagefold_engine::database::{
    Change, Database, FreshPartition, PartitionSpec, PartitionedTable, RangePartition, ReadView, ScanRequest, TransactionOptions,
};
use pagefold_engine::pool::By;
use pagefold_engine::table_space::{BulkLoader, Table};
use pagefold_types::{KeyRange, Value, ValueRef};
use std::sync::Arc;

const SORT_BYTES: usize = 64 << 20;
const ROWS_PER_LOOK: u64 = 16 * 1024;

/// Rows that SPLIT or MERGE wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedRows {
    /// The partitions now, and the rows of each.
    pub partitions: Vec<(String, u64)>,
    /// Bytes of what was there before.
    pub size_bytes_before: u64,
    /// Bytes of what is there now.
    pub size_bytes: u64,
}

fn spec(database: &Database, table: &str, partition: &PartitionText) -> Result<PartitionSpec> {
    let whole = database.partitioned_table(table)?;
    let tables = Tables::of(database, Arc::clone(&whole), Vec::new())?;
    partition.spec(tables.first().attributes(), whole.columns(), || free_name(database, &whole))
}

/// `p` and a number that no partition has.
fn free_name(database: &Database, whole: &PartitionedTable) -> String {
    let taken = |name: &String| database.table(&partition_name(whole.name(), name)).is_ok();
    (whole.partitions().len() + 1..).map(|number| format!("p{number}")).find(|name| !taken(name)).unwrap_or_default()
}

/// Adds a partition behind the last one, which it is like. Its name.
///
/// # Errors
/// When the last one has no limit or that is above the new one; when the name is taken.
pub fn add_partition(database: &Database, table: &str, partition: &PartitionText) -> Result<String> {
    let spec = spec(database, table, partition)?;
    let mut transaction = database.begin(TransactionOptions::default());
    transaction.add_partition(table, &spec)?;
    transaction.commit()?;
    Ok(spec.name)
}

/// Drops a partition with its rows. How many bytes that frees.
///
/// # Errors
/// When there is none, or it is the only one.
pub fn drop_partition(database: &Database, table: &str, partition: &str) -> Result<u64> {
    let whole = database.partitioned_table(table)?;
    // One that is damaged goes, too.
    let freed = database.table_of_partition(whole.partition(partition)?).map_or(0, |table| allocated(&table));
    let mut transaction = database.begin(TransactionOptions::default());
    transaction.drop_partition(table, partition)?;
    transaction.commit()?;
    Ok(freed)
}

/// Drops the first partition and adds one behind the last. Names of both.
///
/// # Errors
/// As [`add_partition`] and [`drop_partition`].
pub fn rotate_partition(database: &Database, table: &str, partition: &PartitionText) -> Result<(String, String)> {
    let spec = spec(database, table, partition)?;
    let mut transaction = database.begin(TransactionOptions::default());
    let dropped = transaction.rotate_partition(table, &spec)?;
    transaction.commit()?;
    Ok((dropped, spec.name))
}

/// A table takes the place of a partition, and the partition that of the table, each under the name of the other. No row is written.
///
/// # Errors
/// When their columns, keys or indexes differ, or a row of the table belongs in another partition.
pub fn exchange_partition(database: &Database, table: &str, partition: &str, with: &str) -> Result<()> {
    let mut transaction = database.begin(TransactionOptions::default());
    transaction.exchange_partition(table, partition, with)?;
    Ok(transaction.commit()?)
}

/// Divides a partition in two: rows below the limit go to a new one before it. The other one keeps its name, or is called `upper`.
///
/// # Errors
/// When the limit is not within its range; no room. The table is then as it was.
pub fn split_partition(
    database: &Database,
    table: &str,
    partition: &str,
    below: &PartitionText,
    upper: Option<&str>,
    progress: &dyn Progress,
) -> Result<MovedRows> {
    let mut change = database.change();
    let whole = change.lock_partitioned_table(table)?;
    let old = whole.partition(partition)?;
    let lower = spec(database, table, below)?;
    let limit = lower.limit.clone().filter(|limit| *limit > old.keys().start && old.keys().end.as_ref().is_none_or(|end| limit < end));
    let limit = limit.ok_or_else(|| Error::Usage(format!("the limit is not within the range of partition \"{partition}\"")))?;
    let upper = PartitionSpec { name: upper.unwrap_or(partition).into(), limit: old.keys().end.clone(), ..PartitionSpec::default() };
    let new = [
        (KeyRange { start: old.keys().start.clone(), end: Some(limit.clone()) }, lower),
        (KeyRange { start: limit, end: old.keys().end.clone() }, upper),
    ];
    write_anew(database, change, &whole, &[old], &new, progress)
}

/// Makes one of two or more partitions that follow each other, with the attributes of the first.
///
/// # Errors
/// When they do not follow each other, or the name is taken; no room. The table is then as it was.
pub fn merge_partitions(database: &Database, table: &str, partitions: &[String], into: &str, progress: &dyn Progress) -> Result<MovedRows> {
    let mut change = database.change();
    let whole = change.lock_partitioned_table(table)?;
    let old = partitions.iter().map(|name| Ok(whole.partition(name)?)).collect::<Result<Vec<&RangePartition>>>()?;
    let follow = old.windows(2).all(|pair| pair[0].keys().end.as_ref() == Some(&pair[1].keys().start));
    let (Some(first), Some(last), true) = (old.first(), old.last(), follow && old.len() > 1) else {
        return Err(Error::Usage("name two or more partitions that follow each other, in the order of their keys".into()));
    };
    let keys = KeyRange { start: first.keys().start.clone(), end: last.keys().end.clone() };
    let spec = PartitionSpec { name: into.into(), limit: keys.end.clone(), ..PartitionSpec::default() };
    write_anew(database, change, &whole, &old, &[(keys, spec)], progress)
}

fn allocated(table: &Table) -> u64 {
    let indexes = table.all_indexes();
    table.data_sets().chain(indexes.iter().map(|index| index.data_set())).map(|data_set| data_set.allocated_bytes()).sum()
}

/// Writes the rows of some partitions into others that take their place.
fn write_anew(
    database: &Database,
    mut change: Change<'_>,
    whole: &PartitionedTable,
    old: &[&RangePartition],
    new: &[(KeyRange, PartitionSpec)],
    progress: &dyn Progress,
) -> Result<MovedRows> {
    // From here on nobody changes their rows; what was committed until then is what is written anew.
    for partition in old {
        change.lock_table(partition.table_name())?;
    }
    let view = change.read_view();
    let (dropped, fresh) = change.replace_partitions(whole, old, new)?;
    let mut report = MovedRows { size_bytes_before: dropped.iter().map(|table| allocated(table)).sum(), ..MovedRows::default() };
    let rows = dropped.iter().map(|table| table.row_count()).sum();
    progress.start(&format!("writing {} anew", whole.name()), Some(rows), Unit::Rows);
    fill(database, &view, &dropped, &fresh, whole, progress)?;
    progress.finish();
    for ((table, _), (_, spec)) in fresh.iter().zip(new) {
        report.partitions.push((spec.name.clone(), table.row_count()));
        report.size_bytes += allocated(table);
    }
    drop(view);
    change.commit()?;
    Ok(report)
}

fn fill(
    database: &Database,
    view: &ReadView,
    old: &[Arc<Table>],
    fresh: &[FreshPartition],
    whole: &PartitionedTable,
    progress: &dyn Progress,
) -> Result<()> {
    let mut filling = Vec::with_capacity(fresh.len());
    for (table, indexes) in fresh {
        // Of the rows of the largest.
        if table.attributes().method.dictionary_type().is_some()
            && let Some(largest) = old.iter().max_by_key(|old| old.row_count())
        {
            let (sample, rows) = (sample_table(largest, progress)?, old.iter().map(|old| old.row_count()).sum());
            if let Some(dictionary) = sample.train(table.attributes().method, table.layout(), rows, table.attributes().page_fill()) {
                table.set_dictionary(dictionary)?;
            }
        }
        let mut collectors = KeyCollectors::default();
        indexes.iter().for_each(|index| collectors.push(KeyCollector::new(database, Arc::clone(index), SORT_BYTES)));
        filling.push((table, BulkLoader::new(table)?, collectors));
    }
    let (mut key, mut built, mut rows) = (Vec::new(), Vec::new(), 0u64);
    for table in old {
        let mut scan = view.scan(table, &ScanRequest::default())?.into_rows();
        while let Some((_, record)) = scan.next_record()? {
            key.clear();
            let encoded = whole.key_layout().encode_from_record(table.layout(), record, &mut key);
            encoded.map_err(|e| Error::Data(format!("table \"{}\": {e}", table.name())))?;
            let at =
                fresh.iter().position(|(table, _)| table.range().is_some_and(|range| range.keys.end.as_ref().is_none_or(|end| key < *end)));
            let outside =
                || Error::Data(format!("table \"{}\" has a row outside its range: {}", table.name(), whole.key_layout().describe(&key)));
            let (new, loader, collectors) = at.map(|at| &mut filling[at]).ok_or_else(outside)?;
            let large = table.layout().large_values(record).map_err(|e| Error::Data(format!("table \"{}\": {e}", table.name())))?;
            let record = if large.is_empty() && record.len() <= new.record_bytes_max() {
                record
            } else {
                let values = table.values(record)?;
                let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                built.clear();
                new.build_record(By::Nobody, &refs, &mut built)?;
                &built
            };
            let new = &**new;
            loader.push(record, |rid, record| collectors.push_row(new, record, rid))?;
            rows += 1;
            tell(rows, ROWS_PER_LOOK, progress)?;
        }
    }
    for (table, loader, mut collectors) in filling {
        loader.finish(|rid, record| collectors.push_row(table, record, rid))?;
        for collector in collectors.into_vec() {
            collector.build(progress)?;
        }
    }
    Ok(())
}

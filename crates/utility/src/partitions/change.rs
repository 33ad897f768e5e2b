//! Partitions that come and go: ADD, DROP, ROTATE, EXCHANGE in moments, whatever the size; SPLIT and MERGE, which write rows anew.
//!
//! Invariants:
//! - each is one change: after an error, an interrupt or a crash the table is as it was;
//! - while rows are written anew others read and change them, but for a moment at the end.

use crate::index_build::{KeyCollector, KeyCollectors, stopped};
use crate::partitions::{PartitionText, Tables};
use crate::progress::{rows_per_look, tell};
use crate::reorg::{SORT_BYTES, sample_table};
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::database::partition_name;
use pagefold_engine::database::{
    Change, Database, PartitionSpec, PartitionedTable, RangePartition, TableBuild, Transaction, TransactionOptions,
};
use pagefold_engine::table_space::Table;
use pagefold_types::KeyRange;
use std::sync::Arc;

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

/// Rows that others refer to would be gone: nobody looks which these are.
fn refuse_referred(transaction: &Transaction<'_>, table: &str, what: &str) -> Result<()> {
    match transaction.references()?.iter().find(|(_, parent)| parent == table) {
        None => Ok(()),
        Some((child, _)) => {
            let why = format!("a foreign key of table \"{child}\" refers to table \"{table}\": no partition of it is {what}");
            Err(Error::Usage(format!("{why}; drop the constraint before, and add it again afterwards")))
        }
    }
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
/// When there is none, or it is the only one; when foreign keys refer to the table.
pub fn drop_partition(database: &Database, table: &str, partition: &str) -> Result<u64> {
    let whole = database.partitioned_table(table)?;
    // One that is damaged goes, too.
    let freed = database.table_of_partition(whole.partition(partition)?).map_or(0, |table| allocated(&table));
    let mut transaction = database.begin(TransactionOptions::default());
    refuse_referred(&transaction, table, "dropped")?;
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
    refuse_referred(&transaction, table, "dropped")?;
    let dropped = transaction.rotate_partition(table, &spec)?;
    transaction.commit()?;
    Ok((dropped, spec.name))
}

/// A table takes the place of a partition, and the partition that of the table, each under the name of the other. No row is written.
///
/// # Errors
/// When their columns, keys or indexes differ, or a row of the table belongs in another partition; when foreign keys refer to one of the two.
pub fn exchange_partition(database: &Database, table: &str, partition: &str, with: &str) -> Result<()> {
    let mut transaction = database.begin(TransactionOptions::default());
    refuse_referred(&transaction, table, "exchanged")?;
    refuse_referred(&transaction, with, "exchanged")?;
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
    let progress: &dyn Progress = &database.watch(format!("split {table}/{partition}"), progress);
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
    write_anew(database, change, &whole, (&[old], &new), progress)
}

/// Makes one of two or more partitions that follow each other, with the attributes of the first.
///
/// # Errors
/// When they do not follow each other, or the name is taken; no room. The table is then as it was.
pub fn merge_partitions(database: &Database, table: &str, partitions: &[String], into: &str, progress: &dyn Progress) -> Result<MovedRows> {
    let progress: &dyn Progress = &database.watch(format!("merge {} of {table}", partitions.join(", ")), progress);
    let mut change = database.change();
    let whole = change.lock_partitioned_table(table)?;
    let old = partitions.iter().map(|name| Ok(whole.partition(name)?)).collect::<Result<Vec<&RangePartition>>>()?;
    let follow = old.windows(2).all(|pair| pair[0].keys().end.as_ref() == Some(&pair[1].keys().start));
    let place = |partition: &RangePartition| whole.partitions().iter().position(|own| own.name() == partition.name());
    let are_side_by_side = |pair: &[&RangePartition]| place(pair[0]).map(|at| at + 1) == place(pair[1]);
    if !follow && old.windows(2).all(are_side_by_side) {
        let why = match whole.is_open() {
            true => "between them are keys that no partition has: add one that has them first",
            false => "between them are keys that no partition has, since one was dropped: LOAD --replace of the table closes such a gap",
        };
        return Err(Error::Usage(why.into()));
    }
    let (Some(first), Some(last), true) = (old.first(), old.last(), follow && old.len() > 1) else {
        return Err(Error::Usage("name two or more partitions that follow each other, in the order of their keys".into()));
    };
    let keys = KeyRange { start: first.keys().start.clone(), end: last.keys().end.clone() };
    let spec = PartitionSpec { name: into.into(), limit: keys.end.clone(), ..PartitionSpec::default() };
    write_anew(database, change, &whole, (&old, &[(keys, spec)]), progress)
}

fn allocated(table: &Table) -> u64 {
    let indexes = table.all_indexes();
    table.data_sets().chain(indexes.iter().map(|index| index.data_set())).map(|data_set| data_set.allocated_bytes()).sum()
}

/// Writes the rows of some partitions into others that take their place, beside those who change them.
fn write_anew(
    database: &Database,
    mut change: Change<'_>,
    whole: &PartitionedTable,
    (old, new): (&[&RangePartition], &[(KeyRange, PartitionSpec)]),
    progress: &dyn Progress,
) -> Result<MovedRows> {
    let mut build = change.begin_partitions_again(whole, old, new)?;
    let olds = build.olds().to_vec();
    let rows = olds.iter().map(|table| table.row_count()).sum();
    set_dictionaries(&build, rows, progress)?;
    fill(database, &mut build, (whole.name(), rows), progress)?;
    change.finish_table(&mut build, None, progress).map_err(stopped)?;
    let mut report = MovedRows { size_bytes_before: olds.iter().map(|table| allocated(table)).sum(), ..MovedRows::default() };
    for (target, (_, spec)) in build.targets().iter().zip(new) {
        report.partitions.push((spec.name.clone(), target.table.row_count()));
        report.size_bytes += allocated(&target.table);
    }
    change.commit()?;
    Ok(report)
}

/// Trains a dictionary for each that has one, of the rows of the largest partition.
fn set_dictionaries(build: &TableBuild, rows: u64, progress: &dyn Progress) -> Result<()> {
    let Some(largest) = build.olds().iter().max_by_key(|old| old.row_count()) else { return Ok(()) };
    let with_dictionary = build.targets().iter().map(|target| &target.table);
    let with_dictionary: Vec<_> = with_dictionary.filter(|table| table.attributes().method.dictionary_type().is_some()).collect();
    if with_dictionary.is_empty() {
        return Ok(());
    }
    let sample = sample_table(largest, progress)?;
    for table in with_dictionary {
        if let Some(dictionary) = sample.train(table.attributes().method, table.layout(), rows, table.attributes().page_fill()) {
            table.set_dictionary(dictionary)?;
        }
    }
    Ok(())
}

fn fill(database: &Database, build: &mut TableBuild, (name, rows): (&str, u64), progress: &dyn Progress) -> Result<()> {
    let mut keys = Vec::with_capacity(build.targets().len());
    for target in build.targets() {
        let mut collectors = KeyCollectors::default();
        target.indexes.iter().for_each(|index| collectors.push(KeyCollector::new(database, Arc::clone(index), SORT_BYTES)));
        keys.push((Arc::clone(&target.table), collectors));
    }
    progress.start(&format!("writing {name} anew"), Some(rows), Unit::Rows);
    let columns = build.olds().first().map_or(1, |old| old.layout().column_count());
    let (mut written, step) = (0u64, rows_per_look(columns));
    build.fill(|new, record| {
        let (table, collectors) = &mut keys[new.table];
        collectors.push_row(table, record, new.rid)?;
        written += 1;
        tell(written, step, progress)
    })?;
    progress.finish();
    for (_, collectors) in keys {
        for collector in collectors.into_vec() {
            collector.build_beside(progress)?;
        }
    }
    Ok(())
}

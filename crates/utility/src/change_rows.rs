//! UPSERT and DELETE: rows of files, by primary key, in one transaction or in many; and LOAD that adds to a table.
//!
//! Invariants:
//! - a transaction holds whole rows of the source, in their order: after an error or a crash a beginning of the source is in the table, at the end of a transaction;
//! - a row that is there already is changed in the columns that differ, and in no other;
//! - of rows with the same key the last one counts.

use crate::access::primary_key_index;
use crate::load::table_schema;
use crate::load_threads::with_batches;
use crate::partitions::Tables;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::database::{Database, Transaction, TransactionOptions};
use pagefold_engine::table_space::Table;
use pagefold_interchange::{Inputs, InterchangeError, OpenSource, Packer, Source, TableSchema};
use pagefold_types::{Column, ColumnValue, DataType, PackedRow, Rid, RowLayout, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Rows between two looks at whether to stop.
const ROWS_PER_LOOK: u64 = 256;

/// Options of UPSERT and DELETE.
#[derive(Clone, Debug, Default)]
pub struct ChangeRowsOptions {
    /// How to read text files. Their columns have the types of the table's.
    pub source: OpenSource,
    /// Rows of the source in a transaction; all in one when `None`.
    pub rows_per_transaction: Option<NonZeroU64>,
}

/// What UPSERT or DELETE did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeRowsReport {
    /// Rows of the source.
    pub rows: u64,
    /// Rows that were not there before.
    pub inserted: u64,
    /// Rows with other values now.
    pub updated: u64,
    /// Rows that had these values already.
    pub unchanged: u64,
    /// Rows that are no more.
    pub deleted: u64,
    /// Keys to delete that no row has.
    pub not_found: u64,
    /// Transactions committed.
    pub transactions: u64,
    /// Bytes of the packed records of the source, without those that are too wide for a page.
    pub record_bytes: u64,
}

/// Puts the rows of files into a table: a row whose primary key is there already changes, another is inserted.
///
/// # Errors
/// When the table has no primary key, a file cannot be read or its rows do not fit the table; another unique index has a key already; no room. What is not committed
/// then is taken back: everything, or all transactions but those that the message names.
pub fn upsert(
    database: &Database,
    table: &str,
    files: &[PathBuf],
    options: &ChangeRowsOptions,
    progress: &dyn Progress,
) -> Result<ChangeRowsReport> {
    upsert_inputs(database, table, &Inputs::open(database.outside().as_ref(), files)?, options, progress)
}

/// [`upsert`] from files that are open already.
///
/// # Errors
/// As [`upsert`].
pub fn upsert_inputs(
    database: &Database,
    table: &str,
    inputs: &Inputs,
    options: &ChangeRowsOptions,
    progress: &dyn Progress,
) -> Result<ChangeRowsReport> {
    let progress: &dyn Progress = &database.watch(format!("upsert {table}"), progress);
    let target = Target::find(database, table)?;
    let mut open = options.source.clone();
    open.csv.schema = Some(target.schema.given()?);
    let mut source = inputs.source(database.outside().as_ref(), &open)?;
    let columns = target.schema.match_source(source.table(), !source.has_names())?;
    let packer = Packer::new(&target.schema, target.first().layout(), columns, target.tables.record_bytes_max());
    progress.start(&format!("changing {table}"), source.row_count(), Unit::Rows);
    let layout = target.first().layout();
    let per_transaction = options.rows_per_transaction;
    run(database, source.as_mut(), &packer, layout, per_transaction, progress, |transaction, report, row| {
        target.upsert(transaction, report, row)
    })
}

/// Deletes the rows of a table whose primary keys the files have; other columns of the files do not matter.
///
/// # Errors
/// As [`upsert`].
pub fn delete_rows(
    database: &Database,
    table: &str,
    files: &[PathBuf],
    options: &ChangeRowsOptions,
    progress: &dyn Progress,
) -> Result<ChangeRowsReport> {
    delete_inputs(database, table, &Inputs::open(database.outside().as_ref(), files)?, options, progress)
}

/// [`delete_rows`] from files that are open already.
///
/// # Errors
/// As [`upsert`].
pub fn delete_inputs(
    database: &Database,
    table: &str,
    inputs: &Inputs,
    options: &ChangeRowsOptions,
    progress: &dyn Progress,
) -> Result<ChangeRowsReport> {
    let progress: &dyn Progress = &database.watch(format!("delete {table}"), progress);
    let target = Target::find(database, table)?;
    let key_columns = &target.first().attributes().primary_key;
    let keys = target.schema.project(key_columns)?;
    let storage = database.outside().as_ref();
    progress.start("reading", None, Unit::Bytes);
    let mut open = options.source.clone();
    // A first look says which columns there are. Then text is read again: its keys have the table's types, whatever they look like.
    let (schema, positions) = key_positions(inputs.source(storage, &open)?.as_ref(), &target, &keys)?;
    open.csv.schema = Some(schema);
    let mut source = inputs.source(storage, &open)?;
    progress.finish();
    let positions = if source.has_names() { by_name(source.table(), &keys)? } else { positions };
    keys.match_source(&source.table().project(&positions)?, true)?;
    let layout = RowLayout::new(keys.schema()).map_err(InterchangeError::from)?;
    let packer = Packer::new(&keys, &layout, positions, target.tables.record_bytes_max());
    progress.start(&format!("deleting from {table}"), source.row_count(), Unit::Rows);
    let per_transaction = options.rows_per_transaction;
    run(database, source.as_mut(), &packer, &layout, per_transaction, progress, |transaction, report, key| {
        target.delete(transaction, report, key)
    })
}

/// Adds the rows of a source to a table. Returns how many, and the bytes of their records.
pub(crate) fn append_rows(
    database: &Database,
    tables: &Tables<'_>,
    source: &mut dyn Source,
    rows_per_transaction: Option<NonZeroU64>,
    progress: &dyn Progress,
) -> Result<(u64, u64)> {
    let schema = table_schema(tables.first())?;
    let columns = schema.match_source(source.table(), !source.has_names())?;
    let packer = Packer::new(&schema, tables.first().layout(), columns, tables.record_bytes_max());
    progress.start(&format!("adding to {}", tables.name()), source.row_count(), Unit::Rows);
    let report = run_batches(database, source, &packer, rows_per_transaction, progress, |work, rows| work.append(tables, rows, progress))?;
    Ok((report.rows, report.record_bytes))
}

/// Where the columns of the key are in a source, and the columns to read it with if it is text.
fn key_positions(source: &dyn Source, target: &Target<'_>, keys: &TableSchema) -> Result<(Schema, Vec<usize>)> {
    let found = source.table().schema().columns();
    let own = target.schema.schema();
    let key_columns = &target.first().attributes().primary_key;
    let (names, positions): (Vec<&str>, Vec<usize>) = if source.has_names() {
        (found.iter().map(|c| c.name.as_str()).collect(), by_name(source.table(), keys)?)
    } else if found.len() == keys.schema().len() {
        (keys.schema().columns().iter().map(|c| c.name.as_str()).collect(), (0..found.len()).collect())
    } else if found.len() == own.len() {
        (own.columns().iter().map(|c| c.name.as_str()).collect(), key_columns.clone())
    } else {
        return Err(InterchangeError::Mismatch(format!(
            "the source has {} columns without names: those of the primary key are {}, the table has {}",
            found.len(),
            keys.schema().len(),
            own.len()
        ))
        .into());
    };
    let columns = names.into_iter().enumerate().map(|(i, name)| match positions.iter().position(|p| *p == i) {
        Some(key) => Column::new(name, keys.schema().columns()[key].data_type, false),
        None => Column::new(name, DataType::Varchar(None), true),
    });
    Ok((Schema::new(columns.collect()).map_err(InterchangeError::from)?, positions))
}

fn by_name(source: &TableSchema, keys: &TableSchema) -> Result<Vec<usize>> {
    let position = |column: &Column| {
        let found = source.schema().index_of(&column.name);
        found.map_err(|e| InterchangeError::Mismatch(format!("the source lacks a column of the primary key: {e}")).into())
    };
    keys.schema().columns().iter().map(position).collect()
}

/// The table whose rows change.
struct Target<'d> {
    tables: Tables<'d>,
    schema: TableSchema,
}

impl<'d> Target<'d> {
    fn find(database: &'d Database, table: &str) -> Result<Target<'d>> {
        let tables = Tables::find(database, table)?;
        if tables.first().attributes().primary_key.is_empty() {
            return Err(Error::Data(format!("table \"{table}\" has no primary key: its rows cannot be told apart")));
        }
        if tables.whole.is_none() {
            primary_key_index(tables.first())?;
        }
        Ok(Target { schema: table_schema(tables.first())?, tables })
    }

    fn first(&self) -> &Table {
        self.tables.first()
    }

    fn upsert(&self, transaction: &mut Transaction<'_>, report: &mut ChangeRowsReport, row: &[ValueRef<'_>]) -> Result<()> {
        let key: Vec<ValueRef<'_>> = self.first().attributes().primary_key.iter().map(|column| row[*column]).collect();
        let place = self.tables.place_of(row, &mut Vec::new())?;
        let found = match self.find_row(transaction, place, &key)? {
            Some((at, rid)) => transaction.row(self.tables.table(at)?, rid)?.map(|before| (at, rid, before)),
            None => None,
        };
        let Some((at, rid, before)) = found else {
            transaction.insert(self.tables.table(place)?, row)?;
            report.inserted += 1;
            return Ok(());
        };
        let table = self.tables.table(at)?;
        if at != place {
            // It belongs in another partition now.
            transaction.delete(table, rid)?;
            transaction.insert(self.tables.table(place)?, row)?;
            report.updated += 1;
            return Ok(());
        }
        let both = row.iter().zip(&before).enumerate();
        let changes: Vec<(usize, ValueRef<'_>)> =
            both.filter(|(_, (new, old))| !is_same(**new, old.as_ref())).map(|(i, (new, _))| (i, *new)).collect();
        if changes.is_empty() {
            report.unchanged += 1;
        } else if transaction.update(table, rid, &changes)? {
            report.updated += 1;
        } else {
            // Another transaction has deleted it since.
            transaction.insert(table, row)?;
            report.inserted += 1;
        }
        Ok(())
    }

    fn delete(&self, transaction: &mut Transaction<'_>, report: &mut ChangeRowsReport, key: &[ValueRef<'_>]) -> Result<()> {
        let places = self.tables.places_of_key(key)?;
        match self.find_first(transaction, places, key)? {
            Some((at, rid)) if transaction.delete(self.tables.table(at)?, rid)? => report.deleted += 1,
            _ => report.not_found += 1,
        }
        Ok(())
    }

    /// The row with a key of the primary key: the number of its table, its RID. The row that is to have the key belongs in `place`.
    fn find_row(&self, transaction: &mut Transaction<'_>, place: usize, key: &[ValueRef<'_>]) -> Result<Option<(usize, Rid)>> {
        // Nearly always it stays where it is.
        match self.find_in(transaction, place, key)? {
            Some(rid) => Ok(Some((place, rid))),
            None => {
                let others = self.tables.places_of_key(key)?.into_iter().filter(|at| *at != place);
                self.find_first(transaction, others, key)
            }
        }
    }

    fn find_first(
        &self,
        transaction: &mut Transaction<'_>,
        places: impl IntoIterator<Item = usize>,
        key: &[ValueRef<'_>],
    ) -> Result<Option<(usize, Rid)>> {
        for at in places {
            if let Some(rid) = self.find_in(transaction, at, key)? {
                return Ok(Some((at, rid)));
            }
        }
        Ok(None)
    }

    fn find_in(&self, transaction: &mut Transaction<'_>, at: usize, key: &[ValueRef<'_>]) -> Result<Option<Rid>> {
        let table = self.tables.table(at)?;
        let index = primary_key_index(table)?;
        Ok(transaction.find(table, &index, key)?.first().copied())
    }
}

/// The same bytes? (0.0 is not -0.0, and a NaN is itself.)
fn is_same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Real(a), ValueRef::Real(b)) => a.to_bits() == b.to_bits(),
        (ValueRef::Double(a), ValueRef::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Calls `change` with each row of a source, in transactions.
fn run<'d>(
    database: &'d Database,
    source: &mut dyn Source,
    packer: &Packer<'_>,
    layout: &RowLayout,
    rows_per_transaction: Option<NonZeroU64>,
    progress: &dyn Progress,
    change: impl Fn(&mut Transaction<'d>, &mut ChangeRowsReport, &[ValueRef<'_>]) -> Result<()>,
) -> Result<ChangeRowsReport> {
    run_batches(database, source, packer, rows_per_transaction, progress, |work, rows| work.one_by_one(layout, rows, progress, &change))
}

/// Calls `change` with rows of a source, in transactions: as many at once as come together and belong into one.
fn run_batches<'d>(
    database: &'d Database,
    source: &mut dyn Source,
    packer: &Packer<'_>,
    rows_per_transaction: Option<NonZeroU64>,
    progress: &dyn Progress,
    change: impl Fn(&mut Work<'d>, &[PackedRow<'_>]) -> Result<()>,
) -> Result<ChangeRowsReport> {
    let mut work = Work { database, transaction: None, report: ChangeRowsReport::default(), committed_rows: 0 };
    let per_transaction = rows_per_transaction.map_or(u64::MAX, NonZeroU64::get);
    let outcome = with_batches(source, packer, None, 0, |batches| {
        while let Some(batch) = batches.next() {
            let batch = batch?;
            let rows: Vec<PackedRow<'_>> = batch.rows().iter().collect();
            let mut rest = &rows[..];
            while !rest.is_empty() {
                let wanted = per_transaction - (work.report.rows - work.committed_rows);
                let (now, later) = rest.split_at(rest.len().min(usize::try_from(wanted).unwrap_or(usize::MAX)));
                change(&mut work, now)?;
                if work.report.rows - work.committed_rows >= per_transaction {
                    work.commit()?;
                }
                progress.advance(now.len() as u64);
                work.look(progress)?;
                rest = later;
            }
            drop(rows);
            batches.reuse(batch);
        }
        work.look(progress)?;
        work.commit()
    });
    let outcome = outcome.map(|()| work.report).map_err(|error| work.explain(error.placed(source)));
    // Before anybody hears of an error, what is not committed is taken back.
    if let (Some(transaction), Err(_)) = (work.transaction.take(), &outcome) {
        transaction.rollback()?;
    }
    progress.finish();
    outcome
}

/// What is done so far.
struct Work<'d> {
    database: &'d Database,
    transaction: Option<Transaction<'d>>,
    report: ChangeRowsReport,
    committed_rows: u64,
}

impl<'d> Work<'d> {
    fn row(
        &mut self,
        layout: &RowLayout,
        row: PackedRow<'_>,
        change: impl Fn(&mut Transaction<'d>, &mut ChangeRowsReport, &[ValueRef<'_>]) -> Result<()>,
    ) -> Result<()> {
        let database = self.database;
        let transaction = self.transaction.get_or_insert_with(|| database.begin(TransactionOptions::default()));
        let values: Vec<ValueRef<'_>> = match row {
            PackedRow::Wide(values) => values.iter().map(Value::as_ref).collect(),
            PackedRow::Record(record) => {
                self.report.record_bytes += record.len() as u64;
                let value = |column| match layout.column(record, column) {
                    Ok(ColumnValue::Value(value)) => Ok(value),
                    Ok(ColumnValue::Large(_)) => Err(Error::Data("a packed row names a large value".into())),
                    Err(error) => Err(InterchangeError::from(error).into()),
                };
                (0..layout.column_count()).map(value).collect::<Result<_>>()?
            }
        };
        let number = self.report.rows + 1;
        change(transaction, &mut self.report, &values).map_err(|error| match error {
            Error::Engine(error @ pagefold_engine::Error::VersionsFull(_)) => {
                Error::Data(format!("row {number}: {error} (fewer rows in a transaction)"))
            }
            other => other.at_row(number - 1),
        })?;
        self.report.rows = number;
        Ok(())
    }

    /// Calls `change` with each of these rows.
    fn one_by_one(
        &mut self,
        layout: &RowLayout,
        rows: &[PackedRow<'_>],
        progress: &dyn Progress,
        change: impl Fn(&mut Transaction<'d>, &mut ChangeRowsReport, &[ValueRef<'_>]) -> Result<()>,
    ) -> Result<()> {
        for row in rows {
            self.row(layout, *row, &change)?;
            if self.report.rows.is_multiple_of(ROWS_PER_LOOK) {
                self.look(progress)?;
            }
        }
        Ok(())
    }

    /// Adds rows to a table, or each to its partition.
    fn append(&mut self, tables: &Tables<'_>, rows: &[PackedRow<'_>], progress: &dyn Progress) -> Result<()> {
        if tables.whole.is_none() {
            return self.append_to(tables.first(), rows, progress);
        }
        let (mut of_tables, mut key): (BTreeMap<usize, Vec<PackedRow<'_>>>, Vec<u8>) = (BTreeMap::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            let place = tables.place_of_row(*row, &mut key).map_err(|error| error.at_row(self.report.rows + number as u64))?;
            of_tables.entry(place).or_default().push(*row);
        }
        of_tables.iter().try_for_each(|(place, rows)| self.append_to(tables.table(*place)?, rows, progress))
    }

    fn append_to(&mut self, table: &Table, rows: &[PackedRow<'_>], progress: &dyn Progress) -> Result<()> {
        let database = self.database;
        let transaction = self.transaction.get_or_insert_with(|| database.begin(TransactionOptions::default()));
        let at_once = transaction.insert_rows(table, |batch| {
            rows.iter().try_for_each(|row| match row {
                PackedRow::Record(record) => batch.push_record(record),
                PackedRow::Wide(values) => batch.push(&values.iter().map(Value::as_ref).collect::<Vec<_>>()),
            })
        });
        let Ok(inserted) = at_once else {
            // One by one, the row that cannot come is found.
            return self.one_by_one(table.layout(), rows, progress, |transaction, report, row| {
                transaction.insert(table, row)?;
                report.inserted += 1;
                Ok(())
            });
        };
        self.report.rows += inserted;
        self.report.inserted += inserted;
        let record_bytes = |row: &PackedRow<'_>| if let PackedRow::Record(record) = row { record.len() as u64 } else { 0 };
        self.report.record_bytes += rows.iter().map(record_bytes).sum::<u64>();
        Ok(())
    }

    /// Stops when the user wants to.
    fn look(&self, progress: &dyn Progress) -> Result<()> {
        if progress.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<()> {
        if let Some(transaction) = self.transaction.take() {
            transaction.commit()?;
            self.report.transactions += 1;
            self.committed_rows = self.report.rows;
        }
        Ok(())
    }

    /// Says what of the source stays, when not everything is as it was.
    fn explain(&self, error: Error) -> Error {
        match (self.committed_rows, error) {
            (0, error) => error,
            (n, Error::Interrupted) => Error::Data(format!("interrupted; the first {n} rows of the source are committed")),
            (n, error) => Error::Data(format!("{error}; the first {n} rows of the source are committed")),
        }
    }
}

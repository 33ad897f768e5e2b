//! LOAD: files into a table, with its indexes.
//!
//! Rows are added to a table that is there in transactions (`change_rows`). Else: one thread reads and packs rows, some compress them, one stores them and collects keys. The table appears with all its rows and indexes, or not at all.

use crate::change_rows::append_rows;
use crate::estimate::choose_for_load;
use crate::index_build::{KeyCollector, KeyCollectors, stopped};
use crate::kept::{KeptIndexes, kept_notes};
use crate::load_threads::{Batches, with_batches};
use crate::options::INDEX_PAGE_BYTES;
use crate::partitions::{Tables, load_partitioned};
use crate::sample::sample_source;
use crate::{Error, LoadMode, LoadOptions, Progress, Result, Setting, Unit};
use pagefold_advisor::{Choice, TableOptions};
use pagefold_engine::database::{Change, Database, split_partition_name};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::pool::By;
use pagefold_engine::table_space::{BulkLoader, Method, RangeOf, Table, TableAttributes};
use pagefold_interchange::{
    Decided, Inputs, InterchangeError, Packer, Source, TableSchema, arrow_schema_from_bytes, arrow_schema_to_bytes,
};
use pagefold_types::{Direction, PackedRow, PackedRows, Rid, Schema, Value, ValueError, ValueRef};
use std::path::PathBuf;
use std::sync::Arc;

/// What LOAD did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of the files.
    pub source_bytes: u64,
    /// Bytes of the packed records.
    pub record_bytes: u64,
    /// Pages of the table, all kinds.
    pub pages: u64,
    /// Bytes of those.
    pub size_bytes: u64,
    /// Bytes of its indexes.
    pub index_bytes: u64,
    /// Does the table have a dictionary? (`fixed`, where one pays.)
    pub dictionary: bool,
    /// What was chosen as its method, if it was to be.
    pub choice: Option<Choice>,
    /// What was chosen as format and page size of its primary key's index, if they were to be.
    pub key_choice: Option<Choice>,
    /// What was decided about the files.
    pub decided: Decided,
    /// The columns of a primary key that a table that was replaced had, and has still.
    pub primary_key_kept: Vec<String>,
}

/// Loads files that together are one table.
///
/// # Errors
/// When a file cannot be read or its rows do not fit the table; a duplicate primary key; no room. The database is then as it was.
pub fn load(database: &Database, table: &str, files: &[PathBuf], options: &LoadOptions, progress: &dyn Progress) -> Result<LoadReport> {
    progress.start("reading", None, Unit::Bytes);
    load_inputs(database, table, &Inputs::open(database.outside().as_ref(), files)?, options, progress)
}

/// Loads files that are open already.
///
/// # Errors
/// As [`load`].
pub fn load_inputs(
    database: &Database,
    table: &str,
    inputs: &Inputs,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport> {
    let progress: &dyn Progress = &database.watch(format!("load {table}"), progress);
    progress.start("reading", None, Unit::Bytes);
    let mut open = options.source.clone();
    if let (Ok(existing), None) = (Tables::find(database, table), &open.csv.schema) {
        let columns = Some(table_schema(existing.first())?.given()?);
        match options.mode {
            // Text has the types of the table: it says none itself.
            LoadMode::Append => open.csv.schema = columns,
            LoadMode::Replace => open.csv.base = columns,
            LoadMode::Create => {}
        }
    }
    let mut source = inputs.source(database.outside().as_ref(), &open)?;
    progress.finish();
    load_source(database, table, source.as_mut(), options, progress)
}

/// Loads the rows of a source.
///
/// # Errors
/// As [`load`].
pub fn load_source(
    database: &Database,
    table: &str,
    source: &mut dyn Source,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport> {
    let target = Tables::find(database, table);
    if let (Ok(target), LoadMode::Append) = (&target, options.mode) {
        return append(database, target, source, options, progress);
    }
    if let (Ok(Tables { whole: None, .. }), Some(_)) = (&target, &options.division)
        && database.table(table).is_ok_and(|table| table.range().is_some())
    {
        return Err(Error::Usage(format!(
            "\"{table}\" is a partition: it is not divided once more; `pagefold partition split` divides it"
        )));
    }
    if options.division.is_some() || target.is_ok_and(|target| target.whole.is_some()) {
        return load_partitioned(database, table, source, options, progress);
    }
    let mut change = database.change();
    let mut report = LoadReport { source_bytes: source.bytes_total(), decided: source.decided(), ..LoadReport::default() };
    let kept;
    let options = match database.table(table) {
        Ok(old) if options.mode == LoadMode::Replace && options.primary_key.is_empty() && !old.attributes().primary_key.is_empty() => {
            let columns = old.attributes().schema.columns();
            report.primary_key_kept = old.attributes().primary_key.iter().map(|c| columns[*c].name.clone()).collect();
            kept = LoadOptions { primary_key: report.primary_key_kept.clone(), ..options.clone() };
            &kept
        }
        _ => options,
    };
    let (target, schema, collectors) = prepare(database, &mut change, table, source, options, &mut report, progress)?;
    let columns = schema.match_source(source.table(), !source.has_names())?;
    progress.start(&format!("loading {table}"), source.row_count(), Unit::Rows);
    let packer = Packer::new(&schema, target.layout(), columns, target.record_bytes_max());
    let loader = BulkLoader::new(&target)?;
    let encoder = loader.encoder();
    let stored = with_batches(source, &packer, encoder.as_ref(), options.encode_threads, |batches| {
        store_batches(loader, &target, &batches, collectors, &mut report, progress)
    });
    let collectors = stored.map_err(|error| error.placed(source))?;
    progress.finish();
    report.note_table(&target);
    for collector in collectors.into_vec() {
        let (index, _) = collector.build(progress).map_err(|error| find_twice(error, source, &packer, &target))?;
        report.index_bytes += u64::from(index.data_set().page_count()) * index.data_set().page_bytes() as u64;
    }
    if let Some((whole, _)) = split_partition_name(table).filter(|_| target.range().is_some()) {
        let whole = change.lock_partitioned_table(whole)?;
        change.check_all_keys(&whole, progress).map_err(stopped)?;
    }
    change.commit()?;
    Ok(report)
}

/// Names the rows that have the same key: reads the source again.
pub(crate) fn find_twice(error: Error, source: &mut dyn Source, packer: &Packer<'_>, table: &Table) -> Error {
    let Error::KeyTwice { index, key: twice, reason } = error else { return error };
    let (mut found, mut number) = (Vec::new(), 0u64);
    let (mut rows, mut key) = (PackedRows::default(), Vec::new());
    let Ok(batches) = source.batches() else { return Error::Data(reason) };
    for batch in batches {
        rows.clear();
        let Ok(()) = batch.and_then(|batch| packer.pack(&batch, &mut rows)) else { break };
        for row in rows.iter() {
            key.clear();
            let encoded = match row {
                PackedRow::Record(record) => index.key_layout().encode_from_record(table.layout(), record, &mut key).is_ok(),
                PackedRow::Wide(values) => {
                    let of_key: Vec<ValueRef<'_>> = index.attributes().columns.iter().map(|(c, _)| values[*c].as_ref()).collect();
                    index.key_layout().encode(&of_key, &mut key).is_ok()
                }
            };
            if encoded && key == twice {
                found.push(number);
            }
            number += 1;
        }
        if found.len() > 1 {
            break;
        }
    }
    let places: Vec<String> =
        found.into_iter().take(2).map(|row| source.place(row).unwrap_or_else(|| format!("row {}", row + 1))).collect();
    if places.is_empty() { Error::Data(reason) } else { Error::Data(format!("{}: {reason}", places.join(" and "))) }
}

/// Why a row could not be stored; of one that is too wide for its page with the page size that would do.
pub(crate) fn wide_row(error: &dyn std::fmt::Display, table: &Table, values: &[ValueRef<'_>]) -> String {
    let attributes = table.attributes();
    let planned = table.layout().plan_large(values, table.record_bytes_max(), &attributes.primary_key);
    let Err(ValueError::TooWide { bytes, .. }) = planned else { return error.to_string() };
    let larger = (1..=16).map(|n| n * 2048usize).filter(|size| *size > attributes.page_bytes);
    let enough = larger.filter(|size| TableOptions::new(*size).record_bytes_max() >= bytes).min();
    let page = attributes.page_bytes / 1024;
    match enough {
        Some(size) => format!("the row takes {bytes} bytes, too wide for pages of {page} KB; --page-size {}K would do", size / 1024),
        None => format!("the row takes {bytes} bytes, too wide for every page size"),
    }
}

/// Adds rows to a table that is in use.
fn append(
    database: &Database,
    tables: &Tables<'_>,
    source: &mut dyn Source,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport> {
    let mut report = LoadReport { source_bytes: source.bytes_total(), decided: source.decided(), ..LoadReport::default() };
    (report.rows, report.record_bytes) = append_rows(database, tables, source, options.rows_per_transaction, progress)?;
    tables.usable().for_each(|table| report.note_table(table));
    for index in tables.usable().flat_map(|table| database.indexes_of(table)) {
        report.index_bytes += u64::from(index.data_set().page_count()) * index.data_set().page_bytes() as u64;
    }
    Ok(report)
}

impl LoadReport {
    pub(crate) fn note_table(&mut self, table: &Table) {
        self.dictionary |= table.dictionary().is_some();
        for data_set in table.data_sets() {
            self.pages += u64::from(data_set.page_count());
            self.size_bytes += u64::from(data_set.page_count()) * data_set.page_bytes() as u64;
        }
    }
}

/// The table to fill, its columns, and the indexes whose keys are to be collected.
fn prepare<'a>(
    database: &Database,
    change: &mut Change<'a>,
    name: &str,
    source: &mut dyn Source,
    options: &LoadOptions,
    report: &mut LoadReport,
    progress: &dyn Progress,
) -> Result<(Arc<Table>, TableSchema, KeyCollectors)> {
    let existing = match (database.table(name), options.mode) {
        (Err(pagefold_engine::Error::Unknown { .. }), _) => None,
        // It is there, and cannot be opened: what is wrong with it is said.
        (Err(error), _) => return Err(error.into()),
        (Ok(_), LoadMode::Create) => return Err(Error::Data(format!("table \"{name}\" already exists; use --replace or --append"))),
        // From here on nobody changes it.
        (Ok(_), _) => Some(change.drop_table(name)?),
    };
    if options.keep_dictionary && options.method == Setting::Auto {
        return Err(Error::Usage("a dictionary can be kept only for the method that has it, not where one is to be chosen".into()));
    }
    let mut schema = source.table().clone();
    if let (Some(old), LoadMode::Replace) = (&existing, options.mode) {
        schema = schema.with_types_of(&table_schema(old)?)?;
    }
    let primary_key = primary_key(&mut schema, &options.primary_key, name)?;
    let (method, key) = choose_for_load(database, name, source, options, progress)?;
    let (method, choice) = method.unzip();
    report.choice = choice;
    let method = method.or(options.method.given()).unwrap_or(Method::None);
    let fresh = attributes_of(name, &schema, method, &primary_key, options);
    let notes = existing.as_ref().map(|old| kept_notes(old, &fresh)).transpose()?;
    let (notes, range) = (notes.unwrap_or_default(), range_kept(existing.as_deref(), &fresh)?);
    let attributes = TableAttributes { notes, range, ..fresh };
    let of_old = |old: &Arc<Table>| {
        let indexes = old.all_indexes().iter().map(|index| index.attributes_now()).collect();
        KeptIndexes::of(name, old, indexes, &attributes.schema)
    };
    let kept_indexes = existing.as_ref().map(of_old).transpose()?.unwrap_or_default();
    let table = change.create_table(attributes)?;
    if method.dictionary_type().is_some() {
        let kept = existing.filter(|_| options.keep_dictionary).and_then(|old| old.dictionary());
        match kept {
            Some(old) => table.set_dictionary(old.dictionary().clone())?,
            None => train_dictionary(&[Arc::clone(&table)], &schema, source, progress)?,
        }
    }
    let mut collectors = KeyCollectors::default();
    // A partition keeps its share of the index of the whole, a table the one of a key that nobody has named.
    let stays = table.range().is_some() || !report.primary_key_kept.is_empty();
    let indexes = kept_indexes.with_key(name, &primary_key, stays, |name| key_index(name, &primary_key, key, options, report));
    for attributes in indexes {
        let index = change.create_index(&table, attributes)?;
        collectors.push(KeyCollector::new(database, index, options.sort_bytes));
    }
    Ok((table, schema, collectors))
}

/// What the index of the primary key is to be: as was chosen, or as the options say.
pub(crate) fn key_index(
    name: String,
    primary_key: &[usize],
    chosen: Option<(IndexFormat, usize, Choice)>,
    options: &LoadOptions,
    report: &mut LoadReport,
) -> IndexAttributes {
    let (format, page_bytes) = match chosen {
        Some((format, page_bytes, choice)) => {
            report.key_choice = Some(choice);
            (format, page_bytes)
        }
        None => (options.key_format.given().unwrap_or(IndexFormat::Prefix), options.key_page_bytes.unwrap_or(INDEX_PAGE_BYTES)),
    };
    let columns = primary_key.iter().map(|column| (*column, Direction::Ascending)).collect();
    IndexAttributes::new(name, columns, true).with_format(format, page_bytes)
}

/// What the options say of a table that is to be made.
pub(crate) fn attributes_of(
    name: &str,
    schema: &TableSchema,
    method: Method,
    primary_key: &[usize],
    options: &LoadOptions,
) -> TableAttributes {
    let defaults = TableAttributes::new(name, schema.schema().clone()).with_page_bytes(options.page_bytes);
    TableAttributes {
        method,
        pctfree: options.pctfree,
        maxrows: options.maxrows.unwrap_or(defaults.maxrows),
        extents: options.extents,
        partition_bytes: options.partition_bytes.unwrap_or(defaults.partition_bytes),
        primary_key: primary_key.to_vec(),
        source_schema: arrow_schema_to_bytes(schema.arrow()),
        ..defaults
    }
}

/// The range of a partition whose rows are replaced: it keeps its columns.
fn range_kept(existing: Option<&Table>, new: &TableAttributes) -> Result<Option<RangeOf>> {
    let Some((old, range)) = existing.and_then(|old| Some((old, old.range()?))) else { return Ok(None) };
    if old.attributes().schema.columns().iter().map(|c| (&c.name, c.data_type)).ne(new
        .schema
        .columns()
        .iter()
        .map(|c| (&c.name, c.data_type)))
    {
        return Err(Error::Data(format!("table \"{}\" is a partition: it keeps the columns that it has", old.name())));
    }
    Ok(Some(range.clone()))
}

/// The columns of the primary key by number; they become NOT NULL.
pub(crate) fn primary_key(schema: &mut TableSchema, names: &[String], table: &str) -> Result<Vec<usize>> {
    let mut columns = Vec::with_capacity(names.len());
    let mut all = schema.schema().columns().to_vec();
    for name in names {
        let column = schema.schema().index_of(name).map_err(|e| Error::Usage(format!("primary key of \"{table}\": {e}")))?;
        if columns.contains(&column) {
            return Err(Error::Usage(format!("primary key of \"{table}\": column \"{name}\" comes twice")));
        }
        all[column].nullable = false;
        columns.push(column);
    }
    if !columns.is_empty() {
        let changed = Schema::new(all).map_err(InterchangeError::from)?;
        *schema = TableSchema::from_parts(schema.arrow().clone(), changed)?;
    }
    Ok(columns)
}

/// The columns of a table in both forms.
///
/// # Errors
/// When the stored source schema is damaged.
pub fn table_schema(table: &Table) -> Result<TableSchema> {
    let attributes = table.attributes();
    if attributes.source_schema.is_empty() {
        let dropped = (0..attributes.schema.len()).filter(|column| attributes.layouts.is_dropped(*column)).collect();
        return Ok(TableSchema::from_schema(attributes.schema.clone()).with_dropped(dropped));
    }
    Ok(TableSchema::from_parts(arrow_schema_from_bytes(&attributes.source_schema)?, attributes.schema.clone())?)
}

/// Trains a dictionary of a sample of a source for the tables whose method has one. They have the same columns.
pub(crate) fn train_dictionary(
    tables: &[Arc<Table>],
    schema: &TableSchema,
    source: &mut dyn Source,
    progress: &dyn Progress,
) -> Result<()> {
    let Some(table) = tables.iter().find(|table| table.attributes().method.dictionary_type().is_some()) else { return Ok(()) };
    progress.start(&format!("training the dictionary of {}", table.name()), None, Unit::Rows);
    let columns = schema.match_source(source.table(), !source.has_names())?;
    debug_assert!(columns.is_sorted());
    let sampler = match sample_source(source, schema, table.layout(), table.record_bytes_max()) {
        // The load itself comes to that row, and says which it is.
        Err(Error::Interchange(InterchangeError::Value { .. })) => return Ok(()),
        sampler => sampler?,
    };
    // A source that does not know has at least the rows that came.
    let rows_total = source.row_count().unwrap_or(sampler.seen());
    let sample = sampler.into_sample();
    let mut trained: Vec<(Method, usize, Option<_>)> = Vec::new();
    for table in tables.iter().filter(|table| table.attributes().method.dictionary_type().is_some()) {
        let (method, page_bytes) = (table.attributes().method, table.attributes().page_bytes);
        if !trained.iter().any(|known| (known.0, known.1) == (method, page_bytes)) {
            trained.push((method, page_bytes, sample.train(method, table.layout(), rows_total, table.attributes().page_fill())));
        }
        let known = trained.iter().find(|known| (known.0, known.1) == (method, page_bytes));
        if let Some(dictionary) = known.and_then(|known| known.2.clone()) {
            table.set_dictionary(dictionary)?;
        }
    }
    progress.finish();
    Ok(())
}

fn store_batches(
    mut loader: BulkLoader<'_>,
    table: &Table,
    batches: &Batches,
    mut collectors: KeyCollectors,
    report: &mut LoadReport,
    progress: &dyn Progress,
) -> Result<KeyCollectors> {
    let mut built = Vec::new();
    while let Some(batch) = batches.next() {
        let batch = batch?;
        let first = report.rows;
        let mut placed = |rid: Rid, record: &[u8]| {
            report.record_bytes += record.len() as u64;
            collectors.push_row(table, record, rid)
        };
        let build = |number: usize, values: &[Value], record: &mut Vec<u8>| {
            let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            record.clear();
            table.build_record(By::Nobody, &refs, record).map_err(|error| match error {
                error @ pagefold_engine::Error::Value(_) => {
                    Error::Row { row: first + number as u64, reason: wide_row(&error, table, &refs) }
                }
                other => other.into(),
            })
        };
        if let Some(columns) = batch.columns() {
            // Rows up to one that is too wide go together.
            let mut records: Vec<&[u8]> = Vec::with_capacity(batch.len());
            for (number, row) in batch.rows().iter().enumerate() {
                match row {
                    PackedRow::Record(record) => records.push(record),
                    PackedRow::Wide(values) => {
                        loader.push_prepared(&records, columns, number - records.len(), &mut placed)?;
                        records.clear();
                        build(number, values, &mut built)?;
                        loader.push(&built, &mut placed)?;
                    }
                }
            }
            loader.push_prepared(&records, columns, batch.len() - records.len(), &mut placed)?;
        } else {
            for (number, (row, encoded)) in batch.rows().iter().zip(batch.records()).enumerate() {
                match row {
                    PackedRow::Record(record) => loader.push_encoded(record, encoded, &mut placed)?,
                    PackedRow::Wide(values) => {
                        build(number, values, &mut built)?;
                        loader.push(&built, &mut placed)?;
                    }
                }
            }
        }
        report.rows += batch.len() as u64;
        progress.advance(batch.len() as u64);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        batches.reuse(batch);
    }
    loader.finish(|rid, record| {
        report.record_bytes += record.len() as u64;
        collectors.push_row(table, record, rid)
    })?;
    Ok(collectors)
}

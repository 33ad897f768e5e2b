//! LOAD into a partitioned table: one thread reads and packs rows, one says which partition each goes to, some fill partitions, each its own.
//!
//! Invariants:
//! - the rows of a partition are stored in the order of the source, by one thread;
//! - memory does not grow with the number of partitions beyond a page being filled, a small buffer and a share of the memory for sorting for each;
//! - the table appears with all partitions, rows and indexes, or not at all.

use crate::access::like_index;
use crate::error::no_thread;
use crate::estimate::choose_for_load;
use crate::index_build::{KeyCollector, KeyCollectors, stopped};
use crate::kept::{KeptIndexes, kept_notes};
use crate::load::{LoadReport, attributes_of, find_twice, key_index, primary_key, table_schema, train_dictionary, wide_row};
use crate::load_threads::with_batches;
use crate::partitions::Tables;
use crate::{Error, LoadMode, LoadOptions, Progress, Result, Silent, Unit};
use pagefold_engine::Error as EngineError;
use pagefold_engine::database::{Change, Database, PartitionSpec};
use pagefold_engine::index::{Index, IndexAttributes};
use pagefold_engine::pool::By;
use pagefold_engine::table_space::{BulkLoader, Method, Table, TableAttributes};
use pagefold_interchange::{Packer, Source, TableSchema};
use pagefold_types::{PackedRow, Value, ValueRef};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

/// Batches that wait for a thread that fills partitions.
const BATCHES_WAITING: usize = 4;
/// Memory of all buffers of pages that are to be written.
const BUFFER_BYTES: usize = 64 << 20;
/// Memory for sorting the keys of an index of one partition, at least.
const SORT_BYTES_MIN: usize = 128 << 10;

/// Those of one partition.
type Indexes = Vec<Arc<Index>>;

/// Rows on their way to the partitions of one thread.
#[derive(Default)]
struct Routed {
    bytes: Vec<u8>,
    /// Partition, and where the record ends.
    records: Vec<(u32, usize)>,
    /// Rows that are too wide for a page: behind so many records, which partition, which row of the source, its values.
    wide: Vec<(usize, u32, u64, Vec<Value>)>,
}

/// Loads the rows of a source into a table that is divided, or is to be.
///
/// # Errors
/// As [`load`](crate::load()); when a row belongs in no partition.
pub(crate) fn load_partitioned(
    database: &Database,
    name: &str,
    source: &mut dyn Source,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport> {
    let mut change = database.change();
    let mut report = LoadReport { source_bytes: source.bytes_total(), decided: source.decided(), ..LoadReport::default() };
    let (tables, schema, indexes) = prepare(database, &mut change, name, source, options, &mut report, progress)?;
    let columns = schema.match_source(source.table(), !source.has_names())?;
    let packer = Packer::new(&schema, tables.first().layout(), columns, tables.record_bytes_max());
    progress.start(&format!("loading {name}"), source.row_count(), Unit::Rows);
    let stored = store(database, source, &packer, &tables, indexes, options, &mut report, progress);
    stored.map_err(|error| match error {
        twice @ Error::KeyTwice { .. } => find_twice(twice, source, &packer, tables.first()),
        other => other.placed(source),
    })?;
    progress.finish();
    if let Some(whole) = &tables.whole {
        change.check_all_keys(whole, progress).map_err(stopped)?;
    }
    tables.usable().for_each(|table| report.note_table(table));
    change.commit()?;
    Ok(report)
}

/// The partitions to fill, their columns, and the indexes of each.
fn prepare<'d>(
    database: &'d Database,
    change: &mut Change<'_>,
    name: &str,
    source: &mut dyn Source,
    options: &LoadOptions,
    report: &mut LoadReport,
    progress: &dyn Progress,
) -> Result<(Tables<'d>, TableSchema, Vec<Indexes>)> {
    let existing = match Tables::find(database, name) {
        Err(Error::Engine(EngineError::Unknown { .. })) => None,
        found => Some(found?),
    };
    if existing.is_some() && options.mode == LoadMode::Create {
        return Err(Error::Data(format!("table \"{name}\" already exists; use --replace or --append")));
    }
    if options.keep_dictionary {
        return Err(Error::Usage("a dictionary cannot be kept where all partitions are loaded; load one: TABLE/PARTITION".into()));
    }
    let mut schema = source.table().clone();
    if let Some(old) = &existing {
        schema = schema.with_types_of(&table_schema(old.first())?)?;
    }
    let mut key_names = options.primary_key.clone();
    if let (true, Some(old)) = (key_names.is_empty(), &existing) {
        let columns = old.first().attributes().schema.columns();
        key_names = old.first().attributes().primary_key.iter().map(|column| columns[*column].name.clone()).collect();
        report.primary_key_kept.clone_from(&key_names);
    }
    let primary_key = primary_key(&mut schema, &key_names, name)?;
    let (method, key) = choose_for_load(database, name, source, options, progress)?;
    let (method, choice) = method.unzip();
    report.choice = choice;
    let method = method.or(options.method.given()).unwrap_or(Method::None);
    let mut attributes = attributes_of(name, &schema, method, &primary_key, options);
    if let Some(old) = &existing {
        attributes.notes = kept_notes(old.first(), &attributes)?;
    }
    let (columns, specs) = division(name, &attributes, existing.as_ref(), options)?;
    let indexes = kept_indexes(database, name, &attributes, existing.as_ref())?;
    // That of another key goes.
    let indexes = indexes.with_key(name, &primary_key, true, |name| key_index(name, &primary_key, key, options, report));
    match &existing {
        Some(Tables { whole: Some(_), .. }) => drop(change.drop_partitioned_table(name)?),
        Some(_) => drop(change.drop_table(name)?),
        None => {}
    }
    let tables = change.create_partitioned_table(&attributes, &columns, &specs)?;
    let whole = change.lock_partitioned_table(name)?;
    let mut of_tables: Vec<Indexes> = vec![Vec::new(); tables.len()];
    for index in &indexes {
        let made = change.create_partitioned_index(&whole, index)?;
        of_tables.iter_mut().zip(made).for_each(|(own, index)| own.push(index));
    }
    if tables.iter().any(|table| table.attributes().method.dictionary_type().is_some()) {
        // Trained once, of a sample of all rows: REORG of a partition gives it one of its own.
        train_dictionary(&tables, &schema, source, progress)?;
    }
    Ok((Tables::of(database, whole, tables)?, schema, of_tables))
}

/// How the table is to be divided: as is said, or as it was.
fn division(
    name: &str,
    attributes: &TableAttributes,
    existing: Option<&Tables<'_>>,
    options: &LoadOptions,
) -> Result<(Vec<usize>, Vec<PartitionSpec>)> {
    if let Some(division) = &options.division {
        let columns = division.columns_of(attributes)?;
        let specs = division.specs(attributes, &columns)?;
        return Ok((columns, specs));
    }
    let Some((whole, tables)) = existing.and_then(|existing| Some((existing.whole.as_ref()?, existing))) else {
        return Err(Error::Usage(format!("\"{name}\" is not divided, and it is not said how it is to be")));
    };
    let before = tables.first().attributes().schema.columns();
    let columns = whole.columns().iter().map(|column| {
        let found = attributes
            .schema
            .columns()
            .iter()
            .position(|own| own.name == before[*column].name && own.data_type == before[*column].data_type);
        found.ok_or_else(|| {
            Error::Data(format!("the new rows have no column \"{}\" as the old ones, by which \"{name}\" is divided", before[*column].name))
        })
    });
    let columns = columns.collect::<Result<Vec<usize>>>()?;
    let spec = |(at, partition): (usize, &pagefold_engine::database::RangePartition)| {
        // One that is damaged becomes like the others.
        let table = tables.table(at).unwrap_or_else(|_| tables.first());
        PartitionSpec {
            name: partition.name().to_owned(),
            // Gaps are closed, but for those of a table whose partitions were made with both bounds.
            start: whole.is_open().then(|| partition.keys().start.clone()),
            limit: partition.keys().end.clone(),
            method: options.keep_methods.then_some(table.attributes().method),
            page_bytes: Some(table.attributes().page_bytes),
        }
    };
    Ok((columns, whole.partitions().iter().enumerate().map(spec).collect()))
}

/// The indexes that a table had, for the columns of these names wherever they are now.
fn kept_indexes(database: &Database, name: &str, attributes: &TableAttributes, existing: Option<&Tables<'_>>) -> Result<KeptIndexes> {
    let Some(old) = existing else { return Ok(KeptIndexes::default()) };
    let found: Vec<IndexAttributes> = match &old.whole {
        None => old.first().all_indexes().iter().map(|index| index.attributes_now()).collect(),
        Some(whole) => {
            let of = |name: String| {
                let index = like_index(database, whole, &name)?;
                Ok(IndexAttributes { name, ..index.attributes_now() })
            };
            database.partitioned_indexes_of(whole).into_iter().map(of).collect::<Result<_>>()?
        }
    };
    KeptIndexes::of(name, old.first(), found, &attributes.schema)
}

/// A partition that is being filled.
struct Filling<'a> {
    table: &'a Table,
    loader: BulkLoader<'a>,
    collectors: KeyCollectors,
}

/// What a thread has done.
#[derive(Default)]
struct Filled {
    record_bytes: u64,
    index_bytes: u64,
}

#[allow(clippy::too_many_arguments, reason = "what a load consists of")]
fn store(
    database: &Database,
    source: &mut dyn Source,
    packer: &Packer<'_>,
    tables: &Tables<'_>,
    indexes: Vec<Indexes>,
    options: &LoadOptions,
    report: &mut LoadReport,
    progress: &dyn Progress,
) -> Result<()> {
    let threads = match options.encode_threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(4),
        wanted => wanted,
    };
    let all = tables.all()?;
    let threads = threads.clamp(1, all.len());
    let sorters = indexes.iter().map(Vec::len).sum::<usize>().max(1);
    let (buffer, sort) = (BUFFER_BYTES / all.len(), (options.sort_bytes / sorters).max(SORT_BYTES_MIN));
    let mut of_threads: Vec<Vec<(&Arc<Table>, Indexes)>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, pair) in all.iter().zip(indexes).enumerate() {
        of_threads[at % threads].push(pair);
    }
    std::thread::scope(|scope| {
        let (mut senders, mut fillers) = (Vec::new(), Vec::new());
        for partitions in of_threads {
            let (sender, receiver) = sync_channel(BATCHES_WAITING);
            let fill = move || fill(database, partitions, &receiver, (buffer, sort));
            fillers.push(Builder::new().spawn_scoped(scope, fill).map_err(|error| no_thread(&error))?);
            senders.push(sender);
        }
        let routed = with_batches(source, packer, None, 0, |batches| {
            let mut key = Vec::new();
            while let Some(batch) = batches.next() {
                let batch = batch?;
                let mut of_threads: Vec<Routed> = (0..threads).map(|_| Routed::default()).collect();
                for (number, row) in batch.rows().iter().enumerate() {
                    let number = report.rows + number as u64;
                    let place = tables.place_of_row(row, &mut key).map_err(|error| error.at_row(number))?;
                    of_threads[place % threads].push((place / threads) as u32, number, row);
                }
                send(&senders, of_threads)?;
                report.rows += batch.len() as u64;
                progress.advance(batch.len() as u64);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                batches.reuse(batch);
            }
            progress.finish();
            progress.start("building indexes", None, Unit::Rows);
            Ok(())
        });
        // Those who fill come to the end of their rows, or are told that nothing more comes.
        if routed.is_err() {
            senders.iter().for_each(|sender| drop(sender.send(None)));
        }
        drop(senders);
        let mut failed = None;
        for filler in fillers {
            match filler.join() {
                Ok(Ok(filled)) => {
                    report.record_bytes += filled.record_bytes;
                    report.index_bytes += filled.index_bytes;
                }
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // What stopped one who fills comes before that he could not be given more.
        match (failed, routed) {
            (Some(Error::Interrupted) | None, routed) => routed,
            (Some(error), _) => Err(error),
        }
    })
}

/// Hands rows to those who fill. `None` on the way means that the load is given up.
fn send(senders: &[SyncSender<Option<Routed>>], of_threads: Vec<Routed>) -> Result<()> {
    for (sender, rows) in senders.iter().zip(of_threads) {
        // One that has failed has hung up, and says why when it is asked.
        if !rows.records.is_empty() || !rows.wide.is_empty() {
            sender.send(Some(rows)).map_err(|_| Error::Interrupted)?;
        }
    }
    Ok(())
}

impl Routed {
    fn push(&mut self, partition: u32, number: u64, row: PackedRow<'_>) {
        match row {
            PackedRow::Record(record) => {
                self.bytes.extend_from_slice(record);
                self.records.push((partition, self.bytes.len()));
            }
            PackedRow::Wide(values) => self.wide.push((self.records.len(), partition, number, values.to_vec())),
        }
    }
}

/// Fills the partitions of one thread, and builds their indexes when all rows have come.
fn fill(
    database: &Database,
    partitions: Vec<(&Arc<Table>, Indexes)>,
    rows: &Receiver<Option<Routed>>,
    (buffer, sort): (usize, usize),
) -> Result<Filled> {
    let mut filled = Filled::default();
    let mut filling = Vec::with_capacity(partitions.len());
    for (table, indexes) in partitions {
        let mut collectors = KeyCollectors::default();
        indexes.into_iter().for_each(|index| collectors.push(KeyCollector::new(database, index, sort)));
        filling.push(Filling { table, loader: BulkLoader::with_buffer(table, buffer)?, collectors });
    }
    while let Ok(routed) = rows.recv() {
        let Some(routed) = routed else { return Err(Error::Interrupted) };
        let (mut start, mut wide) = (0, routed.wide.iter().peekable());
        for (at, (partition, end)) in routed.records.iter().enumerate() {
            while let Some((_, partition, number, values)) = wide.next_if(|(behind, ..)| *behind <= at) {
                filling[*partition as usize].push_wide(*number, values, &mut filled)?;
            }
            filling[*partition as usize].push(&routed.bytes[start..*end], &mut filled)?;
            start = *end;
        }
        for (_, partition, number, values) in wide {
            filling[*partition as usize].push_wide(*number, values, &mut filled)?;
        }
    }
    for Filling { table, loader, mut collectors } in filling {
        loader.finish(|rid, record| {
            filled.record_bytes += record.len() as u64;
            collectors.push_row(table, record, rid)
        })?;
        for collector in collectors.into_vec() {
            let (index, _) = collector.build(&Silent)?;
            filled.index_bytes += u64::from(index.data_set().page_count()) * index.data_set().page_bytes() as u64;
        }
    }
    Ok(filled)
}

impl Filling<'_> {
    fn push(&mut self, record: &[u8], filled: &mut Filled) -> Result<()> {
        let (table, collectors) = (self.table, &mut self.collectors);
        self.loader.push(record, |rid, record| {
            filled.record_bytes += record.len() as u64;
            collectors.push_row(table, record, rid)
        })
    }

    fn push_wide(&mut self, row: u64, values: &[Value], filled: &mut Filled) -> Result<()> {
        let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut record = Vec::new();
        self.table.build_record(By::Nobody, &refs, &mut record).map_err(|error| match error {
            error @ EngineError::Value(_) => Error::Row { row, reason: wide_row(&error, self.table, &refs) },
            other => other.into(),
        })?;
        self.push(&record, filled)
    }
}

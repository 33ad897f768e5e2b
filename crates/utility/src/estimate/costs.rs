//! What methods and formats cost on this machine: the rows and keys of a sample go into a database in memory, once for each way to store them.
//!
//! Processor time of this thread, so what other processes do counts little; the least of some rounds, so what caches and clocks do counts little. Rows come by transactions and are found
//! by a key of 8 bytes; keys are inserted between others, and looked up: the ways of the engine, with all that lies around the codecs, as that decides what a user sees of them.
//!
//! Invariant: bounded in rows and bytes, so that it takes a fifth of a second or less whatever is estimated.

use super::dictionary::Trained;
use super::random::SplitMix64;
use crate::{Error, Result};
use pagefold_advisor::{Cost, IndexCandidate, IndexEstimate, IndexSampler, LeafFormat};
use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, RowBuffer, TableAttributes};
use pagefold_io::{Clock, MemoryStorage, OsClock};
use pagefold_types::{Column, ColumnValue, DataType, Direction, KeyLayout, Rid, RowLayout, SLOT_MAX, Schema, Value, ValueRef};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows and keys, at most.
const ROWS_MAX: usize = 1000;
const KEYS_MAX: usize = 2000;
/// Bytes of them, at most.
const BYTES_MAX: usize = 512 << 10;
const ROWS_PER_TRANSACTION: usize = 100;
const ROUNDS: usize = 3;
const READ_ROUNDS: usize = 3;
const MEMORY_BYTES: usize = 16 << 20;

/// Where costs come from.
#[derive(Clone, Copy, Debug, Default)]
pub enum Costs {
    /// Measured here.
    #[default]
    Measured,
    /// Given, by name of the method or format and page size.
    Given(fn(&str, usize) -> Cost),
}

/// Rows of a sample, as they follow each other there.
#[derive(Debug, Default)]
pub(super) struct RowSample {
    rows: Vec<Vec<Value>>,
    bytes: usize,
}

impl RowSample {
    /// The first of these records. Those with large values are passed over.
    pub(super) fn of<'r>(layout: &RowLayout, records: impl Iterator<Item = &'r [u8]>) -> RowSample {
        let mut sample = RowSample::default();
        for record in records {
            let Ok(columns) = layout.decode(record) else { continue };
            let value = |column: ColumnValue<'_>| if let ColumnValue::Value(value) = column { Some(value.to_owned()) } else { None };
            let Some(row) = columns.into_iter().map(value).collect() else { continue };
            sample.rows.push(row);
            sample.bytes += record.len();
            if sample.rows.len() >= ROWS_MAX || sample.bytes >= BYTES_MAX {
                break;
            }
        }
        sample
    }

    /// A table that is to be refused for two rows with one key has costs all the same.
    fn keep_one_of_each_key(&mut self, schema: &Schema, key: &[usize]) -> Result<()> {
        if key.is_empty() {
            return Ok(());
        }
        let layout = KeyLayout::new(schema, &ascending(key));
        let mut keys = BTreeSet::new();
        let mut failed = None;
        self.rows.retain(|row| {
            let values: Vec<ValueRef<'_>> = key.iter().map(|column| row[*column].as_ref()).collect();
            let mut bytes = Vec::new();
            match layout.encode(&values, &mut bytes) {
                Ok(_) => keys.insert(bytes),
                Err(error) => {
                    failed = Some(Error::Data(error.to_string()));
                    false
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }
}

fn ascending(columns: &[usize]) -> Vec<(usize, Direction)> {
    columns.iter().map(|column| (*column, Direction::Ascending)).collect()
}

/// Keys of a sample, with their RIDs.
#[derive(Debug, Default)]
pub(super) struct KeySample {
    entries: Vec<(Vec<u8>, Rid)>,
    bytes: usize,
}

impl KeySample {
    pub(super) fn push(&mut self, key: &[u8], rid: Rid) {
        if self.entries.len() < KEYS_MAX && self.bytes < BYTES_MAX {
            self.entries.push((key.to_vec(), rid));
            self.bytes += key.len();
        }
    }

    pub(super) fn of(sampler: &IndexSampler) -> KeySample {
        let mut sample = KeySample::default();
        sampler.entries().for_each(|(key, rid)| sample.push(key, rid));
        sample
    }
}

/// The index that keys are of.
pub(super) struct KeysOf<'s> {
    pub(super) schema: &'s Schema,
    pub(super) columns: &'s [(usize, Direction)],
    pub(super) unique: bool,
}

fn scratch() -> Result<Database> {
    let pools = PoolSettings { memory_bytes: MEMORY_BYTES, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, direct: false, ..Settings::default() };
    Ok(Database::open(Arc::new(MemoryStorage::new()), Arc::new(OsClock), Path::new("costs"), OpenMode::Create, settings)?)
}

/// Nanoseconds that each of `count` operations takes.
fn each_ns(count: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = OsClock.thread_cpu();
    work()?;
    Ok(OsClock.thread_cpu().saturating_sub(start).max(Duration::from_nanos(1)).as_nanos() as f64 / count.max(1) as f64)
}

/// The least of both.
fn least(of: &mut Option<Cost>, read_ns: f64, write_ns: f64) {
    let before = of.unwrap_or(Cost { read_ns: f64::INFINITY, write_ns: f64::INFINITY });
    *of = Some(Cost { read_ns: before.read_ns.min(read_ns), write_ns: before.write_ns.min(write_ns) });
}

fn shuffled<T>(mut items: Vec<T>) -> Vec<T> {
    let count = items.len() as u64;
    SplitMix64(1).choose(&mut items, count);
    items
}

impl Costs {
    /// What methods cost for rows like these, with the dictionaries that were trained for them; rows of a table with a primary key go into its index, too. Nothing without rows.
    pub(super) fn of_methods(
        self,
        (schema, primary_key): (&Schema, &[usize]),
        mut sample: RowSample,
        trained: &[Trained],
        page_bytes: usize,
    ) -> Result<Vec<(&'static str, Cost)>> {
        if let Costs::Given(cost) = self {
            return Ok(Method::ALL.map(|method| (method.name(), cost(method.name(), page_bytes))).to_vec());
        }
        let mut costs = [None; Method::ALL.len()];
        sample.keep_one_of_each_key(schema, primary_key)?;
        if sample.rows.is_empty() {
            return Ok(Vec::new());
        }
        // One for all rounds: what it takes to make its files and to touch its memory is in the first round alone.
        let database = scratch()?;
        for round in 0..ROUNDS {
            for (method, cost) in Method::ALL.into_iter().zip(&mut costs) {
                let dictionary = trained.iter().find(|t| t.method == method && t.page_sizes.contains(&page_bytes));
                let (read_ns, write_ns) =
                    measure_method(&database, (method, round), (schema, primary_key), &sample, dictionary, page_bytes)?;
                least(cost, read_ns, write_ns);
            }
        }
        Ok(Method::ALL.into_iter().zip(costs).filter_map(|(method, cost)| Some((method.name(), cost?))).collect())
    }

    /// What formats cost for keys like these, by estimate. Nothing for those that do not take the keys, and without keys.
    pub(super) fn of_formats(self, index: &KeysOf<'_>, mut sample: KeySample, estimates: &[IndexEstimate]) -> Result<Vec<Option<Cost>>> {
        if let Costs::Given(cost) = self {
            return Ok(estimates.iter().map(|e| Some(cost(e.candidate.format(), e.candidate.page_bytes))).collect());
        }
        let mut costs = vec![None; estimates.len()];
        sample.entries.sort_unstable();
        // A unique index that is to be refused for two rows with one key has costs all the same.
        sample.entries.dedup_by(|a, b| a.0 == b.0 && (index.unique || a.1 == b.1));
        if sample.entries.len() < 2 {
            return Ok(costs);
        }
        let database = scratch()?;
        for round in 0..ROUNDS {
            for (estimate, cost) in estimates.iter().zip(&mut costs).filter(|(estimate, _)| estimate.key_too_long.is_none()) {
                let (read_ns, write_ns) = measure_format(&database, index, &sample, (&estimate.candidate, round))?;
                least(cost, read_ns, write_ns);
            }
        }
        Ok(costs)
    }
}

/// A unique index of the numbers of rows: what a row is found by.
fn numbers(database: &Database, name: &str, rids: &[Rid]) -> Result<Arc<Index>> {
    let schema = Schema::new(vec![Column::new("number", DataType::BigInt, false)]).map_err(|e| Error::Data(e.to_string()))?;
    let name = format!("numbers of {name}");
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new(&name, schema))?;
    let index = change.create_index(&table, IndexAttributes::new(format!("key of {name}"), vec![(0, Direction::Ascending)], true))?;
    let mut builder = index.build(SLOT_MAX);
    for (number, rid) in rids.iter().enumerate() {
        builder.push(&encoded(&index, &[ValueRef::Int(number as i64)])?, *rid)?;
    }
    builder.finish()?;
    change.commit()?;
    Ok(index)
}

fn encoded(index: &Index, key: &[ValueRef<'_>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    index.key_layout().encode(key, &mut bytes).map(|_| bytes).map_err(|e| Error::Data(e.to_string()))
}

/// Time to read two columns of a row by its key, and to insert one. Without a primary key rows are found by their numbers.
fn measure_method(
    database: &Database,
    (method, round): (Method, usize),
    (schema, primary_key): (&Schema, &[usize]),
    sample: &RowSample,
    dictionary: Option<&Trained>,
    page_bytes: usize,
) -> Result<(f64, f64)> {
    let name = format!("{method} {round}");
    let mut change = database.change();
    let mut attributes = TableAttributes { method, ..TableAttributes::new(&name, schema.clone()).with_page_bytes(page_bytes) };
    attributes.primary_key = primary_key.to_vec();
    let table = change.create_table(attributes)?;
    let key = match primary_key.is_empty() {
        true => None,
        false => Some(change.create_index(&table, IndexAttributes::new(format!("key of {name}"), ascending(primary_key), true))?),
    };
    if let Some(trained) = dictionary {
        table.set_dictionary(trained.dictionary.clone())?;
    }
    change.commit()?;
    let rows: Vec<Vec<ValueRef<'_>>> = sample.rows.iter().map(|row| row.iter().map(Value::as_ref).collect()).collect();
    let unsynced = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
    let mut rids = Vec::with_capacity(rows.len());
    let write_ns = each_ns(rows.len(), || {
        for group in rows.chunks(ROWS_PER_TRANSACTION) {
            let mut transaction = database.begin(unsynced);
            for row in group {
                rids.push(transaction.insert(&table, row)?);
            }
            transaction.commit()?;
        }
        Ok(())
    })?;
    let (index, keys) = match key {
        Some(index) => (index, rows.iter().map(|row| primary_key.iter().map(|column| row[*column]).collect()).collect()),
        None => (numbers(database, &name, &rids)?, (0..rids.len()).map(|number| vec![ValueRef::Int(number as i64)]).collect()),
    };
    let keys: Vec<Vec<ValueRef<'_>>> = shuffled(keys);
    // One in front and one further behind.
    let mut buffer = RowBuffer::for_columns(&table, &[0, schema.len() / 2]);
    let mut read_ns = f64::INFINITY;
    for _ in 0..READ_ROUNDS {
        let mut transaction = database.begin(unsynced);
        let ns = each_ns(keys.len(), || {
            for key in &keys {
                if !primary_key.is_empty() {
                    transaction.get_with(&table, &index, key, &mut buffer, |_, record| black_box(record).len())?;
                } else if let Some(rid) = index.tree().first_rid(&encoded(&index, key)?)? {
                    transaction.read(&table, rid, &mut buffer, |record| black_box(record).len())?;
                }
            }
            Ok(())
        })?;
        read_ns = read_ns.min(ns);
    }
    Ok((read_ns, write_ns))
}

/// Time to find a key, and to insert one between others.
fn measure_format(
    database: &Database,
    of: &KeysOf<'_>,
    sample: &KeySample,
    (candidate, round): (&IndexCandidate, usize),
) -> Result<(f64, f64)> {
    let format = match candidate.format {
        LeafFormat::Plain => IndexFormat::Plain,
        LeafFormat::Fold => IndexFormat::Fold,
        LeafFormat::Prefix => IndexFormat::Prefix,
    };
    let name = format!("{format} {} {round}", candidate.page_bytes);
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new(&name, of.schema.clone()).with_page_bytes(32768))?;
    let attributes =
        IndexAttributes::new(format!("key of {name}"), of.columns.to_vec(), of.unique).with_format(format, candidate.page_bytes);
    let index: Arc<Index> = change.create_index(&table, attributes)?;
    let slot_max = sample.entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0);
    let mut builder = index.build(slot_max);
    for (key, rid) in sample.entries.iter().step_by(2) {
        builder.push(key, *rid)?;
    }
    builder.finish()?;
    change.commit()?;
    let others = shuffled(sample.entries.iter().skip(1).step_by(2).collect());
    let write_ns = each_ns(others.len(), || {
        others.iter().try_for_each(|(key, rid)| index.tree().insert(key, *rid))?;
        Ok(())
    })?;
    let keys = shuffled(sample.entries.iter().collect());
    let mut read_ns = f64::INFINITY;
    for _ in 0..READ_ROUNDS {
        let ns = each_ns(keys.len(), || {
            for (key, _) in &keys {
                black_box(index.tree().first_rid(key)?);
            }
            Ok(())
        })?;
        read_ns = read_ns.min(ns);
    }
    Ok((read_ns, write_ns))
}

//! What methods and formats cost on this machine: the rows and keys of a sample go into a database in memory, once for each way to store them.
//!
//! Rows come by transactions, into the index of the primary key as well, and are found by it; keys are inserted between others, and looked up: the ways of the engine, with all that lies around
//! the codecs, as that decides what a user sees of them.
//!
//! * `in_turn`: timing several ways to do the same
//! * `methods`: tables; `formats`: indexes
//!
//! Invariant: bounded in rows and bytes, so that it takes a fifth of a second or less whatever is estimated.

mod formats;
mod in_turn;
mod methods;

use super::dictionary::Trained;
use super::random::SplitMix64;
use crate::{Progress, Result};
pub(crate) use in_turn::InTurn;
use pagefold_advisor::{Cost, IndexCandidate, IndexEstimate, IndexSampler};
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::Method;
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_types::{ColumnValue, Direction, KeyLayout, Rid, RowLayout, Schema, Value, ValueRef, key_bytes_max};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Rows and keys, at most.
const ROWS_MAX: usize = 1000;
const KEYS_MAX: usize = 2000;
/// Bytes of a page of the primary key's index.
const KEY_PAGE_BYTES: usize = 8192;
/// Bytes of them, at most.
const BYTES_MAX: usize = 512 << 10;
const ROUNDS: usize = 3;
const READ_ROUNDS: usize = 3;
const MEMORY_BYTES: usize = 16 << 20;

/// Where costs come from.
#[derive(Clone, Copy, Debug, Default)]
pub enum Costs {
    /// Measured here.
    #[default]
    Measured,
    /// Not known, and not to be known.
    Unknown,
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

    /// The rows with keys that no row before has: a table that is to be refused for two rows with one key has costs all the same. `None` when an index takes not all of the keys, which is for the
    /// estimate of that index to say.
    fn with_one_of_each_key(&self, schema: &Schema, key: &[usize]) -> Option<Vec<Vec<Value>>> {
        let layout = KeyLayout::new(schema, &ascending(key));
        let mut keys = BTreeSet::new();
        let mut rows = Vec::new();
        for row in &self.rows {
            let values: Vec<ValueRef<'_>> = key.iter().map(|column| row[*column].as_ref()).collect();
            let mut bytes = Vec::new();
            layout.encode(&values, &mut bytes).ok().filter(|_| bytes.len() <= key_bytes_max(KEY_PAGE_BYTES))?;
            if keys.insert(bytes) {
                rows.push(row.clone());
            }
        }
        Some(rows)
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

/// A database in memory.
pub(crate) fn scratch_database(memory_bytes: usize) -> Result<Database> {
    let pools = PoolSettings { memory_bytes, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, direct: false, ..Settings::default() };
    Ok(Database::open(Arc::new(MemoryStorage::new()), Arc::new(OsClock), Path::new("costs"), OpenMode::Create, settings)?)
}

impl Costs {
    /// What methods cost for rows like these, with the dictionaries that were trained for them; rows of a table with a primary key go into its index, too. Nothing without rows.
    pub(super) fn of_methods(
        self,
        (schema, primary_key): (&Schema, &[usize]),
        sample: RowSample,
        trained: &[Trained],
        page_bytes: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<(&'static str, Cost)>> {
        if let Costs::Given(cost) = self {
            return Ok(Method::ALL.map(|method| (method.name(), cost(method.name(), page_bytes))).to_vec());
        }
        if sample.rows.is_empty() || matches!(self, Costs::Unknown) {
            return Ok(Vec::new());
        }
        let unique = if primary_key.is_empty() { None } else { sample.with_one_of_each_key(schema, primary_key) };
        let (rows, key) = unique.as_ref().map_or((&sample.rows, &[][..]), |rows| (rows, primary_key));
        let costs = methods::costs(&scratch_database(MEMORY_BYTES)?, (schema, key), rows, trained, page_bytes, progress)?;
        Ok(Method::ALL.iter().map(|method| method.name()).zip(costs).collect())
    }

    /// What formats cost for keys like these, by estimate. Nothing for those that do not take the keys, and without keys.
    pub(super) fn of_formats(
        self,
        index: &KeysOf<'_>,
        mut sample: KeySample,
        estimates: &[IndexEstimate],
        progress: &dyn Progress,
    ) -> Result<Vec<Option<Cost>>> {
        if let Costs::Given(cost) = self {
            return Ok(estimates.iter().map(|e| Some(cost(e.candidate.format(), e.candidate.page_bytes))).collect());
        }
        if matches!(self, Costs::Unknown) {
            return Ok(vec![None; estimates.len()]);
        }
        sample.entries.sort_unstable();
        // A unique index that is to be refused for two rows with one key has costs all the same.
        sample.entries.dedup_by(|a, b| a.0 == b.0 && (index.unique || a.1 == b.1));
        if sample.entries.len() < 2 {
            return Ok(vec![None; estimates.len()]);
        }
        let able: Vec<&IndexCandidate> = estimates.iter().filter(|e| e.key_too_long.is_none()).map(|e| &e.candidate).collect();
        let mut costs = formats::costs(&scratch_database(MEMORY_BYTES)?, index, &sample.entries, &able, progress)?.into_iter();
        Ok(estimates.iter().map(|e| if e.key_too_long.is_none() { costs.next() } else { None }).collect())
    }
}

/// In an order that is the same each time.
pub(crate) fn shuffled<T>(mut items: Vec<T>) -> Vec<T> {
    let count = items.len() as u64;
    SplitMix64(1).choose(&mut items, count);
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_types::{Column, DataType};

    /// What an index does not take is no reason not to say what methods cost.
    #[test]
    fn rows_with_any_keys_have_costs() {
        let schema =
            Schema::new(vec![Column::new("k", DataType::Varchar(None), false), Column::new("v", DataType::Integer, false)]).unwrap();
        for (longest, rows) in [(10, 300), (1900, 100), (2500, 100), (6000, 40)] {
            let row = |number: usize| vec![Value::Text("k".repeat(longest - number % 7)), Value::Int(number as i64)];
            let sample = RowSample { rows: (0..rows).map(row).collect(), bytes: 0 };
            let costs = Costs::Measured.of_methods((&schema, &[0]), sample, &[], 8192, &crate::Silent).unwrap();
            let names: Vec<&str> = costs.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, Method::ALL.map(|method| method.name()));
            assert!(costs.iter().all(|(_, cost)| cost.read_ns > 0.0 && cost.write_ns > 0.0), "{costs:?}");
        }
    }
}

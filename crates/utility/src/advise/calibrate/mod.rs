//! What operations cost on this machine: some rows of a table, and some entries of an index, go into a database in memory, once for each way to store them, and there the engine does what it does
//! for programs.
//!
//! * `tables`: methods; `indexes`: formats and page sizes
//! * `file`: a calibration as a JSON document
//!
//! Rows and entries are from the same places each time. Times are those of the thread's processor; ways take turns, and of what a piece of work took in several rounds the least counts
//! (`estimate/costs/in_turn.rs`).
//!
//! Invariant: bounded in rows and bytes, so an object takes about a second whatever its size.

mod file;
mod indexes;
mod tables;

use crate::estimate::index::for_each_entry;
use crate::estimate::scratch_database;
use crate::reorg::sample_table;
use crate::{Error, Progress, Result};
use pagefold_advisor::{Cost, IndexCandidate, OperationCosts};
use pagefold_codec::row::RowDictionary;
use pagefold_engine::database::{Database, ScanRequest};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::{Method, Table};
use pagefold_types::{Rid, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows, and entries, at most.
const ROWS_MAX: usize = 12_000;
/// Bytes of them, at most.
const BYTES_MAX: usize = 3 << 20;
/// In so many runs, at equal distances.
const RUNS: usize = 8;
const MEMORY_BYTES: usize = 128 << 20;

/// One way to store a table, or an index.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WayCosts {
    /// Of single operations, for predictions.
    pub operations: OperationCosts,
    /// What a user sees: two columns of a row found by its key, a row inserted with its key; or a key found, and inserted.
    pub cost: Cost,
}

/// Costs by way: by name of the method; by name of the format and page size.
pub type CostsByWay = BTreeMap<String, WayCosts>;

/// What was measured, by object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Tables.
    pub tables: BTreeMap<String, CostsByWay>,
    /// Indexes.
    pub indexes: BTreeMap<String, CostsByWay>,
}

/// The name of a format with a page size.
pub(super) fn format_key(format: &str, page_bytes: usize) -> String {
    format!("{format} {page_bytes}")
}

impl Calibration {
    /// What the methods of a table cost: as it was measured before, or measured now.
    pub(super) fn of_table(&mut self, database: &Database, table: &Arc<Table>, progress: &dyn Progress) -> Result<&CostsByWay> {
        if !self.tables.contains_key(table.name()) {
            let costs = calibrate_table(database, table, progress)?;
            self.tables.insert(table.name().to_owned(), costs);
        }
        Ok(&self.tables[table.name()])
    }

    /// What formats and page sizes of an index cost, likewise.
    pub(super) fn of_index(
        &mut self,
        database: &Database,
        index: &Index,
        candidates: &[IndexCandidate],
        progress: &dyn Progress,
    ) -> Result<&CostsByWay> {
        if !self.indexes.contains_key(index.name()) {
            let costs = calibrate_index(database, index, candidates, progress)?;
            self.indexes.insert(index.name().to_owned(), costs);
        }
        Ok(&self.indexes[index.name()])
    }
}

/// Rows of a table: the first of some runs of pages at equal distances, or all of a small one. Those with large values are passed over.
fn some_rows(database: &Database, table: &Arc<Table>) -> Result<Vec<Vec<Value>>> {
    let pages: Vec<(u16, u32)> = (0..)
        .zip(table.data_sets())
        .flat_map(|(partition, set)| set.data_page_numbers().into_iter().map(move |page| (partition, page)))
        .collect();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for run in 0..RUNS {
        let part = &pages[pages.len() * run / RUNS..pages.len() * (run + 1) / RUNS];
        let mut scan = database.read_view().scan_pages(table, part.to_vec(), &ScanRequest::default())?.into_rows();
        while rows.len() < ROWS_MAX * (run + 1) / RUNS && bytes < BYTES_MAX * (run + 1) / RUNS {
            let Some((_, record)) = scan.next_record()? else { break };
            bytes += record.len();
            if table.layout().large_values(record).is_ok_and(|large| large.is_empty()) {
                rows.push(table.values(record)?);
            }
        }
    }
    Ok(rows)
}

/// Entries of an index in their order: runs of leaves at equal distances, or all of a small one.
fn some_entries(index: &Index) -> Result<Vec<(Vec<u8>, Rid)>> {
    let pages = index.used_page_numbers();
    let mut entries: Vec<(Vec<u8>, Rid)> = Vec::new();
    let mut bytes = 0;
    for run in 0..RUNS {
        let (mut at, end) = (pages.len() * run / RUNS, pages.len() * (run + 1) / RUNS);
        let mut next = None;
        while entries.len() < ROWS_MAX * (run + 1) / RUNS && bytes < BYTES_MAX * (run + 1) / RUNS {
            // The leaf behind this one; where a run begins, or ends, the next page of its part.
            let number = match next.take() {
                Some(number) => number,
                None if at < end => {
                    at += 1;
                    pages[at - 1]
                }
                None => break,
            };
            next = index
                .visit_leaf(number, |leaf| {
                    for_each_entry(leaf, |key, rid| {
                        bytes += key.len();
                        entries.push((key.to_vec(), rid));
                        Ok(())
                    })?;
                    Ok::<_, Error>(leaf.next())
                })?
                .filter(|after| *after != 0);
        }
    }
    // Runs may reach into each other.
    entries.sort_unstable();
    entries.dedup_by(|a, b| a.0 == b.0 && (index.attributes().unique || a.1 == b.1));
    Ok(entries)
}

fn calibrate_table(database: &Database, table: &Arc<Table>, progress: &dyn Progress) -> Result<CostsByWay> {
    let rows = some_rows(database, table)?;
    if rows.is_empty() {
        return Ok(CostsByWay::new());
    }
    let attributes = table.attributes();
    // The dictionaries that a REORG would train.
    let sample = sample_table(table, progress)?;
    let dictionary = |method: Method| -> Option<RowDictionary> {
        method.dictionary_type()?;
        sample.train(method, table.layout(), table.row_count(), attributes.page_fill())
    };
    let dictionaries = Method::ALL.map(dictionary);
    progress.start(&format!("calibrating with rows of {}", table.name()), None, crate::Unit::Rows);
    let of = tables::RowsOf { schema: &attributes.schema, key: &attributes.primary_key, page_bytes: attributes.page_bytes, rows: &rows };
    let costs = tables::costs(&scratch_database(MEMORY_BYTES)?, &of, &dictionaries, progress)?;
    progress.finish();
    Ok(Method::ALL.iter().map(|method| method.name().to_owned()).zip(costs).collect())
}

fn calibrate_index(database: &Database, index: &Index, candidates: &[IndexCandidate], progress: &dyn Progress) -> Result<CostsByWay> {
    let entries = some_entries(index)?;
    if entries.len() < 2 {
        return Ok(CostsByWay::new());
    }
    progress.start(&format!("calibrating with keys of {}", index.name()), None, crate::Unit::Rows);
    let table = database.table_of(index)?;
    let attributes = index.attributes();
    let of = indexes::EntriesOf {
        schema: &table.attributes().schema,
        columns: &attributes.columns,
        unique: attributes.unique,
        entries: &entries,
    };
    let costs = indexes::costs(&scratch_database(MEMORY_BYTES)?, &of, candidates, progress)?;
    progress.finish();
    Ok(candidates.iter().map(|c| format_key(c.format(), c.page_bytes)).zip(costs).collect())
}

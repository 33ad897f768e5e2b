//! RUNSTATS: what is in tables and indexes, with a bound for each figure, from all pages or from random ones; kept with the object in the catalog.
//!
//! * `sample`: how much is read
//! * `table`, `column`: a table and its columns; `index`: an index
//! * `bounds`: intervals from sums over pages; `hyperloglog`: distinct values in little memory; `values`: values while they are counted
//! * `fresh`: kept fresh in the background
//! * `text`: as a person reads it; `json`: as a program does
//!
//! Nothing here changes a row or waits for who does: pages are read as a scan reads them.

mod bounds;
mod column;
mod fresh;
mod hyperloglog;
mod index;
mod json;
mod sample;
mod table;
mod text;
mod values;

pub(crate) use text::time_text;

pub use fresh::{FreshCounts, FreshOptions, FreshStatistics};
pub use sample::{SAMPLE_PAGES_MIN, Sample};

use crate::partitions::Tables;
use crate::{Error, Progress, Result};
use pagefold_engine::database::{Database, GatheredStatistics};
use pagefold_engine::table_space::Table;
use pagefold_format::catalog::{Figure, Statistics, figure};
use pagefold_io::{Clock, OsClock};
use pagefold_types::Column;
use std::sync::Arc;

/// Options of RUNSTATS.
#[derive(Clone, Debug)]
pub struct RunstatsOptions {
    /// How much is read.
    pub sample: Sample,
    /// Which sample.
    pub seed: u64,
    /// Are the statistics kept in the catalog? If not, they are only reported, and the database may be open for reading.
    pub keep: bool,
}

impl Default for RunstatsOptions {
    fn default() -> RunstatsOptions {
        RunstatsOptions { sample: Sample::All, seed: 1, keep: true }
    }
}

/// Statistics of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexRunstats {
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// No key twice?
    pub unique: bool,
    /// What was found.
    pub statistics: Statistics,
}

/// Statistics of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRunstats {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// What was found.
    pub statistics: Statistics,
    /// Of its indexes.
    pub indexes: Vec<IndexRunstats>,
    /// Changes of rows since, as far as they are known.
    pub rows_changed: u64,
}

/// The outcome of RUNSTATS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunstatsReport {
    /// Tables, in the order in which they were named.
    pub tables: Vec<TableRunstats>,
    /// Tables of which nothing is known, where what is kept was asked for.
    pub without: Vec<String>,
}

/// Gathers statistics of these tables and their indexes, of all tables when none is named, and keeps them in the catalog. Transactions go on beside it. Of damaged indexes nothing is gathered.
///
/// # Errors
/// When there is no such table, a page is damaged, the statistics cannot be kept, or the user wants to stop: tables that are done are done.
pub fn runstats(database: &Database, tables: &[String], options: &RunstatsOptions, progress: &dyn Progress) -> Result<RunstatsReport> {
    let progress: &dyn Progress = &database.watch(format!("runstats {}", tables.join(", ")), progress);
    if let Sample::Percent(percent) = options.sample
        && !(percent > 0.0 && percent <= 100.0)
    {
        return Err(Error::Usage(format!("a sample of {percent} %: more than 0, and 100 at most, can be read")));
    }
    let names = names_of(database, tables)?;
    let mut report = RunstatsReport::default();
    for name in names {
        match database.table(&name).map_err(Error::from).and_then(|table| of_table(database, &table, options, progress)) {
            Ok(of_table) => report.tables.push(of_table),
            // It was dropped or replaced meanwhile.
            Err(Error::Engine(pagefold_engine::Error::Unknown { .. } | pagefold_engine::Error::Stale { .. })) if tables.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// All tables when none is named; of a partitioned table its partitions.
fn names_of(database: &Database, tables: &[String]) -> Result<Vec<String>> {
    if tables.is_empty() {
        return Ok(database.table_names());
    }
    let mut names = Vec::with_capacity(tables.len());
    for name in tables {
        names.extend(Tables::find(database, name)?.all()?.iter().map(|table| table.name().to_owned()));
    }
    Ok(names)
}

/// The same, of the tables of which more than a share of the rows has changed since, or of which nothing is known. What changed is known as long as the database is open; of the time before, how
/// many rows came or went.
///
/// # Errors
/// As [`runstats`].
pub fn runstats_if_stale(database: &Database, share: f64, options: &RunstatsOptions, progress: &dyn Progress) -> Result<RunstatsReport> {
    let mut stale = Vec::new();
    for name in database.table_names() {
        match database.table(&name) {
            Ok(table) if is_stale(&table, share) => stale.push(name),
            // Damaged ones are left to CHECK; others may be gone.
            Ok(_) | Err(_) => {}
        }
    }
    if stale.is_empty() { Ok(RunstatsReport::default()) } else { runstats(database, &stale, options, progress) }
}

/// Has more than a share of a table's rows changed since its statistics were gathered? Of one without statistics, yes.
#[must_use]
pub fn is_stale(table: &Table, share: f64) -> bool {
    kept(&table.notes()).is_none_or(|statistics| has_changed(table, &statistics, share, 0))
}

/// The same, and so many rows at least. Of a table without statistics those count that it has.
#[must_use]
pub fn is_stale_by(table: &Table, share: f64, rows_min: u64) -> bool {
    match kept(&table.notes()) {
        Some(statistics) => has_changed(table, &statistics, share, rows_min),
        None => table.row_count().max(table.rows_changed()) >= rows_min.max(1),
    }
}

fn has_changed(table: &Table, statistics: &Statistics, share: f64, rows_min: u64) -> bool {
    let changed = rows_changed(table, statistics);
    changed as f64 > share * rows_then(statistics).max(1.0) && changed >= rows_min
}

fn rows_then(statistics: &Statistics) -> f64 {
    statistics.figures.get(figure::ROWS).map_or(0.0, |rows| rows.value)
}

/// Rows that have changed since: those that were counted, and at least those by which there are more or fewer.
fn rows_changed(table: &Table, statistics: &Statistics) -> u64 {
    table.rows_changed().max((table.row_count() as f64 - rows_then(statistics)).abs() as u64)
}

/// Statistics that are kept of an object. Those that cannot be read are none: they come again.
pub(crate) fn kept(notes: &pagefold_format::catalog::Notes) -> Option<Statistics> {
    Statistics::decode(notes.statistics()?).ok()
}

/// The statistics that are kept of these tables and their indexes, of all tables when none is named.
///
/// # Errors
/// When there is no such table, or it cannot be opened.
pub fn kept_statistics(database: &Database, tables: &[String]) -> Result<RunstatsReport> {
    let names = names_of(database, tables)?;
    let mut report = RunstatsReport::default();
    for name in names {
        let table = database.table(&name)?;
        let Some(statistics) = kept(&table.notes()) else {
            report.without.push(name);
            continue;
        };
        let rows_changed = rows_changed(&table, &statistics);
        let mut found = described(&table, statistics, rows_changed);
        found.indexes = table.indexes().iter().filter_map(|index| Some(described_index(&table, index, kept(&index.notes())?))).collect();
        report.tables.push(found);
    }
    Ok(report)
}

fn described(table: &Table, statistics: Statistics, rows_changed: u64) -> TableRunstats {
    let columns = table.attributes().schema.columns().to_vec();
    TableRunstats { name: table.name().into(), columns, statistics, indexes: Vec::new(), rows_changed }
}

fn described_index(table: &Table, index: &pagefold_engine::index::Index, statistics: Statistics) -> IndexRunstats {
    let columns = table.attributes().schema.columns();
    let name_of = |(column, _): &(usize, _)| columns.get(*column).map_or_else(|| "?".into(), |column| column.name.clone());
    let names = index.attributes().columns.iter().map(name_of).collect();
    IndexRunstats { name: index.name().into(), columns: names, unique: index.attributes().unique, statistics }
}

fn of_table(database: &Database, table: &Arc<Table>, options: &RunstatsOptions, progress: &dyn Progress) -> Result<TableRunstats> {
    let covered = table.rows_changed();
    let gathered_ms = u64::try_from(OsClock.unix_time().as_millis()).unwrap_or(u64::MAX);
    let mut statistics = table::gather(&database.read_view(), table, options.sample, options.seed, progress)?;
    statistics.gathered_ms = gathered_ms;
    let mut indexes = Vec::new();
    for index in table.indexes().iter() {
        let of_index = index::gather(index, options.sample, options.seed, progress)?;
        indexes.push((Arc::clone(index), Statistics { gathered_ms, ..of_index }));
    }
    for (index, of_index) in &indexes {
        let Some(first) = index.attributes().columns.first().map(|column| column.0) else { continue };
        if let (Some(column), Some(distinct)) = (statistics.columns.get_mut(first), of_index.prefixes.first()) {
            let nullable = table.attributes().schema.columns()[first].nullable;
            closer(column, *distinct, nullable);
        }
    }
    if options.keep {
        let gathered = GatheredStatistics {
            table: Some(statistics.encode()),
            rows_changed: covered,
            indexes: indexes.iter().map(|(index, statistics)| (Arc::clone(index), statistics.encode())).collect(),
        };
        database.set_statistics(table, gathered)?;
    }
    let mut out = described(table, statistics, table.rows_changed().saturating_sub(if options.keep { 0 } else { covered }));
    out.indexes = indexes.into_iter().map(|(index, statistics)| described_index(table, &index, statistics)).collect();
    Ok(out)
}

/// The number of distinct values of a column that an index begins with is known by the index, too: there equal values are neighbours. Both intervals hold, so what both have does.
fn closer(column: &mut pagefold_format::catalog::ColumnStatistics, of_index: Figure, nullable: bool) {
    let Some(known) = column.figures.get(figure::DISTINCT).filter(|known| !known.is_exact()) else { return };
    // NULL is a key, and no value; who has seen none of it does not know that there is none.
    let has_nulls = nullable && column.figures.get(figure::NULL_SHARE).is_none_or(|share| share.value > 0.0);
    let less = |is_less: bool| if is_less { 1.0 } else { 0.0 };
    let of_index =
        Figure { value: of_index.value - less(has_nulls), low: of_index.low - less(nullable), high: of_index.high - less(has_nulls) };
    let (low, high) = (known.low.max(of_index.low), known.high.min(of_index.high));
    if low > high {
        // One of them does not hold. What was seen is there.
        return column.figures.set(figure::DISTINCT, Figure::within(known.low, known.low, known.high.max(of_index.high)));
    }
    let is_closer = of_index.high - of_index.low < known.high - known.low;
    let value = if is_closer { of_index.value } else { known.value };
    column.figures.set(figure::DISTINCT, Figure::within(value.clamp(low, high), low, high));
}

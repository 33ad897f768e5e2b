//! Statistics of a table: its pages, all of them or random ones, read one by one.
//!
//! Rows come as a snapshot sees them, each with the page that is its home, while others write. How they lie is looked at on the page itself.

use super::bounds::RatioSums;
use super::column::{ColumnCollector, Reading};
use super::sample::Sample;
use crate::estimate::random::SplitMix64;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::DataSet;
use pagefold_engine::database::{ReadView, ScanRequest};
use pagefold_engine::pool::Access;
use pagefold_engine::table_space::{ColumnBatch, Table};
use pagefold_format::FormatError;
use pagefold_format::catalog::{Figure, Looked, Statistics, figure};
use pagefold_format::data::{Body, DataPage, Stored};
use std::sync::Arc;

/// Rows in the runs of all pages together, about: what a column keeps of each is bounded by this.
const RUN_ROWS: u64 = 24 * 1024;
/// Where everything is read anyway, more of them cost little.
const RUN_ROWS_OF_ALL: u64 = 256 * 1024;
/// The shortest run.
const RUN_MIN: u64 = 4;
/// Pages between two looks at whether to stop.
const WINDOW: usize = 32;

/// How rows lie on one page.
#[derive(Default)]
struct Lying {
    rows: u64,
    stored_bytes: u64,
    moved: u64,
    compressed: u64,
}

impl Lying {
    fn of(view: &DataPage<'_>) -> std::result::Result<Lying, FormatError> {
        let mut lying = Lying { stored_bytes: view.column_part().map_or(0, |part| part.area().len()) as u64, ..Lying::default() };
        for row in (0..view.slot_count()).filter_map(|slot| view.row(slot)) {
            match Stored::parse(row, view.dictionary_version())? {
                Stored::Home(body) => lying.count(row.own_bytes(), &body, false),
                Stored::Away { body, .. } => lying.count(row.bytes.len(), &body, true),
                Stored::Hosted { body, .. } => lying.count(row.own_bytes(), &body, true),
                Stored::Forward(_) | Stored::HostedForward { .. } => lying.stored_bytes += row.bytes.len() as u64,
                Stored::Forwarded(_) => {}
            }
        }
        Ok(lying)
    }

    fn count(&mut self, stored_bytes: usize, body: &Body<'_>, has_moved: bool) {
        self.rows += 1;
        self.stored_bytes += stored_bytes as u64;
        self.moved += u64::from(has_moved);
        self.compressed += u64::from(!matches!(body, Body::Plain(_)));
    }
}

/// Which rows of a page are in its run.
struct Runs {
    /// Every so manieth page has one, from this one on.
    step: usize,
    first: usize,
    rows: u64,
}

impl Runs {
    /// For so many pages, on which so many rows are expected.
    fn new(pages: u64, rows: u64, rows_max: u64, random: &mut SplitMix64) -> Runs {
        if rows <= rows_max {
            return Runs { step: 1, first: 0, rows: u64::MAX };
        }
        let rows = (rows_max / pages.max(1)).max(RUN_MIN);
        let step = (pages * rows).div_ceil(rows_max).max(1);
        Runs { step: step as usize, first: random.below(step) as usize, rows }
    }

    fn has(&self, page: usize) -> bool {
        page % self.step == self.first
    }
}

/// What is gathered of a table.
struct Gathered {
    columns: Vec<ColumnCollector>,
    /// Of pages: 1, and 1 if it has rows.
    with_rows: RatioSums,
    record_bytes: RatioSums,
    stored_bytes: RatioSums,
    moved: RatioSums,
    compressed: RatioSums,
    run_ends: Vec<usize>,
    rows: u64,
    run_rows: u64,
}

impl Gathered {
    fn new(table: &Table, counts_all: bool) -> Gathered {
        let columns = table.attributes().schema.columns().iter().enumerate();
        Gathered {
            columns: columns.map(|(number, column)| ColumnCollector::new(number, column.data_type, counts_all)).collect(),
            with_rows: RatioSums::default(),
            record_bytes: RatioSums::default(),
            stored_bytes: RatioSums::default(),
            moved: RatioSums::default(),
            compressed: RatioSums::default(),
            run_ends: Vec::new(),
            rows: 0,
            run_rows: 0,
        }
    }

    /// How the rows of a page lie, committed or not.
    fn look_at(&mut self, table: &Table, data_set: &DataSet, number: u32) -> Result<()> {
        // One that was given back meanwhile had no rows.
        let lying = match table.data_page(data_set, number, Access::Scan)? {
            Some(page) => Lying::of(&DataPage::new(&page)).map_err(|error| data_set.corrupt(number, error))?,
            None => Lying::default(),
        };
        let rows = lying.rows as f64;
        self.stored_bytes.push(rows, lying.stored_bytes as f64);
        self.moved.push(rows, lying.moved as f64);
        self.compressed.push(rows, lying.compressed as f64);
        Ok(())
    }

    /// The rows whose home is a page, of which so many are in its run; `fixed_bytes` has every record.
    fn read(&mut self, batch: &ColumnBatch, fixed_bytes: u64, run_max: u64, random: &mut SplitMix64) {
        let rows = batch.len() as u64;
        let run_rows = rows.min(run_max);
        let start = if run_rows == 0 { 0 } else { random.below(rows - run_rows + 1) };
        let (run, run_number) = (start as usize..(start + run_rows) as usize, self.run_ends.len() as u32 + 1);
        let columns = batch.columns().iter().zip(&mut self.columns);
        let variable_bytes: u64 = columns.map(|(column, collector)| collector.push(column, batch.len(), run.clone(), run_number)).sum();
        if run_max > 0 {
            self.run_rows += run_rows;
            self.run_ends.push(self.run_rows as usize);
        }
        self.rows += rows;
        self.columns.iter_mut().for_each(|column| column.end_page(rows));
        self.with_rows.push(1.0, if rows > 0 { 1.0 } else { 0.0 });
        self.record_bytes.push(rows as f64, (rows * fixed_bytes + variable_bytes) as f64);
    }

    fn finish(self, table: &Table, pages: u64, is_all: bool) -> Statistics {
        let mut out = Statistics::default();
        let pages_read = self.with_rows.clusters();
        out.looked = Looked { pages_read, pages, rows_read: self.rows };
        // What was there when pages were read one by one is what there is to know of the rest.
        let rows = if is_all { self.rows } else { table.row_count() };
        let left_pages = if is_all { 0.0 } else { 1.0 - pages_read as f64 / pages.max(1) as f64 };
        let all_in_runs = is_all && self.run_rows == self.rows;
        let left_rows = if all_in_runs { 0.0 } else { (1.0 - self.run_rows as f64 / rows.max(1) as f64).clamp(1e-9, 1.0) };
        let all_pages: u64 = table.data_sets().map(|data_set| u64::from(data_set.page_count())).sum();
        for (number, figure) in [
            (figure::ROWS, Figure::exact(rows as f64)),
            (figure::DATA_PAGES, Figure::exact(pages as f64)),
            (figure::PAGES, Figure::exact(all_pages as f64)),
            (figure::RECORD_BYTES, self.record_bytes.mean(left_pages)),
            (figure::STORED_BYTES, self.stored_bytes.mean(left_pages)),
            (figure::MOVED_SHARE, self.moved.share(left_pages)),
            (figure::COMPRESSED_SHARE, self.compressed.share(left_pages)),
            (figure::PAGES_WITH_ROWS_SHARE, self.with_rows.share(left_pages)),
        ] {
            out.figures.set(number, figure);
        }
        let reading = Reading { left_pages, left_rows, rows: rows as f64, run_ends: self.run_ends };
        out.columns = self.columns.into_iter().map(|column| column.finish(&reading)).collect();
        out
    }
}

/// Partition and number of the pages to read, in order.
fn pages_of(table: &Table, wanted: Option<u64>, random: &mut SplitMix64) -> Vec<(u16, u32)> {
    let data_sets: Vec<&Arc<DataSet>> = table.data_sets().collect();
    let Some(wanted) = wanted else {
        let numbered = (0..).zip(data_sets);
        return numbered.flat_map(|(p, data_set)| data_set.data_page_numbers().into_iter().map(move |n| (p, n))).collect();
    };
    let sizes: Vec<u64> = data_sets.iter().map(|data_set| u64::from(data_set.facts().data_pages)).collect();
    let all: u64 = sizes.iter().sum::<u64>().max(1);
    let mut pages = Vec::new();
    for (partition, (data_set, size)) in (0..).zip(data_sets.into_iter().zip(sizes)) {
        // Each partition in proportion; what is left of a page goes by chance.
        let share = u128::from(wanted) * u128::from(size);
        let extra = u64::from(u128::from(random.below(all)) < share % u128::from(all));
        let own = (share / u128::from(all)) as u64 + extra;
        let mut drawn: Vec<(u16, u32)> = data_set.draw_pages(own, false, |n| random.below(n)).into_iter().map(|n| (partition, n)).collect();
        drawn.sort_unstable();
        pages.append(&mut drawn);
    }
    pages
}

/// Gathers statistics of a table.
///
/// # Errors
/// When a page is damaged, or the user wants to stop.
pub(super) fn gather(view: &ReadView, table: &Arc<Table>, sample: Sample, seed: u64, progress: &dyn Progress) -> Result<Statistics> {
    let mut random = SplitMix64(seed);
    let data_pages: u64 = table.data_sets().map(|data_set| u64::from(data_set.facts().data_pages)).sum();
    let wanted = sample.pages_of(data_pages);
    let pages = pages_of(table, wanted, &mut random);
    let is_all = wanted.is_none();
    let (rows_max, rows_expected) = match wanted {
        None => (RUN_ROWS_OF_ALL, table.row_count()),
        Some(wanted) => (RUN_ROWS, (table.row_count() as f64 * wanted as f64 / data_pages.max(1) as f64) as u64),
    };
    let runs = Runs::new(pages.len() as u64, rows_expected, rows_max, &mut random);
    let mut gathered = Gathered::new(table, is_all && rows_expected > rows_max);
    progress.start(&format!("reading {}{}", if is_all { "" } else { "a sample of " }, table.name()), Some(pages.len() as u64), Unit::Pages);
    let data_sets: Vec<&Arc<DataSet>> = table.data_sets().collect();
    let fixed_bytes = table.layout().fixed_len() as u64;
    let mut scan = view.scan_pages(table, pages.clone(), &ScanRequest::default())?;
    let mut used = None;
    for (first, window) in (0..).step_by(WINDOW).zip(pages.chunks(WINDOW)) {
        for (at, (partition, number)) in (first..).zip(window) {
            let Some(batch) = scan.next_step(used.take())? else { break };
            gathered.read(&batch, fixed_bytes, if runs.has(at) { runs.rows } else { 0 }, &mut random);
            gathered.look_at(table, data_sets[usize::from(*partition)], *number)?;
            used = Some(batch);
        }
        progress.advance(window.len() as u64);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    let mut statistics = gathered.finish(table, if is_all { pages.len() as u64 } else { data_pages }, is_all);
    statistics.seed = (!is_all).then_some(seed);
    Ok(statistics)
}

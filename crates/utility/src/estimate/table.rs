//! A table that exists: as it would be after a REORG, and with indexes it does not have.

use super::candidates::Candidates;
use super::costs::RowSample;
use super::dictionary::{self, SAME_TABLE_MARGIN, Trained};
use super::options::{EstimateOptions, Proposal, Scratch};
use super::proposed::{ProposedIndex, ProposedKeys};
use super::random::SplitMix64;
use super::ranges::{Clusters, KeyRanges};
use super::report::{EstimateReport, IndexesEstimate, MethodEstimate, ObjectNow, SampleFacts};
use super::source::{feed_clusters, finish_ranges, range_start};
use super::stand_in::{Scaling, StandIn};
use crate::progress::{rows_per_look, tell};
use crate::reorg::sample_table;
use crate::{Error, Progress, Result, Unit};
use pagefold_advisor::{Cost, TableEstimate, TableEstimator, TableOptions};
use pagefold_engine::database::{Database, ReadView, ScanRequest};
use pagefold_engine::table_space::{Method, Table};
use pagefold_format::data::PageFill;
use pagefold_format::data::forms::RecordEncoder;
use pagefold_types::{CompactLayout, PackedRow, Rid, Value, ValueRef};
use std::sync::Arc;

fn now(table: &Table) -> ObjectNow {
    let attributes = table.attributes();
    let pages: u64 = table.data_sets().map(|data_set| u64::from(data_set.page_count())).sum();
    ObjectNow {
        method: attributes.method.name().into(),
        page_bytes: attributes.page_bytes,
        pages,
        data_pages: table.data_sets().map(|data_set| data_set.data_page_numbers().len() as u64).sum(),
        size_bytes: pages * attributes.page_bytes as u64,
    }
}

/// The page size that a table is to have.
fn page_bytes_of(table: &Table, options: &EstimateOptions) -> usize {
    options.page_bytes_anew.unwrap_or(table.attributes().page_bytes)
}

fn pctfree_of(table: &Table, options: &EstimateOptions) -> u8 {
    options.pctfree_anew.unwrap_or(table.attributes().pctfree)
}

/// How the table is to be stored at each page size.
fn options_anew(table: &Table, options: &EstimateOptions, page_bytes: usize) -> TableOptions {
    let own = table.attributes();
    TableOptions { page_bytes, pctfree: pctfree_of(table, options), maxrows: own.maxrows, partition_bytes: own.partition_bytes }
}

fn fills(table: &Table, options: &EstimateOptions, page_sizes: &[usize]) -> Vec<PageFill> {
    page_sizes.iter().map(|page_bytes| options_anew(table, options, *page_bytes).fill()).collect()
}

fn costs(
    table: &Table,
    options: &EstimateOptions,
    sample: RowSample,
    trained: &[Trained],
    progress: &dyn Progress,
) -> Result<Vec<(&'static str, Cost)>> {
    let attributes = table.attributes();
    options.costs.of_methods((&attributes.schema, &attributes.primary_key), sample, trained, page_bytes_of(table, options), progress)
}

/// Large values of a record lie in pages of the old table: such rows are estimated by their values.
fn values_of(table: &Table, record: &[u8]) -> Result<Option<Vec<Value>>> {
    let large = table.layout().large_values(record).map_err(|e| Error::Data(format!("table \"{}\": {e}", table.name())))?;
    Ok(if large.is_empty() { None } else { Some(table.values(record)?) })
}

/// The table as it is, packed anew, comes last: its number.
fn add_candidates(
    table: &Table,
    estimator: &mut TableEstimator<'_>,
    trained: &[Trained],
    page_sizes: &[usize],
    options: &EstimateOptions,
) -> (usize, Candidates) {
    let own = table.attributes();
    let as_it_is = TableOptions { pctfree: own.pctfree, ..options_anew(table, options, own.page_bytes) };
    let candidates = Candidates::add(estimator, table.layout(), trained, page_sizes, |page_bytes| options_anew(table, options, page_bytes));
    let old = table.dictionary();
    if own.method == Method::Page {
        let dictionary = old.as_ref().map(|old| old.dictionary());
        return (estimator.add_columns(own.method.name(), as_it_is, dictionary), candidates);
    }
    let encoder = match (own.method, old) {
        (Method::Row, _) => Some((estimator.add_encoder(RecordEncoder::compact(CompactLayout::new(table.layout().clone()))), None)),
        (_, Some(old)) => Some((estimator.add_encoder(RecordEncoder::codes(1, old.dictionary())), Some(old.dictionary().to_bytes().len()))),
        (_, None) => None,
    };
    (estimator.add(own.method.name(), as_it_is, encoder), candidates)
}

fn report(
    table: &Table,
    mut estimates: Vec<TableEstimate>,
    present: usize,
    page_bytes: usize,
    costs: &[(&'static str, Cost)],
) -> EstimateReport {
    let now = now(table);
    let before = estimates.remove(present);
    let mut report = EstimateReport { object: table.name().into(), rows: table.row_count(), ..EstimateReport::default() };
    report.set_methods(MethodEstimate::all(estimates, Some((&before, &now))), page_bytes, costs);
    report.now = Some(now);
    report
}

/// Estimates a table of a database.
///
/// # Errors
/// When there is no such table, a page is damaged, or a proposed index names a column that does not exist.
pub fn estimate_table(database: &Database, name: &str, options: &EstimateOptions, progress: &dyn Progress) -> Result<EstimateReport> {
    let table = database.table(name)?;
    let schema = &table.attributes().schema;
    let proposals = options.proposals.iter().map(|p| ProposedIndex::new(p, schema)).collect::<Result<Vec<_>>>()?;
    let fits = |size: &usize| table.layout().fixed_len() <= TableOptions::new(*size).record_bytes_max();
    let page_sizes: Vec<usize> = options.page_sizes_with(page_bytes_of(&table, options)).into_iter().filter(fits).collect();
    match options.sample_of(now(&table).data_pages, table.attributes().page_bytes) {
        Some(pages) => sampled(database, &table, options, proposals, &page_sizes, pages, progress),
        None => full(database, &table, options, proposals, &page_sizes, progress),
    }
}

/// Estimates an index that a table of a database might have, and nothing else.
pub(super) fn estimate_proposal(
    database: &Database,
    name: &str,
    proposal: &Proposal,
    options: &EstimateOptions,
    progress: &dyn Progress,
) -> Result<IndexesEstimate> {
    let table = database.table(name)?;
    let index = ProposedIndex::new(proposal, &table.attributes().schema)?;
    let view = database.read_view();
    if let Some(pages) = options.sample_of(now(&table).data_pages, table.attributes().page_bytes) {
        let mut random = SplitMix64(options.seed);
        let (clusters, _) = read_clusters(&view, &table, pages, &mut random, progress)?;
        let mut indexes = proposed_on_sample((&view, &table), options, vec![index], &clusters, &mut random, progress)?;
        return indexes.pop().ok_or_else(|| Error::Data("no index was estimated".into()));
    }
    let mut keys = ProposedKeys::new(index, &scratch(database), options);
    progress.start(&format!("reading the keys of {name}"), Some(table.row_count()), Unit::Rows);
    let (mut rows, step) = (0u64, rows_per_look(table.layout().column_count()));
    let mut scan = view.scan(&table, &ScanRequest::default())?.into_rows();
    while let Some((rid, record)) = scan.next_record()? {
        keys.push_record(table.layout(), record, rid)?;
        rows += 1;
        tell(rows, step, progress)?;
    }
    progress.finish();
    keys.finish(progress)
}

fn scratch(database: &Database) -> Scratch {
    Scratch { storage: database.storage().clone(), directory: database.temporary_directory() }
}

fn full(
    database: &Database,
    table: &Arc<Table>,
    options: &EstimateOptions,
    proposals: Vec<ProposedIndex>,
    page_sizes: &[usize],
    progress: &dyn Progress,
) -> Result<EstimateReport> {
    let sample = sample_table(table, progress)?;
    let trained = dictionary::of_sample(&sample, table.layout(), table.row_count(), &fills(table, options, page_sizes));
    let costs = costs(table, options, RowSample::of(table.layout(), sample.iter()), &trained, progress)?;
    drop(sample);
    let mut estimator = TableEstimator::new(table.layout(), &table.attributes().primary_key);
    let (present, _) = add_candidates(table, &mut estimator, &trained, page_sizes, options);
    let scratch = scratch(database);
    let mut keys: Vec<ProposedKeys> = proposals.into_iter().map(|index| ProposedKeys::new(index, &scratch, options)).collect();
    progress.start(&format!("estimating {}", table.name()), Some(table.row_count()), Unit::Rows);
    let mut rows = 0u64;
    let step = rows_per_look(table.layout().column_count());
    let mut scan = database.read_view().scan(table, &ScanRequest::default())?.into_rows();
    while let Some((rid, record)) = scan.next_record()? {
        match values_of(table, record)? {
            None => estimator.push(record)?,
            Some(values) => estimator.push_values(&values.iter().map(Value::as_ref).collect::<Vec<ValueRef<'_>>>())?,
        }
        keys.iter_mut().try_for_each(|keys| keys.push_record(table.layout(), record, rid))?;
        rows += 1;
        tell(rows, step, progress)?;
    }
    progress.finish();
    let place = estimator.place(present).ok_or_else(|| unfit(table))?;
    let mut report = report(table, estimator.finish(), place, page_bytes_of(table, options), &costs);
    report.indexes = keys.into_iter().map(|keys| keys.finish(progress)).collect::<Result<_>>()?;
    Ok(report)
}

/// Its rows are there, in its pages: only who has values outside that estimates move elsewhere comes here.
fn unfit(table: &Table) -> Error {
    Error::Data(format!("table \"{}\": a row does not fit its pages as an estimate would lay it out", table.name()))
}

/// Reads random data pages, each by itself.
fn read_clusters(
    view: &ReadView,
    table: &Arc<Table>,
    pages: u64,
    random: &mut SplitMix64,
    progress: &dyn Progress,
) -> Result<(Clusters, u64)> {
    let numbered = (0..).zip(table.data_sets());
    let mut all: Vec<(u16, u32)> =
        numbered.flat_map(|(p, data_set)| data_set.data_page_numbers().into_iter().map(move |n| (p, n))).collect();
    let total = all.len() as u64;
    let count = random.choose(&mut all, pages);
    let chosen = &mut all[..count];
    chosen.sort_unstable();
    progress.start(&format!("reading a sample of {}", table.name()), Some(count as u64), Unit::Pages);
    let mut clusters = Clusters::default();
    for page in chosen {
        clusters.begin();
        let mut rows = view.scan_pages(table, vec![*page], &ScanRequest::default())?.into_rows();
        while let Some((rid, record)) = rows.next_record()? {
            match values_of(table, record)? {
                None => clusters.push(PackedRow::Record(record), rid),
                Some(values) => clusters.push(PackedRow::Wide(&values), rid),
            }
        }
        progress.advance(1);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    Ok((clusters, total))
}

fn sampled(
    database: &Database,
    table: &Arc<Table>,
    options: &EstimateOptions,
    proposals: Vec<ProposedIndex>,
    page_sizes: &[usize],
    pages: u64,
    progress: &dyn Progress,
) -> Result<EstimateReport> {
    let mut random = SplitMix64(options.seed);
    let view = database.read_view();
    let (clusters, all_pages) = read_clusters(&view, table, pages, &mut random, progress)?;
    let rows_total = table.row_count();
    let mut estimator = TableEstimator::new(table.layout(), &table.attributes().primary_key);
    let fills = fills(table, options, page_sizes);
    // A dictionary that the table has is as good as the one it would get.
    let (scalings, trained): (Vec<Scaling>, Vec<Trained>) = match table.dictionary() {
        Some(old) => {
            let old = (table.attributes().method, old.dictionary());
            (Vec::new(), dictionary::of_old(old, table.layout(), &clusters, rows_total, &fills))
        }
        None => StandIn::train(&clusters, table.layout(), rows_total, &fills).into_iter().map(StandIn::split).unzip(),
    };
    let records = (0..clusters.len()).flat_map(|cluster| clusters.records(cluster));
    let costs = costs(table, options, RowSample::of(table.layout(), records), &trained, progress)?;
    let (present, candidates) = add_candidates(table, &mut estimator, &trained, page_sizes, options);
    feed_clusters(&mut estimator, &clusters, &scalings, &candidates, progress)?;
    let sure = |trained: usize| scalings.get(trained).map_or(SAME_TABLE_MARGIN, |scaling| scaling.margin);
    let corrections = candidates.corrections(&estimator, &clusters, table.layout(), &trained, sure);
    let place = estimator.place(present).ok_or_else(|| unfit(table))?;
    let estimates = estimator.finish_sample(rows_total, all_pages as f64, &corrections);
    let mut report = report(table, estimates, place, page_bytes_of(table, options), &costs);
    let all_keys = !proposals.is_empty();
    report.indexes = proposed_on_sample((&view, table), options, proposals, &clusters, &mut random, progress)?;
    report.sample =
        Some(SampleFacts { pages: clusters.len() as u64, rows: clusters.row_count() as u64, clusters: clusters.len() as u64, all_keys });
    Ok(report)
}

/// Key ranges of the proposed indexes, in one pass over the table.
fn proposed_on_sample(
    (view, table): (&ReadView, &Arc<Table>),
    options: &EstimateOptions,
    proposals: Vec<ProposedIndex>,
    clusters: &Clusters,
    random: &mut SplitMix64,
    progress: &dyn Progress,
) -> Result<Vec<IndexesEstimate>> {
    if proposals.is_empty() {
        return Ok(Vec::new());
    }
    let mut ranges = Vec::new();
    for index in proposals {
        let rows: Vec<(PackedRow<'_>, Rid)> = clusters.random_rows(random);
        let starts =
            rows.into_iter().map(|(row, rid)| range_start(&index, &index.layout, table.layout(), row, rid)).collect::<Result<Vec<_>>>()?;
        ranges.push(KeyRanges::new(index, starts, None));
    }
    progress.start(&format!("reading the keys of {}", table.name()), Some(table.row_count()), Unit::Rows);
    let (mut rows, mut key) = (0u64, Vec::new());
    let step = rows_per_look(table.layout().column_count());
    let mut scan = view.scan(table, &ScanRequest::default())?.into_rows();
    while let Some((rid, record)) = scan.next_record()? {
        for ranges in &mut ranges {
            key.clear();
            let encoded = ranges.index.layout.encode_from_record(table.layout(), record, &mut key);
            encoded.map_err(|e| Error::Data(format!("index \"{}\": {e}", ranges.index.name)))?;
            ranges.push(&mut key, rid);
        }
        rows += 1;
        tell(rows, step, progress)?;
    }
    progress.finish();
    ranges.into_iter().map(|ranges| finish_ranges(ranges, options, progress)).collect()
}

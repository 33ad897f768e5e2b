//! Files: a table that does not exist yet.

use super::candidates::{Candidate, Candidates};
use super::costs::{KeySample, RowSample};
use super::dictionary::{self, Trained};
use super::options::{EstimateOptions, Proposal, Scratch};
use super::proposed::{ProposedIndex, ProposedKeys};
use super::random::SplitMix64;
use super::ranges::{Clusters, KeyRanges, RANGES_MAX, entry_bytes};
use super::report::{EstimateReport, IndexesEstimate, MethodEstimate, SampleFacts};
use super::stand_in::{Scaling, StandIn};
use crate::error::no_thread;
use crate::load::primary_key;
use crate::load_threads::pack_batches;
use crate::{Error, Progress, Result, Unit};
use pagefold_advisor::{Cost, TableEstimator, TableOptions};
use pagefold_engine::table_space::Method;
use pagefold_format::data::PageFill;
use pagefold_interchange::{InterchangeError, Packer, Source, TableSchema};
use pagefold_types::{Direction, KeyLayout, PackedRow, PackedRows, Rid, RowLayout, SLOT_MAX, Value, ValueRef};
use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;

const BATCHES_WAITING: usize = 4;
/// Rows of a sample of keys for each range: a source gives them in clusters, of which each has one start.
const ROWS_PER_START: u64 = 256;

/// Everything that is known before the first row.
struct Plan<'a> {
    options: &'a EstimateOptions,
    schema: TableSchema,
    layout: RowLayout,
    primary_key: Vec<usize>,
    proposals: Vec<ProposedIndex>,
    /// For each column of the table, the source's.
    columns: Vec<usize>,
    page_sizes: Vec<usize>,
}

impl Plan<'_> {
    fn new<'a>(source: &dyn Source, options: &'a EstimateOptions) -> Result<Plan<'a>> {
        let mut schema = source.table().clone();
        let key = primary_key(&mut schema, &options.primary_key, "the table")?;
        let layout = RowLayout::new(schema.schema()).map_err(InterchangeError::from)?;
        let fits = |size: &usize| layout.fixed_len() <= TableOptions::new(*size).record_bytes_max();
        if !pagefold_format::page::is_page_size(options.page_bytes) || !fits(&options.page_bytes) {
            let size = options.page_bytes;
            return Err(Error::Usage(match pagefold_format::page::is_page_size(size) {
                true => format!("the rows do not fit pages of {} KB", size / 1024),
                false => format!("--page-size {size} is no size of pages: a multiple of 2 KB, up to 32 KB"),
            }));
        }
        let mut proposals = Vec::new();
        if !key.is_empty() && options.primary_key_index {
            let columns = options.primary_key.iter().map(|name| (name.clone(), Direction::Ascending)).collect();
            proposals.push(ProposedIndex::new(&Proposal { name: "primary key".into(), columns, unique: true }, schema.schema())?);
        }
        for proposal in &options.proposals {
            proposals.push(ProposedIndex::new(proposal, schema.schema())?);
        }
        let columns = schema.match_source(source.table(), !source.has_names())?;
        let page_sizes = options.page_sizes_with(options.page_bytes).into_iter().filter(fits).collect();
        Ok(Plan { options, schema, layout, primary_key: key, proposals, columns, page_sizes })
    }

    fn table_options(&self, page_bytes: usize) -> TableOptions {
        let options = TableOptions::new(page_bytes);
        TableOptions { pctfree: self.options.pctfree, maxrows: self.options.maxrows.unwrap_or(SLOT_MAX + 1), ..options }
    }

    /// Where the table's page size comes among the estimates.
    fn place(&self, estimator: &TableEstimator<'_>, reference: usize) -> Result<usize> {
        estimator.place(reference).ok_or_else(|| self.too_wide())
    }

    fn too_wide(&self) -> Error {
        let page = self.options.page_bytes / 1024;
        Error::Usage(format!("some rows are too wide for pages of {page} KB, whatever is moved out of them; --page-size says others"))
    }

    fn fills(&self) -> Vec<PageFill> {
        self.page_sizes.iter().map(|page_bytes| self.table_options(*page_bytes).fill()).collect()
    }

    fn packer(&self) -> Packer<'_> {
        let widest = self.page_sizes.iter().map(|size| TableOptions::new(*size).record_bytes_max()).max().unwrap_or_default();
        Packer::new(&self.schema, &self.layout, self.columns.clone(), widest)
    }

    fn costs(&self, sample: RowSample, trained: &[Trained], progress: &dyn Progress) -> Result<Vec<(&'static str, Cost)>> {
        self.options.costs.of_methods((self.schema.schema(), &self.primary_key), sample, trained, self.options.page_bytes, progress)
    }

    /// Adds all candidates. Gives the number of the one that the table will be.
    fn add_candidates(&self, estimator: &mut TableEstimator<'_>, trained: &[Trained]) -> (usize, Candidates) {
        let candidates = Candidates::add(estimator, &self.layout, trained, &self.page_sizes, |page_bytes| self.table_options(page_bytes));
        // Under `page` a RID is known when its page is complete; those of rows one by one are near.
        let method = if self.options.method == Method::Page { Method::Row } else { self.options.method };
        let wanted = |c: &Candidate| c.method == method && c.page_bytes == self.options.page_bytes;
        (candidates.list.iter().position(wanted).unwrap_or_default(), candidates)
    }
}

/// Calls `visit` with every row of a source, in order; another thread reads and packs.
fn for_each_row(
    source: &mut dyn Source,
    packer: &Packer<'_>,
    progress: &dyn Progress,
    mut visit: impl FnMut(PackedRow<'_>) -> Result<()>,
) -> Result<()> {
    let (full, filled) = sync_channel::<Result<PackedRows>>(BATCHES_WAITING);
    let (empty, reusable) = sync_channel::<PackedRows>(BATCHES_WAITING + 2);
    std::thread::scope(|scope| {
        let read = move || pack_batches(source, packer, &reusable, |rows| full.send(rows).is_ok());
        std::thread::Builder::new().spawn_scoped(scope, read).map_err(|error| no_thread(&error))?;
        for rows in filled {
            let rows = rows?;
            rows.iter().try_for_each(&mut visit)?;
            progress.advance(rows.len() as u64);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let _ = empty.try_send(rows);
        }
        Ok(())
    })
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// Adds a row of either form.
pub(super) fn push_row(estimator: &mut TableEstimator<'_>, row: PackedRow<'_>) -> Result<()> {
    match row {
        PackedRow::Record(record) => estimator.push(record)?,
        PackedRow::Wide(values) => estimator.push_values(&refs(values))?,
    }
    Ok(())
}

/// Estimates the table that files would become. `scratch` takes keys of proposed indexes that memory does not hold.
///
/// # Errors
/// When the files cannot be read, their rows do not fit, or a proposed index names a column that does not exist.
pub fn estimate_source(
    source: &mut dyn Source,
    scratch: &Scratch,
    options: &EstimateOptions,
    progress: &dyn Progress,
) -> Result<EstimateReport> {
    let plan = Plan::new(source, options)?;
    if options.sample_pages.is_some()
        && let Some(rows) = source.row_count()
    {
        let row_bytes = row_bytes(source, &plan)?;
        let rows_of = |pages: u64| pages.saturating_mul(options.page_bytes as u64) / row_bytes;
        let total = rows.saturating_mul(row_bytes) / options.page_bytes as u64;
        if let Some(pages) = options.sample_of(total, options.page_bytes) {
            return sampled(source, &plan, rows, rows_of(pages), progress);
        }
    }
    full(source, &plan, scratch, progress)
}

fn full(source: &mut dyn Source, plan: &Plan<'_>, scratch: &Scratch, progress: &dyn Progress) -> Result<EstimateReport> {
    progress.start("training the dictionary", None, Unit::Rows);
    let (sample, trained) = dictionary::of_source(source, &plan.schema, &plan.layout, &plan.fills())?;
    progress.finish();
    // Rows that do not fit the page size are an error of their own, below.
    let costs = plan.costs(RowSample::of(&plan.layout, sample.iter()), &trained, progress);
    drop(sample);
    let mut estimator = TableEstimator::new(&plan.layout, &plan.primary_key);
    let (reference, _) = plan.add_candidates(&mut estimator, &trained);
    let mut keys: Vec<ProposedKeys> = plan.proposals.iter().map(|index| ProposedKeys::new(index.clone(), scratch, plan.options)).collect();
    progress.start("estimating", source.row_count(), Unit::Rows);
    for_each_row(source, &plan.packer(), progress, |row| {
        push_row(&mut estimator, row)?;
        let rid = estimator.rid(reference);
        for keys in &mut keys {
            match row {
                PackedRow::Record(record) => keys.push_record(&plan.layout, record, rid)?,
                PackedRow::Wide(values) => keys.push_values(&refs(values), rid)?,
            }
        }
        Ok(())
    })?;
    progress.finish();
    plan.place(&estimator, reference)?;
    let costs = costs?;
    let estimates = estimator.finish();
    let mut report = EstimateReport { rows: estimates.first().map_or(0, |e| e.rows), ..EstimateReport::default() };
    report.set_methods(MethodEstimate::all(estimates, None), plan.options.page_bytes, &costs);
    report.indexes = keys.into_iter().map(|keys| keys.finish(progress)).collect::<Result<_>>()?;
    Ok(report)
}

/// Bytes of a row, uncompressed, about.
fn row_bytes(source: &mut dyn Source, plan: &Plan<'_>) -> Result<u64> {
    let mut rows = PackedRows::default();
    let packer = plan.packer();
    if let Some(batch) = source.sample(1, plan.options.seed)?.next() {
        packer.pack(&batch?, &mut rows)?;
    }
    Ok((rows.record_bytes() as u64).checked_div(rows.len() as u64).unwrap_or(1).max(1))
}

fn sampled(source: &mut dyn Source, plan: &Plan<'_>, rows_total: u64, wanted: u64, progress: &dyn Progress) -> Result<EstimateReport> {
    progress.start("reading a sample", Some(wanted), Unit::Rows);
    let packer = plan.packer();
    let (batches, drawn_together) = source.sample_of_parts(wanted, plan.options.seed)?;
    let mut clusters = Clusters::default();
    clusters.drawn_together = drawn_together;
    let mut rows = PackedRows::default();
    for batch in batches {
        rows.clear();
        packer.pack(&batch?, &mut rows)?;
        clusters.begin();
        rows.iter().for_each(|row| clusters.push(row, Rid::MIN));
        progress.advance(rows.len() as u64);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    let (scalings, trained): (Vec<Scaling>, Vec<Trained>) =
        StandIn::train(&clusters, &plan.layout, rows_total, &plan.fills()).into_iter().map(StandIn::split).unzip();
    let costs =
        plan.costs(RowSample::of(&plan.layout, (0..clusters.len()).flat_map(|cluster| clusters.records(cluster))), &trained, progress);
    let mut estimator = TableEstimator::new(&plan.layout, &plan.primary_key);
    let (reference, candidates) = plan.add_candidates(&mut estimator, &trained);
    feed_clusters(&mut estimator, &clusters, &scalings, &candidates, progress)?;
    let slot_max = estimator.slot_max(reference);
    let corrections = candidates.corrections(&estimator, &clusters, &plan.layout, &trained, |trained| scalings[trained].margin);
    // Of parts that were drawn only little was read: as many draws as would cover all rows.
    let all_draws = rows_total as f64 / (clusters.row_count() as f64 / clusters.draws().max(1) as f64).max(1.0);
    let place = plan.place(&estimator, reference)?;
    let costs = costs?;
    let estimates = estimator.finish_sample(rows_total, all_draws, &corrections);
    let rows_per_page = rows_total as f64 / (estimates[place].data_pages.value.max(1)) as f64;
    let mut report = EstimateReport { rows: rows_total, ..EstimateReport::default() };
    report.set_methods(MethodEstimate::all(estimates, None), plan.options.page_bytes, &costs);
    report.indexes = proposed_on_sample(source, plan, (rows_per_page, slot_max), rows_total, progress)?;
    let all_keys = !plan.proposals.is_empty();
    report.sample = Some(SampleFacts { pages: 0, rows: clusters.row_count() as u64, clusters: clusters.draws() as u64, all_keys });
    Ok(report)
}

/// Packs the clusters of a sample; `scalings` are of the stand-ins among the candidates' dictionaries.
pub(super) fn feed_clusters(
    estimator: &mut TableEstimator<'_>,
    clusters: &Clusters,
    scalings: &[Scaling],
    candidates: &Candidates,
    progress: &dyn Progress,
) -> Result<()> {
    for cluster in 0..clusters.len() {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        if clusters.is_draw(cluster) {
            estimator.begin_cluster();
        }
        for (scaling, encoder) in scalings.iter().zip(&candidates.encoders) {
            encoder.iter().for_each(|encoder| estimator.set_scale(*encoder, scaling.of(cluster)));
        }
        clusters.rows(cluster).try_for_each(|(row, _)| push_row(estimator, row))?;
    }
    Ok(())
}

/// The start of a key range: a sampled row's key, and a RID.
pub(super) fn range_start(index: &ProposedIndex, keys: &KeyLayout, layout: &RowLayout, row: PackedRow<'_>, rid: Rid) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    put_key(index, keys, layout, row, &mut key)?;
    Ok(entry_bytes(&key, rid))
}

/// Appends a row's key.
fn put_key(index: &ProposedIndex, keys: &KeyLayout, layout: &RowLayout, row: PackedRow<'_>, key: &mut Vec<u8>) -> Result<()> {
    let encoded = match row {
        PackedRow::Record(record) => keys.encode_from_record(layout, record, key),
        PackedRow::Wide(values) => keys.encode_from_values(&refs(values), key),
    };
    encoded.map(drop).map_err(|e| Error::Data(format!("index \"{}\": {e}", index.name)))
}

/// The estimate from collected key ranges.
pub(super) fn finish_ranges(ranges: KeyRanges, options: &EstimateOptions, progress: &dyn Progress) -> Result<IndexesEstimate> {
    let slot_max_known = ranges.slot_max_known;
    let (index, sampler, slot_max, rids) = ranges.finish()?;
    let candidates = options.index_candidates(options.index_pctfree);
    let estimates = sampler.finish(index.keys(slot_max), slot_max_known, &candidates, rids);
    let costs = options.costs.of_formats(&index.keys_of(), KeySample::of(&sampler), &estimates, progress)?;
    Ok(IndexesEstimate::new(index.name, index.text, index.unique, estimates, &costs, None))
}

/// Where row `row` will be, about.
fn rid_about(row: u64, rows_per_page: f64) -> Rid {
    let page = (row as f64 / rows_per_page) as u64;
    let slot = row.saturating_sub((page as f64 * rows_per_page).ceil() as u64);
    Rid::new(0, u32::try_from(page + 2).unwrap_or(u32::MAX), slot.min(u64::from(SLOT_MAX)) as u16)
}

/// Key ranges of the proposed indexes, in one pass over their columns.
fn proposed_on_sample(
    source: &mut dyn Source,
    plan: &Plan<'_>,
    (rows_per_page, slot_max): (f64, u16),
    rows_total: u64,
    progress: &dyn Progress,
) -> Result<Vec<IndexesEstimate>> {
    if plan.proposals.is_empty() {
        return Ok(Vec::new());
    }
    let used: BTreeSet<usize> = plan.proposals.iter().flat_map(|index| index.columns.iter().map(|(column, _)| *column)).collect();
    let used: Vec<usize> = used.into_iter().collect();
    let position = |column: usize| used.iter().position(|u| *u == column).unwrap_or_default();
    let keys = plan.schema.project(&used)?;
    let layout = RowLayout::new(keys.schema()).map_err(InterchangeError::from)?;
    let source_columns: Vec<usize> = used.iter().map(|column| plan.columns[*column]).collect();
    let packer = Packer::new(&keys, &layout, (0..used.len()).collect(), pagefold_types::RECORD_BYTES_MAX);
    let mut rows = PackedRows::default();
    // Ranges start at rows from everywhere, whatever parts the sample of the table is from: else those of an index in the order of the file would lie together.
    let mut clusters = Clusters::default();
    for batch in source.sample_of(&source_columns, RANGES_MAX as u64 * ROWS_PER_START, plan.options.seed)? {
        rows.clear();
        packer.pack(&batch?, &mut rows)?;
        clusters.begin();
        rows.iter().for_each(|row| clusters.push(row, Rid::MIN));
    }
    let mut random = SplitMix64(plan.options.seed);
    let mut ranges = Vec::new();
    for index in &plan.proposals {
        let columns: Vec<(usize, Direction)> = index.columns.iter().map(|(column, direction)| (position(*column), *direction)).collect();
        let key_layout = KeyLayout::new(keys.schema(), &columns);
        let mut starts = Vec::new();
        for (row, _) in clusters.random_rows(&mut random) {
            // Which of the rows with this key it was is not known.
            starts.push(range_start(index, &key_layout, &layout, row, rid_about(random.below(rows_total), rows_per_page))?);
        }
        ranges.push((KeyRanges::new(index.clone(), starts, Some(slot_max)), key_layout));
    }
    progress.start("reading keys", Some(rows_total), Unit::Rows);
    let (mut number, mut key) = (0u64, Vec::new());
    for batch in source.batches_of(&source_columns)? {
        rows.clear();
        packer.pack(&batch?, &mut rows)?;
        for row in rows.iter() {
            let rid = rid_about(number, rows_per_page);
            number += 1;
            for (ranges, key_layout) in &mut ranges {
                key.clear();
                put_key(&ranges.index, key_layout, &layout, row, &mut key)?;
                ranges.push(&mut key, rid);
            }
        }
        progress.advance(rows.len() as u64);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    ranges.into_iter().map(|(ranges, _)| finish_ranges(ranges, plan.options, progress)).collect()
}

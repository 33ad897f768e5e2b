//! Levels, pages and bytes at each page size.
//!
//! The usual page sizes come first. Where one of them saves a level, the sizes below it that are no usual ones are looked at, too: the smallest that saves a level may be among them.

use super::replay::forecast;
use super::{PageSizeLine, PageSizeOptions, PageSizeReport};
use crate::estimate::index::{self as entries, columns_of, index_keys, present_among_candidates};
use crate::{EstimateOptions, ObjectNow, Progress, Result, Unit};
use pagefold_advisor::{IndexCandidate, IndexEstimate, KeyLocator, LevelPlaces, levels_saved, sizes_between};
use pagefold_engine::database::Database;
use pagefold_engine::index::Index;
use pagefold_format::key_trace::KeyTrace;

/// What an index would take at each page size and in each format and, with a trace, what a pool would hit.
///
/// # Errors
/// When there is no such index, or a page is damaged.
pub fn page_sizes(database: &Database, name: &str, options: &PageSizeOptions, progress: &dyn Progress) -> Result<PageSizeReport> {
    let index = database.index(name)?;
    index.check_usable()?;
    let (rids, leaves, levels_now) = {
        let facts = index.data_set().facts();
        (facts.rows, u64::from(facts.data_pages), facts.levels)
    };
    let estimate_options = EstimateOptions { pctfree_anew: options.pctfree, seed: options.seed, ..EstimateOptions::default() };
    let sample_options = EstimateOptions { sample_pages: options.sample_pages, ..estimate_options.clone() };
    let sample = if options.trace.is_none() { sample_options.sample_of(leaves, index.attributes().page_bytes) } else { None };
    let read = |candidates: &[IndexCandidate]| look(&index, candidates, (sample, rids), options, progress);
    let (candidates, present) = present_among_candidates(&index, &estimate_options);
    let mut lines = read(&candidates)?;
    let estimates: Vec<IndexEstimate> = lines.iter().map(|line| line.estimate.clone()).collect();
    let between = sizes_between(&estimates, &estimates[present]);
    if !between.is_empty() {
        lines.extend(read(&between)?);
    }
    let estimates: Vec<IndexEstimate> = lines.iter().map(|line| line.estimate.clone()).collect();
    let pages = u64::from(index.data_set().page_count());
    let now = ObjectNow {
        method: index.attributes().format.name().into(),
        page_bytes: index.attributes().page_bytes,
        pages,
        data_pages: leaves,
        size_bytes: pages * index.data_set().page_bytes() as u64,
    };
    Ok(PageSizeReport {
        index: name.into(),
        columns: columns_of(database, &index)?,
        unique: index.attributes().unique,
        rids,
        now,
        levels_now,
        levels_saved: levels_saved(&estimates, &estimates[present]),
        lines,
        present,
        is_sample: sample.is_some(),
    })
}

fn look(
    index: &Index,
    candidates: &[IndexCandidate],
    (sample, rids): (Option<u64>, u64),
    options: &PageSizeOptions,
    progress: &dyn Progress,
) -> Result<Vec<PageSizeLine>> {
    if let Some(trace) = &options.trace {
        let located = locate(index, trace, candidates, rids, progress)?;
        let line = |(estimate, levels): (IndexEstimate, Vec<LevelPlaces>)| {
            let forecast = forecast(trace, &estimate.candidate, &levels, options.pool_bytes);
            PageSizeLine { estimate, forecast }
        };
        return Ok(located.into_iter().map(line).collect());
    }
    let estimates = entries::estimates(index, candidates, (sample, options.seed), rids, progress)?;
    Ok(estimates.into_iter().map(|estimate| PageSizeLine { estimate, forecast: None }).collect())
}

/// Where the keys of the trace lie at each page size.
fn locate(
    index: &Index,
    trace: &KeyTrace,
    candidates: &[IndexCandidate],
    rids: u64,
    progress: &dyn Progress,
) -> Result<Vec<(IndexEstimate, Vec<LevelPlaces>)>> {
    let slot_max = entries::slot_max(index, rids, progress)?.0;
    progress.start(&format!("locating keys in {}", index.name()), Some(rids), Unit::Rows);
    let mut locator = KeyLocator::new(index_keys(index, slot_max), candidates, trace.keys.clone(), trace.spans.clone());
    entries::for_each_leaf(index, progress, |leaf| {
        entries::for_each_entry(leaf, |key, rid| Ok(locator.push(key, rid)?))?;
        Ok(leaf.rid_count() as u64)
    })?;
    progress.finish();
    Ok(locator.finish()?)
}

//! An index that exists: as a REORG would build it in each format and page size.

use super::costs::{KeySample, KeysOf};
use super::options::EstimateOptions;
use super::proposed::columns_text;
use super::random::SplitMix64;
use super::report::{EstimateReport, IndexesEstimate, ObjectNow, SampleFacts};
use crate::{Error, Progress, Result, Unit};
use pagefold_advisor::{IndexCandidate, IndexEstimate, IndexEstimator, IndexKeys, IndexSampler, LeafFormat};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::Database;
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_format::index::leaf_view::{LeafLayout, LeafView};
use pagefold_types::Rid;
use std::collections::BTreeSet;

/// Leaves between two looks at whether to stop.
const LEAVES_PER_LOOK: u64 = 256;

/// Entries of a run, if the sample has pages for [`RUNS_MIN`] of them: four blocks of a prefix leaf. What a block takes is not to be seen from fewer entries than it has: those of half a
/// block often have the same first column.
const RUN_ENTRIES: u64 = 4 * pagefold_codec::index::prefix::PAIRS_MAX as u64;
/// Fewer runs say too little about how the parts of the index differ.
const RUNS_MIN: u64 = 32;

pub(crate) fn index_keys(index: &Index, slot_max: u16) -> IndexKeys {
    IndexKeys { unique: index.attributes().unique, fixed_key_bytes: index.key_layout().fixed_len(), slot_max }
}

/// All candidates, that which the index is among them, and its number.
pub(crate) fn present_among_candidates(index: &Index, options: &EstimateOptions) -> (Vec<IndexCandidate>, usize) {
    let own = index.attributes();
    let format = match own.format {
        IndexFormat::Plain => LeafFormat::Plain,
        IndexFormat::Fold => LeafFormat::Fold,
        IndexFormat::Prefix => LeafFormat::Prefix,
    };
    let present = IndexCandidate { format, page_bytes: own.page_bytes, pctfree: own.pctfree };
    let mut all = options.index_candidates(options.pctfree_anew.unwrap_or(own.pctfree));
    let number = all.iter().position(|c| *c == present).unwrap_or_else(|| {
        all.push(present);
        all.len() - 1
    });
    (all, number)
}

/// Estimates an index of a database.
///
/// # Errors
/// When there is no such index, or a page is damaged.
pub fn estimate_index(database: &Database, name: &str, options: &EstimateOptions, progress: &dyn Progress) -> Result<EstimateReport> {
    let index = database.index(name)?;
    let rids = index.data_set().facts().rows;
    let leaves = u64::from(index.data_set().facts().data_pages);
    let (candidates, present) = present_among_candidates(&index, options);
    let sample = options.sample_of(leaves, index.attributes().page_bytes);
    let (estimates, keys, sample, leaf_pages) = match sample {
        Some(pages) => sampled(&index, pages, options.seed, &candidates, rids, progress)?,
        None => {
            let (estimates, keys, leaf_pages) = full(&index, &candidates, rids, progress)?;
            (estimates, keys, None, leaf_pages)
        }
    };
    let data_set = index.data_set();
    let pages = u64::from(data_set.page_count());
    let now = ObjectNow {
        method: index.attributes().format.name().into(),
        page_bytes: index.attributes().page_bytes,
        pages,
        data_pages: leaf_pages,
        size_bytes: pages * data_set.page_bytes() as u64,
    };
    let table = database.table_of(&index)?;
    let text = columns_of(database, &index)?;
    let (columns, unique) = (&index.attributes().columns, index.attributes().unique);
    let keys_of = KeysOf { schema: &table.attributes().schema, columns, unique };
    let costs = options.costs.of_formats(&keys_of, keys, &estimates, progress)?;
    let estimate = IndexesEstimate::new(name.into(), text, unique, estimates, &costs, Some((now.clone(), present)));
    Ok(EstimateReport { object: name.into(), rows: rids, now: Some(now), indexes: vec![estimate], sample, ..EstimateReport::default() })
}

/// The columns of an index, as text.
pub(crate) fn columns_of(database: &Database, index: &Index) -> Result<String> {
    Ok(columns_text(&database.table_of(index)?.attributes().schema, &index.attributes().columns))
}

/// Every entry of a leaf, in order.
pub(crate) fn for_each_entry(leaf: &LeafView<'_>, visit: impl FnMut(&[u8], Rid) -> Result<()>) -> Result<()> {
    leaf.for_each(visit, |e| Error::Data(e.to_string()))
}

/// Every leaf, in key order; gives their number.
pub(crate) fn for_each_leaf(index: &Index, progress: &dyn Progress, mut visit: impl FnMut(&LeafView<'_>) -> Result<u64>) -> Result<u64> {
    let mut cursor = index.tree().all(Direction::Forward);
    let mut leaves = 0u64;
    while let Some(run) = cursor.next_run()? {
        let rids = visit(&run.leaf)?;
        leaves += 1;
        progress.advance(rids);
        if leaves.is_multiple_of(LEAVES_PER_LOOK) && progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    Ok(leaves)
}

/// The greatest slot of all RIDs, and the number of leaves: how many bits slots take in a fold is settled before the first leaf is built.
pub(crate) fn slot_max(index: &Index, rids: u64, progress: &dyn Progress) -> Result<(u16, u64)> {
    let mut slot_max = 0;
    progress.start(&format!("reading the RIDs of {}", index.name()), Some(rids), Unit::Rows);
    let leaves = for_each_leaf(index, progress, |leaf| {
        for_each_entry(leaf, |_, rid| {
            slot_max = slot_max.max(rid.slot());
            Ok(())
        })?;
        Ok(leaf.rid_count() as u64)
    })?;
    progress.finish();
    Ok((slot_max, leaves))
}

/// What candidates would take: from a sample of so many leaves, or from all entries.
pub(crate) fn estimates(
    index: &Index,
    candidates: &[IndexCandidate],
    (sample, seed): (Option<u64>, u64),
    rids: u64,
    progress: &dyn Progress,
) -> Result<Vec<IndexEstimate>> {
    match sample {
        Some(pages) => Ok(sampled(index, pages, seed, candidates, rids, progress)?.0),
        None => Ok(full(index, candidates, rids, progress)?.0),
    }
}

fn full(index: &Index, candidates: &[IndexCandidate], rids: u64, progress: &dyn Progress) -> Result<(Vec<IndexEstimate>, KeySample, u64)> {
    let (slot_max, leaves) = slot_max(index, rids, progress)?;
    progress.start(&format!("estimating {}", index.name()), Some(rids), Unit::Rows);
    let mut estimator = IndexEstimator::new(index_keys(index, slot_max), candidates);
    let mut sample = KeySample::default();
    for_each_leaf(index, progress, |leaf| {
        for_each_entry(leaf, |key, rid| {
            sample.push(key, rid);
            Ok(estimator.push(key, rid)?)
        })?;
        Ok(leaf.rid_count() as u64)
    })?;
    progress.finish();
    Ok((estimator.finish()?, sample, leaves))
}

/// Leaves of a run, for a sample of `pages` leaves out of `leaves`.
fn leaves_per_run(rids: u64, leaves: u64, pages: u64) -> u64 {
    let entries = (rids / leaves.max(1)).max(1);
    RUN_ENTRIES.div_ceil(entries).min(pages / RUNS_MIN).max(1)
}

/// Random leaves, and of each the next ones in key order.
fn sampled(
    index: &Index,
    pages: u64,
    seed: u64,
    candidates: &[IndexCandidate],
    rids: u64,
    progress: &dyn Progress,
) -> Result<(Vec<IndexEstimate>, KeySample, Option<SampleFacts>, u64)> {
    let per_run = leaves_per_run(rids, u64::from(index.data_set().facts().data_pages), pages);
    let mut all = index.used_page_numbers();
    let mut random = SplitMix64(seed);
    let used = all.len();
    random.choose(&mut all, used as u64);
    progress.start(&format!("reading a sample of {}", index.name()), Some(pages), Unit::Pages);
    let mut sampler = IndexSampler::default();
    let (mut slot_max, mut pages_read, mut drawn, mut drawn_leaves) = (0, 0, 0u64, 0u64);
    // Runs do not overlap: the interval takes them for drawn without repetition.
    let mut seen = BTreeSet::new();
    for number in &all {
        if pages_read + per_run > pages {
            break;
        }
        drawn += 1;
        let before = pages_read;
        let mut next = *number;
        for place in 0..per_run {
            if !seen.insert(next) {
                drawn_leaves += u64::from(place == 0);
                break;
            }
            // Non-leaf pages are drawn too, and passed over: so all leaves have the same chance.
            let leaf_after = index.visit_leaf(next, |leaf| {
                if place == 0 {
                    sampler.begin_run();
                }
                if let LeafLayout::Plain(kind) = leaf.layout() {
                    slot_max = slot_max.max((1u16 << kind.slot_bits.min(12)) - 1);
                }
                for_each_entry(leaf, |key, rid| {
                    // Others may have moved entries, or used the page for others, since the one before was read.
                    if !sampler.is_behind(key, rid) {
                        sampler.begin_run();
                    }
                    sampler.push(key, rid);
                    Ok(())
                })?;
                Ok::<_, Error>(leaf.next())
            })?;
            pages_read += 1;
            drawn_leaves += u64::from(place == 0 && leaf_after.is_some());
            match leaf_after {
                Some(after) if after != 0 => next = after,
                _ => break,
            }
        }
        progress.advance(pages_read - before);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    let leaves = (used as f64 * drawn_leaves as f64 / drawn.max(1) as f64).round();
    // Folded leaves tell how many bits the slots of all RIDs take, plain ones do not.
    let known = index.attributes().format == IndexFormat::Fold;
    let slot_max = if known { slot_max } else { sampler.slot_max() };
    let estimates = sampler.finish(index_keys(index, slot_max), known, candidates, rids);
    let facts = SampleFacts { pages: pages_read, rows: sampler.len() as u64, clusters: sampler.run_count() as u64, all_keys: false };
    Ok((estimates, KeySample::of(&sampler), Some(facts), leaves as u64))
}

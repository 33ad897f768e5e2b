//! The dictionaries that `fixed` and `huffman` would have.
//!
//! Without a sample it is the one that LOAD or REORG trains: same sample, same rule whether it pays.
//!
//! On a sample, training that one would take more time than all the rest. A small part of the sample trains a dictionary of its own. On the rows it was trained on it is better than the
//! real one will be on the table (it has learned them by heart), on other rows it is worse (it has seen too few). The two errors are about equal, as for any model that is fitted to
//! data (Akaike 1974: half of the gap each), so the real one lies about in the middle; nearer to the first when the real one sees most of the table and learns that by heart.
//! A quarter of the gap is added to the half-width of the interval.
//!
//! Where the real one lay, from 0 (as on the rows trained on) to 1 (as on others), with 256 KB of rows to train on: at scale factor 1 LINEITEM 0.54 (rows evenly spread),
//! PARTSUPP 0.42, PART 0.38, CUSTOMER 0.35; at scale factor 0.1 LINEITEM 0.71, ORDERS 0.48, PARTSUPP 0.38, CUSTOMER (2 MB in all) 0.18. That is what [`position`] and the quarter
//! are made for. Of twenty made files of 3 to 5 MB, most of them of many numeric columns (`tests/estimate/coverage.rs`), the middle one lay at 0.52, half of them from 0.25 to 0.66;
//! where values come in long runs or walk, and with `huffman` where rows take about ten bytes, the truth lies outside of both. With 128 KB the rule does not hold: a dictionary from so few
//! rows does not have all its tokens.

use super::ranges::Clusters;
use crate::Result;
use crate::sample::sample_source;
use pagefold_advisor::TableOptions;
use pagefold_codec::row::{DictionaryType, RowDictionary, TrainOptions};
use pagefold_engine::table_space::{Method, SampledRecords, Sampler, Saving};
use pagefold_format::data::PageFill;
use pagefold_format::data::forms::RecordEncoder;
use pagefold_interchange::{Source, TableSchema};
use pagefold_types::RowLayout;

/// Bytes of rows that a sample's dictionary is trained on: this part of the table's bytes, so that training stays a small part of a load ...
const TRAINING_PART: f64 = 1.0 / 2000.0;
/// ... but not less than this: below it the rule of the middle does not hold.
const TRAINING_BYTES_MIN: f64 = 384.0 * 1024.0;
const TRAINING_BYTES_MAX: f64 = 4e6;
/// Bytes of rows that LOAD's training looks at, about (`TrainOptions::refine_bytes`).
const LOAD_TRAINING_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
/// Uncertainty of a dictionary that stands for another one of the same table, relative.
pub(super) const SAME_TABLE_MARGIN: f64 = 0.005;

/// Uncertainty of a dictionary of strings that was trained on a sample, relative.
const STRINGS_MARGIN: f64 = 0.03;

/// A dictionary, the method that has it, and for which page sizes it pays.
pub(super) struct Trained {
    pub(super) method: Method,
    pub(super) dictionary: RowDictionary,
    pub(super) page_sizes: Vec<usize>,
}

/// The dictionaries that LOAD would train from a source, for each page size and method one or none.
///
/// Records that are too wide for a page are not in LOAD's sample, so page sizes can have different ones. The sample comes with them.
pub(super) fn of_source(
    source: &mut dyn Source,
    schema: &TableSchema,
    layout: &RowLayout,
    fills: &[PageFill],
) -> Result<(SampledRecords, Vec<Trained>)> {
    let limit = |page_bytes: usize| TableOptions::new(page_bytes).record_bytes_max();
    let widest = fills.iter().map(|fill| limit(fill.page_bytes)).max().unwrap_or_default();
    let sampler = sample_source(source, schema, layout, widest)?;
    // Of all that came: LOAD into smaller pages does not see those that are too wide for them, so it keeps others.
    let longest = sampler.longest();
    // As LOAD takes it.
    let rows_known = source.row_count();
    let rows_total = rows_known.unwrap_or(sampler.seen());
    let sample = sampler.into_sample();
    let mut trained = Vec::new();
    let (same, other): (Vec<PageFill>, Vec<PageFill>) = fills.iter().partition(|fill| limit(fill.page_bytes) >= longest);
    trained.extend(of_sample(&sample, layout, rows_total, &same));
    for fill in other {
        let sampler = sample_source(source, schema, layout, limit(fill.page_bytes).max(layout.fixed_len()))?;
        let rows_total = rows_known.unwrap_or(sampler.seen());
        trained.extend(of_sample(&sampler.into_sample(), layout, rows_total, &[fill]));
    }
    Ok((sample, trained))
}

/// The methods with dictionaries for whole rows, and the type of those.
fn methods() -> impl Iterator<Item = (Method, DictionaryType)> {
    [Method::Fixed, Method::Huffman].into_iter().filter_map(|method| Some((method, method.dictionary_type()?)))
}

/// The dictionaries of a sample that pay for one of the page sizes.
pub(super) fn of_sample(sample: &SampledRecords, layout: &RowLayout, rows_total: u64, fills: &[PageFill]) -> Vec<Trained> {
    let options = TrainOptions::default();
    if fills.is_empty() {
        return Vec::new();
    }
    let Some(tokens) = sample.dictionary(&options, DictionaryType::Fixed) else { return Vec::new() };
    let trained = methods().filter_map(|(method, kind)| {
        let dictionary = sample.dictionary_of(tokens.tokens(), &options, kind)?;
        let page_sizes = Saving::new(sample, method, layout, &dictionary).paying(rows_total, fills);
        (!page_sizes.is_empty()).then_some(Trained { method, dictionary, page_sizes })
    });
    trained.chain(of_strings(sample, layout, rows_total, fills)).collect()
}

/// The dictionary of strings that pages by column would have, if it pays.
fn of_strings(sample: &SampledRecords, layout: &RowLayout, rows_total: u64, fills: &[PageFill]) -> Option<Trained> {
    let dictionary = sample.train_any(Method::Page, layout)?;
    let page_sizes = Saving::new(sample, Method::Page, layout, &dictionary).paying(rows_total, fills);
    (!page_sizes.is_empty()).then_some(Trained { method: Method::Page, dictionary, page_sizes })
}

/// The dictionaries that the table of an old one would get, about: its tokens, and code words for the rows of a sample.
pub(super) fn of_old(
    old: (Method, &RowDictionary),
    layout: &RowLayout,
    clusters: &Clusters,
    rows_total: u64,
    fills: &[PageFill],
) -> Vec<Trained> {
    let (method, old) = old;
    let page_sizes: Vec<usize> = fills.iter().map(|fill| fill.page_bytes).collect();
    let sample = (0..clusters.len()).flat_map(|cluster| clusters.records(cluster)).collect::<Sampler>().into_sample();
    let trained = methods().filter_map(|(method, kind)| {
        let dictionary =
            if kind == old.dictionary_type() { old.clone() } else { sample.dictionary_of(old.tokens(), &TrainOptions::default(), kind)? };
        Some(Trained { method, dictionary, page_sizes: page_sizes.clone() })
    });
    let strings = match method {
        Method::Page => Some(Trained { method, dictionary: old.clone(), page_sizes: page_sizes.clone() }),
        _ => of_strings(&sample, layout, rows_total, fills),
    };
    trained.chain(strings).collect()
}

/// Where the real dictionary lies between what a stand-in does on the rows it was trained on and what it does on others, for a table with so many bytes of rows.
fn position(total_bytes: f64) -> f64 {
    0.52 - 0.35 * (LOAD_TRAINING_BYTES / total_bytes.max(1.0)).min(1.0).powi(2)
}

/// A dictionary that stands for the one that nobody has trained.
pub(super) struct StandIn {
    trained: Trained,
    scaling: Scaling,
}

/// What the other dictionary would make of a stand-in's codes.
pub(super) struct Scaling {
    /// What the lengths of its codes are multiplied with, in clusters it was trained on and in others.
    scales: [f64; 2],
    /// What that adds to the relative half-width.
    pub(super) margin: f64,
    step: usize,
}

impl Scaling {
    /// In a cluster.
    pub(super) fn of(&self, cluster: usize) -> f64 {
        self.scales[usize::from(!cluster.is_multiple_of(self.step))]
    }
}

impl StandIn {
    pub(super) fn split(self) -> (Scaling, Trained) {
        (self.scaling, self.trained)
    }

    /// Trains on some of the clusters of a sample of a table with `rows_total` rows; one for each method.
    pub(super) fn train(clusters: &Clusters, layout: &RowLayout, rows_total: u64, fills: &[PageFill]) -> Vec<StandIn> {
        let bytes = clusters.record_bytes() as f64;
        if clusters.row_count() == 0 {
            return Vec::new();
        }
        let total = bytes / clusters.row_count() as f64 * rows_total as f64;
        let wanted = (total * TRAINING_PART).clamp(TRAINING_BYTES_MIN, TRAINING_BYTES_MAX);
        // At least half of the clusters are for the other side of the comparison.
        let step = ((bytes / wanted) as usize).max(2);
        let of_clusters = |step: usize| {
            let records = (0..clusters.len()).step_by(step).flat_map(|cluster| clusters.records(cluster));
            records.collect::<Sampler>().into_sample()
        };
        let sample = of_clusters(step);
        let options = TrainOptions { refine_rounds: 1, ..TrainOptions::default() };
        let Some(tokens) = sample.dictionary(&options, DictionaryType::Fixed) else { return Vec::new() };
        let stand_ins = methods().filter_map(|(method, kind)| {
            let dictionary = sample.dictionary_of(tokens.tokens(), &options, kind)?;
            let encoder = RecordEncoder::codes(1, &dictionary);
            let mut sums = [(0usize, 0usize); 2];
            for cluster in 0..clusters.len() {
                let sum = &mut sums[usize::from(!cluster.is_multiple_of(step))];
                for record in clusters.records(cluster) {
                    sum.0 += record.len();
                    sum.1 += encoder.stored_len(record).0;
                }
            }
            let [own, held] = sums.map(|(plain, codes)| codes as f64 / plain.max(1) as f64);
            if own == 0.0 || held == 0.0 {
                return None;
            }
            let middle = own + (held - own) * position(total);
            let page_sizes = Saving::new(&sample, method, layout, &dictionary).paying(rows_total, fills);
            (!page_sizes.is_empty()).then(|| StandIn {
                trained: Trained { method, dictionary, page_sizes },
                scaling: Scaling { scales: [middle / own, middle / held], margin: (held - own).abs() / 4.0 / middle, step },
            })
        });
        // All of the sample is about as much as LOAD looks at, or the part of it that there is.
        let strings = of_strings(&of_clusters(1), layout, rows_total, fills)
            .map(|trained| StandIn { trained, scaling: Scaling { scales: [1.0, 1.0], margin: STRINGS_MARGIN, step } });
        stand_ins.chain(strings).collect()
    }
}

//! The dictionaries that `fixed` and `huffman` would have.
//!
//! Without a sample it is the one that LOAD or REORG trains: same sample, same rule whether it pays. What a sample says of it: `stand_in`.

use super::ranges::Clusters;
use crate::Result;
use crate::sample::sample_source;
use pagefold_advisor::TableOptions;
use pagefold_codec::row::{DictionaryType, RowDictionary, TrainOptions};
use pagefold_engine::table_space::{Method, SampledRecords, Sampler, Saving};
use pagefold_format::data::PageFill;
use pagefold_interchange::{Source, TableSchema};
use pagefold_types::RowLayout;

/// Uncertainty of a dictionary that stands for another one of the same table, relative.
pub(super) const SAME_TABLE_MARGIN: f64 = 0.005;

/// A dictionary, the method that has it, and for which page sizes it pays.
pub(super) struct Trained {
    pub(super) method: Method,
    pub(super) dictionary: RowDictionary,
    pub(super) page_sizes: Vec<usize>,
    /// Of its serial form.
    pub(super) dictionary_bytes: usize,
}

impl Trained {
    pub(super) fn new(method: Method, dictionary: RowDictionary, page_sizes: Vec<usize>) -> Trained {
        let dictionary_bytes = dictionary.to_bytes().len();
        Trained { method, dictionary, page_sizes, dictionary_bytes }
    }
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
pub(super) fn methods() -> impl Iterator<Item = (Method, DictionaryType)> {
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
        (!page_sizes.is_empty()).then(|| Trained::new(method, dictionary, page_sizes))
    });
    trained.chain(of_strings(sample, layout, rows_total, fills)).collect()
}

/// The dictionary of strings that pages by column would have, if it pays.
pub(super) fn of_strings(sample: &SampledRecords, layout: &RowLayout, rows_total: u64, fills: &[PageFill]) -> Option<Trained> {
    let dictionary = sample.train_any(Method::Page, layout)?;
    let page_sizes = Saving::new(sample, Method::Page, layout, &dictionary).paying(rows_total, fills);
    (!page_sizes.is_empty()).then(|| Trained::new(Method::Page, dictionary, page_sizes))
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
        Some(Trained::new(method, dictionary, page_sizes.clone()))
    });
    let strings = match method {
        Method::Page => Some(Trained::new(method, old.clone(), page_sizes.clone())),
        _ => of_strings(&sample, layout, rows_total, fills),
    };
    trained.chain(strings).collect()
}

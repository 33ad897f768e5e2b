//! What an estimate compares: every method at every page size.

use super::dictionary::{Trained, of_sample};
use super::neighbours::saved_bytes;
use super::ranges::Clusters;
use pagefold_advisor::{Correction, TableEstimator, TableOptions};
use pagefold_engine::table_space::{Method, SampledRecords};
use pagefold_format::data::forms::RecordEncoder;
use pagefold_types::{CompactLayout, RowLayout};

/// What a sample's clusters are too small to show of pages by column, relative: rows of one page are alike, those of several clusters less.
const COLUMN_MARGIN: f64 = 0.04;

/// The largest part of its bytes that a page by column may save because neighbours are alike.
const SAVED_MAX: f64 = 0.7;
/// Of what is saved so, the part that is not sure.
const SAVED_MARGIN: f64 = 0.25;

/// One of them.
pub(super) struct Candidate {
    pub(super) method: Method,
    pub(super) page_bytes: usize,
    /// Which of the trained dictionaries it has.
    pub(super) trained: Option<usize>,
}

/// All of them, in the order of the estimator.
pub(super) struct Candidates {
    pub(super) list: Vec<Candidate>,
    /// The estimator's numbers of the trained dictionaries; none for one of strings only.
    pub(super) encoders: Vec<Option<usize>>,
}

impl Candidates {
    /// Adds every method with every page size.
    pub(super) fn add(
        estimator: &mut TableEstimator<'_>,
        layout: &RowLayout,
        trained: &[Trained],
        page_sizes: &[usize],
        options: impl Fn(usize) -> TableOptions,
    ) -> Candidates {
        let compact = estimator.add_encoder(RecordEncoder::compact(CompactLayout::new(layout.clone())));
        let encoder = |t: &Trained| (t.method != Method::Page).then(|| RecordEncoder::codes(1, &t.dictionary));
        let encoders: Vec<Option<usize>> = trained.iter().map(|t| encoder(t).map(|encoder| estimator.add_encoder(encoder))).collect();
        let (mut list, all) = (Vec::new(), trained);
        let trained_bytes = |at: usize| all[at].dictionary_bytes;
        for &page_bytes in page_sizes {
            for method in Method::ALL {
                let trained = trained.iter().position(|t| t.method == method && t.page_sizes.contains(&page_bytes));
                let encoder = trained.and_then(|at| Some((encoders[at]?, Some(trained_bytes(at)))));
                match method {
                    Method::Row => estimator.add(method.name(), options(page_bytes), Some((compact, None))),
                    Method::Page => estimator.add_columns(method.name(), options(page_bytes), trained.map(|at| &all[at].dictionary)),
                    Method::None | Method::Fixed | Method::Huffman => estimator.add(method.name(), options(page_bytes), encoder),
                };
                list.push(Candidate { method, page_bytes, trained });
            }
        }
        Candidates { list, encoders }
    }

    /// By candidate, what is known beside what the clusters show: how sure its dictionary is, and what pages by column save because neighbours are alike.
    pub(super) fn corrections(
        &self,
        estimator: &TableEstimator<'_>,
        clusters: &Clusters,
        layout: &RowLayout,
        trained: &[Trained],
        of_trained: impl Fn(usize) -> f64,
    ) -> Vec<Correction> {
        let correction = |(number, candidate): (usize, &Candidate)| {
            let margin = candidate.trained.map_or(0.0, &of_trained);
            if candidate.method != Method::Page {
                return Correction { scale: 1.0, margin };
            }
            let page_rows = estimator.page_rows(number);
            let strings = candidate.trained.map(|at| &trained[at].dictionary);
            let saved = saved_bytes(clusters, layout, strings, page_rows) * page_rows / candidate.page_bytes as f64;
            let saved = saved.min(SAVED_MAX);
            Correction { scale: 1.0 - saved, margin: margin + COLUMN_MARGIN + saved * SAVED_MARGIN }
        };
        self.list.iter().enumerate().map(correction).collect()
    }
}

/// Adds one candidate for each method, with the dictionaries that LOAD would train on this sample of a table of so many rows.
pub fn add_every_method(
    estimator: &mut TableEstimator<'_>,
    layout: &RowLayout,
    sample: &SampledRecords,
    rows_total: u64,
    options: TableOptions,
) {
    let trained = of_sample(sample, layout, rows_total, &[options.fill()]);
    Candidates::add(estimator, layout, &trained, &[options.page_bytes], |_| options);
}

//! What an estimate compares: every method at every page size.

use super::dictionary::{Trained, of_sample};
use pagefold_advisor::{TableEstimator, TableOptions};
use pagefold_engine::table_space::{Method, SampledRecords};
use pagefold_format::data::forms::RecordEncoder;
use pagefold_types::{CompactLayout, RowLayout};

/// What a sample's clusters are too small to show of pages by column, relative: rows of one page are alike, those of several clusters less.
const COLUMN_MARGIN: f64 = 0.05;

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
        let compact = estimator.add_encoder(RecordEncoder::Compact(CompactLayout::new(layout.clone())));
        let encoder = |t: &Trained| (t.method != Method::Page).then(|| RecordEncoder::codes(1, &t.dictionary));
        let encoders: Vec<Option<usize>> = trained.iter().map(|t| encoder(t).map(|encoder| estimator.add_encoder(encoder))).collect();
        let bytes: Vec<usize> = trained.iter().map(|t| t.dictionary.to_bytes().len()).collect();
        let (mut list, all) = (Vec::new(), trained);
        for &page_bytes in page_sizes {
            for method in Method::ALL {
                let trained = trained.iter().position(|t| t.method == method && t.page_sizes.contains(&page_bytes));
                let encoder = trained.and_then(|at| Some((encoders[at]?, Some(bytes[at]))));
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

    /// By candidate, what its dictionary adds to the relative half-width.
    pub(super) fn margins(&self, of_trained: impl Fn(usize) -> f64) -> Vec<f64> {
        let by_column = |candidate: &Candidate| if candidate.method == Method::Page { COLUMN_MARGIN } else { 0.0 };
        self.list.iter().map(|candidate| candidate.trained.map_or(0.0, &of_trained) + by_column(candidate)).collect()
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

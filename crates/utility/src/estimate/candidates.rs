//! What an estimate compares: every method at every page size.

use super::dictionary::{Trained, of_sample};
use crate::sample::SampledRecords;
use pagefold_advisor::{TableEstimator, TableOptions};
use pagefold_engine::table_space::Method;
use pagefold_format::data::forms::RecordEncoder;
use pagefold_types::{CompactLayout, RowLayout};

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
    /// The estimator's numbers of the trained dictionaries.
    pub(super) encoders: Vec<usize>,
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
        let encoders: Vec<usize> = trained.iter().map(|t| estimator.add_encoder(RecordEncoder::codes(1, &t.dictionary))).collect();
        let bytes: Vec<usize> = trained.iter().map(|t| t.dictionary.to_bytes().len()).collect();
        let mut list = Vec::new();
        for &page_bytes in page_sizes {
            for method in Method::ALL {
                let trained = trained.iter().position(|t| t.method == method && t.page_sizes.contains(&page_bytes));
                let encoder = match (method, trained) {
                    (Method::Row, _) => Some((compact, None)),
                    (_, Some(at)) => Some((encoders[at], Some(bytes[at]))),
                    (_, None) => None,
                };
                estimator.add(method.name(), options(page_bytes), encoder);
                list.push(Candidate { method, page_bytes, trained });
            }
        }
        Candidates { list, encoders }
    }

    /// By candidate, what its dictionary adds to the relative half-width.
    pub(super) fn margins(&self, of_trained: impl Fn(usize) -> f64) -> Vec<f64> {
        self.list.iter().map(|candidate| candidate.trained.map_or(0.0, &of_trained)).collect()
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
    let page_sizes = [options.page_bytes];
    Candidates::add(estimator, layout, &of_sample(sample, rows_total, &page_sizes), &page_sizes, |_| options);
}

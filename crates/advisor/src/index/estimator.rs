//! What an index takes, from all its entries in order.

use super::builds::Builds;
use super::candidate::{IndexCandidate, IndexKeys};
use super::estimate::IndexEstimate;
use crate::Result;
use pagefold_format::index::build::CountingSink;
use pagefold_types::Rid;

/// Estimates an index from all its entries.
pub struct IndexEstimator(Builds<CountingSink>);

impl IndexEstimator {
    /// For these candidates. Every RID has a slot of at most `keys.slot_max`.
    #[must_use]
    pub fn new(keys: IndexKeys, candidates: &[IndexCandidate]) -> IndexEstimator {
        IndexEstimator(Builds::new(keys, candidates, CountingSink::default))
    }

    /// Adds an entry, in ascending order of (key, RID).
    ///
    /// # Errors
    /// When the order is wrong.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        self.0.push(key, rid)
    }

    /// What came out, by candidate.
    ///
    /// # Errors
    /// When there are more pages than a data set can have.
    pub fn finish(self) -> Result<Vec<IndexEstimate>> {
        Ok(self.0.finish()?.into_iter().map(|(estimate, _)| estimate).collect())
    }
}

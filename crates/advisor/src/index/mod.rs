//! Indexes: entries into leaf and non-leaf pages.
//!
//! * [`IndexCandidate`], [`IndexKeys`]: a format and page size; what is known of the keys
//! * [`IndexEstimator`]: all entries in order, by the code that builds indexes
//! * [`IndexSampler`]: runs of neighbouring entries
//! * [`IndexEstimate`]: what comes out

mod candidate;
mod estimate;
mod estimator;
mod leaf_stream;
mod prefix_stream;
mod sampler;
#[cfg(test)]
mod tests;

pub use candidate::{IndexCandidate, IndexKeys, LeafFormat, index_candidates, index_candidates_of};
pub use estimate::{IndexEstimate, buffer_unused};
pub use estimator::IndexEstimator;
pub use sampler::IndexSampler;

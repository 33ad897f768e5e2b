//! Indexes: entries into leaf and non-leaf pages.
//!
//! * [`IndexCandidate`], [`IndexKeys`]: a format and page size; what is known of the keys
//! * [`IndexEstimator`]: all entries in order, by the code that builds indexes
//! * [`KeyLocator`]: the same, and on which pages given keys lie
//! * [`IndexSampler`]: runs of neighbouring entries
//! * [`IndexEstimate`]: what comes out
//! * [`levels_saved`]: the smallest page size that saves a level

mod builds;
mod candidate;
mod estimate;
mod estimator;
mod leaf_stream;
mod levels;
mod locator;
#[cfg(test)]
mod locator_tests;
mod prefix_stream;
mod sampler;
#[cfg(test)]
mod tests;

pub use candidate::{IndexCandidate, IndexKeys, LeafFormat, index_candidates, index_candidates_of};
pub use estimate::{IndexEstimate, buffer_unused};
pub use estimator::IndexEstimator;
pub use levels::{LevelSaved, levels_saved, sizes_between};
pub use locator::{KeyLocator, LevelPlaces, NOT_SAMPLED};
pub use sampler::IndexSampler;

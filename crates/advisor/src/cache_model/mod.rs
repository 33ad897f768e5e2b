//! What pools of any size would hit, from one pass over the pages that were asked for.
//!
//! * [`StackDistances`]: how many pages were asked for since a page was last (Mattson, Gecsei, Slutz, Traiger: Evaluation techniques for storage hierarchies, 1970)
//! * [`Shards`]: the same for pages that are sampled by a hash of their names, in bounded memory (Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015)
//! * [`DistanceCounts`], [`MissRatioCurve`]: hit ratios of least-recently-used pools of all sizes
//! * [`ClockPool`]: one pool with the replacement that the engine has
//!
//! Invariant: memory is that of the distinct pages seen, or of the sample, whatever the number of requests.

mod clock;
mod miss_ratio;
mod shards;
mod stack_distance;
#[cfg(test)]
mod tests;

pub use clock::ClockPool;
pub use miss_ratio::{DistanceCounts, MissRatioCurve};
pub use shards::Shards;
pub use stack_distance::StackDistances;

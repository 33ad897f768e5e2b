//! Packing an index in key order: bulk build and estimator run the same code, the one with page images, the other without.
//!
//! * [`LeafPacker`], [`LeafBuilder`]: one leaf after the other
//! * `NonLeafBuilder`: one non-leaf page after the other
//! * [`TreeBuilder`]: all levels, into a [`PageSink`]

mod leaf;
mod non_leaf;
#[cfg(test)]
mod tests;
mod tree;

pub use leaf::{LeafBuilder, LeafPacker};
pub use tree::{BuiltTree, CountingSink, LevelFacts, PageSink, TreeBuilder};

//! Index pages: leaf, folded leaf, non-leaf.
//!
//! * [`header`]: the header of a leaf and of a folded leaf
//! * [`leaf`]: the view of a leaf that is searched; [`plan`]: does a change fit; `leaf_edit`: the change itself
//! * [`check`]: structure (once after a read) and everything (`check`)
//! * [`folded`]: leaf to 4 KB page and back
//! * [`prefix`]: leaves that are compressed in memory, too; [`leaf_view`]: leaves of either layout
//! * [`non_leaf`]: separators and children
//! * [`ops`]: the changes as values
//! * [`build`]: packing leaves in order, with and without bytes
//! * [`limits`]: separators, split points

pub mod build;
pub mod check;
pub mod folded;
pub mod header;
pub mod leaf;
mod leaf_check;
mod leaf_edit;
pub mod leaf_view;
pub mod limits;
pub mod non_leaf;
mod non_leaf_edit;
pub mod ops;
pub mod plan;
pub mod prefix;
mod search;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod leaf_tests;
#[cfg(test)]
mod non_leaf_tests;
#[cfg(test)]
mod rids_tests;
#[cfg(test)]
mod sample_tests;

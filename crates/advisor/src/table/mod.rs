//! Tables: records into data pages.
//!
//! * [`TablePacker`]: one method and page size; gives every row the RID it will have
//! * [`TableEstimator`]: all methods and page sizes at once, rows too wide for a page included
//! * [`TableEstimate`], [`Saving`]: what comes out, and where a saving comes from

mod estimate;
mod estimator;
mod packer;
#[cfg(test)]
mod tests;

pub use estimate::{Correction, Saving, TableEstimate};
pub use estimator::TableEstimator;
pub use packer::{TableOptions, TablePacker};

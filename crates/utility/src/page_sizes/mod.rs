//! PAGE-SIZES: what an index would take, and how it would be read, at each page size and in each format.
//!
//! * [`PageSizeOptions`], [`PageSizeReport`]: what is asked, and what came out
//! * `advise`: levels, pages and bytes by the arithmetic of the estimator
//! * `divide`: one memory for several indexes
//! * `replay`: from a key trace, what a pool of so many bytes would hit
//!
//! Invariant: without a sample the pages are those that REORG would make, on every level.

mod advise;
mod divide;
mod replay;

pub use advise::page_sizes;
pub use divide::{IndexAssignment, divide_memory};
pub use replay::{PoolForecast, forecast};

use crate::ObjectNow;
use pagefold_advisor::{IndexEstimate, LevelSaved};
use pagefold_format::key_trace::KeyTrace;

/// What is asked of page sizes.
#[derive(Clone, Debug)]
pub struct PageSizeOptions {
    /// Read only so many leaves. Not with a trace.
    pub sample_pages: Option<u64>,
    /// Which sample.
    pub seed: u64,
    /// Percent of each leaf left free; by default as it is.
    pub pctfree: Option<u8>,
    /// Keys that were asked for.
    pub trace: Option<KeyTrace>,
    /// With a trace: bytes of the pool.
    pub pool_bytes: u64,
}

impl Default for PageSizeOptions {
    fn default() -> PageSizeOptions {
        PageSizeOptions { sample_pages: None, seed: 1, pctfree: None, trace: None, pool_bytes: 256 << 20 }
    }
}

/// An index at one page size and in one format.
#[derive(Clone, Debug)]
pub struct PageSizeLine {
    /// Levels, pages and bytes.
    pub estimate: IndexEstimate,
    /// What the trace says; none without one.
    pub forecast: Option<PoolForecast>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct PageSizeReport {
    /// The index.
    pub index: String,
    /// Its columns, as text.
    pub columns: String,
    /// No two rows with the same key?
    pub unique: bool,
    /// Its RIDs.
    pub rids: u64,
    /// What is there now.
    pub now: ObjectNow,
    /// Its levels now.
    pub levels_now: u16,
    /// All page sizes and formats.
    pub lines: Vec<PageSizeLine>,
    /// The line that is as the index is, written anew.
    pub present: usize,
    /// Of each format the smallest page size that has fewer levels than `present`.
    pub levels_saved: Vec<LevelSaved>,
    /// Was a sample read only?
    pub is_sample: bool,
}

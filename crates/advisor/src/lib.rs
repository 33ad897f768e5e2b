//! The estimator: what each method and page size would give, before anything is changed.
//!
//! Pure: it is fed with records, or with keys and RIDs, and runs the codecs and the packing arithmetic that LOAD and the index build run. No I/O, no engine.
//!
//! * [`TableEstimator`]: records into data pages, for any number of methods and page sizes at once
//! * [`IndexEstimator`]: all entries in order, for any number of formats and page sizes at once
//! * [`IndexSampler`]: the same for a sample of key ranges or leaves
//! * [`KeyLocator`]: on which pages keys lie, for any number of formats and page sizes at once
//! * [`levels_saved`]: the smallest page size that saves a level
//! * [`StackDistances`], [`Shards`], [`MissRatioCurve`], [`ClockPool`]: what pools of any size would hit
//! * [`assign`]: memory divided among objects
//! * [`Interval`], [`RatioEstimator`]: what a sample says about the whole
//! * [`choose_method`], [`choose_format`]: which to choose, and why
//! * [`decide`], [`RULES`]: advice on what there is, by rules with reasons
//! * [`data_set_pages`]: header and space-map pages
//!
//! Invariant: fed with all rows, or all entries, it gives the pages that LOAD, or CREATE INDEX, then takes: to the page.

mod advice;
mod assignment;
mod cache_model;
mod choice;
mod error;
mod index;
mod pages;
mod sample;
mod table;

pub use advice::{
    Decision, Finding, Goal, Load, OperationCosts, Operations, RULES, Rule, Subject, Verdict, Way, decide, is_large, is_worth,
};
pub use assignment::{Assigned, StoredAs, assign};
pub use cache_model::{ClockPool, DistanceCounts, MissRatioCurve, Shards, StackDistances};
pub use choice::{Alternative, Choice, Cost, READ_MAX, WRITE_MAX, choose, choose_format, choose_method, table_advice};
pub use error::{AdvisorError, Result};
pub use index::{
    IndexCandidate, IndexEstimate, IndexEstimator, IndexKeys, IndexSampler, KeyLocator, LeafFormat, LevelPlaces, LevelSaved, NOT_SAMPLED,
    buffer_unused, index_candidates, index_candidates_of, levels_saved, sizes_between,
};
pub use pagefold_format::key_trace::KeySpan;
pub use pages::{PageCounter, data_set_pages};
pub use sample::{Interval, RatioEstimator, Shares, t_quantile};
pub use table::{Correction, Saving, TableEstimate, TableEstimator, TableOptions, TablePacker};

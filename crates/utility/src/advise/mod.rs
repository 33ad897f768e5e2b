//! ADVISE: how each table and index is best stored, why, and the commands that do it.
//!
//! * `objects`: the ways to store each, from what ESTIMATE says
//! * `calibrate`: what operations cost on this machine
//! * `workload`: what programs did
//! * `pools`: one memory for all of them
//! * `plan`: all objects together: before and after
//! * `apply`: carries a plan out
//!
//! Range partitions are tables of their own, and so are their indexes: each gets its own advice. What is damaged or empty is said, and keeps nothing else out of the plan.
//!
//! Invariant: a plan changes nothing.

mod apply;
mod calibrate;
mod objects;
mod plan;
mod pools;
mod workload;

pub use apply::{Applied, apply_advice};
pub use calibrate::{Calibration, CostsByWay, WayCosts};
pub use objects::{Advised, ObjectAdvice, ObjectKind};
pub use plan::{AdvicePlan, Totals, advise};
pub use workload::Workload;

use pagefold_advisor::Goal;
use pagefold_format::key_trace::KeyTrace;
use std::collections::BTreeMap;

/// What an object has of the pools' memory, and what it reads then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolShare {
    /// Bytes, as it is to be stored.
    pub pool_bytes: u64,
    /// Bytes, as it is stored now, in the best division for that.
    pub pool_bytes_now: u64,
    /// Pages that the workload reads then.
    pub reads: f64,
    /// Pages that it reads now.
    pub reads_now: f64,
    /// Pages that it asks for, those above leaves apart.
    pub requests: f64,
    /// From a key trace? Otherwise requests are taken to be spread evenly.
    pub is_traced: bool,
}

/// Pages of a sample: for an interval of a few percent.
const SAMPLE_PAGES: u64 = 400;
/// A page from a solid-state disk.
const READ_NS: f64 = 100_000.0;

/// What to advise on, and how.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// Only these tables, with their indexes, and indexes; all where there are none.
    pub only: Vec<String>,
    /// What is to be least.
    pub goal: Goal,
    /// Read only so many pages of each object; all where `None`.
    pub sample_pages: Option<u64>,
    /// Which sample.
    pub seed: u64,
    /// Memory of all pools together.
    pub memory_bytes: u64,
    /// What was measured before, of some objects or none; the others are measured.
    pub calibration: Calibration,
    /// What programs did; needed where time is to be least.
    pub workload: Option<Workload>,
    /// Keys that were asked for, by index.
    pub traces: BTreeMap<String, KeyTrace>,
    /// Nanoseconds that a page takes to be read, where the workload does not say.
    pub read_ns: f64,
}

impl Default for AdviseOptions {
    fn default() -> AdviseOptions {
        AdviseOptions {
            only: Vec::new(),
            goal: Goal::Size,
            sample_pages: Some(SAMPLE_PAGES),
            seed: 1,
            memory_bytes: 256 << 20,
            calibration: Calibration::default(),
            workload: None,
            traces: BTreeMap::new(),
            read_ns: READ_NS,
        }
    }
}

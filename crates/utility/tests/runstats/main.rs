//! RUNSTATS against brute force over the rows, samples against the whole, and what becomes of statistics that are kept.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod coverage;
mod fresh;
mod full;
mod keeping;
#[path = "../common/random.rs"]
mod random;
mod world;

//! ESTIMATE against what LOAD, CREATE INDEX and REORG then take, and samples against the whole.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod auto;
mod coverage;
mod exact;
#[path = "../common/random.rs"]
mod random;
mod samples;
mod tables;

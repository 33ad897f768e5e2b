//! Workloads, studies and benchmarks.

pub mod lineitem;
pub mod measure;

//! Workloads, studies and benchmarks.

pub mod bank;
pub mod lineitem;
pub mod lz_tree;
pub mod measure;

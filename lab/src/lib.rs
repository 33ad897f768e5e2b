//! Workloads, studies and benchmarks.

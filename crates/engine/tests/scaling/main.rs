//! What operations cost beside ever more of what they have nothing to do with: counted, by allocations and bytes. Steps within the engine are counted beside the code (`scaling_tests`).

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod large_transaction;
mod open_tables;
mod statements;
mod threads;
mod world;

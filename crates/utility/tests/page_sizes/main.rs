//! Advice on page sizes against indexes that are really built, at every page size and in every format.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod built;
mod data;
mod divided;
#[path = "../common/random.rs"]
mod random;
mod traces;

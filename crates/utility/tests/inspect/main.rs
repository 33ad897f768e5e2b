//! CHECK, PRINT and REPORT on whole and on damaged databases.
//!
//! The normal run flips 2,000 bits and misplaces 1,000 pages; `cargo test -p pagefold-utility --test inspect -- --ignored` flips 10,000.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod sample;
mod semantic;
mod whole;

//! CHECK, PRINT and REPORT on whole and on damaged databases.
//!
//! The normal run flips 2,000 bits, and puts 600 pages and more than 400 older contents in places where they do not belong. The full run, every command on each damaged database:
//! `cargo test --release -p pagefold-utility --test inspect -- --ignored --nocapture`

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod copies;
mod damage;
mod dictionary;
mod killed;
mod matrix;
mod salvage;
mod sample;
mod semantic;
mod whole;

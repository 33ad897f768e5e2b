//! Random programs run by the engine and by a model of it, and histories of threads.
//!
//! `PAGEFOLD_MODEL_PROGRAMS` says how many programs there are of each method, index format and kind; `PAGEFOLD_MODEL_SEED` runs the one of that seed. `docs/testing.md` has what was found.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod condition;
mod found;
mod histories;
mod history;
mod model;
mod program;
mod random;
mod read;
mod run;
mod serial;
mod shape;
mod shrink;
mod threads;
mod values;
mod watch;

use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use parking_lot::Mutex;
use program::{Kind, random_program};
use run::Tally;
use shrink::{attempt, shrink};
use std::sync::Arc;
use watch::Watch;

/// Programs of each configuration in an ordinary run.
const PROGRAMS: u64 = 30;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn programs(method: Method) {
    let seeds = match number("PAGEFOLD_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("PAGEFOLD_MODEL_FIRST").unwrap_or(0);
            first..first + number("PAGEFOLD_MODEL_PROGRAMS").unwrap_or(PROGRAMS)
        }
    };
    let now = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&now);
    let watch = Watch::new(move || shown.lock().clone());
    let mut tally = Tally::default();
    let (mut failures, mut count) = (Vec::new(), 0);
    for format in IndexFormat::ALL {
        for kind in [Kind::Mixed, Kind::Serializable] {
            for seed in seeds.clone() {
                count += 1;
                let program = random_program(seed, kind, method, format);
                *now.lock() = format!("seed {seed}\n{program:?}");
                match attempt(&program, &|| watch.progress()) {
                    Ok(other) => tally.add(other),
                    Err(error) => {
                        let (program, error) = shrink(&program, error, &|| watch.progress());
                        failures.push(format!("program {count}, seed {seed}, {method}, {format}, {kind:?}: {error}\n{program:?}"));
                        // One of each configuration.
                        break;
                    }
                }
            }
        }
    }
    println!("{method}: {tally:?}");
    assert!(failures.is_empty(), "{} configurations fail:\n{}", failures.len(), failures.join("\n"));
    if number("PAGEFOLD_MODEL_SEED").is_none() {
        assert!(tally.commits > 0 && tally.duplicates > 0 && tally.locks > 0 && tally.conflicts > 0 && tally.serial_orders > 0);
    }
}

#[test]
fn rows_as_they_are() {
    programs(Method::None);
}

#[test]
fn compact_rows() {
    programs(Method::Row);
}

#[test]
fn rows_by_column() {
    programs(Method::Page);
}

#[test]
fn rows_of_fixed_codes() {
    programs(Method::Fixed);
}

#[test]
fn rows_of_huffman_codes() {
    programs(Method::Huffman);
}

//! Random histories on a simulated disk, and a crash at every I/O call: what was acknowledged is there, and nothing else; and every page is as it must be.
//!
//! * `world`, `values`: the database and its rows
//! * `steps`, `tight`: what can be done; `player`, `statements`, `definitions`, `alterations`, `beside`: doing it, and what may come of it
//! * `model`: what must be there
//! * `run`, `images`: one history, and a crash before each call of the disk; `shrink`: one that fails, made shorter
//! * `coverage`, `kinds`: what the images went through
//! * `partitions`: histories of a partitioned table, with a model of their own
//! * `disk_full`, `kills`, `io_errors`, `lost_writes`, `flips`, `hostile_log`, `queue`, `single`: other things that go wrong
//!
//! A run is given by its seed. Longer runs: `PAGEFOLD_SIMULATION_IMAGES=10000000 cargo test --release -p pagefold-engine --test simulation -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod alterations;
mod beside;
mod coverage;
mod definitions;
mod disk_full;
mod flips;
mod hostile_log;
mod images;
mod io_errors;
mod kills;
mod kinds;
mod lost_writes;
mod model;
mod partitions;
mod player;
mod queue;
mod run;
mod shrink;
mod single;
mod statements;
mod steps;
mod tight;
mod values;
mod world;

use coverage::Coverage;
use images::Tally;
use parking_lot::Mutex;
use run::{History, Images};
use shrink::expect_clean;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steps::{Mix, history};
use tight::tight;
use world::{Random, Shape};

/// Steps of a history.
const STEPS: usize = 260;
/// From so many images on, all that can be met must have been.
const ALL_FROM: usize = 100_000;

/// A number from the environment.
pub(crate) fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// One history of so many is on files without room, and longer, with as many images.
const TIGHT: u64 = 4;
const TIGHT_STEPS: usize = 900;

fn history_of(seed: u64) -> History {
    let is_tight = seed % TIGHT == 2;
    let (shape, steps) = match is_tight {
        true => (Shape::tight(seed), tight(&mut Random(seed), TIGHT_STEPS)),
        false => (Shape::of(seed), history(&mut Random(seed), Mix::of(seed), STEPS)),
    };
    let images = match is_tight {
        true => Images::Each(97),
        false if seed.is_multiple_of(20) => Images::All,
        false => Images::Each(29),
    };
    let sector_bytes = if seed.is_multiple_of(2) { 512 } else { 4096 };
    History { seed, shape, sector_bytes, steps, images }
}

/// As many images as `PAGEFOLD_SIMULATION_IMAGES` says, by two threads; from the seed `PAGEFOLD_SIMULATION_SEED` on.
#[test]
fn nothing_is_lost_in_a_crash() {
    let wanted = setting("PAGEFOLD_SIMULATION_IMAGES", 4_000);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let seeds = AtomicU64::new(setting("PAGEFOLD_SIMULATION_SEED", 1) as u64);
    std::thread::scope(|scope| {
        for _ in 0..setting("PAGEFOLD_SIMULATION_THREADS", 2) {
            scope.spawn(|| {
                while tally.lock().images.len() < wanted {
                    let seed = seeds.fetch_add(1, Ordering::Relaxed);
                    expect_clean(&history_of(seed), &tally);
                    if seed.is_multiple_of(50) {
                        println!("{} distinct images, seed {seed}", tally.lock().images.len());
                    }
                }
            });
        }
    });
    let tally = tally.lock();
    tally.print();
    assert_eq!(tally.faults, 0, "histories that failed");
    let altered = ["altered: a column comes", "altered: a column goes", "altered: again", "altered: behind a savepoint"];
    let moved = ["moved: rows", "moved: pages given back"];
    let never: Vec<_> = altered.into_iter().chain(moved).filter(|what| !tally.met.contains_key(what)).collect();
    assert!(wanted < 4_000 || never.is_empty(), "never: {never:?}");
    let missing: Vec<_> = Coverage::names().into_iter().filter(|kind| !tally.coverage.contains_key(kind)).collect();
    if wanted >= ALL_FROM {
        assert!(missing.is_empty(), "no image with {missing:#?}");
    }
}

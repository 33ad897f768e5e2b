//! A disk that is full from a call on: statements fail and are taken back alone, rollbacks succeed, and with room again work goes on; in the end model and database agree, and every page is as it must be.
//!
//! More: `PAGEFOLD_FULL_DISK_RUNS`, `PAGEFOLD_FULL_DISK_EVERY` (1: at every call).

use crate::images::Tally;
use crate::run::{History, Images, run};
use crate::setting;
use crate::shrink::expect_clean;
use crate::steps::{Mix, Step, history};
use crate::world::{Random, Shape};
use pagefold_engine::table_space::Method;
use parking_lot::Mutex;
use std::sync::Arc;

#[test]
fn a_full_disk_at_any_call_is_an_error_of_the_statement() {
    let (runs, every) = (setting("PAGEFOLD_FULL_DISK_RUNS", 6) as u64, setting("PAGEFOLD_FULL_DISK_EVERY", 40) as u64);
    let first = setting("PAGEFOLD_SIMULATION_SEED", 1) as u64;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut full = 0;
    for seed in first..first + runs {
        let mix = Mix { full: 0, kill: 0, ..Mix::of(seed) };
        let steps = history(&mut Random(seed), mix, 110);
        let whole = Images::FullAt { call: u64::MAX, steps: 0, every: u64::MAX };
        let plain = History { seed, shape: Shape::of(seed), sector_bytes: 512, steps, images: whole };
        let calls = run(&plain, &tally).unwrap_or_else(|_| expect_clean(&plain, &tally));
        for call in (seed % every..calls).step_by(every as usize) {
            let steps = 5 + (call % 30) as usize;
            expect_clean(&History { images: Images::FullAt { call, steps, every: 150 + call % 50 }, ..plain.clone() }, &tally);
            full += 1;
        }
    }
    let tally = tally.lock();
    println!("{full} times full, {} distinct images, statements: {:?}", tally.images.len(), tally.met);
    assert_eq!(tally.faults, 0, "histories that failed");
    assert!(full > 30, "only {full} times full");
}

/// Small rows until pages are as they are after a while, then a full disk for a long time: rows that no longer fit, rollbacks of many changes, and others who take what room there is.
#[test]
fn work_goes_on_with_a_full_disk() {
    let (runs, first) = (setting("PAGEFOLD_FULL_DISK_LONG_RUNS", 40) as u64, setting("PAGEFOLD_SIMULATION_SEED", 1) as u64);
    let tally = Arc::new(Mutex::new(Tally::default()));
    for seed in first..first + runs {
        let mut random = Random(seed);
        // Few rows that are changed often, and many that are changed by long transactions.
        let (numbers, ends) = if seed.is_multiple_of(2) { (40, 15) } else { (200, 3) };
        let quiet = Mix { numbers, large: false, writes: 80, ends, checkpoint: 0, steal: 10, renew: 0, ..Mix::plain() };
        let mut steps = history(&mut random, quiet, 500);
        steps.extend([Step::Commit { writer: 0 }, Step::Checkpoint, Step::Full { bytes: 0 }]);
        steps.extend(history(&mut random, Mix { writers: 2, rollback: 2, ..quiet }, 300));
        steps.push(Step::Room);
        steps.extend(history(&mut random, Mix { writers: 2, ends: 15, writes: 70, ..quiet }, 120));
        let mut shape = Shape::of(seed);
        if seed % 4 < 2 {
            shape.0[0].method = Method::Page;
        }
        expect_clean(&History { seed, shape, sector_bytes: 4096, steps, images: Images::Each(211) }, &tally);
    }
    let tally = tally.lock();
    println!("{runs} runs, {} distinct images, statements: {:?}", tally.images.len(), tally.met);
    assert_eq!(tally.faults, 0, "histories that failed");
    assert!(tally.met.get("a full disk").is_some_and(|met| *met > runs), "{:?}", tally.met);
}

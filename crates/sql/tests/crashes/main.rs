//! SQL on a simulated disk: random statements of one or two sessions, and crashes between calls of the disk. What was committed is there, all of it and nothing else;
//! what failed has left nothing; rules hold, and no number comes twice.
//!
//! * `world`: the database, and all that can be seen of it; `statements`: what is run
//! * `player`: one history; `watch`: what must be there after a crash
//!
//! `PAGEFOLD_SQL_IMAGES` (4,000) distinct images, by histories from the seed `PAGEFOLD_SQL_SEED` (1) on. The engine's own simulation (`crates/engine/tests/simulation`) has
//! what SQL does not reach.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod player;
#[path = "../common/random.rs"]
mod random;
mod statements;
mod watch;
mod world;

use random::setting;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use watch::Tally;

/// From so many images on, all that can be met must have been.
const ALL_FROM: usize = 4_000;
/// What must be met.
const MUST_BE_MET: [&str; 19] = [
    "image: as before the statement",
    "image: as behind the statement",
    "between: a crash",
    "disk: a call fails, and the statement alone",
    "disk: a call fails, and the database ends",
    "between: a checkpoint",
    "between: REORG",
    "Partition: done",
    "OpenPartition: done",
    "Attached: done",
    "Rows: 23514",
    "seen: the same before and behind COMMIT",
    "seen: the same at and behind a savepoint",
    "Rows: 53100 on a full disk",
    "Definition: 53100 on a full disk",
    "Rows: 55P03",
    "Rows: 23503",
    "Rows: 23505",
    "Rows: 22012",
];

#[test]
fn what_sql_has_committed_is_there_after_a_crash() {
    let wanted = setting("PAGEFOLD_SQL_IMAGES", ALL_FROM as u64) as usize;
    let every = setting("PAGEFOLD_SQL_EVERY", 23);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let seeds = AtomicU64::new(setting("PAGEFOLD_SQL_SEED", 1));
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..setting("PAGEFOLD_SQL_THREADS", 2) {
            scope.spawn(|| {
                while tally.lock().unwrap().images.len() < wanted && faults.lock().unwrap().is_empty() {
                    let seed = seeds.fetch_add(1, Ordering::Relaxed);
                    if let Err(fault) = player::play(seed, every, &tally) {
                        faults.lock().unwrap().push(fault);
                    }
                }
            });
        }
    });
    let tally = tally.lock().unwrap();
    println!("{} distinct images, up to seed {}", tally.images.len(), seeds.into_inner());
    tally.met.iter().for_each(|(what, count)| println!("{count:>9} {what}"));
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let missing: Vec<_> = MUST_BE_MET.into_iter().filter(|what| !tally.met.contains_key(*what)).collect();
    assert!(wanted < ALL_FROM || missing.is_empty(), "never met: {missing:?}");
}

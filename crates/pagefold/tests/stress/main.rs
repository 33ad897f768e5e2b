//! Tables that are defined anew again and again under those who read and change them, on a real directory, against a model.
//!
//! * `writers`: four threads that change rows of `account`, at all levels; each owns a quarter of the rows and knows them, so its
//!   model is exact
//! * `readers`: four threads that look at whole states: rows and money of each owner, by scan, by every index both ways, by keys
//!   alone; and at `series`, whose rows are all of one generation
//! * `definer`: one thread with everything that defines: indexes, reorganisations to every method, tables that are replaced,
//!   loaded, emptied, dropped, taken back
//!
//! Nothing may hang (a watch ends the program when nothing moves for two minutes), no row may be wrong, no file be left, and
//! memory must not grow. Seconds: `PAGEFOLD_STRESS_SECONDS`, five in an ordinary run; `PAGEFOLD_STRESS_SEED`.

#![cfg(feature = "arrow")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod definer;
mod readers;
mod world;
mod writers;

use pagefold::engine::table::TableAttributes;
use pagefold::{Database, utility};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use world::{OWNERS, World};

/// What every run does, however long it takes.
const DONE: [&str; 9] = ["commit", "rollback", "read", "reorg", "replaced", "truncated", "loaded", "index", "made"];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn data_files(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("data")).unwrap().count()
}

#[test]
fn definitions_beside_readers_and_writers() {
    let (seconds, seed) = (number("PAGEFOLD_STRESS_SECONDS", 5), number("PAGEFOLD_STRESS_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("stress.db");
    let world = World::create(&directory, folder.path());
    let mut memory = Vec::new();
    std::thread::scope(|scope| {
        let owners: Vec<_> = (0..OWNERS)
            .map(|owner| {
                scope.spawn({
                    let world = &world;
                    move || writers::write(world, owner, seed)
                })
            })
            .collect();
        let others = (0..4).map(|reader| {
            scope.spawn({
                let world = &world;
                move || readers::read(world, reader, seed)
            })
        });
        let mut others: Vec<_> = others.collect();
        others.push(scope.spawn(|| definer::define(&world, seed)));
        let (start, mut last) = (Instant::now(), (0, Instant::now()));
        // At least until everything was met.
        let is_met = || DONE.iter().all(|word| world.said.count(word) > 0);
        while (start.elapsed() < Duration::from_secs(seconds) || !is_met()) && !world.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(250));
            memory.push(resident_bytes());
            let steps = world.said.total();
            if steps != last.0 {
                last = (steps, Instant::now());
            } else if last.1.elapsed() > Duration::from_secs(120) {
                eprintln!("nothing moves: {}", world.said);
                std::process::abort();
            }
        }
        world.stop.store(true, Ordering::Relaxed);
        let models: BTreeMap<i64, writers::Model> = (0..OWNERS).zip(owners.into_iter().map(|owner| owner.join().unwrap())).collect();
        others.into_iter().for_each(|other| other.join().unwrap());
        writers::compare_all(&world, &models);
    });
    println!("{} s, seed {seed}: {}", seconds, world.said);
    // Level: what the last third took at its least is no more than half again of what the second third did, and some for the allocator.
    let thirds: Vec<&[u64]> = memory.chunks(memory.len().div_ceil(3).max(1)).collect();
    if seconds >= 60
        && let [_, middle, end] = thirds[..]
    {
        let (middle, end) = (middle.iter().min().unwrap(), end.iter().min().unwrap());
        println!("memory: {} MB in the second third, {} MB in the last", middle >> 20, end >> 20);
        assert!(*end <= middle + middle / 2 + (32 << 20), "memory grows");
    }
    let World { database, .. } = world;
    // What readers of before kept has gone; nothing is left but what is there: the catalog, and each table and index.
    let engine = database.engine();
    engine.remove_leftovers().unwrap();
    (0..2).for_each(|_| engine.checkpoint().unwrap());
    let partitions = |attributes: &TableAttributes| engine.table(&attributes.name).unwrap().data_sets().count();
    let tables: usize = engine.tables().unwrap().iter().map(|table| partitions(table.attributes())).sum();
    let expected = 1 + tables + engine.indexes().unwrap().len();
    // A dictionary that is being trained in the background keeps its table's files until it is done, and no longer.
    let start = Instant::now();
    while data_files(&directory) != expected && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let found = data_files(&directory);
    assert_eq!(found, expected, "files that nobody names");
    database.close().unwrap();
    let report = utility::check_files(&pagefold::io::OsStorage, &directory, &utility::Silent).unwrap();
    assert!(report.is_clean(), "{}", report.to_text(usize::MAX));
    Database::open(&directory).unwrap().close().unwrap();
}

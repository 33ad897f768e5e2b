//! A process with eight writing threads is killed again and again, on the same directory: what it said was committed is there, whole, and money is conserved.
//!
//! A thousand times: `cargo test --release -p pagefold-engine --test kill -- --ignored --nocapture`; with `PAGEFOLD_KEEP_COPY=1` the database is copied before each open. A directory whose check fails stays where it is.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "other tests use more of the world")]

#[path = "endurance/process.rs"]
mod process;
#[path = "isolation/world.rs"]
mod world;

use pagefold_engine::Error;
use pagefold_engine::database::{Isolation, OpenMode};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_io::{OsStorage, Storage};
use pagefold_types::ValueRef;
use process::{Known, keep_copy, run_and_kill};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use world::{Form, Random, World, is_retryable, open};

const WRITERS: i64 = 8;
const ACCOUNTS: i64 = 300;
/// Numbers of the rows in which the writers count their commits.
const COUNTERS: i64 = 1_000_000;
const FOLDER: &str = "PAGEFOLD_KILL_FOLDER";
const SEED: &str = "PAGEFOLD_KILL_SEED";

fn world(mode: OpenMode) -> World {
    let storage: Arc<dyn Storage> = Arc::new(OsStorage);
    // So small a pool writes pages of running transactions.
    let form = Form { method: Method::Fixed, format: IndexFormat::Fold, memory_bytes: 1 << 20, background_threads: 2, ..Form::default() };
    open(&storage, form, mode)
}

/// Moves money between two accounts and counts the commit, until the process is killed. Says each commit when it is durable.
fn write(world: &World, writer: i64, seed: u64) {
    let mut random = Random(seed);
    loop {
        let mut t = world.begin(Isolation::RepeatableRead);
        let mut transfer = || -> Result<i64, Error> {
            let (from, to) = (random.below(ACCOUNTS as u64) as i64, random.below(ACCOUNTS as u64) as i64);
            if from != to {
                let amount = random.below(100) as i64;
                let text = random.text(20);
                for (number, change) in [(from, -amount), (to, amount)] {
                    let rid = world.find(&mut t, number).unwrap();
                    let value = world.row(&mut t, rid).unwrap().1.0 + change;
                    t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))])?;
                }
            }
            // The counter's row is deleted and inserted now and then.
            let rid = world.find(&mut t, COUNTERS + writer).unwrap();
            let count = world.row(&mut t, rid).unwrap().1.0 + 1;
            if random.below(4) == 0 {
                t.delete(&world.table, rid)?;
                world.insert(&mut t, COUNTERS + writer, count, "")?;
            } else {
                t.update(&world.table, rid, &[(1, ValueRef::Int(count))])?;
            }
            Ok(count)
        };
        let outcome = transfer();
        match outcome {
            Ok(count) => {
                t.commit().unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "{writer} {count}").unwrap();
                out.flush().unwrap();
            }
            Err(_) if is_retryable(&outcome) => t.rollback().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Not a test: what the killed process does.
#[test]
fn the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    std::env::set_current_dir(folder).unwrap();
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let world = world(OpenMode::Write);
    println!("open");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let world = &world;
            scope.spawn(move || write(world, writer, seed * 100 + writer as u64));
        }
        if seed.is_multiple_of(3) {
            loop {
                world.database.checkpoint().unwrap();
            }
        }
    });
}

fn kill_again_and_again(cycles: u64) {
    let mut folder = tempfile::tempdir().unwrap();
    folder.disable_cleanup(true);
    println!("in {}", folder.path().display());
    std::env::set_current_dir(folder.path()).unwrap();
    let world_at_first = world(OpenMode::Create);
    world_at_first.fill((0..ACCOUNTS).map(|number| (number, 1000)).chain((0..WRITERS).map(|writer| (COUNTERS + writer, 0))));
    drop(world_at_first);
    let mut random = Random(cycles);
    let mut known = Known::new(WRITERS);
    let (mut commits, mut with_commits) = (0, 0);
    for seed in 1..=cycles {
        // Sometimes in the middle of its recovery.
        let after = Duration::from_micros(random.below(if seed % 7 == 0 { 20_000 } else { 250_000 }));
        let lines = run_and_kill("the_process_that_is_killed", &[(FOLDER, &folder.path().display()), (SEED, &seed)], after);
        let before = commits;
        for line in lines {
            if let Some((writer, count)) = line.split_once(' ').and_then(|(w, c)| Some((w.parse().ok()?, c.parse().ok()?))) {
                known.said(writer, count, true);
                commits += 1;
            }
        }
        with_commits += u64::from(commits > before);
        keep_copy("db".as_ref(), "copy".as_ref());
        println!("cycle {seed}");
        let world = world(OpenMode::Write);
        let rows = world.check();
        let money: i64 = rows.range(..ACCOUNTS).map(|(_, row)| row.0).sum();
        assert_eq!((money, rows.len() as i64), (ACCOUNTS * 1000, ACCOUNTS + WRITERS), "cycle {seed}");
        known.compare(|writer| rows[&(COUNTERS + writer)].0);
    }
    folder.disable_cleanup(false);
    println!("{cycles} cycles, {with_commits} of them with commits, {commits} commits said");
}

#[test]
fn what_was_said_to_be_committed_is_there() {
    kill_again_and_again(8);
}

#[test]
#[ignore = "long: 1,000 times"]
fn a_thousand_times() {
    kill_again_and_again(1000);
}

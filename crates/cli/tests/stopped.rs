//! Processes that are stopped (SIGSTOP) at any moment, and locks that somebody keeps: others go on, or say who is in the way.
//!
//! The long run: `PAGEFOLD_STOPS=500 cargo test --release -p pagefold-cli --test stopped -- --nocapture`
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::changes::{Random, load};
use common::{Place, Run};
use pagefold::io::{OsStorage, Storage};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(place: &Place, arguments: &[&str]) -> Child {
    place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    // One that has ended by now cannot be told.
    let _ = Command::new("kill").args([name, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
}

#[test]
fn a_lock_that_somebody_keeps_is_got_past() {
    let place = Place::with_table();
    place.run(&["get", "db", "t", "1"]).ok();
    for name in ["gate", "turn"] {
        let _kept = OsStorage.lock(&place.path("db/readers").join(name)).unwrap();
        place.run(&["get", "db", "t", "1"]).ok();
        place.write("one.csv", "id,name,price,day\n1,oak,2.00,2024-01-01\n");
        place.run(&["upsert", "db", "t", "one.csv"]).ok();
        place.run(&["get", "db", "t", "1"]).ok();
    }
    place.run(&["check", "db"]).ok();
}

/// Of whoever was stopped: `None` when it had ended before.
fn beside_a_stopped_process(place: &Place, random: &mut Random, longest: &mut Duration) -> [u32; 3] {
    let commands: [&[&str]; 5] = [
        &["scan", "db", "t", "--limit", "1"],
        &["get", "db", "t", "2"],
        &["export", "db", "t", "out.csv"],
        &["check", "db"],
        &["upsert", "db", "t", "change.csv", "--rows-per-transaction", "50", "--memory", "4M"],
    ];
    let which = random.below(5) as usize;
    let mut stopped = start(place, commands[which]);
    std::thread::sleep(Duration::from_micros(u64::from(random.below(if which == 4 { 300_000 } else { 40_000 }))));
    signal(&stopped, "-STOP");
    let mut timed = |arguments: &[&str]| {
        let began = Instant::now();
        let run = place.run(arguments);
        *longest = (*longest).max(began.elapsed());
        run
    };
    let mut named = 0;
    let mut go_on_or_name = |run: Run| {
        if run.code == Some(0) {
            return;
        }
        // Who writes keeps others from writing, and from reading while it is amid its pages.
        assert_eq!(which, 4, "{run:?}");
        assert!(run.err.contains(&format!("process {} (pagefold), which is stopped", stopped.id())), "{run:?}");
        named += 1;
    };
    go_on_or_name(timed(&["get", "db", "t", "2"]));
    go_on_or_name(timed(&["upsert", "db", "t", "one.csv"]));
    go_on_or_name(timed(&["scan", "db", "t", "--limit", "3"]));
    let ended = u32::from(stopped.try_wait().unwrap().is_some());
    // Some go on, and are right; others are killed as they are.
    if random.below(2) == 0 {
        signal(&stopped, "-CONT");
        let status = stopped.wait().unwrap();
        assert!(status.success() || which < 4, "{:?}: {status}", commands[which]);
    } else {
        stopped.kill().unwrap();
        stopped.wait().unwrap();
    }
    [1, ended, named]
}

#[test]
fn beside_processes_that_are_stopped_at_any_moment() {
    let stops = std::env::var("PAGEFOLD_STOPS").map_or(20, |n| n.parse().unwrap());
    let place = Place::new();
    let mut random = Random(7);
    load(&place, &mut random);
    place.write("one.csv", "id,name,amount\n4,oak,2\n");
    let change: String = (0..6000).map(|key| format!("{key},changed {key},{key}\n")).collect();
    place.write("change.csv", &format!("id,name,amount\n{change}"));
    let (mut total, mut longest) = ([0; 3], Duration::ZERO);
    for _ in 0..stops {
        let counts = beside_a_stopped_process(&place, &mut random, &mut longest);
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    place.run(&["check", "db"]).ok();
    let [stopped, ended, named] = total;
    println!("{stopped} stopped, {ended} of them had ended; {named} commands named the process in their way; the longest took {longest:?}");
}

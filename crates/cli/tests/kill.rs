//! The program is killed in the middle of `upsert` and `delete`, again and again, on the same database. Afterwards each transaction is there whole or not at all, in the
//! order of the source, and `check` finds nothing.
//!
//! The long run: `cargo test --release -p pagefold-cli --test kill -- --ignored --nocapture`
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::changes::{Random, apply, apply_until, load, read, steps, write_source};
use common::{Place, Run};
use std::process::Stdio;
use std::time::Duration;

fn kill_again_and_again(cycles: u32, seed: u64) {
    let place = Place::new();
    let mut random = Random(seed);
    let mut rows = load(&place, &mut random);
    let (mut killed, mut partly) = (0, 0);
    for cycle in 1..=cycles {
        let steps = steps(&mut random, cycle);
        let delete = steps[0].1.is_none();
        write_source(&place, "change.csv", &steps);
        let per_transaction = [steps.len(), 1 + random.below(50) as usize, 200][random.below(3) as usize];
        let command = if delete { "delete" } else { "upsert" };
        let count = per_transaction.to_string();
        // A small pool writes pages of running transactions.
        let memory = ["4M", "64M"][random.below(2) as usize];
        let arguments = [command, "db", "t", "change.csv", "--rows-per-transaction", &count, "--memory", memory];
        let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // When it is killed is up to the machine; the outcome must be right whenever it is. Every fifth may end. About how long it takes:
        let whole = 20_000 + steps.len() as u32 * 12 + (steps.len() / per_transaction) as u32 * 1500;
        let wait = Duration::from_micros(u64::from(random.below(whole)));
        if cycle % 5 != 1 {
            std::thread::sleep(wait);
            child.kill().unwrap();
        }
        let run = Run::from(child.wait_with_output().unwrap());
        assert!(run.code.is_none_or(|code| code == 0), "{run:?}");
        if run.code.is_none() {
            killed += 1;
        }
        let found = read(&place);
        let done = apply_until(&mut rows, &steps, per_transaction, &found);
        let done = done.unwrap_or_else(|| panic!("cycle {cycle}, {arguments:?}: the table is at the end of no transaction"));
        assert!(
            run.code.is_none() || {
                apply(&mut rows, &steps[done..]);
                found == rows
            },
            "cycle {cycle}: it ended, but not all is there"
        );
        partly += u32::from(done > 0 && done < steps.len());
        place.run(&["check", "db"]).ok();
    }
    println!("{cycles} cycles: {killed} killed, {partly} with some transactions committed");
}

#[test]
fn killed_at_any_time_each_transaction_is_there_whole_or_not_at_all() {
    kill_again_and_again(10, 1);
}

#[test]
#[ignore = "long: 1,000 times"]
fn killed_a_thousand_times() {
    kill_again_and_again(1000, 2);
}

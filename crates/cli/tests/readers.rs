//! Programs read a database while another one writes it: each sees the state between two transactions, and `check` finds nothing.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::changes::{KEYS, Random, Rows, apply, apply_until, load, read, steps, write_source};
use common::{Place, Run};
use std::process::{Child, Stdio};

const PER_TRANSACTION: usize = 40;

fn start(place: &Place, arguments: &[&str]) -> Child {
    place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Readers while one source is applied; how many of them saw a state amid it.
fn read_beside(place: &Place, random: &mut Random, rows: &mut Rows, cycle: u32) -> u32 {
    let steps = steps(random, cycle);
    write_source(place, "change.csv", &steps);
    let command = if steps[0].1.is_none() { "delete" } else { "upsert" };
    let count = PER_TRANSACTION.to_string();
    // A small pool writes pages of running transactions.
    let mut writer = start(place, &[command, "db", "t", "change.csv", "--rows-per-transaction", &count, "--memory", "4M"]);
    // One that is killed leaves nothing that troubles others.
    let mut killed = start(place, &["export", "db", "t", "killed.csv"]);
    let (mut amid, mut last) = (0, 0);
    let mut ended = false;
    for turn in 0.. {
        let state = read(place);
        let done = apply_until(&mut rows.clone(), &steps, PER_TRANSACTION, &state);
        let done = done.unwrap_or_else(|| panic!("cycle {cycle}: what was exported is the end of no transaction"));
        assert!(done >= last, "cycle {cycle}: first {last} rows were changed, then {done}");
        amid += u32::from(done > 0 && done < steps.len());
        last = done;
        if ended {
            break;
        }
        match turn % 3 {
            0 => drop(place.run(&["check", "db"]).ok()),
            1 => {
                let by_index = place.run(&["scan", "db", "t", "--index", "by_name", "--json"]).ok().json();
                assert!(by_index["row_count"].as_u64().unwrap() <= u64::from(KEYS));
            }
            _ => drop(place.run(&["report", "db", "--json"]).ok().json()),
        }
        if turn == 0 {
            let _ = killed.kill();
        }
        ended = writer.try_wait().unwrap().is_some();
    }
    killed.wait().unwrap();
    Run::from(writer.wait_with_output().unwrap()).ok();
    apply(rows, &steps);
    assert!(read(place) == *rows, "cycle {cycle}: afterwards");
    amid
}

#[test]
fn readers_see_states_between_transactions_of_the_process_that_writes() {
    let place = Place::new();
    let mut random = Random(4);
    let mut rows = load(&place, &mut random);
    let (mut amid, mut cycle) = (0, 0);
    // Until a reader came in the middle: on some machines that takes more turns than on others.
    while cycle < 6 || amid == 0 && cycle < 100 {
        cycle += 1;
        amid += read_beside(&place, &mut random, &mut rows, cycle);
    }
    println!("{amid} readers saw some of the transactions");
    assert!(amid > 0, "no reader came in the middle: this shows nothing");
    place.run(&["check", "db"]).ok();
    // The next writer and reader clean up.
    let left: Vec<_> = std::fs::read_dir(place.path("db/readers")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_str().is_some_and(|name| name.starts_with("gate") || name.starts_with("turn"))), "{left:?}");
}

//! The program is killed in the middle of `upsert` and `delete`, again and again, on the same database. Afterwards each transaction is there whole or not at all, in the
//! order of the source, and `check` finds nothing.
//!
//! The long run: `cargo test --release -p pagefold-cli --test kill -- --ignored --nocapture`
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, Run};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

/// Rows of the table by key: what follows the key in a line.
type Rows = BTreeMap<u32, String>;

const KEYS: u32 = 40_000;
const HEADER: &str = "id,name,amount\n";

/// Numbers that look random (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }
}

/// A row's columns behind the key; names of very different lengths, so that rows move.
fn columns(random: &mut Random, cycle: u32) -> String {
    let name = ["oak", "elm tree", "a weeping willow by the water"][random.below(3) as usize].repeat(1 + random.below(3) as usize);
    format!("{name} {},{cycle}", random.below(500))
}

/// What a source does to the table, row by row; `None` deletes.
type Steps = Vec<(u32, Option<String>)>;

fn steps(random: &mut Random, cycle: u32) -> Steps {
    let (start, count) = (random.below(KEYS), 3000 + random.below(KEYS / 3));
    let stride = [1, 1, 7, 4999][random.below(4) as usize];
    let delete = random.below(3) == 0;
    let key = |i: u32| (start + i * stride) % KEYS;
    (0..count).map(|i| (key(i), (!delete).then(|| columns(random, cycle)))).collect()
}

fn read(place: &Place) -> (Rows, bool) {
    let run = place.run(&["export", "db", "t", "-"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let recovered = run.err.contains("was not closed in order");
    assert!(recovered || run.err.is_empty(), "{}", run.err);
    let rows = run.out.lines().skip(1).map(|line| line.split_once(',').unwrap());
    (rows.map(|(key, rest)| (key.parse().unwrap(), rest.to_owned())).collect(), recovered)
}

fn apply(rows: &mut Rows, steps: &[(u32, Option<String>)]) {
    for (key, columns) in steps {
        match columns {
            Some(columns) => drop(rows.insert(*key, columns.clone())),
            None => drop(rows.remove(key)),
        }
    }
}

fn kill_again_and_again(cycles: u32, seed: u64) {
    let place = Place::new();
    let mut random = Random(seed);
    let mut rows = Rows::new();
    let mut text = HEADER.to_owned();
    for key in 0..KEYS / 2 {
        rows.insert(key * 2, columns(&mut random, 0));
        text += &format!("{},{}\n", key * 2, rows[&(key * 2)]);
    }
    place.write("t.csv", &text);
    let types = "id integer not null, name varchar(200), amount integer";
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--page-size", "4K", "--columns", types]).ok();
    place.run(&["create-index", "db", "by_name", "t(name)", "--format", "fold"]).ok();
    let (mut killed, mut recovered, mut partly) = (0, 0, 0);
    for cycle in 1..=cycles {
        let steps = steps(&mut random, cycle);
        let delete = steps[0].1.is_none();
        let mut text = if delete { "id\n".to_owned() } else { HEADER.to_owned() };
        for (key, columns) in &steps {
            text += &columns.as_ref().map_or(format!("{key}\n"), |columns| format!("{key},{columns}\n"));
        }
        place.write("change.csv", &text);
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
        let (found, was_open) = read(&place);
        recovered += u32::from(was_open);
        let mut done = 0;
        while found != rows {
            assert!(done < steps.len(), "cycle {cycle}, {arguments:?}: the table is at the end of no transaction");
            let next = (done + per_transaction).min(steps.len());
            apply(&mut rows, &steps[done..next]);
            done = next;
        }
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
    println!("{cycles} cycles: {killed} killed, {recovered} not closed in order, {partly} with some transactions committed");
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

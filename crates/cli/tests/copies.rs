//! `copy`, `recover` and `archive-log` on real files, beside a process that writes.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, Run, rows_csv};
use std::process::Stdio;

/// What `export` says, without what it says about recovery.
fn export(place: &Place, database: &str) -> String {
    place.run(&["export", database, "t", "-", "--format", "csv"]).ok().out
}

fn check(place: &Place, database: &str) {
    place.run(&["check", database]).ok();
}

#[test]
fn a_copy_a_later_one_and_recovery_from_both() {
    let place = Place::with_table();
    place.run(&["copy", "db", "whole.pfc"]).ok();
    place.write("more.csv", &rows_csv(1500..2500));
    place.run(&["upsert", "db", "t", "more.csv"]).ok();
    let run = place.run(&["copy", "db", "later.pfc", "--incremental", "whole.pfc", "--json"]).ok().json();
    assert!(run["pages"].as_u64().unwrap() > 0 && run["log_end"].as_u64().unwrap() > 0, "{run}");
    let size = |name: &str| std::fs::metadata(place.path(name)).unwrap().len();
    assert_eq!(run["size_bytes"].as_u64().unwrap(), size("later.pfc"));
    let before = export(&place, "db");
    place.run(&["recover", "new", "whole.pfc", "later.pfc"]).ok();
    check(&place, "new");
    assert_eq!(export(&place, "new"), before);
    // A directory is a database at once.
    place.run(&["copy", "db", "directory"]).ok();
    check(&place, "directory");
    assert_eq!(export(&place, "directory"), before);
    place.run(&["upsert", "directory", "t", "t.csv"]).ok();
    check(&place, "directory");
    // Mistakes.
    place.run(&["copy", "db", "whole.pfc"]).fails(1, &["whole.pfc", "exists"]);
    place.run(&["copy", "db", "x", "--incremental", "whole.pfc"]).fails(2, &[".pfc"]);
    place.run(&["copy", "nothing", "x.pfc"]).fails(1, &["nothing"]);
    place.run(&["recover", "x", "later.pfc"]).fails(1, &["later.pfc", "missing"]);
    place.run(&["recover", "new", "whole.pfc"]).fails(1, &["new", "exists"]);
    place.run(&["recover", "x", "t.csv"]).fails(1, &["t.csv", "not a copy"]);
    place.run(&["recover", "x", "whole.pfc", "--until", "noon"]).fails(2, &["noon"]);
    let mut bytes = std::fs::read(place.path("whole.pfc")).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    std::fs::write(place.path("bad.pfc"), &bytes).unwrap();
    place.run(&["recover", "x", "bad.pfc"]).fails(1, &["bad.pfc", "page"]);
    std::fs::write(place.path("cut.pfc"), &bytes[..middle]).unwrap();
    place.run(&["recover", "x", "cut.pfc"]).fails(1, &["cut.pfc", "long"]);
    assert!(!place.path("x").exists() && !place.path("x.partial").exists() && !place.path("x.pfc").exists());
}

#[test]
fn the_archive_takes_a_copy_to_a_point_in_time() {
    let place = Place::with_table();
    std::fs::create_dir(place.path("archive")).unwrap();
    place.run(&["archive-log", "db", "nowhere"]).fails(1, &["nowhere"]);
    for own in ["db", "db/log"] {
        place.run(&["archive-log", "db", own]).fails(1, &[own, "directory of the database"]);
    }
    let run = place.run(&["archive-log", "db", "archive"]).ok();
    assert!(run.out.contains("archive"), "{run:?}");
    place.run(&["copy", "db", "whole.pfc"]).ok();
    let mut states = Vec::new();
    for i in 0..4 {
        place.write("change.csv", &rows_csv(i * 150 + 150..i * 150 + 2150));
        place.run(&["upsert", "db", "t", "change.csv", "--rows-per-transaction", "500"]).ok();
        place.run(&["copy", "db", &format!("{i}.pfc"), "--json"]).ok();
        let copied = place.run(&["recover", &format!("at-{i}"), &format!("{i}.pfc"), "--json"]).ok().json();
        let report = place.run(&["recover", &format!("log-{i}"), "whole.pfc", "--log", "archive", "--log", "db", "--json"]).ok().json();
        assert!(report["log_end"].as_u64().unwrap() >= copied["log_end"].as_u64().unwrap(), "{report} {copied}");
        let time = report["last_commit_time"].as_str().unwrap().to_owned();
        states.push((time, export(&place, "db")));
        assert_eq!(export(&place, &format!("log-{i}")), states[i as usize].1);
        assert_eq!(export(&place, &format!("at-{i}")), states[i as usize].1);
    }
    assert!(std::fs::read_dir(place.path("archive")).unwrap().count() <= 1);
    for (i, (time, state)) in states.iter().enumerate() {
        let name = format!("until-{i}");
        place.run(&["recover", &name, "whole.pfc", "--log", "archive", "--log", "db", "--until", time]).ok();
        check(&place, &name);
        assert_eq!(export(&place, &name), *state, "{time}");
    }
    // Past a load the log does not go.
    place.run(&["load", "db", "t2", "t.csv"]).ok();
    place.run(&["upsert", "db", "t", "t.csv"]).ok();
    let run = place.run(&["recover", "stopped", "whole.pfc", "--log", "archive", "--log", "db"]).ok();
    assert!(run.out.contains("Take a copy after such commands"), "{run:?}");
    assert_eq!(export(&place, "stopped"), states.last().unwrap().1);
    // An archive that is gone shows.
    std::fs::rename(place.path("archive"), place.path("gone")).unwrap();
    place.run(&["upsert", "db", "t", "change.csv"]).ok();
    let run = place.run(&["report", "db"]).ok();
    assert!(run.out.contains("WARNING") && run.out.contains("archive"), "{}", run.out);
    place.run(&["archive-log", "db", "--off"]).ok();
    assert!(!place.run(&["report", "db"]).ok().out.contains("WARNING"));
}

#[test]
fn copies_beside_a_process_that_writes_are_states_between_its_transactions() {
    const KEYS: u32 = 8_000;
    const BATCH: usize = 100;
    let place = Place::new();
    let line = |key: u32, what: &str| format!("{key},{what} {}\n", "abc ".repeat(key as usize % 20));
    let table = |changed: u32| -> String {
        let rows: String = (0..KEYS).map(|key| line(key, if key < changed { "new" } else { "old" })).collect();
        format!("id,name\n{rows}")
    };
    place.write("t.csv", &table(0));
    let types = "id integer not null, name varchar(200)";
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--page-size", "4K", "--columns", types]).ok();
    place.run(&["create-index", "db", "by_name", "t(name)", "--format", "fold"]).ok();
    // Row by row to new values, in the order of the keys: what is in a copy says how far the writer was.
    place.write("change.csv", &table(KEYS));
    let count = BATCH.to_string();
    let (mut copies, mut between) = (0, 0);
    let mut base: Option<String> = None;
    let mut rounds = 0;
    // On a busy machine the writer can be through before the first copy begins: then it writes once more.
    let is_enough = |rounds: u32, between: u32| rounds >= 2 && between > 0 || rounds == 40;
    while !is_enough(rounds, between) {
        let arguments = ["upsert", "db", "t", "change.csv", "--rows-per-transaction", &count, "--memory", "4M"];
        let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut chain: Vec<String> = Vec::new();
        while child.try_wait().unwrap().is_none() {
            let name = format!("copy-{copies}.pfc");
            let mut arguments = vec!["copy", "db", &name];
            if let Some(base) = &base {
                arguments.extend(["--incremental", base]);
            }
            // It may find the writer just gone, or not yet there.
            place.run(&arguments).ok();
            chain.push(name.clone());
            let made = format!("made-{copies}");
            let mut arguments = vec!["recover", &made];
            arguments.extend(chain.iter().map(String::as_str));
            place.run(&arguments).ok();
            check(&place, &made);
            let rows = export(&place, &made);
            let mut rows: Vec<&str> = rows.lines().skip(1).collect();
            // Rows that have moved come elsewhere.
            rows.sort_unstable_by_key(|row| row.split_once(',').unwrap().0.parse::<u32>().unwrap());
            let changed = rows.iter().filter(|row| row.contains(",new")).count();
            assert!(rows.len() == KEYS as usize && changed.is_multiple_of(BATCH), "{changed} of {} rows", rows.len());
            assert!(rows[..changed].iter().all(|row| row.contains(",new")), "not what the writer had done by then");
            between += u32::from(changed > 0 && changed < KEYS as usize);
            copies += 1;
            base = (chain.len() < 3).then_some(name);
            if base.is_none() {
                chain.clear();
            }
            std::fs::remove_dir_all(place.path(&made)).unwrap();
        }
        let run = Run::from(child.wait_with_output().unwrap());
        base = None;
        // A copy that came first had the database open.
        if run.err.contains("is being written by another process") {
            continue;
        }
        run.ok();
        rounds += 1;
        if !is_enough(rounds, between) {
            place.run(&["upsert", "db", "t", "t.csv"]).ok();
        }
    }
    assert!(between > 0, "none of {copies} copies was taken while the writer was at it");
    println!("{copies} copies, {between} of them between the first and the last transaction");
}

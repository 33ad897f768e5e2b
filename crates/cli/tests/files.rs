//! What people have goes in: files of all kinds, places in errors, what was decided.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, rows_csv};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

#[test]
fn errors_name_the_place() {
    let place = Place::with_table();
    place.write("twice.csv", "id,name\n1,a\n2,b\n1,c\n");
    place.run(&["load", "db", "u", "twice.csv", "--primary-key", "id"]).fails(1, &["twice.csv, line 2 and twice.csv, line 4", "(1)"]);
    place.run(&["load", "db", "u", "twice.csv", "--primary-key", "name"]).ok();
    place.run(&["drop", "db", "u"]).ok();
    // Among rows of a table that is there.
    place.write("more.csv", &rows_csv(1999..2002));
    place.run(&["load", "db", "t", "more.csv", "--append"]).fails(1, &["more.csv, line 2: ", "duplicate key"]);
    // A row that is too wide for its page, though a larger one would do.
    let names: Vec<String> = (0..300).map(|i| format!("c{i}")).collect();
    let wide = |digits: usize| vec!["9".repeat(digits); 300].join(",");
    place.write("wide.csv", &format!("{}\n{}\n{}\n", names.join(","), vec!["x"; 300].join(","), wide(19).replace('9', "y")));
    place
        .run(&["load", "db", "u", "wide.csv", "--page-size", "2K"])
        .fails(1, &["wide.csv, line 3: ", "too wide", "--page-size", "would do"]);
    place.run(&["load", "db", "u", "wide.csv", "--page-size", "32K"]).ok();
    place.run(&["drop", "db", "u"]).ok();
    // A key that no leaf takes: which row.
    place.write("long.csv", &format!("id,name\n1,a\n7,{}\n", "x".repeat(5000)));
    place.run(&["load", "db", "u", "long.csv", "--primary-key", "name"]).fails(1, &["long.csv, line 3: ", "name", "5"]);
    place.run(&["load", "db", "u", "long.csv", "--primary-key", "id"]).ok();
    place.run(&["create-index", "db", "i", "u(name)"]).fails(1, &["table \"u\", the row with primary key (7): ", "name"]);
    place.run(&["create-index", "db", "i", "t(name)", "--unique"]).fails(1, &["duplicate key", "anchor chain"]);
    // A damaged Parquet file is an error of one line.
    place.run(&["export", "db", "t", "t.parquet"]).ok();
    let mut bytes = std::fs::read(place.path("t.parquet")).unwrap();
    let mut seen = 0;
    for at in (8..bytes.len() - 8).step_by(307) {
        bytes[at] ^= 0x5A;
        std::fs::write(place.path("damaged.parquet"), &bytes).unwrap();
        let run = place.run(&["estimate", "damaged.parquet"]);
        assert!(run.err.lines().count() <= 1 && !run.err.contains("panicked"), "{}", run.err);
        seen += u32::from(run.code == Some(1));
        bytes[at] ^= 0x5A;
    }
    assert!(seen > 0, "{seen}");
    // Wrong use is JSON, too.
    for arguments in
        [&["load", "db", "--json"][..], &["frobnicate", "--json"], &["load", "db", "u", "t.csv", "--page-size", "banana", "--json"]]
    {
        assert!(place.run(arguments).fails(2, &[]).json()["error"].is_string(), "{arguments:?}");
    }
    // Who drops the index of a primary key hears what goes with it.
    let dropped = place.run(&["drop", "db", "t_pk", "--json"]).ok().json();
    assert_eq!(dropped["table_without_key"], "t");
}

#[test]
fn replaced_and_appended_rows_take_the_types_of_the_table() {
    let place = Place::new();
    place.write("t.csv", "zip,n,day\n01234,1,2024-01-31\n98765,2,2024-02-01\n");
    let done = place.run(&["load", "db", "t", "t.csv", "--primary-key", "zip", "--json"]).ok().json();
    let columns = done["decided"]["columns"].as_array().unwrap();
    let types: Vec<&str> = columns.iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["VARCHAR", "INTEGER", "DATE"]);
    assert_eq!((&done["decided"]["files"][0]["header"], &done["decided"]["files"][0]["delimiter"]), (&true.into(), &",".into()));
    // All digits, and text all the same; by names in another order.
    place.write("more.csv", "day;n;zip\n2024-03-01;3;11111\n");
    place.run(&["load", "db", "t", "more.csv", "--append"]).ok();
    assert_eq!(place.run(&["get", "db", "t", "11111", "--json"]).ok().json()["row"]["n"], 3);
    place.write("bad.csv", "zip,n,day\n22222,4,2024-03-01\n33333,x,2024-03-01\n");
    place.run(&["load", "db", "t", "bad.csv", "--append"]).fails(1, &["bad.csv, line 3", "\"n\"", "\"x\""]);
    // The primary key stays, the type grows.
    place.write("new.csv", "zip,n,day\n11111,3000000000,2024-03-01\n22222,5,2024-03-02\n");
    let done = place.run(&["load", "db", "t", "new.csv", "--replace", "--json"]).ok().json();
    assert_eq!(done["primary_key_kept"], serde_json::json!(["zip"]));
    let report = place.run(&["report", "db", "t", "--json"]).ok().json();
    let columns = &report["tables"][0]["columns"];
    assert_eq!((&columns[0]["type"], &columns[1]["type"], &columns[2]["type"]), (&"VARCHAR".into(), &"BIGINT".into(), &"DATE".into()));
    assert_eq!(place.run(&["get", "db", "t", "11111", "--json"]).ok().json()["row"]["n"], 3_000_000_000u64);
    let text = place.run(&["report", "db", "t"]).ok().out;
    assert!(text.contains("COLUMNS of t") && text.contains("zip  VARCHAR NOT NULL") && text.contains("primary key (zip)"), "{text}");
    // Parquet of narrower types goes into a table of wider ones.
    place.write("narrow.csv", "zip,n,day\n44444,7,2024-03-01\n");
    place.run(&["load", "other", "t", "narrow.csv", "--type", "zip=text"]).ok();
    place.run(&["export", "other", "t", "narrow.parquet"]).ok();
    place.run(&["load", "db", "t", "narrow.parquet", "--append"]).ok();
    assert_eq!(place.run(&["get", "db", "t", "44444", "--json"]).ok().json()["row"]["n"], 7);
    place.run(&["check", "db"]).ok();
    place.run(&["load", "db", "u", "t.csv", "--type", "zap=text"]).fails(1, &["\"zap\"", "zip, n, day"]);
    place.run(&["load", "db", "u", "t.csv", "--type", "zip=nonsense"]).fails(2, &["--type", "nonsense"]);
}

#[test]
fn rows_that_do_not_fit_are_reported() {
    let place = Place::new();
    place.write("t.csv", "id,n\n1,5\n2,x\n3,6\n4\n5,7\n");
    place.run(&["load", "db", "t", "t.csv", "--type", "n=integer"]).fails(1, &["t.csv, line 5"]);
    let load = ["load", "db", "t", "t.csv", "--type", "n=integer", "--primary-key", "id", "--reject", "bad.csv"];
    let done = place.run(&[&load[..], &["--json"]].concat()).ok().json();
    assert_eq!((&done["rows"], &done["rejected_rows"]), (&3.into(), &2.into()));
    let report = std::fs::read_to_string(place.path("bad.csv")).unwrap();
    assert_eq!(report.lines().count(), 3);
    assert!(report.contains("\"t.csv\",3,") && report.contains("\"t.csv\",5,\"1 fields, where 2 are expected\",\"4\""), "{report}");
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, "id,n\n1,5\n3,6\n5,7\n");
    let few = [&load[..], &["--replace", "--reject-limit", "1"]].concat();
    place.run(&few).fails(1, &["t.csv, line 5", "more than 1 rows"]);
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, "id,n\n1,5\n3,6\n5,7\n");
    place.run(&["check", "db"]).ok();
}

#[test]
fn rows_that_do_not_fit_go_neither_over_the_input_nor_into_the_database() {
    let place = Place::with_table();
    let before = place.run(&["export", "db", "t", "-"]).ok().out;
    let input = "id,n\n1,5\n2,x\n";
    place.write("in.csv", input);
    let data_set = std::fs::read_dir(place.path("db/data")).unwrap().next().unwrap().unwrap().path();
    let data_set = data_set.to_str().unwrap();
    let load = |table: &str, rejects: &str| place.run(&["load", "db", table, "in.csv", "--type", "n=integer", "--reject", rejects]);
    load("u", data_set).fails(1, &["lies in the directory of the database"]);
    load("u", "in.csv").fails(1, &["in.csv: it is loaded"]);
    load("u", "./in.csv").fails(1, &["it is loaded"]);
    std::fs::hard_link(place.path("in.csv"), place.path("same.csv")).unwrap();
    load("u", "same.csv").fails(1, &["same.csv: it is loaded"]);
    std::fs::remove_file(place.path("same.csv")).unwrap();
    std::fs::hard_link(place.path("db/control"), place.path("control.csv")).unwrap();
    load("u", "control.csv").fails(1, &["control.csv: it has other names"]);
    std::fs::remove_file(place.path("control.csv")).unwrap();
    load("u", "not/there.csv").fails(1, &["not/there.csv"]);
    assert_eq!(std::fs::read_to_string(place.path("in.csv")).unwrap(), input);
    // Nothing was loaded.
    place.run(&["report", "db", "u"]).fails(1, &["\"u\""]);
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, before);
    place.run(&["load", "new", "u", "in.csv", "--type", "n=integer", "--reject", "not/there.csv"]).fails(1, &["not/there.csv"]);
    assert!(!place.path("new").exists());
    place.run(&["check", "db"]).ok();
    load("u", "bad.csv").ok();
    // A name that SQL would neither make nor drop.
    load("pagefold_u", "bad.csv").fails(1, &["\"pagefold_u\"", "the database's own"]);
}

#[test]
fn files_of_many_kinds_are_the_same_rows() {
    let place = Place::with_table();
    let expected = place.run(&["export", "db", "t", "-"]).ok().out;
    for file in ["t.parquet", "t.arrow", "t.jsonl", "t.tsv"] {
        place.run(&["export", "db", "t", file]).ok();
    }
    let gz = |name: &str| {
        let status = Command::new("gzip").arg("-k").arg(place.path(name)).status().unwrap();
        assert!(status.success());
    };
    gz("t.csv");
    gz("t.jsonl");
    let zst = Command::new("zstd").args(["-q", "-k"]).arg(place.path("t.csv")).status().is_ok_and(|status| status.success());
    let mut files = vec!["t.csv.gz", "t.jsonl.gz", "t.parquet", "t.arrow", "t.jsonl", "t.tsv"];
    if zst {
        files.push("t.csv.zst");
    }
    for file in files {
        let done = place.run(&["load", "again", "t", file, "--replace", "--json"]).ok().json();
        assert_eq!(place.run(&["export", "again", "t", "-"]).ok().out, expected, "{file}");
        let compression = &done["decided"]["files"][0]["compression"];
        assert_eq!(compression.is_string(), file.ends_with("gz") || file.ends_with("zst"), "{file}");
    }
    // Standard input, whatever it is; without a name in between.
    for (file, more) in [("t.csv", &[][..]), ("t.csv.gz", &["--primary-key", "id"]), ("t.parquet", &[]), ("t.jsonl", &[])] {
        let mut child = place
            .command(&[&["load", "again", "t", "-", "--replace"], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&std::fs::read(place.path(file)).unwrap()).unwrap();
        assert!(child.wait().unwrap().success(), "{file}");
        assert_eq!(place.run(&["export", "again", "t", "-"]).ok().out, expected, "{file}");
    }
    // Several by a pattern, in the order of their names.
    std::fs::create_dir(place.path("days")).unwrap();
    for (i, ids) in [0..700, 700..1400, 1400..2000].into_iter().enumerate() {
        place.write(&format!("days/day-{i}.csv"), &rows_csv(ids));
    }
    place.run(&["load", "again", "t", "days/day-[0-9].csv", "--replace"]).ok();
    assert_eq!(place.run(&["export", "again", "t", "-"]).ok().out, expected);
    place.run(&["load", "again", "u", "days/night-*.csv"]).fails(1, &["days/night-*.csv"]);
    place.run(&["load", "again", "u", "t.csv", "-", "-"]).fails(1, &["standard input"]);
    let broken = std::fs::read(place.path("t.csv.gz")).unwrap();
    std::fs::write(place.path("broken.csv.gz"), &broken[..broken.len() / 2]).unwrap();
    place.run(&["load", "again", "u", "broken.csv.gz"]).fails(1, &["broken.csv.gz", "unpacked"]);
    let deleted = place.run(&["delete", "again", "t", "t.csv.gz", "--json"]).ok().json();
    assert_eq!(deleted["deleted"], 2000);
}

#[test]
fn export_takes_columns_and_conditions() {
    let place = Place::with_table();
    let out = place.run(&["export", "db", "t", "-", "--columns", "day,\"id\"", "--where", "id < 3 and price > 2.5"]).ok().out;
    assert_eq!(out, "day,id\n2024-02-02,1\n2024-03-03,2\n");
    let done = place.run(&["export", "db", "t", "some.parquet", "--columns", "id", "--where", "price > 5990.5", "--json"]).ok().json();
    assert!(done["rows"].as_u64().unwrap() < 5, "{done}");
    place.run(&["export", "db", "t", "-", "--where", "nothing = 1"]).fails(2, &["nothing"]);
    // Names that are no words, and LIKE with an escape.
    place.write("odd.csv", "\"a, b\",\"say \"\"x\"\"\"\n1,10%\n2,100\n");
    place.run(&["load", "db", "odd", "odd.csv", "--primary-key", "\"a, b\""]).ok();
    let rows = |more: &[&str]| place.run(&[&["scan", "db", "odd", "--format", "csv"], more].concat()).ok().out.lines().count() - 1;
    assert_eq!(rows(&["--where", "\"say \"\"x\"\"\" like '10!%' escape '!'"]), 1);
    assert_eq!(rows(&["--columns", "\"say \"\"x\"\"\",\"a, b\"", "--where", "\"a, b\" > 1.5"]), 1);
    place.run(&["create-index", "db", "odd_i", "odd(\"say \"\"x\"\"\" DESC)"]).ok();
    // Numbers of other types than the column's.
    assert_eq!(rows(&["--where", "\"a, b\" = 1.0"]), 1);
    let scan = place.run(&["scan", "db", "t", "--where", "price = 3.010", "--json"]).ok().json();
    assert_eq!(scan["row_count"], 1);
    assert_eq!(scan["columns"][2]["type"], "DECIMAL(6,2)");
}

/// An index is taken where it leaves few rows.
#[test]
fn scan_takes_an_index_by_itself() {
    let place = Place::with_table();
    let scan = |condition: &str| place.run(&["scan", "db", "t", "--where", condition, "--json"]).ok().json();
    let narrow = scan("id between 100 and 120");
    assert_eq!((&narrow["index"], &narrow["row_count"]), (&"t_pk".into(), &21.into()));
    let wide = scan("id > 100");
    assert_eq!((wide["index"].is_null(), &wide["row_count"]), (true, &1899.into()));
    assert!(scan("price > 100")["index"].is_null());
    place.run(&["create-index", "db", "by_price", "t(price)"]).ok();
    let by_price = scan("price between 30 and 36.5 and id > 3");
    assert_eq!((&by_price["index"], &by_price["row_count"]), (&"by_price".into(), &3.into()));
    assert_eq!(scan("id = 999999")["row_count"], 0);
}

#[test]
fn a_second_writer_waits_and_hears_who_writes() {
    let place = Place::with_table();
    place.write("one.csv", &rows_csv(2000..2001));
    // Somebody who holds the lock of the database, as a writer does, and says who it is.
    let lock = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(place.path("db/lock")).unwrap();
    let held = lock.try_clone().unwrap();
    held.try_lock().unwrap();
    let own = format!("is being written by another process: process {}", std::process::id());
    let upsert = ["upsert", "db", "t", "one.csv"];
    place.run(&upsert).fails(1, &["db", &own]);
    place.run(&[&upsert[..], &["--wait", "50ms"]].concat()).fails(1, &[&own]);
    place.run(&[&upsert[..], &["--wait", "soon"]].concat()).fails(2, &["soon"]);
    let child = place.command(&[&upsert[..], &["--wait", "10m"]].concat()).stdout(Stdio::piped()).spawn().unwrap();
    held.unlock().unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    // While waiting the first interrupt ends it.
    held.try_lock().unwrap();
    let child = place.command(&[&upsert[..], &["--wait", "10m"]].concat()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_ne!(child.wait_with_output().unwrap().status.code(), Some(0));
}

/// The first interrupt ends who waits for input or for somebody who reads the output.
#[test]
fn the_first_interrupt_ends_waiting() {
    let place = Place::with_table();
    let pipe = place.path("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for arguments in [&["load", "db", "u", "-"][..], &["export", "db", "t", "pipe.csv"], &["upsert", "db", "t", "-"]] {
        let mut child = place.command(arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        std::thread::sleep(std::time::Duration::from_millis(500));
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        // 1, or the signal itself when it came before the program listened.
        assert_ne!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {err}");
        drop(input);
    }
    place.run(&["check", "db"]).ok();
}

#[test]
fn what_is_done_is_done_when_standard_output_is_full() {
    let place = Place::with_table();
    place.write("one.csv", &rows_csv(2000..2001));
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["upsert", "db", "t", "one.csv"][..],
        &["load", "db", "u", "t.csv", "--json"],
        &["create-index", "db", "i", "t(name)"],
        &["reorg", "db", "t", "--compress", "none"],
        &["export", "db", "t", "out.csv"],
        &["drop", "db", "i"],
    ] {
        let run = common::Run::from(place.command(arguments).stdout(full()).output().unwrap());
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        assert!(run.err.contains("done, but") && run.err.contains("No space left"), "{run:?}");
    }
    assert_eq!(place.run(&["get", "db", "t", "2000", "--json"]).ok().json()["row"]["id"], 2000);
    // What only prints fails.
    let run = common::Run::from(place.command(&["scan", "db", "t"]).stdout(full()).output().unwrap());
    assert_eq!(run.code, Some(1));
}

/// Without room for a thread's stack there is an error, no panic.
#[test]
fn no_thread_is_an_error() {
    let place = Place::with_table();
    for arguments in [
        &["load", "db", "u", "t.csv"][..],
        &["load", "db", "u", "t.csv", "--compress", "fixed"],
        &["upsert", "db", "t", "t.csv"],
        &["estimate", "t.csv"],
        &["scan", "db", "t"],
    ] {
        let output = place.command(arguments).env("RUST_MIN_STACK", "140737488355328").output().unwrap();
        let run = common::Run::from(output);
        assert!(!run.err.contains("panicked"), "{arguments:?}: {}", run.err);
        assert!(run.code == Some(0) || run.err.contains("thread"), "{arguments:?}: {run:?}");
    }
    place.run(&["check", "db"]).ok();
}

#[test]
fn check_makes_nothing_in_what_is_no_database() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("folder/file", "something");
    for command in ["check", "report"] {
        place.run(&[command, "folder"]).fails(1, &["folder"]);
        let names: Vec<_> = std::fs::read_dir(place.path("folder")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["file"], "{command}");
    }
}

//! `upsert` and `delete`; databases that are not closed.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, Run, rows_csv};
use pagefold::engine::{Database, Isolation, OpenMode, Settings, TransactionOptions};
use pagefold::types::ValueRef;
use std::process::{Command, Stdio};

fn exported(place: &Place) -> String {
    let text = place.run(&["export", "db", "t", "-"]).ok().out;
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_by_key(|row| row.split(',').next().unwrap().parse::<u32>().unwrap());
    format!("{header}\n{}\n", rows.join("\n"))
}

#[test]
fn upsert_inserts_changes_and_leaves_alone() {
    let place = Place::with_table();
    place.run(&["create-index", "db", "by_name", "t(name, day DESC)", "--format", "fold"]).ok();
    // 1,000 rows as they are, 500 with other prices and names, 500 new ones; columns in another order.
    let mut wanted = rows_csv(0..1500);
    for id in 1500..2500 {
        wanted += &format!("{id},a name that is longer than before {id},{id}.25,2023-01-01\n");
    }
    let turned: String = wanted
        .lines()
        .skip(501)
        .map(|line| {
            let (rest, day) = line.rsplit_once(',').unwrap();
            format!("{day},{rest}\n")
        })
        .collect();
    place.write("u.csv", &format!("day,id,name,price\n{turned}"));
    let done = place.run(&["upsert", "db", "t", "u.csv", "--json"]).ok().json();
    for (field, value) in [("rows", 2000), ("inserted", 500), ("updated", 500), ("unchanged", 1000), ("transactions", 1)] {
        assert_eq!(done[field], value, "{field}");
    }
    assert!(done["elapsed_s"].as_f64().unwrap() > 0.0);
    assert!(exported(&place) == wanted);
    place.run(&["check", "db"]).ok();
    let again = place.run(&["upsert", "db", "t", "u.csv", "--rows-per-transaction", "300", "--json"]).ok().json();
    assert_eq!((again["unchanged"].as_u64(), again["transactions"].as_u64()), (Some(2000), Some(7)));
    let text = place.run(&["upsert", "db", "t", "u.csv"]).ok().out;
    assert!(text.starts_with("2,000 rows into table \"t\": 0 inserted, 0 updated, 2,000 unchanged"), "{text}");
    // By the index, in its order: the entries of old keys are gone.
    let scan = ["scan", "db", "t", "--index", "by_name", "--where", "name = 'compass'", "--json"];
    assert_eq!(place.run(&scan).ok().json()["row_count"], 375);
    let report = place.run(&["report", "db", "--json"]).ok().json();
    assert!(report["log"]["size_bytes"].as_u64() > Some(0) && report["log"]["segments"] == 1, "{report}");
    assert!(place.run(&["report", "db"]).ok().out.contains("LOG 1 segment"));
    // What comes twice in a file: the last one counts.
    place.write(
        "twice.csv",
        "id,name,price,day\n7,first,1.00,2020-01-01\n9999,x,1.00,2020-01-01\n7,second,,2020-01-02\n9999,y,2.00,2020-01-01\n",
    );
    let done = place.run(&["upsert", "db", "t", "twice.csv", "--json"]).ok().json();
    assert_eq!((done["inserted"].as_u64(), done["updated"].as_u64()), (Some(1), Some(3)));
    let row = place.run(&["get", "db", "t", "7", "--json"]).ok().json();
    assert_eq!(row["row"], serde_json::json!({"id": 7, "name": "second", "price": null, "day": "2020-01-02"}));
    place.run(&["check", "db"]).ok();
    // Commands that write whole tables go on working beside the log.
    place.run(&["reorg", "db", "t", "--page-size", "8K"]).ok();
    place.run(&["load", "db", "v", "u.csv", "--primary-key", "id"]).ok();
    place.run(&["upsert", "db", "v", "twice.csv"]).ok();
    place.run(&["check", "db"]).ok();
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["get", "db", "v", "9999", "--json"]).ok().json()["row"]["name"], "y");
}

#[test]
fn delete_takes_keys_from_any_file_that_has_them() {
    let place = Place::with_table();
    let delete = |file: &str, more: &[&str]| {
        let done = place.run(&[&["delete", "db", "t", file, "--json"], more].concat()).ok().json();
        (done["rows"].as_u64().unwrap(), done["deleted"].as_u64().unwrap(), done["not_found"].as_u64().unwrap())
    };
    // Only the key; other columns too, in another order; whole rows; keys without a header; Parquet.
    place.write("keys.csv", "id\n0\n1\n1\n5000\n");
    assert_eq!(delete("keys.csv", &[]), (4, 2, 2));
    place.write("other.csv", "comment,id,x\n,2,1\nwhat,3,\"a,b\"\n");
    assert_eq!(delete("other.csv", &[]), (2, 2, 0));
    place.write("rows.csv", &rows_csv(4..500));
    assert_eq!(delete("rows.csv", &["--rows-per-transaction", "7"]), (496, 496, 0));
    place.write("bare.tbl", "500|\n501|\n");
    assert_eq!(delete("bare.tbl", &[]), (2, 2, 0));
    place.write("keys.tbl", "502|x|1.00|2020-01-01|\n");
    assert_eq!(delete("keys.tbl", &[]), (1, 1, 0));
    place.write("some.csv", &rows_csv(503..600));
    // The types of the file are those of a text whose type is found; Parquet has its own.
    place.run(&["load", "other", "t", "some.csv", "--columns", "id integer not null, name text, price decimal(6,2), day date"]).ok();
    place.run(&["export", "other", "t", "some.parquet"]).ok();
    assert_eq!(delete("some.parquet", &[]), (97, 97, 0));
    assert!(exported(&place) == rows_csv(600..2000));
    place.run(&["check", "db"]).ok();
    let text = place.run(&["delete", "db", "t", "keys.csv"]).ok().out;
    assert!(text.starts_with("4 keys, 0 rows deleted from table \"t\", 4 not found"), "{text}");
    // Room and keys are free again.
    place.write("t.csv", &rows_csv(0..2000));
    assert_eq!(place.run(&["upsert", "db", "t", "t.csv", "--json"]).ok().json()["inserted"], 600);
    assert!(exported(&place) == rows_csv(0..2000));
    // All of them, and again.
    assert_eq!(delete("t.csv", &[]), (2000, 2000, 0));
    assert_eq!(place.run(&["scan", "db", "t", "--json"]).ok().json()["row_count"], 0);
    place.run(&["check", "db"]).ok();
    place.run(&["upsert", "db", "t", "t.csv"]).ok();
    assert!(exported(&place) == rows_csv(0..2000));
    place.run(&["check", "db"]).ok();
}

#[test]
fn keys_of_text_are_what_they_look_like_in_the_table() {
    let place = Place::new();
    place.write("t.csv", "code,n\n007,1\n7,2\n1e1,3\n");
    place.run(&["load", "db", "t", "t.csv", "--columns", "code varchar(8) not null, n integer", "--primary-key", "code"]).ok();
    place.write("keys.csv", "code\n007\n10\n");
    let done = place.run(&["delete", "db", "t", "keys.csv", "--json"]).ok().json();
    assert_eq!((done["deleted"].as_u64(), done["not_found"].as_u64()), (Some(1), Some(1)));
    place.write("u.csv", "n,code\n5,7\n6,07\n");
    place.run(&["upsert", "db", "t", "u.csv"]).ok();
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out.lines().count(), 4);
    assert_eq!(place.run(&["get", "db", "t", "7", "--json"]).ok().json()["row"]["n"], 5);
}

#[test]
fn what_fails_takes_everything_back() {
    let place = Place::with_table();
    place.run(&["load", "db", "heap", "t.csv"]).ok();
    place.write("names.csv", "id,name\n1,a\n2,b\n3,c\n");
    place.run(&["load", "db", "n", "names.csv", "--primary-key", "id"]).ok();
    place.run(&["create-index", "db", "n_name", "n(name)", "--unique"]).ok();
    let many = rows_csv(1000..3000).replace("sail", "jib");
    place.write("bad_value.csv", &format!("{many}3001,x,1.00,2024-13-01\n"));
    place.write("bad_null.csv", &format!("{many},x,1.00,2024-12-01\n"));
    place.write("bad_count.csv", &format!("{many}3001,x\n"));
    place.write("columns.csv", "id,name\n1,a\n");
    place.write("taken.csv", "id,name\n7,g\n8,h\n2,a\n");
    place.write("swap.csv", "id,name\n9,i\n1,b\n");
    place.write("nokey.csv", "name,price,day\na,1.00,2024-01-01\n");
    let cases: &[(&[&str], &[&str])] = &[
        (&["upsert", "db", "t", "bad_value.csv"], &["bad_value.csv", "line 2002", "2024-13-01"]),
        (&["upsert", "db", "t", "bad_null.csv"], &["bad_null.csv", "line 2002", "NULL"]),
        (&["upsert", "db", "t", "bad_count.csv"], &["bad_count.csv", "line 2002"]),
        (&["upsert", "db", "t", "columns.csv"], &["columns.csv"]),
        (&["upsert", "db", "n", "taken.csv"], &["taken.csv, line 4: ", "n_name", "duplicate key"]),
        (&["upsert", "db", "n", "swap.csv"], &["swap.csv, line 3: ", "n_name", "duplicate key"]),
        (&["upsert", "db", "heap", "t.csv"], &["\"heap\"", "no primary key"]),
        (&["upsert", "db", "nothing", "t.csv"], &["\"nothing\""]),
        (&["upsert", "db", "t", "missing.csv"], &["missing.csv"]),
        (&["upsert", "nowhere", "t", "t.csv"], &["nowhere", "not a pagefold database"]),
        (&["delete", "db", "heap", "t.csv"], &["\"heap\"", "no primary key"]),
        (&["delete", "db", "t", "nokey.csv"], &["primary key", "id"]),
        (&["delete", "db", "t", "bad_null.csv"], &["bad_null.csv", "line 2002", "NULL"]),
    ];
    for (arguments, texts) in cases {
        let run = place.run(arguments).fails(1, texts);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        let with_json = place.run(&[arguments, &["--json"][..]].concat()).fails(1, texts);
        assert!(with_json.json()["error"].is_string());
    }
    place.run(&["check", "db"]).ok();
    assert!(exported(&place) == rows_csv(0..2000));
    assert_eq!(place.run(&["export", "db", "n", "-"]).ok().out, "id,name\n1,a\n2,b\n3,c\n");
    place.run(&["upsert", "db", "t", "t.csv", "--rows-per-transaction", "0"]).fails(2, &["--rows-per-transaction"]);
    // In many transactions the message says what stays.
    let rows: String = (10..410).map(|id| format!("{id},n{id}\n")).collect();
    place.write("late.csv", &format!("id,name\n{rows}410,a\n"));
    let late = ["upsert", "db", "n", "late.csv", "--rows-per-transaction", "150"];
    place.run(&late).fails(1, &[".csv, line 402: ", "n_name", "duplicate key", "the first 300 rows of the source are committed"]);
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["scan", "db", "n", "--json"]).ok().json()["row_count"], 303);
}

fn with_2000_rows() -> Place {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..2000));
    let types = "id integer not null, name varchar(64), price decimal(9,2), day date";
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--columns", types]).ok();
    place
}

/// What is ignored from the start, as by nohup, stays ignored.
#[test]
fn a_signal_that_is_ignored_interrupts_nothing() {
    let place = with_2000_rows();
    place.write("many.csv", &rows_csv(1000..60_000));
    let program = place.command(&["upsert", "db", "t", "many.csv"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP INT; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    let child = shell.current_dir(place.path("")).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    for signal in ["-HUP", "-INT", "-HUP"] {
        std::thread::sleep(std::time::Duration::from_millis(100));
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    }
    Run::from(child.wait_with_output().unwrap()).ok();
    assert_eq!(place.run(&["scan", "db", "t", "--format", "csv"]).ok().out.lines().count(), 60_001);
}

#[test]
fn an_interrupt_takes_everything_back() {
    let place = with_2000_rows();
    place.write("many.csv", &rows_csv(1000..60_000).replace("sail", "jib"));
    let child = place.command(&["upsert", "db", "t", "many.csv"]).stderr(Stdio::piped()).spawn().unwrap();
    // Early or late, whatever it is doing: the result is one of two.
    std::thread::sleep(std::time::Duration::from_millis(200));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let run = Run::from(child.wait_with_output().unwrap());
    let rows = match run.code {
        Some(1) => {
            assert!(run.err.contains("interrupted; the database is as it was"), "{run:?}");
            2000
        }
        Some(0) => 60_000,
        // The program had not begun.
        code => {
            assert!(code.is_none(), "{run:?}");
            2000
        }
    };
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["scan", "db", "t", "--format", "csv"]).ok().out.lines().count(), rows + 1);
}

/// The files of `db` as a crash at this moment would leave them.
fn copy(place: &Place, to: &str) {
    let status = Command::new("cp").arg("-r").arg(place.path("db")).arg(place.path(to)).status().unwrap();
    assert!(status.success());
}

fn insert(database: &Database, ids: std::ops::Range<i64>) {
    let table = database.table("t").unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    for id in ids {
        transaction.insert(&table, &[ValueRef::Int(id), ValueRef::Text("raft"), ValueRef::Null, ValueRef::Int(id)]).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn a_database_that_is_not_closed_is_read_as_it_would_be_recovered() {
    let place = Place::with_table();
    let database = pagefold::engine::open(place.path("db"), OpenMode::Write, Settings::default()).unwrap();
    insert(&database, 5000..5100);
    let names = ["get", "scan", "export", "report", "check", "estimate", "upsert", "load"];
    names.iter().for_each(|name| copy(&place, name));
    // Another process has it open.
    for command in [&["get", "db", "t", "5000"][..], &["scan", "db", "t"], &["report", "db"], &["check", "db"]] {
        place.run(command).ok();
    }
    place.run(&["drop", "db", "t"]).fails(1, &["db", "is being written by another process"]);
    drop(database);
    place.run(&["get", "db", "t", "5000"]).ok();
    place.run(&["check", "db"]).ok();

    place.write("new.csv", "id,name,price,day\n6000,x,1.00,2024-01-01\n");
    let commands: &[&[&str]] = &[
        &["get", "get", "t", "5099", "--json"],
        &["scan", "scan", "t", "--where", "id >= 5000", "--json"],
        &["export", "export", "t", "export.csv", "--json"],
        &["report", "report", "--json"],
        &["check", "check", "--json"],
        &["estimate", "estimate", "t", "--json"],
    ];
    for arguments in commands {
        let name = arguments[0];
        let before = place.files(name);
        place.run(arguments).ok().json();
        // Who reads changes nothing.
        let own = |files: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<_> {
            files.into_iter().filter(|(path, _)| !path.to_str().unwrap().contains("readers")).collect()
        };
        assert!(own(place.files(name)) == own(before), "{name} changes files");
        place.run(arguments).ok();
        assert_eq!(place.run(&["scan", name, "t", "--where", "name = 'raft'", "--json"]).ok().json()["row_count"], 100);
        place.run(&["check", name]).ok();
    }
    // Who writes does it on the way.
    assert_eq!(place.run(&["upsert", "upsert", "t", "new.csv", "--json"]).ok().json()["inserted"], 1);
    place.run(&[
        "load",
        "load",
        "t",
        "new.csv",
        "--append",
        "--columns",
        "id integer not null, name varchar(64), price decimal(6,2), day date",
    ]);
    for name in ["upsert", "load"] {
        assert_eq!(place.run(&["scan", name, "t", "--where", "name = 'raft'", "--json"]).ok().json()["row_count"], 100);
        place.run(&["check", name]).ok();
    }
}

#[test]
fn what_was_kept_for_an_old_snapshot_goes_when_the_database_is_closed() {
    let place = Place::with_table();
    place.run(&["create-index", "db", "by_name", "t(name)"]).ok();
    let database = pagefold::engine::open(place.path("db"), OpenMode::Write, Settings::default()).unwrap();
    let (table, index) = (database.table("t").unwrap(), database.index("t_pk").unwrap());
    let mut reader = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
    assert_eq!(reader.find(&table, &index, &[ValueRef::Int(7)]).unwrap().len(), 1);
    let mut writer = database.begin(TransactionOptions::default());
    for id in 0..100 {
        let rid = writer.find(&table, &index, &[ValueRef::Int(id)]).unwrap()[0];
        if id % 2 == 0 {
            assert!(writer.delete(&table, rid).unwrap());
        } else {
            assert!(writer.update(&table, rid, &[(1, ValueRef::Text("raft"))]).unwrap());
        }
    }
    writer.commit().unwrap();
    assert_eq!(reader.find(&table, &index, &[ValueRef::Int(8)]).unwrap().len(), 1);
    // Deleted rows and entries of old keys are still on their pages, in a crash and in a checkpoint.
    copy(&place, "crashed");
    database.checkpoint().unwrap();
    copy(&place, "checkpointed");
    drop(reader);
    drop(database);
    for name in ["db", "crashed", "checkpointed"] {
        place.run(&["check", name]).ok();
        place.run(&["get", name, "t", "8"]).fails(1, &["has no row with primary key (8)"]);
        let scan = ["scan", name, "t", "--index", "by_name", "--where", "name = 'raft'", "--json"];
        assert_eq!(place.run(&scan).ok().json()["row_count"], 50);
    }
}

#[test]
fn a_damaged_log_is_named() {
    let place = Place::with_table();
    place.write("new.csv", "id,name,price,day\n6000,x,1.00,2024-01-01\n");
    place.run(&["upsert", "db", "t", "new.csv"]).ok();
    let log = place.files("db/log").remove(0).0;
    let good = std::fs::read(&log).unwrap();
    let mut bad = good.clone();
    bad[4096..1 << 20].fill(0xA5);
    std::fs::write(&log, bad).unwrap();
    place.run(&["get", "db", "t", "5"]).fails(1, &["log"]);
    let found = place.run(&["check", "db", "--json"]).fails(1, &[]).json();
    assert!(found["errors"].as_array().unwrap().iter().any(|e| e["object"] == "log"), "{found}");
    std::fs::write(&log, good).unwrap();
    place.run(&["check", "db"]).ok();
}

#[test]
fn a_table_in_use_gets_further_partitions() {
    let place = Place::new();
    place.write("first.csv", &rows_csv(0..2000));
    place.write("more.csv", &rows_csv(2000..9000));
    let small = ["load", "db", "t", "first.csv", "--primary-key", "id", "--page-size", "2K", "--partition-size", "64K"];
    let columns = ["--columns", "id integer not null, name varchar(64), price decimal(9,2), day date"];
    place.run(&[&small[..], &columns[..]].concat()).ok();
    place.run(&["upsert", "db", "t", "more.csv", "--rows-per-transaction", "500"]).ok();
    assert!(exported(&place) == rows_csv(0..9000));
    place.run(&["check", "db"]).ok();
    // A new catalog names all of them.
    place.run(&["create-index", "db", "by_name", "t(name)"]).ok();
    assert!(exported(&place) == rows_csv(0..9000));
    place.run(&["check", "db"]).ok();
}

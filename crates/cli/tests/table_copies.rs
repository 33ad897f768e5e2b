//! `copy --table`, `recover --table`, `check` and `print` of copies, and `diff`, on real files.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, Run, rows_csv};
use std::process::Stdio;
use std::time::Duration;

fn export(place: &Place, table: &str) -> String {
    place.run(&["export", "db", table, "-", "--format", "csv"]).ok().out
}

#[test]
fn a_table_is_copied_checked_printed_and_put_back() {
    let place = Place::with_table();
    place.run(&["load", "db", "u", "t.csv", "--primary-key", "id", "--compress", "huffman"]).ok();
    place.run(&["create-index", "db", "t_name", "t(name)", "--format", "fold", "--page-size", "8K"]).ok();
    let before = export(&place, "t");
    place.run(&["copy", "db", "whole.pfc"]).ok();
    let run = place.run(&["copy", "db", "t.pfc", "--table", "t", "--json"]).ok().json();
    assert_eq!((run["tables"][0].as_str(), run["data_sets"].as_u64()), (Some("t"), Some(4)));
    let size = |name: &str| std::fs::metadata(place.path(name)).unwrap().len();
    assert!(size("t.pfc") < size("whole.pfc"));
    place.run(&["copy", "db", "x", "--table", "t"]).fails(2, &["--table", ".pfc"]);
    place.run(&["copy", "db", "x.pfc", "--table", "none"]).fails(1, &["no table \"none\"", "t, u"]);
    // Looked at as it is.
    for (copy, rows) in [("whole.pfc", 4000), ("t.pfc", 2000)] {
        let run = place.run(&["check", copy, "--json"]).ok().json();
        assert_eq!(run["rows"].as_u64(), Some(rows), "{run}");
        let run = place.run(&["print", copy, "t_name", "--page", "2", "--json"]).ok().json();
        assert_eq!(run["structure"].as_str(), Some("valid"), "{run}");
    }
    place.run(&["print", "t.pfc", "u", "--page", "2"]).fails(1, &["t.pfc"]);
    place.run(&["check", "db", "t.pfc"]).fails(2, &["t.pfc"]);
    place.run(&["print", "db", "t", "--base", "t.pfc"]).fails(2, &["t.pfc"]);
    let names: Vec<_> = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    // Damaged.
    let mut bytes = std::fs::read(place.path("t.pfc")).unwrap();
    let middle = bytes.len() / 4..bytes.len() * 3 / 4;
    bytes[middle].iter_mut().step_by(2000).for_each(|byte| *byte ^= 1);
    std::fs::write(place.path("bad.pfc"), &bytes).unwrap();
    let run = place.run(&["check", "bad.pfc", "--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.json()["errors"].as_array().unwrap().iter().any(|e| e["object"].as_str().unwrap().starts_with("bad.pfc")), "{run:?}");
    let refused = place.run(&["recover", "db", "bad.pfc", "--table", "t"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(export(&place, "t"), before);
    // Put back.
    place.write("more.csv", &rows_csv(1000..2500));
    place.run(&["delete", "db", "t", "more.csv"]).ok();
    assert_ne!(export(&place, "t"), before);
    let run = place.run(&["recover", "db", "t.pfc", "--table", "t", "--json"]).ok().json();
    assert_eq!((run["tables"][0]["rows"].as_u64(), run["tables"][0]["replaced"].as_bool()), (Some(2000), Some(true)), "{run}");
    assert_eq!(export(&place, "t"), before);
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["recover", "db", "whole.pfc", "--table", "t"]).ok();
    assert_eq!(export(&place, "t"), before);
    place.run(&["recover", "db", "t.pfc", "--table", "u"]).fails(1, &["t.pfc", "\"u\""]);
    place.run(&["recover", "new", "t.pfc"]).fails(1, &["t.pfc", "--table"]);
    place.run(&["recover", "new", "whole.pfc", "--replace"]).fails(2, &["--table"]);
    // Other columns.
    place.write("other.csv", "id,note\n1,a\n2,b\n");
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["load", "db", "t", "other.csv", "--primary-key", "id"]).ok();
    place.run(&["recover", "db", "t.pfc", "--table", "t"]).fails(2, &["had other columns then", "note", "--replace"]);
    place.run(&["recover", "db", "t.pfc", "--table", "t", "--replace"]).ok();
    assert_eq!(export(&place, "t"), before);
    place.run(&["check", "db"]).ok();
}

/// Rows of a table that was altered are stored in several layouts, and these come back with them: of partitions, and by log, too.
#[test]
fn altered_tables_come_back() {
    for method in ["none", "row", "page", "fixed", "huffman"] {
        for (alter, divided) in [
            ("ADD COLUMN n INT DEFAULT 5", false),
            ("ADD COLUMN n TEXT DEFAULT 'of before'", true),
            ("DROP COLUMN j", false),
            ("ALTER COLUMN k TYPE BIGINT", true),
            ("ALTER COLUMN k DROP NOT NULL", false),
            ("RENAME COLUMN k TO kk", false),
        ] {
            let place = Place::new();
            let parts = "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100), PARTITION b VALUES LESS THAN (MAXVALUE))";
            let parts = if divided { parts } else { "" };
            place
                .run(&[
                    "sql",
                    "db",
                    &format!(
                        "CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, j INT, v VARCHAR(20)) {parts} WITH (compress='{method}')"
                    ),
                    "INSERT INTO t SELECT g, g, g * 2, 'v' || g FROM generate_series(1, 200) s (g)",
                    "CREATE INDEX t_v ON t (v)",
                    &format!("ALTER TABLE t {alter}"),
                    "UPDATE t SET v = 'new' WHERE id % 2 = 0",
                ])
                .ok();
            let before = export(&place, "t");
            place.run(&["copy", "db", "t.pfc"]).ok();
            place.run(&["sql", "db", "DELETE FROM t WHERE id < 150", "UPDATE t SET v = 'later'"]).ok();
            for name in if divided { &["t", "t/b"][..] } else { &["t"] } {
                place.run(&["recover", "db", "t.pfc", "--table", name]).ok();
                assert_eq!(export(&place, "t"), before, "{method} {alter} {name}");
                place.run(&["check", "db"]).ok();
                // It goes on as any other.
                place
                    .run(&["sql", "db", "UPDATE t SET v = 'once more' WHERE id > 120", "ALTER TABLE t ADD COLUMN more INT DEFAULT 1"])
                    .ok();
                place.run(&["check", "db"]).ok();
                place.run(&["recover", "db", "t.pfc", "--table", "t", "--replace"]).ok();
            }
        }
    }
}

#[test]
fn log_takes_a_table_to_now_and_to_a_time() {
    let place = Place::with_table();
    std::fs::create_dir(place.path("archive")).unwrap();
    place.run(&["archive-log", "db", "archive"]).ok();
    place.run(&["copy", "db", "whole.pfc"]).ok();
    place.run(&["copy", "db", "t.pfc", "--table", "t"]).ok();
    let mut states = Vec::new();
    for i in 0..3 {
        place.write("change.csv", &rows_csv(i * 150 + 150..i * 150 + 2150));
        place.run(&["upsert", "db", "t", "change.csv", "--rows-per-transaction", "700"]).ok();
        let run = place.run(&["recover", &format!("at-{i}"), "whole.pfc", "--log", "archive", "--log", "db", "--json"]).ok().json();
        states.push((run["last_commit_time"].as_str().unwrap().to_owned(), export(&place, "t")));
    }
    let logs = ["--table", "t", "--log", "archive", "--log", "db"];
    let recover = |more: &[&str]| place.run(&[&["recover", "db", "t.pfc"], logs.as_slice(), more].concat());
    recover(&[]).ok();
    assert_eq!(export(&place, "t"), states[2].1);
    for (time, state) in &states {
        recover(&["--until", time]).ok();
        assert_eq!(export(&place, "t"), *state, "{time}");
    }
    recover(&["--until", "2001-01-01 00:00"]).fails(1, &["t.pfc", "later"]);
    place.run(&["check", "db"]).ok();
}

#[test]
fn partitions_come_back_alone_and_together() {
    let place = Place::with_table();
    place.run(&["load", "db", "s", "t.csv", "--primary-key", "id", "--partition-by", "id: a = 500, b = 1000, c = MAXVALUE"]).ok();
    place.run(&["create-index", "db", "s_name", "s(name)"]).ok();
    let before = export(&place, "s");
    place.run(&["copy", "db", "b.pfc", "--table", "s/b"]).ok();
    place.run(&["copy", "db", "s.pfc", "--table", "s"]).ok();
    place.run(&["check", "b.pfc"]).ok();
    place.run(&["create-index", "db", "s_price", "s(price)"]).ok();
    place.run(&["partition", "drop", "db", "s", "b"]).ok();
    // With its share of the index that the whole has got since, built from its rows.
    let run = place.run(&["recover", "db", "b.pfc", "--table", "s/b", "--json"]).ok().json();
    assert_eq!(run["tables"][0]["built_indexes"][0].as_str(), Some("s_price/b"), "{run}");
    assert_eq!(export(&place, "s"), before);
    place.run(&["check", "db"]).ok();
    // Without the share of one that is gone.
    place.run(&["drop", "db", "s_name"]).ok();
    let run = place.run(&["recover", "db", "s.pfc", "--table", "s/b", "--json"]).ok().json();
    assert!(!run.to_string().contains("s_name"), "{run}");
    place.run(&["check", "db"]).ok();
    // All of it, and where it is not there any more.
    for drops in [false, true] {
        if drops {
            place.run(&["drop", "db", "s"]).ok();
            place.run(&["recover", "db", "b.pfc", "--table", "s/b"]).fails(2, &["\"s\"", "not there"]);
        } else {
            place.run(&["partition", "rotate", "db", "s", "5000"]).fails(2, &["\"c\""]);
            place.run(&["partition", "drop", "db", "s", "a"]).ok();
        }
        place.run(&["recover", "db", "s.pfc", "--table", "s"]).ok();
        assert_eq!(export(&place, "s"), before);
        place.run(&["scan", "db", "s", "--where", "name = 'compass'", "--index", "s_name", "--limit", "3"]).ok();
        place.run(&["check", "db"]).ok();
    }
    place.run(&["upsert", "db", "s", "t.csv"]).ok();
    place.run(&["check", "db"]).ok();
}

/// The partition of the name is another one by now: with its keys of then, rows of now would be lost.
#[test]
fn a_partition_with_other_keys_than_in_the_copy_does_not_come_back_by_itself() {
    let place = Place::with_table();
    place.run(&["load", "db", "s", "t.csv", "--primary-key", "id", "--partition-by", "id: a = 500, b = 1000, c = MAXVALUE"]).ok();
    place.run(&["copy", "db", "a.pfc", "--table", "s/a"]).ok();
    place.run(&["partition", "merge", "db", "s", "a", "b"]).ok();
    let before = export(&place, "s");
    for log in [&[][..], &["--log", "db"]] {
        place.run(&[&["recover", "db", "a.pfc", "--table", "s/a"], log].concat()).fails(2, &["\"s/a\"", "other keys", "--replace"]);
        assert_eq!(export(&place, "s"), before);
    }
    place.run(&["partition", "split", "db", "s", "a", "low = 300"]).ok();
    place.run(&["recover", "db", "a.pfc", "--table", "s/a"]).fails(2, &["other keys"]);
    assert_eq!(export(&place, "s"), before);
    place.run(&["check", "db"]).ok();
}

/// A partition that came after the copy: the error says what had its keys then, and how it came.
#[test]
fn a_partition_that_the_copy_lacks_is_told_of() {
    let place = Place::with_table();
    place.run(&["load", "db", "s", "t.csv", "--primary-key", "id", "--partition-by", "id: a = 500, b = 1000, c = 100000"]).ok();
    place.run(&["copy", "db", "s.pfc", "--table", "s"]).ok();
    let recover = |partition: &str, more: &[&str]| place.run(&[&["recover", "db", "s.pfc", "--table", partition], more].concat());
    place.run(&["partition", "add", "db", "s", "d = 200000"]).ok();
    let with_log = recover("s/d", &["--log", "db"]);
    assert!(with_log.ok().out.contains("Table \"s/d\" put back"));
    recover("s/d", &[]).fails(2, &["partition \"d\" of \"s\" was not there then", "added since (ADD or ROTATE)"]);
    place.run(&["partition", "split", "db", "s", "a", "low = 300"]).ok();
    for log in [&[][..], &["--log", "db"]] {
        recover("s/low", log).fails(2, &["partition \"low\" of \"s\"", "among those of \"a\", which was divided since (SPLIT)"]);
    }
    recover("s/low", &["--log", "db"]).fails(2, &["the log goes up to"]);
    place.run(&["partition", "merge", "db", "s", "b", "c", "--into", "bc"]).ok();
    let before = export(&place, "s");
    recover("s/bc", &[]).fails(2, &["those of \"b\", \"c\", which were put together since (MERGE)"]);
    recover("s/none", &[]).fails(2, &["partition \"none\" of \"s\" was not there then: there were \"a\", \"b\", \"c\""]);
    recover("none/a", &[]).fails(1, &["copy of s only"]);
    assert_eq!(export(&place, "s"), before);
    place.run(&["check", "db"]).ok();
}

#[test]
fn differences_are_listed() {
    let place = Place::with_table();
    place.run(&["copy", "db", "a.pfc"]).ok();
    let run = place.run(&["diff", "a.pfc", "db"]).ok();
    assert!(run.out.contains("no difference"), "{run:?}");
    place.write("change.csv", "id,name,price,day\n5,another,1.00,2024-01-01\n9000,new,2.00,2024-01-02\n");
    place.run(&["upsert", "db", "t", "change.csv"]).ok();
    place.write("gone.csv", "id\n7\n8\n");
    place.run(&["delete", "db", "t", "gone.csv"]).ok();
    place.run(&["create-index", "db", "by_day", "t(day)"]).ok();
    place.run(&["load", "db", "new", "gone.csv"]).ok();
    place.run(&["copy", "db", "b.pfc", "--incremental", "a.pfc"]).ok();
    for second in [["db", "a.pfc"], ["b.pfc", "a.pfc"]] {
        let mut arguments = vec!["diff", "a.pfc", second[0], "--rows", "--json"];
        if second[0] == "b.pfc" {
            arguments.extend(["--second-base", second[1]]);
        }
        let run = place.run(&arguments);
        assert_eq!(run.code, Some(1), "{run:?}");
        let json = run.json();
        assert_eq!(json["new"], serde_json::json!(["table \"new\"", "index \"by_day\""]), "{json}");
        let rows = &json["tables"][0]["rows"];
        assert_eq!((rows["inserted"].as_u64(), rows["deleted"].as_u64(), rows["changed"].as_u64()), (Some(1), Some(2), Some(1)), "{json}");
        assert_eq!(rows["listed"].as_array().unwrap().len(), 4);
        assert!(json["tables"][0]["pages"]["changed"].as_u64().unwrap() > 0);
    }
    let run = place.run(&["diff", "a.pfc", "db", "--rows", "2"]);
    assert!(run.out.contains("1 rows inserted, 2 deleted, 1 changed") && run.out.contains("and 2 more"), "{run:?}");
    place.run(&["diff", "a.pfc", "b.pfc"]).fails(1, &["b.pfc", "missing"]);
    place.run(&["diff", "a.pfc", "db", "--second-base", "a.pfc"]).fails(2, &["db"]);
}

#[test]
fn a_dropped_column_makes_no_difference() {
    let place = Place::with_table();
    place.run(&["sql", "db", "ALTER TABLE t DROP COLUMN name"]).ok();
    place.run(&["copy", "db", "a.pfc"]).ok();
    place.run(&["reorg", "db", "t"]).ok();
    let run = place.run(&["diff", "a.pfc", "db", "--json"]).ok().json();
    let rows = &run["tables"][0]["rows"];
    assert_eq!((rows["same"].as_u64(), rows["changed"].as_u64(), rows["inserted"].as_u64()), (Some(2000), Some(0), Some(0)), "{run}");
    // One that is seen does.
    place.run(&["sql", "db", "UPDATE t SET price = price + 1 WHERE id = 7"]).ok();
    let run = place.run(&["diff", "a.pfc", "db", "--json"]);
    assert_eq!((run.code, run.json()["tables"][0]["rows"]["changed"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn killed_while_a_table_is_put_back_it_is_as_before_or_as_at_the_copy() {
    let place = Place::with_table();
    place.run(&["create-index", "db", "t_name", "t(name)"]).ok();
    let then = export(&place, "t");
    place.run(&["copy", "db", "t.pfc", "--table", "t"]).ok();
    let (mut killed, mut old, mut wait) = (0, 0, Duration::from_millis(5));
    for _ in 0..14 {
        place.write("more.csv", &rows_csv(1500..2600));
        place.run(&["upsert", "db", "t", "more.csv"]).ok();
        let now = export(&place, "t");
        let arguments = ["recover", "db", "t.pfc", "--table", "t"];
        let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(wait);
        let _ = child.kill();
        let run = Run::from(child.wait_with_output().unwrap());
        killed += u32::from(run.code.is_none());
        place.run(&["check", "db"]).ok();
        let found = export(&place, "t");
        assert!(found == then || (found == now && run.code.is_none()), "{run:?}");
        old += u32::from(found == now);
        // Later and later, until it is through; then from the beginning.
        wait = if run.code.is_none() { wait * 3 / 2 } else { Duration::from_millis(5) };
    }
    println!("{killed} times killed, {old} times as before");
    assert!(killed > 3, "killed {killed} times only");
}

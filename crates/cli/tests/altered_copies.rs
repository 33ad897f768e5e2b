//! Copies of tables whose definitions change, before, beside and after: `copy`, `check` and `recover` go by what a table is and is called where the log ends.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::Place;
use common::open_session::OpenSession;

/// Each of them for a table of its own: `t` is the table, `t_v` an index of it.
const ALTERS: [&str; 9] = [
    "ALTER TABLE t ADD COLUMN z INT DEFAULT 3",
    "ALTER TABLE t DROP COLUMN u",
    "ALTER TABLE t RENAME COLUMN id TO k",
    "ALTER TABLE t ALTER COLUMN u TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN v TYPE VARCHAR(60)",
    "ALTER TABLE t ALTER COLUMN v SET NOT NULL",
    "ALTER TABLE t SET (pctfree=10)",
    "ALTER INDEX t_v RENAME TO t_w",
    "ALTER TABLE t RENAME TO other_t",
];

/// A table for each ALTER, `e` and its number, and a partitioned one, `p`, for each that there is of such.
fn tables() -> impl Iterator<Item = (String, &'static str)> {
    let whole = ALTERS.iter().enumerate().map(|(i, alter)| (format!("e{i}"), *alter));
    let renames_table = |alter: &&str| alter.contains("RENAME TO other") || alter.contains("INDEX");
    whole.chain(ALTERS.iter().filter(move |alter| !renames_table(alter)).enumerate().map(|(i, alter)| (format!("p{i}"), *alter)))
}

fn each(statement: &str) -> String {
    tables().map(|(name, _)| statement.replace("$t", &name)).collect::<Vec<_>>().join(";")
}

fn create() -> String {
    let make = |(name, _): (String, _)| {
        let parts = "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10))";
        let parts = if name.starts_with('p') { parts } else { "" };
        format!("CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20), u INT) {parts}; CREATE INDEX {name}_v ON {name} (v)")
    };
    tables().map(make).collect::<Vec<_>>().join(";")
}

fn alter() -> String {
    let of = |(name, alter): (String, &str)| {
        alter.replace("TABLE t ", &format!("TABLE {name} ")).replace(" t_", &format!(" {name}_")).replace("other_t", &format!("o{name}"))
    };
    tables().map(of).collect::<Vec<_>>().join(";")
}

/// Tables that had no file at the copy get their first rows, and are altered when the database was closed and opened: the log has all of that.
#[test]
fn an_alter_is_no_end_of_the_log() {
    let rows = each("INSERT INTO $t VALUES (1, 'one', 1), (2, 'two', 2)");
    let more = tables().map(|(name, _)| name).filter(|name| name.starts_with('p'));
    let more = more.map(|name| format!("ALTER TABLE {name} ADD PARTITION b VALUES LESS THAN (20); INSERT INTO {name} VALUES (15, 'b', 3)"));
    let more = more.collect::<Vec<_>>().join(";");
    let (create, alter, truncate) = (create(), alter(), each("TRUNCATE $t"));
    // What is done before the copy, beside it (before and after), and after it.
    let histories: [(&str, [&[&str]; 4]); 7] = [
        ("empty at the copy", [&[&create], &[], &[], &[&rows]]),
        ("made after the copy", [&["CREATE TABLE first (i INT)"], &[], &[], &[&create, &rows]]),
        ("truncated after the copy", [&[&create, &rows], &[], &[], &[&truncate, &rows]]),
        ("partitions come after the copy", [&[&create], &[], &[], &[&rows, &more]]),
        ("made beside the copy", [&[], &[&create], &[&rows], &[&more]]),
        ("first rows beside the copy", [&[&create], &[&rows], &[], &[&more]]),
        ("altered in the session itself", [&[&create], &[&rows], &[&more, &alter], &["CREATE TABLE nothing (i INT)"]]),
    ];
    for (name, [before, beside, still_beside, after]) in histories {
        let place = Place::new();
        let sql = |statements: &[&str]| statements.iter().for_each(|all| drop(place.run(&["sql", "db", all]).ok()));
        sql(before);
        if beside.is_empty() {
            place.run(&["copy", "db", "c.pfc"]).ok();
        } else {
            let mut session = OpenSession::of(&place, &beside.join(";"));
            place.run(&["copy", "db", "c.pfc"]).ok();
            still_beside.iter().for_each(|statements| session.run(statements));
            session.close();
        }
        sql(after);
        if !still_beside.iter().any(|statements| statements.contains("pctfree")) {
            sql(&[&alter]);
        }
        sql(&["CREATE TABLE last (i INT); INSERT INTO last VALUES (1), (2); CREATE INDEX last_i ON last (i)"]);
        let done = place.run(&["recover", "made", "c.pfc", "--log", "db", "--json"]).ok().json();
        assert!(done["stopped_before_tables_changed"].is_null(), "{name}: {done}");
        let run = place.run(&["diff", "db", "made"]);
        assert_eq!(run.code, Some(0), "{name}: {run:?}");
        place.run(&["check", "made"]).ok();
        // One by itself, too, once it has lost its rows.
        let rows = |table: &str| place.run(&["export", "db", table, "-", "--format", "csv"]).ok().out;
        for table in ["last", "e0", "oe8", "p0"] {
            let (then, end) = (rows(table), done["log_end"].to_string());
            place.run(&["sql", "db", &format!("DELETE FROM {table}")]).ok();
            place.run(&["recover", "db", "c.pfc", "--table", table, "--log", "db", "--until-lsn", &end]).ok();
            assert_eq!(rows(table), then, "{name}: {table}");
        }
        place.run(&["check", "db"]).ok();
    }
}

/// What is written or built anew is not in the log, whatever was altered before: it says when that was.
#[test]
fn what_is_built_after_an_alter_is_the_end_of_the_log() {
    for command in [
        &["reorg", "db", "t"][..],
        &["create-index", "db", "t_n", "t(n)"],
        &["alter", "db", "t", "set", "compress=huffman"],
        &["load", "db", "t2", "t.csv"],
    ] {
        let place = Place::new();
        place.write("t.csv", "id,name\n1,a\n2,b\n");
        place.run(&["sql", "db", "CREATE TABLE t (id INT PRIMARY KEY, n INT)"]).ok();
        place.run(&["copy", "db", "c.pfc"]).ok();
        place.run(&["sql", "db", "INSERT INTO t SELECT g, g FROM generate_series(1, 300) s (g)"]).ok();
        place.run(&["sql", "db", "ALTER TABLE t ADD COLUMN z INT DEFAULT 7; INSERT INTO t VALUES (1000, 1000, 1000)"]).ok();
        let then = place.run(&["export", "db", "t", "-", "--format", "csv"]).ok().out;
        place.run(command).ok();
        place.run(&["sql", "db", "DELETE FROM t"]).ok();
        let run = place.run(&["recover", "made", "c.pfc", "--log", "db", "--json"]).ok().json();
        assert!(run["stopped_before_tables_changed"].is_string(), "{command:?}: {run}");
        assert_eq!(place.run(&["export", "made", "t", "-", "--format", "csv"]).ok().out, then, "{command:?}");
        place.run(&["check", "made"]).ok();
    }
}

const NAMED: &str = "CREATE TABLE a (id INT PRIMARY KEY, v TEXT); INSERT INTO a VALUES (1, 'a'); CREATE INDEX a_v ON a (v);
    CREATE TABLE b (id INT PRIMARY KEY, v TEXT); INSERT INTO b VALUES (1, 'b'), (2, 'b'); CREATE TABLE none (id INT PRIMARY KEY);
    CREATE TABLE p (id INT PRIMARY KEY, v TEXT) PARTITION BY RANGE (id)
        (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20));
    INSERT INTO p VALUES (1, 'p'), (11, 'p'); CREATE TABLE x (id INT PRIMARY KEY, v TEXT); INSERT INTO x VALUES (5, 'x'), (6, 'x')";

/// Partitioned tables of which a copy has nothing are none of its tables.
#[test]
fn check_of_a_copy_misses_nothing_that_it_was_not_to_have() {
    let place = Place::new();
    place
        .run(&[
            "sql",
            "db",
            NAMED,
            "CREATE INDEX p_v ON p (v)",
            "CREATE TABLE q (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10))",
        ])
        .ok();
    for (table, count) in [("a", 1), ("p/a", 1), ("p", 2), ("q", 0), ("none", 0)] {
        let file = format!("{}.pfc", table.replace('/', "_"));
        place.run(&["copy", "db", &file, "--table", table]).ok();
        let run = place.run(&["check", &file, "--json"]).ok().json();
        assert_eq!((run["rows"].as_u64(), run["errors"].as_array().map(Vec::len)), (Some(count), Some(0)), "{table}: {run}");
        place.run(&["recover", "db", &file, "--table", table]).ok();
        place.run(&["check", "db"]).ok();
    }
}

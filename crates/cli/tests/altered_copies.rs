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

/// Statements that give tables other names, and which tables there are then that had others before, or have others' names.
const RENAMES: [(&str, &[&[&str]]); 7] = [
    ("ALTER TABLE a RENAME TO c; INSERT INTO c VALUES (2, 'c')", &[&["c"], &["c", "b"]]),
    ("INSERT INTO a VALUES (2, 'a'); ALTER TABLE a RENAME TO c; ALTER TABLE c RENAME TO d", &[&["d"]]),
    ("INSERT INTO none VALUES (1); ALTER TABLE none RENAME TO some; INSERT INTO some VALUES (2)", &[&["some"]]),
    (
        "BEGIN; ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b; INSERT INTO a VALUES (8, 'was b'); COMMIT;
            INSERT INTO b VALUES (9, 'was a')",
        &[&["a"], &["b"], &["a", "b"]],
    ),
    (
        "ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b; INSERT INTO a VALUES (8, 'was b');
            INSERT INTO b VALUES (9, 'was a')",
        &[&["a"], &["b"], &["a", "b"]],
    ),
    (
        "ALTER TABLE p EXCHANGE PARTITION a WITH TABLE x; INSERT INTO x VALUES (77, 'x'); INSERT INTO p VALUES (7, 'p')",
        &[&["x"], &["p"], &["p/a"], &["x", "p"]],
    ),
    ("CREATE TABLE n (id INT PRIMARY KEY, v TEXT); INSERT INTO n VALUES (1, 'n'); ALTER TABLE n RENAME TO m", &[&["m"]]),
];

/// Where the renames are, seen from the copy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Renamed {
    /// In a session that has the database open when it is copied.
    Beside,
    /// In one that was killed before.
    Killed,
    /// In one that comes later: the log has them.
    Later,
}

/// Tables are copied, and come back, as what they are called where the log ends; whatever the last checkpoint called them.
#[test]
fn tables_come_back_by_the_names_that_they_got() {
    for (statements, lists) in RENAMES {
        for renamed in [Renamed::Beside, Renamed::Killed, Renamed::Later] {
            come_back(statements, renamed, lists);
        }
    }
}

fn come_back(statements: &str, renamed: Renamed, lists: &[&[&'static str]]) {
    let place = Place::new();
    let asked = |tables: &[&'static str]| tables.iter().flat_map(|table| ["--table", table]).collect::<Vec<_>>();
    // Copies, and which tables are to come back from each: all from that of the whole, each from one of its own.
    let copy = || {
        place.run(&["copy", "db", "whole.pfc"]).ok();
        // What has come by a name since the copy is not in one of that name.
        let alone = lists.iter().enumerate().filter(|_| renamed != Renamed::Later);
        let alone = alone.map(|(i, tables)| {
            let name = format!("{i}.pfc");
            place.run(&[&["copy", "db", &name][..], &asked(tables)].concat()).ok();
            let run = place.run(&["check", &name]);
            assert_eq!(run.code, Some(0), "{statements} {renamed:?} {tables:?}: {run:?}");
            (name, *tables)
        });
        lists.iter().map(|tables| ("whole.pfc".to_owned(), *tables)).chain(alone).collect::<Vec<_>>()
    };
    place.run(&["sql", "db", NAMED]).ok();
    let copies = match renamed {
        Renamed::Beside => {
            let session = OpenSession::of(&place, statements);
            let copies = copy();
            session.close();
            copies
        }
        Renamed::Killed => {
            OpenSession::of(&place, statements).kill();
            copy()
        }
        Renamed::Later => {
            let copies = copy();
            place.run(&["sql", "db", statements]).ok();
            copies
        }
    };
    let end = place.run(&["recover", "made", "whole.pfc", "--log", "db", "--json"]).ok().json()["log_end"].to_string();
    let log = if renamed == Renamed::Later { &["--log", "db", "--until-lsn", &end][..] } else { &[] };
    for (name, tables) in copies {
        let context = format!("{statements} {renamed:?} {name} {tables:?}");
        let rows = || tables.iter().map(|table| place.run(&["export", "db", table, "-", "--format", "csv"]).ok().out).collect::<Vec<_>>();
        let then = rows();
        assert!(then.iter().all(|rows| rows.lines().count() > 1), "{context}: {then:?}");
        let delete = tables.iter().map(|table| match table.split_once('/') {
            Some((whole, _)) => format!("DELETE FROM {whole} WHERE id < 10"),
            None => format!("DELETE FROM {table}"),
        });
        place.run(&["sql", "db", &delete.collect::<Vec<_>>().join("; ")]).ok();
        assert_ne!(rows(), then, "{context}");
        let run = place.run(&[&["recover", "db", &name][..], &asked(tables), log].concat());
        assert_eq!(run.code, Some(0), "{context}: {run:?}");
        assert_eq!(rows(), then, "{context}");
    }
    place.run(&["check", "db"]).ok();
}

/// By the name that it had it comes back as it was just before it lost that; a copy of it alone does not have what took its name.
#[test]
fn a_name_that_a_table_has_lost() {
    for (statements, of_tables) in [
        ("ALTER TABLE a RENAME TO c; INSERT INTO c VALUES (3, 'c')", false),
        ("ALTER TABLE a RENAME TO c; INSERT INTO c VALUES (3, 'c')", true),
        ("BEGIN; ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; COMMIT; INSERT INTO a VALUES (3, 'b')", true),
        ("ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; INSERT INTO a VALUES (3, 'b')", true),
        ("DROP TABLE a; CREATE TABLE a (id INT, v TEXT); INSERT INTO a VALUES (4, 'new')", false),
    ] {
        let place = Place::new();
        // Without keys, whose names the table would keep.
        place
            .run(&["sql", "db", "CREATE TABLE a (id INT, v TEXT)", "CREATE TABLE b (id INT, v TEXT)", "INSERT INTO a VALUES (1, 'a')"])
            .ok();
        place.run(&["sql", "db", "INSERT INTO b VALUES (1, 'b')"]).ok();
        place.run(&[&["copy", "db", "c.pfc"][..], if of_tables { &["--table", "a"] } else { &[] }].concat()).ok();
        place.run(&["sql", "db", "INSERT INTO a VALUES (2, 'later')"]).ok();
        place.run(&["sql", "db", statements]).ok();
        let run = place.run(&["recover", "db", "c.pfc", "--table", "a", "--log", "db", "--json"]).ok().json();
        assert!(run["stopped_before_tables_changed"].is_string(), "{statements}: {run}");
        let rows = place.run(&["export", "db", "a", "-", "--format", "csv"]).ok().out;
        assert_eq!(rows, "id,v\n1,a\n2,later\n", "{statements}");
        place.run(&["check", "db"]).ok();
    }
}

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

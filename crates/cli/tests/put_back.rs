//! Tables that are put back from copies, beside crashes: what is committed afterwards stays, and what was never committed does not come.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Place;
use common::open_session::OpenSession;
use std::os::unix::fs::FileExt;

const MADE: [&str; 4] = [
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, v VARCHAR) WITH (compress = 'none')",
    "CREATE INDEX ta ON t (a)",
    "INSERT INTO t SELECT g, g, 'v' FROM generate_series(1, 3000) AS s(g)",
    "CREATE TABLE o (id INTEGER PRIMARY KEY)",
];

/// Counts and sums, by the rows and by an index.
const SUMS: [&str; 2] = ["SELECT count(*), sum(a) FROM t WHERE v > ''", "SELECT count(*), sum(a) FROM t WHERE a > 0"];

/// The last line that statements give.
fn sql(place: &Place, database: &str, statements: &[&str]) -> String {
    let out = place.run(&[&["sql", database, "--format", "csv"], statements].concat()).ok().out;
    out.lines().last().unwrap_or_default().to_owned()
}

fn sums(place: &Place) -> Vec<String> {
    SUMS.iter().map(|sum| sql(place, "db", &[sum])).collect()
}

fn check(place: &Place) {
    let checked = place.run(&["check", "db"]).ok().out;
    assert!(checked.contains("no errors"), "{checked}");
}

/// The header page of a table is zeros, and the double-write file does not have it.
fn spoil(place: &Place, table: &str) {
    let header = place.run(&["print", "db", table, "--json"]).ok().json();
    let file = format!("db/data/{}.pfd", header["file"].as_str().unwrap());
    std::fs::OpenOptions::new().write(true).open(place.path(&file)).unwrap().write_all_at(&[0; 4096], 0).unwrap();
    std::fs::remove_file(place.path("db/doublewrite")).unwrap();
}

/// Pages of a newer copy have positions of a log that this database does not have.
#[test]
fn what_is_committed_after_a_table_was_put_back_outlives_a_crash() {
    let place = Place::new();
    sql(&place, "made", &MADE);
    place.run(&["copy", "made", "old.pfc"]).ok();
    (0..3).for_each(|_| drop(sql(&place, "made", &["UPDATE t SET a = a + 1"])));
    place.run(&["copy", "made", "new.pfc"]).ok();
    place.run(&["recover", "db", "old.pfc"]).ok();
    place.run(&["recover", "db", "new.pfc", "--table", "t"]).ok();
    place.run(&["copy", "db", "again.pfc"]).ok();
    let session = OpenSession::of(&place, "UPDATE t SET a = a + 1 WHERE id < 50; DELETE FROM t WHERE id = 101");
    session.kill();
    check(&place);
    for _ in 0..2 {
        assert_eq!(sums(&place), ["2999,4510445", "2999,4510445"]);
    }
    check(&place);
}

/// A transaction that never ended has changed a table that is given up: it is taken back in the others alone, and not at all in a copy with this log.
#[test]
fn what_was_never_committed_in_a_table_that_was_given_up_does_not_come_back() {
    let place = Place::new();
    sql(&place, "db", &MADE);
    place.run(&["copy", "db", "before.pfc"]).ok();
    let mut session = OpenSession::of(&place, "INSERT INTO o VALUES (1); BEGIN");
    (0..14).for_each(|_| session.run("UPDATE t SET a = a + 1"));
    // By now the log is on disk.
    std::thread::sleep(std::time::Duration::from_millis(400));
    session.kill();
    spoil(&place, "t");
    assert!(place.run(&["sql", "db", "INSERT INTO o VALUES (2)"]).code == Some(1), "the log has something for it");
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["recover", "db", "before.pfc", "--table", "t", "--log", "db"]).ok();
    assert_eq!(sums(&place), ["3000,4501500", "3000,4501500"]);
    assert_eq!(sql(&place, "db", &["SELECT count(*) FROM o"]), "1");
    check(&place);
    place.run(&["recover", "whole", "before.pfc", "--log", "db"]).ok();
    assert_eq!(sql(&place, "whole", &["SELECT count(*) FROM o"]), "1");
}

/// Several such tables are dropped at once; each alone would leave the other in the way.
#[test]
fn several_tables_that_keep_a_database_from_being_opened_are_dropped_at_once() {
    let place = Place::new();
    sql(&place, "db", &MADE);
    sql(&place, "db", &["CREATE TABLE u (id INTEGER PRIMARY KEY)", "INSERT INTO u VALUES (1)"]);
    OpenSession::of(&place, "UPDATE t SET a = a + 1; UPDATE u SET id = 2; INSERT INTO o VALUES (1)").kill();
    ["t", "u"].iter().for_each(|table| {
        // It is made anew by nobody before both are damaged.
        std::fs::write(place.path("db/doublewrite"), b"").unwrap();
        spoil(&place, table);
    });
    let listed = place.run(&["check", "db"]);
    assert!(listed.code == Some(1) && !listed.out.contains("harmless"), "{listed:?}");
    let refused = place.run(&["drop", "db", "t"]);
    refused.fails(1, &["table \"u\"", "all of them at once"]);
    place.run(&["drop", "db", "t", "u"]).ok();
    assert_eq!(sql(&place, "db", &["SELECT count(*) FROM o"]), "1");
    check(&place);
}

#[test]
fn a_partition_that_is_put_back_keeps_what_is_said_of_its_table_now() {
    let of_list = "CREATE TABLE t (a INT NOT NULL, id INT PRIMARY KEY) PARTITION BY RANGE (a) \
         (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN (20))";
    let open = "CREATE TABLE t (a INT NOT NULL, id INT PRIMARY KEY) PARTITION BY RANGE (a)";
    let parts = ["CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) TO (10)", "CREATE TABLE q PARTITION OF t FOR VALUES FROM (10) TO (20)"];
    let made = [vec![of_list], [vec![open], parts.to_vec()].concat()];
    for (statements, partitions) in made.iter().zip([vec!["t/p", "t/q"], vec!["t/p", "t/q", "t/pagefold_template"]]) {
        for partition in partitions {
            let place = Place::new();
            sql(&place, "db", statements);
            sql(&place, "db", &["INSERT INTO t VALUES (1, 1), (11, 2)"]);
            place.run(&["copy", "db", "then.pfc", "--table", partition]).ok();
            sql(&place, "db", &["ALTER TABLE t ADD CHECK (id < 1000)", "ALTER TABLE t ALTER id SET DEFAULT 7"]);
            place.run(&["recover", "db", "then.pfc", "--table", partition]).ok();
            for day in [1, 11] {
                let insert = format!("INSERT INTO t VALUES ({day}, 5000)");
                place.run(&["sql", "db", &insert]).fails(1, &["violates check constraint"]);
                sql(&place, "db", &[&format!("INSERT INTO t (a) VALUES ({day})"), "DELETE FROM t WHERE id = 7"]);
            }
            assert_eq!(sql(&place, "db", &["SELECT count(*), sum(id) FROM t"]), "2,3", "{partition}");
            check(&place);
        }
    }
}

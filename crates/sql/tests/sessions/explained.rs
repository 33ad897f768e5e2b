//! EXPLAIN ANALYZE: what each node of a plan has given, beside what was expected, and what the database was asked for.

use super::{database, fails, number, run};
use pagefold_sql::Session;
use pagefold_types::Value;

/// The lines, without times.
fn lines(session: &mut Session, sql: &str) -> Vec<String> {
    let line = |row: Vec<Value>| match row.into_iter().next() {
        Some(Value::Text(text)) => match text.split_once(" time=") {
            Some((before, after)) => format!("{before}{}", after.split_once(" ms").unwrap().1),
            None => text,
        },
        other => panic!("{other:?}"),
    };
    run(session, sql).into_iter().map(line).collect()
}

/// Those of the plan alone.
fn nodes(session: &mut Session, sql: &str) -> Vec<String> {
    let lines = lines(session, &format!("EXPLAIN ANALYZE {sql}"));
    lines.into_iter().take_while(|line| !line.starts_with("Getpages")).map(|line| line.trim().to_owned()).collect()
}

fn filled() -> Session {
    let mut session = database().session();
    run(&mut session, "CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER)");
    run(&mut session, "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER, y INTEGER)");
    run(&mut session, "CREATE INDEX b_a ON b (a)");
    run(&mut session, "INSERT INTO a SELECT v, v % 10 FROM generate_series(1, 1000) AS s(v)");
    run(&mut session, "INSERT INTO b SELECT v, v % 1000, v % 3 FROM generate_series(1, 3000) AS s(v)");
    session
}

#[test]
fn each_node_says_what_it_gave() {
    let mut session = filled();
    assert_eq!(
        nodes(&mut session, "SELECT a.x, b.y FROM a JOIN b ON b.a = a.id WHERE a.id IN (1, 2, 3, 4)"),
        [
            "Project  (columns=2)  (actual rows=12)",
            "Look up  (actual rows=12)",
            "Index a_pkey of a  where id in (4 values)  (rows=4)  (actual rows=4)",
            "Index b_a of b  where a = of the row before  (rows=3)  (actual rows=12 loops=4)",
        ]
    );
    let counted = nodes(&mut session, "SELECT x, count(*) FROM a GROUP BY x ORDER BY x LIMIT 3");
    assert!(counted.iter().any(|line| line.starts_with("Aggregate") && line.ends_with("(actual rows=10)")), "{counted:#?}");
    assert!(counted.iter().any(|line| line.starts_with("Scan a") && line.ends_with("(actual rows=1000)")), "{counted:#?}");
    assert!(counted[0].ends_with("(actual rows=3)"), "{counted:#?}");
    // Column by column, where no row is made.
    let summed = nodes(&mut session, "SELECT sum(x) FROM a WHERE x > 4");
    assert!(summed.iter().any(|line| line.starts_with("Scan a") && line.ends_with("(actual rows=500)")), "{summed:#?}");
    // A side that is not asked for, and a subquery for each row.
    let never = nodes(&mut session, "SELECT id, (SELECT max(y) FROM b WHERE b.a = a.id) FROM a WHERE id < 4");
    let inner = never.iter().find(|line| line.starts_with("Index b_a of b")).unwrap();
    assert!(inner.ends_with("(actual rows=9 loops=3)"), "{never:#?}");
    let never = nodes(&mut session, "SELECT id, (SELECT max(y) FROM b WHERE b.a = a.id) FROM a WHERE id < 0");
    assert!(never.iter().any(|line| line.starts_with("Index b_a of b") && line.ends_with("(never begun)")), "{never:#?}");
    // By its key.
    assert_eq!(nodes(&mut session, "SELECT * FROM a WHERE id = 7"), ["One row by a_pkey of a  where id = 7  (rows=1)  (actual rows=1)"]);
    assert_eq!(nodes(&mut session, "SELECT count(*) FROM a")[1..], ["Number of rows of a  (actual rows=1)"]);
}

#[test]
fn what_was_asked_for_is_told() {
    let mut session = filled();
    let of = |lines: &[String], name: &str| -> u64 {
        let line = lines.iter().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {lines:#?}"));
        line.split(name).nth(1).unwrap().split(',').next().unwrap().trim().parse().unwrap()
    };
    let scan = lines(&mut session, "EXPLAIN (ANALYZE, BUFFERS) SELECT x FROM a WHERE x + 0 > 100");
    assert_eq!(of(&scan, "Rows scanned:"), 1000, "{scan:#?}");
    assert!(of(&scan, "Getpages:") > 0 && of(&scan, "values taken out:") >= 1000, "{scan:#?}");
    let point = lines(&mut session, "EXPLAIN ANALYZE SELECT x FROM a WHERE id = 5");
    assert_eq!((of(&point, "Rows scanned:"), of(&point, "Rows:")), (0, 1), "{point:#?}");
    assert!(point.iter().any(|line| line.starts_with("Rows: 1")), "{point:#?}");
    // Without ANALYZE nothing is run.
    assert!(lines(&mut session, "EXPLAIN (VERBOSE, ANALYZE off) SELECT 1 / x FROM a").iter().all(|line| !line.contains("actual")));
    assert_eq!(fails(&mut session, "EXPLAIN (ANALYZE perhaps) SELECT 1"), "42601");
    assert_eq!(fails(&mut session, "EXPLAIN (SPEED) SELECT 1"), "42601");
}

#[test]
fn changes_are_made_and_told() {
    let mut session = filled();
    let inserted = nodes(&mut session, "INSERT INTO a VALUES (2000, 1), (2001, 2)");
    assert_eq!(inserted, ["Insert into a", "Values  (rows=2)  (actual rows=2)"]);
    let one = nodes(&mut session, "INSERT INTO a VALUES (2002, 1)");
    assert!(one[1].ends_with("(actual rows=1)"), "{one:#?}");
    let updated = nodes(&mut session, "UPDATE a SET x = 77 WHERE id > 1000");
    assert!(updated[0].starts_with("Update a") && updated.iter().any(|line| line.ends_with("(actual rows=3)")), "{updated:#?}");
    run(&mut session, "BEGIN");
    let deleted = nodes(&mut session, "DELETE FROM a WHERE x = 77");
    assert!(deleted.iter().any(|line| line.starts_with("Scan a") && line.ends_with("(actual rows=3)")), "{deleted:#?}");
    run(&mut session, "ROLLBACK");
    assert_eq!(number(&mut session, "SELECT count(*) FROM a WHERE x = 77"), 3);
}

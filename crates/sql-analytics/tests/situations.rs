//! What is seen, and what is taken, by queries that are run by batches: own changes, old snapshots, tables that were altered, memory, time.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "tpch_data/mod.rs"]
mod tpch_data;

use common::{both, database, done, in_order, run};
use pagefold_sql::{Database, Session};
use pagefold_sql_analytics::DataFusion;
use pagefold_types::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

const QUERIES: [&str; 6] = [
    "SELECT count(*), sum(a), min(b), max(c) FROM n",
    "SELECT a % 7, count(*), sum(b), avg(b) FROM n GROUP BY a % 7",
    "SELECT x.a, y.c FROM n x JOIN n y ON x.a = y.b WHERE x.a < 90",
    "SELECT a FROM n WHERE EXISTS (SELECT 1 FROM n m WHERE m.b = n.a AND m.a <> n.a)",
    "SELECT c, count(DISTINCT b) FROM n GROUP BY c",
    "SELECT a, b, c FROM n ORDER BY b DESC, a LIMIT 20",
];

/// All queries, which are all run by batches.
fn compare(database: &Database, session: &mut Session, what: &str) {
    for query in QUERIES {
        let (rows, batches, was_run) = both(database, session, query);
        assert_eq!(in_order(rows.clone()), in_order(batches), "{what}: {query}");
        assert!(was_run && rows.is_ok(), "{what}: {query}");
    }
}

fn filled(session: &mut Session, method: &str, rows: u64) {
    done(session, &format!("CREATE TABLE n (a INTEGER PRIMARY KEY, b BIGINT, c VARCHAR(40)) WITH (compress = '{method}')"));
    let fill = format!("INSERT INTO n SELECT a, a * 37 % 1001, 'text ' || a % 13 FROM generate_series(1, {rows}) s (a)");
    done(session, &fill);
}

#[test]
fn own_changes_and_those_of_others() {
    for method in ["none", "row", "page", "fixed", "huffman"] {
        let database = database(2);
        let (mut one, mut other) = (database.session(), database.session());
        filled(&mut one, method, 3000);
        compare(&database, &mut one, method);
        // Old: what others do meanwhile is not seen.
        done(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        let before = done(&mut other, QUERIES[0]);
        done(&mut one, "UPDATE n SET b = b + 1, c = 'changed and longer than it was' WHERE a % 3 = 0");
        done(&mut one, "DELETE FROM n WHERE a % 11 = 0");
        done(&mut one, "INSERT INTO n VALUES (100001, 5, 'new'), (100002, NULL, NULL)");
        assert_eq!(done(&mut other, "SET analytics = on"), done(&mut other, "SET analytics = on"));
        assert_eq!(done(&mut other, QUERIES[0]), before);
        compare(&database, &mut other, "an old snapshot");
        compare(&database, &mut one, "what was changed");
        // Own: what is not committed is seen, and is gone when it is taken back.
        let committed = done(&mut one, QUERIES[0]);
        done(&mut one, "BEGIN");
        done(&mut one, "DELETE FROM n WHERE a < 1000");
        done(&mut one, "UPDATE n SET b = NULL WHERE a % 5 = 0");
        assert_ne!(done(&mut one, QUERIES[0]), committed);
        compare(&database, &mut one, "own changes");
        done(&mut one, "ROLLBACK");
        assert_eq!(done(&mut one, QUERIES[0]), committed);
        done(&mut other, "COMMIT");
    }
}

#[test]
fn tables_that_were_altered_or_are_empty() {
    let database = database(2);
    let mut session = database.session();
    filled(&mut session, "page", 2000);
    done(&mut session, "ALTER TABLE n ADD COLUMN d DECIMAL(9,2) DEFAULT 1.25");
    done(&mut session, "ALTER TABLE n ADD COLUMN e VARCHAR(10)");
    done(&mut session, "INSERT INTO n SELECT a + 5000, b, c, a, 'e' FROM n WHERE a < 100");
    compare(&database, &mut session, "columns that came later");
    for query in
        ["SELECT sum(d), count(e), min(e) FROM n", "SELECT d, count(*) FROM n GROUP BY d", "SELECT a, d FROM n WHERE e IS NULL AND d > 1"]
    {
        let (rows, batches, was_run) = both(&database, &mut session, query);
        assert_eq!(in_order(rows), in_order(batches), "{query}");
        assert!(was_run, "{query}");
    }
    done(&mut session, "ALTER TABLE n DROP COLUMN e");
    compare(&database, &mut session, "a column that is gone");
    done(&mut session, "DELETE FROM n");
    compare(&database, &mut session, "no rows");
    // Values that lie on pages of their own.
    done(&mut session, "CREATE TABLE w (a INTEGER PRIMARY KEY, t VARCHAR)");
    done(&mut session, "INSERT INTO w SELECT a, repeat('long ' || a, 3000) FROM generate_series(1, 40) s (a)");
    done(&mut session, "INSERT INTO w VALUES (41, NULL), (42, ''), (43, 'short')");
    for query in ["SELECT a, t FROM w", "SELECT max(t), min(t), count(t) FROM w", "SELECT length(t), count(*) FROM w GROUP BY length(t)"] {
        let (rows, batches, was_run) = both(&database, &mut session, query);
        assert_eq!(in_order(rows), in_order(batches), "{query}");
        assert!(was_run, "{query}");
    }
}

#[test]
fn parameters_copies_and_parts_of_plans() {
    let database = database(2);
    let mut session = database.session();
    filled(&mut session, "page", 2000);
    done(&mut session, "SET analytics = on");
    let query = "SELECT c, sum(b) FROM n WHERE a < $1 GROUP BY c ORDER BY c LIMIT $2";
    let rows = |session: &mut Session, bound: i64, limit: i64| {
        session.execute(query, &[Value::Int(bound), Value::Int(limit)]).unwrap().rows().unwrap()
    };
    for (bound, limit) in [(10, 3), (1000, 100), (0, 5), (500, 0)] {
        done(&mut session, "SET analytics = off");
        let by_rows = rows(&mut session, bound, limit);
        done(&mut session, "SET analytics = on");
        assert_eq!(rows(&mut session, bound, limit), by_rows);
    }
    // What window functions are computed of comes by batches, and the row executor computes them.
    let before = database.analytics_statements();
    let (rows, batches, was_run) =
        both(&database, &mut session, "SELECT c, s, rank() OVER (ORDER BY s) FROM (SELECT c, sum(b) AS s FROM n GROUP BY c) q");
    assert_eq!(in_order(rows), in_order(batches));
    assert!(was_run && database.analytics_statements() > before);
    let mut text = Vec::new();
    let copy = session.prepare("COPY (SELECT c, count(*) FROM n GROUP BY c ORDER BY c) TO STDOUT").unwrap();
    let before = database.analytics_statements();
    assert_eq!(session.copy_to(&copy, &mut text).unwrap(), 13);
    assert!(database.analytics_statements() > before);
    // Nothing but queries.
    let before = database.analytics_statements();
    done(&mut session, "UPDATE n SET b = (SELECT max(b) FROM n m WHERE m.c = n.c) WHERE a < 10");
    done(&mut session, "BEGIN");
    done(&mut session, "DECLARE x CURSOR FOR SELECT c, sum(b) FROM n GROUP BY c");
    assert_eq!(done(&mut session, "FETCH ALL FROM x").len(), 13);
    done(&mut session, "COMMIT");
    done(&mut session, "SELECT a FROM n WHERE a < 5 FOR UPDATE");
    assert_eq!(database.analytics_statements(), before);
    let told = done(&mut session, "EXPLAIN SELECT c, sum(b) FROM n GROUP BY c");
    assert_eq!(told[0], [Value::Text("By batches".into())]);
    let told = done(&mut session, "EXPLAIN ANALYZE SELECT c, sum(b) FROM n GROUP BY c");
    assert!(matches!(&told[0][0], Value::Text(line) if line.starts_with("By batches  (actual rows=13")), "{told:?}");
    let counted = done(&mut session, "SELECT value FROM pagefold_counters WHERE object_name = 'analytics'");
    assert_eq!(counted, [[Value::Int(i64::try_from(database.analytics_statements()).unwrap())]]);
}

#[test]
fn little_memory() {
    let analytics = Arc::new(DataFusion::with_threads(2));
    let database = common::database_of(Arc::clone(&analytics));
    let mut session = database.session();
    filled(&mut session, "page", 200_000);
    let mut spilled = 0;
    for query in [
        "SELECT b, a, c FROM n ORDER BY c, b, a",
        "SELECT a, count(*), max(c) FROM n GROUP BY a",
        "SELECT x.a, y.c FROM n x JOIN n y ON x.a = y.a + 1",
        "SELECT DISTINCT a, c FROM n",
        "SELECT b, count(DISTINCT a) FROM n GROUP BY b",
    ] {
        done(&mut session, "SET work_mem = '256MB'");
        let (rows, batches, was_run) = both(&database, &mut session, query);
        let rows = in_order(rows);
        assert!(was_run && rows == in_order(batches), "{query}");
        for memory in ["16MB", "8MB", "4MB", "1MB", "64kB"] {
            done(&mut session, &format!("SET work_mem = '{memory}'"));
            // What one group gathers the row executor does not divide.
            done(&mut session, "SET analytics = off");
            let refused = run(&mut session, query) == Err("53200");
            done(&mut session, "SET analytics = on");
            let before = analytics.spilled_bytes();
            let given = in_order(run(&mut session, query));
            if refused && given == Err("53200") {
                continue;
            }
            assert!(
                rows == given,
                "{query} with {memory}: {:?} in place of {:?} rows",
                given.map(|rows| rows.len()),
                rows.as_ref().map(Vec::len)
            );
            spilled += u64::from(analytics.spilled_bytes() > before);
        }
    }
    println!("{spilled} queries wrote to files, {} bytes", analytics.spilled_bytes());
    assert!(spilled > 2);
}

#[test]
fn statements_end_when_they_have_to() {
    let database = database(2);
    let mut session = database.session();
    filled(&mut session, "page", 20_000);
    done(&mut session, "SET analytics = on");
    // So many pairs that it would take hours.
    let endless = "SELECT count(*), sum(x.b + y.b * z.b) FROM n x, n y, n z WHERE x.a + y.a + z.a > 10";
    assert_eq!(done(&mut session, &format!("EXPLAIN {endless}"))[0], [Value::Text("By batches".into())]);
    done(&mut session, "SET statement_timeout = '300ms'");
    let begun = Instant::now();
    assert_eq!(run(&mut session, endless), Err("57014"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    done(&mut session, "SET statement_timeout = 0");
    let canceller = session.canceller();
    let waiting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        canceller.cancel();
    });
    let begun = Instant::now();
    assert_eq!(run(&mut session, endless), Err("57014"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    waiting.join().unwrap();
    // Who does not want more rows: nothing of it runs on, and the session goes on.
    let mut answer = session.execute("SELECT x.a, y.a FROM n x, n y WHERE x.a <> y.a", &[]).unwrap();
    assert!(answer.next_row().unwrap().is_some());
    drop(answer);
    assert_eq!(done(&mut session, "SELECT count(*) FROM n"), [[Value::Int(20_000)]]);
}

/// The 22 queries, under every method.
#[test]
fn queries_of_tpch() {
    for method in ["none", "row", "page", "fixed", "huffman"] {
        let database = database(2);
        let mut session = database.session();
        tpch_data::make(&mut session, 0.01, method).unwrap();
        let mut by_batches = 0;
        for number in 1..=22 {
            for statement in tpch_data::statements(number) {
                if !statement.starts_with("select") {
                    done(&mut session, &statement);
                    continue;
                }
                let (rows, batches, was_run) = both(&database, &mut session, &statement);
                assert_eq!(in_order(rows), in_order(batches), "{method}, query {number}");
                by_batches += i32::from(was_run);
            }
        }
        assert_eq!(by_batches, 22, "{method}");
    }
}

//! Joins of which one side tells the other one its keys: what comes is what the row executor gives, and rows were left out, by pages and by indexes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{both, database_of, done, in_order};
use pagefold_sql::{Database, Session};
use pagefold_sql_analytics::DataFusion;
use std::sync::Arc;

/// `few` is joined with `many`: by its primary key, by columns with and without an index, of other types, with NULLs. `of few` are a few rows of it, or many.
const QUERIES: [&str; 21] = [
    "SELECT f.id, m.id, m.t FROM few f JOIN many m ON m.id = f.a WHERE f.id {of few}",
    "SELECT f.id, m.id, m.t FROM few f JOIN many m ON m.b = f.a WHERE f.id {of few}",
    "SELECT f.id, m.id, m.t FROM few f JOIN many m ON m.c = f.a WHERE f.id {of few}",
    "SELECT f.id, m.id FROM few f JOIN many m ON m.s = f.a WHERE f.id {of few}",
    "SELECT f.id, m.id FROM few f JOIN many m ON m.d = f.d WHERE f.id {of few}",
    "SELECT f.id, m.id FROM few f JOIN many m ON m.b = f.a AND m.c = f.b WHERE f.id {of few}",
    "SELECT f.id, m.id FROM few f JOIN many m ON m.b = f.a WHERE f.id {of few} AND m.c > 40 AND m.t LIKE 'text 1%'",
    "SELECT f.id, m.id FROM few f LEFT JOIN many m ON m.b = f.a WHERE f.id {of few}",
    "SELECT f.id, m.id FROM many m LEFT JOIN (SELECT * FROM few WHERE id {of few}) f ON m.b = f.a WHERE m.id < 3000",
    "SELECT f.id, m.id FROM (SELECT * FROM few WHERE id {of few}) f FULL JOIN many m ON m.b = f.a",
    "SELECT m.id FROM many m WHERE EXISTS (SELECT 1 FROM few f WHERE f.a = m.b AND f.id {of few})",
    "SELECT m.id FROM many m WHERE m.b IN (SELECT f.a FROM few f WHERE f.id {of few})",
    "SELECT m.id FROM many m WHERE NOT EXISTS (SELECT 1 FROM few f WHERE f.a = m.b AND f.id {of few})",
    "SELECT f.id FROM few f WHERE f.id {of few} AND EXISTS (SELECT 1 FROM many m WHERE m.b = f.a)",
    "SELECT f.id FROM few f WHERE f.id {of few} AND NOT EXISTS (SELECT 1 FROM many m WHERE m.b = f.a)",
    "SELECT f.id, g.n, g.s FROM few f JOIN (SELECT b, count(*) AS n, sum(c) AS s FROM many GROUP BY b) g ON g.b = f.a WHERE f.id {of few}",
    "SELECT f.id FROM few f JOIN (SELECT DISTINCT b, s FROM many) g ON g.b = f.a WHERE f.id {of few}",
    "SELECT f.id, u.x FROM few f JOIN (SELECT id AS x FROM many UNION ALL SELECT c FROM many) u ON u.x = f.a WHERE f.id {of few}",
    "SELECT f.id, q.id FROM few f JOIN (SELECT * FROM many ORDER BY c, id LIMIT 50) q ON q.b = f.a WHERE f.id {of few}",
    "SELECT f.id, m.id, n.id FROM few f JOIN many m ON m.id = f.a JOIN many n ON n.b = m.c WHERE f.id {of few}",
    "SELECT f.id, m.id FROM few f JOIN (SELECT x.id, y.b FROM many x LEFT JOIN many y ON y.id = x.c) m ON m.b = f.a WHERE f.id {of few}",
];

fn filled(session: &mut Session, method: &str, parts: &str) {
    done(session, &format!("CREATE TABLE few (id INTEGER PRIMARY KEY, a BIGINT, b INTEGER, d DATE) WITH (compress = '{method}')"));
    let many = "id INTEGER PRIMARY KEY, b INTEGER, c INTEGER, s SMALLINT, d DATE, t VARCHAR(40)";
    done(session, &format!("CREATE TABLE many ({many}) {parts} WITH (compress = '{method}')"));
    done(session, "INSERT INTO few SELECT i, i * 41 % 5000, i % 7, DATE '2020-01-01' + i FROM generate_series(1, 400) s (i)");
    // No row of the other table can have these, or none that is found by them.
    done(
        session,
        "INSERT INTO few VALUES (401, NULL, NULL, NULL), (402, 9000000000, 1, NULL), (403, -7, 1, DATE '1900-01-01'), (404, 82, 2, NULL)",
    );
    let values = "i, i % 4001, i * 7 % 501, i % 300, DATE '2020-01-01' + i % 900, 'text ' || i % 23";
    done(session, &format!("INSERT INTO many SELECT {values} FROM generate_series(1, 6000) s (i)"));
    done(session, "INSERT INTO many VALUES (100001, NULL, NULL, NULL, NULL, NULL), (-7, -7, -7, -7, DATE '1900-01-01', 'before all')");
    done(session, "CREATE INDEX many_b ON many (b)");
    done(session, "CREATE INDEX many_d ON many (d DESC, id)");
}

fn compare(database: &Database, session: &mut Session, what: &str) {
    for query in QUERIES {
        for few in ["= 3", "= 402", "IN (5, 6, 401, 402, 403, 404)", "< 150", "> 1000", "> 0"] {
            let query = query.replace("{of few}", few);
            let (rows, batches, was_run) = both(database, session, &query);
            assert_eq!(in_order(rows.clone()), in_order(batches), "{what}: {query}");
            assert!(was_run && rows.is_ok(), "{what}: {query}");
        }
    }
}

#[test]
fn rows_without_a_partner_are_left_out() {
    for (method, parts) in [
        ("none", ""),
        ("row", ""),
        ("page", ""),
        ("fixed", ""),
        ("huffman", ""),
        ("page", "PARTITION BY RANGE (id) (PARTITION p1 VALUES LESS THAN (2000), PARTITION p2 VALUES LESS THAN (MAXVALUE))"),
        (
            "row",
            "PARTITION BY RANGE (id) (PARTITION p1 VALUES LESS THAN (100), PARTITION p2 VALUES LESS THAN (900), PARTITION p3 VALUES LESS THAN (2000), \
             PARTITION p4 VALUES LESS THAN (4000), PARTITION p5 VALUES LESS THAN (MAXVALUE))",
        ),
    ] {
        let analytics = Arc::new(DataFusion::with_threads(2));
        let database = database_of(Arc::clone(&analytics));
        let (mut one, mut other) = (database.session(), database.session());
        filled(&mut one, method, parts);
        compare(&database, &mut one, method);
        let (with_keys, by_index) = (analytics.scans_with_keys(), analytics.scans_by_index());
        assert!(by_index > 0 && with_keys > by_index, "{method}: {with_keys} scans, {by_index} of them by an index");
        // Own changes, and those of others that are not to be seen.
        done(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        done(&mut other, "SELECT count(*) FROM many");
        done(&mut one, "BEGIN");
        done(&mut one, "UPDATE many SET b = b + 1, t = 'changed, and longer than it was' WHERE id % 3 = 0");
        done(&mut one, "DELETE FROM many WHERE id % 11 = 0");
        done(&mut one, "UPDATE few SET a = a + 1 WHERE id % 2 = 0");
        compare(&database, &mut one, "own changes");
        compare(&database, &mut other, "before they are committed");
        done(&mut one, "COMMIT");
        compare(&database, &mut other, "an old snapshot");
        compare(&database, &mut one, "what was changed");
        done(&mut other, "COMMIT");
        // An index that came later than the snapshot, and columns that came later than rows.
        done(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        done(&mut other, "SELECT count(*) FROM many");
        done(&mut one, "CREATE INDEX many_c ON many (c)");
        compare(&database, &mut other, "without a new index");
        done(&mut other, "COMMIT");
        done(&mut one, "ALTER TABLE many ADD COLUMN e INTEGER DEFAULT 41");
        done(&mut one, "ALTER TABLE many ALTER COLUMN c TYPE BIGINT");
        compare(&database, &mut one, "altered");
        let (rows, batches, _) =
            both(&database, &mut one, "SELECT f.id, count(*) FROM few f JOIN many m ON m.e = f.a WHERE f.id < 4 GROUP BY f.id");
        assert_eq!(in_order(rows.clone()), in_order(batches));
        assert_eq!(rows.unwrap().len(), 1);
    }
}

/// What has no memory for keys goes on without them; a query whose time is over, or that fails, ends while scans wait.
#[test]
fn without_memory_and_with_failures() {
    let analytics = Arc::new(DataFusion::with_threads(2));
    let database = database_of(Arc::clone(&analytics));
    let mut session = database.session();
    filled(&mut session, "page", "");
    done(&mut session, "CREATE TABLE large AS SELECT i AS id, i * 3 AS k FROM generate_series(1, 200000) s (i)");
    done(&mut session, "SET work_mem = '4MB'");
    let query = "SELECT count(*), sum(x.k) FROM large x JOIN large y ON x.id = y.k WHERE y.id < 150000";
    let (rows, batches, _) = both(&database, &mut session, query);
    assert_eq!(rows, batches);
    done(&mut session, "SET work_mem = '256MB'");
    let before = analytics.scans_with_keys();
    let (rows, batches, was_run) = both(&database, &mut session, query);
    assert_eq!(rows, batches);
    assert!(was_run && analytics.scans_with_keys() > before);
    // The hashed side fails at one of its rows.
    let failing = "SELECT count(*) FROM large x JOIN (SELECT id, 10 / (id - 70000) AS k FROM large WHERE id < 100000) y ON x.id = y.id WHERE y.k > -100";
    let (rows, batches, _) = both(&database, &mut session, failing);
    assert_eq!((rows, batches), (Err("22012"), Err("22012")));
    done(&mut session, "SET analytics = on");
    done(&mut session, "SET statement_timeout = 1");
    assert_eq!(
        common::run(&mut session, "SELECT count(*) FROM large x JOIN large y ON x.id = y.k JOIN large z ON z.id = y.k WHERE y.id % 3 < 2"),
        Err("57014")
    );
    done(&mut session, "SET statement_timeout = 0");
    let (rows, batches, _) = both(&database, &mut session, query);
    assert_eq!(rows, batches);
}

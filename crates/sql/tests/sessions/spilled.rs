//! Rows that do not fit the memory of a statement: each way in which they go to a file gives what memory would; a full disk or an error of the device undoes the statement, and nothing
//! else notices.

use super::{fails, number, run};
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{CallKind, Failure, Fault, FaultOptions, FaultStorage, OsClock, Storage, Trigger};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;

const ROWS: i64 = 20_000;

fn fault_database() -> (FaultStorage, Database) {
    let storage = FaultStorage::new(FaultOptions { log_calls_max: 0, ..FaultOptions::default() });
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let engine = Engine::open(shared, Arc::new(OsClock), Path::new("db"), OpenMode::Create, Settings::default()).unwrap();
    let database = Database::new(Arc::new(engine));
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER, name TEXT)");
    run(&mut session, &format!("INSERT INTO t SELECT g, g * 7919 % {ROWS}, 'name ' || g FROM generate_series(1, {ROWS}) g"));
    (storage, database)
}

/// Bytes that EXPLAIN ANALYZE says went to a file.
fn spilled(session: &mut Session, sql: &str) -> u64 {
    let lines = run(session, &format!("EXPLAIN ANALYZE {sql}"));
    let text = |row: &Vec<Value>| match &row[0] {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let lines: Vec<String> = lines.iter().map(text).collect();
    let found = lines.iter().find_map(|line| line.strip_prefix("Written to a scratch file: "));
    found.map_or(0, |bytes| bytes.trim_end_matches(" bytes").parse().unwrap())
}

/// Queries that keep many rows, one for each way in which these go to a file.
const QUERIES: [&str; 18] = [
    "SELECT x, name FROM t ORDER BY name DESC, x",
    "SELECT x, id FROM t ORDER BY x % 5, id LIMIT 15000 OFFSET 3",
    "SELECT x % 9000, count(*), min(name), sum(id) FROM t GROUP BY x % 9000",
    "SELECT DISTINCT x % 9000, name IS NULL FROM t",
    "SELECT x FROM t EXCEPT SELECT x * 2 FROM t",
    "SELECT x % 7000 FROM t INTERSECT ALL SELECT x % 8000 FROM t WHERE id % 3 > 0",
    "SELECT a.id, b.id, b.name FROM t a JOIN t b ON a.x + 1 = b.x + 2",
    "SELECT a.id, b.id FROM t a FULL JOIN t b ON a.x = b.x + 15000",
    "SELECT a.id, b.name FROM t a LEFT JOIN (SELECT x, name FROM t WHERE id % 2 = 0) b ON a.x + 0 = b.x + 0",
    "SELECT id FROM t WHERE x NOT IN (SELECT x + 5000 FROM t WHERE id % 4 > 0)",
    "SELECT id FROM t WHERE x IN (SELECT x + 10000 FROM t WHERE id % 3 > 0)",
    // Windows: what looks back, and partitions.
    "SELECT id, row_number() OVER w, rank() OVER w, sum(x) OVER w, max(name) OVER w FROM t WINDOW w AS (ORDER BY x % 5000, id % 3)",
    "SELECT id, sum(x) OVER (ORDER BY name, id ROWS UNBOUNDED PRECEDING), count(*) FILTER (WHERE x % 2 = 0) OVER (ORDER BY name, id ROWS UNBOUNDED PRECEDING) FROM t",
    "SELECT id, lead(name) OVER w, ntile(3) OVER w, avg(x) OVER (PARTITION BY x % 900) FROM t WINDOW w AS (PARTITION BY x % 700 ORDER BY name DESC, id)",
    // Equal rows stay as they came.
    "SELECT id, name FROM t ORDER BY x % 5",
    // Partners in the first chunk alone, or in none.
    "SELECT a.id, b.id FROM (SELECT id FROM t WHERE id <= 40) a LEFT JOIN (SELECT id + 0 AS id, x, name FROM t) b ON b.id < a.id",
    "SELECT a.id, b.id FROM (SELECT id, id % 2 AS k FROM t WHERE id <= 40) a FULL JOIN (SELECT id, id % 1 AS k, name FROM t) b ON a.k = b.k AND b.id % a.id = 0",
    // One key: what no division makes smaller.
    "SELECT count(*), sum(b.x) FROM (SELECT id % 1 AS k FROM t WHERE id <= 40) a LEFT JOIN (SELECT id % 1 AS k, x, name FROM t) b ON a.k = b.k",
];

#[test]
fn queries_give_the_same() {
    let (storage, database) = fault_database();
    let (mut rich, mut poor) = (database.session(), database.session());
    run(&mut rich, "SET work_mem = '1GB'");
    run(&mut poor, "SET work_mem = '64kB'");
    let before = storage.taken_bytes();
    for query in QUERIES {
        assert_eq!(spilled(&mut rich, query), 0, "{query}");
        assert!(spilled(&mut poor, query) > 50_000, "{query}");
        let (mut wanted, mut rows) = (run(&mut rich, query), run(&mut poor, query));
        assert!(!rows.is_empty(), "{query}");
        if !query.contains("ORDER BY") {
            wanted.sort();
            rows.sort();
        }
        assert!(wanted == rows, "{query}");
    }
    assert!(storage.taken_bytes() <= before + 1_000_000, "files stay: {} bytes, {before} before", storage.taken_bytes());
    // A statement that is left before its end gives its file back, too.
    let mut answer = poor.execute(QUERIES[0], &[]).unwrap();
    answer.next_row().unwrap();
    assert!(storage.taken_bytes() > before + 400_000);
    drop(answer);
    assert!(storage.taken_bytes() <= before + 1_000_000);
}

#[test]
fn rows_that_change_go_to_a_file() {
    let (_, database) = fault_database();
    let mut poor = database.session();
    run(&mut poor, "SET work_mem = '64kB'");
    assert!(spilled(&mut poor, "UPDATE t SET id = id + 100000") > 100_000);
    assert_eq!(number(&mut poor, "SELECT sum(id) FROM t"), ROWS * (ROWS + 1) / 2 + ROWS * 100_000);
    assert!(spilled(&mut poor, "INSERT INTO t SELECT id + 100000, x, name FROM t") > 100_000);
    assert_eq!(number(&mut poor, "SELECT count(*) FROM t"), 2 * ROWS);
    assert!(spilled(&mut poor, "DELETE FROM t WHERE id > 200000") > 100_000);
    assert_eq!(number(&mut poor, "SELECT count(*) FROM t WHERE id BETWEEN 100001 AND 120000"), ROWS);
}

/// Which rows a join has given is kept in memory (32 bytes each), beside rows that take all of it and go to a file.
#[test]
fn rows_that_a_join_gives_to_a_change_go_to_a_file() {
    let statements = [
        "UPDATE t SET x = t.x + 1, name = b.name FROM t b WHERE b.id = t.id",
        "MERGE INTO t USING (SELECT id, name FROM t) b ON b.id = t.id WHEN MATCHED THEN UPDATE SET x = t.x + 1, name = b.name",
        "DELETE FROM t USING t b WHERE b.id = t.id",
        "MERGE INTO t USING (SELECT id FROM t) b ON b.id = t.id WHEN MATCHED THEN DELETE",
    ];
    for statement in statements {
        let (_, database) = fault_database();
        let mut poor = database.session();
        let sum = number(&mut poor, "SELECT sum(x) FROM t");
        run(&mut poor, "SET work_mem = '512kB'");
        assert_eq!(fails(&mut poor, statement), "53200", "{statement}");
        assert_eq!(number(&mut poor, "SELECT sum(x) FROM t"), sum, "{statement}");
        run(&mut poor, "SET work_mem = '768kB'");
        assert!(spilled(&mut poor, statement) > 100_000, "{statement}");
        let left = if statement.contains("DELETE") { 0 } else { ROWS };
        assert_eq!(number(&mut poor, "SELECT count(*) FROM t"), left, "{statement}");
        assert_eq!(number(&mut poor, "SELECT coalesce(sum(x), 0) FROM t"), if left == 0 { 0 } else { sum + ROWS }, "{statement}");
    }
}

#[test]
fn a_full_disk_undoes_the_statement() {
    let (storage, database) = fault_database();
    let (mut poor, mut other) = (database.session(), database.session());
    run(&mut poor, "SET work_mem = '64kB'");
    let mut failed = 0;
    for query in QUERIES.iter().chain(&["UPDATE t SET x = x + 1", "INSERT INTO t SELECT id + 100000, x, name FROM t"]) {
        let bytes = run(&mut other, "SELECT count(*), sum(x) FROM t");
        run(&mut poor, "BEGIN");
        run(&mut poor, "INSERT INTO t VALUES (-1, 0, 'mine')");
        run(&mut poor, "SAVEPOINT s");
        // The room in the log is there already: what is missing is that of the scratch file.
        storage.set_capacity(Some(storage.taken_bytes() + 16_000));
        let sqlstate = fails(&mut poor, query);
        storage.set_capacity(None);
        assert_eq!(sqlstate, "53100", "{query}");
        failed += 1;
        assert_eq!(fails(&mut poor, "SELECT 1"), "25P02");
        run(&mut poor, "ROLLBACK TO s");
        assert_eq!(number(&mut poor, "SELECT count(*) FROM t WHERE id = -1"), 1);
        assert_eq!(run(&mut other, "SELECT count(*), sum(x) FROM t"), bytes, "{query}");
        run(&mut poor, "ROLLBACK");
    }
    assert_eq!(failed, QUERIES.len() + 2);
}

#[test]
fn errors_of_the_device_and_damage_are_told() {
    let (storage, database) = fault_database();
    let mut poor = database.session();
    run(&mut poor, "SET work_mem = '64kB'");
    let wanted = run(&mut poor, QUERIES[2]).len();
    let (mut failed, mut done) = (0, 0);
    let faults = [
        (CallKind::Write, Fault::Error(Failure::Io)),
        (CallKind::Read, Fault::Error(Failure::Io)),
        (CallKind::Read, Fault::FlipBit(12_345)),
        (CallKind::Write, Fault::LoseWrite),
    ];
    for (kind, fault) in faults {
        for skip in [0, 3, 20, 1_000_000] {
            storage.inject(Trigger::kind(kind, skip).on_path("rows-"), fault);
            match poor.execute(QUERIES[2], &[]).and_then(pagefold_sql::Answer::rows) {
                Ok(rows) => {
                    assert_eq!(rows.len(), wanted);
                    done += 1;
                }
                Err(error) => {
                    assert_eq!(error.sqlstate(), "58030", "{error}");
                    failed += 1;
                }
            }
            storage.clear_faults();
        }
    }
    assert_eq!((failed, done), (12, 4));
}

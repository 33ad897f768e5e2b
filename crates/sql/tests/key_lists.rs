//! Lists of keys of several columns, and rows that are compared: what is found by an index is what a look at every row finds.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/random.rs"]
mod random;

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use random::{Random, setting};
use std::path::Path;
use std::sync::Arc;

const TABLES: [&str; 5] = [
    "CREATE TABLE k (a INTEGER, b INTEGER, c TEXT, d DECIMAL(9, 1), PRIMARY KEY (a, b))",
    "CREATE TABLE k (a SMALLINT NOT NULL, b BIGINT NOT NULL, c TEXT, d DECIMAL(9, 1), PRIMARY KEY (b, a))",
    "CREATE TABLE k (a INTEGER, b INTEGER, c TEXT, d DECIMAL(9, 1)); CREATE INDEX ON k (a DESC, c, b); CREATE INDEX ON k (d, b)",
    "CREATE TABLE k (a INTEGER, b INTEGER, c TEXT, d DECIMAL(9, 1), PRIMARY KEY (a, b)) PARTITION BY RANGE (a) \
     (PARTITION low VALUES LESS THAN (10), PARTITION middle VALUES LESS THAN (20), PARTITION high VALUES LESS THAN (MAXVALUE))",
    "CREATE TABLE k (a INTEGER, b INTEGER, c TEXT, d DECIMAL(9, 1), PRIMARY KEY (a, b)) PARTITION BY RANGE (b) \
     (PARTITION low VALUES LESS THAN (25), PARTITION high VALUES LESS THAN (MAXVALUE)); CREATE INDEX ON k (b, c)",
];

fn session() -> Session {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    Database::new(Arc::new(engine)).session()
}

fn rows(session: &mut Session, sql: &str, params: &[Value]) -> Vec<Vec<Value>> {
    let mut answer = session.execute(sql, params).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let mut rows = Vec::new();
    while let Some(row) = answer.next_row().unwrap_or_else(|e| panic!("{sql}: {e}")) {
        rows.push(row.to_vec());
    }
    rows
}

/// A table of 1,500 rows, most of them with values in each column.
fn filled(definition: &str) -> Session {
    let mut session = session();
    definition.split("; ").for_each(|statement| drop(rows(&mut session, statement, &[])));
    let nulls = if definition.contains("PRIMARY KEY") { "i / 50, i % 50" } else { "nullif(i / 50, 3), nullif(i % 50, 4)" };
    let text = "CASE WHEN i % 7 = 0 THEN NULL ELSE chr(97 + i % 5) END";
    let fill = format!("INSERT INTO k SELECT {nulls}, {text}, nullif(i % 13, 5) / 2.0 FROM generate_series(0, 1499) AS g(i)");
    rows(&mut session, &fill, &[]);
    session
}

fn number(rng: &mut Random, most: usize) -> String {
    match rng.below(12) {
        0 => "NULL".into(),
        1 => format!("{}.5", rng.below(most)),
        2 => format!("{}.0", rng.below(most)),
        3 => "-1".into(),
        4 => "3000000000".into(),
        5 => format!("'{}'", rng.below(most)),
        _ => rng.below(most).to_string(),
    }
}

fn value(rng: &mut Random, column: &str) -> String {
    match column {
        "a" => number(rng, 30).replace("3000000000", "30000"),
        "b" => number(rng, 50),
        "c" if rng.percent(12) => "NULL".into(),
        "c" => format!("'{}'", rng.one(&["a", "b", "c", "d", "x", ""])),
        _ => format!("{}.{}", rng.below(8), rng.below(10)),
    }
}

/// `(a, b) IN (...)`, or the same as an OR, whose alternatives may have more or less in them.
fn list(rng: &mut Random) -> String {
    let columns: &[&str] = [&["a", "b"][..], &["b", "a"], &["a", "b", "c"], &["d", "b"], &["c", "a"]][rng.below(5)];
    let length = 1 + rng.below(20);
    if rng.percent(30) {
        let values: Vec<String> = columns.iter().map(|column| value(rng, column)).collect();
        return format!("({}) {} ({})", columns.join(", "), rng.one(&["<", "<=", ">", ">="]), values.join(", "));
    }
    if rng.percent(50) {
        let all: Vec<String> =
            (0..length).map(|_| format!("({})", columns.iter().map(|column| value(rng, column)).collect::<Vec<_>>().join(", "))).collect();
        return format!("({}) IN ({})", columns.join(", "), all.join(", "));
    }
    let alternative = |rng: &mut Random| {
        let mut terms: Vec<String> = columns.iter().map(|column| format!("{column} = {}", value(rng, column))).collect();
        match rng.below(20) {
            0 => terms.truncate(1),
            1 => terms.push("b < 30".into()),
            2 => terms[0] = format!("{} IS NULL", columns[0]),
            3..8 => {
                let at = rng.below(columns.len());
                terms[at] = format!("{} {} {}", columns[at], rng.one(&["<", "<=", ">", ">="]), value(rng, columns[at]));
            }
            _ => {}
        }
        format!("({})", terms.join(" AND "))
    };
    let all: Vec<String> = (0..length).map(|_| alternative(rng)).collect();
    format!("({})", all.join(" OR "))
}

#[test]
fn keys_of_lists_are_those_of_all_rows() {
    let mut rng = Random(setting("PAGEFOLD_KEY_LISTS_SEED", 7));
    let (mut found, mut by_keys) = (0, 0);
    for definition in TABLES {
        let mut session = filled(definition);
        for _ in 0..150 {
            let condition = list(&mut rng);
            let more = ["", " AND b > 10", " AND c = 'b'", " AND a IN (1, 2, 3)", " AND (c, b) IN (('a', 5), ('b', 11))"][rng.below(5)];
            let order = rng.one(&["a, b, c, d", "b, a, c, d", "a DESC, c DESC, b DESC, d"]);
            let query = |condition: &str| format!("SELECT * FROM k WHERE {condition}{more} ORDER BY {order}");
            // A condition within another one is asked of each row.
            let expected = rows(&mut session, &query(&format!("({condition}) IS TRUE")), &[]);
            let sql = query(&condition);
            assert_eq!(rows(&mut session, &sql, &[]), expected, "{definition}: {sql}");
            let keys_only = format!("SELECT count(*) FROM (SELECT a, b FROM k WHERE {condition}{more}) s");
            assert_eq!(rows(&mut session, &keys_only, &[]), [[Value::Int(expected.len() as i64)]], "{definition}: {keys_only}");
            let plan = rows(&mut session, &format!("EXPLAIN {sql}"), &[]);
            by_keys += u32::from(plan.iter().any(|line| matches!(&line[0], Value::Text(line) if line.contains(" keys"))));
            found += expected.len();
        }
    }
    assert!(found > 1_000 && by_keys > 200, "{found} rows, {by_keys} by keys");
}

/// A page of rows behind another one begins where that ended.
#[test]
fn pages_by_keys() {
    let mut session = filled(TABLES[0]);
    let looked_up = |session: &mut Session, sql: &str| {
        let lines = rows(session, &format!("EXPLAIN ANALYZE {sql}"), &[Value::Int(20), Value::Int(30)]);
        let text = lines.iter().find_map(|line| match &line[0] {
            Value::Text(line) => line.split_once("looked up: "),
            _ => None,
        });
        text.and_then(|(_, rest)| rest.split(',').next()?.parse::<u32>().ok()).unwrap()
    };
    for condition in ["(a, b) > ($1, $2)", "(a, b) >= ($1, $2)", "a > $1 OR a = $1 AND b > $2"] {
        let sql = format!("SELECT * FROM k WHERE {condition} ORDER BY a, b LIMIT 20");
        assert!(looked_up(&mut session, &sql) < 50, "{sql}");
    }
    let sql = "SELECT * FROM k WHERE (a, b) < ($1, $2) ORDER BY a DESC, b DESC LIMIT 20";
    assert!(looked_up(&mut session, sql) < 50);
    let sql = "SELECT a, b FROM k WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 3";
    let expected: Vec<Vec<Value>> = (31..34).map(|b| vec![Value::Int(20), Value::Int(b)]).collect();
    assert_eq!(rows(&mut session, sql, &[Value::Int(20), Value::Int(30)]), expected);
}

#[test]
fn parameters_and_changes() {
    let mut session = filled(TABLES[0]);
    let of = |n: i64| Value::Int(n);
    let sql = "SELECT a, b FROM k WHERE (a, b) IN (($1, $2), ($3, $4), ($1, $2)) ORDER BY a, b";
    let pairs = |session: &mut Session, params: &[Value]| rows(session, sql, params);
    assert_eq!(pairs(&mut session, &[of(1), of(2), of(3), of(4)]), [[of(1), of(2)], [of(3), of(4)]]);
    assert_eq!(pairs(&mut session, &[of(1), Value::Null, of(3), of(4)]), [[of(3), of(4)]]);
    assert!(pairs(&mut session, &[of(1), Value::Null, of(3), Value::Null]).is_empty());
    rows(&mut session, "DELETE FROM k WHERE (a, b) IN ((1, 2), (3, 4), (90, 90))", &[]);
    assert!(pairs(&mut session, &[of(1), of(2), of(3), of(4)]).is_empty());
    assert_eq!(rows(&mut session, "SELECT count(*) FROM k", &[]), [[of(1498)]]);
    rows(&mut session, "UPDATE k SET c = 'new' WHERE (b, a) IN ((5, 6), (5, 7)) AND c IS NOT NULL", &[]);
    let changed = "SELECT count(*) FROM k WHERE c = 'new' AND b = 5 AND a IN (6, 7)";
    assert_eq!(rows(&mut session, changed, &[]), rows(&mut session, "SELECT count(*) FROM k WHERE c = 'new'", &[]));
}

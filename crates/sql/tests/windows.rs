//! Random window functions, compared with SQLite: each function, unit, bound and exclusion, over ties, NULLs and no rows.
//!
//! `PAGEFOLD_SQL_ROUNDS` (40) rounds of 60 statements from `PAGEFOLD_SQL_SEED` (1) on.
//!
//! Where rows are equal by ORDER BY, what depends on which comes first is ordered by `id`, too.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/random.rs"]
mod random;

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use random::{Random, setting};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// How often something was in a statement that gave rows.
type Reached = BTreeMap<String, u32>;

struct Maker<'r> {
    random: &'r mut Random,
    reached: Vec<String>,
}

const BOUNDS: [&str; 5] = ["UNBOUNDED PRECEDING", "N PRECEDING", "CURRENT ROW", "N FOLLOWING", "UNBOUNDED FOLLOWING"];

/// Frames by rows are sure only where no rows are equal by ORDER BY.
fn last_key(frame: &str) -> &'static str {
    if frame.starts_with("ROWS") { ", id" } else { "" }
}

impl Maker<'_> {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let one = self.random.one(of);
        self.reached.push(one.to_owned());
        one
    }

    fn direction(&mut self) -> &'static str {
        self.random.one(&["ASC NULLS LAST", "ASC NULLS FIRST", "DESC NULLS LAST", "DESC NULLS FIRST"])
    }

    fn partition(&mut self) -> &'static str {
        self.random.one(&["", "PARTITION BY a ", "PARTITION BY c ", "PARTITION BY a, c ", "PARTITION BY b % 3 "])
    }

    /// A frame, whose bounds come in their order. RANGE by an offset takes one key.
    fn frame(&mut self, keys: usize) -> String {
        let unit = self.one(&["ROWS", "RANGE", "GROUPS"]);
        let (mut start, mut end) = (self.random.below(4), 1 + self.random.below(4));
        if start > end {
            (start, end) = (end, start);
        }
        if unit == "RANGE" && keys != 1 {
            (start, end) = ([0, 2, 2, 2][start.min(3)], if end >= 3 { 4 } else { 2 });
        }
        let (start, end) = (self.one(&[BOUNDS[start.min(3)]]), self.one(&[BOUNDS[end.max(1)]]));
        let mut bound =
            |text: &str| text.strip_prefix("N ").map_or_else(|| text.to_owned(), |side| format!("{} {side}", self.random.below(4)));
        let (start, end) = (bound(start), bound(end));
        let exclude = self.one(&["", "", "EXCLUDE NO OTHERS", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES"]);
        format!("{unit} BETWEEN {start} AND {end} {exclude}")
    }

    fn call(&mut self) -> String {
        let partition = self.partition();
        let keys = 1 + self.random.below(2);
        let (key, second) = (self.random.one(&["a", "b", "id", "a + b", "x"]), self.random.one(&["b", "c", "id"]));
        let direction = self.direction();
        let order = if keys == 1 {
            format!("ORDER BY {key} {direction}")
        } else {
            format!("ORDER BY {key} {direction}, {second} {}", self.direction())
        };
        if self.random.percent(50) {
            let frame = if self.random.percent(85) { self.frame(keys) } else { String::new() };
            let order = order + last_key(&frame);
            let function = self.one(&[
                "sum(b)",
                "count(*)",
                "count(b)",
                "min(b)",
                "max(a)",
                "sum(a + b)",
                "count(a) FILTER (WHERE b > 3)",
                "sum(b) FILTER (WHERE a < 3)",
                "max(c)",
            ]);
            return format!("{function} OVER ({partition}{order} {frame})");
        }
        if self.random.percent(40) {
            let function = self.one(&["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]);
            return function.replace("()", &format!("() OVER ({partition}{order})"));
        }
        let function = self.one(&[
            "row_number()",
            "ntile(3)",
            "lag(b)",
            "lag(b, 2)",
            "lead(b, 2, -1)",
            "lead(c)",
            "lag(b, a)",
            "first_value(b)",
            "last_value(b)",
            "nth_value(b, 2)",
        ]);
        // One order of all rows, ties of the frame or not.
        let frame = if function.contains("value") { self.frame(2) } else { String::new() };
        format!("{function} OVER ({partition}ORDER BY {key} {direction}, id {frame})")
    }

    fn query(&mut self) -> String {
        let filter = self.random.one(&["", "", " WHERE b > 2", " WHERE a = 1 OR c IS NULL", " WHERE id > 1000"]);
        match self.random.below(10) {
            0 => {
                self.reached.push("groups".into());
                let frame = self.frame(1);
                format!(
                    "SELECT a, sum(sum(b)) OVER (ORDER BY a NULLS LAST {frame}), rank() OVER (ORDER BY count(*), a NULLS LAST) FROM t{filter} GROUP BY a"
                )
            }
            1 => {
                self.reached.push("pushed".into());
                let condition = self.random.one(&["a = 2", "a < 3", "b = 4", "n = 1", "a IS NULL AND n < 3"]);
                let first = self.call();
                format!(
                    "SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b NULLS LAST, id) AS n, {first} AS f FROM t{filter}) q WHERE {condition}"
                )
            }
            2 => {
                self.reached.push("named".into());
                let (partition, direction, frame) = (self.partition(), self.direction(), self.frame(1));
                format!(
                    "SELECT id, sum(b) OVER (w {frame}), count(*) OVER w FROM t{filter} WINDOW p AS ({partition}), w AS (p ORDER BY a {direction})"
                )
            }
            3 => format!(
                "SELECT id, coalesce({}, 7) - 1 FROM t{filter}",
                self.call().replace("max(c)", "max(a)").replace("lead(c)", "lead(a)")
            ),
            _ => {
                let (first, second) = (self.call(), self.call());
                format!("SELECT id, {first}, {second} FROM t{filter}")
            }
        }
    }
}

fn ours(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    let answer = session.execute(sql, &[]).unwrap_or_else(|e| panic!("{e} ({})\n{sql}", e.sqlstate()));
    let rows = answer.rows().unwrap_or_else(|e| panic!("{e} ({})\n{sql}", e.sqlstate()));
    let text = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}\n{sql}"),
    };
    rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

fn theirs(sqlite: &rusqlite::Connection, sql: &str) -> Vec<Vec<String>> {
    use rusqlite::types::ValueRef;
    let mut statement = sqlite.prepare(sql).unwrap_or_else(|e| panic!("{e}\n{sql}"));
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap_or_else(|e| panic!("{e}\n{sql}")) {
        let text = |at: usize| match row.get_ref(at).unwrap() {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("{other:?}\n{sql}"),
        };
        all.push((0..columns).map(text).collect());
    }
    all
}

#[test]
fn same_values_as_sqlite() {
    let (rounds, seed) = (setting("PAGEFOLD_SQL_ROUNDS", 40), setting("PAGEFOLD_SQL_SEED", 1));
    let mut reached = Reached::new();
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let storage = Arc::new(MemoryStorage::new());
        let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
        let mut session = Database::new(Arc::new(engine)).session();
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c VARCHAR, x BIGINT)";
        let mut rows = Vec::new();
        for id in 1..=1 + random.below(40) {
            let mut number = |below| if random.percent(15) { "NULL".to_owned() } else { random.below(below).to_string() };
            let (a, b, x) = (number(4), number(9), number(30));
            rows.push(format!("({id}, {a}, {b}, {}, {x})", random.one(&["NULL", "'x'", "'y'", "''"])));
        }
        for sql in [table.to_owned(), format!("INSERT INTO t VALUES {}", rows.join(", "))] {
            ours(&mut session, &sql);
            sqlite.execute_batch(&sql).unwrap();
        }
        for _ in 0..60 {
            let mut maker = Maker { random: &mut random, reached: Vec::new() };
            let query = maker.query();
            let parts = maker.reached;
            let (mut own, mut other) = (ours(&mut session, &query), theirs(&sqlite, &query));
            own.sort();
            other.sort();
            assert_eq!(own, other, "round {round}: {query}");
            if own.len() > 1 {
                parts.into_iter().for_each(|part| *reached.entry(part).or_default() += 1);
            }
        }
    }
    println!("{reached:?}");
    // What was made at all was made often, and none of the parts is missing.
    assert!(reached.len() >= 39, "{} parts: {reached:?}", reached.len());
    let least = u32::try_from(rounds / 4).unwrap();
    for part in BOUNDS.iter().chain(&[
        "ROWS",
        "RANGE",
        "GROUPS",
        "EXCLUDE CURRENT ROW",
        "EXCLUDE GROUP",
        "EXCLUDE TIES",
        "groups",
        "pushed",
        "named",
    ]) {
        assert!(reached.get(*part).is_some_and(|count| *count >= least), "{part}: {reached:?}");
    }
}

//! Random queries by rows and by batches: the same rows come, or the same SQLSTATE.
//!
//! `PAGEFOLD_SQL_ROUNDS` (30) rounds of 60 queries from `PAGEFOLD_SQL_SEED` (1) on. Each round has tables of its own, of another method, some of them divided.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../sql/tests/differential/maker.rs"]
mod maker;

use common::{both, database, done, in_order};
use maker::{Maker, Random};

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_queries() {
    let (rounds, seed) = (setting("PAGEFOLD_SQL_ROUNDS", 30), setting("PAGEFOLD_SQL_SEED", 1));
    let (mut queries, mut by_batches, mut with_rows, mut divided) = (0, 0, 0, 0);
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let database = database(1 + usize::try_from(round % 3).unwrap());
        let mut session = database.session();
        done(&mut session, "SET work_mem = '1GB'");
        for table in ["t", "u", "v"] {
            let method = random.one(&["none", "row", "page", "fixed", "huffman"]);
            let parts = match random.percent(30) {
                true => {
                    divided += 1;
                    " PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10), PARTITION middle VALUES LESS THAN (25), PARTITION rest VALUES LESS THAN (MAXVALUE))"
                }
                false => "",
            };
            let columns = "(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c VARCHAR, d INTEGER)";
            done(&mut session, &format!("CREATE TABLE {table} {columns}{parts} WITH (compress = '{method}', page_size = '4K')"));
            for number in 0..random.below(3) {
                let columns = random.one(&["a", "b, a", "d DESC", "c", "a, c DESC", "c, b"]);
                done(&mut session, &format!("CREATE INDEX {table}_{number} ON {table} ({columns})"));
            }
            for id in 1..=random.below(60) + 1 {
                let mut number = || if random.percent(15) { "NULL".to_owned() } else { random.below(12).to_string() };
                let (a, b, d) = (number(), number(), number());
                let c = if random.percent(10) { "NULL" } else { random.one(&["'x'", "'xy'", "'y1'", "''", "'zzz'", "'xyz1'"]) };
                done(&mut session, &format!("INSERT INTO {table} VALUES ({id}, {a}, {b}, {c}, {d})"));
            }
        }
        for _ in 0..60 {
            let mut maker = Maker { random: &mut random, aliases: 0, changed: "", keys: 0 };
            let (query, is_ordered) = maker.whole_query();
            let (rows, batches, was_run) = both(&database, &mut session, &query);
            let (rows, batches) = if is_ordered { (rows, batches) } else { (in_order(rows), in_order(batches)) };
            assert_eq!(rows, batches, "round {round}: {query}\n{:?}", done(&mut session, &format!("EXPLAIN {query}")));
            queries += 1;
            by_batches += u64::from(was_run);
            with_rows += u64::from(rows.is_ok_and(|rows| !rows.is_empty()));
        }
    }
    println!("{queries} queries, {by_batches} by batches, {with_rows} with rows; {divided} tables divided");
    assert!(by_batches * 10 > queries * 7 && with_rows * 2 > queries && divided > 0, "the queries are too weak");
}

/// Types, values of them that are at their limits or near to each other, and what is done with them.
const COLUMNS: [(&str, &str, &[&str]); 10] = [
    ("s", "SMALLINT", &["NULL", "0", "1", "-1", "7", "32767", "-32768"]),
    ("i", "INTEGER", &["NULL", "0", "1", "-1", "12", "2147483647", "-2147483648"]),
    ("l", "BIGINT", &["NULL", "0", "1", "-1", "300", "9223372036854775807", "-9223372036854775808"]),
    ("m", "DECIMAL(15,2)", &["NULL", "0", "0.01", "-0.01", "12.5", "9999999999999.99", "-9999999999999.99"]),
    (
        "w",
        "DECIMAL(38,4)",
        &["NULL", "0", "1.5", "-2.0001", "9999999999999999999999999999999999.9999", "-9999999999999999999999999999999999.9999", "3"],
    ),
    ("t", "VARCHAR(20)", &["NULL", "''", "'a'", "'ab '", "'%'", "'a\\b'", "'äöü'"]),
    ("c", "CHAR(6)", &["NULL", "''", "'a'", "'ab'", "'zz'", "'a b'", "'äö'"]),
    ("d", "DATE", &["NULL", "'1995-03-15'", "'2000-02-29'", "'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'1969-12-31'"]),
    (
        "p",
        "TIMESTAMP",
        &[
            "NULL",
            "'1995-03-15 00:00:00'",
            "'2000-02-29 12:30:00.5'",
            "'1970-01-01'",
            "'0001-01-01'",
            "'9999-12-31 23:59:59'",
            "'1969-12-31 23:59:59.999999'",
        ],
    ),
    ("f", "DOUBLE PRECISION", &["NULL", "0", "-0.0", "'NaN'", "1.5", "'Infinity'", "-1e308"]),
];

struct Exprs<'r>(&'r mut Random);

impl Exprs<'_> {
    fn number(&mut self, depth: u32) -> String {
        let column = self.0.one(&["s", "i", "l", "m", "w", "i", "m"]);
        let literal = self.0.one(&["1", "0", "2", "-3", "0.5", "1.25", "100", "32767", "9223372036854775807", "0.0001", "NULL"]);
        match self.0.below(if depth == 0 { 3 } else { 14 }) {
            0 | 1 => column.to_owned(),
            2 => literal.to_owned(),
            3..=7 => {
                let sign = self.0.one(&["+", "-", "*", "*", "/", "%", "+", "-"]);
                format!("({} {sign} {})", self.number(depth - 1), self.number(depth - 1))
            }
            8 => format!("(- {})", self.number(depth - 1)),
            9 => format!("CASE WHEN {} THEN {} ELSE {} END", self.condition(depth - 1), self.number(depth - 1), self.number(depth - 1)),
            10 => format!("coalesce({}, {})", self.number(depth - 1), self.number(depth - 1)),
            11 => format!(
                "CAST({} AS {})",
                self.number(depth - 1),
                self.0.one(&["SMALLINT", "INTEGER", "BIGINT", "DECIMAL(10,3)", "DECIMAL(30,6)"])
            ),
            12 => format!("extract({} FROM {})", self.0.one(&["year", "month", "day", "quarter", "dow"]), self.0.one(&["d", "p"])),
            _ => format!("length({})", self.text(depth - 1)),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        match self.0.below(if depth == 0 { 3 } else { 7 }) {
            0 => "t".into(),
            1 => "c".into(),
            2 => self.0.one(&["'a'", "'ab'", "''", "'a b'"]).into(),
            3 => format!("({} || {})", self.text(depth - 1), self.text(depth - 1)),
            4 => format!("substring({} from {} for {})", self.text(depth - 1), self.0.below(3), self.0.one(&["0", "1", "2", "i"])),
            5 => format!("upper({})", self.text(depth - 1)),
            _ => format!("CASE WHEN {} THEN {} END", self.condition(depth - 1), self.text(depth - 1)),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        let sign = self.0.one(&["=", "<>", "<", "<=", ">", ">="]);
        match self.0.below(if depth == 0 { 7 } else { 14 }) {
            0 | 1 => format!("{} {sign} {}", self.number(depth.min(1)), self.number(depth.min(1))),
            2 => format!("{} {sign} {}", self.text(depth.min(1)), self.text(depth.min(1))),
            3 => format!("d {sign} {}", self.0.one(&["DATE '1995-03-15'", "p", "d", "DATE '2000-02-29' + 1", "d + 1"])),
            4 => format!("f {sign} {}", self.0.one(&["0", "1.5", "f", "i"])),
            5 => format!("{} IS {}NULL", self.number(depth), self.0.one(&["", "NOT "])),
            6 => format!(
                "{} {}IN ({}, {}, 1)",
                self.number(depth.min(1)),
                self.0.one(&["", "NOT "]),
                self.0.below(9),
                self.0.one(&["NULL", "12", "0.5", "i"])
            ),
            7 | 8 => format!("({} AND {})", self.condition(depth - 1), self.condition(depth - 1)),
            9 | 10 => format!("({} OR {})", self.condition(depth - 1), self.condition(depth - 1)),
            11 => format!("NOT ({})", self.condition(depth - 1)),
            12 => {
                let pattern = self.0.one(&["a%", "%b%", "_", "%", "a\\%", "\\", "%\\\\%", "a_b"]);
                format!("{} {}LIKE '{pattern}'", self.text(depth - 1), self.0.one(&["", "NOT "]))
            }
            _ => format!("({}) IS {}DISTINCT FROM {}", self.number(depth - 1), self.0.one(&["", "NOT "]), self.number(depth - 1)),
        }
    }
}

fn table(session: &mut pagefold_sql::Session, random: &mut Random, method: &str, rows: u64) {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, data_type, _)| format!("{name} {data_type}")).collect();
    done(session, &format!("CREATE TABLE x (id INTEGER PRIMARY KEY, {}) WITH (compress = '{method}')", columns.join(", ")));
    for id in 0..rows {
        let values: Vec<&str> = COLUMNS.iter().map(|(_, _, values)| random.one(values)).collect();
        done(session, &format!("INSERT INTO x VALUES ({id}, {})", values.join(", ")));
    }
}

/// Each expression of each row by itself: so of several errors none hides another.
#[test]
fn every_expression_at_its_limits() {
    let (rounds, seed) = (setting("PAGEFOLD_SQL_ROUNDS", 30), setting("PAGEFOLD_SQL_SEED", 1));
    let (mut asked, mut by_batches, mut failed, mut refused) = (0, 0, std::collections::BTreeMap::new(), 0);
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let database = database(1);
        let mut session = database.session();
        let method = random.one(&["none", "row", "page", "fixed", "huffman"]);
        table(&mut session, &mut random, method, 12);
        for _ in 0..20 {
            let mut exprs = Exprs(&mut random);
            let (kind, depth) = (exprs.0.below(3), 1 + exprs.0.below(3) as u32);
            let expr = match kind {
                0 => exprs.number(depth),
                1 => exprs.text(depth),
                _ => exprs.condition(depth),
            };
            // Types that do not fit are refused before anything is run.
            if common::run(&mut session, &format!("EXPLAIN SELECT {expr} FROM x")).is_err() {
                refused += 1;
                continue;
            }
            for id in 0..12 {
                let query = format!("SELECT id, f, {expr} FROM x WHERE id + 0 = {id}");
                let (rows, batches, was_run) = both(&database, &mut session, &query);
                assert_eq!(
                    format!("{rows:?}"),
                    format!("{batches:?}"),
                    "round {round}: {query}\n{:?}",
                    done(&mut session, &format!("SELECT * FROM x WHERE id = {id}"))
                );
                asked += 1;
                by_batches += u64::from(was_run);
                if let Err(state) = rows {
                    *failed.entry(state).or_insert(0) += 1;
                }
            }
            // All rows at once: the same, or one of the errors.
            let query = format!("SELECT id, f, {expr} FROM x");
            let (rows, batches, _) = both(&database, &mut session, &query);
            assert_eq!(rows.is_ok(), batches.is_ok(), "round {round}: {query}");
            if rows.is_ok() {
                assert_eq!(format!("{:?}", in_order(rows)), format!("{:?}", in_order(batches)), "round {round}: {query}");
            }
            if kind == 2 {
                let query = format!("SELECT id FROM x WHERE {expr}");
                let (rows, batches, _) = both(&database, &mut session, &query);
                assert_eq!(rows.is_ok(), batches.is_ok(), "round {round}: {query}");
                if rows.is_ok() {
                    assert_eq!(in_order(rows), in_order(batches), "round {round}: {query}");
                }
            }
        }
    }
    println!("{asked} asked, {by_batches} by batches, {refused} refused, failed: {failed:?}");
    assert!(by_batches * 10 > asked * 9, "the expressions are too weak");
    assert!(failed.contains_key("22003") && failed.contains_key("22012"), "no overflow, or no division by zero: {failed:?}");
}

/// Aggregates of values at their limits, with groups and without, of all threads.
#[test]
fn every_aggregate_at_its_limits() {
    let rounds = setting("PAGEFOLD_SQL_ROUNDS", 30);
    let (mut asked, mut by_batches, mut failed) = (0, 0, 0);
    for round in 1..=rounds {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let database = database(1 + usize::try_from(round % 3).unwrap());
        let mut session = database.session();
        table(&mut session, &mut random, "page", 40);
        for column in ["s", "i", "l", "m", "w", "t", "c", "d", "p"] {
            for call in
                ["count(X)", "min(X)", "max(X)", "sum(X)", "avg(X)", "count(DISTINCT X)", "sum(DISTINCT X)", "sum(X) FILTER (WHERE id > 9)"]
            {
                let call = call.replace('X', column);
                let group = random.one(&["", "", " GROUP BY i", " GROUP BY c", " GROUP BY id", " GROUP BY s, t"]);
                let filter = random.one(&["", " WHERE id % 3 = 1", " WHERE s IS NULL", " WHERE id > 1000"]);
                let query = format!("SELECT {call}, count(*) FROM x{filter}{group}");
                if common::run(&mut session, &format!("EXPLAIN {query}")).is_err() {
                    continue;
                }
                let (rows, batches, was_run) = both(&database, &mut session, &query);
                assert_eq!(in_order(rows.clone()), in_order(batches), "round {round}: {query}");
                asked += 1;
                by_batches += u64::from(was_run);
                failed += u64::from(rows.is_err());
            }
        }
    }
    println!("{asked} asked, {by_batches} by batches, {failed} failed");
    assert!(by_batches * 10 > asked * 6 && failed > 0, "the aggregates are too weak");
}

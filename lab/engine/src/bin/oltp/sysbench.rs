//! The statements of sysbench's oltp_read_only and oltp_read_write, with its numbers of each in a transaction; rows are asked
//! for with equal chances.

use crate::workload::{Workload, equal, figure, insert_rows};
use pagefold_lab_engine::random::Random;
use pagefold_lab_engine::sessions::{Access, Connection, Done, Query, change, numbered, one, texts};
use pagefold_types::Value;

/// Point selects of a transaction.
const POINTS: usize = 10;
/// Rows of a range.
const RANGE: i64 = 100;

static TEXTS: [&str; 9] = [
    "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
    "SELECT c FROM sbtest1 WHERE id = ?",
    "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?",
    "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
    "UPDATE sbtest1 SET k = k + 1 WHERE id = ?",
    "UPDATE sbtest1 SET c = ? WHERE id = ?",
    "DELETE FROM sbtest1 WHERE id = ?",
];

fn query(number: usize) -> Query {
    Query { number, text: TEXTS[number] }
}

/// A table of so many rows.
#[derive(Debug)]
pub(crate) struct Sysbench {
    pub(crate) rows: i64,
    /// Rows are changed, too.
    pub(crate) writes: bool,
}

#[derive(Debug)]
pub(crate) struct Input {
    points: [i64; POINTS],
    ranges: [i64; 4],
    counted: i64,
    changed: i64,
    replaced: i64,
    text: String,
    row: Vec<Value>,
}

/// Groups of eleven digits.
fn digits(random: &mut Random, groups: usize) -> String {
    let group = |random: &mut Random| format!("{:011}", random.between(0, 99_999_999_999));
    (0..groups).map(|_| group(random)).collect::<Vec<_>>().join("-")
}

fn row(id: i64, rows: i64, random: &mut Random) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(random.between(1, rows)), texts(digits(random, 10)), texts(digits(random, 5))]
}

impl Workload for Sysbench {
    type Input = Input;
    type Terminal = ();

    fn name(&self) -> String {
        format!("sysbench, {}", if self.writes { "read and write" } else { "read" })
    }

    fn definitions(&self, with: &str) -> Vec<String> {
        let columns = "id INTEGER NOT NULL PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL";
        vec![format!("CREATE TABLE sbtest1 ({columns}){with}"), "CREATE INDEX k_1 ON sbtest1 (k)".into()]
    }

    fn queries(&self) -> Vec<Query> {
        numbered(&TEXTS).collect()
    }

    fn load(&self, connection: &mut dyn Connection) -> Done<()> {
        let mut random = Random::of(0, 0);
        insert_rows(connection, query(0), 1, self.rows, |id| row(id, self.rows, &mut random))
    }

    fn terminal(&self, _: usize) {}

    fn input(&self, (): &mut (), random: &mut Random) -> Input {
        let id = |random: &mut Random| random.between(1, self.rows);
        let replaced = id(random);
        Input {
            points: std::array::from_fn(|_| id(random)),
            ranges: std::array::from_fn(|_| random.between(1, (self.rows - RANGE + 1).max(1))),
            counted: id(random),
            changed: id(random),
            replaced,
            text: if self.writes { digits(random, 10) } else { String::new() },
            row: if self.writes { row(replaced, self.rows, random) } else { Vec::new() },
        }
    }

    fn run(&self, connection: &mut dyn Connection, input: &Input) -> Done<i64> {
        connection.begin(if self.writes { Access::Write } else { Access::Read })?;
        for id in input.points {
            one(connection, query(1), &[Value::Int(id)])?;
        }
        for (range, from) in input.ranges.into_iter().enumerate() {
            connection.rows(query(2 + range), &[Value::Int(from), Value::Int(from + RANGE - 1)])?;
        }
        if self.writes {
            change(connection, query(6), &[Value::Int(input.counted)], 1)?;
            change(connection, query(7), &[texts(&input.text), Value::Int(input.changed)], 1)?;
            change(connection, query(8), &[Value::Int(input.replaced)], 1)?;
            change(connection, query(0), &input.row, 1)?;
        }
        connection.commit()?;
        Ok(1)
    }

    fn check(&self, connection: &mut dyn Connection, _: i64) -> Done<()> {
        equal("rows", figure(connection, "SELECT count(*) FROM sbtest1")?, self.rows)?;
        equal("the sum of their numbers", figure(connection, "SELECT sum(id) FROM sbtest1")?, self.rows * (self.rows + 1) / 2)?;
        equal("rows by the other index", figure(connection, "SELECT count(*) FROM sbtest1 WHERE k >= 0")?, self.rows)
    }
}

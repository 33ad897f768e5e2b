//! SQL statements that programs run all day, prepared, in one process beside SQLite's: interleaved, after checking that both give the same.
//!
//! A table of accounts (number, branch, balance, name), a row of some 45 bytes; under `none` with a plain key and under `page` with a prefix key. Both sides write their log, neither
//! waits for the device: `synchronous_commit = off` here, WAL with `synchronous = OFF` there. Rates are those that the caller sees: values are taken out of each row.

use clap::Parser;
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::measure::{Clock, Contender, interleave};
use pagefold_sql::{Database, Session, Statement};
use pagefold_types::Value;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

#[derive(Parser)]
struct Arguments {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: i64,
    /// Rounds; the sides take turns in each.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Statements of a kind in a round.
    #[arg(long, default_value_t = 100_000)]
    statements: u64,
    /// Only what has this in its name, such as "count".
    #[arg(long, default_value = "")]
    only: String,
    /// Only this method.
    #[arg(long)]
    method: Option<String>,
    /// Time that passes, not processor time of the thread.
    #[arg(long)]
    wall: bool,
}

/// xorshift64*: both sides draw the same numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: i64) -> i64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 1;
        (number % end.unsigned_abs()).cast_signed()
    }
}

fn name(id: i64) -> String {
    format!("customer {:08}", id.wrapping_mul(48_271) % 99_999_989)
}

struct Ours {
    session: Session,
    point: Statement,
    range: Statement,
    update: Statement,
    insert: Statement,
    count: Statement,
    sum: Statement,
}

/// A name, the statement prepared here, and its text.
type Scan = (&'static str, fn(&Ours) -> &Statement, &'static str);

const CREATE: &str = "CREATE TABLE account (id INTEGER PRIMARY KEY, branch INTEGER, balance BIGINT, name TEXT)";
const POINT: &str = "SELECT name, balance FROM account WHERE id = ?";
const RANGE: &str = "SELECT id, balance FROM account WHERE id BETWEEN ? AND ?";
const UPDATE: &str = "UPDATE account SET balance = balance + ? WHERE id = ?";
const INSERT: &str = "INSERT INTO account VALUES (?, ?, ?, ?)";
const COUNT: &str = "SELECT count(*) FROM account";
const SUM: &str = "SELECT sum(balance) FROM account";

impl Ours {
    fn new(directory: &Path, rows: i64, method: &str) -> Ours {
        let settings = Settings::default();
        let engine = Engine::open(Arc::new(OsStorage), Arc::new(OsClock), directory, OpenMode::Create, settings).expect("a new database");
        let mut session = Database::new(Arc::new(engine)).session();
        let mut run = |sql: &str| session.execute(sql, &[]).and_then(pagefold_sql::Answer::rows).expect(sql);
        run("SET synchronous_commit = off");
        let key_format = if method == "none" { "plain" } else { "prefix" };
        run(&format!("{CREATE} WITH (compress = '{method}', key_format = '{key_format}')"));
        let mut prepare = |sql: &str| session.prepare(sql).expect(sql);
        let (point, range, update) = (prepare(POINT), prepare(RANGE), prepare(UPDATE));
        let (insert, count, sum) = (prepare(INSERT), prepare(COUNT), prepare(SUM));
        let mut ours = Ours { session, point, range, update, insert, count, sum };
        ours.insert_rows(0, rows);
        ours
    }

    fn run(&mut self, which: fn(&Ours) -> &Statement, params: &[Value], mut each: impl FnMut(&[Value])) {
        let statement = which(self).clone();
        let mut answer = self.session.run(&statement, params).expect("a statement");
        let mut row = Vec::new();
        while answer.fill_row(&mut row).expect("a row") {
            each(&row);
        }
    }

    fn say(&mut self, sql: &str) {
        self.session.execute(sql, &[]).and_then(pagefold_sql::Answer::rows).expect(sql);
    }

    fn insert_rows(&mut self, from: i64, to: i64) {
        for start in (from..to).step_by(100) {
            self.say("BEGIN");
            for id in start..(start + 100).min(to) {
                let values = [Value::Int(id), Value::Int(id % 100), Value::Int(id * 7 % 100_000), Value::Text(name(id))];
                self.run(|ours| &ours.insert, &values, |_| ());
            }
            self.say("COMMIT");
        }
    }
}

struct Theirs {
    connection: rusqlite::Connection,
}

impl Theirs {
    fn new(file: &Path, rows: i64) -> Theirs {
        let connection = rusqlite::Connection::open(file).expect("a new file");
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144").expect("settings");
        connection.execute_batch(CREATE).expect("a table");
        let theirs = Theirs { connection };
        theirs.insert_rows(0, rows);
        theirs
    }

    fn insert_rows(&self, from: i64, to: i64) {
        for start in (from..to).step_by(100) {
            self.connection.execute_batch("BEGIN").expect("BEGIN");
            for id in start..(start + 100).min(to) {
                let mut insert = self.connection.prepare_cached(INSERT).expect("a statement");
                insert.execute((id, id % 100, id * 7 % 100_000, name(id))).expect("a row");
            }
            self.connection.execute_batch("COMMIT").expect("COMMIT");
        }
    }
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Decimal(number) => i64::try_from(*number).expect("a small number"),
        other => panic!("{other:?}"),
    }
}

fn main() {
    let arguments = Arguments::parse();
    let directory = tempfile::tempdir().expect("a directory");
    let rows = arguments.rows;
    let clock = if arguments.wall { Clock::Wall } else { Clock::Thread };
    for method in ["none", "page"] {
        if arguments.method.as_ref().is_some_and(|only| only != method) {
            continue;
        }
        let ours = RefCell::new(Ours::new(&directory.path().join(method), rows, method));
        let theirs = Theirs::new(&directory.path().join(format!("{method}.sqlite")), rows);
        println!("{method}: {rows} rows");
        let show = |what: &str, count: u64, own: &mut dyn FnMut() -> u64, other: &mut dyn FnMut() -> u64| {
            if !what.contains(&arguments.only) {
                return;
            }
            let timings = interleave(clock, arguments.rounds, vec![Contender::new("pagefold", own), Contender::new("SQLite", other)]);
            let ratio = timings[0].speed_over(&timings[1]);
            let rate = |at: usize| count as f64 / timings[at].spread().median / 1000.0;
            println!(
                "  {what:<24} {:>9.1} k/s  SQLite {:>9.1} k/s  {:.2} ({:.2} to {:.2})",
                rate(0),
                rate(1),
                ratio.median,
                ratio.low,
                ratio.high
            );
        };
        let statements = arguments.statements;
        show(
            "SELECT by key",
            statements,
            &mut || {
                let (mut draw, mut sum) = (Draw(7), 0_u64);
                let mut ours = ours.borrow_mut();
                for _ in 0..statements {
                    ours.run(
                        |ours| &ours.point,
                        &[Value::Int(draw.below(rows))],
                        |row| {
                            let Value::Text(name) = &row[0] else { panic!("{row:?}") };
                            sum = sum.wrapping_add(int(&row[1]).unsigned_abs() + name.len() as u64);
                        },
                    );
                }
                sum
            },
            &mut || {
                let (mut draw, mut sum) = (Draw(7), 0_u64);
                let mut point = theirs.connection.prepare_cached(POINT).expect("a statement");
                for _ in 0..statements {
                    let mut found = point.query([draw.below(rows)]).expect("rows");
                    while let Some(row) = found.next().expect("a row") {
                        let name: String = row.get(0).expect("a name");
                        sum = sum.wrapping_add(row.get::<_, i64>(1).expect("a balance").unsigned_abs() + name.len() as u64);
                    }
                }
                sum
            },
        );
        let ranges = statements / 20;
        show(
            "SELECT of 100 rows",
            ranges,
            &mut || {
                let (mut draw, mut sum) = (Draw(9), 0_u64);
                let mut ours = ours.borrow_mut();
                for _ in 0..ranges {
                    let from = draw.below(rows - 100);
                    ours.run(
                        |ours| &ours.range,
                        &[Value::Int(from), Value::Int(from + 99)],
                        |row| {
                            sum = sum.wrapping_add((int(&row[0]) + int(&row[1])).unsigned_abs());
                        },
                    );
                }
                sum
            },
            &mut || {
                let (mut draw, mut sum) = (Draw(9), 0_u64);
                let mut range = theirs.connection.prepare_cached(RANGE).expect("a statement");
                for _ in 0..ranges {
                    let from = draw.below(rows - 100);
                    let mut found = range.query([from, from + 99]).expect("rows");
                    while let Some(row) = found.next().expect("a row") {
                        sum = sum.wrapping_add((row.get::<_, i64>(0).expect("id") + row.get::<_, i64>(1).expect("balance")).unsigned_abs());
                    }
                }
                sum
            },
        );
        show(
            "UPDATE by key, 100 each",
            statements,
            &mut || {
                let mut draw = Draw(11);
                let mut ours = ours.borrow_mut();
                for _ in 0..statements / 100 {
                    ours.say("BEGIN");
                    for _ in 0..100 {
                        let id = draw.below(rows);
                        ours.run(|ours| &ours.update, &[Value::Int(1), Value::Int(id)], |_| ());
                    }
                    ours.say("COMMIT");
                }
                0
            },
            &mut || {
                let mut draw = Draw(11);
                for _ in 0..statements / 100 {
                    theirs.connection.execute_batch("BEGIN").expect("BEGIN");
                    for _ in 0..100 {
                        let mut update = theirs.connection.prepare_cached(UPDATE).expect("a statement");
                        assert_eq!(update.execute((1, draw.below(rows))).expect("a change"), 1);
                    }
                    theirs.connection.execute_batch("COMMIT").expect("COMMIT");
                }
                0
            },
        );
        let scans: [Scan; 2] = [("count(*)", |ours| &ours.count, COUNT), ("sum(balance)", |ours| &ours.sum, SUM)];
        for (what, which, sql) in scans {
            show(
                what,
                1,
                &mut || {
                    let mut sum = 0;
                    ours.borrow_mut().run(which, &[], |row| sum = int(&row[0]).unsigned_abs());
                    sum
                },
                &mut || theirs.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a row").unsigned_abs(),
            );
        }
        let (own_next, other_next) = (std::cell::Cell::new(rows), std::cell::Cell::new(rows));
        show(
            "INSERT, 100 each",
            statements,
            &mut || {
                let from = own_next.get();
                let to = from + i64::try_from(statements).expect("few");
                ours.borrow_mut().insert_rows(from, to);
                own_next.set(to);
                0
            },
            &mut || {
                let from = other_next.get();
                let to = from + i64::try_from(statements).expect("few");
                theirs.insert_rows(from, to);
                other_next.set(to);
                0
            },
        );
    }
}

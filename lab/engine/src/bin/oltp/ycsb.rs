//! The core workloads of the Yahoo! Cloud Serving Benchmark (Cooper, Silberstein, Tam, Ramakrishnan, Sears 2010): records of
//! ten fields of 100 bytes by a text key; which ones are asked for goes by Zipf's law.
//!
//! A record of the load is asked for by its number, scrambled into a key. What a terminal inserts has numbers that no other
//! terminal uses; "latest" of D are those of its own, so that each read finds its record.

use crate::workload::{Workload, equal, figure, insert_rows, letters};
use crate::zipf::{Zipf, scramble};
use pagefold_lab_engine::random::Random;
use pagefold_lab_engine::sessions::{Access, Connection, Done, Failure, Query, change, numbered, one, texts};
use pagefold_types::Value;
use std::sync::atomic::{AtomicI64, Ordering};

const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
/// The longest scan of E.
const SCAN_MAX: i64 = 100;

static TEXTS: [&str; 6] = [
    "INSERT INTO usertable VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "SELECT * FROM usertable WHERE ycsb_key = ?",
    "SELECT * FROM usertable WHERE ycsb_key = ? FOR UPDATE",
    "UPDATE usertable SET field0 = ? WHERE ycsb_key = ?",
    "UPDATE usertable SET field7 = ? WHERE ycsb_key = ?",
    "SELECT * FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?",
];
const INSERT: usize = 0;
const READ: usize = 1;
const READ_TO_CHANGE: usize = 2;
const UPDATE: [usize; 2] = [3, 4];
const SCAN: usize = 5;

fn query(number: usize) -> Query {
    Query { number, text: TEXTS[number] }
}

/// Which of the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum YcsbKind {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of the latest records, 5 % inserts.
    D,
    /// 95 % scans of up to 100 records, 5 % inserts.
    E,
    /// Half reads, half read and changed.
    F,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Ycsb {
    kind: YcsbKind,
    rows: i64,
    terminals: i64,
    zipf: Zipf,
    /// Runs so far: each has numbers of its own. The sides take turns, so each gets every second one.
    runs: AtomicI64,
}

impl Ycsb {
    pub(crate) fn new(kind: YcsbKind, rows: i64, terminals: usize) -> Ycsb {
        let terminals = i64::try_from(terminals).expect("few terminals");
        Ycsb { kind, rows, terminals, zipf: Zipf::new(rows), runs: AtomicI64::new(0) }
    }
}

fn key(number: i64) -> Value {
    texts(format!("user{:019}", scramble(number)))
}

fn record(number: i64, random: &mut Random) -> Vec<Value> {
    let fields = (0..FIELDS).map(|_| texts(letters(random, FIELD_BYTES)));
    std::iter::once(key(number)).chain(fields).collect()
}

/// What a terminal has inserted: its next number, and how many.
#[derive(Debug)]
pub(crate) struct Inserting {
    next: i64,
    count: i64,
}

#[derive(Debug)]
pub(crate) enum Input {
    Read(Value),
    Update(Query, Value, Value),
    Insert(Vec<Value>),
    Scan(Value, i64),
    ReadAndUpdate(Query, Value, Value),
}

impl Workload for Ycsb {
    type Input = Input;
    type Terminal = Inserting;

    fn name(&self) -> String {
        format!("ycsb {:?}", self.kind)
    }

    fn definitions(&self, with: &str) -> Vec<String> {
        let fields: Vec<String> = (0..FIELDS).map(|field| format!("field{field} VARCHAR({FIELD_BYTES})")).collect();
        vec![format!("CREATE TABLE usertable (ycsb_key VARCHAR(24) PRIMARY KEY, {}){with}", fields.join(", "))]
    }

    fn queries(&self) -> Vec<Query> {
        numbered(&TEXTS).collect()
    }

    fn load(&self, connection: &mut dyn Connection) -> Done<()> {
        let mut random = Random::of(0, 0);
        insert_rows(connection, query(INSERT), 0, self.rows, |number| record(number, &mut random))
    }

    fn terminal(&self, number: usize) -> Inserting {
        let number = i64::try_from(number).expect("few terminals");
        let run = self.runs.fetch_add(1, Ordering::Relaxed) / self.terminals;
        let kind = i64::from(self.kind == YcsbKind::E);
        // Apart from those of other workloads, runs and terminals.
        Inserting { next: ((((kind << 12) + run + 1) << 6) + number) << 32, count: 0 }
    }

    fn input(&self, terminal: &mut Inserting, random: &mut Random) -> Input {
        let share = random.below(100);
        let old = |random: &mut Random| key(self.zipf.scrambled(random));
        let update = |random: &mut Random| (query(UPDATE[random.below(2)]), texts(letters(random, FIELD_BYTES)));
        let is_change = share >= if matches!(self.kind, YcsbKind::A | YcsbKind::F) { 50 } else { 95 };
        match self.kind {
            YcsbKind::A | YcsbKind::B if is_change => {
                let (query, text) = update(random);
                Input::Update(query, text, old(random))
            }
            YcsbKind::F if is_change => {
                let (query, text) = update(random);
                Input::ReadAndUpdate(query, text, old(random))
            }
            YcsbKind::D | YcsbKind::E if is_change => {
                let number = terminal.next;
                (terminal.next, terminal.count) = (number + 1, terminal.count + 1);
                Input::Insert(record(number, random))
            }
            YcsbKind::D => {
                let back = self.zipf.draw(random);
                let latest = if back < terminal.count { terminal.next - 1 - back } else { self.rows - 1 - (back - terminal.count) };
                Input::Read(key(latest.max(0)))
            }
            YcsbKind::E => Input::Scan(old(random), random.between(1, SCAN_MAX)),
            YcsbKind::A | YcsbKind::B | YcsbKind::C | YcsbKind::F => Input::Read(old(random)),
        }
    }

    fn run(&self, connection: &mut dyn Connection, input: &Input) -> Done<i64> {
        match input {
            Input::Read(key) => {
                let row = one(connection, query(READ), std::slice::from_ref(key))?;
                equal("fields of a record", row.len() as i64, FIELDS as i64 + 1)?;
            }
            Input::Scan(key, count) => {
                let rows = connection.rows(query(SCAN), &[key.clone(), Value::Int(*count)])?;
                if rows.is_empty() || rows.len() as i64 > *count || rows[0][0] != *key {
                    return Err(Failure::fatal(format!("a scan of {count} records from {key:?} gave {}", rows.len())));
                }
            }
            Input::Update(query, text, key) => {
                connection.begin(Access::Write)?;
                change(connection, *query, &[text.clone(), key.clone()], 1)?;
                connection.commit()?;
            }
            Input::ReadAndUpdate(update, text, key) => {
                connection.begin(Access::Write)?;
                one(connection, query(READ_TO_CHANGE), std::slice::from_ref(key))?;
                change(connection, *update, &[text.clone(), key.clone()], 1)?;
                connection.commit()?;
            }
            Input::Insert(record) => {
                connection.begin(Access::Write)?;
                change(connection, query(INSERT), record, 1)?;
                connection.commit()?;
                return Ok(1);
            }
        }
        Ok(0)
    }

    fn check(&self, connection: &mut dyn Connection, told: i64) -> Done<()> {
        // What D has inserted before E is there, too.
        let inserted = figure(connection, "SELECT count(*) FROM usertable")? - self.rows;
        if inserted >= told && (self.kind == YcsbKind::E || inserted == told) {
            return Ok(());
        }
        Err(Failure::fatal(format!("{inserted} records were inserted, {told} were told")))
    }
}

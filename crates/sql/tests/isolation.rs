//! Isolation through SQL: what transactions that overlap see, wait for, and are refused, at each level.
//!
//! The scripts in `isolation/` are the anomalies of Adya's thesis (1999) as Kleppmann's Hermitage has them for SQL databases, and others; what is expected is what PostgreSQL does. Each script is run
//! with the table under every method, and divided by ranges, and with an index that is not unique.
//!
//! A line is `session: statement`, and what comes of it behind `=>`: rows (values with commas, rows with blanks, `none`), a tag, a SQLSTATE, or `waits`. A statement that waits is told of
//! with a line of its own, `session => outcome`, once it goes on.
#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at whether a statement waits.
const LOOK: Duration = Duration::from_millis(1);

/// How the table `test (id, value)` of the scripts is stored.
const SHAPES: [&str; 7] = [
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) WITH (compress = 'none', key_format = 'plain')",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) WITH (compress = 'row', key_format = 'fold', key_page_size = '8K')",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) WITH (compress = 'page')",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) WITH (compress = 'fixed', page_size = '2K')",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) WITH (compress = 'huffman')",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) PARTITION BY RANGE (id) (
        PARTITION a VALUES LESS THAN (2), PARTITION b VALUES LESS THAN (MAXVALUE) WITH (compress = 'none'))",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER); CREATE INDEX test_value ON test (value)",
];

/// A session in a thread of its own.
struct Actor {
    statements: Sender<String>,
    outcomes: Receiver<String>,
    waits: bool,
}

fn outcome(session: &mut Session, statement: &str) -> String {
    let done = session.execute(statement, &[]).and_then(|mut answer| {
        let has_rows = answer.columns().len() > 0;
        let mut rows = Vec::new();
        while let Some(row) = answer.next_row()? {
            rows.push(row.iter().map(shown).collect::<Vec<_>>().join(","));
        }
        match (has_rows, rows.is_empty()) {
            (true, true) => Ok("none".to_owned()),
            (true, false) => Ok(rows.join(" ")),
            _ => answer.tag(),
        }
    });
    done.unwrap_or_else(|error| error.sqlstate().to_owned())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Int(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

impl Actor {
    fn new(database: &Database) -> Actor {
        let (statements, to_run) = channel::<String>();
        let (tell, outcomes) = channel();
        let mut session = database.session();
        std::thread::spawn(move || {
            for statement in to_run {
                if tell.send(outcome(&mut session, &statement)).is_err() {
                    break;
                }
            }
        });
        Actor { statements, outcomes, waits: false }
    }
}

struct World {
    database: Database,
    actors: BTreeMap<String, Actor>,
}

impl World {
    fn new(shape: &str) -> World {
        let engine =
            Engine::open(Arc::new(MemoryStorage::new()), Arc::new(OsClock), Path::new("db"), OpenMode::Create, Settings::default());
        let database = Database::new(Arc::new(engine.unwrap()));
        let text = format!("{shape}; INSERT INTO test VALUES (1, 10), (2, 20)");
        database.session().execute_all(&text, |answer| answer.tag().map(drop)).unwrap();
        World { database, actors: BTreeMap::new() }
    }

    /// Runs a statement: what comes of it, or that it waits.
    fn run(&mut self, name: &str, statement: &str) -> String {
        let waiting = self.actors.values().filter(|actor| actor.waits).count();
        let actor = self.actors.entry(name.to_owned()).or_insert_with(|| Actor::new(&self.database));
        if actor.waits {
            return "still waits".into();
        }
        actor.statements.send(statement.to_owned()).unwrap();
        let began = Instant::now();
        loop {
            match actor.outcomes.recv_timeout(LOOK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("{name} has ended"),
            }
            if self.database.engine().waiting_transactions() > waiting {
                actor.waits = true;
                return "waits".into();
            }
            assert!(began.elapsed() < PATIENCE, "{name}: {statement}: no end, and waits for nobody");
        }
    }

    /// What comes of a statement that has waited.
    fn goes_on(&mut self, name: &str) -> String {
        let actor = self.actors.get_mut(name).unwrap();
        if !std::mem::take(&mut actor.waits) {
            return "has not waited".into();
        }
        actor.outcomes.recv_timeout(PATIENCE).unwrap_or_else(|_| "waits".into())
    }
}

/// Runs a script; its lines as they came out.
fn played(script: &[&str], shape: &str) -> Vec<String> {
    let mut world = World::new(shape);
    let mut lines = Vec::new();
    for line in script {
        let (what, _) = line.split_once("=>").unwrap_or_else(|| panic!("no outcome: {line}"));
        let what = what.trim();
        let outcome = match what.split_once(':') {
            Some((name, statement)) => world.run(name.trim(), statement.trim()),
            None => world.goes_on(what),
        };
        lines.push(format!("{what} => {outcome}"));
    }
    lines
}

fn tidied(line: &str) -> String {
    let (what, outcome) = line.split_once("=>").unwrap();
    format!("{} => {}", what.trim(), outcome.trim())
}

/// Scripts of a file: each begins with a line `## name`.
fn scripts(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut scripts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("## ") {
            Some(name) => scripts.push((name, Vec::new())),
            None if line.starts_with('#') => {}
            None => scripts.last_mut().unwrap().1.push(line),
        }
    }
    scripts
}

fn check(text: &str, least: usize) {
    let scripts = scripts(text);
    assert!(scripts.len() >= least, "{} scripts", scripts.len());
    let mut wrong = Vec::new();
    for (name, script) in &scripts {
        for shape in SHAPES {
            let expected: Vec<String> = script.iter().map(|line| tidied(line)).collect();
            let came = played(script, shape);
            if came != expected {
                let pairs = expected.iter().zip(&came).map(|(e, c)| if e == c { format!("  {e}\n") } else { format!("- {e}\n+ {c}\n") });
                wrong.push(format!("{name}, {shape}\n{}", pairs.collect::<String>()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn read_committed() {
    check(include_str!("isolation/read_committed.txt"), 12);
}

#[test]
fn repeatable_read() {
    check(include_str!("isolation/repeatable_read.txt"), 10);
}

#[test]
fn serializable() {
    check(include_str!("isolation/serializable.txt"), 8);
}

#[test]
fn locks_and_savepoints() {
    check(include_str!("isolation/locks.txt"), 6);
}

/// A script whose outcome is another one is told.
#[test]
fn a_wrong_outcome_is_seen() {
    let came = played(&["a: SELECT value FROM test WHERE id = 1 => 11"], SHAPES[0]);
    assert_eq!(came, ["a: SELECT value FROM test WHERE id = 1 => 10"]);
}

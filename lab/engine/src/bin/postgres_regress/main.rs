//! PostgreSQL's own regression tests, run by sessions: which statements give what PostgreSQL says, by file, and why the others do not.
//!
//! The tests are not part of the project; `scripts/postgres_regress.sh` fetches them. Each file has a database of its own, in memory, in which the statements of
//! `test_setup.sql` were run that can be.
//!
//! * `script`: a script as psql reads it
//! * `expected`: what psql printed of each step
//! * `show`: results as psql prints them
//! * `runner`: steps in a session
//! * `compare`: is it the same answer?
//! * `class`: why not

mod class;
mod compare;
mod expected;
mod runner;
mod script;
mod show;

use clap::Parser;
use class::{Lost, class};
use compare::{Verdict, compare};
use expected::{Block, expected};
use pagefold_lab_engine::data::Outcome;
use runner::{Given, Runner};
use script::{Placed, Step, cut};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Files that are run where none are named.
const FILES: &[&str] = &[
    "select",
    "select_distinct",
    "select_distinct_on",
    "select_having",
    "select_implicit",
    "select_into",
    "insert",
    "insert_conflict",
    "update",
    "delete",
    "join",
    "union",
    "case",
    "with",
    "subselect",
    "aggregates",
    "groupingsets",
    "window",
    "constraints",
    "foreign_key",
    "transactions",
    "numeric",
    "numerology",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "boolean",
    "char",
    "varchar",
    "text",
    "strings",
    "date",
    "time",
    "timestamp",
    "interval",
    "limit",
    "merge",
    "returning",
    "create_table",
    "create_view",
    "sequence",
    "identity",
    "generated",
    "prepare",
    "portals",
    "truncate",
    "alter_table",
    "uuid",
    "create_misc",
    "expressions",
    "updatable_views",
    "drop_if_exists",
];

#[derive(Parser)]
struct Options {
    /// The folder with `sql`, `expected` and `data`: src/test/regress of PostgreSQL's sources.
    folder: PathBuf,
    /// Names of files, without `.sql`.
    files: Vec<String>,
    /// Shows each statement of this file whose answer is another one.
    #[arg(long)]
    list: Option<String>,
    /// With --list: only statements whose class has this text in it.
    #[arg(long, default_value = "")]
    class: String,
    /// With --list: also errors whose messages are others.
    #[arg(long)]
    messages: bool,
    /// So many classes are shown.
    #[arg(long, default_value_t = 60)]
    classes: usize,
    /// A statement ends after so many seconds.
    #[arg(long, default_value_t = 20)]
    timeout: u64,
}

/// What came of the statements of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    statements: usize,
    same: usize,
    both_fail: usize,
    same_message: usize,
    different: usize,
    failed_here: usize,
    succeeded_here: usize,
}

impl Counts {
    fn count(&mut self, verdict: Verdict) {
        self.statements += 1;
        match verdict {
            Verdict::Same => self.same += 1,
            Verdict::BothFail { same_message } => {
                self.same += 1;
                self.both_fail += 1;
                self.same_message += usize::from(same_message);
            }
            Verdict::Different(_) => self.different += 1,
            Verdict::FailedHere => self.failed_here += 1,
            Verdict::SucceededHere => self.succeeded_here += 1,
        }
    }

    fn add(&mut self, other: Counts) {
        self.statements += other.statements;
        self.same += other.same;
        self.both_fail += other.both_fail;
        self.same_message += other.same_message;
        self.different += other.different;
        self.failed_here += other.failed_here;
        self.succeeded_here += other.succeeded_here;
    }

    fn line(&self, name: &str) -> String {
        let percent = 100.0 * self.same as f64 / self.statements.max(1) as f64;
        format!(
            "| {name} | {} | {} | {percent:.1} % | {} | {} | {} | {} | {} |",
            self.statements, self.same, self.both_fail, self.same_message, self.different, self.failed_here, self.succeeded_here
        )
    }
}

/// Statements of a class: how many, in which files, and the first of them.
#[derive(Default)]
struct Class {
    count: usize,
    files: BTreeMap<String, usize>,
    example: String,
}

type Classes = BTreeMap<(&'static str, String), Class>;

/// The script of a file with psql's variables in it.
fn script(text: &str) -> script::Script {
    let mut variables = HashMap::from([
        ("abs_srcdir".to_owned(), runner::FOLDER.to_owned()),
        ("libdir".to_owned(), String::new()),
        ("dlsuffix".to_owned(), ".so".to_owned()),
    ]);
    cut(text, &mut variables)
}

fn read(path: &Path) -> Outcome<String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A database with the tables that the tests share; what could not be made of them.
fn prepared(options: &Options) -> Outcome<(Runner, Lost)> {
    let setup = read(&options.folder.join("sql/test_setup.sql"))?;
    let mut runner = Runner::new(options.timeout, &options.folder.join("data"))?;
    let mut lost = Lost::default();
    for placed in script(&setup).steps {
        if let (Step::Sql { text, .. }, Some(failure)) = (&placed.step, runner.run(&placed).error) {
            lost.add(text);
            if options.list.as_deref() == Some("test_setup") {
                println!("{} {}\n{}\n", failure.sqlstate, failure.message, text.trim());
            }
        }
    }
    Ok((runner, lost))
}

fn run_file(name: &str, options: &Options, classes: &mut Classes) -> Outcome<Counts> {
    let text = read(&options.folder.join(format!("sql/{name}.sql")))?;
    let output = read(&options.folder.join(format!("expected/{name}.out")))?;
    let script = script(&text);
    let expected = expected(&text, &script, &output).map_err(|line| format!("{name}.sql, line {line}: it is not in the output"))?;
    let (mut runner, mut lost) = prepared(options)?;
    let mut counts = Counts::default();
    for (placed, expected) in script.steps.iter().zip(&expected) {
        let had_failed = runner.has_failed();
        let given = runner.run(placed);
        let Step::Sql { text: sql, .. } = &placed.step else { continue };
        let verdict = compare(sql, expected, &given);
        counts.count(verdict);
        let class = class(sql, verdict, expected, given.error.as_ref(), &lost, had_failed);
        let kind = match verdict {
            Verdict::Same | Verdict::BothFail { same_message: true } => "",
            Verdict::BothFail { same_message: false } => "other message",
            Verdict::Different(_) => "different",
            Verdict::FailedHere => "failed here only",
            Verdict::SucceededHere => "succeeded here only",
        };
        let is_listed = !kind.is_empty() && (kind != "other message" || options.messages);
        if is_listed && options.list.as_deref() == Some(name) && class.contains(&options.class) {
            show(name, placed, sql, kind, &class, expected, &given);
        }
        match verdict {
            Verdict::Same | Verdict::BothFail { .. } => continue,
            Verdict::FailedHere => lost.add(sql),
            _ => {}
        }
        let sum = classes.entry((kind, class)).or_default();
        sum.count += 1;
        *sum.files.entry(name.to_owned()).or_default() += 1;
        if sum.example.is_empty() {
            let sql: String = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            sum.example = format!("{name}:{}: {}", placed.line + 1, sql.chars().take(100).collect::<String>());
        }
    }
    Ok(counts)
}

fn show(name: &str, placed: &Placed, sql: &str, kind: &str, class: &str, expected: &[Block], given: &Given) {
    println!("== {name}.sql:{}: {kind}: {class}", placed.line + 1);
    println!("{}", sql.trim());
    println!("-- PostgreSQL:");
    expected.iter().for_each(print);
    println!("-- here:");
    given.blocks.iter().for_each(print);
    if let Some(failure) = &given.error {
        println!("ERROR:  {} {}", failure.sqlstate, failure.message);
    }
    println!();
}

fn print(block: &Block) {
    match block {
        Block::Error(message) => println!("ERROR:  {message}"),
        Block::Lines(lines) => lines.iter().for_each(|line| println!("{line}")),
        Block::Table { header, rows } => {
            header.iter().for_each(|line| println!("{line}"));
            rows.iter().for_each(|line| println!("{line}"));
            println!("({} rows)", rows.len());
        }
    }
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut files: Vec<String> = options.files.clone();
    if files.is_empty() {
        files = options.list.iter().filter(|name| *name != "test_setup").cloned().collect();
    }
    if files.is_empty() {
        files = FILES.iter().map(|name| (*name).to_owned()).collect();
    }
    // A panic is counted, and need not be told twice.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let (mut classes, mut all) = (Classes::new(), Counts::default());
    println!("| File | Statements | Same | | both fail | same message | Different | Failed here only | Succeeded here only |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for name in &files {
        let counts = run_file(name, &options, &mut classes)?;
        println!("{}", counts.line(name));
        all.add(counts);
    }
    println!("{}", all.line("all"));
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, class)| std::cmp::Reverse(class.count));
    println!();
    for ((kind, name), class) in classes.iter().take(options.classes) {
        let mut files: Vec<_> = class.files.iter().collect();
        files.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let files: Vec<&str> = files.iter().take(4).map(|(name, _)| name.as_str()).collect();
        println!("{:5}  {kind}: {name}  [{}]\n         {}", class.count, files.join(", "), class.example);
    }
    Ok(())
}

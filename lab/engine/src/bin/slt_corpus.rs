//! SQLite's sqllogictest corpus, run by sessions: how many records give what the corpus says, and into which class those fall that do not.
//!
//! The corpus is not part of the project (<https://sqlite.org/sqllogictest/>, its folder `test`). Records are read and values compared as described in its `about.wiki`. Of
//! records for certain engines those for PostgreSQL are run, whose dialect this is: with `skipif postgresql` they count as skipped.
//!
//! A record counts only if all of its rows are right. A class is an SQLSTATE, or what was other than expected.

use clap::Parser;
use md5::{Digest, Md5};
use pagefold_lab_engine::corpus::{files, session};
use pagefold_lab_engine::data::Outcome;
use pagefold_sql::Session;
use pagefold_types::{DataType, Value, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The name that records of this dialect have in `skipif` and `onlyif`.
const ENGINE: &str = "postgresql";

#[derive(Parser)]
struct Options {
    /// Files, or folders of files that end in `.test`.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// So many failures of each class are shown.
    #[arg(long, default_value_t = 3)]
    examples: usize,
    /// Files that run at once.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Only every nth file.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// A statement ends after so many seconds.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// Without a line for each file.
    #[arg(long)]
    quiet: bool,
}

/// What is expected of a record.
enum Expected {
    Done,
    Error,
    Rows { types: String, sort: Sort, lines: Vec<String> },
}

#[derive(Clone, Copy)]
enum Sort {
    No,
    Rows,
    Values,
}

struct Record {
    line: usize,
    is_skipped: bool,
    sql: String,
    expected: Expected,
}

/// The records of a file. `None` where a line is none of the format.
fn records(file: &str) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    let mut lines = file.lines().enumerate().map(|(number, line)| (number + 1, line.trim_end())).peekable();
    let mut is_skipped = false;
    while let Some((line, text)) = lines.next() {
        let mut words = text.split_whitespace();
        let expected = match words.next() {
            None => continue,
            Some(comment) if comment.starts_with('#') => continue,
            Some("hash-threshold") => continue,
            Some("halt") if is_skipped => {
                is_skipped = false;
                continue;
            }
            Some("halt") => break,
            Some("skipif") => {
                is_skipped |= words.next()? == ENGINE;
                continue;
            }
            Some("onlyif") => {
                is_skipped |= words.next()? != ENGINE;
                continue;
            }
            Some("statement") => match words.next()? {
                "ok" => Expected::Done,
                "error" => Expected::Error,
                _ => return None,
            },
            Some("query") => {
                let types = words.next()?.to_owned();
                let sort = match words.next() {
                    Some("rowsort") => Sort::Rows,
                    Some("valuesort") => Sort::Values,
                    Some("nosort") | None => Sort::No,
                    Some(_) => return None,
                };
                Expected::Rows { types, sort, lines: Vec::new() }
            }
            Some(_) => return None,
        };
        let mut sql = String::new();
        let mut has_rows = false;
        while let Some((_, text)) = lines.next_if(|(_, text)| !text.is_empty()) {
            if text == "----" {
                has_rows = true;
                break;
            }
            sql.push_str(text);
            sql.push('\n');
        }
        let expected = match expected {
            Expected::Rows { types, sort, lines: mut expected } => {
                while has_rows && lines.peek().is_some_and(|(_, text)| !text.is_empty()) {
                    expected.extend(lines.next().map(|(_, text)| text.to_owned()));
                }
                Expected::Rows { types, sort, lines: expected }
            }
            other => other,
        };
        records.push(Record { line, is_skipped, sql, expected });
        is_skipped = false;
    }
    Some(records)
}

/// A value as the corpus writes one of a column of this type.
fn shown(value: &Value, data_type: &DataType, asked: char) -> String {
    if matches!(value, Value::Null) {
        return "NULL".into();
    }
    let text = match value {
        Value::Boolean(truth) => u8::from(*truth).to_string(),
        value => text::to_text(value.as_ref(), data_type),
    };
    match asked {
        'I' => text.parse::<i64>().or_else(|_| text.parse::<f64>().map(|value| value as i64)).unwrap_or_default().to_string(),
        'R' => format!("{:.3}", text.parse::<f64>().unwrap_or_default()),
        _ if text.is_empty() => "(empty)".into(),
        _ => text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect(),
    }
}

/// Runs a record; what is wrong with it as class and detail.
fn run(session: &mut Session, record: &Record) -> Result<(), (String, String)> {
    let answer = session.execute(&record.sql, &[]).and_then(|answer| {
        let types: Vec<DataType> = answer.columns().map(|column| column.data_type).collect();
        answer.rows().map(|rows| (types, rows))
    });
    let (data_types, rows) = match (answer, &record.expected) {
        (Err(_), Expected::Error) | (Ok(_), Expected::Done) => return Ok(()),
        (Ok(_), Expected::Error) => return Err(("no error".into(), String::new())),
        (Err(error), _) => return Err((error.sqlstate().into(), error.to_string())),
        (Ok(answer), Expected::Rows { .. }) => answer,
    };
    let Expected::Rows { types, sort, lines } = &record.expected else { return Ok(()) };
    if data_types.len() != types.chars().count() {
        return Err(("number of columns".into(), format!("{} for {types}", data_types.len())));
    }
    let row = |row: &Vec<Value>| -> Vec<String> {
        row.iter().zip(&data_types).zip(types.chars()).map(|((value, data_type), asked)| shown(value, data_type, asked)).collect()
    };
    let mut rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    if matches!(sort, Sort::Rows) {
        rows.sort();
    }
    let mut values = rows.concat();
    if matches!(sort, Sort::Values) {
        values.sort();
    }
    let is_hash = lines.len() == 1 && lines[0].contains(" values hashing to ");
    let given = if is_hash {
        let mut hash = Md5::new();
        for value in &values {
            hash.update(value.as_bytes());
            hash.update(b"\n");
        }
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        vec![format!("{} values hashing to {hash}", values.len())]
    } else {
        values.clone()
    };
    if given == *lines {
        return Ok(());
    }
    values.truncate(12);
    Err(("other rows".into(), format!("{values:?} is not {lines:?}")))
}

#[derive(Default)]
struct Counts {
    right: usize,
    skipped: usize,
    wrong: BTreeMap<String, (usize, Vec<String>)>,
}

impl Counts {
    fn failed(&self) -> usize {
        self.wrong.values().map(|(count, _)| count).sum()
    }

    fn add(&mut self, other: Counts, examples: usize) {
        self.right += other.right;
        self.skipped += other.skipped;
        for (class, (count, texts)) in other.wrong {
            let sum = self.wrong.entry(class).or_default();
            sum.0 += count;
            sum.1.extend(texts);
            sum.1.truncate(examples);
        }
    }
}

fn run_file(path: &Path, options: &Options) -> Outcome<Counts> {
    let file = std::fs::read_to_string(path)?;
    let records = records(&file).ok_or_else(|| format!("{}: not of the format", path.display()))?;
    let mut session = session(options.timeout)?;
    let mut counts = Counts::default();
    for record in &records {
        if record.is_skipped {
            counts.skipped += 1;
            continue;
        }
        match run(&mut session, record) {
            Ok(()) => counts.right += 1,
            Err((class, detail)) => {
                let (count, texts) = counts.wrong.entry(class).or_default();
                *count += 1;
                if texts.len() < options.examples {
                    texts.push(format!("{}:{}: {}{detail}", path.display(), record.line, record.sql));
                }
            }
        }
    }
    Ok(counts)
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut found = Vec::new();
    for path in &options.paths {
        files(path, "test", &mut found)?;
    }
    found.sort();
    let found: Vec<PathBuf> = found.into_iter().step_by(options.every.max(1)).collect();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Counts::default());
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                while let Some(path) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match run_file(path, &options) {
                        Ok(counts) => {
                            if !options.quiet {
                                println!(
                                    "{}: {} right, {} failed, {} skipped",
                                    path.display(),
                                    counts.right,
                                    counts.failed(),
                                    counts.skipped
                                );
                            }
                            all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(counts, options.examples);
                        }
                        Err(error) => {
                            *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error.to_string());
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(failure) = failure.into_inner()? {
        return Err(failure.into());
    }
    let all = all.into_inner()?;
    for (class, (count, texts)) in &all.wrong {
        println!("\n== {class}: {count}");
        for text in texts {
            println!("{text}\n");
        }
    }
    let ran = all.right + all.failed();
    println!(
        "{} files: {} of {ran} records right ({:.3} %), {} skipped",
        found.len(),
        all.right,
        100.0 * all.right as f64 / ran.max(1) as f64,
        all.skipped
    );
    Ok(())
}

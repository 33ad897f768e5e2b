//! DataFusion's sqllogictest corpus, run by sessions: how many of what DataFusion answers right get the same answer here, and into which class the others fall.
//!
//! The corpus is not part of the project: it is the folder `test_files` of the crate `datafusion-sqllogictest`. All of its records are right in DataFusion. Much of it is about
//! what only DataFusion has (files that are tables, arrays and structs, names of functions), which the classes show.
//!
//! Cells are compared word by word, numbers as numbers. Records that expect an error count by themselves: an error for another reason would do.

use clap::Parser;
use pagefold_lab_engine::corpus::{files, session};
use pagefold_lab_engine::data::Outcome;
use pagefold_sql::Session;
use pagefold_types::{DataType, Value, text};
use sqllogictest::{Condition, DefaultColumnType, QueryExpect, Record, SortMode, StatementExpect};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Parser)]
struct Options {
    /// The folder `test_files`, or single files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// So many failures of each class are shown.
    #[arg(long, default_value_t = 3)]
    examples: usize,
    /// Only failures of this class are shown, all of them.
    #[arg(long)]
    class: Option<String>,
    /// A statement ends after so many seconds.
    #[arg(long, default_value_t = 20)]
    timeout: u64,
}

/// What records of one kind came to.
#[derive(Clone, Copy, Default)]
struct Count {
    same: usize,
    all: usize,
}

impl Count {
    fn add(&mut self, is_same: bool) {
        self.all += 1;
        self.same += usize::from(is_same);
    }
}

#[derive(Default)]
struct Counts {
    queries: Count,
    statements: Count,
    errors: Count,
    skipped: usize,
    /// Of its plans.
    explained: usize,
    classes: BTreeMap<String, (usize, Vec<String>)>,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        for (sum, own) in [(&mut self.queries, other.queries), (&mut self.statements, other.statements), (&mut self.errors, other.errors)] {
            sum.same += own.same;
            sum.all += own.all;
        }
        self.skipped += other.skipped;
        self.explained += other.explained;
        for (class, (count, texts)) in other.classes {
            let sum = self.classes.entry(class).or_default();
            sum.0 += count;
            sum.1.extend(texts);
        }
    }
}

fn shown(value: &Value, data_type: &DataType) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Boolean(value) => value.to_string(),
        Value::Text(text) if text.is_empty() => "(empty)".into(),
        value => {
            let text = text::to_text(value.as_ref(), data_type);
            match data_type {
                DataType::Timestamp { .. } => without_zeros(&text.replacen(' ', "T", 1)),
                DataType::Time { .. } => without_zeros(&text),
                _ => text,
            }
        }
    }
}

/// Without zeros at the end of a fraction of a second.
fn without_zeros(text: &str) -> String {
    let Some((whole, rest)) = text.split_once('.') else { return text.to_owned() };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..digits].trim_end_matches('0') {
        "" => format!("{whole}{}", &rest[digits..]),
        fraction => format!("{whole}.{fraction}{}", &rest[digits..]),
    }
}

/// Are these two words the same, or the same number?
fn is_same_word(own: &str, expected: &str) -> bool {
    let number = |word: &str| word.parse::<f64>().ok();
    own == expected
        || match (number(own), number(expected)) {
            (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            _ => false,
        }
}

fn is_same_line(own: &str, expected: &str) -> bool {
    let (mut a, mut b) = (own.split_whitespace(), expected.split_whitespace());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(own), Some(expected)) if is_same_word(own, expected) => {}
            _ => return false,
        }
    }
}

/// The rows of a query; or its SQLSTATE and what it says.
fn rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<String>>, (String, String)> {
    let failed = |error: pagefold_sql::SqlError| (error.sqlstate().to_owned(), error.to_string());
    let answer = session.execute(sql, &[]).map_err(failed)?;
    let types: Vec<DataType> = answer.columns().map(|column| column.data_type).collect();
    let rows = answer.rows().map_err(failed)?;
    Ok(rows.iter().map(|row| row.iter().zip(&types).map(|(value, data_type)| shown(value, data_type)).collect()).collect())
}

fn compare(mut own: Vec<Vec<String>>, sort: SortMode, expected: &[String]) -> Result<(), (String, String)> {
    let mut expected = expected.to_vec();
    let mut lines: Vec<String> = match sort {
        SortMode::ValueSort => own.drain(..).flatten().collect(),
        _ => own.iter().map(|row| row.join(" ")).collect(),
    };
    if !matches!(sort, SortMode::NoSort) {
        let words = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        lines.sort_by_key(words);
        expected.sort_by_key(words);
    }
    if lines.len() == expected.len() && lines.iter().zip(&expected).all(|(own, expected)| is_same_line(own, expected)) {
        return Ok(());
    }
    lines.truncate(6);
    expected.truncate(6);
    Err(("other rows".into(), format!("{lines:?} is not {expected:?}")))
}

/// Is the record one that DataFusion runs?
fn is_run(conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| match condition {
        Condition::OnlyIf { label } => label.eq_ignore_ascii_case("datafusion"),
        Condition::SkipIf { label } => !label.eq_ignore_ascii_case("datafusion"),
    })
}

fn run_file(path: &Path, options: &Options) -> Outcome<Counts> {
    let records = sqllogictest::parse_file::<DefaultColumnType>(path)?;
    let mut session = session(options.timeout)?;
    let mut counts = Counts::default();
    for record in records {
        let (outcome, sql, loc) = match record {
            Record::Statement { conditions, .. } | Record::Query { conditions, .. } if !is_run(&conditions) => {
                counts.skipped += 1;
                continue;
            }
            Record::Query { sql, .. } if sql.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain")) => {
                counts.explained += 1;
                continue;
            }
            Record::Statement { sql, expected: StatementExpect::Error(_), .. } => {
                counts.errors.add(rows(&mut session, &sql).is_err());
                continue;
            }
            Record::Query { sql, expected: QueryExpect::Error(_), .. } => {
                counts.errors.add(rows(&mut session, &sql).is_err());
                continue;
            }
            Record::Statement { sql, loc, .. } => {
                let outcome = rows(&mut session, &sql).map(drop);
                counts.statements.add(outcome.is_ok());
                (outcome, sql, loc)
            }
            Record::Query { sql, loc, expected: QueryExpect::Results { sort_mode, results, .. }, .. } => {
                let outcome = rows(&mut session, &sql).and_then(|own| compare(own, sort_mode.unwrap_or(SortMode::NoSort), &results));
                counts.queries.add(outcome.is_ok());
                (outcome, sql, loc)
            }
            Record::Halt { .. } => break,
            _ => continue,
        };
        if let Err((class, detail)) = outcome {
            let (count, texts) = counts.classes.entry(class).or_default();
            *count += 1;
            texts.push(format!("{loc}: {sql}\n{detail}"));
        }
    }
    Ok(counts)
}

/// The folder of a file, or its name where that is in none.
fn group(path: &Path, options: &Options) -> String {
    let within = options.paths.iter().find_map(|root| path.strip_prefix(root).ok()).filter(|within| !within.as_os_str().is_empty());
    let within = within.unwrap_or(path);
    let first = within.components().next().map_or_else(String::new, |first| first.as_os_str().to_string_lossy().into_owned());
    first.trim_end_matches(".slt").to_owned()
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut found = Vec::new();
    for path in &options.paths {
        files(path, "slt", &mut found)?;
    }
    found.sort();
    let (mut all, mut groups) = (Counts::default(), BTreeMap::<String, (Count, Count)>::new());
    for path in &found {
        let counts = match run_file(path, &options) {
            Ok(counts) => counts,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                continue;
            }
        };
        let (queries, statements) = groups.entry(group(path, &options)).or_default();
        for (sum, own) in [(queries, counts.queries), (statements, counts.statements)] {
            sum.same += own.same;
            sum.all += own.all;
        }
        all.add(counts);
    }
    for (name, (queries, statements)) in &groups {
        println!("| {name} | {} | {} | {} | {} |", queries.same, queries.all, statements.same, statements.all);
    }
    for (class, (count, texts)) in &all.classes {
        let most = match &options.class {
            Some(only) if only == class => usize::MAX,
            Some(_) => 0,
            None => options.examples,
        };
        println!("\n== {class}: {count}");
        texts.iter().take(most).for_each(|text| println!("{text}\n"));
    }
    let percent = |count: Count| 100.0 * count.same as f64 / count.all.max(1) as f64;
    println!(
        "{} files: {} of {} queries the same ({:.1} %), {} of {} statements done ({:.1} %), {} of {} errors are errors; {} not run by DataFusion, {} of its plans",
        found.len(),
        all.queries.same,
        all.queries.all,
        percent(all.queries),
        all.statements.same,
        all.statements.all,
        percent(all.statements),
        all.errors.same,
        all.errors.all,
        all.skipped,
        all.explained
    );
    Ok(())
}

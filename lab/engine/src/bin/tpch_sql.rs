//! The 22 queries of TPC-H at scale factor 1, by the row executor, on a database that has its tables: times, and whether they give the published answers.
//!
//! The tables come from `--bin tpch_sqlite -- --scale-factor 1 tpch.sqlite` and `pagefold load DB tpch.sqlite`.

use clap::Parser;
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab_engine::data::Outcome;
use pagefold_sql::Database;
use pagefold_types::{Value, text};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tpchgen::q_and_a::QueryAndAnswer;

#[derive(Parser)]
struct Options {
    /// The database.
    database: PathBuf,
    /// Only these queries.
    #[arg(long, value_delimiter = ',')]
    queries: Vec<i32>,
    /// Memory of all buffer pools together.
    #[arg(long, default_value_t = 1 << 30)]
    memory: usize,
    /// What a statement may keep.
    #[arg(long, default_value = "2GB")]
    work_mem: String,
    /// The plans, too.
    #[arg(long)]
    explain: bool,
    /// A query ends after so many seconds.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
}

/// What the specification puts into the queries to check the answers (TPC-H 3.0.1, 2.4.x.4).
const PARAMETERS: [&[&str]; 22] = [
    &["90"],
    &["15", "BRASS", "EUROPE"],
    &["BUILDING", "1995-03-15"],
    &["1993-07-01"],
    &["ASIA", "1994-01-01"],
    &["1994-01-01", "0.06", "24"],
    &["FRANCE", "GERMANY"],
    &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    &["green"],
    &["1993-10-01"],
    &["GERMANY", "0.0001"],
    &["MAIL", "SHIP", "1994-01-01"],
    &["special", "requests"],
    &["1995-09-01"],
    &["1996-01-01"],
    &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    &["Brand#23", "MED BOX"],
    &["300"],
    &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    &["forest", "1994-01-01", "CANADA"],
    &["SAUDI ARABIA"],
    &["13", "31", "23", "29", "30", "18", "17"],
];

/// Of these queries only so many rows are returned.
const LIMITS: [(i32, u32); 5] = [(2, 100), (3, 10), (10, 20), (18, 100), (21, 100)];

/// The statements of a query; one of them has the answer.
fn statements(number: i32, template: &str) -> Vec<String> {
    let mut text = template.replace(":s", "0");
    let parameters = PARAMETERS[usize::try_from(number - 1).expect("a query number")];
    for (at, value) in parameters.iter().enumerate().rev() {
        text = text.replace(&format!(":{}", at + 1), value);
    }
    let mut all: Vec<String> = text.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect();
    if let (Some((_, limit)), [query]) = (LIMITS.iter().find(|(own, _)| *own == number), all.as_mut_slice()) {
        query.push_str(&format!(" limit {limit}"));
    }
    all
}

/// The same, where numbers may differ in what was rounded: a hundredth, or a part in 10^9.
fn is_same(own: &str, other: &str) -> bool {
    let (own, other) = (own.trim(), other.trim());
    match (own.parse::<f64>(), other.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 0.0101_f64.max(b.abs() * 1e-9),
        _ => own == other,
    }
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut settings = Settings::default();
    settings.pools.memory_bytes = options.memory;
    let engine = Engine::open(Arc::new(OsStorage), Arc::new(OsClock), &options.database, OpenMode::Write, settings)?;
    let mut session = Database::new(Arc::new(engine)).session();
    session.execute(&format!("SET work_mem = '{}'", options.work_mem), &[])?.rows()?;
    session.execute(&format!("SET statement_timeout = '{}s'", options.timeout), &[])?.rows()?;
    let numbers: Vec<i32> = if options.queries.is_empty() { (1..=22).collect() } else { options.queries.clone() };
    let (mut total, mut right) = (0.0, 0);
    for number in &numbers {
        let known = QueryAndAnswer::new(*number, 1.0)?;
        if options.explain {
            for query in statements(*number, known.query()).iter().filter(|text| text.starts_with("select")) {
                for line in session.execute(&format!("EXPLAIN {query}"), &[])?.rows()? {
                    if let [Value::Text(line)] = line.as_slice() {
                        println!("    {line}");
                    }
                }
            }
        }
        let start = Instant::now();
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut run = || -> Outcome<()> {
            for statement in statements(*number, known.query()) {
                let mut answer = session.execute(&statement, &[])?;
                let types: Vec<_> = answer.columns().map(|column| column.data_type).collect();
                while let Some(row) = answer.next_row()? {
                    rows.push(row.iter().zip(&types).map(|(value, data_type)| text::to_text(value.as_ref(), data_type)).collect());
                }
            }
            Ok(())
        };
        let done = run();
        let elapsed = start.elapsed().as_secs_f64();
        total += elapsed;
        if let Err(error) = done {
            println!("Q{number:<2} {elapsed:>9.3} s  {error}");
            continue;
        }
        let expected: Vec<Vec<&str>> =
            known.answer().lines().filter(|line| !line.trim().is_empty()).skip(1).map(|line| line.split('|').collect()).collect();
        let differs = rows
            .iter()
            .zip(&expected)
            .position(|(own, other)| own.len() != other.len() || !own.iter().zip(other).all(|(own, other)| is_same(own, other)));
        let verdict = match differs {
            None if rows.len() == expected.len() => {
                right += 1;
                "as published".to_owned()
            }
            None => format!("{} rows, published are {}", rows.len(), expected.len()),
            Some(at) => format!("row {at}: {:?}, published is {:?}", rows[at], expected[at]),
        };
        println!("Q{number:<2} {elapsed:>9.3} s  {verdict}");
    }
    println!("{right} of {} as published, {total:.1} s", numbers.len());
    Ok(())
}

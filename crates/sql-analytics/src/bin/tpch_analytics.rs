//! The 22 queries of TPC-H by the row executor and by batches, in turn, on tables under one method: whether the answers are the same, and what each took.
//!
//! `cargo run --release --features tpch --bin tpch_analytics -- --make 1 DIRECTORY` makes the database first; without a directory the queries are printed.

#[path = "../../tests/tpch_data/mod.rs"]
mod tpch_data;

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{OsClock, OsStorage};
use pagefold_sql::{Database, Session, SqlResult};
use pagefold_sql_analytics::DataFusion;
use pagefold_types::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What is asked for.
struct Options {
    directory: PathBuf,
    make: Option<f64>,
    method: String,
    queries: Vec<i32>,
    rounds: usize,
    memory: usize,
    work_mem: String,
    threads: usize,
    /// `off`, `on`, `auto`, in turn.
    settings: Vec<String>,
    explain: bool,
}

fn options() -> Options {
    let mut options = Options {
        directory: PathBuf::new(),
        make: None,
        method: "page".into(),
        queries: (1..=22).collect(),
        rounds: 1,
        memory: 1 << 30,
        work_mem: "2GB".into(),
        threads: 2,
        settings: vec!["off".into(), "on".into()],
        explain: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_default();
        match word.as_str() {
            "--make" => options.make = value().parse().ok(),
            "--method" => options.method = value(),
            "--queries" => options.queries = value().split(',').filter_map(|number| number.parse().ok()).collect(),
            "--rounds" => options.rounds = value().parse().unwrap_or(1),
            "--memory" => options.memory = value().parse().unwrap_or(1 << 30),
            "--work-mem" => options.work_mem = value(),
            "--threads" => options.threads = value().parse().unwrap_or(2),
            "--settings" => options.settings = value().split(',').map(str::to_owned).collect(),
            "--explain" => options.explain = true,
            directory => options.directory = directory.into(),
        }
    }
    options
}

fn run(session: &mut Session, number: i32) -> SqlResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for statement in tpch_data::statements(number) {
        rows.extend(session.execute(&statement, &[])?.rows()?);
    }
    Ok(rows)
}

fn explain(session: &mut Session, number: i32) -> SqlResult<()> {
    for statement in tpch_data::statements(number).iter().filter(|text| text.starts_with("select")) {
        for line in session.execute(&format!("EXPLAIN {statement}"), &[])?.rows()? {
            if let [Value::Text(line)] = line.as_slice() {
                println!("    {line}");
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options();
    if options.directory.as_os_str().is_empty() {
        // For other databases: the statements of each query, as JSON.
        let query = |number: &i32| format!("\"{number}\": {:?}", tpch_data::statements(*number));
        println!("{{{}}}", options.queries.iter().map(query).collect::<Vec<String>>().join(",\n"));
        return Ok(());
    }
    let mut settings = Settings::default();
    settings.pools.memory_bytes = options.memory;
    let mode = if options.make.is_some() { OpenMode::Create } else { OpenMode::Write };
    let engine = Arc::new(Engine::open(Arc::new(OsStorage), Arc::new(OsClock), &options.directory, mode, settings)?);
    let analytics = Arc::new(DataFusion::with_threads(options.threads));
    let database = Database::with_analytics(engine, None, analytics);
    let mut session = database.session();
    if let Some(scale) = options.make {
        let start = Instant::now();
        tpch_data::make(&mut session, scale, &options.method)?;
        println!("made in {:.1} s", start.elapsed().as_secs_f64());
    }
    session.execute(&format!("SET work_mem = '{}'", options.work_mem), &[])?.rows()?;
    let mut totals = vec![0.0; options.settings.len()];
    for number in &options.queries {
        let mut best = vec![f64::INFINITY; options.settings.len()];
        let mut answers: Vec<Option<Vec<Vec<Value>>>> = vec![None; options.settings.len()];
        let mut verdict = "";
        for _ in 0..options.rounds {
            for (at, setting) in options.settings.iter().enumerate() {
                session.execute(&format!("SET analytics = '{setting}'"), &[])?.rows()?;
                if options.explain && best[at].is_infinite() {
                    println!("Q{number} {setting}");
                    explain(&mut session, *number)?;
                }
                let counted = database.analytics_statements();
                let start = Instant::now();
                match run(&mut session, *number) {
                    Ok(rows) => answers[at] = Some(rows),
                    Err(error) => println!("Q{number} {setting}: {} {error}", error.sqlstate()),
                }
                best[at] = best[at].min(start.elapsed().as_secs_f64());
                if setting == "on" && database.analytics_statements() == counted {
                    verdict = " (by rows)";
                }
            }
        }
        // Rows that are equal in order come in any.
        let sorted = |rows: &Option<Vec<Vec<Value>>>| {
            rows.clone().map(|mut rows| {
                rows.sort();
                rows
            })
        };
        let same = answers.windows(2).all(|pair| sorted(&pair[0]) == sorted(&pair[1]));
        let times: Vec<String> = best.iter().map(|seconds| format!("{seconds:>8.3}")).collect();
        println!("Q{number:<2} {} {}{verdict}", times.join(" "), if same { "same" } else { "DIFFER" });
        best.iter().zip(&mut totals).for_each(|(seconds, total)| *total += seconds);
    }
    println!("{} {:?}", options.settings.join(" "), totals);
    Ok(())
}

//! The transactions of TPC-C through SQL, in this process: pagefold, and SQLite in turn.
//!
//! `cargo run --release -p pagefold-lab-engine --features rivals --bin tpcc -- --sqlite`; with
//! `--kill --kills 10` the terminals run in a child that is killed, and what it leaves is looked at.
//!
//! Schema, population, input and transactions are those of the specification (revision 5.11).
//! Terminals neither think nor key, Delivery is not queued, and nobody audits anything: so this is
//! no TPC-C result, only what its transactions take. Before and after each run the consistency
//! conditions are checked, and that all that a terminal was told is committed is there.

mod acknowledged;
mod conditions;
mod driver;
mod input;
mod kills;
mod options;
mod population;
mod random;
mod report;
mod schema;
mod statements;
#[cfg(test)]
mod tests;
mod timed;
mod transactions;

use acknowledged::Acknowledged;
use clap::Parser;
use driver::{Measured, drive};
use options::Options;
use pagefold_lab::measure::Clock;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::sessions::ours::{self, Ours};
use pagefold_lab_engine::sessions::{Access, Connection, Done};
use pagefold_types::Value;
use report::sizes;
use schema::definitions;
use statements::all;
use std::path::Path;
use std::time::Instant;
use timed::Timed;

fn main() -> Outcome<()> {
    let options = Options::parse();
    if let Some([directory, told_to]) = options.child.as_deref() {
        return kills::child(&options, directory, told_to);
    }
    if options.sqlite && cfg!(not(feature = "rivals")) {
        return Err("--sqlite needs --features rivals".into());
    }
    let scratch = tempfile::tempdir()?;
    let folder = options.dir.clone().unwrap_or_else(|| scratch.path().to_path_buf());
    let scale = options.scale();
    println!(
        "TPC-C's transactions without think times and keying times (no TPC-C result): {} warehouses, {} terminals, method {}, \
         synchronous {}, {}, seed {}",
        scale.warehouses, options.terminals, options.method, options.synchronous, options.isolation, options.seed
    );
    if scale.divisor != 1 {
        println!("SHRUNK population: {} items, {} customers and orders a district", scale.items, scale.customers);
    }
    let mut ours = run_ours(&options, &folder)?;
    if let Some(ours) = &mut ours {
        ours.print("pagefold");
    }
    #[cfg(feature = "rivals")]
    if let (true, Some(ours)) = (options.sqlite, ours) {
        let mut theirs = run_sqlite(&options, &folder)?;
        theirs.print("SQLite");
        println!(
            "over SQLite: New-Orders a minute {:.2}, processor time a transaction {:.2}",
            ours.new_orders_a_minute() / theirs.new_orders_a_minute(),
            ours.cpu_ms() / theirs.cpu_ms()
        );
    }
    Ok(())
}

/// A run of pagefold; none where the terminals were killed.
fn run_ours(options: &Options, folder: &Path) -> Outcome<Option<Measured>> {
    let directory = folder.join("pagefold");
    std::fs::create_dir_all(&directory)?;
    let database = ours::open(&directory, options.memory_bytes())?;
    ours::create(&database, &definitions(!options.no_foreign_keys, |_| format!(" WITH (compress = '{}')", options.method)))?;
    let mut connection = Ours::new(&database, &options.used(), all())?;
    load("pagefold", &mut connection, options)?;
    if options.explain {
        connection.begin(Access::Read)?;
        for query in all() {
            let lines = connection.plan(query.text, &vec![Value::Int(1); statements::parameters(query)])?;
            println!("{}\n  {}\n", query.text, lines.join("\n  "));
        }
        for condition in &conditions::CONDITIONS {
            let lines = connection.plan(condition.text, &(condition.params)(options.scale()))?;
            println!("condition {}: {}\n  {}\n", condition.number, condition.says, lines.join("\n  "));
        }
        return Ok(None);
    }
    drop(connection);
    if options.kill {
        drop(database);
        println!("loaded: {}", sizes(&directory)?);
        kills::run(options, &directory, &folder.join("told"))?;
        return Ok(None);
    }
    database.engine().checkpoint()?;
    println!("loaded: {}", sizes(&directory)?);
    let of = options.used();
    let measured = drive(&options.plan(), &|| with_times(options, Ours::new(&database, &of, all())?))?;
    let mut connection = Ours::new(&database, &options.used(), all())?;
    look(&mut connection, options, &measured)?;
    drop(connection);
    database.engine().checkpoint()?;
    println!("after the run: {}", sizes(&directory)?);
    drop(database);
    kills::check_files(&directory, options)?;
    println!("closed: {}; CHECK found nothing", sizes(&directory)?);
    Ok(Some(measured))
}

#[cfg(feature = "rivals")]
fn run_sqlite(options: &Options, folder: &Path) -> Outcome<Measured> {
    use pagefold_lab_engine::sessions::sqlite::Sqlite;
    let directory = folder.join("sqlite");
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("tpcc");
    let foreign_keys = !options.no_foreign_keys;
    let cache = options.memory_bytes() / options.terminals;
    let open = |cache| Sqlite::open(&file, &options.synchronous, cache, foreign_keys, !options.sqlite_busy);
    let mut connection = open(options.memory_bytes())?;
    connection.create(&definitions(foreign_keys, |is_short| if is_short { " WITHOUT ROWID".into() } else { String::new() }))?;
    load("SQLite", &mut connection, options)?;
    drop(connection);
    println!("loaded: {}", sizes(&directory)?);
    let measured = drive(&options.plan(), &|| with_times(options, open(cache)?))?;
    let mut connection = open(options.memory_bytes())?;
    look(&mut connection, options, &measured)?;
    drop(connection);
    println!("after the run: {}", sizes(&directory)?);
    Ok(measured)
}

/// A connection of a terminal; its statements are timed if that is asked for.
fn with_times<C: Connection + 'static>(options: &Options, connection: C) -> Done<Box<dyn Connection>> {
    Ok(if options.statements { Box::new(Timed::new(connection)) } else { Box::new(connection) })
}

fn load(name: &str, connection: &mut dyn Connection, options: &Options) -> Done<()> {
    let (began, worked) = (Instant::now(), Clock::Process.now_s());
    population::load(connection, options.scale(), options.seed)?;
    let worked = Clock::Process.now_s() - worked;
    println!("{name}: loaded in {:.1} s, {worked:.1} s of processor time", began.elapsed().as_secs_f64());
    let began = Instant::now();
    conditions::check(connection, options.scale())?;
    println!("all conditions hold, looked at in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Conditions, and what was told, after a run that nobody ended.
fn look(connection: &mut dyn Connection, options: &Options, measured: &Measured) -> Done<()> {
    let seconds = conditions::check(connection, options.scale())?;
    let each: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.1}")).collect();
    println!("all conditions hold; each was looked at in seconds: {}", each.join(", "));
    let mut acknowledged = Acknowledged::default();
    acknowledged.add(measured.changes.iter().copied());
    let found = acknowledged.compare(connection)?;
    println!("{found}");
    if options.statements {
        timed::print();
    }
    found.check(false, 0)
}

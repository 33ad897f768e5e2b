//! Transactions that programs run all day, by several terminals in this process: YCSB's workloads A to F, pgbench's
//! script, sysbench's statements; pagefold and SQLite in turn.
//!
//! `cargo run --release -p pagefold-lab-engine --features rivals --bin oltp`. Statements are prepared. Each workload runs
//! for some seconds on either side, again and again, and then what has to hold of the tables is looked at. SQLite writes
//! ahead (WAL) and its writers stand in line. Nobody waits for the device unless that is asked for.

mod pgbench;
mod sysbench;
#[cfg(test)]
mod tests;
mod workload;
mod ycsb;
mod zipf;

use clap::Parser;
use pagefold_lab::measure::Spread;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::sessions::Done;
use pagefold_lab_engine::sessions::ours::{self, Ours, Use};
#[cfg(feature = "rivals")]
use pagefold_lab_engine::sessions::sqlite::Sqlite;
use pgbench::Pgbench;
use std::path::Path;
use std::time::Duration;
use sysbench::Sysbench;
use workload::{Measured, Settings, Workload, run};
use ycsb::{Ycsb, YcsbKind};

#[derive(Clone, Debug, Parser)]
struct Options {
    /// Only workloads with this in their names, such as "ycsb" or "sysbench, read".
    #[arg(long, default_value = "")]
    only: String,
    /// Records of YCSB, accounts of pgbench (whole hundred thousands), rows of sysbench.
    #[arg(long, default_value_t = 200_000)]
    rows: i64,
    /// Terminals, each a thread.
    #[arg(long, default_value_t = 4)]
    terminals: usize,
    /// For how long each side runs in a round.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Rounds; the sides take turns.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Compression method of the tables.
    #[arg(long, default_value = "none")]
    method: String,
    /// Format of their keys.
    #[arg(long, default_value = "prefix")]
    key_format: String,
    /// Memory of the pools, and of all caches of SQLite together, in MB.
    #[arg(long, default_value_t = 512)]
    memory_mb: usize,
    /// Do commits wait for the device: off, relaxed, on?
    #[arg(long, default_value = "off")]
    synchronous: String,
    /// Without SQLite.
    #[arg(long)]
    alone: bool,
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    println!(
        "{} terminals, {} s in each of {} rounds, {} rows, method {}, keys {}, pools {} MB, synchronous {}",
        options.terminals,
        options.seconds,
        options.rounds,
        options.rows,
        options.method,
        options.key_format,
        options.memory_mb,
        options.synchronous
    );
    println!("{:<30} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}  retries", "", "tx/s", "CPU us", "p50 ms", "p95 ms", "p99 ms", "max ms");
    // In the order that YCSB recommends: those that insert come last.
    let kinds = [YcsbKind::A, YcsbKind::B, YcsbKind::C, YcsbKind::F, YcsbKind::D, YcsbKind::E];
    family(&options, &kinds.map(|kind| Ycsb::new(kind, options.rows, options.terminals)))?;
    family(&options, &[Pgbench::new(options.rows)])?;
    family(&options, &[Sysbench { rows: options.rows, writes: false }, Sysbench { rows: options.rows, writes: true }])
}

/// Workloads on the same tables, loaded once.
fn family<W: Workload>(options: &Options, workloads: &[W]) -> Outcome<()> {
    let wanted: Vec<&W> = workloads.iter().filter(|workload| workload.name().contains(&options.only)).collect();
    let Some(first) = wanted.first() else { return Ok(()) };
    let scratch = tempfile::tempdir()?;
    let database = ours::open(&scratch.path().join("pagefold"), options.memory_mb << 20)?;
    let with = format!(" WITH (compress = '{}', key_format = '{}')", options.method, options.key_format);
    ours::create(&database, &first.definitions(&with))?;
    let used = Use { isolation: "read committed".into(), synchronous: options.synchronous.clone() };
    let connect = || -> Done<Ours> { Ours::new(&database, &used, first.queries()) };
    first.load(&mut connect()?)?;
    database.engine().checkpoint()?;
    let rival = Rival::new(options, scratch.path(), *first)?;
    for workload in wanted {
        let (mut own, mut others) = (Measured::default(), Measured::default());
        let mut ratios = Vec::new();
        for round in 0..options.rounds {
            let settings =
                Settings { terminals: options.terminals, duration: Duration::from_secs(options.seconds), seed: round, is_loud: false };
            let mut turn = |ours: bool| -> Outcome<f64> {
                let measured = match (ours, &rival) {
                    (true, _) => run(workload, &settings, connect)?,
                    (false, Some(rival)) => rival.run(workload, &settings)?,
                    (false, None) => return Ok(f64::NAN),
                };
                let rate = measured.rate();
                if ours {
                    own.add(measured)
                } else {
                    others.add(measured)
                }
                Ok(rate)
            };
            let first = round % 2 == 0;
            let (one, other) = (turn(first)?, turn(!first)?);
            ratios.push(if first { one / other } else { other / one });
        }
        workload.check(&mut connect()?, own.told)?;
        own.print(&format!("{}, pagefold", workload.name()));
        if let Some(rival) = &rival {
            rival.check(workload, others.told)?;
            others.print(&format!("{}, SQLite", workload.name()));
            let spread = Spread::of(ratios);
            let cpu = own.cpu_us() / others.cpu_us();
            println!("  over SQLite: {:.2} ({:.2}-{:.2}), processor time {cpu:.2}", spread.median, spread.low, spread.high);
        }
    }
    Ok(())
}

/// SQLite with the same tables.
struct Rival {
    #[cfg(feature = "rivals")]
    file: std::path::PathBuf,
    #[cfg(feature = "rivals")]
    cache_bytes: usize,
    #[cfg(feature = "rivals")]
    synchronous: String,
}

#[cfg(feature = "rivals")]
impl Rival {
    /// `None`: it is not wanted.
    fn new(options: &Options, directory: &Path, workload: &impl Workload) -> Outcome<Option<Rival>> {
        if options.alone {
            return Ok(None);
        }
        let cache_bytes = (options.memory_mb << 20) / options.terminals;
        let rival = Rival { file: directory.join("sqlite"), cache_bytes, synchronous: options.synchronous.clone() };
        let mut connection = rival.connect()?;
        connection.create(&workload.definitions(""))?;
        workload.load(&mut connection)?;
        Ok(Some(rival))
    }

    fn connect(&self) -> Done<Sqlite> {
        Sqlite::open(&self.file, &self.synchronous, self.cache_bytes, true, true)
    }

    fn run<W: Workload>(&self, workload: &W, settings: &Settings) -> Done<Measured> {
        run(workload, settings, || self.connect())
    }

    fn check(&self, workload: &impl Workload, told: i64) -> Done<()> {
        workload.check(&mut self.connect()?, told)
    }
}

#[cfg(not(feature = "rivals"))]
impl Rival {
    fn new(options: &Options, _: &Path, _: &impl Workload) -> Outcome<Option<Rival>> {
        if options.alone { Ok(None) } else { Err("SQLite needs --features rivals; --alone is without it".into()) }
    }

    fn run<W: Workload>(&self, _: &W, _: &Settings) -> Done<Measured> {
        Ok(Measured::default())
    }

    fn check(&self, _: &impl Workload, _: i64) -> Done<()> {
        Ok(())
    }
}

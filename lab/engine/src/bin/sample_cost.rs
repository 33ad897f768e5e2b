//! What an estimate from a sample costs, beside the load that it is to save: processor time of all threads, and reads counted at the I/O seam.
//!
//! `cargo run --release -p pagefold-lab-engine --bin sample_cost -- --scale-factor 1`
//!
//! LINEITEM is loaded under each method, pages of 8 KB. Then, each time from a database just opened: a sample of the table, of an index, of an index that does not exist; and of the
//! Parquet file, with and without such an index. Loads and samples take turns; ratios are medians over the rounds.

use clap::Parser;
use pagefold_advisor::Interval;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::Method;
use pagefold_interchange::ParquetSource;
use pagefold_io::{CountingStorage, IoCounts, OsClock, OsStorage, Storage};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_types::Direction;
use pagefold_utility::{
    EstimateOptions, EstimateReport, IndexOptions, LoadOptions, Proposal, Scratch, Silent, create_index, estimate_index, estimate_source,
    estimate_table, load,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor of the rows to generate.
    #[arg(long, default_value_t = 0.1)]
    scale_factor: f64,
    /// Use this Parquet file instead.
    #[arg(long)]
    parquet: Option<PathBuf>,
    /// Folder for the databases; a temporary one by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Pages of a sample.
    #[arg(long, default_value_t = 400)]
    sample_pages: u64,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these cases, by part of their name.
    #[arg(long)]
    only: Option<String>,
}

const PAGE_BYTES: usize = 8192;
const INDEX: &str = "by_date";

/// One measurement of each round.
struct Case {
    name: String,
    /// Seconds of processor time, and those of the load of the same round.
    seconds: Vec<(f64, f64)>,
    counts: IoCounts,
    half_width: f64,
}

struct Bench {
    options: Options,
    data: Lineitem,
    folder: PathBuf,
    storage: CountingStorage,
    cases: Vec<Case>,
}

fn columns(names: [&str; 2]) -> Vec<(String, Direction)> {
    names.iter().map(|name| ((*name).to_owned(), Direction::Ascending)).collect()
}

fn proposal() -> Vec<Proposal> {
    vec![Proposal { name: "part".into(), columns: columns(["l_partkey", "l_suppkey"]), unique: false }]
}

/// The widest interval of the page counts asked for.
fn half_width(report: &EstimateReport) -> f64 {
    let tables = report.methods.iter().filter(|m| m.estimate.options.page_bytes == PAGE_BYTES).map(|m| m.estimate.pages);
    let indexes = report.indexes.iter().flat_map(|i| &i.lines).map(|line| line.estimate.pages);
    tables.chain(indexes).map(|pages: Interval| pages.half_width()).fold(0.0, f64::max)
}

impl Bench {
    fn open(&self, folder: &Path, mode: OpenMode) -> Outcome<Database> {
        let settings = Settings { pools: PoolSettings { memory_bytes: 256 << 20, ..PoolSettings::default() }, ..Settings::default() };
        Ok(Database::open(Arc::new(self.storage.clone()), Arc::new(OsClock), folder, mode, settings)?)
    }

    /// Runs a case; `load_s` is what it is compared with.
    fn case(
        &mut self,
        name: String,
        load_s: f64,
        seed: u64,
        run: impl FnOnce(&Bench, &EstimateOptions) -> Outcome<EstimateReport>,
    ) -> Outcome<()> {
        if self.options.only.as_ref().is_some_and(|only| !name.contains(only)) {
            return Ok(());
        }
        let options = EstimateOptions {
            page_sizes: vec![PAGE_BYTES],
            sample_pages: Some(self.options.sample_pages),
            seed,
            ..EstimateOptions::default()
        };
        let (counts, seconds) = (self.storage.counts(), Clock::Process.now_s());
        let report = run(self, &options)?;
        let (seconds, counts) = (Clock::Process.now_s() - seconds, self.storage.counts().since(&counts));
        if report.sample.is_none() {
            return Err(format!("{name}: not a sample; the table has too few pages").into());
        }
        let number = self.cases.iter().position(|case| case.name == name).unwrap_or_else(|| {
            self.cases.push(Case { name, seconds: Vec::new(), counts, half_width: 0.0 });
            self.cases.len() - 1
        });
        let case = &mut self.cases[number];
        case.seconds.push((seconds, load_s));
        case.half_width = case.half_width.max(half_width(&report));
        Ok(())
    }

    fn round(&mut self, round: u64) -> Outcome<()> {
        for method in [Method::None, Method::Fixed] {
            let folder = self.folder.join(format!("{method}-{round}"));
            let seconds = Clock::Process.now_s();
            let database = self.open(&folder, OpenMode::Create)?;
            let options = LoadOptions { method: method.into(), page_bytes: PAGE_BYTES, ..LoadOptions::default() };
            load(&database, "lineitem", std::slice::from_ref(&self.data.path), &options, &Silent)?;
            let load_s = Clock::Process.now_s() - seconds;
            create_index(&database, INDEX, "lineitem", &columns(["l_shipdate", "l_orderkey"]), &IndexOptions::default(), &Silent)?;
            drop(database);
            let of_table = |bench: &Bench, options: &EstimateOptions| -> Outcome<EstimateReport> {
                Ok(estimate_table(&bench.open(&folder, OpenMode::Read)?, "lineitem", options, &Silent)?)
            };
            self.case(format!("table, {method}"), load_s, round, of_table)?;
            self.case(format!("table, {method}, and a proposed index"), load_s, round, |bench, options| {
                of_table(bench, &EstimateOptions { proposals: proposal(), ..options.clone() })
            })?;
            self.case(format!("index of the table, {method}"), load_s, round, |bench, options| {
                Ok(estimate_index(&bench.open(&folder, OpenMode::Read)?, INDEX, options, &Silent)?)
            })?;
            let of_file = |bench: &Bench, options: &EstimateOptions| -> Outcome<EstimateReport> {
                let storage: Arc<dyn Storage> = Arc::new(bench.storage.clone());
                let mut source = ParquetSource::open(&*storage, std::slice::from_ref(&bench.data.path))?;
                let scratch = Scratch { storage, directory: bench.folder.clone() };
                Ok(estimate_source(&mut source, &scratch, options, &Silent)?)
            };
            self.case(format!("Parquet file, against load of {method}"), load_s, round, of_file)?;
            self.case(format!("Parquet file and a proposed index, against load of {method}"), load_s, round, |bench, options| {
                of_file(bench, &EstimateOptions { proposals: proposal(), ..options.clone() })
            })?;
            std::fs::remove_dir_all(&folder)?;
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let scratch = tempfile::tempdir()?;
    let folder = options.folder.clone().unwrap_or_else(|| scratch.path().to_path_buf());
    std::fs::create_dir_all(&folder)?;
    let data = match &options.parquet {
        Some(path) => Lineitem::open(path.clone())?,
        None => Lineitem::generate(&folder, options.scale_factor)?,
    };
    let rounds = options.rounds as u64;
    let mut bench = Bench { options, data, folder, storage: CountingStorage::new(Arc::new(OsStorage)), cases: Vec::new() };
    for round in 0..rounds {
        bench.round(round)?;
    }
    println!(
        "{:58} {:>8} {:>9} {:>20} {:>8} {:>9} {:>11}",
        "", "CPU [s]", "load [s]", "% of load (spread)", "reads", "read [MB]", "half-width"
    );
    for case in &bench.cases {
        let own = Spread::of(case.seconds.iter().map(|s| s.0));
        let load = Spread::of(case.seconds.iter().map(|s| s.1));
        let part = Spread::of(case.seconds.iter().map(|s| 100.0 * s.0 / s.1));
        println!(
            "{:58} {:>8.3} {:>9.2} {:>7.1} ({:.1}-{:.1}) {:>8} {:>9.2} {:>10.2}%",
            case.name,
            own.median,
            load.median,
            part.median,
            part.low,
            part.high,
            case.counts.reads,
            case.counts.read_bytes as f64 / 1e6,
            100.0 * case.half_width
        );
    }
    Ok(())
}

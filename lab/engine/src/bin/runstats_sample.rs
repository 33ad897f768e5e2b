//! What RUNSTATS takes on a sample, beside a scan of the table: LINEITEM with its primary key, everything in memory.
//!
//! `cargo run --release -p pagefold-lab-engine --bin runstats_sample -- --scale-factor 1`
//!
//! Elapsed times. Each round has a scan of all columns by column, one of all rows one by one, RUNSTATS on a sample with another seed, and RUNSTATS of everything, one behind the other, another
//! one first each time; ratios are taken within rounds. That the scans see all rows, and the sample as many pages as it is to, is looked at in each round. Statistics are gathered and not kept:
//! what keeping them takes is measured by itself.

use clap::Parser;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table};
use pagefold_format::catalog::figure;
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_utility::{LoadOptions, RunstatsOptions, Sample, Silent, TableRunstats, load, runstats};
use std::path::PathBuf;
use std::sync::Arc;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor of the rows to generate.
    #[arg(long, default_value_t = 0.5)]
    scale_factor: f64,
    /// Use this Parquet file instead.
    #[arg(long)]
    parquet: Option<PathBuf>,
    /// Percent of the pages.
    #[arg(long, default_value_t = 1.0)]
    percent: f64,
    /// Rounds.
    #[arg(long, default_value_t = 9)]
    rounds: u64,
    /// Methods of the table.
    #[arg(long, default_value = "none,page,huffman", value_delimiter = ',')]
    methods: Vec<String>,
    /// Without RUNSTATS of everything, which takes long.
    #[arg(long)]
    sample_only: bool,
}

const PAGE_BYTES: usize = 8192;

struct Bench {
    database: Database,
    table: Arc<Table>,
    percent: f64,
}

impl Bench {
    fn by_column(&self) -> Outcome<u64> {
        let mut rows = 0;
        for batch in self.database.read_view().scan(&self.table, &ScanRequest::default())? {
            rows += batch?.len() as u64;
        }
        Ok(rows)
    }

    fn by_row(&self) -> Outcome<u64> {
        let mut rows = 0;
        let mut scan = self.database.read_view().scan(&self.table, &ScanRequest::default())?.into_rows();
        while scan.next_record()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    fn runstats(&self, sample: Sample, seed: u64, keep: bool) -> Outcome<TableRunstats> {
        let options = RunstatsOptions { sample, seed, keep };
        Ok(runstats(&self.database, &["lineitem".into()], &options, &Silent)?.tables.remove(0))
    }

    /// Seconds of one of the four.
    fn run(&self, which: usize, round: u64) -> Outcome<f64> {
        let rows = self.table.row_count();
        let start = Clock::Wall.now_s();
        let seen = match which {
            0 => self.by_column()?,
            1 => self.by_row()?,
            2 => {
                let found = self.runstats(Sample::Percent(self.percent), round, false)?;
                let looked = found.statistics.looked;
                let wanted = (looked.pages as f64 * self.percent / 100.0).ceil() as u64;
                let is_right = (wanted..=wanted.max(64) + 1).contains(&looked.pages_read);
                if is_right { rows } else { return Err(format!("{} of {} pages were read", looked.pages_read, looked.pages).into()) }
            }
            _ => self.runstats(Sample::All, round, false)?.statistics.figures.get(figure::ROWS).map_or(0, |rows| rows.value as u64),
        };
        let seconds = Clock::Wall.now_s() - start;
        if seen == rows { Ok(seconds) } else { Err(format!("{seen} of {rows} rows").into()) }
    }
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir()?;
    let data = match &options.parquet {
        Some(path) => Lineitem::open(path.clone())?,
        None => Lineitem::generate(folder.path(), options.scale_factor)?,
    };
    for method in &options.methods {
        let method: Method = method.parse()?;
        let settings = Settings { pools: PoolSettings { memory_bytes: 2 << 30, ..PoolSettings::default() }, ..Settings::default() };
        let at = folder.path().join(method.to_string());
        let database = Database::open(Arc::new(OsStorage), Arc::new(OsClock), &at, OpenMode::Create, settings)?;
        let load_options = LoadOptions { method: method.into(), page_bytes: PAGE_BYTES, ..LoadOptions::default() };
        let key = vec!["l_orderkey".into(), "l_linenumber".into()];
        load(&database, "lineitem", std::slice::from_ref(&data.path), &LoadOptions { primary_key: key, ..load_options }, &Silent)?;
        let table = database.table("lineitem")?;
        let bench = Bench { database, table, percent: options.percent };
        let kinds = if options.sample_only { 3 } else { 4 };
        // Once, so that all is in memory.
        (0..kinds).try_for_each(|which| bench.run(which, 0).map(drop))?;
        let mut seconds = vec![Vec::new(); 4];
        for round in 0..options.rounds {
            for turn in 0..kinds {
                let which = (turn + round as usize) % kinds;
                seconds[which].push(bench.run(which, round + 1)?);
            }
        }
        let found = bench.runstats(Sample::Percent(options.percent), 1, false)?.statistics.looked;
        println!(
            "{method}: {} rows; {} of {} pages, {} rows in the sample",
            bench.table.row_count(),
            found.pages_read,
            found.pages,
            found.rows_read
        );
        for (which, name) in ["scan by column", "scan by row", "RUNSTATS, sample", "RUNSTATS, all"].into_iter().enumerate().take(kinds) {
            let spread = Spread::of(seconds[which].iter().copied());
            println!("  {name:18} {:9.2} ms ({:.2}-{:.2})", spread.median * 1e3, spread.low * 1e3, spread.high * 1e3);
        }
        for (which, name) in [(0, "scan by column"), (1, "scan by row")] {
            let ratio = Spread::of(seconds[2].iter().zip(&seconds[which]).map(|(own, scan)| 100.0 * own / scan));
            println!("  sample over {name:15} {:.2} % ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high);
        }
        let keeping: Vec<f64> = (0..options.rounds)
            .map(|round| {
                let start = Clock::Wall.now_s();
                bench.runstats(Sample::Pages(1), round, true)?;
                Ok(Clock::Wall.now_s() - start)
            })
            .collect::<Outcome<_>>()?;
        println!("  64 pages, kept: {:.2} ms", Spread::of(keeping).median * 1e3);
        std::fs::remove_dir_all(&at)?;
    }
    Ok(())
}

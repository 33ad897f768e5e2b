//! LINEITEM under pagefold and rival engines: size, load, seek, scan, update.
//!
//! `cargo run --release -p pagefold-lab-engine --features rivals -- --scale-factor 1`; with `--features rivals-large` RocksDB and DuckDB as well, which take long to compile.
//!
//! Every engine loads the same Parquet file and reads the same two columns; sums are compared before anything is timed. What is timed runs on one thread, everything
//! cached, in turn within each round; ratios are medians over the rounds.
//!
//! With `--indexes`: secondary indexes instead, their sizes and the time to build them.
//!
//! `--engines` and `--measure` leave only some of it, for profiles: `--engines 'pagefold fixed' --measure scan --rounds 100` under `perf record`.

mod engines;
mod secondary;

use clap::Parser;
use engines::{Columns, Engine, Pagefold, What};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_lab::measure::{Clock, Contender, interleave};
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_lab_engine::random::Random;
use std::cell::RefCell;
use std::path::PathBuf;

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
    /// Memory of pagefold's pools, in MB.
    #[arg(long, default_value_t = 3000)]
    memory_mb: usize,
    /// Rounds of seek, scan and update.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Look-ups a round.
    #[arg(long, default_value_t = 200_000)]
    seeks: usize,
    /// Updates a round.
    #[arg(long, default_value_t = 50_000)]
    updates: usize,
    /// Only engines whose names contain one of these.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// What is measured: seek, scan, seek-all, scan-all (of all columns), scan-batches (all columns by column, as Arrow has them), update.
    #[arg(long, value_delimiter = ',', default_values_t = ["seek", "scan", "update"].map(String::from))]
    measure: Vec<String>,
    /// Build secondary indexes instead, `rounds` times each.
    #[arg(long)]
    indexes: bool,
}

struct Loaded {
    engine: Box<dyn Engine>,
    load_s: f64,
    load_cpu_s: f64,
}

fn loaded<E: Engine + 'static>(load: impl FnOnce() -> Outcome<E>) -> Outcome<Loaded> {
    let (wall, cpu) = (Clock::Wall.now_s(), Clock::Thread.now_s());
    let engine = Box::new(load()?);
    Ok(Loaded { engine, load_s: Clock::Wall.now_s() - wall, load_cpu_s: Clock::Thread.now_s() - cpu })
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
    let memory = options.memory_mb << 20;
    if options.indexes {
        return secondary::run(&folder, &data, &secondary::Settings { memory_bytes: memory, rounds: options.rounds });
    }
    let mut keys = Vec::new();
    data.records(|record| {
        keys.push(data.key(record)?);
        Ok(())
    })?;
    println!("{} rows; Parquet {:.1} MB\n", keys.len(), std::fs::metadata(&data.path)?.len() as f64 / 1e6);
    let plain = (IndexFormat::Plain, 8192);
    let ours = [
        (Method::None, 8192, plain),
        (Method::Row, 8192, plain),
        (Method::Page, 16384, plain),
        (Method::Page, 16384, (IndexFormat::Prefix, 8192)),
        (Method::Fixed, 8192, plain),
        (Method::Fixed, 8192, (IndexFormat::Fold, 16384)),
        (Method::Huffman, 8192, plain),
    ];
    let is_wanted = |name: &str| options.engines.is_empty() || options.engines.iter().any(|part| name.contains(part.as_str()));
    let mut engines = Vec::new();
    for (i, (method, page_bytes, key)) in ours.into_iter().enumerate() {
        if is_wanted(&engines::name(method, page_bytes, key)) {
            engines.push(loaded(|| Pagefold::load(&folder.join(format!("pagefold-{i}")), &data, method, page_bytes, key, memory))?);
        }
    }
    #[cfg(feature = "rivals")]
    {
        if is_wanted("LMDB") {
            engines.push(loaded(|| engines::Lmdb::load(&folder.join("lmdb"), &data))?);
        }
        if is_wanted("SQLite") {
            engines.push(loaded(|| engines::Sqlite::load(&folder.join("lineitem.sqlite"), &data))?);
        }
    }
    #[cfg(feature = "rivals-large")]
    {
        if is_wanted("RocksDB") {
            engines.push(loaded(|| engines::RocksDb::load(&folder.join("rocksdb"), &data, memory))?);
        }
        if is_wanted("DuckDB") {
            engines.push(loaded(|| engines::DuckDb::load(&folder.join("duckdb"), &data))?);
        }
    }
    println!("{:40} {:>10} {:>8} {:>8}", "", "size [MB]", "load [s]", "CPU [s]");
    for loaded in &engines {
        let size = loaded.engine.size_bytes()? as f64 / 1e6;
        println!("{:40} {size:>10.1} {:>8.2} {:>8.2}", loaded.engine.name(), loaded.load_s, loaded.load_cpu_s);
    }
    measure(&options, &keys, engines.into_iter().map(|l| l.engine).collect())
}

fn measure(options: &Options, keys: &[(i64, i64)], engines: Vec<Box<dyn Engine>>) -> Outcome<()> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut some = |count: usize| -> Vec<(i64, i64)> { (0..count).map(|_| keys[random.below(keys.len())]).collect() };
    let (seeks, updates) = (some(options.seeks), some(options.updates));
    let engines: Vec<RefCell<Box<dyn Engine>>> = engines.into_iter().map(RefCell::new).collect();
    let offering = |what: What| -> Vec<&RefCell<Box<dyn Engine>>> { engines.iter().filter(|e| e.borrow().offers(what)).collect() };
    let run = |engine: &mut dyn Engine, what: What, round: i64| match what {
        What::Seek(columns) => engine.seek(&seeks, columns),
        What::Scan(columns) => engine.scan(columns),
        What::Update => engine.update(&updates, 100 * (round + 1)).map(|()| 0),
    };
    let compare = |what: What, found: Vec<i64>| -> Outcome<()> {
        if found.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("the engines disagree on {what:?}: {found:?}").into());
        }
        Ok(())
    };
    let sums =
        |what: What| compare(what, offering(what).into_iter().map(|e| run(e.borrow_mut().as_mut(), what, 0)).collect::<Outcome<_>>()?);
    // Twice: the second time everything is cached.
    for _ in 0..2 {
        sums(What::Scan(Columns::Two))?;
        sums(What::Seek(Columns::Two))?;
    }
    let measures = [
        ("seek", "seek, two columns", What::Seek(Columns::Two), seeks.len()),
        ("scan", "scan, two columns", What::Scan(Columns::Two), keys.len()),
        ("seek-all", "seek, all columns", What::Seek(Columns::All), seeks.len()),
        ("scan-all", "scan, all columns", What::Scan(Columns::All), keys.len()),
        ("scan-batches", "scan, all columns by column", What::Scan(Columns::Batches), keys.len()),
        ("update", "update, 100 a transaction", What::Update, updates.len()),
    ];
    for (name, text, what, rows) in measures {
        if !options.measure.iter().any(|wanted| wanted == name) {
            continue;
        }
        if what != What::Update {
            sums(what)?;
        }
        report(text, options.rounds, rows, offering(what), |engine, round| run(engine, what, round));
    }
    let after = |engine: &RefCell<Box<dyn Engine>>| engine.borrow_mut().seek(&updates, Columns::Two);
    compare(What::Update, offering(What::Update).into_iter().map(after).collect::<Outcome<_>>()?)
}

fn report(
    what: &str,
    rounds: usize,
    rows: usize,
    engines: Vec<&RefCell<Box<dyn Engine>>>,
    run: impl Fn(&mut dyn Engine, i64) -> Outcome<i64>,
) {
    let run = &run;
    let contenders = engines
        .into_iter()
        .map(|engine| {
            let name = engine.borrow().name();
            let mut round = 0;
            Contender::new(name, move || {
                round += 1;
                run(engine.borrow_mut().as_mut(), round).unwrap_or_else(|e| panic!("{what}: {e}")) as u64
            })
        })
        .collect();
    let timings = interleave(Clock::Thread, rounds, contenders);
    println!("\n{what:40} {:>9} {:>9} {:>22}", "k rows/s", "ns/row", "times the first (spread)");
    for timing in &timings {
        let seconds = timing.spread().median;
        let ratio = timings[0].speed_over(timing);
        println!(
            "{:40} {:>9.0} {:>9.1} {:>10.2} ({:.2}-{:.2})",
            timing.name,
            rows as f64 / seconds / 1e3,
            seconds / rows as f64 * 1e9,
            ratio.median,
            ratio.low,
            ratio.high
        );
    }
}

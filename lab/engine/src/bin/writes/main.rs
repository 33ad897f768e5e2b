//! LINEITEM rows written one by one, 100 a transaction: in key order, in random order, then mixed; pagefold by method beside SQLite, LMDB and RocksDB.
//!
//! `cargo run --release -p pagefold-lab-engine --bin writes --features rivals -- --rows 400000`; with `--features rocksdb` RocksDB as well, which takes long to compile.
//!
//! Every round begins with an empty database, for every engine in turn; the order rotates. Nobody syncs; what pagefold logs it logs. After a round all engines must hold the same rows: their
//! sums are compared. Told are medians over the rounds and their spread, the slowest transaction, what the rows take on disk after the mixed work, beside a fresh load of the same rows (REORG, VACUUM), and how many whole pages were encoded anew for each row that came, and for each change then.

mod engine;
mod pagefold;
#[cfg(feature = "rivals")]
mod rivals;
#[cfg(feature = "rocksdb")]
mod rocks;
mod work;

use clap::Parser;
use engine::Engine;
use pagefold::Pagefold;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_lab::lineitem::Selection;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::database::Stored;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use work::{Order, Row, Work};

#[derive(Debug, Parser)]
struct Options {
    /// Rows that are inserted.
    #[arg(long, default_value_t = 400_000)]
    rows: usize,
    /// Changes of the mixed work: half inserts, a quarter updates, a quarter deletes.
    #[arg(long, default_value_t = 200_000)]
    mixed: usize,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// In which order rows come: ascending, random.
    #[arg(long, value_delimiter = ',', default_values_t = ["ascending", "random"].map(String::from))]
    orders: Vec<String>,
    /// Only engines whose names contain one of these.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Rows and changes of a transaction.
    #[arg(long, default_value = "100")]
    per_transaction: NonZeroUsize,
    /// pagefold is given the rows of a transaction all at once.
    #[arg(long)]
    at_once: bool,
    /// Memory of pagefold's pools, in MB.
    #[arg(long, default_value_t = 1000)]
    memory_mb: usize,
    /// Folder for the databases; a temporary one by default.
    #[arg(long)]
    folder: Option<PathBuf>,
}

type Open = Box<dyn Fn(&Path) -> Outcome<Box<dyn Engine>>>;

fn contenders(options: &Options) -> Vec<(String, Open)> {
    let memory = options.memory_mb << 20;
    let plain = (IndexFormat::Plain, 8192);
    let prefix = (IndexFormat::Prefix, 8192);
    let ours = [
        (Method::None, 8192, plain),
        (Method::None, 8192, prefix),
        (Method::Row, 8192, prefix),
        (Method::Fixed, 8192, prefix),
        (Method::Huffman, 8192, prefix),
        (Method::Page, 16384, plain),
        (Method::Page, 16384, prefix),
    ];
    let mut all: Vec<(String, Open)> = Vec::new();
    for (method, page_bytes, key) in ours {
        let stored = Stored { method, page_bytes, key };
        let at_once = options.at_once;
        let open = move |folder: &Path| Ok(Box::new(Pagefold::create(folder, stored, memory, at_once)?) as Box<dyn Engine>);
        all.push((format!("{method}, {} key", key.0), Box::new(open)));
    }
    #[cfg(feature = "rivals")]
    {
        all.push(("SQLite".into(), Box::new(|folder| Ok(Box::new(rivals::Sqlite::create(folder)?)))));
        all.push(("LMDB".into(), Box::new(|folder| Ok(Box::new(rivals::Lmdb::create(folder)?)))));
    }
    #[cfg(feature = "rocksdb")]
    all.push(("RocksDB, zstd".into(), Box::new(|folder| Ok(Box::new(rocks::RocksDb::create(folder)?)))));
    all.retain(|(name, _)| options.engines.is_empty() || options.engines.iter().any(|part| name.contains(part.as_str())));
    all
}

/// What the rounds of an engine came to.
#[derive(Debug, Default)]
struct Figures {
    inserts: Vec<f64>,
    mixed: Vec<f64>,
    /// Of each round: milliseconds that passed, and those of work.
    slowest_ms: Vec<(f64, f64)>,
    bytes: [u64; 3],
    fresh_bytes: u64,
    /// Pages encoded while rows were inserted, and then.
    images: [u64; 2],
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let scratch = tempfile::tempdir()?;
    let folder = options.folder.clone().unwrap_or_else(|| scratch.path().to_path_buf());
    let selection = Selection { scale_factor: 1.0, offset: 0, step: 1 };
    let items: Vec<_> = selection.items().take(options.rows + options.mixed / 2).collect();
    let rows: Vec<Row<'_>> = items.iter().map(Row::of).collect();
    let contenders = contenders(&options);
    for order in [Order::Ascending, Order::Random] {
        if !options.orders.iter().any(|name| name == order.name()) {
            continue;
        }
        let work = Work::new(&rows, (options.rows, options.mixed), order, options.per_transaction.get());
        let mut figures: Vec<Figures> = contenders.iter().map(|_| Figures::default()).collect();
        for round in 0..options.rounds {
            let mut sums = Vec::new();
            for turn in 0..contenders.len() {
                let at = (turn + round) % contenders.len();
                let (name, open) = &contenders[at];
                let place = folder.join("writes");
                std::fs::create_dir_all(&place)?;
                let mut engine = open(&place)?;
                let inserted = work.insert(engine.as_mut())?;
                let (loaded_bytes, images) = (engine.size_bytes()?, engine.images());
                let mixed = work.mix(engine.as_mut())?;
                let sum = engine.sum()?;
                if round == 0 {
                    figures[at].bytes = [loaded_bytes, engine.size_bytes()?, engine.log_bytes()];
                    figures[at].images = [images, engine.images() - images];
                }
                drop(engine);
                std::fs::remove_dir_all(&place)?;
                if round == 0 {
                    std::fs::create_dir_all(&place)?;
                    let mut fresh = open(&place)?;
                    work.insert_final(fresh.as_mut())?;
                    fresh.compact()?;
                    figures[at].fresh_bytes = fresh.size_bytes()?;
                    sums.push((format!("{name}, fresh"), fresh.sum()?));
                    drop(fresh);
                    std::fs::remove_dir_all(&place)?;
                }
                sums.push((name.clone(), sum));
                figures[at].inserts.push(inserted.rate());
                figures[at].mixed.push(mixed.rate());
                let slower = if inserted.slowest_s.0 > mixed.slowest_s.0 { inserted } else { mixed };
                figures[at].slowest_ms.push((slower.slowest_s.0 * 1e3, slower.slowest_s.1 * 1e3));
            }
            if let Some((name, sum)) = sums.iter().find(|(_, sum)| *sum != sums[0].1) {
                return Err(format!("{name} has {sum:?}, {} has {:?}", sums[0].0, sums[0].1).into());
            }
        }
        print(order, &options, &contenders, &figures);
    }
    Ok(())
}

fn print(order: Order, options: &Options, contenders: &[(String, Open)], figures: &[Figures]) {
    println!(
        "\n{} rows in {} order, then {} changes; thousands a second, median (least to most) of {} rounds",
        options.rows,
        order.name(),
        options.mixed,
        options.rounds
    );
    println!(
        "{:<22} {:>22} {:>22} {:>12} {:>6} {:>9} {:>9} {:>9} {:>9} {:>15}",
        "", "inserts", "mixed", "slowest ms", "worked", "MB", "mixed MB", "fresh MB", "log MB", "images a row"
    );
    for ((name, _), found) in contenders.iter().zip(figures) {
        let slowest = found.slowest_ms.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
        let [loaded, mixed, log] = found.bytes.map(|bytes| bytes as f64 / 1e6);
        println!(
            "{name:<22} {:>22} {:>22} {:>12.1} {:>6.1} {loaded:>9.1} {mixed:>9.1} {:>9.1} {log:>9.1} {:>7.4} {:>7.4}",
            spread(&found.inserts),
            spread(&found.mixed),
            slowest.0,
            slowest.1,
            found.fresh_bytes as f64 / 1e6,
            found.images[0] as f64 / options.rows as f64,
            found.images[1] as f64 / options.mixed as f64,
        );
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn spread(rates: &[f64]) -> String {
    let sorted = sorted(rates);
    let Some(median) = sorted.get(sorted.len() / 2) else { return String::new() };
    format!("{:.1} ({:.1} to {:.1})", median / 1e3, sorted[0] / 1e3, sorted[sorted.len() - 1] / 1e3)
}

//! How much faster two threads scan a table than one: all columns of LINEITEM, by column, one snapshot for both.
//!
//! `cargo run --release -p pagefold-lab-engine --bin scan_threads`
//!
//! Elapsed times; one thread and several take turns, after the sums of what they read were compared. A table is loaded under each method, in pages of 16 KB.

use clap::Parser;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::Method;
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::measure::{Clock, Contender, Spread, interleave};
use pagefold_lab_engine::data::{EXTENDED_PRICE, Lineitem, Outcome, QUANTITY};
use pagefold_utility::{LoadOptions, Silent, load};
use std::sync::Arc;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor of the rows to generate.
    #[arg(long, default_value_t = 0.5)]
    scale_factor: f64,
    /// Threads against one.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Rounds.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Methods of the table.
    #[arg(long, default_value = "page,fixed,none", value_delimiter = ',')]
    methods: Vec<String>,
    /// Two columns instead of all.
    #[arg(long)]
    two: bool,
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir()?;
    let data = Lineitem::generate(folder.path(), options.scale_factor)?;
    for method in &options.methods {
        let method: Method = method.parse()?;
        let settings = Settings { pools: PoolSettings { memory_bytes: 3 << 30, ..PoolSettings::default() }, ..Settings::default() };
        let at = folder.path().join(method.to_string());
        let database = Database::open(Arc::new(OsStorage), Arc::new(OsClock), &at, OpenMode::Create, settings)?;
        let load_options = LoadOptions { method: method.into(), page_bytes: 16384, primary_key: Vec::new(), ..LoadOptions::default() };
        load(&database, "lineitem", std::slice::from_ref(&data.path), &load_options, &Silent)?;
        let table = database.table("lineitem")?;
        let columns = options.two.then(|| vec![QUANTITY, EXTENDED_PRICE]);
        let sum = |threads: usize| -> u64 {
            let mut transaction = database.begin(TransactionOptions::default());
            let Ok(view) = transaction.read_view() else { return 0 };
            let request = ScanRequest { columns: columns.clone(), ..ScanRequest::default() };
            let Ok(scan) = view.scan(&table, &request) else { return 0 };
            let parts = scan.split(threads);
            std::thread::scope(|scope| {
                let sum_of = |part: pagefold_engine::database::Scan| {
                    part.map(|batch| {
                        let Ok(batch) = batch else { return 0 };
                        let summed = batch.columns().iter().filter(|column| [QUANTITY, EXTENDED_PRICE].contains(&column.number()));
                        summed.map(|column| column.ints().iter().sum::<i64>()).sum::<i64>() as u64
                    })
                    .fold(0, u64::wrapping_add)
                };
                let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || sum_of(part))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap_or(0)).fold(0, u64::wrapping_add)
            })
        };
        if sum(1) == 0 {
            return Err("nothing was read".into());
        }
        let several = options.threads;
        let contenders = vec![Contender::new("one", || sum(1)), Contender::new("several", || sum(several))];
        let timings = interleave(Clock::Wall, options.rounds, contenders);
        let [one, more] = timings.as_slice() else { return Err("two sides".into()) };
        let Spread { low, median, high } = more.speed_over(one);
        println!(
            "{method}: one thread {:.1} ms, {several} threads {median:.2} times as fast ({low:.2}-{high:.2})",
            one.spread().median * 1e3
        );
    }
    Ok(())
}

//! How much faster two threads scan a table than one: all columns of LINEITEM, by column, one snapshot for both.
//!
//! `cargo run --release -p pagefold-lab-engine --bin scan_threads`
//!
//! Elapsed times; one thread and several take turns, after the sums of what they read were compared. A table is loaded under each method, in pages of 16 KB.

use clap::Parser;
use pagefold_engine::Error;
use pagefold_engine::database::{Database, OpenMode, Scan, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table};
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

/// The sum of two columns, read by so many threads of one snapshot.
fn scan(database: &Database, table: &Arc<Table>, columns: Option<&[usize]>, threads: usize) -> Result<u64, Error> {
    let mut transaction = database.begin(TransactionOptions::default());
    let request = ScanRequest { columns: columns.map(<[usize]>::to_vec), ..ScanRequest::default() };
    let parts = transaction.read_view()?.scan(table, &request)?.split(threads);
    let sum_of = |part: Scan| {
        let mut sum = 0;
        for batch in part {
            let batch = batch?;
            let summed = batch.columns().iter().filter(|column| [QUANTITY, EXTENDED_PRICE].contains(&column.number()));
            sum += summed.map(|column| column.ints().iter().sum::<i64>()).sum::<i64>();
        }
        Ok::<_, Error>(sum as u64)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || sum_of(part))).collect();
        let died = || Error::Parameter("a thread has panicked".into());
        threads.into_iter().map(|thread| thread.join().map_err(|_| died())?).try_fold(0, |all: u64, sum| Ok(all.wrapping_add(sum?)))
    })
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
        let sum = |threads| scan(&database, &table, columns.as_deref(), threads);
        if sum(1)? == 0 || sum(options.threads)? == 0 {
            return Err("nothing was read".into());
        }
        let several = options.threads;
        // One that fails has another sum than the other one.
        let contenders =
            vec![Contender::new("one", || sum(1).unwrap_or(u64::MAX)), Contender::new("several", || sum(several).unwrap_or(u64::MAX - 1))];
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

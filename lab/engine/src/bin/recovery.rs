//! How long recovery takes after a crash with much log behind the last checkpoint.
//!
//! `cargo run --release -p pagefold-lab-engine --bin recovery -- --scale-factor 1 --log-mb 1024`
//!
//! A process of its own loads LINEITEM, updates random rows until the log has its length, and is aborted. Then copies of the database are opened, and the sum over the updated column is
//! compared with what that process had committed.

use clap::Parser;
use pagefold_engine::database::{Database, Durability, OpenMode, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table};
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::{Lineitem, Outcome, QUANTITY};
use pagefold_types::{Rid, ValueRef};
use pagefold_utility::{LoadOptions, Silent, load};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 0.1)]
    scale_factor: f64,
    /// Megabytes of log behind the checkpoint.
    #[arg(long, default_value_t = 128)]
    log_mb: u64,
    /// Megabytes of buffer pools.
    #[arg(long, default_value_t = 256)]
    pool_mb: usize,
    /// Compression of the table.
    #[arg(long, default_value = "fixed")]
    method: Method,
    /// Copies to recover.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Be the process that is aborted, in this folder.
    #[arg(long, hide = true)]
    crash_in: Option<PathBuf>,
}

fn open(folder: &Path, options: &Options, checkpoint_bytes: u64) -> Outcome<Database> {
    let pools = PoolSettings { memory_bytes: options.pool_mb << 20, ..PoolSettings::default() };
    let settings = Settings { pools, checkpoint_bytes, ..Settings::default() };
    Ok(Database::open(Arc::new(OsStorage), Arc::new(OsClock), folder, OpenMode::Create, settings)?)
}

/// Rows and the sum of their quantities, in hundredths.
fn digest(database: &Database, table: &Arc<Table>, mut rids: Option<&mut Vec<Rid>>) -> Outcome<(u64, i128)> {
    let (mut rows, mut sum) = (0, 0);
    let mut scan = database.read_view().scan(table, &ScanRequest::default())?.into_rows();
    while let Some((rid, record)) = scan.next_record()? {
        rows += 1;
        sum += table.layout().decimal_at(record, QUANTITY).ok().flatten().unwrap_or(0);
        if let Some(rids) = &mut rids {
            rids.push(rid);
        }
    }
    Ok((rows, sum))
}

/// Updates random rows, a hundred a transaction, says what is committed, and is gone.
fn crash(folder: &Path, options: &Options) -> Outcome<()> {
    let database = open(&folder.join("database"), options, u64::MAX)?;
    let method = LoadOptions {
        method: options.method.into(),
        primary_key: vec!["l_orderkey".into(), "l_linenumber".into()],
        ..LoadOptions::default()
    };
    load(&database, "lineitem", &[folder.join("lineitem.parquet")], &method, &Silent)?;
    let table = database.table("lineitem")?;
    let mut rids = Vec::new();
    digest(&database, &table, Some(&mut rids))?;
    let mut random = 1u64;
    let mut transactions = 0u64;
    while database.log_bytes_since_checkpoint() < options.log_mb << 20 {
        let mut transaction = database.begin(TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() });
        for _ in 0..100 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rid = rids[(random >> 33) as usize % rids.len()];
            transaction.update(&table, rid, &[(QUANTITY, ValueRef::Decimal((random >> 40) as i128 % 5000 + 1))])?;
        }
        transaction.commit()?;
        transactions += 1;
    }
    let mut last = database.begin(TransactionOptions::default());
    last.update(&table, rids[0], &[(QUANTITY, ValueRef::Decimal(77))])?;
    last.commit()?;
    let (rows, sum) = digest(&database, &table, None)?;
    std::fs::write(folder.join("expected"), format!("{rows} {sum} {transactions} {}", database.log_bytes_since_checkpoint()))?;
    std::process::abort()
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), &target)?),
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    if let Some(folder) = &options.crash_in {
        return crash(folder, &options);
    }
    let folder = tempfile::tempdir()?;
    Lineitem::generate(folder.path(), options.scale_factor)?;
    let mut process = std::process::Command::new(std::env::current_exe()?);
    process.args(std::env::args_os().skip(1)).arg("--crash-in").arg(folder.path());
    process.status()?;
    let expected = std::fs::read_to_string(folder.path().join("expected"))?;
    let words: Vec<i128> = expected.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [rows, sum, transactions, log] = words[..] else { return Err("what was committed is not known".into()) };
    println!("{rows} rows under {}, {transactions} transactions of 100 updates, {} MB of log", options.method, log >> 20);
    let mut seconds = Vec::new();
    for round in 0..options.rounds {
        let database = folder.path().join(format!("copy{round}"));
        copy(&folder.path().join("database"), &database)?;
        let start = Clock::Wall.now_s();
        let database = open(&database, &options, u64::MAX)?;
        seconds.push(Clock::Wall.now_s() - start);
        let found = digest(&database, &database.table("lineitem")?, None)?;
        if (i128::from(found.0), found.1) != (rows, sum) {
            return Err(format!("found {found:?}, committed were {rows} rows with the sum {sum}").into());
        }
    }
    let spread = Spread::of(seconds);
    println!("recovery with pools of {} MB: {:.2} s ({:.2} to {:.2})", options.pool_mb, spread.median, spread.low, spread.high);
    Ok(())
}

//! What durable commits cost, and how many bytes of log changes take.
//!
//! `cargo run --release -p pagefold-lab-engine --bin commits`
//!
//! One client against a bare loop of write and sync; 64 clients against one, also on a device whose syncs take a millisecond longer; log bytes of inserted and updated rows of
//! LINEITEM under each method. Ratios are of rounds in which both sides took turns.

use clap::{Parser, ValueEnum};
use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_io::{Clock as _, File, MemoryStorage, OpenOptions, OsClock, OsStorage, SlowSync, Storage};
use pagefold_lab::measure::{Clock, Contender, Spread, interleave};
use pagefold_lab_engine::data::{Lineitem, Outcome, QUANTITY};
use pagefold_types::{Column, DataType, Rid, Schema, Value, ValueRef};
use pagefold_utility::{LoadOptions, Silent, load};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// Commits of each side in a round.
    #[arg(long, default_value_t = 3200)]
    commits: u64,
    /// Rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Threads against one.
    #[arg(long, default_value_t = 64)]
    clients: u64,
    /// TPC-H scale factor for the bytes of the log.
    #[arg(long, default_value_t = 0.02)]
    scale_factor: f64,
    /// What is measured; without, everything.
    #[arg(long, value_enum)]
    only: Option<Part>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Commits on this device.
    Device,
    /// Commits on the modelled device.
    Model,
    /// Bytes of log.
    Bytes,
}

const BLOCK: usize = 4096;

/// A table of accounts in an open database.
struct Accounts {
    database: Database,
    table: Arc<Table>,
    rids: Vec<Rid>,
    next: AtomicU64,
}

impl Accounts {
    fn new(storage: Arc<dyn Storage>, folder: &Path, rows: i64) -> Outcome<Accounts> {
        let database = Database::open(storage, Arc::new(OsClock), folder, OpenMode::Create, Settings::default())?;
        let columns = vec![Column::new("number", DataType::BigInt, false), Column::new("balance", DataType::BigInt, false)];
        let mut change = database.change();
        change.create_table(TableAttributes::new("account", Schema::new(columns)?))?;
        change.commit()?;
        let table = database.table("account")?;
        let mut transaction = database.begin(TransactionOptions::default());
        let rids = (0..rows).map(|n| transaction.insert(&table, &[ValueRef::Int(n), ValueRef::Int(0)])).collect::<Result<_, _>>()?;
        transaction.commit()?;
        Ok(Accounts { database, table, rids, next: AtomicU64::new(0) })
    }

    /// So many durable commits of one update each, by so many threads together.
    fn commit(&self, commits: u64, clients: u64) -> u64 {
        let client = || {
            for _ in 0..commits / clients {
                let n = self.next.fetch_add(1, Ordering::Relaxed);
                let rid = self.rids[n as usize % self.rids.len()];
                let mut transaction = self.database.begin(TransactionOptions::default());
                let found = transaction.update(&self.table, rid, &[(1, ValueRef::Int(n as i64))]);
                assert!(found.expect("an update"), "row {rid} is gone");
                transaction.commit().expect("a commit");
            }
        };
        match clients {
            1 => client(),
            _ => std::thread::scope(|scope| (0..clients).for_each(|_| drop(scope.spawn(client)))),
        }
        commits / clients * clients
    }
}

/// Writes a block and syncs, again and again, in a file that has its length and its blocks.
fn bare(file: &dyn File, commits: u64) -> u64 {
    let block = [7; BLOCK];
    for n in 0..commits {
        file.write_at(&block, n % 4096 * BLOCK as u64).expect("a write");
        file.sync().expect("a sync");
    }
    commits
}

fn print(what: &str, ratio: Spread, rate: f64) {
    println!("{what}: {:.2}x ({:.2} to {:.2}), {rate:.0} commits/s", ratio.median, ratio.low, ratio.high);
}

fn compare(options: &Options, device: &str, storage: &Arc<dyn Storage>, folder: &Path) -> Outcome<()> {
    let clients = options.clients;
    let commits = options.commits / clients * clients;
    let accounts = Accounts::new(Arc::clone(storage), &folder.join("database"), 10_000)?;
    let file = storage.open(&folder.join("bare"), &OpenOptions::create())?;
    file.write_at(&vec![1; 4096 * BLOCK], 0)?;
    file.sync()?;
    let timings = interleave(
        Clock::Wall,
        options.rounds,
        vec![
            Contender::new("bare", || bare(file.as_ref(), commits)),
            Contender::new("one", || accounts.commit(commits, 1)),
            Contender::new("many", || accounts.commit(commits, clients)),
        ],
    );
    let [bare, one, many] = timings.as_slice() else { return Err("three sides".into()) };
    let rate = |seconds: f64| commits as f64 / seconds;
    println!("{device}: a bare write + sync {:.0}/s", rate(bare.spread().median));
    print("  one client, against that", one.speed_over(bare), rate(one.spread().median));
    print(&format!("  {clients} clients, against one"), many.speed_over(one), rate(many.spread().median));
    Ok(())
}

/// Rows; bytes of log for inserting all of them, and for updating a column of each; pages that were encoded anew for either.
fn log_bytes(folder: &Path, data: &Lineitem, method: Method) -> Outcome<(u64, u64, u64, [u64; 2])> {
    let folder = folder.join(method.name());
    let settings = Settings { checkpoint_bytes: u64::MAX, ..Settings::default() };
    let database = Database::open(Arc::new(OsStorage), Arc::new(OsClock), &folder, OpenMode::Create, settings)?;
    // The first load gives the table its dictionary.
    let first = LoadOptions { method: method.into(), ..LoadOptions::default() };
    load(&database, "lineitem", std::slice::from_ref(&data.path), &first, &Silent)?;
    let table = database.table("lineitem")?;
    let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
    let (mut rows, mut rids) = (Vec::new(), Vec::new());
    data.records(|record| {
        rows.push(record.to_vec());
        Ok(())
    })?;
    let start = database.log_bytes_since_checkpoint();
    for chunk in rows.chunks(100) {
        let mut transaction = database.begin(options);
        for record in chunk {
            let values: Vec<Value> = table.values(record)?;
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            rids.push(transaction.insert(&table, &values)?);
        }
        transaction.commit()?;
    }
    let inserted = database.log_bytes_since_checkpoint() - start;
    let images = table.images_built();
    for (number, chunk) in rids.chunks(100).enumerate() {
        let mut transaction = database.begin(options);
        for rid in chunk {
            let value = ValueRef::Decimal((number as i128 % 50 + 1) * 100 + 1);
            transaction.update(&table, *rid, &[(QUANTITY, value)])?;
        }
        transaction.commit()?;
    }
    let updated = database.log_bytes_since_checkpoint() - start - inserted;
    Ok((rows.len() as u64, inserted, updated, [images, table.images_built() - images]))
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir()?;
    let wanted = |part| options.only.is_none_or(|only| only == part);
    if wanted(Part::Device) {
        let own: Arc<dyn Storage> = Arc::new(OsStorage);
        compare(&options, "this device", &own, folder.path())?;
    }
    if wanted(Part::Model) {
        compare_modelled(&options)?;
    }
    if wanted(Part::Bytes) {
        compare_log_bytes(&options, folder.path())?;
    }
    Ok(())
}

fn compare_modelled(options: &Options) -> Outcome<()> {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    memory.create_directory(Path::new("m"))?;
    let modelled: Arc<dyn Storage> = Arc::new(SlowSync::new(memory, || OsClock.sleep(Duration::from_millis(1))));
    compare(options, "a device in memory with syncs of 1 ms", &modelled, Path::new("m"))
}

fn compare_log_bytes(options: &Options, folder: &Path) -> Outcome<()> {
    let data = Lineitem::generate(folder, options.scale_factor)?;
    let mut plain = (0, 0);
    for method in Method::ALL {
        let (rows, inserted, updated, images) = log_bytes(folder, &data, method)?;
        if method == Method::None {
            plain = (inserted, updated);
        }
        println!(
            "log under {method}: {:.1} bytes a row inserted ({:.2}x of none), {:.1} bytes a row updated ({:.2}x); pages encoded anew for these {rows} rows: {} and {}",
            inserted as f64 / rows as f64,
            inserted as f64 / plain.0 as f64,
            updated as f64 / rows as f64,
            updated as f64 / plain.1 as f64,
            images[0],
            images[1]
        );
    }
    Ok(())
}

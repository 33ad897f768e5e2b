//! A table that is written anew, from each method to each other, beside threads that change and read its rows.
//!
//! `cargo run --release -p pagefold-lab-engine --bin reorg_beside`
//!
//! LINEITEM with its key. Each writer changes, deletes and inserts rows of its own, ten a transaction, and knows what it has committed; each reader looks rows up by their keys. First for a while
//! without REORG, then during it: how much all of them get done, how long the slowest transaction and the slowest look-up take, and how long writers were kept out. After each REORG
//! they stop for a moment: the rows, found by a scan and by the key, must be those that the writers know. No transaction may fail. Log on, nobody syncs, but REORG.

use clap::Parser;
use pagefold_engine::database::{Database, Durability, ScanRequest, Transaction, TransactionOptions};
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table};
use pagefold_engine::{Error, Silent};
use pagefold_lab::lineitem::{Selection, values};
use pagefold_lab::measure::Spread;
use pagefold_lab_engine::data::{ORDER_KEY, Outcome, QUANTITY};
use pagefold_lab_engine::database::{Stored, create_lineitem};
use pagefold_lab_engine::random::Random;
use pagefold_types::ValueRef;
use pagefold_utility::{ReorgOptions, Setting, reorg};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

const ROWS_PER_TRANSACTION: usize = 10;
const LINE_NUMBER: usize = 3;

#[derive(Debug, Parser)]
struct Options {
    /// Rows.
    #[arg(long, default_value_t = 300_000)]
    rows: usize,
    /// Threads that change rows.
    #[arg(long, default_value_t = 4)]
    writers: usize,
    /// Threads that read.
    #[arg(long, default_value_t = 4)]
    readers: usize,
    /// Seconds without REORG, before each one.
    #[arg(long, default_value_t = 1.0)]
    before_s: f64,
    /// Go on for so long; else each method goes to each other once.
    #[arg(long)]
    minutes: Option<f64>,
    /// Transactions a second of each writer at most; else as many as there can be.
    #[arg(long)]
    rate: Option<f64>,
    /// Memory of the pools, in MB.
    #[arg(long, default_value_t = 500)]
    memory_mb: usize,
}

/// What threads have done since it was last asked.
#[derive(Debug, Default)]
struct Done {
    transactions: AtomicU64,
    look_ups: AtomicU64,
    slowest_transaction_ns: AtomicU64,
    slowest_look_up_ns: AtomicU64,
    looked_up_again: AtomicU64,
    /// What is committed: rows, and the sum of their quantities.
    rows: AtomicI64,
    quantities: AtomicI64,
}

impl Done {
    /// Transactions, look-ups, the slowest of each in ms.
    fn take(&self) -> (u64, u64, f64, f64) {
        let ms = |ns: &AtomicU64| ns.swap(0, Ordering::Relaxed) as f64 / 1e6;
        let (transactions, look_ups) = (self.transactions.swap(0, Ordering::Relaxed), self.look_ups.swap(0, Ordering::Relaxed));
        (transactions, look_ups, ms(&self.slowest_transaction_ns), ms(&self.slowest_look_up_ns))
    }
}

type Row<'a> = [ValueRef<'a>; 16];

fn unsynced() -> TransactionOptions {
    TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() }
}

fn of_now(t: &mut Transaction<'_>) -> Result<(Arc<Table>, Arc<Index>), Error> {
    let table = t.table("lineitem")?;
    let key = t.indexes(&table)?.into_iter().next().ok_or_else(|| Error::Parameter("there is no key".into()))?;
    Ok((table, key))
}

/// Does something with the table that has the name now.
fn following<R>(
    t: &mut Transaction<'_>,
    done: &Done,
    run: impl Fn(&mut Transaction<'_>, &Table, &Index) -> Result<R, Error>,
) -> Result<R, Error> {
    loop {
        match of_now(t).and_then(|(table, key)| run(t, &table, &key)) {
            Err(Error::Stale { .. }) => drop(done.looked_up_again.fetch_add(1, Ordering::Relaxed)),
            result => return result,
        }
    }
}

/// A writer's rows: what it has committed of each.
struct Own<'a> {
    rows: Vec<(&'a Row<'a>, Option<i64>)>,
    random: Random,
}

impl Own<'_> {
    fn transaction(&mut self, database: &Database, done: &Done) -> Result<(), Error> {
        let start = Instant::now();
        let mut t = database.begin(unsynced());
        let mut came = (0, 0);
        for _ in 0..ROWS_PER_TRANSACTION {
            let at = self.random.below(self.rows.len());
            let (how, quantity) = (self.random.below(10), self.random.below(5_000) as i64);
            let (row, now) = &mut self.rows[at];
            let of_row = [row[ORDER_KEY], row[LINE_NUMBER]];
            came = (came.0 - i64::from(now.is_some()), came.1 - now.unwrap_or(0));
            *now = match now {
                None => {
                    let mut row = **row;
                    row[QUANTITY] = ValueRef::Decimal(quantity.into());
                    following(&mut t, done, |t, table, _| t.insert(table, &row))?;
                    Some(quantity)
                }
                Some(_) => {
                    let deletes = how == 0;
                    let found = following(&mut t, done, |t, table, key| {
                        let Some(rid) = t.get(table, key, &of_row, |rid, _| rid)? else { return Ok(false) };
                        if deletes { t.delete(table, rid) } else { t.update(table, rid, &[(QUANTITY, ValueRef::Decimal(quantity.into()))]) }
                    })?;
                    if !found {
                        return Err(Error::Parameter(format!("row {of_row:?} is missing")));
                    }
                    (!deletes).then_some(quantity)
                }
            };
            came = (came.0 + i64::from(now.is_some()), came.1 + now.unwrap_or(0));
        }
        t.commit()?;
        done.rows.fetch_add(came.0, Ordering::Relaxed);
        done.quantities.fetch_add(came.1, Ordering::Relaxed);
        done.transactions.fetch_add(1, Ordering::Relaxed);
        done.slowest_transaction_ns.fetch_max(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Rows and sum of their quantities, by a scan and by the key.
fn seen(database: &Database) -> Outcome<[(u64, i64); 2]> {
    let mut t = database.begin(unsynced());
    let (table, key) = of_now(&mut t)?;
    let request = ScanRequest { columns: Some(vec![QUANTITY]), ..ScanRequest::default() };
    let all = pagefold_types::KeyRange { start: Vec::new(), end: None };
    let view = t.read_view()?;
    let by_key = view.range(&table, &key, all, pagefold_engine::btree::Direction::Forward, &request)?;
    let mut sums = [(0, 0); 2];
    for (sum, scan) in sums.iter_mut().zip([view.scan(&table, &request)?, by_key]) {
        for batch in scan {
            for column in batch?.columns() {
                *sum = (sum.0 + column.ints().len() as u64, sum.1 + column.ints().iter().sum::<i64>());
            }
        }
    }
    Ok(sums)
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let scratch = tempfile::tempdir()?;
    let selection = Selection { scale_factor: 1.0, offset: 0, step: 1 };
    let items: Vec<_> = selection.items().take(options.rows).collect();
    let rows: Vec<Row<'_>> = items.iter().map(values).collect();
    let stored = Stored { method: Method::None, page_bytes: 8192, key: (IndexFormat::Prefix, 8192) };
    let (database, table, _) = create_lineitem(&scratch.path().join("reorg"), stored, options.memory_mb << 20)?;
    let mut t = database.begin(unsynced());
    t.insert_rows(&table, |to| rows.iter().try_for_each(|row| to.push(row)))?;
    t.commit()?;
    drop(table);
    let (stop, done, pause) = (AtomicBool::new(false), Done::default(), RwLock::new(()));
    let [(count, sum), _] = seen(&database)?;
    done.rows.store(count as i64, Ordering::Relaxed);
    done.quantities.store(sum, Ordering::Relaxed);
    std::thread::scope(|scope| -> Outcome<()> {
        let (database, done, pause, stop, rows, options) = (&database, &done, &pause, &stop, &rows, &options);
        let mut threads = Vec::new();
        for writer in 0..options.writers {
            threads.push(scope.spawn(move || -> Result<(), String> {
                let quantity = |row: &Row<'_>| match row[QUANTITY] {
                    ValueRef::Decimal(quantity) => Some(quantity as i64),
                    _ => None,
                };
                let own = rows.iter().skip(writer).step_by(options.writers).map(|row| (row, quantity(row))).collect();
                let mut own = Own { rows: own, random: Random(writer as u64 + 1) };
                let mut next = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    {
                        let _running = pause.read().map_err(|e| e.to_string())?;
                        own.transaction(database, done).map_err(|e| format!("writer {writer}: {e}"))?;
                    }
                    if let Some(rate) = options.rate {
                        next += Duration::from_secs_f64(1.0 / rate);
                        std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    }
                }
                Ok(())
            }));
        }
        for reader in 0..options.readers {
            threads.push(scope.spawn(move || -> Result<(), String> {
                let (mut random, mut buffer) = (Random(reader as u64 + 100), RowBuffer::default());
                while !stop.load(Ordering::Relaxed) {
                    let mut t = database.begin(unsynced());
                    for _ in 0..50 {
                        let row = &rows[random.below(rows.len())];
                        let (key_of_row, start) = ([row[ORDER_KEY], row[LINE_NUMBER]], Instant::now());
                        let found = loop {
                            let found = of_now(&mut t).and_then(|(table, key)| {
                                let layout = table.layout();
                                t.get_with(&table, &key, &key_of_row, &mut buffer, |_, record| layout.decimal_at(record, QUANTITY).is_ok())
                            });
                            match found {
                                Err(Error::Stale { .. }) => drop(done.looked_up_again.fetch_add(1, Ordering::Relaxed)),
                                other => break other,
                            }
                        };
                        if found.map_err(|e| format!("reader {reader}: {e}"))? == Some(false) {
                            return Err(format!("reader {reader}: a record without its quantity"));
                        }
                        done.look_ups.fetch_add(1, Ordering::Relaxed);
                        done.slowest_look_up_ns.fetch_max(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    }
                }
                Ok(())
            }));
        }
        let result = rounds(database, options, done, pause, &|| threads.iter().any(|thread| thread.is_finished()));
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread has panicked")??;
        }
        result
    })?;
    println!("no transaction failed; looked up again {} times", done.looked_up_again.load(Ordering::Relaxed));
    Ok(())
}

fn rounds(database: &Database, options: &Options, done: &Done, pause: &RwLock<()>, has_ended: &dyn Fn() -> bool) -> Outcome<()> {
    let (began, methods) = (Instant::now(), Method::ALL);
    let (mut written, mut read, mut slowest, mut slowest_read) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // A way through all pairs: each method to each other.
    let pairs = (1..methods.len()).flat_map(|step| (0..methods.len()).map(move |at| (at + 1) * step));
    let all: Vec<Method> = pairs.map(|at| methods[at % methods.len()]).collect();
    println!(
        "{:<18} {:>7} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "to", "took", "writes", "look-ups", "slowest", "before", "look-up", "before"
    );
    println!("{:<18} {:>7} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}", "", "[s]", "x before", "x before", "[ms]", "[ms]", "[ms]", "[ms]");
    for turn in 0.. {
        let enough = options.minutes.map_or(turn >= all.len(), |minutes| began.elapsed().as_secs_f64() > minutes * 60.0);
        if enough || has_ended() {
            break;
        }
        let (method, page_bytes) = (all[turn % all.len()], [8192, 16384, 4096][turn % 3]);
        done.take();
        std::thread::sleep(Duration::from_secs_f64(options.before_s));
        let before = done.take();
        let start = Instant::now();
        let patience = Some(Duration::from_secs(600));
        let reorg_options =
            ReorgOptions { method: Some(Setting::Given(method)), page_bytes: Some(page_bytes), patience, ..ReorgOptions::default() };
        reorg(database, "lineitem", &reorg_options, &Silent)?;
        let took = start.elapsed().as_secs_f64();
        let during = done.take();
        let ratio = |during: u64, before: u64| (during as f64 / took) / (before as f64 / options.before_s);
        let row = (ratio(during.0, before.0), ratio(during.1, before.1), during.2, during.3);
        println!(
            "{:<18} {took:>7.2} {:>9.2}x {:>9.2}x {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            format!("{method} {page_bytes}"),
            row.0,
            row.1,
            row.2,
            before.2,
            row.3,
            before.3
        );
        written.push(row.0);
        read.push(row.1);
        slowest.push(row.2);
        slowest_read.push(row.3);
        // All stop for a moment.
        let stopped = pause.write().map_err(|e| e.to_string())?;
        let expected = (done.rows.load(Ordering::Relaxed) as u64, done.quantities.load(Ordering::Relaxed));
        let found = seen(database)?;
        drop(stopped);
        if found != [expected; 2] {
            return Err(format!("rows and quantities by scan and by key are {found:?}, written were {expected:?}").into());
        }
    }
    let show = |name: &str, values: &[f64]| {
        let spread = Spread::of(values.iter().copied());
        println!("{name:<40} median {:.2}, {:.2} to {:.2}", spread.median, spread.low, spread.high);
    };
    println!("{} times written anew", written.len());
    show("writes, times those before", &written);
    show("look-ups, times those before", &read);
    show("slowest transaction [ms]", &slowest);
    show("slowest look-up [ms]", &slowest_read);
    Ok(())
}

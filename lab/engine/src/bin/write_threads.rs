//! What several threads write beside one: LINEITEM rows into one table, in key order and in random order, and one row that all of them change.
//!
//! `cargo run --release -p pagefold-lab-engine --bin write_threads`
//!
//! Rows are inserted 100 a transaction, each thread taking the next hundred: in key order all threads want the same leaf. Every run begins with an empty database; one thread and several take turns.
//! What is there afterwards is counted and summed. The row that all change counts its changes, one a transaction, so that one lost is seen. Log on, nobody syncs. Elapsed times.

use clap::Parser;
use pagefold_engine::database::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table};
use pagefold_lab::lineitem::{Selection, values};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::{ORDER_KEY, Outcome, QUANTITY};
use pagefold_lab_engine::database::{Stored, create_lineitem};
use pagefold_lab_engine::random::Random;
use pagefold_types::{Value, ValueRef};
use std::sync::atomic::{AtomicUsize, Ordering};

const ROWS_PER_TRANSACTION: usize = 100;

#[derive(Debug, Parser)]
struct Options {
    /// Rows that are inserted.
    #[arg(long, default_value_t = 200_000)]
    rows: usize,
    /// Changes of the one row.
    #[arg(long, default_value_t = 100_000)]
    changes: usize,
    /// Threads against one.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8])]
    threads: Vec<usize>,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Methods of the table.
    #[arg(long, value_delimiter = ',', default_value = "none,fixed,page")]
    methods: Vec<String>,
    /// Memory of the pools, in MB.
    #[arg(long, default_value_t = 1000)]
    memory_mb: usize,
}

type Row<'a> = [ValueRef<'a>; 16];

/// Nobody waits for the disk.
fn unsynced() -> TransactionOptions {
    TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() }
}

/// Seconds that so many threads together take for `count` pieces of work.
fn timed(threads: usize, count: usize, work: impl Fn(usize) -> Outcome<()> + Sync) -> Outcome<f64> {
    let next = AtomicUsize::new(0);
    let run = || -> Result<(), String> {
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= count {
                return Ok(());
            }
            work(piece).map_err(|e| e.to_string())?;
        }
    };
    let start = Clock::Wall.now_s();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread has panicked".into())))
    })?;
    Ok(Clock::Wall.now_s() - start)
}

fn insert(database: &Database, table: &Table, rows: &[Row<'_>], threads: usize) -> Outcome<f64> {
    timed(threads, rows.len().div_ceil(ROWS_PER_TRANSACTION), |piece| {
        let rows = &rows[piece * ROWS_PER_TRANSACTION..rows.len().min((piece + 1) * ROWS_PER_TRANSACTION)];
        let mut transaction = database.begin(unsynced());
        for row in rows {
            transaction.insert(table, row)?;
        }
        Ok(transaction.commit()?)
    })
}

/// Adds one to a number, so often.
fn change_one(database: &Database, table: &Table, key: &Index, row: &Row<'_>, changes: usize, threads: usize) -> Outcome<f64> {
    let mut found = database.begin(unsynced());
    let rid = found.get_with(table, key, &[row[ORDER_KEY], row[3]], &mut RowBuffer::default(), |rid, _| rid)?.ok_or("a key is missing")?;
    let before = [(QUANTITY, ValueRef::Decimal(0))];
    found.update(table, rid, &before)?;
    found.commit()?;
    let layout = table.layout();
    let took = timed(threads, changes, |_| {
        let mut transaction = database.begin(unsynced());
        if !transaction.lock(table, rid)? {
            return Err("the row is missing".into());
        }
        let quantity = transaction.read(table, rid, &mut RowBuffer::default(), |record| layout.decimal_at(record, QUANTITY))?;
        let quantity = quantity.ok_or("the row is missing")??.ok_or("a NULL")?;
        transaction.update(table, rid, &[(QUANTITY, ValueRef::Decimal(quantity + 1))])?;
        Ok(transaction.commit()?)
    })?;
    let row = database.begin(unsynced()).row(table, rid)?.ok_or("the row is missing")?;
    match row[QUANTITY] {
        Value::Decimal(count) if count == changes as i128 => Ok(took),
        ref other => Err(format!("{changes} changes came to {other:?}").into()),
    }
}

/// Rows, and the sum of their quantities.
fn sum(database: &Database, table: &std::sync::Arc<Table>) -> Outcome<(u64, i64)> {
    let request = ScanRequest { columns: Some(vec![QUANTITY]), ..ScanRequest::default() };
    let mut sum = (0, 0);
    for batch in database.begin(unsynced()).read_view()?.scan(table, &request)? {
        for column in batch?.columns() {
            sum = (sum.0 + column.ints().len() as u64, sum.1 + column.ints().iter().sum::<i64>());
        }
    }
    Ok(sum)
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let scratch = tempfile::tempdir()?;
    let selection = Selection { scale_factor: 1.0, offset: 0, step: 1 };
    let items: Vec<_> = selection.items().take(options.rows).collect();
    let ascending: Vec<Row<'_>> = items.iter().map(values).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut shuffled = ascending.clone();
    for i in (1..shuffled.len()).rev() {
        shuffled.swap(i, random.below(i + 1));
    }
    let sides: Vec<usize> = std::iter::once(1).chain(options.threads.iter().copied().filter(|&threads| threads > 1)).collect();
    for method in &options.methods {
        let method: Method = method.parse()?;
        let page_bytes = if method == Method::Page { 16384 } else { 8192 };
        let stored = Stored { method, page_bytes, key: (IndexFormat::Prefix, 8192) };
        // For each kind of work and each side the seconds of each round.
        let works = ["inserts in key order", "inserts in random order", "changes of one row"];
        let mut seconds = vec![vec![Vec::new(); sides.len()]; works.len()];
        for round in 0..options.rounds {
            let mut sums = Vec::new();
            for turn in 0..sides.len() {
                let side = (turn + round) % sides.len();
                for (order, rows) in [&ascending, &shuffled].into_iter().enumerate() {
                    let folder = scratch.path().join("threads");
                    let (database, table, key) = create_lineitem(&folder, stored, options.memory_mb << 20)?;
                    seconds[order][side].push(insert(&database, &table, rows, sides[side])?);
                    sums.push(sum(&database, &table)?);
                    if order == 0 {
                        seconds[2][side].push(change_one(&database, &table, &key, &rows[0], options.changes, sides[side])?);
                    }
                    drop((table, key, database));
                    std::fs::remove_dir_all(&folder)?;
                }
            }
            if sums.iter().any(|sum| *sum != sums[0]) || sums[0].0 != options.rows as u64 {
                return Err(format!("they have not written the same: {sums:?}").into());
            }
        }
        println!("\n{method}, prefix key: thousands a second, median (least to most) of {} rounds, and times one thread", options.rounds);
        for (work, by_side) in works.iter().zip(&seconds) {
            let count = if *work == works[2] { options.changes } else { options.rows } as f64;
            for (threads, took) in sides.iter().zip(by_side) {
                let rate = Spread::of(took.iter().map(|s| count / s / 1e3));
                let ratio = Spread::of(took.iter().zip(&by_side[0]).map(|(own, one)| one / own));
                println!(
                    "{work:<24} {threads:>2} threads {:>8.1} ({:.1} to {:.1}) {:>6.2}x ({:.2} to {:.2})",
                    rate.median, rate.low, rate.high, ratio.median, ratio.low, ratio.high
                );
            }
        }
    }
    Ok(())
}

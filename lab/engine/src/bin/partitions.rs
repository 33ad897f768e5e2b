//! A table of many range partitions: loaded, pruned, one written anew while others are changed, rotated; and the most memory that took.
//!
//! `cargo run --release -p pagefold-lab-engine --bin partitions -- --rows 50000000 --partitions 512 DIRECTORY`

use clap::Parser;
use pagefold_engine::Silent;
use pagefold_engine::database::{Database, OpenMode, Settings, TransactionOptions};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::Method;
use pagefold_interchange::Sink;
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab_engine::data::Outcome;
use pagefold_types::ValueRef;
use pagefold_utility::{Division, LoadOptions, PartitionText, ReorgOptions, Scan, ScanOptions, Setting, load, reorg, rotate_partition};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Parser)]
struct Options {
    #[arg(long, default_value_t = 50_000_000)]
    rows: u64,
    #[arg(long, default_value_t = 512)]
    partitions: u64,
    /// Memory of the buffer pools, in megabytes.
    #[arg(long, default_value_t = 64)]
    memory: usize,
    /// Where file and database are to be; it must be empty.
    directory: PathBuf,
}

const TABLE: &str = "short";

fn open(options: &Options, mode: OpenMode) -> Outcome<Database> {
    let pools = PoolSettings { memory_bytes: options.memory << 20, ..PoolSettings::default() };
    let settings = Settings { pools, ..Settings::default() };
    Ok(Database::open(Arc::new(OsStorage), Arc::new(OsClock), &options.directory.join("db"), mode, settings)?)
}

/// Numbers in an order that goes to all partitions, each once.
fn write_rows(options: &Options) -> Outcome<PathBuf> {
    let path = options.directory.join("rows.csv");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    writeln!(file, "id,kind,amount")?;
    // 7,919 is prime, and no divisor of the number of rows.
    for i in 0..options.rows {
        writeln!(file, "{},{},{}", (i * 7_919) % options.rows, i % 1_000, (i * 31) % 100_003)?;
    }
    file.flush()?;
    Ok(path)
}

fn memory_max_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// How often pages were asked for.
fn asked(database: &Database) -> Outcome<u64> {
    let mut asked = 0;
    for table in database.tables()? {
        asked += table.data_sets().map(|data_set| data_set.counters().getpages).sum::<u64>();
    }
    Ok(asked + database.indexes()?.iter().map(|index| index.data_set().counters().getpages).sum::<u64>())
}

fn count(database: &Database, table: &str, condition: &str) -> Outcome<(u64, u64)> {
    let options = ScanOptions { condition: Some(condition.into()), ..ScanOptions::default() };
    let scan = Scan::new(database, table, &options)?;
    let before = asked(database)?;
    let mut sink = Nowhere;
    let rows = scan.run(&mut sink, &Silent)?;
    Ok((rows, asked(database)? - before))
}

/// Takes rows and does nothing with them.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _batch: &arrow_array::RecordBatch) -> Result<(), pagefold_interchange::InterchangeError> {
        Ok(())
    }
    fn finish(&mut self) -> Result<(), pagefold_interchange::InterchangeError> {
        Ok(())
    }
}

/// Changes rows of all partitions but one until it is told to stop: how many, and the slowest transaction.
fn change_rows(database: &Database, rows: u64, but: (u64, u64), seed: u64, stop: &AtomicBool, done: &AtomicU64) -> Duration {
    let whole = database.partitioned_table(TABLE).expect("the table");
    let mut slowest = Duration::ZERO;
    let mut random = seed;
    while !stop.load(Ordering::Relaxed) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = (random >> 20) % rows;
        // Nor of those that are about to go.
        if (but.0..but.1).contains(&id) || id < rows / 20 {
            continue;
        }
        let begin = Instant::now();
        let mut transaction = database
            .begin(TransactionOptions { durability: pagefold_engine::database::Durability::Relaxed, ..TransactionOptions::default() });
        let key = [ValueRef::Int(id as i64)];
        let place = whole.key_from(&[(0, pagefold_types::Direction::Ascending)], &key).expect("a key").expect("all of it");
        let partition = &whole.partitions()[whole.find(&place).expect("a partition")];
        let table = transaction.table_of_partition(partition).expect("its table");
        let index = transaction.index_of_partition(partition, &table, "short_pk").expect("its index").expect("its index");
        let rid = transaction.get(&table, &index, &key, |rid, _| rid).expect("a look").expect("the row");
        assert!(transaction.update(&table, rid, &[(2, ValueRef::Int((random >> 40) as i64 % 100_000))]).expect("a change"));
        transaction.commit().expect("a commit");
        slowest = slowest.max(begin.elapsed());
        done.fetch_add(1, Ordering::Relaxed);
    }
    slowest
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let per_partition = options.rows / options.partitions;
    let file = write_rows(&options)?;
    let database = open(&options, OpenMode::Create)?;
    let partitions = (1..=options.partitions).map(|number| {
        let limit = if number == options.partitions { options.rows } else { number * per_partition };
        PartitionText { limit: vec![Some(limit.to_string())], ..PartitionText::default() }
    });
    let division = Some(Division { columns: vec!["id".into()], partitions: partitions.collect() });
    let begin = Instant::now();
    let load_options = LoadOptions { division, primary_key: vec!["id".into()], ..LoadOptions::default() };
    let report = load(&database, TABLE, std::slice::from_ref(&file), &load_options, &Silent)?;
    assert_eq!(report.rows, options.rows);
    println!(
        "{} rows into {} partitions in {:.1} s; {} MB, indexes {} MB; at most {} MB of memory",
        report.rows,
        options.partitions,
        begin.elapsed().as_secs_f64(),
        report.size_bytes >> 20,
        report.index_bytes >> 20,
        memory_max_mb()
    );
    std::fs::remove_file(file)?;
    // Pages asked for: those of one partition.
    let number = options.partitions / 3;
    let (low, high) = (number * per_partition, (number + 1) * per_partition);
    let child = format!("{TABLE}/p{}", number + 1);
    for condition in [
        format!("id >= {low} and id < {high}"),
        format!("id between {} and {} and kind = 7", low + 10, high - 10),
        format!("id = {}", low + 77),
    ] {
        let ((rows, pages), (rows_of_one, pages_of_one)) = (count(&database, TABLE, &condition)?, count(&database, &child, &condition)?);
        assert_eq!((rows, pages), (rows_of_one, pages_of_one), "{condition}");
        println!("{condition}: {rows} rows, {pages} pages asked for, as of the partition alone");
    }
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| -> Outcome<()> {
        let writers: Vec<_> = (1..=2)
            .map(|seed| {
                let (database, stop, done) = (&database, &stop, &done);
                scope.spawn(move || change_rows(database, options.rows, (low, high), seed, stop, done))
            })
            .collect();
        let rate = |time: Duration| {
            let before = done.load(Ordering::Relaxed);
            std::thread::sleep(time);
            (done.load(Ordering::Relaxed) - before) as f64 / time.as_secs_f64()
        };
        let alone = rate(Duration::from_secs(5));
        let before = done.load(Ordering::Relaxed);
        let begin = Instant::now();
        let mut rounds = 0;
        for method in Method::ALL.into_iter().cycle().take(10) {
            reorg(&database, &child, &ReorgOptions { method: Some(Setting::Given(method)), ..ReorgOptions::default() }, &Silent)?;
            rounds += 1;
        }
        let beside = (done.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64();
        println!(
            "partition p{} written anew {rounds} times in {:.2} s while two threads changed rows of others: {beside:.0} transactions a second, {:.2} of the {alone:.0} without",
            number + 1,
            begin.elapsed().as_secs_f64(),
            beside / alone
        );
        let mut times: Vec<f64> = Vec::new();
        for number in 0..20 {
            let begin = Instant::now();
            let limit = options.rows + (number + 1) * per_partition;
            rotate_partition(&database, TABLE, &PartitionText { limit: vec![Some(limit.to_string())], ..PartitionText::default() })?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        stop.store(true, Ordering::Relaxed);
        times.sort_by(f64::total_cmp);
        println!("20 rotations: median {:.1} ms, slowest {:.1} ms", times[10], times[19]);
        for writer in writers {
            println!("slowest transaction: {:.1} ms", writer.join().expect("a writer").as_secs_f64() * 1e3);
        }
        Ok(())
    })?;
    println!("at most {} MB of memory", memory_max_mb());
    database.close()?;
    let database = open(&options, OpenMode::Write)?;
    println!("{} partitions after it was opened again", database.partitioned_table(TABLE)?.partitions().len());
    Ok(())
}

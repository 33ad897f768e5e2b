//! What it saves to ask conditions of encoded values: scans of LINEITEM under `page` that read two columns of the rows that satisfy a condition.
//!
//! `cargo run --release -p pagefold-lab-engine --bin selections -- --scale-factor 0.1`
//!
//! Two ways, in turn: every row's columns are decoded and asked; and a scan with the condition. The sums of what they read are compared.

use clap::Parser;
use pagefold_engine::Error;
use pagefold_engine::database::{Database, OpenMode, ReadView, ScanRequest, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table};
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::{EXTENDED_PRICE, Lineitem, Outcome, QUANTITY};
use pagefold_types::Predicate;
use pagefold_utility::{LoadOptions, Silent, load};
use std::path::Path;
use std::sync::Arc;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 0.1)]
    scale_factor: f64,
    /// Rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

const PAGE_BYTES: usize = 16384;

/// Of the rows: about 1 %, half, a quarter and none by one column; 2 % by three (query 6 of TPC-H). Then OR, IN, `<>` and LIKE.
const CONDITIONS: [&str; 13] = [
    "l_shipdate between date '1995-03-01' and date '1995-03-25'",
    "l_shipdate < date '1995-06-17'",
    "l_returnflag = 'R'",
    "l_quantity > 50",
    "l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24",
    "l_orderkey < 3000 or l_shipdate between date '1995-03-01' and date '1995-03-24'",
    "l_partkey in (155, 1200, 7311, 9000, 12345, 15000, 19999)",
    "l_shipmode in ('MAIL', 'SHIP')",
    "l_shipmode <> 'AIR'",
    "l_comment like 'careful%'",
    "l_comment like '%final%'",
    "l_comment not like '%final%express%'",
    "l_returnflag = 'R' or l_shipmode like 'RE%' or l_quantity > 49",
];

/// Rows, and the sum of two columns of them.
type Found = (u64, i64);

fn by_rows(view: &ReadView, table: &Arc<Table>, condition: &Predicate) -> Outcome<Found> {
    let mut found = (0, 0);
    let columns = [&[QUANTITY, EXTENDED_PRICE], condition.columns()].concat();
    let request = ScanRequest { columns: Some(columns), ..ScanRequest::default() };
    let value = |record: &[u8], column: usize| {
        let value = table.layout().decimal_at(record, column).map_err(|e| Error::Value(e.to_string()))?;
        Ok::<_, Error>(value.unwrap_or(0) as i64)
    };
    let mut rows = view.scan(table, &request)?.into_rows();
    while let Some((_, record)) = rows.next_record()? {
        if table.satisfies(condition, record)? {
            found = (found.0 + 1, found.1 + value(record, QUANTITY)? + value(record, EXTENDED_PRICE)?);
        }
    }
    Ok(found)
}

fn by_encoded_values(view: &ReadView, table: &Arc<Table>, condition: &Predicate) -> Outcome<Found> {
    let mut found = (0, 0);
    let columns = Some(vec![QUANTITY, EXTENDED_PRICE]);
    let request = ScanRequest { columns, condition: Some(condition.clone()), ..ScanRequest::default() };
    for batch in view.scan(table, &request)? {
        let batch = batch?;
        let sum = batch.columns().iter().map(|column| column.ints().iter().sum::<i64>()).sum::<i64>();
        found = (found.0 + batch.len() as u64, found.1 + sum);
    }
    Ok(found)
}

fn timed(work: impl FnOnce() -> Outcome<Found>) -> Outcome<(Found, f64)> {
    let start = Clock::Thread.now_s();
    let found = work()?;
    Ok((found, Clock::Thread.now_s() - start))
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir()?;
    let data = Lineitem::generate(folder.path(), options.scale_factor)?;
    let settings = Settings { pools: PoolSettings { memory_bytes: 1 << 30, ..PoolSettings::default() }, ..Settings::default() };
    let path: &Path = &folder.path().join("database");
    let database = Database::open(Arc::new(OsStorage), Arc::new(OsClock), path, OpenMode::Create, settings)?;
    let load_options = LoadOptions { method: Method::Page.into(), page_bytes: PAGE_BYTES, ..LoadOptions::default() };
    load(&database, "lineitem", std::slice::from_ref(&data.path), &load_options, &Silent)?;
    let table = database.table("lineitem")?;
    let (rows, view) = (table.row_count(), database.read_view());
    println!("{rows} rows under page, {} KB; processor time a row of the table [ns]", PAGE_BYTES / 1024);
    println!("{:>8} {:>10} {:>10}  {:<20} condition", "rows", "by rows", "encoded", "times as fast");
    for text in CONDITIONS {
        let condition = Predicate::parse(text, data.table.schema())?;
        let (mut slow, mut fast, mut ratios, mut share) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
        for _ in 0..options.rounds {
            let (expected, by_rows_s) = timed(|| by_rows(&view, &table, &condition))?;
            let (found, encoded_s) = timed(|| by_encoded_values(&view, &table, &condition))?;
            if found != expected {
                return Err(format!("{text}: {found:?} instead of {expected:?}").into());
            }
            share = found.0 as f64 / rows as f64;
            slow.push(by_rows_s * 1e9 / rows as f64);
            fast.push(encoded_s * 1e9 / rows as f64);
            ratios.push(by_rows_s / encoded_s);
        }
        let (slow, fast, ratio) = (Spread::of(slow), Spread::of(fast), Spread::of(ratios));
        let times = format!("{:.1} ({:.1}-{:.1})", ratio.median, ratio.low, ratio.high);
        println!("{:>6.1} % {:>10.1} {:>10.1}  {times:<20} {text}", 100.0 * share, slow.median, fast.median);
    }
    Ok(())
}

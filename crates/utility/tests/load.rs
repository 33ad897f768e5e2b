//! LOAD gives the same table with any number of threads, and ends with the first error.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings};
use pagefold_engine::table_space::Method;
use pagefold_io::{MemoryStorage, OpenOptions, SimulatedClock, Storage};
use pagefold_types::Rid;
use pagefold_utility::{LoadOptions, LoadReport, Result, Silent, load};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROWS: usize = 60_000;

fn text(rows: usize) -> String {
    let words = ["carefully", "final", "deposits", "express", "requests"];
    let mut text = String::from("id,city,remark\n");
    for n in 0..rows {
        let remark: String = (0..n % 6).map(|k| words[(n / 7 + k * k) % words.len()]).collect();
        // Some rows are wider than a page, some do not compress.
        let remark = match n % 1000 {
            0 => remark.repeat(200) + &"deposits ".repeat(2000),
            1 => (0..8).map(|k| char::from(b'!' + ((n * 31 + k * 17) % 90) as u8)).filter(|c| !",\"".contains(*c)).collect(),
            _ => remark,
        };
        let _ = writeln!(text, "{n},city {},{remark}", n % 7);
    }
    text
}

/// Rows with their RIDs.
type Rows = Vec<(Rid, Vec<u8>)>;

fn loaded(text: &str, method: Method, encode_threads: usize) -> Result<(Rows, LoadReport)> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    storage.open(Path::new("t.csv"), &OpenOptions::create()).unwrap().write_at(text.as_bytes(), 0).unwrap();
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let database = Database::open(Arc::clone(&storage), clock, Path::new("db"), OpenMode::Create, Settings::default())?;
    let options = LoadOptions { method: method.into(), encode_threads, primary_key: vec!["id".into()], ..LoadOptions::default() };
    let outcome = load(&database, "t", &["t.csv".into()], &options, &Silent);
    if outcome.is_err() {
        assert!(database.tables().unwrap().is_empty());
    }
    let report = outcome?;
    let mut rows = Vec::new();
    let mut scan = database.read_view().scan(&database.table("t")?, &ScanRequest::default())?.into_rows();
    while let Some((rid, record)) = scan.next_record()? {
        rows.push((rid, record.to_vec()));
    }
    Ok((rows, report))
}

#[test]
fn any_number_of_threads_gives_the_same_table() {
    let text = text(ROWS);
    let (rows, report) = loaded(&text, Method::Fixed, 1).unwrap();
    assert!(report.dictionary);
    assert_eq!(rows.len(), ROWS);
    assert!(rows.is_sorted());
    for encode_threads in [0, 2, 7] {
        let (others, other) = loaded(&text, Method::Fixed, encode_threads).unwrap();
        assert_eq!(other, report);
        assert!(others == rows, "{encode_threads} threads");
    }
    let (plain, report) = loaded(&text, Method::None, 3).unwrap();
    assert!(!report.dictionary);
    // The same rows in the same order, on other pages.
    assert!(plain.iter().map(|row| row.1.len()).eq(rows.iter().map(|row| row.1.len())));
}

#[test]
fn the_first_error_ends_it() {
    let mut late = text(ROWS);
    late.push_str("12,duplicate key,\n");
    let mut bad = text(ROWS);
    bad.push_str("no number,city,remark\n");
    bad.push_str(&text(ROWS)["id,city,remark\n".len()..]);
    for encode_threads in [1, 3] {
        assert!(loaded(&late, Method::Fixed, encode_threads).unwrap_err().to_string().contains("12"));
        // Types are inferred from the first rows.
        assert!(loaded(&bad, Method::Fixed, encode_threads).is_err());
    }
}

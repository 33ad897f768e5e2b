//! Random changes with a reader held open all the time: it sees what it saw, and memory and files level off.
//!
//! Updates, one in five of an indexed column, the others of a text that gets another length; with `PAGEFOLD_SOAK_DELETES=1` also deletes, whose rows the reader keeps on their pages beside those inserted again.
//!
//! An hour: `PAGEFOLD_SOAK_SECONDS=3600 cargo test --release -p pagefold-engine --test soak -- --nocapture`

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "other tests use more of the world")]

#[path = "isolation/world.rs"]
mod world;

use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Durability, Isolation, OpenMode, ScanRequest, Transaction, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_engine::{Error, Result};
use pagefold_io::{OsStorage, Storage};
use pagefold_types::{KeyRange, ValueRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use world::{Form, Random, Scans, World, is_retryable, open, parts};

const WRITERS: u64 = 2;
/// What comes and goes with no regard to how long the test runs: the training of a dictionary takes some megabytes for a moment, and what the allocator keeps of them depends on which thread came when.
const MEMORY_SLACK: u64 = 16 << 20;

/// Rows and a sum over them, by scan and in the order of an index.
fn digest(world: &World, t: &mut Transaction<'_>) -> [(u64, u64); 2] {
    let mut seen = [(0, 0); 2];
    let scans = [t.rows(&world.table).unwrap(), t.rows_by(&world.table, &world.by_value, Way::Forward).unwrap()];
    for (seen, scan) in seen.iter_mut().zip(scans) {
        for row in scan {
            let (number, (value, text)) = parts(&row.unwrap().1);
            let row = (number as u64).wrapping_mul(31).wrapping_add(value as u64).wrapping_mul(31).wrapping_add(text.len() as u64);
            *seen = (seen.0 + 1, seen.1 ^ row.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
    }
    seen
}

/// One transaction of ten changes around some number.
fn change(world: &World, random: &mut Random, rows: u64, deletes: bool) -> Result<()> {
    let options = TransactionOptions { durability: Durability::Relaxed, ..TransactionOptions::default() };
    let mut t = world.database.begin(options);
    for _ in 0..10 {
        let number = random.below(rows) as i64;
        let mut key = Vec::new();
        world.by_number.key_layout().encode(&[ValueRef::Int(number)], &mut key).unwrap();
        let mut end = key.clone();
        let range = KeyRange { start: key, end: pagefold_types::prefix_end(&mut end).then_some(end) };
        let request = ScanRequest { columns: Some(Vec::new()), ..ScanRequest::default() };
        let mut scan = t.read_view()?.range(&world.table, &world.by_number, range, Way::Forward, &request)?.into_rows();
        let found = scan.next_record()?.map(|(rid, _)| rid);
        let value = ValueRef::Int(random.below(10 * rows) as i64);
        match (found, random.below(10)) {
            (None, _) => drop(t.insert(&world.table, &[ValueRef::Int(number), value, ValueRef::Text(&random.text(14))])?),
            (Some(rid), 0) if deletes => drop(t.delete(&world.table, rid)?),
            (Some(rid), 0..2) => drop(t.update(&world.table, rid, &[(1, value)])?),
            (Some(rid), _) => drop(t.update(&world.table, rid, &[(2, ValueRef::Text(&random.text(14)))])?),
        }
    }
    t.commit()
}

/// Bytes of tables and indexes in use.
fn data_bytes(world: &World) -> u64 {
    let sets = world.table.data_sets().chain([world.by_number.data_set(), world.by_value.data_set()]);
    sets.map(|data_set| u64::from(data_set.page_count()) * data_set.page_bytes() as u64).sum()
}

fn pages(world: &World) -> [u32; 3] {
    let of_table = world.table.data_sets().map(|data_set| data_set.page_count()).sum();
    [of_table, world.by_number.data_set().page_count(), world.by_value.data_set().page_count()]
}

/// Memory of this process, data, and files of the log, in bytes.
fn sizes(world: &World) -> [u64; 3] {
    let entries = std::fs::read_dir("db/log").unwrap();
    let log = entries.filter_map(|entry| entry.unwrap().metadata().ok()).map(|metadata| metadata.len()).sum();
    let resident = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = resident.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    [pages * 4096, data_bytes(world), log]
}

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn memory_and_files_level_off() {
    let seconds = env("PAGEFOLD_SOAK_SECONDS");
    let rows = env("PAGEFOLD_SOAK_ROWS").unwrap_or(if seconds.is_some() { 100_000 } else { 1_000 });
    let deletes = env("PAGEFOLD_SOAK_DELETES").is_some();
    // Without a time, so many transactions.
    let transactions = seconds.map_or(20 * rows / 10, |_| u64::MAX);
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(OsStorage);
    let form = Form { method: Method::Fixed, format: IndexFormat::Fold, memory_bytes: 32 << 20, background_threads: 1, ..Form::default() };
    let world = open(&storage, form, OpenMode::Create);
    let mut random = Random(1);
    for first in (0..rows).step_by(1000) {
        let mut t = world.begin(Isolation::ReadCommitted);
        for number in first..rows.min(first + 1000) {
            world.insert(&mut t, number as i64, random.below(10 * rows) as i64, &random.text(14)).unwrap();
        }
        t.commit().unwrap();
    }
    let mut reader = world.begin(Isolation::RepeatableRead);
    let seen = digest(&world, &mut reader);
    assert_eq!(seen[0], seen[1]);
    let (stop, done, retried) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut history: Vec<(u64, [u64; 3])> = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (world, stop, done, retried) = (&world, &stop, &done, &retried);
            scope.spawn(move || {
                let mut random = Random(100 + writer);
                while !stop.load(Ordering::Relaxed) && done.load(Ordering::Relaxed) < transactions {
                    let outcome = change(world, &mut random, rows, deletes);
                    match outcome {
                        Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                        Err(Error::DuplicateKey { .. }) => drop(retried.fetch_add(1, Ordering::Relaxed)),
                        Err(_) if is_retryable(&outcome) => drop(retried.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        let started = Instant::now();
        let parts = 40;
        for part in 1..=parts {
            let (time, count) = (seconds.map(|s| Duration::from_secs(s * part / parts)), transactions / parts * part);
            while time.map_or(done.load(Ordering::Relaxed) < count, |time| started.elapsed() < time) {
                std::thread::sleep(Duration::from_millis(20));
            }
            history.push((done.load(Ordering::Relaxed), sizes(&world)));
            let (done, [memory, data, log]) = history[history.len() - 1];
            println!("{done} transactions: memory {} KB, data {} KB, log {} KB", memory >> 10, data >> 10, log >> 10);
            if part % 10 == 0 {
                assert_eq!(digest(&world, &mut reader), seen, "the reader sees something else");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("{} transactions tried again", retried.load(Ordering::Relaxed));
    reader.commit().unwrap();
    let rows = world.check();
    let after = data_bytes(&world);
    let of_each = pages(&world);
    drop(world);
    // The same rows in a database of their own.
    let fresh = tempfile::tempdir().unwrap();
    std::env::set_current_dir(fresh.path()).unwrap();
    let world = open(&storage, form, OpenMode::Create);
    let mut all = rows.into_iter().peekable();
    while all.peek().is_some() {
        let mut t = world.begin(Isolation::ReadCommitted);
        for (number, (value, text)) in all.by_ref().take(1000) {
            world.insert(&mut t, number, value, &text).unwrap();
        }
        t.commit().unwrap();
    }
    let ideal = data_bytes(&world);
    println!("pages of table, of the index by number and by value: {of_each:?}, anew {:?}", pages(&world));
    drop(world);
    println!("data {} KB, the same rows inserted anew {} KB: {:.2}", after >> 10, ideal >> 10, after as f64 / ideal as f64);
    let quarter = history[history.len() / 4].1;
    let last = history[history.len() - 1].1;
    for (what, then, now, slack) in [("memory", quarter[0], last[0], MEMORY_SLACK), ("data", quarter[1], last[1], 0)] {
        assert!(now <= then + then / 4 + slack, "{what}: {now} bytes at the end, {then} after a quarter");
    }
}

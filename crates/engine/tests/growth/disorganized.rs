//! An index that random inserts have filled, read from end to end: reads by kind, before and after REORG INDEX.
//!
//! A page above the leaves lists them, so those to come are known, and prefetch goes on in a disorganized index, too. What it loses is that neighbours in key order
//! are neighbours on disk: an I/O reads one page. Counted are I/Os and pages of each kind with a cold pool, never time.

use crate::leaves::FORMATS;
use crate::world::Random;
use pagefold_engine::CounterValues;
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use pagefold_utility::{ReorgOptions, Silent, reorg};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// So many that pages which are asked for together, 64 at most, are neighbours by chance no more than now and then.
fn rows_of(format: IndexFormat) -> u64 {
    if format == IndexFormat::Plain { 40_000 } else { 120_000 }
}

const ROWS_A_COMMIT: usize = 2_000;

fn open(storage: &Arc<dyn Storage>, mode: OpenMode, background_threads: usize) -> Database {
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let pools = PoolSettings { memory_bytes: 64 << 20, background_threads, ..PoolSettings::default() };
    Database::open(Arc::clone(storage), clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

/// What a scan of all leaves with a cold pool reads, and how many leaves there are. The asking thread gives prefetch the time that a disk, or work
/// with the entries, would give it.
fn cold_scan(storage: &Arc<dyn Storage>, background_threads: usize) -> (u64, u64, CounterValues) {
    let database = open(storage, OpenMode::Read, background_threads);
    let index = database.index("i").unwrap();
    let counters = || index.data_set().counters();
    let (mut cursor, mut asked, mut fetched, mut leaves) = (index.tree().all(Way::Forward), 0, 0, 0);
    let mut entries = 0;
    loop {
        if counters().dynamic_prefetch_requests > asked && background_threads > 0 {
            asked = counters().dynamic_prefetch_requests;
            // It begins; then it has come to its end when there have been no more pages for a while.
            let (mut calm, mut begins) = (0, 0);
            let before = fetched;
            while calm < 8 && begins < 50 {
                std::thread::sleep(Duration::from_millis(1));
                let pages = counters().dynamic_prefetch_pages;
                begins += u32::from(pages == before);
                calm = if pages == fetched && pages > before { calm + 1 } else { 0 };
                fetched = pages;
            }
        }
        if cursor.next_run().unwrap().is_none() {
            break;
        }
        leaves += 1;
    }
    let mut all = index.tree().all(Way::Forward);
    let read = counters();
    while all.next().unwrap().is_some() {
        entries += 1;
    }
    assert_eq!(cursor.leaf_count(), leaves);
    (entries, leaves, read)
}

#[test]
#[ignore = "waits for prefetch in real time: for the record in docs/performance.md"]
fn reorg_of_a_disorganized_index_brings_back_pages_that_are_read_together() {
    for (format, page_bytes) in FORMATS {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, 0);
        let columns = vec![Column::new("number", DataType::BigInt, false), Column::new("other", DataType::BigInt, false)];
        let mut change = database.change();
        let table = change.create_table(TableAttributes::new("t", Schema::new(columns).unwrap())).unwrap();
        let attributes = IndexAttributes::new("i", vec![(0, Direction::Ascending), (1, Direction::Ascending)], true);
        change.create_index(&table, attributes.with_format(format, page_bytes)).unwrap();
        change.commit().unwrap();
        let rows = rows_of(format);
        let mut numbers: Vec<u64> = (0..rows).collect();
        let mut random = Random(5);
        (1..numbers.len()).rev().for_each(|at| numbers.swap(at, random.below(at as u64 + 1) as usize));
        for some in numbers.chunks(ROWS_A_COMMIT) {
            let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
            let mut transaction = database.begin(options);
            for number in some {
                // Wide, so that there are many leaves.
                let other = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64;
                transaction.insert(&table, &[ValueRef::Int(*number as i64), ValueRef::Int(other)]).unwrap();
            }
            transaction.commit().unwrap();
        }
        drop((table, database));

        let mut seen = Vec::new();
        for state in ["after random inserts", "after REORG"] {
            let (entries, leaves, alone) = cold_scan(&storage, 0);
            let (entries_too, same, read) = cold_scan(&storage, 1);
            let (ios, pages) = (read.dynamic_prefetch_ios, read.dynamic_prefetch_pages);
            println!(
                "{format}, {state}: {leaves} leaves; without prefetch {} synchronous reads; with it {} synchronous reads, {ios} prefetch I/Os of {pages} pages",
                alone.synchronous_reads, read.synchronous_reads
            );
            assert_eq!((entries, entries_too, leaves), (rows, rows, same));
            assert!(alone.synchronous_reads >= leaves && alone.dynamic_prefetch_ios == 0, "{format}, {state}: {alone:?}");
            assert!(read.synchronous_reads + pages >= leaves && pages * 10 >= leaves * 8, "{format}, {state}: {read:?}");
            seen.push((leaves, ios, pages));
            if state == "after random inserts" {
                reorg(&open(&storage, OpenMode::Write, 0), "i", &ReorgOptions::default(), &Silent).unwrap();
            }
        }
        let [(leaves, ios, pages), (_, ios_then, pages_then)] = seen[..] else { unreachable!("two states") };
        assert!(leaves > 100, "{format}: {leaves} leaves");
        assert!(ios * 10 >= pages * 8, "{format}: it is organized: {pages} pages with {ios} I/Os");
        assert!(ios_then * 4 <= pages_then, "{format}: {pages_then} pages with {ios_then} I/Os after REORG");
    }
}

//! What a table costs that is there and not used: nothing is read of it, no file is opened for it, and little memory is taken.

use crate::world::{open, open_with, storage, table_name, with_tables};
use allocation_counter::measure;
use pagefold_engine::database::{Database, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::{CountingStorage, IoCounts, Storage};
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::sync::Arc;

/// What opening takes: bytes that stay, allocations, and calls of the storage.
fn opened(storage: &Arc<dyn Storage>, mode: OpenMode) -> (Database, i64, u64, IoCounts) {
    let counting = CountingStorage::new(Arc::clone(storage));
    let counted: Arc<dyn Storage> = Arc::new(counting.clone());
    let mut database = None;
    let info = measure(|| database = Some(open(&counted, mode)));
    (database.unwrap(), info.bytes_current, info.count_total, counting.counts())
}

#[test]
fn a_table_that_is_not_used_takes_little_memory_and_no_file() {
    let mut before: Option<(u64, i64, u64, IoCounts)> = None;
    for tables in [1_000, 4_000, 16_000] {
        let storage = storage();
        // Without rows, so that it does not take the memory of their files.
        with_tables(&storage, tables, Method::None, false).close().unwrap();
        let (database, bytes, allocations, io) = opened(&storage, OpenMode::Write);
        assert_eq!(database.table_names().len() as u64, tables);
        drop(database);
        println!("{tables} tables with an index: {bytes} bytes stay, {allocations} allocations and {io:?} to open them");
        if let Some((fewer, few_bytes, few_allocations, few_io)) = &before {
            let more = tables - fewer;
            let (bytes, allocations) = ((bytes - few_bytes) / more as i64, (allocations - few_allocations) / more);
            println!("of each one more: {bytes} bytes stay, {allocations} allocations");
            assert!(bytes <= 2_048, "{bytes} bytes for a table and its index");
            // The catalog is longer: a page of it has ten definitions at least, and pages are read together.
            assert!(io.reads - few_io.reads <= more / 5, "{} reads for {more} tables more", io.reads - few_io.reads);
            assert!(io.opens <= few_io.opens, "{} opens", io.opens);
        }
        before = Some((tables, bytes, allocations, io));
    }
}

/// One table of many is read when it is used, and no other.
#[test]
fn using_one_table_of_many() {
    let mut counted = Vec::new();
    for tables in [8, 32, 128] {
        let storage = storage();
        with_tables(&storage, tables, Method::None, true).close().unwrap();
        let counting = CountingStorage::new(Arc::clone(&storage));
        let database = open(&(Arc::new(counting.clone()) as Arc<dyn Storage>), OpenMode::Write);
        let at_open = counting.counts();
        let table = database.table(&table_name(tables / 2)).unwrap();
        assert_eq!(table.row_count(), 1);
        let used = counting.counts();
        counted.push((used.reads - at_open.reads, used.opens - at_open.opens));
        drop(table);
        database.close().unwrap();
    }
    println!("a table and its index are used first: (reads, opens) {counted:?}");
    assert!(counted.iter().all(|count| *count == (2, 2)), "{counted:?}");
}

/// So many files are open at most as were asked for, whatever is used: and rows are there after a crash.
#[test]
fn files_that_are_open_are_bounded() {
    let storage = storage();
    with_tables(&storage, 64, Method::None, true).close().unwrap();
    let counting = CountingStorage::new(Arc::clone(&storage));
    let counted: Arc<dyn Storage> = Arc::new(counting.clone());
    let database = open_with(&counted, OpenMode::Write, Settings { open_files_max: 10, ..Settings::default() });
    for round in 1..=3 {
        for table in database.tables().unwrap() {
            let mut t = database.begin(TransactionOptions::default());
            t.insert(&table, &[ValueRef::Int(round), ValueRef::Int(round)]).unwrap();
            t.commit().unwrap();
        }
        database.checkpoint().unwrap();
        assert!(database.open_files() <= 10, "{} open files", database.open_files());
    }
    database.close().unwrap();
    let database = open(&storage, OpenMode::Write);
    assert!(database.tables().unwrap().iter().all(|table| table.row_count() == 4));
}

/// A checkpoint looks at what was used, and names it, beside ever more tables.
#[test]
fn a_checkpoint_beside_many_tables() {
    let mut counted = Vec::new();
    for tables in [100, 400, 1_600] {
        let storage = storage();
        with_tables(&storage, tables, Method::None, true).close().unwrap();
        let counting = CountingStorage::new(Arc::clone(&storage));
        let database = open(&(Arc::new(counting.clone()) as Arc<dyn Storage>), OpenMode::Write);
        let table = database.table(&table_name(tables / 2)).unwrap();
        let mut last = (0, 0, 0);
        for round in 1..=4 {
            let mut t = database.begin(TransactionOptions::default());
            t.insert(&table, &[ValueRef::Int(round), ValueRef::Int(round)]).unwrap();
            t.commit().unwrap();
            let before = counting.counts();
            let allocations = measure(|| database.checkpoint().unwrap()).count_total;
            let after = counting.counts();
            last = (after.writes - before.writes, after.syncs - before.syncs, allocations);
        }
        counted.push(last);
    }
    println!("a checkpoint after one insert: (writes, syncs, allocations) {counted:?}");
    assert!(counted.iter().all(|(writes, syncs, _)| (*writes, *syncs) == (counted[0].0, counted[0].1)), "{counted:?}");
    assert!(counted.iter().all(|(.., allocations)| *allocations <= counted[0].2 + 8), "{counted:?}");
}

/// Making a table, and the next checkpoint, beside ever more tables.
#[test]
fn making_a_table_beside_many() {
    let mut counted = Vec::new();
    for tables in [1_000, 4_000, 16_000] {
        let storage = storage();
        with_tables(&storage, tables, Method::None, false).close().unwrap();
        let counting = CountingStorage::new(Arc::clone(&storage));
        let database = open(&(Arc::new(counting.clone()) as Arc<dyn Storage>), OpenMode::Write);
        let mut last = (0, 0, 0, 0);
        for i in 0..4 {
            let before = counting.counts();
            let allocations = measure(|| {
                let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("v", DataType::BigInt, false)];
                let mut t = database.begin(TransactionOptions::default());
                let table = t.create_table(TableAttributes::new(format!("made{i}"), Schema::new(columns).unwrap())).unwrap();
                t.create_index(&table, IndexAttributes::new(format!("made{i}_key"), vec![(0, Direction::Ascending)], true)).unwrap();
                t.commit().unwrap();
            })
            .count_total;
            let made = counting.counts();
            let of_checkpoint = measure(|| database.checkpoint().unwrap()).count_total;
            let after = counting.counts();
            last = (made.syncs - before.syncs, allocations, after.writes - made.writes, of_checkpoint);
        }
        counted.push(last);
    }
    println!("a table with an index is made: (syncs, allocations), and a checkpoint: (writes, allocations) {counted:?}");
    assert!(counted.iter().all(|(syncs, ..)| *syncs == 1), "{counted:?}");
    assert!(
        counted.iter().all(|(_, made, writes, checkpoint)| {
            *made <= counted[0].1 + 8 && *writes == counted[0].2 && *checkpoint <= counted[0].3 + 8
        }),
        "{counted:?}"
    );
}

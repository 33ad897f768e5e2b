//! What a table costs that is open and not used.

use crate::world::{open, storage, with_tables};
use allocation_counter::measure;
use pagefold_engine::database::OpenMode;
use pagefold_engine::table_space::Method;
use pagefold_io::{CountingStorage, Storage};
use std::sync::Arc;

/// (Bytes, allocations) that one more table, with its index, takes in an open database.
fn per_table(method: Method, row: bool) -> (u64, u64) {
    let of = |tables: u64| {
        let storage = storage();
        with_tables(&storage, tables, method, row).close().unwrap();
        let mut database = None;
        let info = measure(|| database = Some(open(&storage, OpenMode::Write)));
        assert_eq!(database.map(|database| database.tables().len() as u64), Some(tables));
        info
    };
    let (few, many) = (of(32), of(160));
    ((many.bytes_current - few.bytes_current) as u64 / 128, (many.count_total - few.count_total) / 128)
}

#[test]
fn an_open_table_takes_little_memory() {
    let forms = [(Method::None, false), (Method::None, true), (Method::Page, true), (Method::Fixed, true)];
    let counted = forms.map(|(method, row)| (method, row, per_table(method, row)));
    for (method, row, (bytes, allocations)) in counted {
        println!("{method}, with a row: {row}: {bytes} bytes stay for a table and its index, {allocations} allocations to open them");
    }
    assert!(counted.iter().all(|(.., (bytes, _))| *bytes < 9_000));
}

/// A data set with pages is opened, and its header and space map are read in one go.
#[test]
fn opening_reads_each_data_set_once() {
    let of = |tables: u64| {
        let storage = storage();
        with_tables(&storage, tables, Method::None, true).close().unwrap();
        let counting = CountingStorage::new(Arc::clone(&storage));
        let counted: Arc<dyn Storage> = Arc::new(counting.clone());
        drop(open(&counted, OpenMode::Read));
        counting.counts()
    };
    let (few, many) = (of(8), of(72));
    let (reads, opens) = (many.reads - few.reads, many.opens - few.opens);
    println!("64 tables more, with an index each: {reads} reads, {opens} opens");
    // A few more reads are those of a longer catalog and log.
    assert!((128..150).contains(&reads), "{reads} reads of 128 data sets");
}

//! A damaged dictionary page is met by who needs that dictionary, and by nobody else.

use crate::sample::{Rng, contents, open, places, random_row, refs, run_check, sample};
use pagefold_engine::Error;
use pagefold_engine::database::{Database, OpenMode, ScanRequest};
use pagefold_engine::table_space::Table;
use pagefold_format::page::{self, PageType};
use pagefold_io::MemoryStorage;
use std::sync::Arc;

/// Flips a bit in the first dictionary page of a partition of a table; gives its number.
fn damage(storage: &MemoryStorage, table: &str, partition: usize) -> u32 {
    let file = {
        let database = open(storage, OpenMode::Read).unwrap();
        let table = database.table(table).unwrap();
        crate::sample::file_of(table.data_sets().nth(partition).unwrap().file_id())
    };
    let (used, _) = places(storage);
    let is_dictionary = |bytes: &[u8]| page::page_type(bytes) == Some(PageType::Dictionary);
    let place = used.into_iter().find(|place| place.path == file && is_dictionary(&place.read(storage))).unwrap();
    let mut bytes = place.read(storage);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    place.write(storage, &bytes);
    place.number
}

fn rows(database: &Database, table: &Arc<Table>) -> pagefold_engine::Result<usize> {
    let mut rows = database.read_view().scan(table, &ScanRequest::default())?.into_rows();
    rows.try_fold(0, |rows, row| row.map(|_| rows + 1))
}

/// The error names the table and the page of the dictionary.
fn assert_names(error: &Error, table: &str, number: u32) {
    match error {
        Error::Corrupt { object, page, .. } => assert!(object.contains(table) && *page == number, "{error}"),
        other => panic!("{other}"),
    }
}

#[test]
fn other_tables_are_read_and_changed() {
    let storage = sample();
    let whole = {
        let database = open(&storage, OpenMode::Read).unwrap();
        database.tables().unwrap().iter().map(|table| (table.name().to_owned(), rows(&database, table).unwrap())).collect::<Vec<_>>()
    };
    let number = damage(&storage, "wide", 0);
    assert!(!run_check(&storage).is_clean());
    let database = open(&storage, OpenMode::Write).unwrap();
    for (name, expected) in whole {
        let table = database.table(&name).unwrap();
        let row = random_row(&mut Rng(3), 1 << 40);
        if name == "wide" {
            assert_names(&rows(&database, &table).unwrap_err(), "wide", number);
            assert_names(&table.insert(&refs(&row)).unwrap_err(), "wide", number);
        } else {
            assert_eq!(rows(&database, &table).unwrap(), expected, "{name}");
            table.insert(&refs(&row)).unwrap();
        }
    }
}

/// Every partition has the dictionary: one is enough.
#[test]
fn another_partition_helps_out() {
    let storage = sample();
    let whole = contents(&storage).unwrap();
    damage(&storage, "parts", 0);
    assert!(!run_check(&storage).is_clean());
    assert_eq!(contents(&storage).unwrap(), whole);
}

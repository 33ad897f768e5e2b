//! Damage to copies is found, and the page named where there is one.

use super::stream::{CopyReader, Part};
use crate::database::{Database, OpenMode, Settings, TransactionOptions};
use crate::pool::PoolSettings;
use crate::table_space::TableAttributes;
use crate::{Error, Result, Silent};
use pagefold_io::{MemoryStorage, OpenOptions, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const COPY: &str = "copy.pfc";

/// A storage with a small copy.
fn with_copy() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let pools = PoolSettings { memory_bytes: 1 << 20, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, ..Settings::default() };
    let database = Database::open(Arc::clone(&storage), clock, Path::new("db"), OpenMode::Create, settings).unwrap();
    let mut change = database.change();
    let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false)]).unwrap();
    let table = change.create_table(TableAttributes::new("t", schema).with_page_bytes(2048)).unwrap();
    change.commit().unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    for n in 0..600 {
        transaction.insert(&table, &[ValueRef::Int(n)]).unwrap();
    }
    transaction.commit().unwrap();
    database.copy(Path::new(COPY), None, &Silent).unwrap();
    storage
}

/// Reads all of a copy; the places of pages in the file.
fn read_all(storage: &dyn Storage) -> Result<Vec<(u64, u32, u32)>> {
    let mut reader = CopyReader::open(storage, Path::new(COPY))?;
    let mut places = Vec::new();
    loop {
        let position = reader.position();
        match reader.next()? {
            Some(Part::Pages { page_bytes, first, pages, .. }) => {
                let count = pages.len() as u32 / page_bytes;
                places.extend((0..count).map(|i| (position + u64::from(i * page_bytes), first + i, page_bytes)));
            }
            Some(Part::Log { .. }) => {}
            None => return Ok(places),
        }
    }
}

#[test]
fn every_byte_counts() {
    let storage = with_copy();
    let places = read_all(storage.as_ref()).unwrap();
    assert!(places.len() > 5);
    let file = storage.open(Path::new(COPY), &OpenOptions::read_write()).unwrap();
    let mut named = 0;
    for at in 0..file.len().unwrap() {
        let mut byte = [0];
        file.read_at(&mut byte, at).unwrap();
        file.write_at(&[byte[0] ^ (1 << (at % 8))], at).unwrap();
        let error = read_all(storage.as_ref()).expect_err(&format!("byte {at}"));
        let inside = places.iter().find(|(start, _, bytes)| (*start..*start + u64::from(*bytes)).contains(&at));
        match (inside, &error) {
            (Some((_, number, _)), Error::Corrupt { page, object, .. }) => {
                assert!(page == number && object.starts_with(COPY), "byte {at}: {error}");
                named += 1;
            }
            // A block whose header says another file.
            (None, _) => assert!(error.to_string().starts_with(COPY), "byte {at}: {error}"),
            _ => panic!("byte {at}: {error}"),
        }
        file.write_at(&byte, at).unwrap();
    }
    assert_eq!(named, places.iter().map(|(_, _, bytes)| u64::from(*bytes)).sum::<u64>());
    read_all(storage.as_ref()).unwrap();
}

#[test]
fn a_copy_that_was_cut_is_refused() {
    let storage = with_copy();
    let file = storage.open(Path::new(COPY), &OpenOptions::read_write()).unwrap();
    let length = file.len().unwrap();
    for cut in (0..length).rev().step_by(97).chain([0, 1, 63, 64]) {
        file.set_len(cut).unwrap();
        assert!(CopyReader::open(storage.as_ref(), Path::new(COPY)).is_err(), "{cut} of {length} bytes");
    }
}

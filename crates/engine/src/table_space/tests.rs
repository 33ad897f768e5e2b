//! A table behaves like a map from RID to row, under every method and page size, in a pool far too small for it.

use super::*;
use crate::database::{Database, OpenMode, Settings, TransactionOptions};
use crate::index::IndexAttributes;
use crate::pool::By;
use crate::pool::PoolSettings;
use crate::test_random::Random;
use crate::{Error, Extents};
use pagefold_codec::row::{DictionaryChoice, RowDictionary, RowSample, TrainOptions, train_row_dictionary};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn settings() -> Settings {
    Settings { pools: PoolSettings { memory_bytes: 2 << 20, ..PoolSettings::default() }, ..Settings::default() }
}

fn open(storage: &Arc<MemoryStorage>, mode: OpenMode) -> Database {
    let storage: Arc<dyn Storage> = Arc::clone(storage) as Arc<dyn Storage>;
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new("db"), mode, settings()).unwrap()
}

fn schema() -> Schema {
    Schema::new(vec![
        Column::new("id", DataType::BigInt, false),
        Column::new("amount", DataType::Decimal { precision: 15, scale: 2 }, true),
        Column::new("text", DataType::Varchar(None), false),
        Column::new("more", DataType::Varchar(None), true),
    ])
    .unwrap()
}

const WORDS: [&str; 8] = ["carefully ", "final ", "deposits ", "express ", "requests ", "slyly ", "ironic ", "packages "];

fn text(rng: &mut Random, words: usize) -> String {
    (0..words).map(|_| WORDS[rng.index(WORDS.len())]).collect()
}

fn random_row(rng: &mut Random) -> Vec<Value> {
    let words = if rng.index(40) == 0 { rng.index(3000) } else { rng.index(12) };
    vec![
        Value::Int(rng.next() as i64 >> 20),
        if rng.index(5) == 0 { Value::Null } else { Value::Decimal(rng.index(100_000) as i128) },
        Value::Text(text(rng, words)),
        if rng.index(3) == 0 { Value::Null } else { Value::Text(text(rng, 2)) },
    ]
}

pub(super) fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

/// Loads rows; gives their RIDs.
pub(super) fn load_rows(table: &Table, rows: &[Vec<Value>]) -> Vec<Rid> {
    let mut loader = BulkLoader::new(table).unwrap();
    let mut rids = Vec::new();
    let mut placed = |rid, _: &[u8]| {
        rids.push(rid);
        Ok::<_, Error>(())
    };
    for row in rows {
        let mut record = Vec::new();
        table.build_record(By::Nobody, &refs(row), &mut record).unwrap();
        loader.push(&record, &mut placed).unwrap();
    }
    loader.finish(&mut placed).unwrap();
    rids
}

fn dictionary(table: &Table) -> RowDictionary {
    let mut rng = Random(9);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..3000 {
        let row = random_row(&mut rng);
        if table.layout().encoded_len(&refs(&row)).unwrap() < 1000 {
            table.layout().encode(&refs(&row), &mut bytes).unwrap();
            ends.push(bytes.len() as u32);
        }
    }
    let choice = if table.attributes().method == Method::Huffman { DictionaryChoice::Huffman } else { DictionaryChoice::Fixed };
    train_row_dictionary(&RowSample::new(&bytes, &ends).unwrap(), &TrainOptions::default(), choice)
}

fn compare(table: &Table, model: &BTreeMap<Rid, Vec<Value>>) {
    let mut seen = BTreeMap::new();
    let visited = table.visit_newest(DataPages::of(table), |rid, record| {
        assert!(seen.insert(rid, table.values(record)?).is_none(), "row {rid} came twice");
        Ok::<_, Error>(())
    });
    visited.unwrap();
    assert_eq!(&seen, model);
    assert_eq!(table.row_count(), model.len() as u64);
}

#[test]
fn behaves_like_a_map() {
    for (method, page_bytes) in [
        (Method::None, 2048),
        (Method::None, 8192),
        (Method::Row, 2048),
        (Method::Row, 16384),
        (Method::Page, 2048),
        (Method::Page, 16384),
        (Method::Fixed, 4096),
        (Method::Fixed, 32768),
        (Method::Huffman, 2048),
        (Method::Huffman, 8192),
    ] {
        let mut rng = Random(page_bytes as u64);
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create);
        let mut change = database.change();
        let attributes = TableAttributes {
            method,
            partition_bytes: 16 * page_bytes as u64,
            ..TableAttributes::new("t", schema()).with_page_bytes(page_bytes)
        };
        let table = change.create_table(attributes).unwrap();
        if method.dictionary_type().is_some() {
            table.set_dictionary(dictionary(&table)).unwrap();
        }
        let mut model: BTreeMap<Rid, Vec<Value>> = BTreeMap::new();
        let mut rids: Vec<Rid> = Vec::new();
        for step in 0..12_000 {
            match rng.index(10) {
                0..=4 => {
                    let row = random_row(&mut rng);
                    let rid = table.insert(&refs(&row)).unwrap();
                    assert!(model.insert(rid, row).is_none(), "RID {rid} is in use");
                    rids.push(rid);
                }
                5 | 6 if !rids.is_empty() => {
                    let rid = rids[rng.index(rids.len())];
                    let row = random_row(&mut rng);
                    let mut changes: Vec<(usize, ValueRef<'_>)> = row.iter().map(Value::as_ref).enumerate().skip(rng.index(4)).collect();
                    if rng.index(2) == 0 {
                        // Fixed-width columns only.
                        changes.retain(|(column, _)| *column < 2);
                    }
                    assert_eq!(table.update(rid, &changes).unwrap(), model.contains_key(&rid));
                    if let Some(old) = model.get_mut(&rid) {
                        for (column, _) in &changes {
                            old[*column] = row[*column].clone();
                        }
                    }
                }
                7 if !rids.is_empty() => {
                    let rid = rids[rng.index(rids.len())];
                    let amount = Value::Decimal(rng.index(1000) as i128);
                    assert_eq!(table.update(rid, &[(1, amount.as_ref())]).unwrap(), model.contains_key(&rid));
                    if let Some(old) = model.get_mut(&rid) {
                        old[1] = amount;
                    }
                }
                8 if !rids.is_empty() => {
                    let at = rng.index(rids.len());
                    let rid = rids.swap_remove(at);
                    assert_eq!(table.delete(rid).unwrap(), model.remove(&rid).is_some());
                    rids.retain(|r| *r != rid);
                }
                _ if !rids.is_empty() => {
                    let rid = rids[rng.index(rids.len())];
                    let found = table.get(rid).unwrap().map(|record| table.values(&record).unwrap());
                    assert_eq!(found.as_ref(), model.get(&rid));
                }
                _ => {}
            }
            if step % 4000 == 3999 {
                compare(&table, &model);
            }
        }
        change.commit().unwrap();
        assert!(page_bytes > 8192 || table.data_sets().count() > 1, "the table never grew into another partition");
        drop(table);
        drop(database);
        let again = open(&storage, OpenMode::Read);
        compare(&again.table("t").unwrap(), &model);
    }
}

#[test]
fn bulk_load_gives_the_rows_back_in_order() {
    for method in Method::ALL {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create);
        let mut change = database.change();
        let attributes = TableAttributes { method, pctfree: 10, maxrows: 30, ..TableAttributes::new("t", schema()) };
        let table = change.create_table(attributes).unwrap();
        if method.dictionary_type().is_some() {
            table.set_dictionary(dictionary(&table)).unwrap();
        }
        let mut rng = Random(3);
        let rows: Vec<Vec<Value>> = (0..20_000).map(|_| random_row(&mut rng)).collect();
        let rids = load_rows(&table, &rows);
        assert!(rids.is_sorted());
        change.commit().unwrap();
        let model: BTreeMap<Rid, Vec<Value>> = rids.into_iter().zip(rows).collect();
        compare(&table, &model);
        drop((table, database));
        let again = open(&storage, OpenMode::Write);
        let table = again.table("t").unwrap();
        compare(&table, &model);
        // A copy has the same rows under the same RIDs.
        let mut change = again.change();
        let copy = change.fork_table("t").unwrap();
        change.commit().unwrap();
        compare(&copy, &model);
        drop(table);
        (0..2).for_each(|_| again.checkpoint().unwrap());
        assert_eq!(storage.list(Path::new("db/data")).unwrap().len(), 2);
    }
}

#[test]
fn define_no_and_extents() {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create);
    let mut change = database.change();
    let extents = Extents { first_bytes: 100_000, second_bytes: 50_000 };
    let table = change.create_table(TableAttributes { extents, ..TableAttributes::new("t", schema()) }).unwrap();
    let before = storage.list(Path::new("db/data")).unwrap().len();
    let row = [ValueRef::Int(1), ValueRef::Null, ValueRef::Text("a"), ValueRef::Null];
    table.insert(&row).unwrap();
    assert_eq!(storage.list(Path::new("db/data")).unwrap().len(), before + 1);
    let data_set = Arc::clone(table.data_sets().next().unwrap());
    assert_eq!(data_set.allocated_bytes(), 106_496);
    for _ in 0..3000 {
        table.insert(&row).unwrap();
    }
    assert_eq!((data_set.allocated_bytes() - 106_496) % 57_344, 0);
    drop((data_set, table, change));
    assert_eq!(storage.list(Path::new("db/data")).unwrap().len(), before, "an abandoned change leaves a file");
}

#[test]
fn a_moved_row_is_never_more_than_one_hop_away() {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create);
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema()).with_page_bytes(2048)).unwrap();
    let small = [ValueRef::Int(1), ValueRef::Null, ValueRef::Text("x"), ValueRef::Null];
    let rids: Vec<Rid> = (0..500).map(|_| table.insert(&small).unwrap()).collect();
    for length in [100, 300, 700, 1500] {
        let text = "y".repeat(length);
        for rid in &rids {
            assert!(table.update(*rid, &[(2, ValueRef::Text(&text))]).unwrap());
        }
        for rid in &rids {
            // `read` follows one pointer only, so finding the row says that one is enough.
            let record = table.get(*rid).unwrap().unwrap();
            assert_eq!(table.values(&record).unwrap()[2], Value::Text(text.clone()));
        }
    }
    assert_eq!(table.row_count(), 500);
}

#[test]
fn pages_smaller_than_the_sectors_of_the_device() {
    let storage = Arc::new(MemoryStorage::with(4096, None));
    let database = open(&storage, OpenMode::Create);
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema()).with_page_bytes(2048)).unwrap();
    let mut rng = Random(8);
    let model: BTreeMap<Rid, Vec<Value>> = (0..2000)
        .map(|_| {
            let row = random_row(&mut rng);
            (table.insert(&refs(&row)).unwrap(), row)
        })
        .collect();
    change.commit().unwrap();
    drop((table, database));
    compare(&open(&storage, OpenMode::Read).table("t").unwrap(), &model);
}

#[test]
fn threads_that_find_no_partition_add_one_together() {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create);
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema())).unwrap();
    // Each of two threads has seen that there is none, or that the last one is full.
    for (last, number) in [(None, 0), (Some(0), 1)] {
        let first = Arc::clone(table.partition_after(last).unwrap());
        let second = table.partition_after(last).unwrap();
        assert!(Arc::ptr_eq(&first, second));
        assert_eq!((first.attributes.partition, table.data_sets().count()), (number, usize::from(number) + 1));
    }
    assert!(Arc::ptr_eq(table.last_partition().unwrap(), table.partition_after(Some(0)).unwrap()));
}

/// Of columns that make a row too wide, the ones without an index lie outside.
#[test]
fn an_indexed_value_stays_in_its_row() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let database = Database::open(storage, clock, Path::new("db"), OpenMode::Create, Settings::default()).unwrap();
    let columns = ["key", "a", "b", "c", "d"].map(|name| Column::new(name, DataType::Varchar(None), false));
    let schema = Schema::new(columns.to_vec()).unwrap();
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema).with_page_bytes(2048)).unwrap();
    let index = IndexAttributes::new("i", vec![(0, Direction::Ascending)], false);
    let index = change.create_index(&table, IndexAttributes { page_bytes: 2048, ..index }).unwrap();
    change.commit().unwrap();
    let (key, other) = ("k".repeat(450), "x".repeat(440));
    let mut transaction = database.begin(TransactionOptions::default());
    let row = [ValueRef::Text(&key), ValueRef::Text(&other), ValueRef::Text(&other), ValueRef::Text(&other), ValueRef::Text(&other)];
    let rid = transaction.insert(&table, &row).unwrap();
    assert_eq!(transaction.find(&table, &index, &[ValueRef::Text(&key)]).unwrap(), [rid]);
    let record = table.get(rid).unwrap().unwrap();
    let outside: Vec<usize> = table.layout.large_values(&record).unwrap().into_iter().map(|(column, _)| column).collect();
    assert_eq!(outside, [1]);
}

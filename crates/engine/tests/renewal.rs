//! Dictionaries that renew themselves: tables that began without one, and whose rows become others.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pagefold_codec::row::RowDictionary;
use pagefold_engine::database::{Database, Isolation, OpenMode, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::pool::{By, PoolSettings};
use pagefold_engine::table_space::{LIVE_MAX, Method, Sampler, Table, TableAttributes};
use pagefold_engine::{DataSet, Error};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const METHODS: [Method; 3] = [Method::Page, Method::Fixed, Method::Huffman];

type Model = BTreeMap<Rid, Vec<Value>>;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The first ones come more often.
const WORDS: u64 = 300;

/// What rows are about: another one has other words.
fn words(subject: u64) -> Vec<String> {
    let mut random = Random(subject + 77);
    (0..WORDS).map(|_| (0..4 + random.below(9)).map(|_| char::from(b'a' + random.below(26) as u8)).collect()).collect()
}

fn row(random: &mut Random, words: &[String], id: i64) -> Vec<Value> {
    let count = 6 + random.below(12);
    let text: Vec<&str> = (0..count).map(|_| words[(random.below(WORDS) * random.below(WORDS) / WORDS) as usize].as_str()).collect();
    vec![Value::Int(id), Value::Int(random.below(5000) as i64), Value::Text(text.join(" "))]
}

fn open(storage: &Arc<MemoryStorage>, mode: OpenMode, background_threads: usize) -> Database {
    let storage: Arc<dyn Storage> = Arc::clone(storage) as Arc<dyn Storage>;
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

fn create(database: &Database, method: Method) -> Arc<Table> {
    create_with(database, method, &[], &mut Model::new())
}

/// A table with rows that are in no log.
fn create_with(database: &Database, method: Method, rows: &[Vec<Value>], model: &mut Model) -> Arc<Table> {
    let schema = Schema::new(vec![
        Column::new("id", DataType::BigInt, false),
        Column::new("n", DataType::Integer, true),
        Column::new("text", DataType::Varchar(None), false),
    ]);
    let mut change = database.change();
    let attributes = TableAttributes { method, ..TableAttributes::new("t", schema.unwrap()).with_page_bytes(4096) };
    let table = change.create_table(attributes).unwrap();
    model.extend(rows.iter().map(|row| (table.insert(&refs(row)).unwrap(), row.clone())));
    change.commit().unwrap();
    table
}

fn begin(database: &Database) -> pagefold_engine::database::Transaction<'_> {
    database.begin(TransactionOptions { isolation: Isolation::ReadCommitted, ..TransactionOptions::default() })
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// Inserts rows in transactions of a thousand; how many bytes their texts have.
fn insert(database: &Database, model: &mut Model, random: &mut Random, words: &[String], rows: usize) -> usize {
    let table = database.table("t").unwrap();
    let mut bytes = 0;
    for start in (0..rows).step_by(1000) {
        let mut transaction = begin(database);
        for _ in start..rows.min(start + 1000) {
            let row = row(random, words, model.len() as i64);
            bytes += if let Value::Text(text) = &row[2] { text.len() } else { 0 };
            let rid = transaction.insert(&table, &refs(&row)).unwrap();
            model.insert(rid, row);
        }
        transaction.commit().unwrap();
    }
    bytes
}

fn compare(database: &Database, model: &Model) {
    let table = database.table("t").unwrap();
    let scan = database.read_view().scan(&table, &ScanRequest::default()).unwrap();
    let seen = scan.into_rows().collect::<Result<Model, Error>>().unwrap();
    assert_eq!(seen.len(), model.len());
    assert!(seen == *model, "other rows");
}

fn data_pages(table: &Table) -> u64 {
    table.data_sets().map(|data_set: &Arc<DataSet>| u64::from(data_set.facts().data_pages)).sum()
}

/// Pages that the rows would take if they had all been inserted with a dictionary made of all of them.
fn fresh_pages(database: &Database, method: Method) -> u64 {
    let old = database.table("t").unwrap();
    let mut change = database.change();
    let attributes = TableAttributes { name: "fresh".into(), ..old.attributes().clone() };
    let fresh = change.create_table(attributes).unwrap();
    let dictionary = old.sample_records().unwrap().train(method, old.layout(), old.row_count(), old.attributes().page_fill());
    fresh.set_dictionary(dictionary.unwrap()).unwrap();
    let mut rows = database.read_view().scan(&old, &ScanRequest::default()).unwrap().into_rows();
    while let Some((_, record)) = rows.next_record().unwrap() {
        fresh.insert_record(By::Nobody, record).unwrap();
    }
    data_pages(&fresh)
}

#[test]
fn rows_that_came_before_the_dictionary_are_compressed_once_there_is_one() {
    for method in METHODS {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, 0);
        let table = create(&database, method);
        let (mut model, mut random, words) = (Model::new(), Random(1), words(1));
        insert(&database, &mut model, &mut random, &words, 8000);
        let pages = data_pages(&table);
        assert!(table.dictionary().is_none());
        let renewal = database.renew_dictionaries("t").unwrap();
        assert!(renewal.added && renewal.busy_pages == 0 && renewal.pages > pages * 9 / 10, "{method}: {renewal:?} of {pages} pages");
        compare(&database, &model);
        // As many rows again find room on the same pages.
        insert(&database, &mut model, &mut random, &words, 8000);
        assert!(data_pages(&table) <= pages + pages / 20, "{method}: {} pages, {pages} before", data_pages(&table));
        assert_eq!(database.renew_dictionaries("t").unwrap().pages, 0);
        compare(&database, &model);
        database.close().unwrap();
        let database = open(&storage, OpenMode::Write, 0);
        compare(&database, &model);
        assert_eq!(database.table("t").unwrap().dictionary_versions(), [1]);
    }
}

#[test]
fn the_thread_in_the_background_does_it_too() {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create, 1);
    let table = create(&database, Method::Fixed);
    let (mut model, mut random, words) = (Model::new(), Random(1), words(1));
    // Until it is there: nobody knows when the thread comes round to it.
    while table.dictionary().is_none() {
        assert!(model.len() < 2_000_000, "the thread does not come round to it");
        insert(&database, &mut model, &mut random, &words, 1000);
    }
    insert(&database, &mut model, &mut random, &words, 1000);
    compare(&database, &model);
    database.close().unwrap();
    compare(&open(&storage, OpenMode::Read, 0), &model);
}

/// In small tables the rows that come until others are noticed weigh most.
#[test]
fn when_other_rows_come_the_table_takes_little_more_than_with_a_fresh_dictionary() {
    rows_change(24_000, 10);
}

#[test]
#[ignore = "a minute; see docs/performance.md"]
fn when_other_rows_come_a_larger_table_takes_hardly_more_than_with_a_fresh_dictionary() {
    rows_change(120_000, 5);
}

/// Rows, then as many others. The table takes at most so many percent more than with a fresh dictionary.
fn rows_change(rows: usize, percent_max: u64) {
    for method in METHODS {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, 0);
        let table = create(&database, method);
        let (mut model, mut random) = (Model::new(), Random(1));
        database.use_dictionary("t", dictionary(method, &table, &words(1), rows as i64)).unwrap();
        for subject in 1..=2 {
            let words = words(subject);
            let mut versions = 0;
            // The rate at which the thread in the background would be asked.
            let mut since_look = 0;
            for _ in 0..rows / 500 {
                since_look += insert(&database, &mut model, &mut random, &words, 500);
                if since_look as u64 >= (data_pages(&table) * 4096 / 16).max(128 << 10) {
                    since_look = 0;
                    database.renew_dictionaries("t").unwrap();
                }
                versions = versions.max(table.dictionary_versions().len());
            }
            assert!(versions <= LIVE_MAX);
            let (pages, fresh) = (data_pages(&table), fresh_pages(&database, method));
            println!(
                "{method}, subject {subject}: {pages} pages, {fresh} with a fresh dictionary, versions {:?}",
                table.dictionary_versions()
            );
            assert!(
                pages * 100 <= fresh * (100 + percent_max),
                "{method}, subject {subject}: {pages} pages, {fresh} with a fresh dictionary"
            );
        }
        compare(&database, &model);
        database.close().unwrap();
        compare(&open(&storage, OpenMode::Write, 0), &model);
    }
}

fn dictionary(method: Method, table: &Table, words: &[String], rows: i64) -> RowDictionary {
    let mut random = Random(5);
    let mut record = Vec::new();
    let mut sampler = Sampler::default();
    for id in 0..rows {
        record.clear();
        table.layout().encode(&refs(&row(&mut random, words, id)), &mut record).unwrap();
        sampler.push(&record);
    }
    sampler.into_sample().train(method, table.layout(), 1 << 40, table.attributes().page_fill()).unwrap()
}

/// Changes at random, by transactions that are mostly taken back, while one dictionary follows another: all rows are there, whichever version they had.
#[test]
fn a_version_goes_when_nothing_needs_it_and_nothing_is_lost() {
    for (method, seed) in METHODS.into_iter().flat_map(|method| (0..3).map(move |seed| (method, seed))) {
        let storage = Arc::new(MemoryStorage::new());
        let mut database = open(&storage, OpenMode::Create, 0);
        let table = create(&database, method);
        let (mut model, mut random) = (Model::new(), Random(seed));
        let subjects: Vec<Vec<String>> = (0..12).map(words).collect();
        database.use_dictionary("t", dictionary(method, &table, &subjects[0], 400)).unwrap();
        insert(&database, &mut model, &mut random, &subjects[0], 600);
        drop(table);
        let (mut dropped, mut waited, mut kept_off) = (0, 0, 0);
        for subject in 1..12 {
            {
                let table = database.table("t").unwrap();
                let mut open_ones = Vec::new();
                for _ in 0..3 {
                    let mut transaction = begin(&database);
                    let mut changed = BTreeMap::new();
                    for _ in 0..20 {
                        let rids: Vec<Rid> = model.keys().copied().collect();
                        let rid = rids[random.below(rids.len() as u64) as usize];
                        let taken = |others: &[(_, BTreeMap<Rid, _>)]| others.iter().any(|(_, changed)| changed.contains_key(&rid));
                        if taken(&open_ones) {
                            continue;
                        }
                        let new = row(&mut random, &subjects[subject - 1], 7);
                        if random.below(5) == 0 {
                            assert!(transaction.delete(&table, rid).unwrap() || changed.get(&rid) == Some(&None));
                            changed.insert(rid, None);
                        } else if transaction.update(&table, rid, &[(2, new[2].as_ref()), (1, new[1].as_ref())]).unwrap() {
                            changed.insert(rid, Some(new));
                        }
                    }
                    open_ones.push((transaction, changed));
                }
                if table.dictionary_versions().len() < LIVE_MAX {
                    database.use_dictionary("t", dictionary(method, &table, &subjects[subject], 400)).unwrap();
                }
                let renewal = database.renew_dictionaries("t").unwrap();
                waited += usize::from(renewal.busy_pages > 0);
                // One that begins while the round waits, and is taken back when it has gone on.
                let mut late = begin(&database);
                let taken: Vec<Rid> = open_ones.iter().flat_map(|(_, changed)| changed.keys().copied()).collect();
                for (i, rid) in model.keys().filter(|rid| !taken.contains(rid)).step_by(9).enumerate() {
                    // A deleted row keeps the form that it had: its page is needed as it is.
                    if i % 6 == 0 {
                        assert!(late.delete(&table, *rid).unwrap());
                        continue;
                    }
                    let new = row(&mut random, &subjects[subject], 7);
                    late.update(&table, *rid, &[(2, new[2].as_ref())]).unwrap();
                }
                for (i, (transaction, changed)) in open_ones.into_iter().enumerate() {
                    if (i + subject) % 3 != 0 {
                        transaction.rollback().unwrap();
                        continue;
                    }
                    transaction.commit().unwrap();
                    for (rid, row) in changed {
                        match row {
                            Some(row) => {
                                let old = model.get_mut(&rid).unwrap();
                                old[1..].clone_from_slice(&row[1..]);
                            }
                            None => _ = model.remove(&rid),
                        }
                    }
                }
                let amid = database.renew_dictionaries("t").unwrap();
                kept_off += usize::from(amid.busy_pages > 0);
                late.rollback().unwrap();
                compare(&database, &model);
                database.remove_leftovers().unwrap();
                let after = database.renew_dictionaries("t").unwrap();
                dropped += [renewal, amid, after].iter().filter(|renewal| renewal.dropped).count();
                compare(&database, &model);
                assert!(table.dictionary_versions().len() <= LIVE_MAX);
            }
            insert(&database, &mut model, &mut random, &subjects[subject], 60);
            if subject % 3 == 0 {
                database.close().unwrap();
                database = open(&storage, OpenMode::Write, 0);
                compare(&database, &model);
            }
        }
        assert!(dropped >= 2, "{method} {seed}: {dropped} versions have gone");
        assert!(kept_off >= 1 || method == Method::Page, "{method} {seed}: no page was changed while a round went on");
        assert!(waited >= 2 || method == Method::Page, "{method} {seed}: {waited} rounds had to wait");
    }
}

/// A dictionary is logged though nobody has logged anything before: rows of later transactions have its form.
#[test]
fn a_dictionary_that_comes_before_the_first_transaction_survives_a_crash() {
    for method in METHODS {
        let storage = FaultStorage::new(FaultOptions::default());
        let clock = || Arc::new(SimulatedClock::new(Duration::from_secs(1)));
        let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
        let settings = Settings { pools, ..Settings::default() };
        let open = |storage: FaultStorage| Database::open(Arc::new(storage), clock(), Path::new("db"), OpenMode::Create, settings).unwrap();
        let database = open(storage.clone());
        let (mut model, mut random, words) = (Model::new(), Random(1), words(1));
        let loaded: Vec<_> = (0..20).map(|id| row(&mut random, &words, id)).collect();
        let table = create_with(&database, method, &loaded, &mut model);
        database.use_dictionary("t", dictionary(method, &table, &words, 400)).unwrap();
        insert(&database, &mut model, &mut random, &words, 2000);
        let database = open(storage.crash_image(CrashPolicy::DropAll));
        compare(&database, &model);
        assert_eq!(database.table("t").unwrap().dictionary_versions(), [1]);
    }
}

//! Rows of which compression leaves fewer bytes than a forward pointer takes: they are padded, so they can give way to one.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pagefold_codec::row::RowDictionary;
use pagefold_engine::Error;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::pool::{Access, PoolSettings};
use pagefold_engine::table_space::{Method, Sampler, Table, TableAttributes};
use pagefold_format::data::{Body, DataPage, STORED_BYTES_MIN, Stored};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, SimulatedClock};
use pagefold_types::{Column, DataType, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type Model = BTreeMap<Rid, Vec<Value>>;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Nearly nothing is left of the first kind, under `row` too; the second grows beyond what its page has room for.
fn row(random: &mut Random, short: bool) -> Vec<Value> {
    let text = if short { String::new() } else { (0..40 + random.below(200)).map(|_| char::from(b'!' + random.below(90) as u8)).collect() };
    vec![Value::Int(random.below(3) as i64), Value::Int(1), Value::Text(text)]
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

fn open(storage: &FaultStorage) -> Database {
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let settings = Settings { pools, ..Settings::default() };
    Database::open(Arc::new(storage.clone()), clock, Path::new("db"), OpenMode::Create, settings).unwrap()
}

fn create(database: &Database, method: Method) -> Arc<Table> {
    let column = |name: &str, data_type| Column::new(name, data_type, false);
    let columns = vec![column("a", DataType::BigInt), column("b", DataType::BigInt), column("text", DataType::Varchar(None))];
    let mut change = database.change();
    let attributes = TableAttributes { method, ..TableAttributes::new("t", Schema::new(columns).unwrap()).with_page_bytes(4096) };
    let table = change.create_table(attributes).unwrap();
    change.commit().unwrap();
    table
}

fn dictionary(method: Method, table: &Table) -> RowDictionary {
    let (mut random, mut sampler) = (Random(9), Sampler::default());
    for _ in 0..4000 {
        let mut record = Vec::new();
        table.layout().encode(&refs(&row(&mut random, true)), &mut record).unwrap();
        sampler.push(&record);
    }
    sampler.into_sample().train_any(method, table.layout()).unwrap()
}

fn compare(database: &Database, model: &Model) {
    let table = database.table("t").unwrap();
    let scan = database.read_view().scan(&table, &ScanRequest::default()).unwrap();
    let seen = scan.into_rows().collect::<Result<Model, Error>>().unwrap();
    assert!(seen == *model, "{} rows, not {}", seen.len(), model.len());
}

/// Padded rows in the form of their page and in another, and forward pointers.
fn kinds(table: &Table) -> [usize; 3] {
    let mut kinds = [0; 3];
    for data_set in table.data_sets() {
        for number in data_set.data_page_numbers() {
            let page = table.manager().shared(data_set, number, Access::Scan).unwrap();
            let view = DataPage::new(&page);
            view.validate().unwrap();
            for row in (0..view.slot_count()).filter_map(|slot| view.row(slot)) {
                match Stored::parse(row, view.dictionary_version()).unwrap() {
                    Stored::Home(Body::Compressed { version, codes }) if codes.len() < STORED_BYTES_MIN => {
                        assert_eq!(row.bytes.len(), STORED_BYTES_MIN);
                        kinds[usize::from(version != view.dictionary_version())] += 1;
                    }
                    Stored::Forward(_) => kinds[2] += 1,
                    _ => {}
                }
            }
        }
    }
    kinds
}

#[test]
fn padded_rows_give_way_and_come_back() {
    for (method, seed) in
        [Method::Row, Method::Fixed, Method::Huffman].into_iter().flat_map(|method| (0..2).map(move |seed| (method, seed)))
    {
        let mut storage = FaultStorage::new(FaultOptions::default());
        let mut database = open(&storage);
        let (mut model, mut random) = (Model::new(), Random(seed));
        let mut most = [0; 3];
        create(&database, method);
        for round in 0..12 {
            let table = database.table("t").unwrap();
            // The second time pages of the first one's form have room for rows.
            if method != Method::Row && (round == 0 || round == 6) {
                database.use_dictionary("t", dictionary(method, &table)).unwrap();
            }
            for _ in 0..8 {
                let mut transaction = database.begin(TransactionOptions::default());
                let mut after = model.clone();
                for _ in 0..60 {
                    let short = random.below(3) > 0;
                    let new = row(&mut random, short);
                    let known = after.keys().nth(random.below(after.len().max(1) as u64) as usize).copied();
                    match (known, random.below(8)) {
                        (Some(rid), 0) => {
                            assert!(transaction.delete(&table, rid).unwrap());
                            after.remove(&rid);
                        }
                        (Some(rid), 1..=3) => {
                            assert!(transaction.update(&table, rid, &[(0, new[0].as_ref()), (2, new[2].as_ref())]).unwrap());
                            after.insert(rid, new);
                        }
                        _ => _ = after.insert(transaction.insert(&table, &refs(&new)).unwrap(), new),
                    }
                }
                if random.below(2) == 0 {
                    transaction.commit().unwrap();
                    model = after;
                } else {
                    transaction.rollback().unwrap();
                }
            }
            compare(&database, &model);
            let kinds = kinds(&table);
            (0..3).for_each(|kind| most[kind] = most[kind].max(kinds[kind]));
            if round % 4 == 3 {
                drop(table);
                storage = storage.crash_image(CrashPolicy::DropAll);
                database = open(&storage);
                compare(&database, &model);
            }
        }
        println!("{method} {seed}: {most:?} rows");
        assert!(most[0] > 100 && most[2] > 0, "{method} {seed}: {most:?} rows");
        assert!(most[1] > 0 || method == Method::Row, "{method} {seed}: {most:?} rows");
    }
}

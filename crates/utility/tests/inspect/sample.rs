//! A database with everything in it, in memory, and what its files hold.

use pagefold_codec::row::{DictionaryChoice, RowDictionary, RowSample, TrainOptions, train_row_dictionary};
use pagefold_engine::btree::Direction as Walk;
use pagefold_engine::database::{Change, Database, OpenMode, ReadView, ScanRequest, Settings};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::pool::By;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{BulkLoader, Method, Table, TableAttributes};
use pagefold_engine::{DOUBLE_WRITE_NAME, data_set_path};
use pagefold_format::control::{CONTROL_SLOT_BYTES, ControlSlot, SlotState};
use pagefold_format::data_set_header::DataSetHeader;
use pagefold_format::space_map::{self, CLASS_UNALLOCATED, SpaceWord};
use pagefold_io::{Clock, MemoryStorage, OpenOptions, SimulatedClock, Storage, read_exact_at, read_file};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, Value, ValueRef};
use pagefold_utility::{CheckReport, DatabaseFiles, PrintWhat, Printed, Silent, check, check_files, print};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const DB: &str = "db";

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

pub(crate) fn open(storage: &MemoryStorage, mode: OpenMode) -> pagefold_engine::Result<Database> {
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new(DB), mode, settings())
}

pub(crate) fn settings() -> Settings {
    let pools = PoolSettings { memory_bytes: 8 << 20, background_threads: 0, ..PoolSettings::default() };
    Settings { pools, direct: false, ..Settings::default() }
}

pub(crate) fn run_check(storage: &MemoryStorage) -> CheckReport {
    check_files(storage, Path::new(DB), &Silent).unwrap()
}

/// Prints from a database in this storage.
pub(crate) fn print_from(storage: &MemoryStorage, object: &str, what: PrintWhat) -> pagefold_utility::Result<Printed> {
    let files: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let files = DatabaseFiles { storage: &files, clock: &clock, directory: Path::new(DB), settings: settings() };
    print(&files, object, 0, what)
}

/// As a reader beside others sees it.
pub(crate) fn run_check_beside(storage: &MemoryStorage) -> CheckReport {
    let files: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    check(&files, &clock, Path::new(DB), settings(), &Silent).unwrap()
}

pub(crate) fn schema() -> Schema {
    Schema::new(vec![
        Column::new("id", DataType::BigInt, false),
        Column::new("amount", DataType::Decimal { precision: 15, scale: 2 }, true),
        Column::new("code", DataType::Char(6), false),
        Column::new("text", DataType::Varchar(None), false),
        Column::new("more", DataType::Varchar(None), true),
    ])
    .unwrap()
}

const WORDS: [&str; 8] = ["carefully ", "final ", "deposits ", "express ", "requests ", "slyly ", "ironic ", "pâckages "];

pub(crate) fn text(rng: &mut Rng, words: usize) -> String {
    (0..words).map(|_| WORDS[rng.below(WORDS.len())]).collect()
}

pub(crate) fn random_row(rng: &mut Rng, id: i64) -> Vec<Value> {
    let words = if rng.below(60) == 0 { 200 + rng.below(3000) } else { rng.below(12) };
    vec![
        Value::Int(id),
        if rng.below(5) == 0 { Value::Null } else { Value::Decimal(rng.below(100_000) as i128) },
        Value::Text(format!("c{:05}", rng.below(40))),
        Value::Text(text(rng, words)),
        if rng.below(3) == 0 { Value::Null } else { Value::Text(text(rng, 2)) },
    ]
}

pub(crate) fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

fn dictionary(table: &Table) -> RowDictionary {
    let mut rng = Rng(9);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for id in 0..600 {
        let row = random_row(&mut rng, id);
        if table.layout().encoded_len(&refs(&row)).unwrap() < 1000 {
            table.layout().encode(&refs(&row), &mut bytes).unwrap();
            ends.push(bytes.len() as u32);
        }
    }
    let choice = if table.attributes().method == Method::Huffman { DictionaryChoice::Huffman } else { DictionaryChoice::Fixed };
    train_row_dictionary(&RowSample::new(&bytes, &ends).unwrap(), &TrainOptions::default(), choice)
}

/// A table that was loaded, then changed: rows that have moved and moved again, rows that are gone, large values.
pub(crate) fn fill(change: &mut Change<'_>, attributes: TableAttributes, rows: i64, rng: &mut Rng) -> Arc<Table> {
    let table = change.create_table(attributes).unwrap();
    if table.attributes().method.dictionary_type().is_some() {
        table.set_dictionary(dictionary(&table)).unwrap();
    }
    let mut loader = BulkLoader::new(&table).unwrap();
    let mut rids = Vec::new();
    for id in 0..rows / 2 {
        let mut record = Vec::new();
        let row = random_row(rng, id);
        table.build_record(By::Nobody, &refs(&row), &mut record).unwrap();
        loader
            .push(&record, |rid, _| {
                rids.push(rid);
                Ok::<_, pagefold_engine::Error>(())
            })
            .unwrap();
    }
    loader
        .finish(|rid, _| {
            rids.push(rid);
            Ok::<_, pagefold_engine::Error>(())
        })
        .unwrap();
    for id in rows / 2..rows {
        rids.push(table.insert(&refs(&random_row(rng, id))).unwrap());
    }
    for _ in 0..rows / 4 {
        let rid = rids[rng.below(rids.len())];
        let words = rng.below(120);
        let long = text(rng, words);
        assert!(table.update(rid, &[(3, ValueRef::Text(&long))]).unwrap());
    }
    for _ in 0..rows / 8 {
        let rid = rids.swap_remove(rng.below(rids.len()));
        assert!(table.delete(rid).unwrap());
    }
    table
}

/// All (key, RID) of an index that its table gives, in order.
pub(crate) fn entries_of(view: &ReadView, table: &Arc<Table>, index: &Index) -> Vec<(Vec<u8>, Rid)> {
    let mut entries = Vec::new();
    let mut rows = view.scan(table, &ScanRequest::default()).unwrap().into_rows();
    while let Some((rid, record)) = rows.next_record().unwrap() {
        let mut key = Vec::new();
        index.key_layout().encode_from_record(table.layout(), record, &mut key).unwrap();
        entries.push((key, rid));
    }
    entries.sort();
    entries
}

/// An index of a table, built at once or entry by entry.
pub(crate) fn build(change: &mut Change<'_>, table: &Arc<Table>, attributes: IndexAttributes, at_once: bool, rng: &mut Rng) -> Arc<Index> {
    let index = change.create_index(table, attributes).unwrap();
    let mut entries = entries_of(&change.read_view(), table, &index);
    if at_once {
        let slot_max = entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0);
        let mut builder = index.build(slot_max);
        entries.iter().for_each(|(key, rid)| builder.push(key, *rid).unwrap());
        builder.finish().unwrap();
        return index;
    }
    for i in (1..entries.len()).rev() {
        entries.swap(i, rng.below(i + 1));
    }
    let tree = index.tree();
    // Some that are not to stay, so that leaves merge and pages become free.
    let strangers: Vec<(Vec<u8>, Rid)> =
        entries.iter().map(|(key, rid)| (key.clone(), Rid::new(rid.partition(), rid.page() + 1000, rid.slot()))).collect();
    entries.iter().for_each(|(key, rid)| tree.insert(key, *rid).unwrap());
    if !index.attributes().unique {
        strangers.iter().for_each(|(key, rid)| tree.insert(key, *rid).unwrap());
        strangers.iter().for_each(|(key, rid)| assert!(tree.delete(key, *rid).unwrap()));
    }
    index
}

pub(crate) fn table_attributes(name: &str, method: Method, page_bytes: usize, partition_pages: u64) -> TableAttributes {
    TableAttributes {
        method,
        partition_bytes: partition_pages * page_bytes as u64,
        ..TableAttributes::new(name, schema()).with_page_bytes(page_bytes)
    }
}

/// Tables under every method and several page sizes, of several partitions, with indexes of every format.
pub(crate) fn sample() -> MemoryStorage {
    let storage = MemoryStorage::new();
    let database = open(&storage, OpenMode::Create).unwrap();
    let mut rng = Rng(5);
    let mut change = database.change();
    let small = fill(&mut change, table_attributes("small", Method::None, 2048, 1 << 20), 900, &mut rng);
    let parts = fill(&mut change, table_attributes("parts", Method::Fixed, 4096, 32), 2600, &mut rng);
    let wide = fill(&mut change, table_attributes("wide", Method::Huffman, 32768, 1 << 20), 1200, &mut rng);
    let short = fill(&mut change, table_attributes("short", Method::Row, 2048, 1 << 20), 600, &mut rng);
    change.create_table(table_attributes("empty", Method::None, 8192, 64)).unwrap();
    let (up, down) = (Direction::Ascending, Direction::Descending);
    let plain = |name: &str, columns: Vec<(usize, Direction)>, unique: bool, page_bytes: usize| {
        IndexAttributes::new(name, columns, unique).with_format(IndexFormat::Plain, page_bytes)
    };
    let fold = |name: &str, columns: Vec<(usize, Direction)>, unique: bool, page_bytes: usize| {
        IndexAttributes::new(name, columns, unique).with_format(IndexFormat::Fold, page_bytes)
    };
    build(&mut change, &small, plain("small_id", vec![(0, up)], true, 2048), true, &mut rng);
    build(&mut change, &small, plain("small_code", vec![(2, down), (1, up)], false, 2048), false, &mut rng);
    build(&mut change, &short, plain("short_id", vec![(0, up)], true, 4096), true, &mut rng);
    build(&mut change, &parts, fold("parts_code", vec![(2, up)], false, 16384), true, &mut rng);
    build(&mut change, &parts, fold("parts_id", vec![(0, down)], true, 8192), false, &mut rng);
    let prefix = |name: &str, columns: Vec<(usize, Direction)>, unique: bool, page_bytes: usize| {
        IndexAttributes::new(name, columns, unique).with_format(IndexFormat::Prefix, page_bytes)
    };
    build(&mut change, &parts, prefix("parts_both", vec![(2, up), (0, up)], false, 2048), false, &mut rng);
    build(&mut change, &short, prefix("short_code", vec![(2, up)], false, 4096), true, &mut rng);
    build(&mut change, &wide, plain("wide_more", vec![(4, up), (0, up)], true, 6144), true, &mut rng);
    build(&mut change, &wide, fold("wide_amount", vec![(1, up)], false, 8192), false, &mut rng);
    change.commit().unwrap();
    // A second commit, so that both control slots hold a state; and something dropped.
    let mut change = database.change();
    fill(&mut change, table_attributes("gone", Method::None, 8192, 64), 50, &mut rng);
    change.commit().unwrap();
    let mut change = database.change();
    change.drop_table("gone").unwrap();
    change.commit().unwrap();
    drop(database);
    without_images(&storage)
}

/// The same database, without the pages that the double-write file would put back.
pub(crate) fn without_images(storage: &MemoryStorage) -> MemoryStorage {
    let without = storage.snapshot();
    without.remove(&Path::new(DB).join(DOUBLE_WRITE_NAME)).unwrap();
    without
}

/// A page of the database, or a slot of the control file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    /// Page number, slot number.
    pub(crate) number: u32,
}

impl Place {
    pub(crate) fn read(&self, storage: &MemoryStorage) -> Vec<u8> {
        let file = storage.open(&self.path, &OpenOptions::read_only()).unwrap();
        let mut bytes = vec![0; self.bytes];
        read_exact_at(file.as_ref(), &mut bytes, self.offset).unwrap();
        bytes
    }

    pub(crate) fn write(&self, storage: &MemoryStorage, bytes: &[u8]) {
        storage.open(&self.path, &OpenOptions::read_write()).unwrap().write_at(bytes, self.offset).unwrap();
    }
}

/// Every page in use and every control slot; and every page that is not in use.
pub(crate) fn places(storage: &MemoryStorage) -> (Vec<Place>, Vec<Place>) {
    let (mut used, mut free) = (Vec::new(), Vec::new());
    let control = Path::new(DB).join("control");
    for number in 0..2u32 {
        let offset = u64::from(number) * CONTROL_SLOT_BYTES as u64;
        used.push(Place { path: control.clone(), offset, bytes: CONTROL_SLOT_BYTES, number });
    }
    for path in storage.list(&Path::new(DB).join("data")).unwrap() {
        let content = read_file(storage, &path, 1 << 30).unwrap();
        let header =
            (1..=16).find_map(|k| DataSetHeader::parse(&content[..k * 2048]).ok().filter(|h| h.page_bytes as usize == k * 2048)).unwrap();
        let page_bytes = header.page_bytes as usize;
        let mut words = vec![SpaceWord::new(1, 0)];
        while words.len() < header.page_count as usize {
            let at = words.len() * page_bytes;
            words.extend(space_map::words(&content[at..at + page_bytes]).unwrap());
        }
        for number in 0..(content.len() / page_bytes) as u32 {
            let in_use = words.get(number as usize).is_some_and(|word| word.class() != CLASS_UNALLOCATED);
            let place = Place { path: path.clone(), offset: u64::from(number) * page_bytes as u64, bytes: page_bytes, number };
            if in_use { used.push(place) } else { free.push(place) }
        }
    }
    (used, free)
}

/// The state that counts.
pub(crate) fn control_slot(storage: &MemoryStorage) -> ControlSlot {
    let content = read_file(storage, &Path::new(DB).join("control"), 1 << 20).unwrap();
    let slots = content.chunks_exact(CONTROL_SLOT_BYTES).enumerate().filter_map(|(number, slot)| match ControlSlot::parse(slot, number) {
        SlotState::Valid(slot) => Some(slot),
        _ => None,
    });
    slots.max_by_key(|slot| slot.sequence).unwrap()
}

pub(crate) fn file_of(file_id: u32) -> PathBuf {
    data_set_path(Path::new(DB), file_id)
}

/// All rows of all tables and all entries of all indexes, or why they cannot be read.
pub(crate) fn contents(storage: &MemoryStorage) -> pagefold_engine::Result<Vec<String>> {
    let database = open(storage, OpenMode::Read)?;
    let mut all = Vec::new();
    for table in database.tables()? {
        let mut rows =
            database.read_view().scan(&table, &ScanRequest::default())?.into_rows().collect::<pagefold_engine::Result<Vec<_>>>()?;
        rows.sort_by_key(|(rid, _)| *rid);
        all.extend(rows.into_iter().map(|(rid, values)| format!("{} {rid} {values:?}", table.name())));
    }
    for index in database.indexes()? {
        let mut cursor = index.tree().all(Walk::Forward);
        while let Some((key, rid)) = cursor.next()? {
            all.push(format!("{} {} {rid}", index.name(), index.key_layout().describe(key)));
        }
    }
    Ok(all)
}

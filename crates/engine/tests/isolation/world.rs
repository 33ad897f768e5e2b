//! A table with a unique and another index, and how tests look at it.

use pagefold_codec::row::{DictionaryChoice, RowSample, TrainOptions, train_row_dictionary};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Database, Isolation, OpenMode, RowScan, ScanRequest, Settings, Transaction, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, RowBuffer, Table, TableAttributes};
use pagefold_engine::{Error, Extents, Result};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, KeyRange, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Value and text by number.
pub(crate) type Rows = BTreeMap<i64, (i64, String)>;

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    pub(crate) fn text(&mut self, words: u64) -> String {
        let known = ["carefully ", "final ", "deposits ", "sleep ", "furiously ", "xq", "express "];
        (0..self.below(words)).map(|_| known[self.below(7) as usize]).collect()
    }
}

/// How the table is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) method: Method,
    pub(crate) format: IndexFormat,
    pub(crate) memory_bytes: usize,
    pub(crate) background_threads: usize,
    pub(crate) page_bytes: usize,
    /// Rows on a page at most, and pages of a partition, for a table that is to have many partitions.
    pub(crate) small_partitions: Option<(u16, u64)>,
    /// Indexes grow by single pages, so that none is free.
    pub(crate) small_extents: bool,
}

impl Default for Form {
    fn default() -> Form {
        Form {
            method: Method::None,
            format: IndexFormat::Plain,
            memory_bytes: 4 << 20,
            background_threads: 0,
            page_bytes: 2048,
            small_partitions: None,
            small_extents: false,
        }
    }
}

/// An open database with its table: number, value, text; unique by number, and by value.
pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) table: Arc<Table>,
    pub(crate) by_number: Arc<Index>,
    pub(crate) by_value: Arc<Index>,
}

pub(crate) fn open(storage: &Arc<dyn Storage>, form: Form, mode: OpenMode) -> World {
    try_open(storage, form, mode).unwrap()
}

pub(crate) fn try_open(storage: &Arc<dyn Storage>, form: Form, mode: OpenMode) -> Result<World> {
    try_open_with(storage, form, mode, |settings| settings)
}

/// With other settings than usually.
pub(crate) fn try_open_with(
    storage: &Arc<dyn Storage>,
    form: Form,
    mode: OpenMode,
    change: impl FnOnce(Settings) -> Settings,
) -> Result<World> {
    let pools = PoolSettings { memory_bytes: form.memory_bytes, background_threads: form.background_threads, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let log = LogSettings { segment_bytes: 1 << 20, ..LogSettings::default() };
    let settings = Settings { pools, log, double_write_bytes: 512 << 10, ..Settings::default() };
    let database = Database::open(Arc::clone(storage), clock, Path::new("db"), mode, change(settings))?;
    if mode == OpenMode::Create {
        create(&database, form)?;
    }
    let table = database.table("t")?;
    let (by_number, by_value) = (database.index("number")?, database.index("value")?);
    Ok(World { database, table, by_number, by_value })
}

fn create(database: &Database, form: Form) -> Result<()> {
    let columns = [("number", DataType::BigInt), ("value", DataType::BigInt), ("text", DataType::Varchar(None))];
    let schema = Schema::new(columns.into_iter().map(|(name, kind)| Column::new(name, kind, false)).collect()).unwrap();
    let mut change = database.change();
    let mut attributes = TableAttributes::new("t", schema).with_page_bytes(form.page_bytes);
    attributes.method = form.method;
    attributes.primary_key = vec![0];
    if let Some((maxrows, pages)) = form.small_partitions {
        (attributes.maxrows, attributes.partition_bytes) = (maxrows, pages * form.page_bytes as u64);
    }
    let table = change.create_table(attributes)?;
    if form.method.dictionary_type().is_some() {
        let mut random = Random(1);
        let sample: Vec<String> = (0..300).map(|_| random.text(20)).collect();
        let ends: Vec<u32> = sample
            .iter()
            .scan(0, |end, text| {
                *end += text.len() as u32;
                Some(*end)
            })
            .collect();
        let bytes = sample.concat();
        let sample = RowSample::new(bytes.as_bytes(), &ends).unwrap();
        let choice = if form.method == Method::Huffman { DictionaryChoice::Huffman } else { DictionaryChoice::Fixed };
        table.set_dictionary(train_row_dictionary(&sample, &TrainOptions::default(), choice))?;
        // The dictionary comes with the first page.
        let rid = table.insert(&[ValueRef::Int(0), ValueRef::Int(0), ValueRef::Text("")])?;
        table.delete(rid)?;
    }
    let page_bytes = match form.format {
        IndexFormat::Fold => 8192,
        // Files grow by 4 KB at least.
        _ if form.small_extents => 4096,
        _ => 2048,
    };
    for (name, column, unique) in [("number", 0, true), ("value", 1, false)] {
        let mut attributes = IndexAttributes::new(name, vec![(column, Direction::Ascending)], unique);
        if form.small_extents {
            attributes.extents = Extents { first_bytes: 4096, second_bytes: 4096 };
        }
        change.create_index(&table, attributes.with_format(form.format, page_bytes))?;
    }
    change.commit()
}

pub(crate) fn all_keys() -> KeyRange {
    KeyRange { start: Vec::new(), end: None }
}

/// The keys of an index from one number to another.
pub(crate) fn keys_from(index: &Index, numbers: std::ops::RangeInclusive<i64>) -> KeyRange {
    let key = |number: i64| {
        let mut key = Vec::new();
        index.key_layout().encode(&[ValueRef::Int(number)], &mut key).unwrap();
        key
    };
    KeyRange { start: key(*numbers.start()), end: Some(key(numbers.end() + 1)) }
}

/// Scans of what a statement sees that begins now.
pub(crate) trait Scans {
    /// All rows.
    fn rows(&mut self, table: &Arc<Table>) -> Result<RowScan>;

    /// Rows in the order of an index.
    fn rows_by(&mut self, table: &Arc<Table>, index: &Arc<Index>, way: Way) -> Result<RowScan>;

    /// The keys of an index.
    fn keys_of(&mut self, table: &Arc<Table>, index: &Arc<Index>, way: Way) -> Result<RowScan>;
}

impl Scans for Transaction<'_> {
    fn rows(&mut self, table: &Arc<Table>) -> Result<RowScan> {
        Ok(self.read_view()?.scan(table, &ScanRequest::default())?.into_rows())
    }

    fn rows_by(&mut self, table: &Arc<Table>, index: &Arc<Index>, way: Way) -> Result<RowScan> {
        Ok(self.read_view()?.range(table, index, all_keys(), way, &ScanRequest::default())?.into_rows())
    }

    fn keys_of(&mut self, table: &Arc<Table>, index: &Arc<Index>, way: Way) -> Result<RowScan> {
        self.read_view()?.keys(table, index, all_keys(), way)
    }
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Form::default())
    }

    pub(crate) fn with(form: Form) -> World {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        open(&storage, form, OpenMode::Create)
    }

    pub(crate) fn begin(&self, isolation: Isolation) -> Transaction<'_> {
        self.database.begin(TransactionOptions { isolation, ..TransactionOptions::default() })
    }

    /// One that gives up at once where it would have to wait.
    pub(crate) fn begin_impatient(&self, isolation: Isolation) -> Transaction<'_> {
        self.database.begin(TransactionOptions { isolation, lock_timeout: Duration::ZERO, ..TransactionOptions::default() })
    }

    /// Rows of a committed transaction.
    pub(crate) fn fill(&self, rows: impl IntoIterator<Item = (i64, i64)>) -> Vec<Rid> {
        let mut transaction = self.begin(Isolation::ReadCommitted);
        let rids = rows.into_iter().map(|(number, value)| self.insert(&mut transaction, number, value, "").unwrap()).collect();
        transaction.commit().unwrap();
        rids
    }

    pub(crate) fn insert(&self, t: &mut Transaction<'_>, number: i64, value: i64, text: &str) -> Result<Rid> {
        t.insert(&self.table, &[ValueRef::Int(number), ValueRef::Int(value), ValueRef::Text(text)])
    }

    pub(crate) fn find(&self, t: &mut Transaction<'_>, number: i64) -> Option<Rid> {
        let rids = t.find(&self.table, &self.by_number, &[ValueRef::Int(number)]).unwrap();
        assert!(rids.len() <= 1, "number {number} at {rids:?}");
        rids.first().copied()
    }

    /// Sets the value of a row that is there.
    pub(crate) fn set(&self, t: &mut Transaction<'_>, number: i64, value: i64) -> Result<bool> {
        let rid = self.find(t, number).unwrap();
        t.update(&self.table, rid, &[(1, ValueRef::Int(value))])
    }

    /// The value of a row.
    pub(crate) fn get(&self, t: &mut Transaction<'_>, number: i64) -> Option<i64> {
        let rid = self.find(t, number)?;
        Some(self.row(t, rid)?.1.0)
    }

    pub(crate) fn row(&self, t: &mut Transaction<'_>, rid: Rid) -> Option<(i64, (i64, String))> {
        t.row(&self.table, rid).unwrap().map(|values| parts(&values))
    }

    /// (number, value) of the rows whose value fulfils a condition, by the index on it.
    pub(crate) fn select(&self, t: &mut Transaction<'_>, condition: impl Fn(i64) -> bool) -> Vec<(i64, i64)> {
        let rows = self.through(t, &self.by_value, Way::Forward);
        let mut rows: Vec<_> = rows.into_iter().map(|(_, number, value, _)| (number, value)).filter(|row| condition(row.1)).collect();
        rows.sort_unstable();
        rows
    }

    /// Rows in the order of an index.
    pub(crate) fn through(&self, t: &mut Transaction<'_>, index: &Arc<Index>, way: Way) -> Vec<(Rid, i64, i64, String)> {
        let mut rows = Vec::new();
        for row in t.rows_by(&self.table, index, way).unwrap() {
            let (rid, values) = row.unwrap();
            let (number, (value, text)) = parts(&values);
            rows.push((rid, number, value, text));
        }
        // Without the table: the same rows, with the same keys. Under READ COMMITTED others may have committed since.
        if t.isolation() != Isolation::ReadCommitted {
            let mut keys = Vec::new();
            for key in t.keys_of(&self.table, index, way).unwrap() {
                let (rid, values) = key.unwrap();
                let Value::Int(value) = values[0] else { panic!("a key of {values:?}") };
                keys.push((rid, value));
            }
            let key = |row: &(Rid, i64, i64, String)| if index.name() == "number" { row.1 } else { row.2 };
            assert!(keys.into_iter().eq(rows.iter().map(|row| (row.0, key(row)))), "keys of {} and rows by it", index.name());
        }
        rows
    }

    /// Everything that a transaction sees: by scan, by both indexes both ways and by RID the same.
    pub(crate) fn see(&self, t: &mut Transaction<'_>) -> Rows {
        let mut rows = Rows::new();
        let mut rids = BTreeMap::new();
        for row in t.rows(&self.table).unwrap() {
            let (rid, values) = row.unwrap();
            let (number, row) = parts(&values);
            assert!(rows.insert(number, row).is_none(), "number {number} twice");
            assert!(rids.insert(rid, number).is_none(), "{rid} twice");
        }
        for way in [Way::Forward, Way::Backward] {
            for index in [&self.by_number, &self.by_value] {
                let mut found = self.through(t, index, way);
                if matches!(way, Way::Backward) {
                    found.reverse();
                }
                let order: Vec<i64> = found.iter().map(|row| if index.name() == "number" { row.1 } else { row.2 }).collect();
                assert!(order.is_sorted(), "{}: {order:?}", index.name());
                assert_eq!(found.len(), rows.len(), "rows by {} and by scan", index.name());
                for (rid, number, value, text) in found {
                    assert_eq!(rids.get(&rid), Some(&number), "{} has {rid}", index.name());
                    assert!(rows[&number] == (value, text), "row {number} by {} and by scan", index.name());
                }
            }
        }
        for (rid, number) in &rids {
            let (found, row) = self.row(t, *rid).unwrap();
            assert!(found == *number && row == rows[number], "row {number} by RID and by scan");
            let got = t.get(&self.table, &self.by_number, &[ValueRef::Int(*number)], |at, record| (at, self.table.values(record))).unwrap();
            let (at, values) = got.unwrap();
            assert!(at == *rid && parts(&values.unwrap()) == (found, row), "row {number} by its key and by scan");
        }
        rows
    }

    /// What is committed.
    pub(crate) fn committed(&self) -> Rows {
        self.see(&mut self.begin(Isolation::RepeatableRead))
    }

    /// When nothing runs any more and nothing is left to be removed: as many rows and entries as are seen, trees in order.
    pub(crate) fn check(&self) -> Rows {
        self.database.remove_leftovers().unwrap();
        let rows = self.committed();
        assert_eq!(self.table.row_count(), rows.len() as u64, "count of rows");
        for index in [&self.by_number, &self.by_value] {
            let (mut entries, mut own) = (0, Vec::new());
            let faults = index.tree().check(&mut |key, rid| {
                entries += 1;
                own.clear();
                let read = self.table.read(rid, &mut RowBuffer::default(), |record| {
                    index.key_layout().encode_from_record(self.table.layout(), record, &mut own).unwrap();
                })?;
                assert!(read.is_some() && own == key, "{}: an entry without its row {rid}", index.name());
                Ok(())
            });
            assert_eq!(faults.unwrap().len(), 0, "{}", index.name());
            assert_eq!(entries, rows.len(), "{}: entries", index.name());
        }
        rows
    }

    /// Waits until so many transactions wait for locks.
    pub(crate) fn until_waiting(&self, count: usize) {
        while self.database.waiting_transactions() != count {
            std::thread::yield_now();
        }
    }
}

pub(crate) fn parts(values: &[Value]) -> (i64, (i64, String)) {
    let [Value::Int(number), Value::Int(value), Value::Text(text)] = values else { panic!("{values:?}") };
    (*number, (*value, text.to_string()))
}

/// Is the transaction to be tried again?
pub(crate) fn is_retryable<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Lock(_) | Error::Conflict { .. } | Error::Serialization(_)))
}

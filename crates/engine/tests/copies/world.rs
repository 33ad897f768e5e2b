//! A small database, what is done to it, and what must be in it.

use pagefold_codec::row::{DictionaryChoice, RowDictionary, RowSample, TrainOptions, train_row_dictionary};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings, Transaction, TransactionOptions};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{LIVE_MAX, Method, RowBuffer, TableAttributes};
use pagefold_engine::{Error, Result};
use pagefold_io::{FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, KeyRange, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const TABLES: [&str; 2] = ["plain", "coded"];

/// What a table holds: text by number.
pub(crate) type Rows = BTreeMap<i64, String>;
/// What the database holds.
pub(crate) type State = [Rows; 2];

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
}

pub(crate) fn open(storage: &FaultStorage, mode: OpenMode) -> Result<Database> {
    // Without background threads the calls come in the same order each time;
    let pools = PoolSettings { memory_bytes: 2 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let log = LogSettings { segment_bytes: 32 << 10, ..LogSettings::default() };
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, log, double_write_bytes: 64 << 10, ..Settings::default() })
}

fn schema() -> Schema {
    let text = Column::new("text", DataType::Varchar(None), false);
    let wide = Column::new("wide", DataType::Varchar(None), false);
    Schema::new(vec![Column::new("n", DataType::BigInt, false), text, Column::new("m", DataType::Integer, true), wide]).unwrap()
}

/// A long key that follows from the number and the text: so few rows make an index of several leaves.
pub(crate) fn wide(n: i64, text: &str) -> String {
    let mut random = Random(n as u64 * 31 + text.len() as u64);
    (0..60 + random.below(80)).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// A row with this number and text, for [`Transaction::insert`].
pub(crate) fn row<'a>(n: i64, text: &'a str, wide: &'a str) -> [ValueRef<'a>; 4] {
    [ValueRef::Int(n), ValueRef::Text(text), ValueRef::Int(text.len() as i64 % 7), ValueRef::Text(wide)]
}

pub(crate) fn text_of(random: &mut Random) -> String {
    let words = ["carefully ", "final ", "deposits ", "sleep ", "furiously ", "xq", "express "];
    let count = if random.below(12) == 0 { 60 } else { random.below(14) };
    (0..count).map(|_| words[random.below(7) as usize]).collect()
}

/// What the tables are like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// They soon need further partitions.
    pub(crate) small_partitions: bool,
    /// Under `row` and `huffman`, not `none` and `fixed`.
    pub(crate) compact: bool,
    /// With prefix indexes in the place of plain ones.
    pub(crate) prefix: bool,
    /// Under `page`, not `row`.
    pub(crate) by_column: bool,
}

impl Shape {
    /// Each by itself: so with enough seeds they come together in every way.
    pub(crate) fn of(seed: u64) -> Shape {
        let mut random = Random(seed);
        let small_partitions = random.below(3) == 0;
        Shape { small_partitions, compact: random.below(5) >= 2, by_column: random.below(2) == 0, prefix: random.below(2) == 0 }
    }

    /// The methods of the two tables.
    pub(crate) fn methods(self) -> [Method; 2] {
        match (self.compact, self.by_column) {
            (false, _) => [Method::None, Method::Fixed],
            (true, false) => [Method::Row, Method::Huffman],
            (true, true) => [Method::Page, Method::Huffman],
        }
    }

    /// The formats of their indexes.
    pub(crate) fn formats(self) -> [IndexFormat; 2] {
        [IndexFormat::Fold, if self.prefix { IndexFormat::Prefix } else { IndexFormat::Plain }]
    }
}

/// The tables with their indexes, empty.
pub(crate) fn create(storage: &FaultStorage, shape: Shape) -> Result<()> {
    let database = open(storage, OpenMode::Create)?;
    let mut change = database.change();
    let methods = shape.methods();
    for (name, method, page_bytes) in [(TABLES[0], methods[0], 2048), (TABLES[1], methods[1], 4096)] {
        let mut attributes = TableAttributes::new(name, schema()).with_page_bytes(page_bytes);
        attributes.method = method;
        if shape.small_partitions {
            (attributes.maxrows, attributes.partition_bytes) = (2, 16 * page_bytes as u64);
        }
        attributes.primary_key = vec![0];
        let table = change.create_table(attributes)?;
        if method.dictionary_type().is_some() {
            table.set_dictionary(dictionary(method, 1))?;
            // The dictionary comes with the first page.
            let rid = table.insert(&row(0, "", ""))?;
            table.delete(rid)?;
        }
        let [fold, other] = shape.formats();
        let formats = if method.dictionary_type().is_some() { [fold, other] } else { [other, fold] };
        let key = |columns, unique, format, suffix: &str| {
            let attributes = IndexAttributes::new(format!("{name}_{suffix}"), columns, unique);
            attributes.with_format(format, if format == IndexFormat::Fold { 8192 } else { 2048 })
        };
        change.create_index(&table, key(vec![(0, Direction::Ascending)], true, formats[0], "pk"))?;
        change.create_index(&table, key(vec![(2, Direction::Descending), (3, Direction::Ascending)], false, formats[1], "m"))?;
    }
    change.commit()
}

/// A dictionary for the texts of rows; another one for another seed.
fn dictionary(method: Method, seed: u64) -> RowDictionary {
    let mut random = Random(seed);
    let sample: Vec<String> = (0..300).map(|_| text_of(&mut random)).collect();
    let ends: Vec<u32> = sample
        .iter()
        .scan(0, |end, text| {
            *end += text.len() as u32;
            Some(*end)
        })
        .collect();
    let bytes = sample.concat();
    let rows = RowSample::new(bytes.as_bytes(), &ends).unwrap();
    let choice = if method == Method::Huffman { DictionaryChoice::Huffman } else { DictionaryChoice::Fixed };
    train_row_dictionary(&rows, &TrainOptions::default(), choice)
}

/// Gives a table another dictionary, or goes on with ending an old one.
pub(crate) fn renew(database: &Database, random: &mut Random) -> Result<()> {
    let table = database.table(TABLES[random.below(2) as usize])?;
    let method = table.attributes().method;
    if method.dictionary_type().is_none() {
        return Ok(());
    }
    if table.dictionary_versions().len() < LIVE_MAX && random.below(2) == 0 {
        return database.use_dictionary(table.name(), dictionary(method, random.below(5))).map(drop);
    }
    database.renew_dictionaries(table.name()).map(drop)
}

/// The RID of a row by its number.
pub(crate) fn find(transaction: &mut Transaction<'_>, database: &Database, table: usize, n: i64) -> Result<Option<Rid>> {
    let object = database.table(TABLES[table])?;
    let index = database.index(&format!("{}_pk", TABLES[table]))?;
    Ok(transaction.find(&object, &index, &[ValueRef::Int(n)])?.first().copied())
}

/// One random change, made in the transaction and in its model.
pub(crate) fn change(transaction: &mut Transaction<'_>, database: &Database, model: &mut State, random: &mut Random) -> Result<()> {
    let table = random.below(2) as usize;
    let object = database.table(TABLES[table])?;
    let n = random.below(90) as i64;
    let known = model[table].contains_key(&n);
    let text = text_of(random);
    let wide = wide(n, &text);
    let values = row(n, &text, &wide);
    match random.below(10) {
        0..4 if !known => {
            transaction.insert(&object, &values)?;
            model[table].insert(n, text);
        }
        0..4 => {
            // Refused, and only that statement with it.
            let refused = transaction.insert(&object, &values);
            assert!(matches!(refused, Err(Error::DuplicateKey { .. })) || is_io(&refused), "{refused:?}");
            if is_io(&refused) {
                return refused.map(drop);
            }
        }
        4..8 => {
            let Some(rid) = find(transaction, database, table, n)? else {
                assert!(!known, "row {n} is not found");
                return Ok(());
            };
            assert!(known, "row {n} is found");
            let changes: Vec<_> = values.into_iter().enumerate().skip(1).collect();
            assert!(transaction.update(&object, rid, &changes)?);
            model[table].insert(n, text);
        }
        _ => {
            let Some(rid) = find(transaction, database, table, n)? else {
                assert!(!known, "row {n} is not found");
                return Ok(());
            };
            assert!(transaction.delete(&object, rid)?);
            model[table].remove(&n);
        }
    }
    Ok(())
}

fn is_io<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Io(_) | Error::Poisoned(_)))
}

/// Reads everything, and checks that tables and indexes agree.
pub(crate) fn contents(database: &Database) -> State {
    try_contents(database).unwrap_or_else(|reason| panic!("{reason}"))
}

/// As [`contents`]; what is wrong, in words.
pub(crate) fn try_contents(database: &Database) -> std::result::Result<State, String> {
    let mut state = State::default();
    for (rows, name) in state.iter_mut().zip(TABLES) {
        *rows = rows_of(database, name)?;
    }
    Ok(state)
}

fn rows_of(database: &Database, name: &str) -> std::result::Result<Rows, String> {
    let in_words = |e: Error| e.to_string();
    let object = database.table(name).map_err(in_words)?;
    let (mut state, mut rids, mut faults) = (Rows::new(), BTreeMap::new(), Vec::new());
    let scan = database.read_view().scan(&object, &ScanRequest::default()).map_err(in_words)?;
    for found in scan.into_rows() {
        let (rid, values) = found.map_err(in_words)?;
        let (Value::Int(n), Value::Text(text)) = (&values[0], &values[1]) else { panic!("{values:?}") };
        if !values.iter().map(Value::as_ref).eq(row(*n, text, &wide(*n, text))) {
            faults.push(format!("{values:?}"));
        }
        if state.insert(*n, text.to_string()).is_some() {
            faults.push(format!("row {n} twice"));
        }
        rids.insert(rid, *n);
    }
    let rows = rids.len() as u64;
    if object.row_count() != rows {
        faults.push(format!("{rows} rows, {} counted", object.row_count()));
    }
    for index in database.indexes_of(&object) {
        let (mut entries, mut own) = (0, Vec::new());
        let found = index.tree().check(&mut |key, rid| {
            entries += 1;
            own.clear();
            let found = object.read(rid, &mut RowBuffer::default(), |record| {
                index.key_layout().encode_from_record(object.layout(), record, &mut own).unwrap();
            })?;
            if found.is_none() || own != key {
                faults.push(format!("{}: an entry without its row {rid}", index.name()));
            }
            Ok(())
        });
        faults.extend(found.map_err(in_words)?.iter().map(|fault| format!("{}: {fault:?}", index.name())));
        if entries != rows {
            faults.push(format!("{}: {entries} entries", index.name()));
        }
    }
    let all = KeyRange { start: Vec::new(), end: None };
    let mut transaction = database.begin(TransactionOptions::default());
    let index = database.index(&format!("{name}_pk")).map_err(in_words)?;
    let view = transaction.read_view().map_err(in_words)?;
    let scan = view.range(&object, &index, all, Way::Forward, &ScanRequest::default()).map_err(in_words)?;
    let ranged = scan.into_rows().map(|row| row.map(|(rid, _)| rids.get(&rid).copied())).collect::<Result<_>>();
    let through_index: Vec<Option<i64>> = ranged.map_err(in_words)?;
    if !through_index.iter().flatten().eq(state.keys()) || through_index.len() != state.len() {
        faults.push(format!("rows by {} and by scan differ", index.name()));
    }
    if faults.is_empty() { Ok(state) } else { Err(format!("{name}: {}", faults.join("; "))) }
}

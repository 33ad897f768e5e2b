//! The bank: accounts, and a history of transfers between them, each row with values that follow from its number and version.
//!
//! Invariants, in every snapshot:
//! - the money on all accounts is what it was at first;
//! - a row's label, text and data are those of its number and version;
//! - writer w's row among the accounts counts its commits: its value is its version, c, and the history has exactly the last [`KEPT`] transfers up to the c-th of that writer;
//! - a scan, each index both ways and its keys alone have the same rows.

use crate::space::{Kind, Pages};
use crate::world::{Random, Scans};
use pagefold_engine::Result;
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Database, OpenMode, Settings, Transaction, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, RowBuffer, Table, TableAttributes};
use pagefold_io::{OsClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(crate) const WRITERS: i64 = 8;
pub(crate) const ACCOUNTS: i64 = 300;
pub(crate) const MONEY_OF_EACH: i64 = 1000;
/// Numbers of the rows in which the writers count their commits.
pub(crate) const COUNTERS: i64 = 1_000_000;
/// Transfers of each writer that the history has.
pub(crate) const KEPT: i64 = 30;

/// Number of the row of a writer's n-th transfer.
pub(crate) fn history_number(writer: i64, count: i64) -> i64 {
    (writer + 1) * 1_000_000_000 + count
}

/// What a row has besides numbers.
#[derive(PartialEq, Eq)]
pub(crate) struct Content {
    /// In an index.
    label: String,
    text: Option<String>,
    data: Option<Vec<u8>>,
}

impl Content {
    pub(crate) fn of(number: i64, version: i64) -> Content {
        let mut random = Random((number as u64) << 24 ^ version as u64);
        let label = random.text(6);
        // Of the large ones some take one page, others many, some hardly compress. 900 bytes twice are too many for a page.
        let lengths = match random.below(12) {
            0 => [None, None],
            1 => [Some(900), Some(900)],
            2 => [Some(2_000 + random.below(8_000)), Some(20)],
            3 => [Some(20), Some(2_000 + random.below(8_000))],
            4 => [Some(1_500 + random.below(3_000)), Some(2_000 + random.below(30_000))],
            _ => [Some(random.below(40)), Some(random.below(40))],
        };
        let text = lengths[0].map(|length| letters(&mut random, length as usize));
        let data =
            lengths[1].map(|length| (0..length).map(|at| if at % 3 == 0 { number as u8 } else { random.below(256) as u8 }).collect());
        Content { label, text, data }
    }

    pub(crate) fn changes(&self) -> [(usize, ValueRef<'_>); 3] {
        let text = self.text.as_deref().map_or(ValueRef::Null, ValueRef::Text);
        let data = self.data.as_deref().map_or(ValueRef::Null, ValueRef::Bytes);
        [(3, ValueRef::Text(&self.label)), (4, text), (5, data)]
    }
}

fn letters(random: &mut Random, length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&random.text(8));
        text.push(char::from(b'a' + random.below(26) as u8));
    }
    text.truncate(length);
    text
}

/// The numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) number: i64,
    pub(crate) value: i64,
    pub(crate) version: i64,
}

impl Row {
    /// Panics unless the rest of the row follows from its numbers.
    fn of(values: Vec<Value>) -> (Row, String) {
        let [Value::Int(number), Value::Int(value), Value::Int(version), Value::Text(label), ..] = &values[..] else {
            panic!("{values:?}")
        };
        let row = Row { number: *number, value: *value, version: *version };
        let expected = Content::of(row.number, row.version);
        assert!(*label == expected.label, "label {label:?} of {row:?}");
        match (&values[4], &expected.text) {
            (Value::Null, None) => {}
            (Value::Text(found), Some(text)) if found == text => {}
            (found, text) => panic!("text of {row:?}: {:?} bytes, expected {:?}", bytes(found), text.as_ref().map(String::len)),
        }
        match (&values[5], &expected.data) {
            (Value::Null, None) => {}
            (Value::Bytes(found), Some(data)) if found == data => {}
            (found, data) => panic!("data of {row:?}: {:?} bytes, expected {:?}", bytes(found), data.as_ref().map(Vec::len)),
        }
        (row, expected.label)
    }
}

fn bytes(value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => Some(text.len()),
        Value::Bytes(bytes) => Some(bytes.len()),
        _ => None,
    }
}

/// A table of the bank.
pub(crate) struct Ledger {
    pub(crate) table: Arc<Table>,
    by_number: Arc<Index>,
    indexes: [Arc<Index>; 3],
}

impl Ledger {
    fn open(database: &Database, name: &str) -> Result<Ledger> {
        let [number, value, label] = ["number", "value", "label"].map(|column| database.index(&format!("{name}_{column}")));
        let indexes = [number?, value?, label?];
        Ok(Ledger { table: database.table(name)?, by_number: Arc::clone(&indexes[0]), indexes })
    }

    pub(crate) fn find(&self, t: &mut Transaction<'_>, number: i64) -> Result<Option<Rid>> {
        let rids = t.find(&self.table, &self.by_number, &[ValueRef::Int(number)])?;
        assert!(rids.len() <= 1, "number {number} at {rids:?}");
        Ok(rids.first().copied())
    }

    pub(crate) fn row(&self, t: &mut Transaction<'_>, rid: Rid) -> Result<Option<Row>> {
        Ok(t.row(&self.table, rid)?.map(|values| Row::of(values).0))
    }

    pub(crate) fn insert(&self, t: &mut Transaction<'_>, row: Row) -> Result<Rid> {
        let content = Content::of(row.number, row.version);
        let [label, text, data] = content.changes().map(|(_, value)| value);
        t.insert(&self.table, &[ValueRef::Int(row.number), ValueRef::Int(row.value), ValueRef::Int(row.version), label, text, data])
    }

    /// Everything of a row except its number; `Ok(false)` when it is not there.
    pub(crate) fn update(&self, t: &mut Transaction<'_>, rid: Rid, row: Row) -> Result<bool> {
        let content = Content::of(row.number, row.version);
        let numbers = [(1, ValueRef::Int(row.value)), (2, ValueRef::Int(row.version))];
        t.update(&self.table, rid, &[numbers.as_slice(), &content.changes()].concat())
    }

    /// Everything that a transaction sees, by number.
    pub(crate) fn see(&self, t: &mut Transaction<'_>) -> Result<BTreeMap<i64, Row>> {
        let (mut rows, mut at) = (BTreeMap::new(), BTreeMap::new());
        let name = self.table.name();
        for found in t.rows(&self.table)? {
            let (rid, values) = found?;
            let (row, label) = Row::of(values);
            assert!(rows.insert(row.number, row).is_none(), "{name}: {row:?} twice");
            assert!(at.insert(rid, (row, label)).is_none(), "{name}: {rid} twice");
        }
        for (column, index) in self.indexes.iter().enumerate() {
            let key_of = |rid: &Rid| {
                let (row, label) = at.get(rid)?;
                Some(match column {
                    0 => Value::Int(row.number),
                    1 => Value::Int(row.value),
                    _ => Value::Text(label.clone()),
                })
            };
            for way in [Way::Forward, Way::Backward] {
                let mut found = Vec::new();
                for key in t.keys_of(&self.table, index, way)? {
                    let (rid, values) = key?;
                    let expected = key_of(&rid);
                    assert!(expected.as_ref() == values.first(), "{}: {rid} has the key {values:?}, the row {expected:?}", index.name());
                    found.push(rid);
                }
                let entries = found.len();
                found.sort_unstable();
                found.dedup();
                assert_eq!((entries, found.len()), (at.len(), at.len()), "{}: entries, different ones, and rows", index.name());
            }
        }
        Ok(rows)
    }

    /// Nothing is left of what no snapshot needs: entries and rows are as many as are seen.
    fn check_counts(&self, rows: usize) {
        assert_eq!(self.table.row_count(), rows as u64, "{}: count of rows", self.table.name());
        let mut buffer = RowBuffer::default();
        for index in &self.indexes {
            let mut entries = 0;
            let faults = index.tree().check(&mut |_, rid| {
                entries += 1;
                assert!(self.table.read(rid, &mut buffer, |_| ())?.is_some(), "{}: an entry without its row {rid}", index.name());
                Ok(())
            });
            assert_eq!(faults.unwrap().len(), 0, "{}", index.name());
            assert_eq!(entries, rows, "{}: entries", index.name());
        }
    }

    fn pages(&self, pages: &mut Pages) {
        let name = self.table.name();
        let (mut rows, mut all) = (0, 0);
        for partition in self.table.data_sets() {
            rows += u64::from(partition.facts().data_pages);
            all += u64::from(partition.page_count());
        }
        pages.insert((Kind::Rows, name.to_owned()), rows);
        pages.insert((Kind::Table, name.to_owned()), all);
        for index in &self.indexes {
            pages.insert((Kind::Index, index.name().to_owned()), u64::from(index.data_set().page_count()));
        }
    }
}

/// How the tables and indexes of a bank are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) method: Method,
    pub(crate) formats: [IndexFormat; 3],
}

impl Form {
    pub(crate) fn of(method: Method) -> Form {
        use IndexFormat::{Fold, Plain, Prefix};
        let formats = match method {
            Method::None => [Plain; 3],
            Method::Row => [Prefix; 3],
            Method::Fixed => [Fold; 3],
            Method::Huffman => [Prefix, Fold, Plain],
            Method::Page => [Fold, Plain, Prefix],
        };
        Form { method, formats }
    }
}

pub(crate) struct Bank {
    pub(crate) database: Database,
    pub(crate) accounts: Ledger,
    pub(crate) history: Ledger,
}

pub(crate) fn settings() -> Settings {
    // So small a pool writes pages of running transactions.
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 2, ..PoolSettings::default() };
    let log = LogSettings { segment_bytes: 1 << 20, ..LogSettings::default() };
    Settings { pools, log, double_write_bytes: 512 << 10, checkpoint_bytes: 8 << 20, ..Settings::default() }
}

impl Bank {
    pub(crate) fn open(storage: &Arc<dyn Storage>, directory: &Path, mode: OpenMode) -> Result<Bank> {
        let database = Database::open(Arc::clone(storage), Arc::new(OsClock), directory, mode, settings())?;
        let (accounts, history) = (Ledger::open(&database, "accounts")?, Ledger::open(&database, "history")?);
        Ok(Bank { database, accounts, history })
    }

    /// A bank without rows.
    pub(crate) fn create(storage: &Arc<dyn Storage>, directory: &Path, form: Form) -> Result<Bank> {
        let database = Database::open(Arc::clone(storage), Arc::new(OsClock), directory, OpenMode::Create, settings())?;
        let mut change = database.change();
        for name in ["accounts", "history"] {
            let columns = [
                ("number", DataType::BigInt, false),
                ("value", DataType::BigInt, false),
                ("version", DataType::BigInt, false),
                ("label", DataType::Varchar(Some(80)), false),
                ("text", DataType::Varchar(None), true),
                ("data", DataType::Bytea, true),
            ];
            let schema = Schema::new(columns.into_iter().map(|(name, kind, null)| Column::new(name, kind, null)).collect()).unwrap();
            let mut attributes = TableAttributes::new(name, schema).with_page_bytes(2048);
            attributes.method = form.method;
            attributes.primary_key = vec![0];
            let table = change.create_table(attributes)?;
            for ((column, suffix), format) in [(0, "number"), (1, "value"), (3, "label")].into_iter().zip(form.formats) {
                let attributes = IndexAttributes::new(format!("{name}_{suffix}"), vec![(column, Direction::Ascending)], column == 0);
                change.create_index(&table, attributes.with_format(format, if format == IndexFormat::Fold { 8192 } else { 2048 }))?;
            }
        }
        change.commit()?;
        drop(database);
        Bank::open(storage, directory, OpenMode::Write)
    }

    /// Puts rows in, and has dictionaries made of them.
    pub(crate) fn fill(&self, accounts: impl IntoIterator<Item = Row>, history: impl IntoIterator<Item = Row>) -> Result<()> {
        let mut t = self.database.begin(TransactionOptions::default());
        accounts.into_iter().try_for_each(|row| self.accounts.insert(&mut t, row).map(drop))?;
        history.into_iter().try_for_each(|row| self.history.insert(&mut t, row).map(drop))?;
        t.commit()?;
        ["accounts", "history"].into_iter().try_for_each(|table| self.database.renew_dictionaries(table).map(drop))
    }

    /// Looks at everything that a transaction sees; accounts and history. Panics unless the invariants hold.
    pub(crate) fn audit(&self, t: &mut Transaction<'_>) -> Result<[BTreeMap<i64, Row>; 2]> {
        let (accounts, history) = (self.accounts.see(t)?, self.history.see(t)?);
        let money: i64 = accounts.range(..ACCOUNTS).map(|(_, row)| row.value).sum();
        assert_eq!((money, accounts.len() as i64), (ACCOUNTS * MONEY_OF_EACH, ACCOUNTS + WRITERS), "money and rows");
        let mut expected = Vec::new();
        for writer in 0..WRITERS {
            let counter = accounts[&(COUNTERS + writer)];
            assert_eq!(counter.value, counter.version, "counter of writer {writer}");
            expected.extend(((counter.value - KEPT).max(0) + 1..=counter.value).map(|count| history_number(writer, count)));
        }
        assert!(history.keys().copied().eq(expected.iter().copied()), "the history has {:?}, expected {expected:?}", history.keys());
        Ok([accounts, history])
    }

    /// When nothing runs: nothing is left over, either.
    pub(crate) fn audit_at_rest(&self) -> [BTreeMap<i64, Row>; 2] {
        self.database.remove_leftovers().unwrap();
        let mut t = self.database.begin(TransactionOptions::default());
        let seen = self.audit(&mut t).unwrap();
        t.commit().unwrap();
        self.accounts.check_counts(seen[0].len());
        self.history.check_counts(seen[1].len());
        seen
    }

    /// Pages of each table and index.
    pub(crate) fn pages(&self) -> Pages {
        let mut pages = Pages::new();
        self.accounts.pages(&mut pages);
        self.history.pages(&mut pages);
        pages
    }
}

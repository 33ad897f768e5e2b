//! Tables that are altered: columns that come and go, other types and names, beside changes of rows, with savepoints, older snapshots, crashes and statements that
//! fail; under all methods. What the table has is held against a model of it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod crossed;

use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{
    Database, IndexChange, Isolation, OpenMode, RowScan, ScanRequest, Settings, TableChange, Transaction, TransactionOptions,
};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{BatchValues, Method, Table, TableAttributes};
use pagefold_engine::{Error, Result};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, KeyRange, Rid, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn text(&mut self, words: u64) -> String {
        let known = ["carefully ", "final ", "deposits ", "sleep ", "furiously ", "xq", "express "];
        (0..self.below(words)).map(|_| known[self.below(7) as usize]).collect()
    }
}

fn settings() -> Settings {
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    Settings { pools, double_write_bytes: 512 << 10, ..Settings::default() }
}

fn open(storage: &Arc<dyn Storage>, mode: OpenMode) -> Database {
    open_at(storage, "db", mode)
}

fn open_at(storage: &Arc<dyn Storage>, directory: &str, mode: OpenMode) -> Database {
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(Arc::clone(storage), clock, Path::new(directory), mode, settings()).unwrap()
}

fn begin(database: &Database, isolation: Isolation) -> Transaction<'_> {
    let lock_timeout = Duration::from_millis(50);
    database.begin(TransactionOptions { isolation, lock_timeout, ..TransactionOptions::default() })
}

fn parse(data_type: &str) -> DataType {
    data_type.parse().unwrap()
}

fn add(name: &str, data_type: &str, nullable: bool, value: Value) -> TableChange {
    TableChange::AddColumn { column: Column::new(name, parse(data_type), nullable), value }
}

fn set_type(column: &str, data_type: &str) -> TableChange {
    TableChange::SetType { column: column.into(), data_type: parse(data_type) }
}

/// A table `t` of id (the key), a SMALLINT, a text and a DECIMAL.
fn create(database: &Database, method: Method, format: IndexFormat) {
    let columns = [("id", "bigint", false), ("small", "smallint", true), ("text", "text", false), ("price", "decimal(7,2)", false)];
    let columns = columns.into_iter().map(|(name, data_type, nullable)| Column::new(name, parse(data_type), nullable)).collect();
    let mut t = begin(database, Isolation::ReadCommitted);
    let attributes = TableAttributes { method, primary_key: vec![0], ..TableAttributes::new("t", Schema::new(columns).unwrap()) };
    let table = t.create_table(attributes.with_page_bytes(2048)).unwrap();
    let page_bytes = if format == IndexFormat::Fold { 8192 } else { 2048 };
    let index = |name: &str, column, unique| {
        IndexAttributes::new(name, vec![(column, Direction::Ascending)], unique).with_format(format, page_bytes)
    };
    t.create_index(&table, index("t_pk", 0, true)).unwrap();
    t.create_index(&table, index("by_price", 3, false)).unwrap();
    t.commit().unwrap();
}

/// Scans with a view of their own.
trait Scans {
    fn rows(&mut self, table: &Arc<Table>) -> Result<RowScan>;
    fn rows_by(&mut self, table: &Arc<Table>, index: &Arc<Index>, way: Way) -> Result<RowScan>;
}

impl Scans for Transaction<'_> {
    fn rows(&mut self, table: &Arc<Table>) -> Result<RowScan> {
        Ok(self.read_view()?.scan(table, &ScanRequest::default())?.into_rows())
    }

    fn rows_by(&mut self, table: &Arc<Table>, index: &Arc<Index>, way: Way) -> Result<RowScan> {
        let all = KeyRange { start: Vec::new(), end: None };
        Ok(self.read_view()?.range(table, index, all, way, &ScanRequest::default())?.into_rows())
    }
}

/// What a table is to be.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// By place; `None`: dropped.
    columns: Vec<Option<Column>>,
    rows: BTreeMap<i64, Vec<Value>>,
}

impl Model {
    fn of(database: &Database) -> Model {
        let table = database.table("t").unwrap();
        Model { columns: table.attributes().schema.columns().iter().cloned().map(Some).collect(), rows: BTreeMap::new() }
    }

    fn visible(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|at| self.columns[*at].is_some()).collect()
    }

    /// Holds the table against it: by a scan of records, one of batches, and by the indexes.
    fn check(&self, t: &mut Transaction<'_>, what: &str) {
        let table = t.table("t").unwrap();
        let names = |columns: Vec<&Column>| {
            columns.iter().map(|column| (column.name.clone(), column.data_type, column.nullable)).collect::<Vec<_>>()
        };
        let visible = table.attributes().visible_columns();
        let own = visible.iter().map(|at| &table.attributes().schema.columns()[*at]).collect();
        assert_eq!(names(own), names(self.columns.iter().flatten().collect()), "{what}");
        let row = |values: &[Value]| visible.iter().map(|at| values[*at].clone()).collect::<Vec<_>>();
        let expected: BTreeMap<i64, Vec<Value>> = self.rows.iter().map(|(id, values)| (*id, self.row(values))).collect();
        let mut rows = BTreeMap::new();
        for found in t.rows(&table).unwrap() {
            let (_, values) = found.unwrap();
            let Value::Int(id) = values[0] else { panic!("{values:?}") };
            assert!(rows.insert(id, row(&values)).is_none(), "{what}: {id} twice");
        }
        for (id, values) in &expected {
            assert_eq!(rows.get(id), Some(values), "{what}: row {id}");
        }
        assert_eq!(rows.len(), expected.len(), "{what}");
        let mut batched = 0;
        let request = ScanRequest { columns: Some(visible.clone()), ..ScanRequest::default() };
        for batch in t.read_view().unwrap().scan(&table, &request).unwrap() {
            let batch = batch.unwrap();
            batched += batch.len();
            for at in 0..batch.len() {
                let row = &expected[&batch.columns()[0].ints()[at]];
                for (column, value) in batch.columns().iter().zip(row) {
                    assert_eq!(column.validity().get(at), !value.as_ref().is_null(), "{what}: {value:?}");
                    match (column.values(), value) {
                        (BatchValues::Ints(ints), Value::Int(number)) => assert_eq!(ints[at], *number, "{what}"),
                        (BatchValues::Ints(ints), Value::Decimal(number)) => assert_eq!(i128::from(ints[at]), *number, "{what}"),
                        (BatchValues::Bytes { ends, large, .. }, Value::Text(text)) if !large.get(at) => {
                            let start = at.checked_sub(1).map_or(0, |before| ends[before]);
                            assert_eq!((ends[at] - start) as usize, text.len(), "{what}: {text}");
                        }
                        _ => {}
                    }
                }
            }
        }
        assert_eq!(batched, expected.len(), "{what}");
        for index in t.indexes(&table).unwrap() {
            let found = t.rows_by(&table, &index, Way::Forward).unwrap();
            assert_eq!(found.filter(Result::is_ok).count(), expected.len(), "{what}: by {}", index.name());
        }
        let pk = t.index("t_pk").unwrap();
        for id in expected.keys().step_by(7) {
            let found = t.get(&table, &pk, &[ValueRef::Int(*id)], |_, record| table.values(record).unwrap()).unwrap().unwrap();
            assert_eq!(Some(&row(&found)), expected.get(id), "{what}: {id} by its key");
        }
    }

    fn row(&self, values: &[Value]) -> Vec<Value> {
        self.visible().iter().map(|at| values[*at].clone()).collect()
    }
}

fn value(random: &mut Random, column: &Column) -> Value {
    if column.nullable && random.below(4) == 0 {
        return Value::Null;
    }
    match column.data_type {
        DataType::SmallInt => Value::Int(random.below(30_000) as i64 - 15_000),
        DataType::Integer => Value::Int(random.below(1 << 31) as i64 - (1 << 30)),
        DataType::BigInt => Value::Int((random.below(1 << 62)) as i64),
        DataType::Decimal { .. } => Value::Decimal(i128::from(random.below(9_999_999)) - 5_000_000),
        DataType::Varchar(Some(n)) => Value::Text("v".repeat(random.below(u64::from(n) + 1) as usize)),
        DataType::Varchar(None) if random.below(12) == 0 => Value::Text(random.text(800)),
        // About as long as a row can be.
        DataType::Varchar(None) if random.below(12) == 0 => Value::Text("long".repeat(380 + random.below(110) as usize)),
        DataType::Char(n) => Value::Text(padded(&random.text(3), n)),
        DataType::Varchar(None) => Value::Text(random.text(8)),
        DataType::Boolean => Value::Boolean(random.below(2) == 1),
        DataType::Double => Value::Double(random.below(1000) as f64 / 8.0),
        other => panic!("{other}"),
    }
}

/// As a column of so many characters has it.
fn padded(text: &str, chars: u32) -> String {
    let width = chars as usize;
    format!("{:<width$}", text.get(..width).unwrap_or(text))
}

fn rid(t: &mut Transaction<'_>, table: &Arc<Table>, id: i64) -> Rid {
    let pk = t.index("t_pk").unwrap();
    t.find(table, &pk, &[ValueRef::Int(id)]).unwrap()[0]
}

/// A change of a row, or of several.
fn change_rows(t: &mut Transaction<'_>, model: &mut Model, random: &mut Random, next: &mut i64) {
    let table = t.table("t").unwrap();
    let pick = |model: &Model, random: &mut Random| model.rows.keys().nth(random.below(model.rows.len().max(1) as u64) as usize).copied();
    match random.below(10) {
        0..=4 => {
            let count = if random.below(12) == 0 { 60 } else { 1 };
            let mut rows = Vec::new();
            for _ in 0..count {
                *next += 1;
                let own = |(at, column): (usize, &Option<Column>)| match column {
                    Some(_) if at == 0 => Value::Int(*next),
                    Some(column) => value(random, column),
                    None => Value::Null,
                };
                rows.push(model.columns.iter().enumerate().map(own).collect::<Vec<Value>>());
            }
            if count == 1 {
                t.insert(&table, &rows[0].iter().map(Value::as_ref).collect::<Vec<_>>()).unwrap();
            } else {
                t.insert_rows(&table, |to_come| {
                    rows.iter().try_for_each(|row| to_come.push(&row.iter().map(Value::as_ref).collect::<Vec<_>>()))
                })
                .unwrap();
            }
            for row in rows {
                let Value::Int(id) = row[0] else { panic!("a key") };
                model.rows.insert(id, row);
            }
        }
        5..=8 => {
            let Some(id) = pick(model, random) else { return };
            let row = rid(t, &table, id);
            let columns: Vec<usize> = model.visible().into_iter().skip(1).collect();
            let mut changes: Vec<(usize, Value)> = Vec::new();
            for _ in 0..1 + random.below(2) {
                let at = columns[random.below(columns.len() as u64) as usize];
                if changes.iter().all(|(known, _)| *known != at) {
                    changes.push((at, value(random, model.columns[at].as_ref().unwrap())));
                }
            }
            assert!(t.update(&table, row, &changes.iter().map(|(at, value)| (*at, value.as_ref())).collect::<Vec<_>>()).unwrap());
            let own = model.rows.get_mut(&id).unwrap();
            changes.into_iter().for_each(|(at, value)| own[at] = value);
        }
        _ => {
            let Some(id) = pick(model, random) else { return };
            let row = rid(t, &table, id);
            assert!(t.delete(&table, row).unwrap());
            model.rows.remove(&id);
        }
    }
}

/// Another table, if the model says that it can be.
fn alter(t: &mut Transaction<'_>, model: &mut Model, random: &mut Random) -> bool {
    let columns = model.visible();
    // The key stays.
    let at = columns[1 + random.below(columns.len() as u64 - 1) as usize];
    let column = model.columns[at].clone().unwrap();
    let (change, expected): (TableChange, std::result::Result<(), &str>) = match random.below(7) {
        0 | 1 if columns.len() < 9 => {
            let types = ["integer", "text", "decimal(9,2)", "varchar(12)", "boolean", "double", "char(10)"];
            let (name, nullable) = (format!("c{}", random.below(1 << 40)), random.below(2) == 0);
            let new = Column::new(name, parse(types[random.below(7) as usize]), nullable);
            let own =
                if nullable && random.below(2) == 0 { Value::Null } else { value(random, &Column { nullable: false, ..new.clone() }) };
            (TableChange::AddColumn { column: new, value: own }, Ok(()))
        }
        2 if columns.len() > 2 && at != 3 => (TableChange::DropColumn(column.name.clone()), Ok(())),
        2 if at == 3 => (TableChange::DropColumn(column.name.clone()), Err("index")),
        3 => {
            let wider = match column.data_type {
                DataType::SmallInt => "integer",
                DataType::Integer => "bigint",
                DataType::Decimal { .. } => "decimal(20,2)",
                DataType::Varchar(Some(_)) => "varchar(40)",
                DataType::Char(_) => "char(300)",
                DataType::Varchar(None) => "text",
                DataType::BigInt => "bigint",
                _ => return false,
            };
            (set_type(&column.name, wider), Ok(()))
        }
        4 => {
            let has_null = model.rows.values().any(|row| row[at].as_ref().is_null());
            let fits = if has_null { Err("is NULL") } else { Ok(()) };
            (TableChange::SetNotNull(column.name.clone()), fits)
        }
        5 => (TableChange::DropNotNull(column.name.clone()), Ok(())),
        _ => (TableChange::RenameColumn { column: column.name.clone(), to: format!("r{}", random.below(1 << 40)) }, Ok(())),
    };
    match (t.change_table("t", std::slice::from_ref(&change)), expected) {
        (Ok(_), Ok(())) => {}
        (Err(error), Err(says)) => {
            assert!(error.to_string().contains(says), "{error}");
            return false;
        }
        // There have been as many as can be.
        (Err(Error::Parameter(reason)), Ok(())) if reason.contains("REORG") => return false,
        (result, expected) => panic!("{change:?}: {result:?}, {expected:?}"),
    }
    match change {
        TableChange::AddColumn { column, value } => {
            // Changes that were taken back may have left places behind the last column.
            let table = t.table("t").unwrap();
            let place = table.attributes().schema.len() - 1;
            model.columns.resize(place, None);
            model.columns.push(Some(column));
            for row in model.rows.values_mut() {
                row.resize(place, Value::Null);
                row.push(value.clone());
            }
        }
        TableChange::DropColumn(_) => {
            model.columns[at] = None;
            model.rows.values_mut().for_each(|row| row[at] = Value::Null);
        }
        TableChange::SetType { data_type, .. } => {
            model.columns[at] = Some(Column { data_type, ..column });
            if let DataType::Char(n) = data_type {
                model.rows.values_mut().for_each(|row| {
                    if let Value::Text(text) = &mut row[at] {
                        *text = padded(text, n);
                    }
                });
            }
        }
        TableChange::SetNotNull(_) => model.columns[at] = Some(Column { nullable: false, ..column }),
        TableChange::DropNotNull(_) => model.columns[at] = Some(Column { nullable: true, ..column }),
        TableChange::RenameColumn { to, .. } => model.columns[at] = Some(Column { name: to, ..column }),
        _ => {}
    }
    let places = t.table("t").unwrap().attributes().schema.len();
    model.columns.resize(places, None);
    model.rows.values_mut().for_each(|row| row.resize(places, Value::Null));
    true
}

/// Transactions that alter the table and change rows, some of which are taken back, wholly or in part, and crashes; an older snapshot looks on.
fn run(method: Method, format: IndexFormat, seed: u64, turns: u64) {
    let storage = FaultStorage::new(FaultOptions::default());
    let mut shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut storage = storage;
    let mut database = open(&shared, OpenMode::Create);
    create(&database, method, format);
    let (mut random, mut model, mut next) = (Random(seed), Model::of(&database), 0);
    for turn in 0..turns {
        let what = format!("{method:?} {format:?} seed {seed} turn {turn}");
        let (before, crashes) = (model.clone(), random.below(6) == 0);
        {
            let mut old = (random.below(2) == 0).then(|| begin(&database, Isolation::RepeatableRead));
            old.iter_mut().for_each(|old| before.check(old, &format!("{what} before")));
            for _ in 0..1 + random.below(3) {
                let committed = model.clone();
                let mut t = begin(&database, [Isolation::ReadCommitted, Isolation::RepeatableRead][random.below(2) as usize]);
                let mut savepoints = Vec::new();
                for _ in 0..random.below(14) {
                    match random.below(12) {
                        0 => savepoints.push((t.savepoint(), model.clone())),
                        1 => {
                            if let Some((savepoint, then)) = savepoints.pop() {
                                t.roll_back_to(savepoint).unwrap();
                                model = then;
                            }
                        }
                        2 | 3 => drop(alter(&mut t, &mut model, &mut random)),
                        _ => change_rows(&mut t, &mut model, &mut random, &mut next),
                    }
                }
                model.check(&mut t, &format!("{what}, own"));
                if random.below(3) == 0 {
                    database.checkpoint().unwrap();
                }
                if crashes && random.below(2) == 0 {
                    // Without an end.
                    std::mem::forget(t);
                    model = committed;
                    break;
                }
                if random.below(4) == 0 {
                    t.rollback().unwrap();
                    model = committed;
                } else {
                    t.commit().unwrap();
                }
                model.check(&mut begin(&database, Isolation::ReadCommitted), &format!("{what}, others"));
                old.iter_mut().for_each(|old| before.check(old, &format!("{what}, who has an older snapshot")));
            }
            if crashes {
                old.into_iter().for_each(std::mem::forget);
            }
        }
        if crashes || random.below(8) == 0 {
            if crashes {
                let policy = [CrashPolicy::KeepAll, CrashPolicy::DropAll, CrashPolicy::Random(seed + turn)][random.below(3) as usize];
                storage = storage.crash_image(policy);
                shared = Arc::new(storage.clone());
                std::mem::forget(database);
            } else {
                drop(database);
            }
            database = open(&shared, OpenMode::Write);
            model.check(&mut begin(&database, Isolation::RepeatableRead), &format!("{what}, opened again"));
        }
    }
}

#[test]
fn altered_tables_are_as_the_model_says() {
    for (turn, method) in Method::ALL.into_iter().enumerate() {
        for seed in 0..4 {
            run(method, IndexFormat::ALL[(turn + seed as usize) % 3], seed + 1, 24);
        }
    }
}

fn table_of(database: &Database) -> Arc<Table> {
    database.table("t").unwrap()
}

fn in_memory(method: Method) -> Database {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create);
    create(&database, method, IndexFormat::Prefix);
    database
}

fn fill(database: &Database, ids: std::ops::Range<i64>) {
    let mut t = begin(database, Isolation::ReadCommitted);
    let table = t.table("t").unwrap();
    for id in ids {
        let text = format!("text of {id}");
        t.insert(&table, &[ValueRef::Int(id), ValueRef::Int(id % 100), ValueRef::Text(&text), ValueRef::Decimal(id.into())]).unwrap();
    }
    t.commit().unwrap();
}

/// A change that a value forbids names the row and the value, and leaves everything as it was; so does one that names what is not there.
#[test]
fn a_value_that_forbids_a_change_is_named() {
    for method in Method::ALL {
        let database = in_memory(method);
        fill(&database, 0..50);
        let mut t = begin(&database, Isolation::ReadCommitted);
        let table = t.table("t").unwrap();
        let row = rid(&mut t, &table, 7);
        t.update(&table, row, &[(1, ValueRef::Null)]).unwrap();
        t.commit().unwrap();
        let mut t = begin(&database, Isolation::ReadCommitted);
        let refused = |t: &mut Transaction<'_>, change: TableChange, says: &[&str]| {
            let error = t.change_table("t", &[change]).unwrap_err().to_string();
            assert!(says.iter().all(|says| error.contains(says)) && error.contains("table \"t\""), "{error}");
        };
        refused(&mut t, TableChange::SetNotNull("small".into()), &["primary key (7)", "\"small\" is NULL"]);
        refused(&mut t, set_type("text", "varchar(9)"), &["primary key (10)", "\"text of 10\" is no VARCHAR(9)"]);
        refused(&mut t, set_type("price", "integer"), &["primary key (1)", "0.01 is no INTEGER"]);
        refused(&mut t, set_type("price", "text"), &["cannot become"]);
        refused(&mut t, add("new", "integer", false, Value::Null), &["may not be NULL"]);
        refused(&mut t, add("new", "smallint", false, Value::Int(70_000)), &["70000"]);
        refused(&mut t, add("text", "integer", true, Value::Null), &["text"]);
        refused(&mut t, TableChange::DropColumn("id".into()), &["primary key"]);
        refused(&mut t, TableChange::DropColumn("price".into()), &["by_price"]);
        refused(&mut t, TableChange::DropColumn("none".into()), &["none"]);
        refused(&mut t, TableChange::RenameColumn { column: "text".into(), to: "id".into() }, &["id"]);
        refused(&mut t, TableChange::Pctfree(100), &["PCTFREE"]);
        // Nothing of that is left.
        t.change_table("t", &[TableChange::DropNotNull("text".into()), set_type("small", "bigint")]).unwrap();
        t.commit().unwrap();
        let columns = table_of(&database).attributes().schema.columns().to_vec();
        assert_eq!((columns.len(), columns[1].data_type, columns[2].nullable), (4, DataType::BigInt, true));
        assert_eq!(begin(&database, Isolation::ReadCommitted).indexes(&table_of(&database)).unwrap().len(), 2);
    }
}

/// A table without a primary key gets one, of columns that may not be NULL; it goes with a savepoint, and stays after a crash.
#[test]
fn a_primary_key_comes_later() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let database = open(&shared, OpenMode::Create);
    let columns = vec![Column::new("a", DataType::Integer, false), Column::new("b", DataType::Integer, true)];
    let mut t = begin(&database, Isolation::ReadCommitted);
    let table = t.create_table(TableAttributes::new("k", Schema::new(columns).unwrap())).unwrap();
    t.insert(&table, &[ValueRef::Int(1), ValueRef::Int(2)]).unwrap();
    t.commit().unwrap();
    let key = |names: &[&str]| TableChange::PrimaryKey(names.iter().map(|name| (*name).to_owned()).collect());
    let key_of = |t: &mut Transaction<'_>| t.table("k").unwrap().attributes().primary_key.clone();
    let mut t = begin(&database, Isolation::ReadCommitted);
    assert!(t.change_table("k", &[key(&["a", "b"])]).unwrap_err().to_string().contains("\"b\" may be NULL"));
    let savepoint = t.savepoint();
    t.change_table("k", &[key(&["a"])]).unwrap();
    assert_eq!(key_of(&mut t), [0]);
    t.roll_back_to(savepoint).unwrap();
    assert!(key_of(&mut t).is_empty());
    t.change_table("k", &[TableChange::SetNotNull("b".into()), key(&["b", "a"])]).unwrap();
    assert!(t.change_table("k", &[key(&["a"])]).unwrap_err().to_string().contains("has a primary key"));
    t.commit().unwrap();
    let image: Arc<dyn Storage> = Arc::new(storage.crash_image(CrashPolicy::DropAll));
    drop(database);
    let database = open(&image, OpenMode::Write);
    assert_eq!(key_of(&mut begin(&database, Isolation::ReadCommitted)), [1, 0]);
}

/// Names go from one to another in a transaction, and back with a savepoint; a handle of before is refused; who has an older snapshot goes on with the old names.
#[test]
fn names_change() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let database = open(&shared, OpenMode::Create);
    create(&database, Method::Page, IndexFormat::Plain);
    fill(&database, 0..10);
    let row = [ValueRef::Int(77), ValueRef::Null, ValueRef::Text(""), ValueRef::Decimal(1)];
    let mut old = begin(&database, Isolation::RepeatableRead);
    let before = old.table("t").unwrap();
    let mut t = begin(&database, Isolation::ReadCommitted);
    let renamed = t.change_table("t", &[TableChange::Rename("u".into())]).unwrap();
    assert!(matches!(t.table("t"), Err(Error::Unknown { .. })));
    assert!(matches!(t.insert(&before, &row), Err(Error::Stale { .. })));
    let savepoint = t.savepoint();
    t.change_table("u", &[TableChange::Rename("t".into())]).unwrap();
    assert!(matches!(t.insert(&renamed, &row), Err(Error::Stale { .. })));
    assert_eq!(t.table("t").unwrap().name(), "t");
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(t.table("u").unwrap().name(), "u");
    // The name is free now, and its index may be called otherwise.
    let attributes = TableAttributes::new("t", Schema::new(vec![Column::new("x", DataType::Integer, false)]).unwrap());
    let new = t.create_table(attributes).unwrap();
    t.insert(&new, &[ValueRef::Int(1)]).unwrap();
    t.change_index("by_price", &[IndexChange::Rename("u_price".into())]).unwrap();
    assert!(matches!(t.change_index("t_pk", &[IndexChange::Rename("u_price".into())]), Err(Error::Exists { .. })));
    assert!(matches!(begin(&database, Isolation::ReadCommitted).table("u"), Err(Error::Unknown { .. })));
    assert_eq!(database.index_names(), ["by_price", "t_pk"]);
    t.commit().unwrap();
    assert_eq!(
        (database.table_names(), database.index_names()),
        (vec!["t".to_owned(), "u".into()], vec!["t_pk".to_owned(), "u_price".into()])
    );
    let mut now = begin(&database, Isolation::ReadCommitted);
    assert!(matches!(now.rows(&before).map(drop), Err(Error::Stale { .. })));
    let (renamed, index) = (now.table("u").unwrap(), now.index("u_price").unwrap());
    assert_eq!(now.rows_by(&renamed, &index, Way::Forward).unwrap().count(), 10);
    assert_eq!(
        {
            let t = now.table("t").unwrap();
            now.rows(&t).unwrap().count()
        },
        1
    );
    // As it was.
    assert_eq!(old.table("t").unwrap().attributes().schema.len(), 4);
    let (table, index) = (old.table("t").unwrap(), old.index("by_price").unwrap());
    assert_eq!(old.rows_by(&table, &index, Way::Forward).unwrap().count(), 10);
    drop(now);
    drop(old);
    let image: Arc<dyn Storage> = Arc::new(storage.crash_image(CrashPolicy::DropAll));
    let database = open(&image, OpenMode::Write);
    assert_eq!(
        (database.table_names(), database.index_names()),
        (vec!["t".to_owned(), "u".into()], vec!["t_pk".to_owned(), "u_price".into()])
    );
    assert_eq!(begin(&database, Isolation::ReadCommitted).rows(&database.table("u").unwrap()).unwrap().count(), 10);
}

/// Rows stay as they are stored until they change: what a change of columns writes does not go with the number of rows.
#[test]
fn a_change_of_columns_writes_no_rows() {
    for method in Method::ALL {
        let database = in_memory(method);
        fill(&database, 0..2000);
        let pages = |database: &Database| table_of(database).data_sets().map(|data_set| data_set.page_count()).sum::<u32>();
        let (before, log) = (pages(&database), database.log_bytes_since_checkpoint());
        let mut t = begin(&database, Isolation::ReadCommitted);
        let changes = [
            add("new", "integer", false, Value::Int(5)),
            TableChange::DropColumn("text".into()),
            set_type("small", "bigint"),
            TableChange::Pctfree(10),
        ];
        t.change_table("t", &changes).unwrap();
        t.commit().unwrap();
        let written = database.log_bytes_since_checkpoint() - log;
        assert!(pages(&database) == before && written < 4096, "{method:?}: {written} bytes of log");
        let mut t = begin(&database, Isolation::ReadCommitted);
        let table = t.table("t").unwrap();
        assert_eq!(table.attributes().pctfree, 10);
        let rows: Vec<Vec<Value>> = t.rows(&table).unwrap().map(|row| row.unwrap().1).collect();
        assert_eq!(rows.len(), 2000);
        assert!(rows.iter().all(|row| row[4] == Value::Int(5)) && table.attributes().visible_columns() == [0, 1, 3, 4], "{method:?}");
    }
}

/// Rows that are older than a column have the value of before, and so they do when dropping it is taken back: though their pages were built anew meanwhile. Who has an older snapshot sees it, too.
#[test]
fn what_rows_of_before_have_comes_back_with_a_dropped_column() {
    for method in Method::ALL {
        let database = in_memory(method);
        fill(&database, 0..120);
        let mut t = begin(&database, Isolation::ReadCommitted);
        t.change_table("t", &[add("new", "text", true, Value::Text("of before".into()))]).unwrap();
        t.commit().unwrap();
        let mut old = begin(&database, Isolation::RepeatableRead);
        let rows = |t: &mut Transaction<'_>, table: &Arc<Table>| -> Vec<Vec<Value>> {
            let mut rows: Vec<Vec<Value>> = t.rows(table).unwrap().map(|row| row.unwrap().1).collect();
            rows.sort();
            rows
        };
        let own_of_old = old.table("t").unwrap();
        let expected = rows(&mut old, &own_of_old);
        assert!(expected.len() == 120 && expected.iter().all(|row| row[4] == Value::Text("of before".into())), "{method:?}");
        for turn in 0..3 {
            let mut t = begin(&database, Isolation::ReadCommitted);
            let savepoint = t.savepoint();
            t.change_table("t", &[TableChange::DropColumn("new".into())]).unwrap();
            let table = t.table("t").unwrap();
            for id in (0..120).filter(|id| id % 3 == turn) {
                let row = rid(&mut t, &table, id);
                assert!(t.update(&table, row, &[(2, ValueRef::Text(&"other ".repeat(id as usize)))]).unwrap());
            }
            match turn {
                0 => t.rollback().unwrap(),
                1 => {
                    t.roll_back_to(savepoint).unwrap();
                    t.commit().unwrap();
                }
                _ => t.commit().unwrap(),
            }
            assert!(rows(&mut old, &own_of_old) == expected, "{method:?}, turn {turn}, an older snapshot");
            if turn < 2 {
                let mut t = begin(&database, Isolation::ReadCommitted);
                let table = t.table("t").unwrap();
                assert!(rows(&mut t, &table) == expected, "{method:?}, turn {turn}");
            }
        }
    }
}

/// A row that is longer with a column that came later, or a width, than a page has room for: when it changes its values move out, as those of a new one do.
#[test]
fn rows_that_have_grown_by_a_column_change_as_others() {
    for method in Method::ALL {
        for (kind, value, wider) in [
            ("text", Value::Text("d".repeat(1_700)), None),
            ("text", Value::Text("d".repeat(100)), None),
            ("char(10)", Value::Text("c".repeat(10)), Some("char(800)")),
        ] {
            let storage = FaultStorage::new(FaultOptions::default());
            let shared: Arc<dyn Storage> = Arc::new(storage.clone());
            let database = open(&shared, OpenMode::Create);
            create(&database, method, IndexFormat::Prefix);
            let mut t = begin(&database, Isolation::ReadCommitted);
            let table = t.table("t").unwrap();
            // Up to the longest that a page has.
            let lengths: Vec<usize> = (0..60).map(|at| 33 * at).collect();
            for (id, length) in (0..).zip(&lengths) {
                let text: String = (0..*length).map(|at| char::from(b'a' + ((at * at + id as usize) % 23) as u8)).collect();
                t.insert(&table, &[ValueRef::Int(id), ValueRef::Int(1), ValueRef::Text(&text), ValueRef::Decimal(id.into())]).unwrap();
            }
            t.commit().unwrap();
            let mut t = begin(&database, Isolation::ReadCommitted);
            t.change_table("t", &[add("new", kind, true, value.clone())]).unwrap();
            wider.iter().for_each(|wider| drop(t.change_table("t", &[set_type("new", wider)]).unwrap()));
            let table = t.table("t").unwrap();
            // A column of fixed width, one of variable width, or none.
            for id in 0..60 {
                let row = rid(&mut t, &table, id);
                let change = [(1, ValueRef::Int(7)), (3, ValueRef::Decimal(5)), (2, ValueRef::Text("short"))];
                match id % 4 {
                    3 => continue,
                    at => assert!(t.update(&table, row, &change[at as usize..=at as usize]).unwrap(), "{method:?} {kind} {id}"),
                }
            }
            t.commit().unwrap();
            let check = |database: &Database, what: &str| {
                let mut t = begin(database, Isolation::ReadCommitted);
                let table = t.table("t").unwrap();
                let mut count = 0;
                for row in t.rows(&table).unwrap() {
                    let row = row.unwrap().1;
                    let Value::Int(id) = row[0] else { panic!("a key") };
                    let Value::Text(text) = &row[2] else { panic!("a text") };
                    let (changed, length) = (id % 4, if id % 4 == 2 { 5 } else { lengths[id as usize] });
                    let Value::Text(new) = &row[4] else { panic!("a text") };
                    let Value::Text(before) = &value else { panic!("a text") };
                    assert!(
                        text.len() == length && new.trim_end() == before && (row[1] == Value::Int(7)) == (changed == 0),
                        "{method:?} {kind} {id} {what}"
                    );
                    count += 1;
                }
                assert_eq!(count, 60, "{method:?} {kind} {what}");
            };
            check(&database, "changed");
            // After a crash, too.
            let image = storage.crash_image(CrashPolicy::DropAll);
            std::mem::forget(database);
            let shared: Arc<dyn Storage> = Arc::new(image);
            check(&open(&shared, OpenMode::Write), "opened again");
        }
    }
}

//! Histories of a partitioned table: rows that come, change, move and go, beside partitions that come, go, are divided, put together and written anew, in
//! transactions with savepoints, with older readers, on a disk that is full now and then, and a crash before each so many-th call of it.
//!
//! What must be there after a crash: the state of the last commit, or that of the one that was under way.

use crate::images::{check, guarded};
use crate::setting;
use crate::world::{Random, index_page_bytes, open};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{
    Database, Insertion, Isolation, OpenMode, Part, PartOrder, PartitionSpec, PartitionedTable, ScanRequest, TableChange, Transaction,
    TransactionOptions, limit_key,
};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_engine::{Error, Progress, Silent, Unit};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage};
use pagefold_types::{Column, DataType, Direction, KeyRange, Schema, Value, ValueRef};
use pagefold_utility::{LoadMode, LoadOptions, PartitionText, ReorgOptions, Setting, load, merge_partitions, reorg, split_partition};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

const TABLE: &str = "sales";
/// It changes places with partitions.
const OTHER: &str = "other";
/// Unique over all partitions: the table is not divided by its column.
const UNIQUE: &str = "unique_id";
/// Days of rows are below this.
const DAYS: u64 = 60;

/// Names and limits as keys of partitions; rows by day and number; names of indexes; columns.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    partitions: Vec<(String, KeyRange2)>,
    rows: BTreeMap<(i64, i64), String>,
    indexes: BTreeSet<String>,
    /// Those that are not dropped, in order. One that came has the number of its name in every row.
    columns: Vec<Column>,
    /// Rows of the table that changes places with partitions, if it is there.
    other: Option<Rows>,
}

/// Columns that a partitioned table is made with.
const COLUMNS: usize = 3;

/// First key, and the first one behind.
type KeyRange2 = (Vec<u8>, Option<Vec<u8>>);

/// Texts by day and number.
type Rows = BTreeMap<(i64, i64), String>;

impl State {
    /// Has another row this number, where there must be none?
    fn refuses(&self, id: i64, own: Option<(i64, i64)>) -> bool {
        self.indexes.contains(UNIQUE) && self.rows.keys().any(|key| key.1 == id && Some(*key) != own)
    }

    fn takes(&self, day: i64) -> Option<usize> {
        let key = limit(day).unwrap_or_default();
        self.partitions.iter().position(|(_, (start, end))| *start <= key && end.as_ref().is_none_or(|end| key < *end))
    }

    /// The keys of a partition lose their rows.
    fn clear(&mut self, at: usize) {
        let keys: Vec<(i64, i64)> = self.rows.keys().filter(|(day, _)| self.takes(*day) == Some(at)).copied().collect();
        keys.iter().for_each(|key| _ = self.rows.remove(key));
    }
}

fn attributes() -> TableAttributes {
    let columns = vec![
        Column::new("day", DataType::BigInt, false),
        Column::new("id", DataType::BigInt, false),
        Column::new("text", DataType::Varchar(None), true),
    ];
    let schema = Schema::new(columns).unwrap();
    TableAttributes { primary_key: vec![0, 1], ..TableAttributes::new(TABLE, schema).with_page_bytes(2048) }
}

fn limit(day: i64) -> Option<Vec<u8>> {
    limit_key(&attributes(), &[0], &[Some(ValueRef::Int(day))]).unwrap()
}

fn random_spec(random: &mut Random, name: String, day: Option<i64>) -> PartitionSpec {
    let method = random.one_in(2).then(|| random.pick(&Method::ALL));
    let page_bytes = random.one_in(3).then(|| random.pick(&[2048, 4096]));
    PartitionSpec { name, limit: day.and_then(limit), method, page_bytes, ..PartitionSpec::default() }
}

fn create(storage: &FaultStorage, random: &mut Random) -> State {
    let database = open(storage, OpenMode::Create).unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let specs: Vec<PartitionSpec> = [10, 20, 30].into_iter().map(|day| random_spec(random, format!("d{day}"), Some(day))).collect();
    t.create_partitioned_table(&attributes(), &[0], &specs).unwrap();
    let format = random.pick(&IndexFormat::ALL);
    let key = vec![(0, Direction::Ascending), (1, Direction::Ascending)];
    t.create_partitioned_index(TABLE, &IndexAttributes::new("pk", key, true).with_format(format, index_page_bytes(format))).unwrap();
    if random.one_in(2) {
        let unique = IndexAttributes::new(UNIQUE, vec![(1, Direction::Ascending)], true);
        t.create_partitioned_index(TABLE, &unique.with_format(format, index_page_bytes(format))).unwrap();
    }
    t.commit().unwrap();
    let state = contents(&database).unwrap();
    database.close().unwrap();
    state
}

/// Everything there is; all ways of reading must agree.
fn contents(database: &Database) -> Result<State, String> {
    let words = |e: Error| e.to_string();
    let whole = database.partitioned_table(TABLE).map_err(words)?;
    let mut state = State { indexes: database.partitioned_indexes_of(&whole).into_iter().collect(), ..State::default() };
    let mut t = database.begin(TransactionOptions::default());
    state.rows = rows(&mut t, &whole)?;
    state.other = other_rows(&mut t)?;
    for partition in whole.partitions() {
        let table = t.table_of_partition(partition).map_err(words)?;
        let columns: Vec<Column> = visible(&table).map(|(_, column)| column.clone()).collect();
        if !state.partitions.is_empty() && columns != state.columns {
            return Err(format!("partition {} has columns {columns:?}, others {:?}", partition.name(), state.columns));
        }
        state.columns = columns;
        state.partitions.push((partition.name().to_owned(), (partition.keys().start.clone(), partition.keys().end.clone())));
    }
    let ids: BTreeSet<i64> = state.rows.keys().map(|key| key.1).collect();
    if state.indexes.contains(UNIQUE) && ids.len() < state.rows.len() {
        return Err(format!("a number comes twice: {:?}", state.rows.keys()));
    }
    Ok(state)
}

/// Columns that are not dropped, with their places.
fn visible(table: &Table) -> impl Iterator<Item = (usize, &Column)> {
    table.attributes().visible_columns().into_iter().map(|at| (at, &table.attributes().schema.columns()[at]))
}

/// What all rows have in a column that came.
fn value_of(column: &Column) -> i64 {
    column.name[1..].parse().unwrap()
}

/// What a transaction sees: scanned, and merged by each index.
fn rows(t: &mut Transaction<'_>, whole: &PartitionedTable) -> Result<BTreeMap<(i64, i64), String>, String> {
    let words = |e: Error| e.to_string();
    let mut tables = Vec::new();
    for partition in whole.partitions() {
        tables.push((partition, t.table_of_partition(partition).map_err(words)?));
    }
    let view = t.read_view().map_err(words)?;
    let mut found = BTreeMap::new();
    for (partition, table) in &tables {
        for row in view.scan(table, &ScanRequest::default()).map_err(words)?.into_rows() {
            let values = row.map_err(words)?.1;
            for (at, column) in visible(table).skip(COLUMNS) {
                if values[at] != Value::Int(value_of(column)) {
                    return Err(format!("{} of {:?} is {:?}", column.name, &values[..2], values[at]));
                }
            }
            let mut key = Vec::new();
            whole.key(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut key).map_err(words)?;
            if whole.find(&key).map(|at| whole.partitions()[at].name()) != Some(partition.name()) {
                return Err(format!("{values:?} in partition {}", partition.name()));
            }
            if found.insert(key_of(&values), text_of(&values)).is_some() {
                return Err(format!("{values:?} twice"));
            }
        }
    }
    for index in t.partitioned_indexes_of(whole) {
        let mut parts = Vec::new();
        for (partition, table) in &tables {
            let Some(own) = t.index_of_partition(partition, table, &index).map_err(words)? else { break };
            parts.push(Part { table: Arc::clone(table), by: Some((own, vec![KeyRange { start: Vec::new(), end: None }])) });
        }
        // An older snapshot does not have an index that has come since, in any partition.
        if parts.is_empty() {
            continue;
        }
        if parts.len() < tables.len() {
            return Err(format!("{index} is not there for {}", tables[parts.len()].0.name()));
        }
        let merged = view.parts(parts, PartOrder::Keys(Way::Forward), &ScanRequest::default()).map_err(words)?;
        let merged: Vec<Vec<Value>> = merged.into_rows().collect::<Result<_, Error>>().map_err(words)?;
        let by_index: BTreeMap<(i64, i64), String> = merged.iter().map(|values| (key_of(values), text_of(values))).collect();
        let ordered = |values: &Vec<Value>| if index == "pk" { key_of(values) } else { (key_of(values).1, 0) };
        if by_index != found || merged.len() != found.len() || !merged.is_sorted_by_key(ordered) {
            return Err(format!("{} rows by {index}, {} by scan, or in no order", merged.len(), found.len()));
        }
    }
    Ok(found)
}

/// What a transaction sees of the other table, scanned and by its key.
fn other_rows(t: &mut Transaction<'_>) -> Result<Option<Rows>, String> {
    let words = |e: Error| e.to_string();
    let table = match t.table(OTHER) {
        // Of an older snapshot it may be that it has come since.
        Err(Error::Unknown { .. } | Error::Stale { .. }) => return Ok(None),
        table => table.map_err(words)?,
    };
    let view = t.read_view().map_err(words)?;
    let scanned = view.scan(&table, &ScanRequest::default()).map_err(words)?.into_rows();
    let scanned: Vec<Vec<Value>> = scanned.map(|row| row.map(|row| row.1)).collect::<Result<_, Error>>().map_err(words)?;
    let index = t.index("other_pk").map_err(words)?;
    let all = KeyRange { start: Vec::new(), end: None };
    let by_key = view.range(&table, &index, all, Way::Forward, &ScanRequest::default()).map_err(words)?.into_rows();
    let by_key: Vec<Vec<Value>> = by_key.map(|row| row.map(|row| row.1)).collect::<Result<_, Error>>().map_err(words)?;
    let found = |rows: &[Vec<Value>]| rows.iter().map(|values| (key_of(values), text_of(values))).collect::<BTreeMap<_, _>>();
    match found(&scanned) == found(&by_key) && scanned.len() == by_key.len() && by_key.is_sorted_by_key(|values| key_of(values)) {
        true => Ok(Some(found(&scanned))),
        false => Err(format!("{OTHER}: {} rows by its key, {} by scan, or in no order", by_key.len(), scanned.len())),
    }
}

fn key_of(values: &[Value]) -> (i64, i64) {
    match values[..2] {
        [Value::Int(day), Value::Int(id)] => (day, id),
        _ => panic!("{values:?}"),
    }
}

fn text_of(values: &[Value]) -> String {
    if let Value::Text(text) = &values[2] { text.clone() } else { String::new() }
}

/// What a history shares with the observer of its disk.
#[derive(Default)]
struct Watched {
    /// What may be found after a crash now.
    allowed: Vec<State>,
    fault: Option<String>,
    images: u64,
    met: BTreeMap<&'static str, u64>,
}

fn verify(image: &FaultStorage, allowed: &[State]) -> Result<(), String> {
    guarded(|| {
        image.set_capacity(None);
        let database = open(image, OpenMode::Write).map_err(|e| format!("opening: {e}"))?;
        let found = contents(&database)?;
        if !allowed.contains(&found) {
            return Err(format!("found {found:?}\nallowed {allowed:?}"));
        }
        database.close().map_err(|e| format!("closing: {e}"))?;
        check(image)
    })
}

/// Transactions that change rows while partitions are written anew: between its phases, and open across them.
struct Beside<'h, 'd>(Mutex<BesideInner<'h, 'd>>);

struct BesideInner<'h, 'd> {
    history: &'h mut History,
    database: &'d Database,
    open: Option<(Transaction<'d>, State)>,
    /// Partitions as they will be.
    partitions: Vec<(String, KeyRange2)>,
    /// What has gone wrong, if it should not; else the database may have to be opened again.
    ended: Option<Result<bool, String>>,
    /// Rows are not changed any more by anybody: the next phase is the last one.
    is_over: bool,
}

impl<'d> BesideInner<'_, 'd> {
    /// `last`: nothing stays open.
    fn moment(&mut self, last: bool) {
        if self.is_over || self.ended.is_some() {
            return;
        }
        if let Err(ended) = self.change_rows(last) {
            self.ended = Some(ended);
        }
        self.is_over = last;
    }

    fn change_rows(&mut self, last: bool) -> Result<(), Result<bool, String>> {
        let history = &mut *self.history;
        let (mut t, mut state) = self.open.take().unwrap_or_else(|| {
            let isolation = history.random.pick(&[Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]);
            (self.database.begin(TransactionOptions { isolation, ..TransactionOptions::default() }), history.committed.clone())
        });
        for _ in 0..history.random.below(8) {
            let (savepoint, mut then) = (t.savepoint(), state.clone());
            match history.write(&mut t, &mut then) {
                Ok(()) if history.random.one_in(8) => match t.roll_back_to(savepoint) {
                    Ok(()) => history.met("beside: back to a savepoint"),
                    Err(error) => return Err(history.gave_up(t, &error)),
                },
                Ok(()) => state = then,
                Err(error) if history.full && error.is_no_room() => {}
                Err(error) => return Err(history.gave_up(t, &error)),
            }
        }
        if !last && history.random.one_in(2) {
            history.met("beside: a transaction stays open");
            self.open = Some((t, state));
            return Ok(());
        }
        if history.random.one_in(4) {
            history.met("beside: a transaction is taken back");
            t.rollback().map_err(|error| history.trouble(&error))?;
        } else {
            history.may_become(&state);
            if let Err(error) = t.commit() {
                return Err(history.trouble(&error).map(|_| false));
            }
            history.met("beside: a transaction is committed");
            history.settled(state);
        }
        if last {
            // Whatever comes is the commit of the utility.
            let becomes = State { partitions: self.partitions.clone(), ..history.committed.clone() };
            history.may_become(&becomes);
        }
        Ok(())
    }
}

impl Progress for Beside<'_, '_> {
    fn start(&self, phase: &str, _total: Option<u64>, _unit: Unit) {
        self.0.lock().moment(phase.starts_with("what changed"));
    }

    fn advance(&self, _n: u64) {}

    fn finish(&self) {
        self.0.lock().moment(false);
    }

    fn interrupted(&self) -> bool {
        self.0.lock().ended.is_some()
    }
}

struct History {
    random: Random,
    storage: FaultStorage,
    watched: Arc<Mutex<Watched>>,
    /// What was committed.
    committed: State,
    names: u64,
    /// Numbers of rows are below this.
    ids: u64,
    full: bool,
    /// Columns have changed, or were about to.
    has_altered: bool,
}

impl History {
    fn met(&self, what: &'static str) {
        *self.watched.lock().met.entry(what).or_default() += 1;
    }

    /// The same, and of an altered table by itself.
    fn met_of(&self, state: &State, what: &'static str, of_altered: &'static str) {
        self.met(what);
        if state.indexes.contains(UNIQUE) {
            match what {
                "a partition is divided" => self.met("numbers are unique: a partition is divided"),
                "a partition is written anew" => self.met("numbers are unique: a partition is written anew"),
                "two partitions become one" => self.met("numbers are unique: two partitions become one"),
                _ => {}
            }
        }
        if state.columns != attributes().schema.columns() {
            self.met(of_altered);
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("p{}", self.names)
    }

    /// From here on this may be found too, until it is settled which.
    fn may_become(&self, state: &State) {
        self.watched.lock().allowed = vec![self.committed.clone(), state.clone()];
    }

    fn settled(&mut self, state: State) {
        self.watched.lock().allowed = vec![state.clone()];
        self.committed = state;
    }

    /// One transaction. False: the database must be opened again.
    fn transaction(&mut self, database: &Database) -> Result<bool, String> {
        let isolation = self.random.pick(&[Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]);
        let mut t = database.begin(TransactionOptions { isolation, ..TransactionOptions::default() });
        let mut state = self.committed.clone();
        let mut savepoints = Vec::new();
        for _ in 0..self.random.below(14) {
            match self.random.below(12) {
                0 => savepoints.push((t.savepoint(), state.clone())),
                1 => {
                    if let Some((savepoint, then)) = savepoints.pop() {
                        match t.roll_back_to(savepoint) {
                            Ok(()) => state = then,
                            Err(error) => return self.gave_up(t, &error),
                        }
                        self.met("back to a savepoint");
                    }
                }
                2 => {
                    let mut then = state.clone();
                    match self.define(&mut t, &mut then) {
                        Ok(()) => state = then,
                        Err(error) if self.full && !matches!(error, Error::Poisoned(_)) => self.met("a definition without room"),
                        Err(error) => return self.gave_up(t, &error),
                    }
                }
                _ => {
                    let mut then = state.clone();
                    match self.write(&mut t, &mut then) {
                        Ok(()) => state = then,
                        Err(error) if self.full && error.is_no_room() => self.met("a statement without room"),
                        Err(error) => return self.gave_up(t, &error),
                    }
                }
            }
        }
        if database.key_filter_bytes() > 0 {
            self.met("numbers are unique: rows change beside filters of keys");
        }
        if self.random.one_in(3) {
            let seen = t.partitioned_table(TABLE).map_err(|e| e.to_string()).and_then(|whole| rows(&mut t, &whole));
            match seen {
                Ok(seen) if seen == state.rows => {}
                Ok(seen) => return Err(format!("the transaction sees {seen:?}, not {:?}", state.rows)),
                Err(error) if self.full => return Ok(!error.contains("failed earlier")),
                Err(error) => return Err(error),
            }
        }
        if self.random.one_in(5) {
            return match t.rollback() {
                Ok(()) => Ok(true),
                Err(error) => self.trouble(&error),
            };
        }
        self.may_become(&state);
        match t.commit() {
            Ok(()) => {
                self.settled(state);
                Ok(true)
            }
            // Opening it again shows whether it happened.
            Err(error) => self.trouble(&error).map(|_| false),
        }
    }

    fn gave_up(&mut self, t: Transaction<'_>, error: &Error) -> Result<bool, String> {
        let goes_on = self.trouble(error)?;
        Ok(t.rollback().is_ok() && goes_on)
    }

    /// An error: on a full disk it was to be expected. True: the database can go on.
    fn trouble(&self, error: &Error) -> Result<bool, String> {
        if !self.full {
            return Err(format!("{error}, though there is room"));
        }
        Ok(!matches!(error, Error::Poisoned(_)))
    }

    /// A row comes, changes, moves or goes; the outcome is that of the state.
    fn write(&mut self, t: &mut Transaction<'_>, state: &mut State) -> Result<(), Error> {
        let (mut day, id) = (self.random.below(DAYS) as i64, self.random.below(self.ids) as i64);
        // Mostly one that some partition takes.
        (0..3).for_each(|_| {
            if state.takes(day).is_none() {
                day = self.random.below(DAYS) as i64
            }
        });
        let length = self.random.pick(&[3, 20, 60, 300, 7000]);
        let text: String = (0..length).map(|_| char::from(b'a' + self.random.below(26) as u8)).collect();
        let whole = t.partitioned_table(TABLE)?;
        let place = |day: i64| -> Result<usize, Error> {
            let mut key = Vec::new();
            whole.key(&[ValueRef::Int(day), ValueRef::Int(0), ValueRef::Null], &mut key)?;
            whole.find_for(&key)
        };
        let at = match (place(day), state.takes(day)) {
            (Ok(at), Some(place)) if at == place => at,
            (Err(Error::OutOfRange { .. }), None) => {
                self.met("a row that belongs in no partition");
                return Ok(());
            }
            (found, wanted) => panic!("day {day} goes to {found:?}, not {wanted:?}"),
        };
        let table = t.table_of_partition(&whole.partitions()[at])?;
        let index = t.index_of_partition(&whole.partitions()[at], &table, "pk")?.expect("the index of the key");
        let key = [ValueRef::Int(day), ValueRef::Int(id)];
        let found = t.get(&table, &index, &key, |rid, _| rid)?;
        assert_eq!(found.is_some(), state.rows.contains_key(&(day, id)), "row {day} {id}");
        let row = |table: &Table, day: i64, text: &str| {
            let mut values = vec![Value::Null; table.attributes().schema.len()];
            (values[0], values[1], values[2]) = (Value::Int(day), Value::Int(id), Value::Text(text.into()));
            visible(table).skip(COLUMNS).for_each(|(at, column)| values[at] = Value::Int(value_of(column)));
            values
        };
        let values = row(&table, day, &text);
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        match found {
            None => {
                let refused = state.refuses(id, None);
                let inserted = match self.random.below(4) {
                    0 => t.insert_rows(&table, |rows| rows.push(&values)).map(drop),
                    1 => match t.insert_unless_taken(&table, &values)? {
                        Insertion::Inserted(_) => Ok(()),
                        Insertion::Taken { rid, elsewhere, index } => {
                            let of = elsewhere.as_deref().unwrap_or(&table);
                            let taker = t.row(of, rid)?.map(|values| key_of(&values));
                            assert!(taker.is_some_and(|(_, other)| other == id), "{taker:?} has the number {id}");
                            Err(Error::DuplicateKey { index: index.name().into(), key: String::new() })
                        }
                    },
                    _ => t.insert(&table, &values).map(drop),
                };
                match inserted {
                    Err(Error::DuplicateKey { index, .. }) if refused => {
                        assert!(index.contains(UNIQUE), "{index}");
                        self.met("a number that another row has is refused");
                        return Ok(());
                    }
                    inserted => inserted?,
                }
                assert!(!refused, "number {id} twice");
                state.rows.insert((day, id), text);
            }
            Some(rid) => match self.random.below(5) {
                4 => {
                    let to = self.random.below(self.ids) as i64;
                    if state.rows.contains_key(&(day, to)) {
                        return Ok(());
                    }
                    let refused = state.refuses(to, Some((day, id)));
                    match t.update(&table, rid, &[(1, ValueRef::Int(to))]) {
                        Err(Error::DuplicateKey { .. }) if refused => self.met("a row does not get the number of another one"),
                        changed => {
                            assert!(changed? && !refused, "number {to} twice");
                            let text = state.rows.remove(&(day, id)).unwrap_or_default();
                            state.rows.insert((day, to), text);
                        }
                    }
                }
                0 => {
                    assert!(t.delete(&table, rid)?);
                    state.rows.remove(&(day, id));
                }
                1 => {
                    // To another day: the row moves if that is in another partition.
                    let to = self.random.below(DAYS) as i64;
                    let Ok(other) = place(to) else { return Ok(()) };
                    if state.rows.contains_key(&(to, id)) {
                        return Ok(());
                    }
                    let before = state.rows.remove(&(day, id)).unwrap_or_default();
                    if other == at {
                        assert!(t.update(&table, rid, &[(0, ValueRef::Int(to))])?);
                    } else {
                        let refused = t.update(&table, rid, &[(0, ValueRef::Int(to))]);
                        if !self.full {
                            assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{refused:?}");
                        }
                        let savepoint = t.savepoint();
                        let target = t.table_of_partition(&whole.partitions()[other])?;
                        let moved = row(&target, to, &before);
                        let moved: Vec<ValueRef<'_>> = moved.iter().map(Value::as_ref).collect();
                        let done = t.delete(&table, rid).and_then(|_| t.insert(&target, &moved));
                        if let Err(error) = done {
                            t.roll_back_to(savepoint)?;
                            return Err(error);
                        }
                        self.met("a row that moves to another partition");
                    }
                    state.rows.insert((to, id), before);
                }
                _ => {
                    assert!(t.update(&table, rid, &[(2, ValueRef::Text(&text))])?);
                    state.rows.insert((day, id), text);
                }
            },
        }
        Ok(())
    }

    /// Partitions or an index come or go in a transaction.
    fn define(&mut self, t: &mut Transaction<'_>, state: &mut State) -> Result<(), Error> {
        let last = state.partitions.last().and_then(|(_, (_, end))| end.clone());
        let ends = (0..=DAYS as i64 + 20).find(|day| limit(*day) == last).unwrap_or(0);
        let (name, to) = (self.name(), ends + 1 + self.random.below(15) as i64);
        if self.random.one_in(4) {
            return self.alter(t, state, name);
        }
        match self.random.below(10) {
            6.. => return self.exchange(t, state),
            0 | 1 if last.is_some() && to < DAYS as i64 + 20 => {
                let spec = random_spec(&mut self.random, name.clone(), Some(to));
                if self.random.one_in(2) {
                    self.met_of(state, "a partition is added", "altered: a partition is added");
                    t.add_partition(TABLE, &spec)?;
                } else {
                    self.met_of(state, "a partition goes, and another one comes", "altered: a partition goes, and another one comes");
                    t.rotate_partition(TABLE, &spec)?;
                    state.clear(0);
                    state.partitions.remove(0);
                }
                state.partitions.push((name, (last.unwrap_or_default(), spec.limit)));
            }
            2 if state.partitions.len() > 2 => {
                self.met("a partition is dropped");
                let at = self.random.below(state.partitions.len() as u64) as usize;
                t.drop_partition(TABLE, &state.partitions[at].0)?;
                state.clear(at);
                state.partitions.remove(at);
            }
            3 => {
                self.met("a partition is emptied");
                let at = self.random.below(state.partitions.len() as u64) as usize;
                t.truncate_table(&format!("{TABLE}/{}", state.partitions[at].0))?;
                state.clear(at);
            }
            5 => return self.define_unique(t, state),
            _ if state.indexes.contains("by_id") => {
                self.met("an index of all partitions is dropped");
                t.drop_partitioned_index("by_id")?;
                state.indexes.remove("by_id");
            }
            _ => {
                self.met("an index of all partitions comes");
                let format = self.random.pick(&IndexFormat::ALL);
                let attributes = IndexAttributes::new("by_id", vec![(1, Direction::Ascending)], false);
                let attributes = attributes.with_format(format, index_page_bytes(format));
                t.create_partitioned_index(TABLE, &attributes)?;
                state.indexes.insert("by_id".into());
            }
        }
        Ok(())
    }

    /// Numbers are to be unique over all partitions, or need not be any more.
    fn define_unique(&mut self, t: &mut Transaction<'_>, state: &mut State) -> Result<(), Error> {
        if state.indexes.remove(UNIQUE) {
            self.met("a unique index over all partitions is dropped");
            return t.drop_partitioned_index(UNIQUE);
        }
        let format = self.random.pick(&IndexFormat::ALL);
        let attributes = IndexAttributes::new(UNIQUE, vec![(1, Direction::Ascending)], true);
        let made = t.create_partitioned_index(TABLE, &attributes.with_format(format, index_page_bytes(format)));
        let ids: BTreeSet<i64> = state.rows.keys().map(|key| key.1).collect();
        match made {
            Err(Error::DuplicateKey { .. }) if ids.len() < state.rows.len() => self.met("a unique index over all partitions is refused"),
            made => {
                made?;
                assert_eq!(ids.len(), state.rows.len(), "{:?}", state.rows.keys());
                self.met("a unique index over all partitions comes");
                state.indexes.insert(UNIQUE.into());
            }
        }
        Ok(())
    }

    /// The columns of all partitions change: one comes, goes, gets another type, or may be NULL or not.
    fn alter(&mut self, t: &mut Transaction<'_>, state: &mut State, name: String) -> Result<(), Error> {
        self.has_altered = true;
        let picked = COLUMNS + self.random.below(4) as usize;
        let nullable = state.columns[2].nullable;
        let change = match (self.random.below(4), state.columns.get(picked).cloned()) {
            (0, Some(column)) => {
                self.met("a column of all partitions goes");
                state.columns.remove(picked);
                TableChange::DropColumn(column.name)
            }
            (1, Some(column)) => {
                self.met("a column of all partitions gets another type");
                state.columns[picked].data_type = DataType::BigInt;
                TableChange::SetType { column: column.name, data_type: DataType::BigInt }
            }
            (2, _) => {
                self.met("a column of all partitions may be NULL or not");
                state.columns[2].nullable = !nullable;
                let text = state.columns[2].name.clone();
                if nullable { TableChange::SetNotNull(text) } else { TableChange::DropNotNull(text) }
            }
            _ => {
                self.met("a column of all partitions comes");
                let column = Column::new(&name, DataType::Integer, self.random.one_in(2));
                let value = Value::Int(value_of(&column));
                state.columns.push(column.clone());
                TableChange::AddColumn { column, value }
            }
        };
        t.change_partitioned_table(TABLE, &[change])
    }

    /// A table comes that can change places with a partition, or does so, or is refused.
    fn exchange(&mut self, t: &mut Transaction<'_>, state: &mut State) -> Result<(), Error> {
        let savepoint = t.savepoint();
        let done = self.exchange_or_fail(t, state);
        if done.is_err() {
            t.roll_back_to(savepoint)?;
        }
        done
    }

    fn exchange_or_fail(&mut self, t: &mut Transaction<'_>, state: &mut State) -> Result<(), Error> {
        let key = || vec![(0, Direction::Ascending), (1, Direction::Ascending)];
        let of_id = |name: &str, unique| IndexAttributes::new(name, vec![(1, Direction::Ascending)], unique);
        let at = self.random.below(state.partitions.len() as u64) as usize;
        let Some(other) = state.other.clone() else {
            let method = self.random.pick(&Method::ALL);
            let page_bytes = self.random.pick(&[2048, 4096, 8192]);
            let attributes = TableAttributes { name: OTHER.into(), method, ..attributes().with_page_bytes(page_bytes) };
            let table = t.create_table(attributes)?;
            let format = self.random.pick(&IndexFormat::ALL);
            // Without an index in the order of the ranges, all rows are looked at.
            t.create_index(&table, IndexAttributes::new("other_pk", key(), true).with_format(format, index_page_bytes(format)))?;
            let mut rows = BTreeMap::new();
            let days: Vec<i64> = (0..DAYS as i64).filter(|day| state.takes(*day) == Some(at)).collect();
            let first = self.random.below(self.ids) as i64;
            for id in first..first + self.random.below(5) as i64 {
                if days.is_empty() {
                    break;
                }
                let (day, length) = (self.random.pick(&days), self.random.pick(&[3, 60, 300, 7000]));
                let text: String = (0..length).map(|_| char::from(b'a' + self.random.below(26) as u8)).collect();
                t.insert(&table, &[ValueRef::Int(day), ValueRef::Int(id), ValueRef::Text(&text)])?;
                rows.insert((day, id), text);
            }
            self.met("a table comes to change places");
            state.other = Some(rows);
            return Ok(());
        };
        let at = match other.keys().next().and_then(|(day, _)| state.takes(*day)) {
            Some(fits) if !self.random.one_in(4) => fits,
            _ => at,
        };
        let table = t.table(OTHER)?;
        for (of_table, own, unique) in [("by_id", "other_by_id", false), (UNIQUE, "other_unique_id", true)] {
            let is_there = t.indexes(&table)?.iter().any(|index| index.name() == own);
            match (state.indexes.contains(of_table), is_there) {
                (true, false) => match t.create_index(&table, of_id(own, unique)) {
                    Err(Error::DuplicateKey { .. }) if unique => {
                        t.drop_table(OTHER)?;
                        state.other = None;
                        return Ok(());
                    }
                    made => drop(made?),
                },
                (false, true) => t.drop_index(own)?,
                _ => {}
            }
        }
        let of_others: BTreeSet<i64> = state.rows.keys().filter(|(day, _)| state.takes(*day) != Some(at)).map(|key| key.1).collect();
        let is_taken = state.indexes.contains(UNIQUE) && other.keys().any(|(_, id)| of_others.contains(id));
        let fits = other.keys().all(|(day, _)| state.takes(*day) == Some(at));
        match t.exchange_partition(TABLE, &state.partitions[at].0, OTHER) {
            Ok(()) => {
                assert!(fits && !is_taken, "{other:?} in the place of {:?}", state.partitions[at]);
                let of_partition = |(day, _): &(i64, i64)| state.takes(*day) == Some(at);
                let out: BTreeMap<(i64, i64), String> =
                    state.rows.iter().filter(|(key, _)| of_partition(key)).map(|(key, text)| (*key, text.clone())).collect();
                if state.indexes.contains(UNIQUE) {
                    self.met("a partition is exchanged where numbers are unique");
                }
                self.met(if out.is_empty() && other.is_empty() { "an exchange of nothing" } else { "a partition is exchanged" });
                if out.values().chain(other.values()).any(|text| text.len() > 5000) {
                    self.met("a partition with large values is exchanged");
                }
                out.keys().for_each(|key| _ = state.rows.remove(key));
                state.rows.extend(other);
                state.other = Some(out);
                Ok(())
            }
            // What the table lacks, or has had, the partitions have.
            Err(Error::Parameter(why)) if self.has_altered && why.contains(": column ") => {
                self.met("an exchange of other columns is refused");
                t.drop_table(OTHER)?;
                state.other = None;
                Ok(())
            }
            Err(Error::DuplicateKey { .. }) if is_taken => {
                self.met("an exchange with a number of another partition is refused");
                t.drop_table(OTHER)?;
                state.other = None;
                Ok(())
            }
            Err(Error::OutOfRange { .. }) if !fits => {
                self.met("an exchange is refused");
                t.drop_table(OTHER)?;
                state.other = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// What utilities do: rows stay, or all come anew.
    fn utility(&mut self, database: &Database) -> Result<bool, String> {
        let mut state = self.committed.clone();
        let at = self.random.below(state.partitions.len() as u64) as usize;
        let (name, (start, end)) = state.partitions[at].clone();
        // Others write meanwhile.
        let (is_beside, mut ended) = (self.random.one_in(2), None);
        let mut beside = |history: &mut History, state: &mut State, run: &dyn Fn(&dyn Progress) -> pagefold_utility::Result<()>| {
            if !is_beside {
                history.may_become(state);
                return run(&Silent);
            }
            let partitions = state.partitions.clone();
            let inner = BesideInner { history, database, open: None, partitions, ended: None, is_over: false };
            let progress = Beside(Mutex::new(inner));
            let done = run(&progress);
            let inner = progress.0.into_inner();
            drop(inner.open);
            ended = inner.ended;
            state.rows.clone_from(&inner.history.committed.rows);
            done
        };
        let done = match self.random.below(4) {
            0 => {
                self.met_of(&state, "a partition is divided", "altered: a partition is divided");
                let within = |day: &i64| limit(*day).is_some_and(|key| key > start && end.as_ref().is_none_or(|end| key < *end));
                let days: Vec<i64> = (1..DAYS as i64).filter(within).collect();
                if days.is_empty() {
                    return Ok(true);
                }
                let (day, new) = (self.random.pick(&days), self.name());
                state.partitions[at].1.0 = limit(day).unwrap_or_default();
                state.partitions.insert(at, (new.clone(), (start, limit(day))));
                let below = PartitionText { name: Some(new), limit: vec![Some(day.to_string())], ..PartitionText::default() };
                beside(self, &mut state, &|progress| split_partition(database, TABLE, &name, &below, None, progress).map(drop))
            }
            1 => {
                let Some((next, (from, to))) = state.partitions.get(at + 1).cloned() else { return Ok(true) };
                if Some(from) != end {
                    return Ok(true);
                }
                self.met_of(&state, "two partitions become one", "altered: two partitions become one");
                let into = self.name();
                state.partitions.remove(at + 1);
                state.partitions[at] = (into.clone(), (start, to));
                let both = [name, next];
                beside(self, &mut state, &|progress| merge_partitions(database, TABLE, &both, &into, progress).map(drop))
            }
            2 => {
                self.met_of(&state, "a partition is written anew", "altered: a partition is written anew");
                let method = Some(Setting::Given(self.random.pick(&Method::ALL)));
                let options = ReorgOptions { method, ..ReorgOptions::default() };
                let name = format!("{TABLE}/{name}");
                beside(self, &mut state, &|progress| reorg(database, &name, &options, progress).map(drop))
            }
            // Without rows a file does not say which types its columns have.
            _ if state.rows.is_empty() => return Ok(true),
            // What comes has the columns of the file.
            _ if state.columns != attributes().schema.columns() => return Ok(true),
            _ => {
                self.met("all partitions are loaded anew");
                if state.indexes.contains(UNIQUE) {
                    self.met("numbers are unique: all partitions are loaded anew");
                }
                let file = PathBuf::from("rows.csv");
                let mut text = String::from("day,id,text\n");
                state.rows.iter().for_each(|((day, id), row)| text += &format!("{day},{id},{row}\n"));
                // With the rows that there are, and gaps closed.
                let storage = database.outside();
                let written = storage
                    .open(&file, &pagefold_io::OpenOptions::create())
                    .and_then(|file| file.set_len(0).and_then(|()| file.write_at(text.as_bytes(), 0)));
                if written.is_err() {
                    return if self.full { Ok(true) } else { Err(format!("{written:?}")) };
                }
                let mut before = Vec::new();
                for (_, (start, end)) in &mut state.partitions {
                    *start = std::mem::replace(&mut before, end.clone().unwrap_or_default());
                }
                self.may_become(&state);
                let options = LoadOptions { mode: LoadMode::Replace, page_bytes: 2048, encode_threads: 1, ..LoadOptions::default() };
                load(database, TABLE, std::slice::from_ref(&file), &options, &Silent).map(drop)
            }
        };
        match ended {
            // Who changed rows met a disk that was full, or something that should not be.
            Some(Ok(true)) | None => {}
            Some(ended) => return ended,
        }
        match done {
            Ok(()) => {
                self.settled(state);
                Ok(true)
            }
            Err(pagefold_utility::Error::Interrupted) if ended.is_some() => {
                let committed = self.committed.clone();
                self.settled(committed);
                Ok(true)
            }
            Err(error) if self.full => {
                self.met("a utility without room");
                // Nothing has happened, or the database must be opened again.
                let goes_on = !error.to_string().contains("failed earlier");
                if goes_on {
                    let committed = self.committed.clone();
                    self.settled(committed);
                }
                Ok(goes_on && contents(database).is_ok_and(|found| found == self.committed))
            }
            Err(error) => Err(format!("{error}, though there is room")),
        }
    }

    /// All of it, through as many processes as it takes.
    fn play(&mut self, steps: usize) -> Result<(), String> {
        let mut step = 0;
        while step < steps {
            self.storage.set_capacity(None);
            self.full = false;
            let database = open(&self.storage, OpenMode::Write).map_err(|e| format!("step {step}: opening: {e}"))?;
            let found = contents(&database).map_err(|e| format!("step {step}: {e}"))?;
            if !self.watched.lock().allowed.contains(&found) {
                return Err(format!("step {step}: found {found:?}"));
            }
            self.settled(found);
            let mut old: Option<(Transaction<'_>, State)> = None;
            while step < steps && self.watched.lock().fault.is_none() {
                step += 1;
                let at = |reason: String| format!("step {step}: {reason}");
                let goes_on = match self.random.below(20) {
                    0 => {
                        self.full = !self.full;
                        let room = self.random.pick(&[0, 8 << 10, 64 << 10]);
                        self.storage.set_capacity(self.full.then(|| self.storage.taken_bytes() + room));
                        true
                    }
                    1 => database.checkpoint().is_ok() || self.full,
                    2 => false,
                    3 if old.is_none() => {
                        let mut t =
                            database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
                        // The snapshot is that of the first statement.
                        let whole = t.partitioned_table(TABLE).map_err(|e| at(e.to_string()))?;
                        rows(&mut t, &whole).map_err(at)?;
                        old = Some((t, self.committed.clone()));
                        true
                    }
                    4 | 5 => {
                        if let Some((mut t, state)) = old.take() {
                            let whole = t.partitioned_table(TABLE).map_err(|e| at(e.to_string()))?;
                            let seen = rows(&mut t, &whole);
                            if seen.as_ref() != Ok(&state.rows) && !self.full {
                                return Err(at(format!("an older reader sees {seen:?}, not {:?}", state.rows)));
                            }
                            match other_rows(&mut t) {
                                Ok(seen) if seen == state.other => {}
                                Err(_) if self.full => {}
                                seen => return Err(at(format!("an older reader sees {seen:?} of the other table, not {:?}", state.other))),
                            }
                            self.met("an older reader looks again");
                        }
                        true
                    }
                    6..9 => self.utility(&database).map_err(at)?,
                    _ => self.transaction(&database).map_err(at)?,
                };
                if !goes_on {
                    break;
                }
            }
            drop(old);
            let committed = self.committed.clone();
            self.storage.set_capacity(None);
            drop(database);
            if self.watched.lock().allowed.len() == 1 {
                self.settled(committed);
            }
            if self.watched.lock().fault.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn run(seed: u64, every: u64, steps: usize) -> (Result<(), String>, BTreeMap<&'static str, u64>, u64) {
    let storage = FaultStorage::new(FaultOptions { seed, log_calls_max: 0, ..FaultOptions::default() });
    let mut random = Random(seed);
    let committed = create(&storage, &mut random);
    let watched = Arc::new(Mutex::new(Watched { allowed: vec![committed.clone()], ..Watched::default() }));
    let observer = Arc::clone(&watched);
    storage.set_observer(move |storage, call| {
        if !(storage.calls() + seed).is_multiple_of(every) || observer.lock().fault.is_some() {
            return;
        }
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(storage.calls() ^ seed)] {
            let allowed = observer.lock().allowed.clone();
            observer.lock().images += 1;
            if let Err(what) = verify(&storage.crash_image(policy), &allowed) {
                let fault = format!("a crash before call {} ({call:?}), {policy:?}: {what}", storage.calls());
                observer.lock().fault.get_or_insert(fault);
                return;
            }
        }
    });
    let mut history = History {
        ids: [6, 40][seed as usize % 2],
        random,
        storage: storage.clone(),
        watched: Arc::clone(&watched),
        committed,
        names: 0,
        full: false,
        has_altered: false,
    };
    let played = guarded(|| history.play(steps));
    storage.clear_observer();
    let watched = watched.lock();
    let outcome = watched.fault.clone().map_or(played, Err);
    (outcome, watched.met.clone(), watched.images)
}

/// As many histories as `PAGEFOLD_PARTITION_HISTORIES` says, from the seed `PAGEFOLD_SIMULATION_SEED` on.
#[test]
fn partitions_and_their_rows_outlive_crashes() {
    let (first, count) = (setting("PAGEFOLD_SIMULATION_SEED", 1), setting("PAGEFOLD_PARTITION_HISTORIES", 24));
    let (mut met, mut images): (BTreeMap<&str, u64>, u64) = (BTreeMap::new(), 0);
    for seed in first..first + count {
        let (outcome, found, seen) = run(seed as u64, 61, 60);
        outcome.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        found.into_iter().for_each(|(what, count)| *met.entry(what).or_default() += count);
        images += seen;
    }
    println!("{images} images");
    met.iter().for_each(|(what, count)| println!("{count:>9} {what}"));
    if count >= 24 {
        let all = [
            "a column of all partitions comes",
            "a column of all partitions gets another type",
            "a column of all partitions goes",
            "a column of all partitions may be NULL or not",
            "a definition without room",
            "a partition goes, and another one comes",
            "altered: a partition goes, and another one comes",
            "a partition is added",
            "altered: a partition is added",
            "a partition is exchanged",
            "a partition with large values is exchanged",
            "an exchange is refused",
            "a partition is divided",
            "altered: a partition is divided",
            "a partition is dropped",
            "a partition is emptied",
            "a partition is written anew",
            "altered: a partition is written anew",
            "a number that another row has is refused",
            "a partition is exchanged where numbers are unique",
            "a row does not get the number of another one",
            "a unique index over all partitions comes",
            "a unique index over all partitions is dropped",
            "a unique index over all partitions is refused",
            "an exchange with a number of another partition is refused",
            "numbers are unique: a partition is divided",
            "numbers are unique: a partition is written anew",
            "numbers are unique: all partitions are loaded anew",
            "numbers are unique: rows change beside filters of keys",
            "numbers are unique: two partitions become one",
            "a row that belongs in no partition",
            "a row that moves to another partition",
            "a statement without room",
            "a utility without room",
            "all partitions are loaded anew",
            "an index of all partitions comes",
            "an index of all partitions is dropped",
            "an older reader looks again",
            "back to a savepoint",
            "beside: a transaction is committed",
            "beside: a transaction is taken back",
            "beside: a transaction stays open",
            "beside: back to a savepoint",
            "two partitions become one",
            "altered: two partitions become one",
        ];
        let missing: Vec<&str> = all.into_iter().filter(|what| !met.contains_key(what)).collect();
        assert!(missing.is_empty(), "never met: {missing:?}");
    }
}

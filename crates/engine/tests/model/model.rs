//! What a database says, as maps: every committed state that somebody may still see, what each transaction has done, and who holds which locks.
//!
//! Nothing here is taken from the engine but the RIDs it has given to rows. Statements are foretold: how they must end, or, where that depends on when something was cleared away, how they may.

use crate::program::SLOTS;
use crate::shape::{IndexShape, Shape, TableShape};
use crate::values::{micros, order, stored, variable_bytes};
use pagefold_engine::database::{Durability, Isolation};
use pagefold_engine::index::IndexFormat;
use pagefold_types::{Rid, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(crate) type Row = Arc<Vec<Value>>;
pub(crate) type Rows = BTreeMap<Rid, Row>;
pub(crate) type Changes = BTreeMap<(usize, Rid), Option<Row>>;

/// The tables of one committed state.
pub(crate) type State = Vec<Arc<Rows>>;

/// Why a statement is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusal {
    Lock,
    Conflict,
    Serialization,
    Duplicate,
    Value,
}

/// How a statement ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forecast {
    /// What it may be refused for.
    pub(crate) refusals: BTreeSet<Refusal>,
    /// It is refused.
    pub(crate) surely: bool,
    /// Was there a row to be changed? `None`: that may be said either way.
    pub(crate) found: Option<bool>,
    /// Locks it takes.
    rows: Vec<Rid>,
    /// Locks it may take.
    perhaps: Vec<Rid>,
    keys: Vec<(usize, Vec<u8>)>,
}

impl Forecast {
    fn refuse(&mut self, refusal: Refusal, surely: bool) {
        self.refusals.insert(refusal);
        self.surely |= surely;
    }
}

/// Locks of a transaction, or those that it perhaps has.
#[derive(Clone, Default)]
struct Locks {
    rows: BTreeSet<(usize, Rid)>,
    keys: BTreeSet<(usize, usize, Vec<u8>)>,
}

/// What a transaction has done, for those who look for a serial order.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    Read { table: usize, read: crate::read::Question, said: u64 },
    Insert { table: usize, row: Row, rid: Option<Rid> },
    Update { table: usize, rid: Rid, changes: Vec<(usize, Value)>, found: Option<bool> },
    Delete { table: usize, rid: Rid, found: bool },
    Savepoint,
    RollBackTo(usize),
}

pub(crate) struct Running {
    pub(crate) isolation: Isolation,
    pub(crate) durability: Durability,
    /// What was committed when its first statement began, and the number of that commit.
    base: Option<(u64, State)>,
    changes: Changes,
    pub(crate) savepoints: Vec<Changes>,
    locks: Locks,
    perhaps: Locks,
    /// Only rollback is left, or a return to a savepoint.
    pub(crate) failed: bool,
    /// Nor that.
    pub(crate) failed_for_good: bool,
    /// Another serializable transaction ran at the same time.
    pub(crate) met: bool,
    pub(crate) done: Vec<Done>,
}

pub(crate) struct Model {
    pub(crate) shape: Shape,
    pub(crate) committed: State,
    /// Number of the last commit.
    commits: u64,
    /// The last commit that changed a row.
    changed: BTreeMap<(usize, Rid), u64>,
    /// States that may be found after the process was killed: the last one that must be, and those after it.
    candidates: Vec<State>,
    /// Rows that have or had a key, by table, index and key.
    ever: HashMap<(usize, usize, Vec<u8>), BTreeSet<Rid>>,
    pub(crate) running: [Option<Running>; SLOTS],
    /// What was committed when nothing ran, and the serializable transactions committed since.
    pub(crate) quiet: State,
    pub(crate) serial: Vec<Vec<Done>>,
}

/// Bytes that are equal exactly when the values are, as far as an index is concerned.
pub(crate) fn canonical(values: &[&Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        match value {
            Value::Null => out.push(0),
            Value::Boolean(b) => out.extend([1, u8::from(*b)]),
            Value::Int(i) => out.extend(i.to_le_bytes()),
            Value::Decimal(d) => out.extend(d.to_le_bytes()),
            Value::Real(x) if x.is_nan() => out.extend([2; 9]),
            Value::Real(x) => out.extend(f64::from(x + 0.0).to_le_bytes()),
            Value::Double(x) if x.is_nan() => out.extend([2; 9]),
            Value::Double(x) => out.extend((x + 0.0).to_le_bytes()),
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.extend_from_slice(bytes),
            Value::Uuid(uuid) => out.extend(uuid),
            Value::Interval(interval) => out.extend(micros(*interval).to_le_bytes()),
        }
        out.push(u8::from(matches!(value, Value::Null)));
        out.extend((out.len() as u64).to_le_bytes());
    }
    out
}

pub(crate) fn key<'r>(index: &IndexShape, row: &'r [Value]) -> Vec<&'r Value> {
    index.columns.iter().map(|(column, _)| &row[*column]).collect()
}

/// The order of an index. The shorter key is compared as far as it goes.
pub(crate) fn key_order(index: &IndexShape, a: &[&Value], b: &[&Value]) -> Ordering {
    for ((a, b), (_, descending)) in a.iter().zip(b).zip(&index.columns) {
        let found = order(a, b);
        if found != Ordering::Equal {
            return if *descending { found.reverse() } else { found };
        }
    }
    Ordering::Equal
}

/// The longest key of an index.
pub(crate) fn key_limit(index: &IndexShape) -> usize {
    let page = if index.format == IndexFormat::Fold { 4096 } else { index.page_bytes };
    ((page - 64) / 4 - 32).min(2_000)
}

/// Whether a row may be refused for what it is, and whether it must.
fn value_refusal(table: &TableShape, row: &[Value], has_changed: impl Fn(usize) -> bool) -> (bool, bool) {
    let (mut may, mut must) = (false, false);
    let variable: usize = row.iter().map(variable_bytes).sum();
    let least: usize = row.iter().map(|value| variable_bytes(value).min(16)).sum();
    let fixed = 18 * row.len();
    let moved = fixed + variable + 200 > table.page_bytes;
    may |= fixed + least + 200 > table.page_bytes;
    for index in &table.indexes {
        let lengths: Vec<usize> = key(index, row).into_iter().map(variable_bytes).collect();
        let limit = key_limit(index);
        may |= lengths.iter().map(|length| 2 * length + 40).sum::<usize>() > limit || (moved && lengths.iter().any(|length| *length > 16));
        let is_new = index.columns.iter().any(|(column, _)| has_changed(*column));
        must |= is_new && lengths.iter().sum::<usize>() > limit;
    }
    (may, must)
}

impl Running {
    fn is_snapshot(&self) -> bool {
        self.isolation != Isolation::ReadCommitted
    }
}

impl Model {
    pub(crate) fn new(shape: &Shape) -> Model {
        let empty: State = shape.tables.iter().map(|_| Arc::default()).collect();
        Model {
            shape: shape.clone(),
            committed: empty.clone(),
            commits: 1,
            changed: BTreeMap::new(),
            candidates: vec![empty.clone()],
            ever: HashMap::new(),
            running: [const { None }; SLOTS],
            quiet: empty,
            serial: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, slot: usize, isolation: Isolation, durability: Durability) {
        let mut met = false;
        if isolation == Isolation::Serializable {
            for other in self.running.iter_mut().flatten().filter(|other| other.isolation == Isolation::Serializable) {
                (other.met, met) = (true, true);
            }
        }
        self.running[slot] = Some(Running {
            isolation,
            durability,
            base: None,
            changes: Changes::new(),
            savepoints: Vec::new(),
            locks: Locks::default(),
            perhaps: Locks::default(),
            failed: false,
            failed_for_good: false,
            met,
            done: Vec::new(),
        });
    }

    pub(crate) fn of(&mut self, slot: usize) -> &mut Running {
        self.running[slot].as_mut().unwrap()
    }

    /// A statement begins: perhaps the first one.
    pub(crate) fn statement(&mut self, slot: usize) {
        let (commits, committed) = (self.commits, &self.committed);
        let running = self.running[slot].as_mut().unwrap();
        if running.is_snapshot() && running.base.is_none() {
            running.base = Some((commits, committed.clone()));
        }
    }

    /// What a statement sees of a table.
    pub(crate) fn visible(&self, slot: usize, table: usize) -> Rows {
        let running = self.running[slot].as_ref().unwrap();
        let base = running.base.as_ref().map_or(&self.committed, |(_, state)| state);
        let mut rows = (*base[table]).clone();
        overlay(&mut rows, table, &running.changes);
        rows
    }

    /// The rows that are there, whoever has put them there.
    pub(crate) fn now(&self, table: usize) -> Rows {
        let mut rows = (*self.committed[table]).clone();
        for running in self.running.iter().flatten() {
            overlay(&mut rows, table, &running.changes);
        }
        rows
    }

    fn row_now(&self, table: usize, rid: Rid) -> Option<&Row> {
        let change = self.running.iter().flatten().find_map(|running| running.changes.get(&(table, rid)));
        change.map_or_else(|| self.committed[table].get(&rid), Option::as_ref)
    }

    /// RIDs that programs name: of rows that are there, that the transaction sees, or that somebody has changed.
    pub(crate) fn known(&self, slot: usize, table: usize) -> Vec<Rid> {
        let mut known: BTreeSet<Rid> = self.visible(slot, table).into_keys().collect();
        known.extend(self.committed[table].keys());
        for running in self.running.iter().flatten() {
            known.extend(running.changes.keys().filter(|(of, _)| *of == table).map(|(_, rid)| *rid));
        }
        known.into_iter().collect()
    }

    fn is_locked(&self, slot: usize, locked: impl Fn(&Locks) -> bool) -> (bool, bool) {
        let others = || self.running.iter().enumerate().filter(|(other, _)| *other != slot).filter_map(|(_, running)| running.as_ref());
        (others().any(|other| locked(&other.locks)), others().any(|other| locked(&other.perhaps)))
    }

    /// The row was changed by a commit that the snapshot does not see, and not by the transaction itself.
    fn is_newer(&self, slot: usize, table: usize, rid: Rid) -> bool {
        let running = self.running[slot].as_ref().unwrap();
        let Some((base, _)) = &running.base else { return false };
        self.changed.get(&(table, rid)).is_some_and(|commit| commit > base) && !running.changes.contains_key(&(table, rid))
    }

    fn row_seen(&self, slot: usize, table: usize, rid: Rid) -> Option<&Row> {
        let running = self.running[slot].as_ref().unwrap();
        let (_, base) = running.base.as_ref()?;
        running.changes.get(&(table, rid)).map_or_else(|| base[table].get(&rid), Option::as_ref)
    }

    pub(crate) fn foretell_insert(&self, slot: usize, table: usize, row: &[Value]) -> Forecast {
        let mut forecast = Forecast { found: Some(true), ..Forecast::default() };
        let shape = &self.shape.tables[table];
        let (may, must) = value_refusal(shape, row, |_| true);
        if may || must {
            forecast.refuse(Refusal::Value, must);
        }
        for index in 0..shape.indexes.len() {
            self.foretell_key(slot, table, index, row, None, &mut forecast);
        }
        forecast
    }

    /// A row gets a key.
    fn foretell_key(&self, slot: usize, table: usize, index: usize, row: &[Value], rid: Option<Rid>, forecast: &mut Forecast) {
        let shape = &self.shape.tables[table].indexes[index];
        let values = key(shape, row);
        if !shape.unique || values.iter().any(|value| matches!(value, Value::Null)) {
            return;
        }
        let wanted = canonical(&values);
        let (locked, perhaps) = self.is_locked(slot, |locks| locks.keys.contains(&(table, index, wanted.clone())));
        if locked || perhaps {
            forecast.refuse(Refusal::Lock, locked);
        }
        let has_key = |row: Option<&Row>| row.is_some_and(|row| canonical(&key(shape, row)) == wanted);
        let running = self.running[slot].as_ref().unwrap();
        for other in self.ever.get(&(table, index, wanted.clone())).into_iter().flatten().copied() {
            if Some(other) == rid {
                continue;
            }
            let is_taken = has_key(self.row_now(table, other));
            let is_seen = has_key(self.row_seen(slot, table, other));
            // Else its entry may be there or not.
            let has_entry = is_taken || is_seen || has_key(self.committed[table].get(&other));
            let (locked, perhaps) = self.is_locked(slot, |locks| locks.rows.contains(&(table, other)));
            if locked || perhaps {
                forecast.refuse(Refusal::Lock, locked && has_entry);
            }
            if has_entry { &mut forecast.rows } else { &mut forecast.perhaps }.push(other);
            let is_newer = self.is_newer(slot, table, other);
            if is_taken {
                let conflicts = is_newer && running.isolation == Isolation::Serializable;
                forecast.refuse(if conflicts { Refusal::Conflict } else { Refusal::Duplicate }, true);
            } else if is_seen && is_newer {
                forecast.refuse(Refusal::Conflict, true);
            }
        }
        forecast.keys.push((index, wanted));
    }

    /// A row is locked for change. True when the statement goes on with it.
    fn foretell_lock(&self, slot: usize, table: usize, rid: Rid, forecast: &mut Forecast) -> bool {
        let (locked, perhaps) = self.is_locked(slot, |locks| locks.rows.contains(&(table, rid)));
        if locked || perhaps {
            forecast.refuse(Refusal::Lock, locked);
        }
        forecast.rows.push(rid);
        if self.running[slot].as_ref().unwrap().is_snapshot() && self.is_newer(slot, table, rid) {
            if self.row_seen(slot, table, rid).is_some() {
                forecast.refuse(Refusal::Conflict, true);
            }
            forecast.found = Some(false);
            return false;
        }
        forecast.found = Some(self.row_now(table, rid).is_some());
        true
    }

    pub(crate) fn foretell_lock_row(&self, slot: usize, table: usize, rid: Rid) -> Forecast {
        let mut forecast = Forecast::default();
        self.foretell_lock(slot, table, rid, &mut forecast);
        forecast
    }

    /// A row with some values changed.
    pub(crate) fn changed_row(shape: &TableShape, row: &[Value], changes: &[(usize, Value)]) -> Row {
        let mut row = row.to_vec();
        for (column, value) in changes {
            row[*column] = stored(value, shape.columns[*column].data_type);
        }
        Arc::new(row)
    }

    pub(crate) fn foretell_update(&self, slot: usize, table: usize, rid: Rid, changes: &[(usize, Value)]) -> Forecast {
        let mut forecast = Forecast::default();
        if !self.foretell_lock(slot, table, rid, &mut forecast) {
            return forecast;
        }
        let Some(before) = self.row_now(table, rid) else { return forecast };
        let shape = &self.shape.tables[table];
        let after = Model::changed_row(shape, before, changes);
        let (may, must) = value_refusal(shape, &after, |column| changes.iter().any(|(changed, _)| *changed == column));
        if may || must {
            forecast.refuse(Refusal::Value, must);
        }
        for (number, index) in shape.indexes.iter().enumerate() {
            if canonical(&key(index, before)) != canonical(&key(index, &after)) {
                self.foretell_key(slot, table, number, &after, Some(rid), &mut forecast);
            }
        }
        forecast
    }

    /// A statement has ended so.
    pub(crate) fn take_locks(&mut self, slot: usize, table: usize, forecast: Forecast, refused: bool) {
        let running = self.of(slot);
        let locks = if refused { &mut running.perhaps } else { &mut running.locks };
        locks.rows.extend(forecast.rows.iter().map(|rid| (table, *rid)));
        locks.keys.extend(forecast.keys.into_iter().map(|(index, key)| (table, index, key)));
        running.perhaps.rows.extend(forecast.perhaps.iter().map(|rid| (table, *rid)));
    }

    /// The transaction has put this in the place of a row.
    pub(crate) fn put(&mut self, slot: usize, table: usize, rid: Rid, row: Option<Row>) {
        if let Some(row) = &row {
            self.note_keys(table, rid, row);
        }
        let running = self.of(slot);
        running.locks.rows.insert((table, rid));
        running.changes.insert((table, rid), row);
    }

    fn note_keys(&mut self, table: usize, rid: Rid, row: &[Value]) {
        for (number, index) in self.shape.tables[table].indexes.iter().enumerate() {
            let found = canonical(&key(index, row));
            self.ever.entry((table, number, found)).or_default().insert(rid);
        }
    }

    /// May a new row have this RID?
    pub(crate) fn is_free(&self, table: usize, rid: Rid) -> bool {
        self.row_now(table, rid).is_none()
            && self.committed[table].get(&rid).is_none()
            && self.running.iter().flatten().all(|running| {
                running.base.as_ref().is_none_or(|(_, base)| !base[table].contains_key(&rid))
                    && !running.locks.rows.contains(&(table, rid))
                    && !running.changes.contains_key(&(table, rid))
            })
    }

    /// The row that a transaction changes.
    pub(crate) fn row_of(&self, table: usize, rid: Rid) -> Option<Row> {
        self.row_now(table, rid).cloned()
    }

    pub(crate) fn savepoint(&mut self, slot: usize) {
        let running = self.of(slot);
        running.savepoints.push(running.changes.clone());
        running.done.push(Done::Savepoint);
    }

    pub(crate) fn roll_back_to(&mut self, slot: usize, savepoint: usize) {
        let committed = &self.committed;
        let running = self.running[slot].as_mut().unwrap();
        running.savepoints.truncate(savepoint + 1);
        let back = std::mem::replace(&mut running.changes, running.savepoints[savepoint].clone());
        // Rows that there are no more are locked no more; others are.
        for (table, rid) in back.into_keys() {
            if !running.changes.contains_key(&(table, rid)) && !committed[table].contains_key(&rid) {
                running.locks.rows.remove(&(table, rid));
            }
        }
        running.failed = false;
        running.done.push(Done::RollBackTo(savepoint));
    }

    pub(crate) fn rollback(&mut self, slot: usize) {
        self.running[slot] = None;
    }

    pub(crate) fn commit(&mut self, slot: usize) {
        let running = self.running[slot].take().unwrap();
        let is_change = !running.changes.is_empty();
        if is_change {
            self.commits += 1;
        }
        for ((table, rid), row) in running.changes {
            let rows = Arc::make_mut(&mut self.committed[table]);
            match row {
                Some(row) => rows.insert(rid, row),
                None => rows.remove(&rid),
            };
            self.changed.insert((table, rid), self.commits);
        }
        if is_change {
            self.candidates.push(self.committed.clone());
            if running.durability != Durability::Off {
                self.all_is_durable();
            }
        }
        self.serial.push(running.done);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.running.iter().all(Option::is_none)
    }

    /// What is committed is found after the process was killed.
    pub(crate) fn all_is_durable(&mut self) {
        self.candidates = vec![self.committed.clone()];
    }

    /// States that may be found now, the likeliest first.
    pub(crate) fn after_a_kill(&self) -> Vec<State> {
        self.candidates.iter().rev().cloned().collect()
    }

    /// The database is open again, with this in it.
    pub(crate) fn reopened(&mut self, state: State) {
        self.committed = state;
        self.all_is_durable();
        self.running = [const { None }; SLOTS];
        self.changed.clear();
        self.ever.clear();
        for table in 0..self.committed.len() {
            for (rid, row) in self.committed[table].clone().iter() {
                self.note_keys(table, *rid, row);
            }
        }
    }
}

pub(crate) fn overlay(rows: &mut Rows, table: usize, changes: &Changes) {
    for ((_, rid), row) in changes.range((table, Rid::MIN)..=(table, Rid::MAX)) {
        match row {
            Some(row) => rows.insert(*rid, Arc::clone(row)),
            None => rows.remove(rid),
        };
    }
}

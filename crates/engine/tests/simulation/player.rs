//! Takes the steps of a history, and knows what each may do: what must succeed, what may fail and for which reason, what readers must see.

use crate::alterations::{Altered, as_seen};
use crate::beside::Building;
use crate::model::{Committed, Left, Overlay, Place, Promise, Rows, State, Whole};
use crate::steps::{Statement, Step, Way};
use crate::values::{COLUMNS, Size, UNIQUE, number};
use crate::world::{TABLES, dictionary};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{
    Database, Durability, Isolation, MoveOptions, MoveStep, RowScan, Savepoint, Scan, ScanRequest, Transaction, TransactionOptions,
};
use pagefold_engine::table_space::{LIVE_MAX, Table};
use pagefold_engine::{DataSet, Error, Result};
use pagefold_io::{Failure, FaultStorage, Repeat};
use pagefold_types::{KeyRange, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why a history does not go on.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Something is not as it must be.
    Fault(String),
    /// The process has ended: the database is to be opened again.
    Killed,
}

/// What goes wrong around the database just now.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// The disk is full: whatever takes more of it fails.
    pub(crate) full: AtomicBool,
    /// Every call fails.
    pub(crate) killed: AtomicBool,
    /// How often what has come of steps.
    pub(crate) met: Mutex<BTreeMap<&'static str, u64>>,
}

impl Trouble {
    pub(crate) fn meet(&self, what: &'static str) {
        *self.met.lock().entry(what).or_default() += 1;
    }
}

/// A transaction that changes rows.
pub(crate) struct Writer<'d> {
    pub(crate) transaction: Transaction<'d>,
    pub(crate) durability: Durability,
    /// What it sees of others, from its first statement on, and after how many commits; `None` under READ COMMITTED.
    pub(crate) snapshot: Option<(State, u64)>,
    /// Commits when it began.
    pub(crate) began: u64,
    pub(crate) overlay: Overlay,
    /// What it has altered: rows that it has not changed itself are so for it.
    pub(crate) alterations: Vec<Altered>,
    /// With what it had changed by then, and how many alterations it had done.
    pub(crate) savepoints: Vec<(Savepoint, Overlay, usize)>,
    /// What it may have locked.
    pub(crate) touched: BTreeSet<Place>,
    /// What it has made or dropped something of, or tried to.
    pub(crate) wholes: BTreeSet<Whole>,
    /// Has it defined something? One that was refused has only the lock.
    pub(crate) defines: bool,
    /// Data sets of what it has made.
    pub(crate) made: Vec<Arc<DataSet>>,
    /// The alteration that was just done.
    pub(crate) altered: Option<Altered>,
    /// Only rollback is left.
    pub(crate) failed: bool,
}

/// A transaction that only reads.
struct Reader<'d> {
    transaction: Transaction<'d>,
    snapshot: Option<State>,
    open: Option<OpenScan>,
}

/// A scan between two items, and what was there when it began.
struct OpenScan {
    table: usize,
    /// The table as the scan sees it.
    object: Arc<Table>,
    scan: RowScan,
    seen: Vec<(i64, Option<Vec<Value>>)>,
    expected: Rows,
}

/// An open database, its transactions, and what must be in it.
pub(crate) struct Player<'d> {
    pub(crate) database: &'d Database,
    pub(crate) promise: Arc<Mutex<Promise>>,
    pub(crate) committed: Committed,
    pub(crate) trouble: Arc<Trouble>,
    /// Where room and calls are taken away.
    storage: Option<FaultStorage>,
    pub(crate) writers: BTreeMap<usize, Writer<'d>>,
    readers: BTreeMap<usize, Reader<'d>>,
    /// What is being built beside them.
    pub(crate) building: Option<Building<'d>>,
}

impl<'d> Player<'d> {
    pub(crate) fn new(database: &'d Database, promise: &Arc<Mutex<Promise>>, trouble: &Arc<Trouble>) -> Player<'d> {
        let committed = Committed::of(promise.lock().last().clone());
        Player {
            database,
            promise: Arc::clone(promise),
            committed,
            trouble: Arc::clone(trouble),
            storage: None,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            building: None,
        }
    }

    /// Steps may fill the disk, and end the process.
    pub(crate) fn on(self, storage: &FaultStorage) -> Player<'d> {
        Player { storage: Some(storage.clone()), ..self }
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, step: &Step) -> std::result::Result<(), Halt> {
        match step {
            Step::Begin { writer, isolation, durability } => {
                self.rollback(*writer)?;
                self.begin(*writer, *isolation, *durability);
                Ok(())
            }
            Step::Write { writer, statement } => self.write(*writer, statement),
            Step::DefineWithin { writer, within } => self.define_within(*writer, *within),
            Step::Many { table, from, count, delete } => self.many(*table, *from..from + count, *delete),
            Step::Savepoint { writer } => {
                if let Some(w) = self.writers.get_mut(writer).filter(|w| !w.failed) {
                    w.savepoints.push((w.transaction.savepoint(), w.overlay.clone(), w.alterations.len()));
                }
                Ok(())
            }
            Step::Back { writer, depth } => self.back(*writer, *depth),
            Step::Commit { writer } => self.commit(*writer),
            Step::Rollback { writer } => self.rollback(*writer),
            Step::Open { reader, isolation } => {
                let options = TransactionOptions { isolation: *isolation, ..TransactionOptions::default() };
                self.readers.insert(*reader, Reader { transaction: self.database.begin(options), snapshot: None, open: None });
                Ok(())
            }
            Step::Look { reader, table, way } => self.look(*reader, *table, *way),
            Step::Close { reader } => {
                // What is refused here was only read.
                let closed = self.readers.remove(reader).map_or(Ok(()), |reader| reader.transaction.commit());
                closed.or_else(|e| if matches!(e, Error::Serialization(_)) { Ok(()) } else { self.allow(Err(e), "a reader ends") })
            }
            Step::Checkpoint => {
                let done = self.database.checkpoint();
                if done.is_ok() {
                    self.promise.lock().settle(Durability::Durable);
                }
                self.allow(done, "a checkpoint")
            }
            Step::Steal { pick } => {
                let tables = self.database.tables().unwrap();
                let mut data_sets: Vec<_> = tables.iter().flat_map(|table| table.data_sets().cloned()).collect();
                data_sets.extend(self.database.indexes().unwrap().iter().map(|index| Arc::clone(index.data_set())));
                data_sets.extend(self.writers.values().flat_map(|w| w.made.iter().cloned()));
                let written = self.database.write_dirty_pages(&data_sets[*pick as usize % data_sets.len()]);
                self.allow(written, "a write of dirty pages")
            }
            Step::RenewDictionary { table, seed } => {
                let renewed = match renew(self.database, TABLES[*table], *seed) {
                    Err(Error::Busy(_)) if self.writers.values().any(|w| w.wholes.contains(&Whole::Table(*table))) => Ok(()),
                    renewed => renewed,
                };
                self.allow(renewed, "a renewal of dictionaries")
            }
            Step::RemoveLeftovers => {
                let removed = self.database.remove_leftovers();
                self.allow(removed, "a removal of leftovers")
            }
            Step::MoveRows { table, rows } => self.move_rows(*table, *rows),
            Step::Define(definition) => {
                self.end_all()?;
                self.define(*definition)
            }
            Step::Beside { table, shape, format, anew } => self.beside(*table, (*shape, *format), *anew),
            Step::GiveUp => {
                self.building = None;
                Ok(())
            }
            Step::Full { bytes } => {
                if let Some(storage) = &self.storage {
                    storage.set_capacity(Some(storage.taken_bytes() + bytes));
                    self.trouble.full.store(true, Ordering::Relaxed);
                    self.building.iter_mut().for_each(|building| building.was_full = true);
                }
                Ok(())
            }
            Step::Room => {
                self.make_room();
                Ok(())
            }
            Step::Kill { calls } => {
                if let Some(storage) = &self.storage {
                    storage.error_at(storage.calls() + calls, Failure::Io, Repeat::Forever);
                    self.trouble.killed.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
            Step::Reopen => {
                self.end_all()?;
                Err(Halt::Killed)
            }
        }
    }

    /// Rows of thin pages go to others, beside the writers that read what is committed.
    fn move_rows(&self, table: usize, rows_max: usize) -> std::result::Result<(), Halt> {
        let run = || {
            let table = self.database.table(TABLES[table])?;
            let mut thin = self.database.thin_pages(&table, MoveOptions { rows_max, is_thorough: true })?;
            let mut last = MoveStep::Done;
            for _ in 0..4 {
                last = thin.step()?;
                if last != MoveStep::Done {
                    break;
                }
            }
            Ok((thin.standing(), last))
        };
        match run() {
            Ok((standing, last)) => {
                let met = [
                    (standing.rows_moved > 0, "moved: rows"),
                    (standing.rows_left > 0, "moved: rows that others had"),
                    (standing.pages_given_back > 0, "moved: pages given back"),
                    (standing.rows_moved > 0 && !self.writers.is_empty(), "moved: beside writers"),
                    (matches!(last, MoveStep::BehindTransaction(_)), "moved: not beside a snapshot"),
                ];
                met.into_iter().filter(|(is_met, _)| *is_met).for_each(|(_, what)| self.trouble.meet(what));
                Ok(())
            }
            // Something is built, or the memory for versions is full.
            Err(Error::Busy(_) | Error::VersionsFull(_)) => Ok(()),
            Err(error) => self.expect_trouble(&error, "moving rows"),
        }
    }

    pub(crate) fn make_room(&self) {
        if let Some(storage) = &self.storage {
            storage.set_capacity(None);
            self.trouble.full.store(false, Ordering::Relaxed);
        }
    }

    /// Takes all steps.
    pub(crate) fn play(&mut self, steps: &[Step]) -> std::result::Result<(), Halt> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    /// An error of something that may only fail when the disk is full or the process is being ended.
    pub(crate) fn allow(&self, done: Result<()>, what: &str) -> std::result::Result<(), Halt> {
        let Err(error) = done else { return Ok(()) };
        self.expect_trouble(&error, what)
    }

    /// As [`allow`](Self::allow), of an error.
    pub(crate) fn expect_trouble(&self, error: &Error, what: &str) -> std::result::Result<(), Halt> {
        if self.trouble.killed.load(Ordering::Relaxed) && matches!(error, Error::Io(_) | Error::Poisoned(_)) {
            return Err(Halt::Killed);
        }
        let full = self.trouble.full.load(Ordering::Relaxed) && matches!(error, Error::Io(e) if e.kind() == ErrorKind::StorageFull);
        if full {
            self.trouble.meet("a full disk");
            Ok(())
        } else {
            Err(Halt::Fault(format!("{what}: {error}")))
        }
    }

    /// Something that must not fail, unless the process is being ended.
    pub(crate) fn must<T>(&self, done: Result<T>, what: &str) -> std::result::Result<T, Halt> {
        done.map_err(|error| {
            let killed = self.trouble.killed.load(Ordering::Relaxed) && matches!(error, Error::Io(_) | Error::Poisoned(_));
            if killed { Halt::Killed } else { Halt::Fault(format!("{what}: {error}")) }
        })
    }

    pub(crate) fn begin(&mut self, writer: usize, isolation: Isolation, durability: Durability) {
        // Nobody waits: all transactions are those of one thread.
        let options = TransactionOptions { isolation, durability, lock_timeout: Duration::ZERO, ..TransactionOptions::default() };
        let fresh = Writer {
            transaction: self.database.begin(options),
            durability,
            snapshot: None,
            began: self.committed.count,
            overlay: Overlay::new(),
            alterations: Vec::new(),
            savepoints: Vec::new(),
            touched: BTreeSet::new(),
            wholes: BTreeSet::new(),
            defines: false,
            made: Vec::new(),
            altered: None,
            failed: false,
        };
        self.writers.insert(writer, fresh);
    }

    fn many(&mut self, table: usize, numbers: Range<i64>, delete: bool) -> std::result::Result<(), Halt> {
        self.rollback(0)?;
        self.begin(0, Isolation::ReadCommitted, Durability::Durable);
        for n in numbers {
            let statement = if delete {
                Statement::Delete { table, n }
            } else {
                let mut sizes = [Size::Short; COLUMNS];
                (sizes[3], sizes[UNIQUE], sizes[COLUMNS - 1]) = (Size::Medium, Size::Null, Size::Null);
                Statement::Insert { table, n, sizes, seed: n as u64 }
            };
            self.write(0, &statement)?;
        }
        self.commit(0)
    }

    fn back(&mut self, writer: usize, depth: usize) -> std::result::Result<(), Halt> {
        let Some(w) = self.writers.get_mut(&writer).filter(|w| !w.failed) else { return Ok(()) };
        let Some(at) = w.savepoints.len().checked_sub(depth + 1) else { return Ok(()) };
        w.savepoints.truncate(at + 1);
        let (savepoint, overlay, altered) = w.savepoints[at].clone();
        let done = w.transaction.roll_back_to(savepoint);
        w.overlay = overlay;
        w.alterations.truncate(altered);
        self.must(done, "a rollback to a savepoint")
    }

    fn commit(&mut self, writer: usize) -> std::result::Result<(), Halt> {
        let Some(w) = self.writers.remove(&writer) else { return Ok(()) };
        if w.failed {
            return self.must(w.transaction.rollback(), "a rollback");
        }
        let serializable = w.transaction.isolation() == Isolation::Serializable;
        let alone = self.is_alone(w.began);
        if w.overlay.is_empty() && !w.defines {
            // Nothing has to become durable by it, not even what others have committed.
            let done = w.transaction.commit();
            return if matches!(done, Err(Error::Serialization(_))) && serializable && !alone {
                Ok(())
            } else {
                self.must(done, "a commit")
            };
        }
        self.promise.lock().begin(self.committed.with(&w.overlay, &w.alterations));
        match w.transaction.commit() {
            Ok(()) => {
                self.promise.lock().settle(w.durability);
                self.committed.apply(&w.overlay, &w.alterations);
                w.wholes.iter().for_each(|whole| self.committed.defined(*whole));
                Ok(())
            }
            Err(Error::Serialization(_)) if serializable && !alone => {
                self.promise.lock().refuse();
                Ok(())
            }
            Err(error) => self.must(Err(error), "a commit"),
        }
    }

    fn rollback(&mut self, writer: usize) -> std::result::Result<(), Halt> {
        let Some(w) = self.writers.remove(&writer) else { return Ok(()) };
        self.must(w.transaction.rollback(), "a rollback")
    }

    /// Ends all transactions.
    pub(crate) fn end_all(&mut self) -> std::result::Result<(), Halt> {
        self.readers.clear();
        self.building = None;
        while let Some(writer) = self.writers.keys().next().copied() {
            self.rollback(writer)?;
        }
        Ok(())
    }

    /// Has nobody else been there since so many commits?
    pub(crate) fn is_alone(&self, began: u64) -> bool {
        self.writers.is_empty() && self.readers.is_empty() && self.committed.count == began
    }

    fn look(&mut self, reader: usize, table: usize, way: Way) -> std::result::Result<(), Halt> {
        let Some(r) = self.readers.get_mut(&reader) else { return Ok(()) };
        let state = if r.transaction.isolation() == Isolation::ReadCommitted {
            &self.committed.state
        } else {
            &*r.snapshot.get_or_insert_with(|| self.committed.state.clone())
        };
        let expected = state[table].clone();
        let (found, table, expected) = if way == Way::Few {
            match few_more(r, table, expected) {
                Ok(None) => return Ok(()),
                Ok(Some(OpenScan { table, seen, expected, .. })) => (Ok(seen), table, expected),
                Err(error) => (Err(error), table, Rows::new()),
            }
        } else {
            (rows_seen(&mut r.transaction, table, way), table, expected)
        };
        match found {
            Ok(found) => {
                let same = match way {
                    Way::Scan | Way::Parts | Way::Rids | Way::Few => {
                        found.iter().map(|(n, _)| n).collect::<BTreeSet<_>>().len() == found.len()
                    }
                    Way::Forward | Way::Keys => found.iter().map(|(n, _)| n).eq(expected.keys()),
                    Way::Backward => found.iter().map(|(n, _)| n).eq(expected.keys().rev()),
                };
                let values = found.iter().all(|(n, row)| row.as_ref().is_none_or(|row| expected.get(n).map(|r| &**r) == Some(row)));
                if same && values && found.len() == expected.len() {
                    return Ok(());
                }
                let numbers: Vec<i64> = found.iter().map(|(n, _)| *n).collect();
                Err(Halt::Fault(format!(
                    "reader {reader} sees {numbers:?} in table {table} by {way:?}, and must see {:?}; values as they should be: {values}",
                    expected.keys().collect::<Vec<_>>()
                )))
            }
            Err(Error::Serialization(_)) => {
                self.readers.remove(&reader);
                Ok(())
            }
            Err(error) => self.must(Err(error), "a reader"),
        }
    }
}

/// Pulls a few rows of the scan that a reader has open, or opens one. What it has seen, when that is all.
fn few_more(reader: &mut Reader<'_>, table: usize, expected: Rows) -> Result<Option<OpenScan>> {
    const FEW: usize = 7;
    let mut open = match reader.open.take() {
        Some(open) => open,
        None => {
            let (object, index) = (reader.transaction.table(TABLES[table])?, reader.transaction.index(&format!("{}_pk", TABLES[table]))?);
            let (view, request) = (reader.transaction.read_view()?, ScanRequest::default());
            let all = KeyRange { start: Vec::new(), end: None };
            let scan = match expected.len() % 3 {
                0 => view.scan(&object, &request)?,
                1 => view.range(&object, &index, all, Direction::Forward, &request)?,
                _ => view.range(&object, &index, all, Direction::Backward, &request)?,
            };
            OpenScan { table, object, scan: scan.into_rows(), seen: Vec::new(), expected }
        }
    };
    for _ in 0..FEW {
        let Some(row) = open.scan.next() else { return Ok(Some(open)) };
        let (_, values) = row?;
        open.seen.push((number(&values), Some(as_seen(&open.object, values))));
    }
    reader.open = Some(open);
    Ok(None)
}

/// Numbers of the rows that a transaction sees, and their values if the way gives them.
fn rows_seen(transaction: &mut Transaction<'_>, table: usize, way: Way) -> Result<Vec<(i64, Option<Vec<Value>>)>> {
    let object = transaction.table(TABLES[table])?;
    let index = transaction.index(&format!("{}_pk", TABLES[table]))?;
    let all = KeyRange { start: Vec::new(), end: None };
    let (view, request) = (transaction.read_view()?, ScanRequest::default());
    if way == Way::Keys {
        let keys = view.keys(&object, &index, all, Direction::Forward)?;
        return keys.map(|key| key.map(|(_, values)| (number(&values), None))).collect();
    }
    if way == Way::Rids {
        // The RIDs of a scan that looks at no column, and then the rows of this list.
        let rids = ScanRequest { columns: Some(Vec::new()), rids: true, ..ScanRequest::default() };
        let mut list = Vec::new();
        for batch in view.scan(&object, &rids)? {
            list.extend(batch?.rids().into_iter().flatten());
        }
        return view
            .rows(&object, list, &request)?
            .into_rows()
            .map(|row| row.map(|(_, row)| (number(&row), Some(as_seen(&object, row)))))
            .collect();
    }
    let scan = match way {
        Way::Forward => view.range(&object, &index, all, Direction::Forward, &request)?,
        Way::Backward => view.range(&object, &index, all, Direction::Backward, &request)?,
        _ => view.scan(&object, &request)?,
    };
    let parts = if way == Way::Parts { 3 } else { 1 };
    // All of them are begun before the first one is read.
    let rows = scan.split(parts).into_iter().flat_map(Scan::into_rows);
    rows.map(|row| row.map(|(_, row)| (number(&row), Some(as_seen(&object, row))))).collect()
}

/// Gives a table another dictionary, or goes on with ending an old one.
fn renew(database: &Database, table: &str, seed: u64) -> Result<()> {
    let table = database.table(table)?;
    let method = table.attributes().method;
    if method.dictionary_type().is_none() {
        return Ok(());
    }
    if table.dictionary_versions().len() < LIVE_MAX && seed.is_multiple_of(2) {
        return database.use_dictionary(table.name(), dictionary(method, seed)).map(drop);
    }
    database.renew_dictionaries(table.name()).map(drop)
}

/// Takes steps from the beginning on a database that is open; transactions that do not end are taken back.
pub(crate) fn work(database: &Database, promise: &Arc<Mutex<Promise>>, steps: &[Step]) -> std::result::Result<(), Halt> {
    let mut player = Player::new(database, promise, &Arc::default());
    player.play(steps)?;
    player.end_all()
}

/// What a killed process leaves must be one of the states that may be there.
pub(crate) fn killed(promise: &Mutex<Promise>, found: State, left: Left) -> std::result::Result<(), Halt> {
    let mut promise = promise.lock();
    if !promise.allows(&found, left) {
        return Err(Halt::Fault(format!("opened again: {}", promise.difference(&found))));
    }
    promise.found(found);
    Ok(())
}

impl Statement {
    pub(crate) fn table(&self) -> usize {
        match self {
            Statement::Insert { table, .. }
            | Statement::InsertRows { table, .. }
            | Statement::Update { table, .. }
            | Statement::Delete { table, .. }
            | Statement::Lock { table, .. } => *table,
        }
    }
}

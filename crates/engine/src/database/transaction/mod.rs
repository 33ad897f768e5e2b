//! Transactions: what a program does with rows, all of it or nothing.
//!
//! A transaction reads a snapshot: of the moment in which each statement begins (READ COMMITTED) or in which its first one did (REPEATABLE READ, SERIALIZABLE). Readers never wait. Who changes a
//! row locks it until the transaction ends; who comes second waits, and goes on from what the first one made of it, or, where the snapshot is that of the transaction, gives up with
//! [`Error::Conflict`]: first updater wins. SERIALIZABLE adds the detection of dangerous structures (`crate::transaction::Serializable`).
//!
//! Invariants:
//! - a transaction that is dropped is rolled back;
//! - a statement that fails is taken back alone; after a lock that was not had, or a conflict, only rollback is left, or a return to a savepoint; after a failure of serialization only rollback;
//! - a commit is seen by others only when it is as durable as was asked for.

mod all_partitions;
mod alter;
mod change;
#[cfg(test)]
mod cut_short_tests;
mod define;
mod end;
mod exchange;
mod insert_rows;
#[cfg(test)]
mod insert_rows_tests;
mod known_keys;
mod lock;
mod move_row;
mod partitions;
mod read;
mod reference;

pub use alter::{IndexChange, TableChange};
pub use change::Insertion;
pub use insert_rows::RowsToCome;
pub use lock::{LockWait, Locked, RowLock};
pub(super) use move_row::RowMoved;

pub(crate) use all_partitions::{Share, spans};

use self::all_partitions::Shares;
use self::known_keys::KnownKeys;
use self::move_row::MoveMade;
use super::defining::Defining;
use super::open::{Database, DatabaseState};
use super::read_view::ReadView;
use super::reading::ObjectsRead;
use crate::core::Lifetime;
use crate::index::Index;
use crate::log::Lsn;
use crate::pool::Frees;
use crate::table_space::{RowBuffer, Table, Writers};
use crate::transaction::{Access, Mode, Pin, Resource, Serializable, SerializationFailure, Snapshot, TransactionState};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a transaction sees of others that run at the same time (SQL-92, made precise by Berenson et al. 1995).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    #[default]
    ReadCommitted,
    /// Every statement sees what was committed when the first one began: a snapshot.
    RepeatableRead,
    /// As if the transactions ran one after the other.
    Serializable,
}

/// When a commit returns. One of a transaction that has made or dropped tables or indexes is always durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the device.
    #[default]
    Durable,
    /// When it is written to the log: it outlives the process. A crash of the machine may lose the commits of the last moment, whole and in order; a thread syncs them soon.
    Relaxed,
    /// At once. The end of the process may lose the last commits, too, whole and in order: they are written with the next commit that asks for more, with a checkpoint, or when there are many.
    Off,
}

/// Settings of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// When its commit returns.
    pub durability: Durability,
    /// How long it waits for a lock.
    pub lock_timeout: Duration,
    /// It changes nothing; a statement that would is an error.
    pub read_only: bool,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            isolation: Isolation::default(),
            durability: Durability::default(),
            lock_timeout: Duration::from_secs(10),
            read_only: false,
        }
    }
}

/// What a statement writes to the log, in which there has to be room for it.
#[derive(Clone, Copy, Debug)]
enum Writes {
    Anything,
    ToFree(Frees),
    /// It only locks.
    Nothing,
}

/// How often a transaction looks at how many locks it has.
const STATEMENTS_PER_LOOK: u32 = 64;

/// A point to which a transaction can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    transaction: u64,
    last: Lsn,
}

/// A transaction.
#[derive(Debug)]
pub struct Transaction<'d> {
    database: Arc<DatabaseState>,
    /// Keeps the database open, if the transaction does not borrow it.
    _open: Option<Arc<Database>>,
    borrowed: PhantomData<&'d Database>,
    state: Arc<TransactionState>,
    options: TransactionOptions,
    /// The snapshot of all statements, except under READ COMMITTED.
    snapshot: Option<Arc<Snapshot>>,
    /// The version of the definitions that this snapshot has; `None` where some were changed while it was taken.
    definitions_of_snapshot: Option<u64>,
    /// Under READ COMMITTED, of the first statement: while it is held, no RID that a statement has seen comes to mean another row.
    pin: Option<Pin>,
    /// The tables in which it has begun to change rows, by number, and the writers of each.
    tables: Vec<(u32, Arc<Writers>)>,
    /// Unique keys of which it is known which row has them.
    known_keys: KnownKeys,
    /// Rows that it has put elsewhere, in the order of its log.
    moves: Vec<MoveMade>,
    /// Partitioned tables of which it has locked keys that are unique over all partitions, by number; and the indexes that these are of.
    wholes: Vec<u32>,
    shares: Vec<Shares>,
    /// The tables and indexes that it has made and dropped.
    defining: Defining,
    /// Under SERIALIZABLE, the tables and indexes that it has read, its read views too.
    read: Option<ObjectsRead>,
    ended: bool,
    /// Why only rollback is left.
    failed: Option<Error>,
    /// With so many locks it asks for a table instead of its rows.
    escalates_at: usize,
    /// Statements that have changed something.
    statements: u32,
    /// Of statements, kept from one to the next.
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    row: RowBuffer,
    key: Vec<u8>,
}

impl Database {
    /// Begins a transaction.
    #[must_use]
    pub fn begin(&self, options: TransactionOptions) -> Transaction<'_> {
        self.begin_kept(options, None)
    }

    /// Begins a transaction that keeps the database open, and can go wherever the program likes.
    #[must_use]
    pub fn begin_owned(self: &Arc<Self>, options: TransactionOptions) -> Transaction<'static> {
        self.begin_kept(options, Some(Arc::clone(self)))
    }

    /// What is committed now, as a value that threads share and scans are pulled from.
    #[must_use]
    pub fn read_view(&self) -> ReadView {
        let state = self.core.transactions.begin();
        let snapshot = Arc::new(self.core.transactions.snapshot(state.id()));
        self.core.transactions.end_read_only(&state);
        ReadView::new(&self.state, &state, snapshot, None, BTreeSet::new())
    }

    fn begin_kept<'d>(&self, options: TransactionOptions, open: Option<Arc<Database>>) -> Transaction<'d> {
        let state = self.core.transactions.begin();
        Transaction {
            database: Arc::clone(&self.state),
            _open: open,
            borrowed: PhantomData,
            state,
            options,
            snapshot: None,
            definitions_of_snapshot: None,
            pin: None,
            tables: Vec::new(),
            known_keys: KnownKeys::default(),
            moves: Vec::new(),
            wholes: Vec::new(),
            shares: Vec::new(),
            defining: Defining::default(),
            read: (options.isolation == Isolation::Serializable).then(ObjectsRead::default),
            ended: false,
            failed: None,
            escalates_at: self.core.row_locks_max,
            statements: 0,
            scratch: Scratch::default(),
        }
    }
}

impl Transaction<'_> {
    /// What it sees of others.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Its number; never used again.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.state.id()
    }

    /// Why only rollback is left, if it is.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    fn serializable(&self) -> Option<&Serializable> {
        (self.options.isolation == Isolation::Serializable).then_some(&self.database.core.serializable)
    }

    fn access(&self) -> Access {
        if self.options.read_only { Access::ReadOnly } else { Access::ReadWrite }
    }

    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Under READ COMMITTED: from now on no RID that this transaction sees comes to mean another row.
    #[inline]
    fn pin(&mut self) {
        match &self.pin {
            Some(pin) => pin.statement_begins(),
            None => self.pin = Some(self.database.core.transactions.pin(&self.state)),
        }
    }

    /// The end of a statement, or of its last look at rows.
    #[inline]
    fn statement_ends(&self) {
        if let Some(pin) = &self.pin {
            self.database.core.transactions.statement_ends(pin);
        }
    }

    /// The snapshot of a statement.
    fn snapshot(&mut self) -> Result<Arc<Snapshot>> {
        self.check()?;
        if let Some(snapshot) = &self.snapshot {
            return Ok(Arc::clone(snapshot));
        }
        if self.options.isolation == Isolation::ReadCommitted {
            self.pin();
        }
        let definitions = self.database.changes.load(Ordering::Acquire);
        let snapshot = Arc::new(match self.serializable() {
            Some(serializable) => serializable.begin(&self.state, self.access()),
            None => self.database.core.transactions.snapshot(self.state.id()),
        });
        if self.options.isolation != Isolation::ReadCommitted {
            self.definitions_of_snapshot = Some(definitions).filter(|before| self.database.changes.load(Ordering::Acquire) == *before);
            self.snapshot = Some(Arc::clone(&snapshot));
            if !self.options.read_only {
                self.state.note_keeps_snapshot();
            }
        }
        Ok(snapshot)
    }

    /// The table of this name: one that the transaction has made; else for READ COMMITTED the present one, otherwise the one of the transaction's snapshot, also if it was dropped or replaced since by others. Takes the
    /// snapshot if there is none.
    ///
    /// # Errors
    /// When there is none, or the transaction has dropped it.
    pub fn table(&mut self, name: &str) -> Result<Arc<Table>> {
        if let Some(own) = self.defining.table(name) {
            return Ok(Arc::clone(own));
        }
        let found = if self.options.isolation == Isolation::ReadCommitted {
            self.database.table(name)?
        } else {
            let timestamp = self.snapshot()?.timestamp();
            match self.database.table_of_snapshot(name, timestamp)? {
                Some(table) => table,
                None => self.database.table(name).and_then(|table| self.check_table(&table, Some(timestamp)).map(|()| table))?,
            }
        };
        self.defining.check_not_dropped(found.object_id, || found.object())?;
        self.defining.check_name_is_there(found.object_id, "table", name)?;
        Ok(found)
    }

    /// The index of this name, as [`table`](Self::table).
    ///
    /// # Errors
    /// When there is none.
    pub fn index(&mut self, name: &str) -> Result<Arc<Index>> {
        if let Some(own) = self.defining.index(name) {
            return Ok(Arc::clone(own));
        }
        let found = if self.options.isolation == Isolation::ReadCommitted {
            self.database.index(name)?
        } else {
            let timestamp = self.snapshot()?.timestamp();
            match self.database.index_of_snapshot(name, timestamp)? {
                Some(index) => index,
                None => self.database.index(name).and_then(|index| self.check_index(&index, Some(timestamp)).map(|()| index))?,
            }
        };
        self.defining.check_not_dropped(found.object_id, || found.object())?;
        self.defining.check_name_is_there(found.object_id, "index", name)?;
        Ok(found)
    }

    /// The table of an index, as this transaction has it: it may have another name.
    ///
    /// # Errors
    /// When it is gone, or cannot be opened.
    pub fn table_of_index(&self, index: &Index) -> Result<Arc<Table>> {
        self.defining.table_by_id(index.table_id).map_or_else(|| self.database.table_of(index), |own| Ok(Arc::clone(own)))
    }

    /// The indexes of a table that this transaction can use: for READ COMMITTED the present ones, otherwise those of its snapshot,
    /// also if they were dropped or replaced since by others. Takes the snapshot if there is none.
    ///
    /// # Errors
    /// When only rollback is left; at READ COMMITTED [`Error::Stale`] when the table is there no more.
    pub fn indexes(&mut self, table: &Table) -> Result<Vec<Arc<Index>>> {
        let timestamp = match self.options.isolation {
            Isolation::ReadCommitted => None,
            _ => Some(self.snapshot()?.timestamp()),
        };
        let counts = |index: &&Arc<Index>| {
            let counts = index.lifetime.check(timestamp, self.state.id(), || index.object()).is_ok() && index.damage().is_none();
            counts && !self.defining.has_dropped(index.object_id)
        };
        // A commit that puts another index in the place of one, or another table, comes before all of this or after it.
        let _objects = self.database.objects.read();
        let now = |index: &Arc<Index>| self.defining.index_by_id(index.object_id).unwrap_or(index).clone();
        let mut found: Vec<Arc<Index>> = table.indexes().iter().filter(counts).map(now).collect();
        if timestamp.is_none() {
            self.check_table(table, None)?;
        } else {
            let former = self.database.former.indexes_of(table.object_id);
            let is_new = |index: &&Arc<Index>| found.iter().all(|known| known.object_id != index.object_id);
            let more: Vec<Arc<Index>> = former.iter().filter(counts).filter(is_new).cloned().collect();
            found.extend(more);
        }
        Ok(found)
    }

    /// Refuses a table of another database, and one that does not count for the snapshot of this timestamp; without one, for those taken now.
    #[inline]
    fn check_table(&self, table: &Table, timestamp: Option<u64>) -> Result<()> {
        if !Arc::ptr_eq(&table.core, &self.database.core) {
            return Err(Error::Parameter(format!("{} is of another database", table.object())));
        }
        self.defining.check_not_dropped(table.object_id, || table.object())?;
        self.defining.check_not_altered(table)?;
        table.lifetime.check(timestamp, self.state.id(), || table.object())
    }

    #[inline]
    fn check_index(&self, index: &Index, timestamp: Option<u64>) -> Result<()> {
        if !Arc::ptr_eq(&index.core, &self.database.core) {
            return Err(Error::Parameter(format!("{} is of another database", index.object())));
        }
        self.defining.check_not_dropped(index.object_id, || index.object())?;
        index.lifetime.check(timestamp, self.state.id(), || index.object())?;
        index.check_usable()
    }

    /// As [`check_table`](Self::check_table), of a table and an index of it.
    #[inline]
    fn check_objects(&self, table: &Table, index: &Index, timestamp: Option<u64>) -> Result<()> {
        if index.table_id != table.object_id {
            return Err(Error::Parameter(format!("{} is not one of {}", index.object(), table.object())));
        }
        self.check_table(table, timestamp)?;
        self.check_index(index, timestamp)
    }

    /// What every statement that changes something makes sure of.
    fn prepare(&self, writes: Writes) -> Result<()> {
        self.check()?;
        self.refuse_inside_visitor()?;
        if self.options.read_only {
            return Err(Error::ReadOnly("this transaction".into()));
        }
        self.database.core.check_writable()?;
        self.database.ensure_log()?;
        // A full device is an error of this statement, before it has changed anything.
        let manager = &self.database.core.manager;
        match writes {
            Writes::Anything => self.database.prepare_log(|| manager.prepare_log())?,
            Writes::ToFree(what) => self.database.prepare_log(|| manager.prepare_log_to_free(what))?,
            Writes::Nothing => return Ok(()),
        }
        self.database.keep_log_ahead();
        Ok(())
    }

    /// Runs a statement that changes something in a table; what it did is taken back when it fails.
    fn statement<R>(&mut self, table: &Table, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.statement_that(Writes::Anything, table, run)
    }

    /// The same; on a full device one that frees space has more room in the log, and one that writes nothing needs none.
    fn statement_that<R>(&mut self, writes: Writes, table: &Table, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.prepare(writes)?;
        if self.options.isolation != Isolation::ReadCommitted || self.pin.is_none() {
            self.snapshot()?;
        }
        if self.pin.is_some() {
            self.pin();
        }
        self.lock_within(table)?;
        self.escalate_when_due(table);
        // It is not replaced from now on before the transaction ends, nor does it get an index, or lose one.
        self.check_table(table, None)?;
        if let Some(snapshot) = &self.snapshot {
            self.check_table(table, Some(snapshot.timestamp()))?;
            // The transaction would not find by that index what it changes.
            if table.lost_an_index_after(snapshot.timestamp()) {
                let why = "has lost an index since the snapshot of this transaction, which can change no rows of it any more";
                return Err(Error::Stale { object: table.object(), why });
            }
        }
        // Its damaged indexes do not keep what is about to change.
        self.database.record_damage(table)?;
        let result = self.or_nothing(run);
        self.statement_ends();
        self.database.checkpoint_when_due();
        result
    }

    /// Does something, or nothing when it fails.
    fn or_nothing<R>(&mut self, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let savepoint = self.savepoint();
        let result = run(self);
        if let Err(error) = &result {
            let back = self.take_back(savepoint.last).and_then(|()| self.check_whole());
            if matches!(error, Error::Lock(_) | Error::Conflict { .. } | Error::Serialization(_)) {
                self.failed = Some(error.clone());
            }
            if let Err(error) = back {
                self.database.core.poison(&error);
                self.failed = Some(error);
            }
        }
        result
    }

    /// Under SERIALIZABLE: who changes rows of a table meets the marks of those who have read it and its indexes, but not of those who have read what these replaced. A transaction that has read something since
    /// replaced would have to come before them, and as it has changed something, nobody knows whether it can.
    fn check_objects_read(&self) -> Result<()> {
        let timestamp = self.snapshot.as_ref().map(|snapshot| snapshot.timestamp());
        // One that was altered since, or exchanged, is another one by its name, too.
        let is_other = |lifetime: &Lifetime| {
            let began_later = !lifetime.is_staged() && timestamp.is_some_and(|timestamp| !lifetime.covers(timestamp));
            lifetime.has_ended() || began_later
        };
        let table_ended = |object_id| self.database.table_by_id(object_id).ok().flatten().map(|table| is_other(&table.lifetime));
        let index_ended = |object_id| self.database.index_by_id(object_id).ok().flatten().map(|index| is_other(&index.lifetime));
        let ended = |object_id: u32| table_ended(object_id).or_else(|| index_ended(object_id)).unwrap_or(true);
        match self.read.as_ref().is_some_and(|read| read.any(ended)).then_some(()) {
            Some(()) => {
                let transaction = self.state.id();
                Err(SerializationFailure { transaction, reader: transaction, pivot: transaction, writer: 0 }.into())
            }
            None => Ok(()),
        }
    }

    /// Keeps everybody from replacing the table, until this transaction ends.
    fn lock_within(&mut self, table: &Table) -> Result<()> {
        let object = table.object_id;
        if !self.is_within(object) {
            let core = &self.database.core;
            // Where the table is not one of this database, the lock is no harm.
            let locked = core.locks.lock_within(self.state.id(), object, self.options.lock_timeout);
            if let Err(error) = locked {
                self.failed = Some(error.clone().into());
                return Err(error.into());
            }
            table.writers.begins(self.state.id());
            self.tables.push((object, Arc::clone(&table.writers)));
        }
        Ok(())
    }

    /// Has it begun to change rows of this table?
    fn is_within(&self, object_id: u32) -> bool {
        self.tables.iter().any(|(table, _)| *table == object_id)
    }

    /// It changes no more rows: all that it did was committed at this moment, or taken back.
    fn leave_tables(&self, commit: Option<u64>) {
        for (_, writers) in &self.tables {
            writers.ended(self.state.id(), commit);
        }
    }

    /// A transaction that has locked very many rows and keys asks for the table instead; when others are in it, again when it has twice as many.
    fn escalate_when_due(&mut self, table: &Table) {
        self.statements = self.statements.wrapping_add(1);
        if !self.statements.is_multiple_of(STATEMENTS_PER_LOOK) {
            return;
        }
        let (locks, id) = (&self.database.core.locks, self.state.id());
        let held = locks.held(id);
        if held >= self.escalates_at {
            let indexes = table.indexes();
            let numbers: Vec<u32> = indexes.iter().map(|index| index.object_id).collect();
            let mut escalated = locks.escalate(id, table.object_id, &numbers);
            // Keys that are unique over all partitions are of none of these.
            if let Some(whole) = indexes.iter().find_map(|index| spans(table, index)).filter(|whole| self.wholes.contains(whole)) {
                escalated |= locks.escalate(id, whole, &[whole]);
            }
            self.escalates_at = if escalated { locks.held(id) + self.database.core.row_locks_max } else { 2 * held };
        }
    }

    /// Waits for a lock. One who could not end gives its locks up, too, but then nothing may be built on what it has done.
    fn acquire(&self, resource: Resource) -> Result<()> {
        let core = &self.database.core;
        core.locks.lock_past_removals(self.state.id(), resource, Mode::Exclusive, self.options.lock_timeout)?;
        core.check_writable()
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // An error has poisoned the database; whoever writes next meets it.
        let _ = self.end_by_rollback();
        if !self.tables.is_empty() {
            self.database.core.release_undo_room(&self.state);
        }
    }
}

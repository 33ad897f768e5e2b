//! Transactions: what a program does with rows, all of it or nothing.
//!
//! A transaction reads a snapshot: of the moment in which each statement begins (READ COMMITTED) or in which its first one did (REPEATABLE READ, SERIALIZABLE). Readers never wait. Who changes a
//! row locks it until the transaction ends; who comes second waits, and goes on from what the first one made of it, or, where the snapshot is that of the transaction, gives up with
//! [`Error::Conflict`]: first updater wins. SERIALIZABLE adds the detection of dangerous structures (`crate::transaction::Serializable`).
//!
//! Invariants:
//! - a transaction that is dropped is rolled back;
//! - a statement that fails is taken back alone; after a deadlock, a conflict or a failure of serialization only rollback is left;
//! - a commit is seen by others only when it is as durable as was asked for.

use super::leftovers::key_of;
use super::maintenance::Work;
use super::open::Database;
use crate::btree::Direction;
use crate::index::Index;
use crate::log::Lsn;
use crate::pool::{By, LogSink, MiniTransaction};
use crate::table_space::{RowBuffer, ScanOutcome, Table};
use crate::transaction::{Access, Mode, Resource, Serializable, Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_format::log::{Commit, RecordKind, Undo};
use pagefold_types::{KeyRange, Rid, Value, ValueRef};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

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

/// When a commit returns.
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
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions { isolation: Isolation::default(), durability: Durability::default(), lock_timeout: Duration::from_secs(10) }
    }
}

/// A point to which a transaction can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    last: Lsn,
}

/// A transaction.
#[derive(Debug)]
pub struct Transaction<'d> {
    database: &'d Database,
    state: Arc<TransactionState>,
    options: TransactionOptions,
    /// The snapshot of all statements, except under READ COMMITTED.
    snapshot: Option<Arc<Snapshot>>,
    /// Under READ COMMITTED, of the first statement: while it is held, no RID that a statement has seen comes to mean another row.
    pin: Option<Snapshot>,
    /// It has begun to change rows.
    writes: bool,
    ended: bool,
    /// Why only rollback is left.
    failed: Option<Error>,
}

impl Database {
    /// Begins a transaction.
    #[must_use]
    pub fn begin(&self, options: TransactionOptions) -> Transaction<'_> {
        let state = self.core.transactions.begin();
        Transaction { database: self, state, options, snapshot: None, pin: None, writes: false, ended: false, failed: None }
    }
}

impl<'d> Transaction<'d> {
    /// Its number; never used again.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.state.id()
    }

    /// Inserts a row, with its index entries.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::Conflict`] when the key was given or taken since the snapshot of the transaction; when a value does not fit its column or there is no room; those of
    /// locks. The row is not there then.
    pub fn insert(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Rid> {
        self.statement(|t| {
            let mut record = Vec::new();
            table.build_record(By::Transaction(&t.state), values, &mut record)?;
            let rid = table.insert_record(By::Transaction(&t.state), &record)?;
            t.wrote_row(table, rid)?;
            let mut key = Vec::new();
            for index in t.database.indexes_of(table) {
                key_of(table, &index, &record, &mut key)?;
                t.insert_entry(table, &index, &key, rid)?;
            }
            Ok(rid)
        })
    }

    /// Changes some columns of a row. False when the snapshot has no such row, or another transaction has deleted it meanwhile.
    ///
    /// # Errors
    /// As [`Self::insert`]; [`Error::Conflict`].
    pub fn update(&mut self, table: &Table, rid: Rid, changes: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        self.statement(|t| {
            if !t.lock_row(table, rid)? {
                return Ok(false);
            }
            let mut buffer = RowBuffer::default();
            let Some(before) = table.read(rid, &mut buffer, <[u8]>::to_vec)? else { return Ok(false) };
            let (mut after, mut unused) = (Vec::new(), Vec::new());
            table.changed_record(By::Transaction(&t.state), &before, changes, &mut after, &mut unused)?;
            let (mut old, mut new) = (Vec::new(), Vec::new());
            let indexes = t.database.indexes_of(table);
            for value in unused {
                t.keep(Undo::KeptLargeValue { object_id: table.object_id, value })?;
            }
            if !table.replace_record(By::Transaction(&t.state), rid, &after)? {
                return Ok(false);
            }
            t.wrote_row(table, rid)?;
            for index in indexes {
                key_of(table, &index, &before, &mut old)?;
                key_of(table, &index, &after, &mut new)?;
                if old != new {
                    t.insert_entry(table, &index, &new, rid)?;
                    t.keep(Undo::KeptEntry { object_id: index.object_id, key: &old, rid })?;
                    if let Some(serializable) = t.serializable() {
                        serializable.on_delete_key(t.state.id(), index.object_id, &old)?;
                    }
                }
            }
            Ok(true)
        })
    }

    /// Deletes a row. False when the snapshot has no such row, or another transaction has deleted it meanwhile.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn delete(&mut self, table: &Table, rid: Rid) -> Result<bool> {
        self.statement(|t| {
            let found = t.lock_row(table, rid)? && table.mark_deleted(By::Transaction(&t.state), rid)?;
            if found {
                t.wrote_row(table, rid)?;
            }
            Ok(found)
        })
    }

    /// Locks a row against changes by others until the end of the transaction. False when the snapshot has no such row. Under READ COMMITTED, who chose the row by a condition reads it
    /// again afterwards: it may have been changed or deleted during the wait.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn lock(&mut self, table: &Table, rid: Rid) -> Result<bool> {
        self.statement(|t| t.lock_row(table, rid))
    }

    /// Calls `visit` with the record of a row. `None` when the snapshot has no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn read<R>(&mut self, table: &Table, rid: Rid, buffer: &mut RowBuffer, visit: impl FnMut(&[u8]) -> R) -> Result<Option<R>> {
        let snapshot = self.snapshot()?;
        self.read_noting(table, rid, &snapshot, buffer, visit)
    }

    /// Reads a row, and notes that it was read.
    fn read_noting<R>(
        &self,
        table: &Table,
        rid: Rid,
        snapshot: &Snapshot,
        buffer: &mut RowBuffer,
        visit: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let Some(serializable) = self.serializable() else { return table.read_visible(rid, snapshot, buffer, visit, |_| ()) };
        // The mark comes before the look, as a writer looks for marks after the change: one of the two sees the other.
        serializable.on_read_row(self.state.id(), table.object_id, rid)?;
        let mut unseen = Vec::new();
        let read = table.read_visible(rid, snapshot, buffer, visit, |writer| unseen.push(Arc::clone(writer)))?;
        self.overwritten(&unseen)?;
        Ok(read)
    }

    /// Others have changed what was read in a way that the snapshot does not see.
    fn overwritten(&self, writers: &[Arc<TransactionState>]) -> Result<()> {
        let Some(serializable) = self.serializable() else { return Ok(()) };
        for writer in writers {
            serializable.on_read_of_version_overwritten_by(self.state.id(), writer)?;
        }
        Ok(())
    }

    /// A row was changed: its versions are this transaction's, and who has read it is concerned.
    fn wrote_row(&mut self, table: &Table, rid: Rid) -> Result<()> {
        match self.serializable() {
            Some(serializable) => Ok(serializable.on_write_row(self.state.id(), table.object_id, rid)?),
            None => Ok(()),
        }
    }

    fn serializable(&self) -> Option<&'d Serializable> {
        (self.options.isolation == Isolation::Serializable).then_some(&self.database.core.serializable)
    }

    /// The values of a row; `None` when the snapshot has no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn row(&mut self, table: &Table, rid: Rid) -> Result<Option<Vec<Value>>> {
        let mut buffer = RowBuffer::default();
        self.read(table, rid, &mut buffer, |record| table.values(record))?.transpose()
    }

    /// The RIDs of the rows that have this key, as far as the snapshot sees them.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn find(&mut self, table: &Table, index: &Index, key: &[ValueRef<'_>]) -> Result<Vec<Rid>> {
        let mut bytes = Vec::new();
        index.key_layout().encode(key, &mut bytes).map_err(|e| Error::Value(format!("index \"{}\": {e}", index.name())))?;
        let mut end = bytes.clone();
        let end = pagefold_types::prefix_end(&mut end).then_some(end);
        let mut rids = Vec::new();
        self.range(table, index, KeyRange { start: bytes, end }, Direction::Forward, |rid, _| {
            rids.push(rid);
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        Ok(rids)
    }

    /// Delivers the rows of a range of keys in key order or backward.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn range<E: From<Error>>(
        &mut self,
        table: &Table,
        index: &Index,
        range: KeyRange,
        direction: Direction,
        mut visit: impl FnMut(Rid, &[u8]) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let snapshot = self.snapshot()?;
        if let Some(serializable) = self.serializable() {
            let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            serializable.on_read_range(self.state.id(), index.object_id, Bound::Included(&range.start), end).map_err(Error::from)?;
        }
        let mut buffer = RowBuffer::default();
        let mut cursor = index.tree().range(range, direction);
        let mut own = Vec::new();
        let core = &self.database.core;
        let mut removals = 0;
        loop {
            if cursor.is_between_leaves() {
                removals = core.leftovers.removals();
            }
            let Some((key, rid)) = cursor.next()? else { break };
            // Without versions, and unless it is left of an earlier commit, an entry is the row's; else it may be that of a key which the row had or will have.
            let doubt = core.versions.page_may_have(table.object_id, rid) || core.leftovers.may_be_left(index.object_id, rid, removals);
            let flow = self.read_noting(table, rid, &snapshot, &mut buffer, |record| {
                if doubt {
                    key_of(table, index, record, &mut own)?;
                    if own != key {
                        return Ok(ControlFlow::Continue(()));
                    }
                }
                visit(rid, record)
            })?;
            if flow.transpose()?.is_some_and(|flow| flow.is_break()) {
                return Ok(ScanOutcome::Stopped);
            }
        }
        Ok(ScanOutcome::Complete)
    }

    /// Delivers every row in page order.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn scan<E: From<Error>>(
        &mut self,
        table: &Table,
        visit: impl FnMut(Rid, &[u8]) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let snapshot = self.snapshot()?;
        if let Some(serializable) = self.serializable() {
            serializable.on_read_object(self.state.id(), table.object_id).map_err(Error::from)?;
        }
        let mut unseen: Vec<Arc<TransactionState>> = Vec::new();
        let outcome = table.scan_visible(&snapshot, &mut RowBuffer::default(), visit, |writer| {
            if unseen.iter().all(|known| known.id() != writer.id()) {
                unseen.push(Arc::clone(writer));
            }
        })?;
        self.overwritten(&unseen)?;
        Ok(outcome)
    }

    /// A point to come back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { last: self.state.last_lsn() }
    }

    /// Takes back everything since a savepoint. Locks stay.
    ///
    /// # Errors
    /// When a page or the log cannot be read: the transaction can only be rolled back then.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.check()?;
        self.take_back(savepoint.last).inspect_err(|e| self.failed = Some(e.clone()))
    }

    /// Makes everything durable, and seen by others.
    ///
    /// # Errors
    /// When the log cannot be written: whether the transaction is committed shows when the database is opened again. When only rollback is left.
    pub fn commit(mut self) -> Result<()> {
        self.check()?;
        let core = &self.database.core;
        if let Some(serializable) = self.serializable().filter(|_| self.snapshot.is_some()) {
            serializable.before_commit(self.state.id())?;
        }
        if let Some(end) = self.log_commit()?
            && let Err(error) = self.reach_durability(end)
        {
            // Nobody knows whether it is committed, so nothing more may be built on it.
            core.poison(&error);
            self.ended = true;
            core.locks.release_all(self.state.id());
            return Err(error);
        }
        self.ended = true;
        let serializable = self.serializable().filter(|_| self.snapshot.is_some());
        let rows = self.state.take_rows();
        if rows.is_empty() && serializable.is_none() {
            (self.snapshot, self.pin) = (None, None);
            core.transactions.end_read_only(&self.state);
            core.locks.release_all(self.state.id());
            self.snapshot_ended();
            return Ok(());
        }
        core.transactions.commit(&self.state, |timestamp| {
            if let Some(serializable) = serializable {
                serializable.committed(self.state.id(), timestamp);
            }
            core.leftovers.committed(self.state.id(), timestamp, rows);
        });
        (self.snapshot, self.pin) = (None, None);
        core.locks.release_all(self.state.id());
        // What cannot be removed now is removed later; the commit stands.
        let _ = self.database.remove_leftovers_unless_busy();
        Ok(())
    }

    /// Waits until the commit whose record ends here is as durable as was asked for.
    fn reach_durability(&self, end: Lsn) -> Result<()> {
        let core = &self.database.core;
        let Some(log) = core.log() else { return Ok(()) };
        match self.options.durability {
            Durability::Durable => log.make_durable(end),
            Durability::Relaxed => log.write_out().inspect(|()| _ = core.maintenance.ask(Work::Sync)),
            Durability::Off => Ok(()),
        }
    }

    /// A snapshot of this transaction has ended: perhaps the last one that needed something.
    fn snapshot_ended(&self) {
        let core = &self.database.core;
        if core.leftovers.may_be_there() {
            core.maintenance.ask(Work::Leftovers);
        }
    }

    /// Puts the record of the commit into the log; where that ends. `None` when there is nothing to commit.
    pub(super) fn log_commit(&self) -> Result<Option<Lsn>> {
        let core = &self.database.core;
        let Some(log) = core.log().filter(|_| self.state.last_lsn() != 0) else { return Ok(None) };
        let mut body = Vec::new();
        let mut last_commit_ns = core.last_commit_ns.lock();
        let unix_time_ns = (core.manager.clock().unix_time().as_nanos() as u64).max(*last_commit_ns);
        *last_commit_ns = unix_time_ns;
        Commit { transaction: self.state.id(), unix_time_ns }.encode(&mut body);
        // A checkpoint behind this record must not call the transaction running: recovery would not see the record, and take everything back.
        let place = LogSink::append(log.as_ref(), RecordKind::Commit, &[&body], &mut |_| self.state.note_commit_logged())?;
        Ok(Some(place.end))
    }

    /// Takes everything back.
    ///
    /// # Errors
    /// When a page or the log cannot be read: the rest is taken back when the database is opened again, and until then nothing is written.
    pub fn rollback(mut self) -> Result<()> {
        self.end_by_rollback()
    }

    fn end_by_rollback(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let core = &self.database.core;
        if let Some(serializable) = self.serializable().filter(|_| self.snapshot.is_some()) {
            serializable.aborted(self.state.id());
        }
        (self.snapshot, self.pin) = (None, None);
        if let Err(error) = self.take_back(0).and_then(|()| self.database.log_rolled_back(&self.state)) {
            core.poison(&error);
            core.locks.release_all(self.state.id());
            return Err(error);
        }
        core.transactions.abort(&self.state);
        core.locks.release_all(self.state.id());
        self.snapshot_ended();
        Ok(())
    }

    fn take_back(&self, until: Lsn) -> Result<()> {
        // First the list: a checkpoint in between must not have what is not left any more, while a transaction without an end is taken back wholly after a crash.
        self.database.core.leftovers.taken_back(self.state.id(), until);
        self.database.take_back(&self.state, until)
    }

    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// The snapshot of a statement.
    fn snapshot(&mut self) -> Result<Arc<Snapshot>> {
        self.check()?;
        if let Some(snapshot) = &self.snapshot {
            return Ok(Arc::clone(snapshot));
        }
        let core = &self.database.core;
        if self.options.isolation == Isolation::ReadCommitted {
            self.pin.get_or_insert_with(|| core.transactions.pin());
        }
        let snapshot = Arc::new(match self.serializable() {
            Some(serializable) => serializable.begin(&self.state, Access::ReadWrite),
            None => core.transactions.snapshot(self.state.id()),
        });
        if self.options.isolation != Isolation::ReadCommitted {
            self.snapshot = Some(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }

    /// Runs a statement that changes something; what it did is taken back when it fails.
    fn statement<R>(&mut self, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.check()?;
        self.database.core.check_writable()?;
        if !self.writes {
            self.database.core.activity.begin_writing()?;
            self.writes = true;
        }
        self.database.ensure_log()?;
        // A full device is an error of this statement, before it has changed anything.
        self.database.core.manager.prepare_log()?;
        if self.options.isolation != Isolation::ReadCommitted || self.pin.is_none() {
            self.snapshot()?;
        }
        let savepoint = self.savepoint();
        let result = run(self);
        if let Err(error) = &result {
            let back = self.take_back(savepoint.last);
            if matches!(error, Error::Lock(_) | Error::Conflict { .. } | Error::Serialization(_)) {
                self.failed = Some(error.clone());
            }
            if let Err(error) = back {
                self.database.core.poison(&error);
                self.failed = Some(error);
            }
        }
        self.database.checkpoint_when_due();
        result
    }

    /// Waits for a lock. One who could not end gives its locks up, too, but then nothing may be built on what it has done.
    fn acquire(&self, resource: Resource) -> Result<()> {
        let core = &self.database.core;
        core.locks.lock(self.state.id(), resource, Mode::Exclusive, self.options.lock_timeout)?;
        core.check_writable()
    }

    /// Locks a row for change. False when the snapshot does not see it.
    fn lock_row(&mut self, table: &Table, rid: Rid) -> Result<bool> {
        let core = &self.database.core;
        if let Some(serializable) = self.serializable() {
            serializable.on_read_row(self.state.id(), table.object_id, rid)?;
        }
        self.acquire(Resource::Row(table.object_id, rid))?;
        let Some(snapshot) = self.snapshot.clone() else { return Ok(true) };
        match core.versions.newest(table.object_id, rid) {
            Some(writer) if !snapshot.sees(&writer) => {
                // What it cannot see it cannot change; what it sees and somebody has changed since, neither.
                let seen = table.read_visible(rid, &snapshot, &mut RowBuffer::default(), |_| (), |_| ())?;
                if seen.is_some() { Err(Error::Conflict { object: table.name().into(), rid }) } else { Ok(false) }
            }
            _ => Ok(true),
        }
    }

    /// Adds an index entry; in a unique index, when no living row has the key.
    fn insert_entry(&mut self, table: &Table, index: &Index, key: &[u8], rid: Rid) -> Result<()> {
        let tree = index.tree();
        if index.attributes().unique && !index.has_null(key) {
            self.acquire(Resource::Key(index.object_id, xxh3_64(key)))?;
            let mut cursor = tree.key_cursor(key);
            let (mut own, mut taken) = (Vec::new(), false);
            while let Some((_, other)) = cursor.next()? {
                if other == rid {
                    continue;
                }
                // Whoever changes that row just now decides whether the key is taken.
                self.acquire(Resource::Row(table.object_id, other))?;
                let found = table.read(other, &mut RowBuffer::default(), |record| key_of(table, index, record, &mut own))?;
                let is_taken = found.transpose()?.is_some() && own == key;
                self.check_key(table, index, key, other, is_taken)?;
                taken |= is_taken;
            }
            if taken {
                return Err(index.duplicate(key));
            }
        }
        // It may be there: left by an earlier key of this row, which is its key again.
        if !tree.contains(key, rid)? {
            tree.insert_by(By::Transaction(&self.state), key, rid, false)?;
        }
        match self.serializable() {
            Some(serializable) => Ok(serializable.on_insert_key(self.state.id(), index.object_id, key)?),
            None => Ok(()),
        }
    }

    /// A row that has a key, or had it, is looked at as it is now, not as the snapshot has it. A conflict when the transaction would otherwise see the key twice; under SERIALIZABLE also when
    /// it would learn of a row that came after its snapshot.
    fn check_key(&self, table: &Table, index: &Index, key: &[u8], rid: Rid, is_taken: bool) -> Result<()> {
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        if let Some(serializable) = self.serializable() {
            serializable.on_read_row(self.state.id(), table.object_id, rid)?;
        }
        if self.database.core.versions.newest(table.object_id, rid).is_none_or(|writer| snapshot.sees(&writer)) {
            return Ok(());
        }
        let conflicts = if is_taken {
            self.serializable().is_some()
        } else {
            let mut own = Vec::new();
            let visible = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
            table.read_visible(rid, snapshot, &mut RowBuffer::default(), visible, |_| ())?.transpose()?.unwrap_or(false)
        };
        if conflicts { Err(Error::Conflict { object: table.name().into(), rid }) } else { Ok(()) }
    }

    /// Notes something that stays until the commit and goes after it.
    fn keep(&self, undo: Undo<'_>) -> Result<()> {
        if let Some(left) = undo.leaves() {
            self.database.core.leftovers.enter(&self.state, left);
        }
        let mut mtr = MiniTransaction::begin(&self.database.core.manager);
        mtr.set_undo(By::Transaction(&self.state), undo);
        mtr.commit().map(drop)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // An error has poisoned the database; whoever writes next meets it.
        let _ = self.end_by_rollback();
        if self.writes {
            self.database.core.reservations.release(self.state.id());
            self.database.core.activity.end_writing();
        }
    }
}

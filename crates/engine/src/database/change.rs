//! A change of what is in the database: atomic, by fresh data sets beside the live ones.
//!
//! A change is a transaction. Order of a commit: data sets of new objects are flushed and synced, then the directory; what comes and what goes is logged, then the commit, and the log is made durable. That is
//! the commit. The catalog on disk follows with the next checkpoint. Old data sets are removed when nobody needs them any more (`former`).
//!
//! Invariants:
//! - of a table that is dropped or replaced, or gets or loses an index, nobody changes a row between the moment when that is asked for and the end of the change: it is locked as a whole; but for an index that is built (`index_build`) or a table that is written anew beside writers (`table_build`);
//! - nothing that the catalog names is changed before the commit;
//! - a change that is dropped without commit leaves no file behind; after a crash the next writer removes what it left.

use super::defining::{Definer, Defining};
use super::index_build::{BuildCounts, IndexBuild, others};
use super::open::Database;
use super::read_view::ReadView;
use super::shadow::Target;
use super::table_build::{DRAIN, PAUSE, TableBuild, TableBuildCounts};
use crate::catalog::{IndexEntry, TableEntry};
use crate::data_set::{DataSet, DataSetEntry};
use crate::directory::DATA_DIRECTORY;
use crate::index::{Index, IndexAttributes};
use crate::pool::Frees;
use crate::table_space::{Table, TableAttributes};
use crate::transaction::{LockError, Mode, Resource, TransactionState};
use crate::{Error, Progress, Result, Unit};
use pagefold_io::{Clock, OsClock};
use pagefold_types::{KeyLayout, KeyRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Until a lock is asked for again that nobody seems to have.
const MOMENT: Duration = Duration::from_millis(5);

/// A change that is being prepared.
#[derive(Debug)]
pub struct Change<'a> {
    database: &'a Database,
    state: Arc<TransactionState>,
    lock_timeout: Duration,
    defining: Defining,
    /// Of each index that is built beside writers: is it complete?
    builds: Vec<Arc<AtomicBool>>,
    /// Tables that are written anew: those who change their rows write into new ones of this change.
    rewritten: Vec<Arc<Table>>,
    /// It is committed, or nobody knows.
    ended: bool,
}

impl<'a> Change<'a> {
    pub(super) fn new(database: &'a Database, lock_timeout: Duration) -> Change<'a> {
        let state = database.core.transactions.begin();
        Change { database, state, lock_timeout, defining: Defining::default(), builds: Vec::new(), rewritten: Vec::new(), ended: false }
    }

    pub(super) fn database(&self) -> &'a Database {
        self.database
    }

    /// Its number as a transaction.
    pub(super) fn transaction_id(&self) -> u64 {
        self.state.id()
    }

    /// Does something to the set of tables and indexes, or nothing if it fails.
    pub(super) fn define<R>(&mut self, define: impl FnOnce(&mut Defining, Definer<'_>) -> Result<R>) -> Result<R> {
        self.database.core.check_writable()?;
        let len = self.defining.len();
        let by = Definer { database: self.database, state: &self.state, lock_timeout: self.lock_timeout };
        let defined = define(&mut self.defining, by);
        if defined.is_err() {
            self.defining.truncate(self.database, len);
        }
        defined
    }

    /// Waits until no other transaction that has changed something in the table runs; from then on none does before the end of this change. The table that has the name then.
    ///
    /// # Errors
    /// When there is none of this name; when the lock cannot be had in time, or waiting for it would be a deadlock.
    pub fn lock_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.define(|_, by| by.lock_live_table(name))
    }

    /// What the change sees: what is committed now, and what it has made.
    #[must_use]
    pub fn read_view(&self) -> ReadView {
        let snapshot = Arc::new(self.database.core.transactions.snapshot(self.state.id()));
        ReadView::new(&self.database.state, &self.state, snapshot, None, self.defining.all_dropped())
    }

    /// A new table. It may have the name of one that this change drops.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub fn create_table(&mut self, attributes: TableAttributes) -> Result<Arc<Table>> {
        self.define(|defining, by| defining.create_table(by, attributes))
    }

    /// A new, empty index of a table, live or of this change. It may have the name of one that this change drops.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub fn create_index(&mut self, table: &Table, attributes: IndexAttributes) -> Result<Arc<Index>> {
        self.define(|defining, by| defining.create_index(by, table, attributes, None))
    }

    /// A new, empty index of a live table, to be built beside transactions that change rows of it: from now on their changes are noted. One at a time for each table; who would drop or replace the table
    /// meanwhile is refused.
    ///
    /// # Errors
    /// When there is no such table, the name is taken or an attribute is out of range; [`Error::Busy`] when another index of the table is being built; those of locks.
    pub fn begin_index(&mut self, table: &str, attributes: IndexAttributes) -> Result<IndexBuild> {
        self.begin_build(table, attributes, None)
    }

    /// The same, of an index that is to replace the live one of its name: [`Self::replace_index`] comes last.
    ///
    /// # Errors
    /// As [`Self::begin_index`].
    pub fn begin_index_again(&mut self, attributes: IndexAttributes) -> Result<IndexBuild> {
        let old = self.database.index(&attributes.name)?;
        let table = self.database.table_of(&old)?;
        self.begin_build(table.name(), attributes, Some(&old))
    }

    /// Drops the index that another one is to replace, which is complete. Its table is locked as a whole for that, as in [`Self::finish_table`], and the commit is to come at once.
    ///
    /// # Errors
    /// As [`Self::drop_index`]; [`Error::Interrupted`].
    pub fn replace_index(&mut self, name: &str, patience: Option<Duration>, progress: &dyn Progress) -> Result<Arc<Index>> {
        let table = self.database.table_of(&*self.database.index(name)?)?;
        self.drain(&[table], patience, progress, || Ok(()))?;
        self.define(|defining, by| defining.replace_index(by, name))
    }

    fn begin_build(&mut self, table: &str, attributes: IndexAttributes, replaced: Option<&Arc<Index>>) -> Result<IndexBuild> {
        let complete = Arc::new(AtomicBool::new(false));
        let (state, id) = (Arc::clone(&self.state), self.state.id());
        let build = self.define(|defining, by| {
            let database = &by.database;
            let found = database.table(table)?;
            found.begin_build(id, format!("index \"{}\" of {} is being built", attributes.name, found.object()))?;
            let begun = by.lock_within_live_table(table).and_then(|locked| {
                let is_there = replaced.is_none_or(|old| database.index(old.name()).is_ok_and(|live| Arc::ptr_eq(&live, old)));
                if !(Arc::ptr_eq(&locked, &found) && is_there) {
                    return Err(Error::Busy(format!("{} was replaced just now", found.object())));
                }
                defining.create_index_beside(by, &locked, attributes, replaced.map(|index| &**index))
            });
            let index = begun.inspect_err(|_| found.end_build(id))?;
            Ok((found, index))
        });
        let (table, index) = build?;
        self.builds.push(Arc::clone(&complete));
        Ok(IndexBuild::begin(&self.database.state, &state, table, index, complete))
    }

    /// A table that is written anew beside transactions that change rows of it, with these attributes and the indexes that it has: from now on
    /// rows that change are noted. `old` is the live table of this name. One at a time for each table; who would drop or replace the table, or
    /// index it, meanwhile is refused.
    ///
    /// # Errors
    /// [`Error::Busy`] when the table was replaced just now, or something else of it is being built; when an attribute is out of range; those of locks.
    pub fn begin_table_again(&mut self, old: &Arc<Table>, attributes: TableAttributes) -> Result<TableBuild> {
        self.begin_tables_again(std::slice::from_ref(old), None, |defining, by| {
            let notes = (*old.notes()).clone();
            let table = defining.create_table_beside(by, &[old.object_id], TableAttributes { notes, ..attributes })?;
            Ok(vec![(table, old.all_indexes().iter().map(|index| index.attributes_now()).collect())])
        })
    }

    /// Tables, each with what its indexes are to be, in the place of live ones. With ranges: one table for each.
    pub(super) fn begin_tables_again(
        &mut self,
        olds: &[Arc<Table>],
        ranges: Option<(KeyLayout, Vec<KeyRange>)>,
        make: impl FnOnce(&mut Defining, Definer<'_>) -> Result<Vec<(Arc<Table>, Vec<IndexAttributes>)>>,
    ) -> Result<TableBuild> {
        let complete = Arc::new(AtomicBool::new(false));
        let (state, id) = (Arc::clone(&self.state), self.state.id());
        let built = self.define(|defining, by| {
            let begun = olds.iter().try_for_each(|old| {
                old.begin_build(id, format!("{} is being written anew", old.object()))?;
                match Arc::ptr_eq(&by.lock_within_live_table(old.name())?, old) {
                    true => Ok(()),
                    false => Err(Error::Busy(format!("{} was replaced just now", old.object()))),
                }
            });
            let replaced: Vec<Arc<Index>> = olds.iter().flat_map(|old| old.all_indexes()).collect();
            let filled = begun.and_then(|()| make(defining, by)).and_then(|made| {
                let with_indexes = |(table, indexes): (Arc<Table>, Vec<IndexAttributes>)| {
                    let again = |attributes: IndexAttributes| {
                        let old = replaced.iter().find(|old| old.name() == attributes.name);
                        let index = defining.create_index_beside(by, &table, attributes, old.map(|old| &**old))?;
                        table.add_index(&index);
                        Ok(index)
                    };
                    let indexes = indexes.into_iter().map(again).collect::<Result<_>>()?;
                    Ok(Target { table, indexes })
                };
                made.into_iter().map(with_indexes).collect::<Result<Vec<_>>>()
            });
            // It may be that not all were begun: the others are of somebody else.
            filled.inspect_err(|_| olds.iter().for_each(|old| old.end_build(id)))
        });
        let targets = built?;
        self.builds.push(Arc::clone(&complete));
        self.rewritten.extend(olds.iter().cloned());
        Ok(TableBuild::begin(&self.database.state, &state, (olds.to_vec(), targets), ranges, complete))
    }

    /// What was written of a table and its indexes so far is on disk from now on, and named by the log: then [`Self::finish_table`] can follow.
    ///
    /// # Errors
    /// When a write fails; as [`TableBuild::settle`].
    pub fn define_table(&mut self, build: &mut TableBuild, progress: &dyn Progress) -> Result<()> {
        if build.is_filling() {
            // What the log does not name, recovery does not know: the first partition is named before it has a file.
            for target in build.targets() {
                if target.table.data_sets().next().is_none() {
                    target.table.add_partition()?;
                }
            }
            // Most of what was noted is settled before its pages are logged.
            build.settle(progress)?;
            build.is_about_to_be_defined();
            self.define_built()?;
            build.is_defined();
        }
        Ok(())
    }

    /// Does all that is left to be done for tables after they were filled, and their indexes were built. Writers go on beside it; then they are kept out, and the commit of the change is to come at once. `patience`: how long those are waited for who have changed something in
    /// the table, with pauses in which all go on; the lock timeout of the change, if nothing is said.
    ///
    /// # Errors
    /// [`Error::Lock`] when others do not end in time; [`Error::Interrupted`]; when a row does not fit, or there is no room. Nothing but dropping the change is left then.
    pub fn finish_table(
        &mut self,
        build: &mut TableBuild,
        patience: Option<Duration>,
        progress: &dyn Progress,
    ) -> Result<TableBuildCounts> {
        self.define_table(build, progress)?;
        let olds = build.olds().to_vec();
        let names = olds.iter().map(|old| old.name()).collect::<Vec<_>>().join(", ");
        progress.start(&format!("what changed while {names} was written anew"), Some(build.noted()), Unit::Rows);
        if !build.is_complete() {
            self.drain(&olds, patience, progress, || {
                build.drains();
                build.settle(progress)
            })?;
            build.settle_last()?;
        }
        self.define(|defining, by| olds.iter().try_for_each(|old| defining.replace_table(by, old)))?;
        progress.finish();
        Ok(build.counts())
    }

    /// Locks tables as a whole that others change, all at once: for moments, with pauses in which all go on. Before each of them `prepare` is called, and what others have logged is made durable, so
    /// that the commit, for which they wait, has little to wait for.
    pub(super) fn drain(
        &self,
        tables: &[Arc<Table>],
        patience: Option<Duration>,
        progress: &dyn Progress,
        mut prepare: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let (locks, id) = (&self.database.core.locks, self.state.id());
        let (patience, began) = (patience.unwrap_or(self.lock_timeout), OsClock.monotonic());
        locks.yield_in_deadlocks(id);
        loop {
            prepare()?;
            if let Some(log) = self.database.core.log() {
                log.make_durable(log.end())?;
            }
            match self.lock_wholes(tables, DRAIN.min(patience)) {
                Ok(()) => return Ok(()),
                Err(error) if OsClock.monotonic().saturating_sub(began) >= patience => return Err(error.into()),
                Err(_) => self.pause(tables, progress)?,
            }
        }
    }

    /// Locks tables as a whole, that are locked within, or none of them. All of it takes so long at most.
    fn lock_wholes(&self, tables: &[Arc<Table>], timeout: Duration) -> std::result::Result<(), LockError> {
        let (locks, id) = (&self.database.core.locks, self.state.id());
        let end = OsClock.monotonic() + timeout;
        for (at, table) in tables.iter().enumerate() {
            let left = end.saturating_sub(OsClock.monotonic()).min(timeout);
            if let Err(error) = locks.lock_whole(id, table.object_id, Mode::Exclusive, left) {
                self.stop_locking(&tables[..at])?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn stop_locking(&self, tables: &[Arc<Table>]) -> std::result::Result<(), LockError> {
        let (locks, id) = (&self.database.core.locks, self.state.id());
        tables.iter().try_for_each(|table| {
            locks.release_wholly(id, Resource::Object(table.object_id));
            // Nobody gets it as a whole for long: who would alter it is refused while it is built anew.
            locks.lock_within(id, table.object_id, self.lock_timeout)
        })
    }

    /// Nobody else gives a row a key that is unique over all partitions of a table, until the end of the change.
    pub(super) fn lock_keys_of_all(&self, whole: u32) -> Result<()> {
        Ok(self.database.core.locks.lock_whole(self.state.id(), whole, Mode::Exclusive, self.lock_timeout)?)
    }

    /// Others change tables again that were locked as a whole.
    pub(super) fn stop_draining(&self, tables: &[Arc<Table>]) -> Result<()> {
        Ok(self.stop_locking(tables)?)
    }

    /// Lets all go on, for [`PAUSE`] or until those who have changed something in the tables have ended.
    fn pause(&self, tables: &[Arc<Table>], progress: &dyn Progress) -> Result<()> {
        let (locks, end) = (&self.database.core.locks, OsClock.monotonic() + PAUSE);
        let mut users: Vec<u64> = tables.iter().flat_map(|table| others(&self.database.state, table, &self.state)).collect();
        if users.is_empty() {
            // It was something else that was in the way, for a moment.
            OsClock.sleep(MOMENT);
        }
        loop {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let left = end.saturating_sub(OsClock.monotonic());
            if users.is_empty() || left.is_zero() {
                return Ok(());
            }
            // It returns whenever somebody ends.
            locks.wait_for_end(&users, left);
            let still: Vec<u64> = tables.iter().flat_map(|table| locks.users_of(table.object_id)).collect();
            users.retain(|user| still.contains(user));
        }
    }

    /// What was filled into an index so far is on disk from now on, and named by the log: then [`IndexBuild::switch`] and [`IndexBuild::complete`] can follow.
    ///
    /// # Errors
    /// When a write fails.
    pub fn define_index(&mut self, build: &mut IndexBuild) -> Result<()> {
        if build.is_filling() {
            self.define_built()?;
            build.is_defined();
        }
        Ok(())
    }

    fn define_built(&mut self) -> Result<()> {
        self.database.core.check_writable()?;
        self.database.ensure_log()?;
        self.write_staged()?;
        self.database.core.manager.prepare_log()?;
        self.defining.log(self.database, &self.state, true)
    }

    /// Does all that is left to be done for an index after it was filled. Waits so long at most for transactions that have changed rows of the table before the switch.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::Lock`] when others do not end in time; [`Error::Interrupted`]; when there is no room. Nothing but dropping the change is left then.
    pub fn finish_index(&mut self, build: &mut IndexBuild, patience: Duration, progress: &dyn Progress) -> Result<BuildCounts> {
        self.define_index(build)?;
        progress.start(&format!("what changed while index {} was built", build.index().name()), Some(build.noted()), Unit::Rows);
        build.until(patience, progress, |build| build.switch(progress))?;
        build.until(patience, progress, |build| build.complete(progress))?;
        progress.finish();
        Ok(build.counts())
    }

    /// Drops a table and its indexes; what was dropped, which can still be read.
    ///
    /// # Errors
    /// As [`Self::lock_table`]; when it is damaged and cannot be read.
    pub fn drop_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.define(|defining, by| {
            let table = defining.drop_table(by, name)?;
            table.check_usable().map(|()| table)
        })
    }

    /// Drops a table and its indexes, whatever state they are in; what was dropped, of which nothing is to be read.
    ///
    /// # Errors
    /// As [`Self::lock_table`].
    pub fn drop_unread_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.define(|defining, by| defining.drop_table(by, name))
    }

    /// Drops an index; what was dropped.
    ///
    /// # Errors
    /// When there is none of this name; as [`Self::lock_table`].
    pub fn drop_index(&mut self, name: &str) -> Result<Arc<Index>> {
        self.define(|defining, by| {
            let index = defining.drop_index(by, name)?;
            defining.check_alone(by, &index).map(|()| index)
        })
    }

    /// A copy of a live table that takes its place: its pages are copied as they are, so RIDs stay. Add the indexes with [`Self::fork_index`].
    ///
    /// # Errors
    /// When there is no such table, or a page is damaged.
    pub fn fork_table(&mut self, name: &str) -> Result<Arc<Table>> {
        let old = self.drop_table(name)?;
        if old.attributes_now().layouts.are_several() {
            return Err(Error::Parameter(format!("{}: its columns have changed; its pages are copied only after a REORG", old.object())));
        }
        let fresh = self.create_table(old.attributes_now())?;
        // Table and indexes are copied one after the other: what is left in them stays until then.
        let _held = self.database.core.leftovers.hold();
        for data_set in old.data_sets() {
            let copy = fresh.add_partition()?;
            copy.copy_pages(data_set, &self.database.core.manager, &mut |_| Ok(()))?;
        }
        fresh.load_dictionaries()?;
        fresh.check_dictionaries()?;
        Ok(fresh)
    }

    /// A copy of a live index for a table that [`Self::fork_table`] gave.
    ///
    /// # Errors
    /// When there is no such index, or a page is damaged.
    pub fn fork_index(&mut self, name: &str, table: &Table) -> Result<Arc<Index>> {
        let old = self.database.index(name)?;
        let fresh = self.create_index(table, old.attributes_now())?;
        if old.data_set.is_defined() {
            fresh.data_set.copy_pages(&old.data_set, &self.database.core.manager, &mut |_| Ok(()))?;
        }
        Ok(fresh)
    }

    /// Makes the change durable and seen.
    ///
    /// # Errors
    /// When a write fails: the database is then as before. When the log cannot be made durable, only opening the database again tells whether the change happened; until
    /// then nothing more is written.
    pub fn commit(mut self) -> Result<()> {
        let core = &self.database.core;
        core.check_writable()?;
        self.check_indexes_are_built()?;
        self.database.ensure_log()?;
        // What the log does not name, recovery does not know: the first partition is named before it has a file.
        for table in self.defining.tables() {
            if table.data_sets().next().is_none() {
                table.add_partition()?;
            }
        }
        let staged = self.write_staged()?;
        let makes_none = self.defining.tables().next().is_none() && self.defining.indexes().next().is_none();
        if makes_none {
            core.manager.prepare_log_to_free(Frees::Objects)?;
        } else {
            core.manager.prepare_log()?;
        }
        let defining = self.database.defining.write();
        // From here on their changes are logged.
        staged.iter().for_each(|data_set| data_set.set_logged());
        self.defining.log(self.database, &self.state, false)?;
        if let Some(end) = core.log_commit(&self.state)?
            && let Err(error) = core.log().map_or(Ok(()), |log| log.make_durable(end))
        {
            // It may have happened: its files stay until the next open has seen whether.
            self.ended = true;
            core.poison(&error);
            core.locks.release_all(self.state.id());
            return Err(error);
        }
        self.ended = true;
        let id = self.state.id();
        self.database.publish(&self.state, &mut self.defining, |timestamp| core.leftovers.committed(id, timestamp, Vec::new()));
        drop(defining);
        core.release_undo_room(&self.state);
        core.locks.release_all(self.state.id());
        let is_built = staged.iter().any(|data_set| data_set.is_defined());
        drop(staged);
        // What cannot be removed now is removed later; the commit stands.
        let _ = self.database.remove_leftovers_unless_busy();
        self.database.sweep_former();
        if is_built {
            // It took long as it is, and recovery has the less to do. What keeps it from being written is met by whoever writes next.
            let _ = self.database.checkpoint();
        } else {
            self.database.checkpoint_when_due();
        }
        Ok(())
    }

    /// Writes and syncs what is being made and the log does not name yet.
    fn write_staged(&self) -> Result<Vec<Arc<DataSet>>> {
        let core = &self.database.core;
        let staged = self.staged_data_sets();
        for data_set in staged.iter().filter(|data_set| !data_set.is_logged()) {
            core.manager.flush(data_set)?;
        }
        if staged.iter().any(|data_set| data_set.is_defined()) {
            core.storage.sync_directory(&core.directory.join(DATA_DIRECTORY))?;
        }
        Ok(staged)
    }

    /// Refuses an index that lacks rows: queries would believe it. It may have more, of old keys that some snapshot needs. One that was built beside writers says itself whether it is complete: rows come and go just now.
    fn check_indexes_are_built(&self) -> Result<()> {
        if self.builds.iter().any(|complete| !complete.load(Ordering::Acquire)) {
            return Err(Error::Parameter("an index is not complete: finish it before the commit".into()));
        }
        for (index, table) in self.defining.indexes_with_tables().filter(|(index, _)| !index.data_set.is_logged()) {
            let (entries, rows) = (index.data_set.facts().rows, table.row_count());
            if entries < rows {
                let (index, table) = (index.object(), table.object());
                return Err(Error::Parameter(format!("{index} has {entries} entries, {table} {rows} rows: build it before the commit")));
            }
        }
        Ok(())
    }

    fn staged_data_sets(&self) -> Vec<Arc<DataSet>> {
        let of_tables = self.defining.tables().flat_map(|table| table.data_sets().cloned());
        of_tables.chain(self.defining.indexes().map(|index| Arc::clone(&index.data_set))).collect()
    }

    fn roll_back(&mut self) {
        // Nobody writes into what is about to go.
        self.rewritten.iter().for_each(|old| *old.gate.close() = None);
        let core = &self.database.core;
        core.leftovers.taken_back(self.state.id(), 0);
        let taken_back = self.database.take_back(&self.state, 0).and_then(|()| self.database.log_rolled_back(&self.state));
        if let Err(error) = taken_back {
            core.poison(&error);
        }
        self.database.definitions.ended(self.state.id());
        self.defining.truncate(self.database, 0);
        core.transactions.abort(&self.state);
        core.release_undo_room(&self.state);
        core.locks.release_all(self.state.id());
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.roll_back();
            self.database.sweep_former();
        }
    }
}

fn data_set_entry(data_set: &DataSet) -> DataSetEntry {
    DataSetEntry {
        file_id: data_set.file_id(),
        partition: data_set.attributes.partition,
        // One without a header is made by recovery: the log has all of it.
        header_writes: data_set.is_defined().then(|| data_set.header_writes()).filter(|writes| *writes > 0),
    }
}

pub(super) fn table_entry(table: &Table) -> TableEntry {
    let data_sets = table.data_sets().map(|d| data_set_entry(d)).collect();
    TableEntry { object_id: table.object_id, attributes: table.attributes_now(), data_sets }
}

pub(super) fn index_entry(index: &Index) -> IndexEntry {
    let data_sets = vec![index.found.unwrap_or_else(|| data_set_entry(&index.data_set))];
    let damaged = index.recorded_damage().map(str::to_owned);
    IndexEntry { object_id: index.object_id, table_id: index.table_id, attributes: index.attributes_now(), data_sets, damaged }
}

//! A change of what is in the database: atomic, by fresh data sets beside the live ones.
//!
//! A change is a transaction. Order of a commit: data sets of new objects are flushed and synced, then the directory; what comes and what goes is logged, then the commit, and the log is made durable. That is
//! the commit. The catalog on disk follows with the next checkpoint. Old data sets are removed when nobody needs them any more (`former`).
//!
//! Invariants:
//! - of a table that is dropped or replaced, or gets or loses an index, nobody changes a row between the moment when that is asked for and the end of the change: it is locked as a whole;
//! - nothing that the catalog names is changed before the commit;
//! - a change that is dropped without commit leaves no file behind; after a crash the next writer removes what it left.

use super::former::{Lifetime, Replaced};
use super::objects::{CATALOG_OBJECT, Objects};
use super::open::Database;
use crate::catalog::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry, index_definition, table_definition};
use crate::core::DATA_DIRECTORY;
use crate::data_set::DataSet;
use crate::index::{Index, IndexAttributes};
use crate::table_space::{Table, TableAttributes};
use crate::transaction::{Mode, Resource, TransactionState};
use crate::{Error, Result};
use pagefold_format::data_set_header::ObjectKind;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A change that is being prepared.
#[derive(Debug)]
pub struct Change<'a> {
    database: &'a Database,
    state: Arc<TransactionState>,
    lock_timeout: Duration,
    replaced: Replaced,
    /// Names of what it has made.
    made: HashSet<(ObjectKind, String)>,
    /// Numbers of what it has dropped.
    dropped: HashSet<u32>,
    /// It is committed, or nobody knows.
    ended: bool,
}

impl<'a> Change<'a> {
    pub(super) fn new(database: &'a Database, lock_timeout: Duration) -> Change<'a> {
        let state = database.core.transactions.begin();
        Change { database, state, lock_timeout, replaced: Replaced::default(), made: HashSet::new(), dropped: HashSet::new(), ended: false }
    }

    fn check(&self) -> Result<()> {
        self.database.core.check_writable()
    }

    /// Waits until no other transaction that has changed something in the table runs; from then on none does before the end of this change. The table that has the name then.
    ///
    /// # Errors
    /// When there is none of this name; when the lock cannot be had in time, or waiting for it would be a deadlock.
    pub fn lock_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.check()?;
        loop {
            let table = self.database.table(name)?;
            self.lock_whole(&table)?;
            // It may have been replaced while it was waited for.
            if self.database.table(name).is_ok_and(|live| Arc::ptr_eq(&live, &table)) {
                return Ok(table);
            }
        }
    }

    fn lock_whole(&self, table: &Table) -> Result<()> {
        let core = &self.database.core;
        Ok(core.locks.lock_whole(self.state.id(), table.object_id, Mode::Exclusive, self.lock_timeout)?)
    }

    /// Waits until no other change gives this name to something, or takes it away.
    fn lock_name(&self, name: &str) -> Result<()> {
        let core = &self.database.core;
        let key = Resource::Key(CATALOG_OBJECT, xxhash_rust::xxh3::xxh3_64(name.as_bytes()));
        core.locks.lock_past_removals(self.state.id(), key, Mode::Exclusive, self.lock_timeout)?;
        Ok(())
    }

    /// Takes a name that nothing has, unless this change drops it.
    fn take_name(&mut self, kind: ObjectKind, what: &'static str, name: &str, live: impl Fn(&Objects) -> Option<u32>) -> Result<()> {
        self.lock_name(name)?;
        let live = live(&self.database.objects.read());
        let is_taken = live.is_some_and(|object_id| !self.dropped.contains(&object_id));
        if is_taken || !self.made.insert((kind, name.into())) {
            return Err(Error::Exists { kind: what, name: name.into() });
        }
        Ok(())
    }

    /// A new table. It may have the name of one that this change drops.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub fn create_table(&mut self, attributes: TableAttributes) -> Result<Arc<Table>> {
        self.check()?;
        let core = Arc::clone(&self.database.core);
        let object_id = core.take_object_id();
        let mut table = Table::create(core, object_id, attributes)?;
        table.lifetime = Lifetime::staged();
        let live = |objects: &Objects| Some(objects.tables.get(table.name())?.object_id);
        self.take_name(ObjectKind::Table, "table", table.name(), live)?;
        let table = Arc::new(table);
        self.replaced.tables.push(Arc::clone(&table));
        Ok(table)
    }

    /// A new, empty index of a table, live or of this change. It may have the name of one that this change drops.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub fn create_index(&mut self, table: &Table, attributes: IndexAttributes) -> Result<Arc<Index>> {
        self.check()?;
        if table.lifetime.is_staged() {
            // It can only be used here if it was made here.
            if !self.made.contains(&(ObjectKind::Table, table.name().into())) {
                return Err(Error::Parameter(format!("{} is of another change", table.object())));
            }
        } else {
            self.lock_whole(table)?;
            table.lifetime.check(None, || table.object())?;
        }
        let core = Arc::clone(&self.database.core);
        let object_id = core.take_object_id();
        let mut index = Index::create(core, object_id, table.object_id, &table.attributes().schema, attributes)?;
        index.lifetime = Lifetime::staged();
        let live = |objects: &Objects| Some(objects.indexes.get(index.name())?.object_id);
        self.take_name(ObjectKind::Index, "index", index.name(), live)?;
        let index = Arc::new(index);
        self.replaced.indexes.push(Arc::clone(&index));
        Ok(index)
    }

    /// Drops a table and its indexes; what was dropped.
    ///
    /// # Errors
    /// As [`Self::lock_table`].
    pub fn drop_table(&mut self, name: &str) -> Result<Arc<Table>> {
        let table = self.lock_table(name)?;
        self.lock_name(name)?;
        for index in self.database.indexes_of(&table) {
            self.forget_index(index)?;
        }
        if self.dropped.insert(table.object_id) {
            self.replaced.dropped_tables.push(Arc::clone(&table));
        }
        Ok(table)
    }

    /// Drops an index; what was dropped.
    ///
    /// # Errors
    /// When there is none of this name; as [`Self::lock_table`].
    pub fn drop_index(&mut self, name: &str) -> Result<Arc<Index>> {
        self.check()?;
        loop {
            let index = self.database.index(name)?;
            self.lock_whole(&*self.database.table_of(&index)?)?;
            if self.database.index(name).is_ok_and(|live| Arc::ptr_eq(&live, &index)) {
                self.forget_index(Arc::clone(&index))?;
                return Ok(index);
            }
        }
    }

    fn forget_index(&mut self, index: Arc<Index>) -> Result<()> {
        self.lock_name(index.name())?;
        if self.dropped.insert(index.object_id) {
            self.replaced.dropped_indexes.push(index);
        }
        Ok(())
    }

    /// A copy of a live table that takes its place: its pages are copied as they are, so RIDs stay. Add the indexes with [`Self::fork_index`].
    ///
    /// # Errors
    /// When there is no such table, or a page is damaged.
    pub fn fork_table(&mut self, name: &str) -> Result<Arc<Table>> {
        let old = self.drop_table(name)?;
        let fresh = self.create_table(old.attributes().clone())?;
        // Table and indexes are copied one after the other: what is left in them stays until then.
        let _held = self.database.core.leftovers.hold();
        for data_set in old.partitions() {
            let copy = fresh.add_partition()?;
            copy.copy_pages(data_set, &self.database.core.manager)?;
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
        self.forget_index(Arc::clone(&old))?;
        let fresh = self.create_index(table, old.attributes().clone())?;
        if old.data_set.is_defined() {
            fresh.data_set.copy_pages(&old.data_set, &self.database.core.manager)?;
        }
        Ok(fresh)
    }

    /// Makes the change durable and seen.
    ///
    /// # Errors
    /// When a write fails: the database is then as before. When the log cannot be made durable, only opening the database again tells whether the change happened; until
    /// then nothing more is written.
    pub fn commit(mut self) -> Result<()> {
        self.check()?;
        let core = &self.database.core;
        self.database.ensure_log()?;
        // What the log does not name, recovery does not know: the first partition is named before it has a file.
        for table in &self.replaced.tables {
            if table.partitions().next().is_none() {
                table.add_partition()?;
            }
        }
        let staged = self.staged_data_sets();
        for data_set in &staged {
            core.manager.flush(data_set)?;
        }
        if staged.iter().any(|data_set| data_set.is_defined()) {
            core.storage.sync_directory(&core.directory.join(DATA_DIRECTORY))?;
        }
        core.manager.prepare_log()?;
        let defining = self.database.defining.write();
        // From here on their changes are logged.
        staged.iter().for_each(|data_set| data_set.set_logged());
        self.log_definitions()?;
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
        let replaced = std::mem::take(&mut self.replaced);
        let mut objects = self.database.objects.write();
        core.transactions.commit(&self.state, |timestamp| {
            self.database.former.replaced(&replaced, timestamp);
            objects.replace(&replaced);
        });
        drop(objects);
        self.database.catalog_is_old.store(true, Ordering::Release);
        self.database.definitions.ended(self.state.id());
        drop(defining);
        core.release_undo_room(&self.state);
        core.locks.release_all(self.state.id());
        let is_built = staged.iter().any(|data_set| data_set.is_defined());
        drop((staged, replaced));
        self.database.sweep_former();
        if is_built {
            // It took long as it is, and recovery has the less to do. What keeps it from being written is met by whoever writes next.
            let _ = self.database.checkpoint();
        } else {
            self.database.checkpoint_when_due();
        }
        Ok(())
    }

    fn log_definitions(&self) -> Result<()> {
        let Replaced { tables, indexes, dropped_tables, dropped_indexes } = &self.replaced;
        let dropped = dropped_indexes.iter().map(|index| index.object_id).chain(dropped_tables.iter().map(|table| table.object_id));
        for object_id in dropped {
            self.database.log_definition(&self.state, object_id, None)?;
        }
        for table in tables {
            self.database.log_definition(&self.state, table.object_id, Some(table_definition(&table_entry(table))?))?;
        }
        for index in indexes {
            self.database.log_definition(&self.state, index.object_id, Some(index_definition(&index_entry(index))?))?;
        }
        Ok(())
    }

    fn staged_data_sets(&self) -> Vec<Arc<DataSet>> {
        let of_tables = self.replaced.tables.iter().flat_map(|table| table.partitions().cloned());
        of_tables.chain(self.replaced.indexes.iter().map(|index| Arc::clone(&index.data_set))).collect()
    }

    fn roll_back(&self) {
        let core = &self.database.core;
        let taken_back = self.database.take_back(&self.state, 0).and_then(|()| self.database.log_rolled_back(&self.state));
        if let Err(error) = taken_back {
            core.poison(&error);
        }
        self.database.definitions.ended(self.state.id());
        core.transactions.abort(&self.state);
        core.release_undo_room(&self.state);
        core.locks.release_all(self.state.id());
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.roll_back();
            self.database.former.leave(self.staged_data_sets());
            self.replaced = Replaced::default();
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

fn table_entry(table: &Table) -> TableEntry {
    let data_sets = table.partitions().map(|d| data_set_entry(d)).collect();
    TableEntry { object_id: table.object_id, attributes: table.attributes.clone(), data_sets }
}

fn index_entry(index: &Index) -> IndexEntry {
    let data_sets = vec![data_set_entry(&index.data_set)];
    IndexEntry { object_id: index.object_id, table_id: index.table_id, attributes: index.attributes.clone(), data_sets }
}

/// What the catalog is to say.
pub(super) fn entries(objects: &Objects) -> CatalogEntries {
    CatalogEntries {
        tables: objects.tables.values().map(|table| table_entry(table)).collect(),
        indexes: objects.indexes.values().map(|index| index_entry(index)).collect(),
    }
}

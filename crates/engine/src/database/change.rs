//! A change of what is in the database: atomic, by fresh data sets beside the live ones.
//!
//! A change is a transaction. Order of a commit: data sets of new objects are flushed and synced, then the directory; what comes and what goes is logged, then the commit, and the log is made durable. That is
//! the commit. The catalog on disk follows with the next checkpoint. Old data sets are removed when nobody needs them any more (`former`).
//!
//! Invariants:
//! - of a table that is dropped or replaced, or gets or loses an index, nobody changes a row between the moment when that is asked for and the end of the change: it is locked as a whole;
//! - nothing that the catalog names is changed before the commit;
//! - a change that is dropped without commit leaves no file behind; after a crash the next writer removes what it left.

use super::defining::{Definer, Defining};
use super::objects::Objects;
use super::open::Database;
use crate::catalog::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry};
use crate::core::DATA_DIRECTORY;
use crate::data_set::DataSet;
use crate::index::{Index, IndexAttributes};
use crate::table_space::{Table, TableAttributes};
use crate::transaction::TransactionState;
use crate::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// A change that is being prepared.
#[derive(Debug)]
pub struct Change<'a> {
    database: &'a Database,
    state: Arc<TransactionState>,
    lock_timeout: Duration,
    defining: Defining,
    /// It is committed, or nobody knows.
    ended: bool,
}

impl<'a> Change<'a> {
    pub(super) fn new(database: &'a Database, lock_timeout: Duration) -> Change<'a> {
        let state = database.core.transactions.begin();
        Change { database, state, lock_timeout, defining: Defining::default(), ended: false }
    }

    /// Does something to the set of tables and indexes, or nothing if it fails.
    fn define<R>(&mut self, define: impl FnOnce(&mut Defining, Definer<'_>) -> Result<R>) -> Result<R> {
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
        self.define(|defining, by| defining.create_index(by, table, attributes))
    }

    /// Drops a table and its indexes; what was dropped.
    ///
    /// # Errors
    /// As [`Self::lock_table`].
    pub fn drop_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.define(|defining, by| defining.drop_table(by, name))
    }

    /// Drops an index; what was dropped.
    ///
    /// # Errors
    /// When there is none of this name; as [`Self::lock_table`].
    pub fn drop_index(&mut self, name: &str) -> Result<Arc<Index>> {
        self.define(|defining, by| defining.drop_index(by, name))
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
        let core = &self.database.core;
        core.check_writable()?;
        self.check_indexes_are_built()?;
        self.database.ensure_log()?;
        // What the log does not name, recovery does not know: the first partition is named before it has a file.
        for table in self.defining.tables() {
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
        self.database.publish(&self.state, &mut self.defining, |_| ());
        drop(defining);
        core.release_undo_room(&self.state);
        core.locks.release_all(self.state.id());
        let is_built = staged.iter().any(|data_set| data_set.is_defined());
        drop(staged);
        self.database.sweep_former();
        if is_built {
            // It took long as it is, and recovery has the less to do. What keeps it from being written is met by whoever writes next.
            let _ = self.database.checkpoint();
        } else {
            self.database.checkpoint_when_due();
        }
        Ok(())
    }

    /// Refuses an index that lacks rows: queries would believe it. It may have more, of old keys that some snapshot needs.
    fn check_indexes_are_built(&self) -> Result<()> {
        for (index, table) in self.defining.indexes_with_tables() {
            let (entries, rows) = (index.data_set.facts().rows, table.row_count());
            if entries < rows {
                let (index, table) = (index.object(), table.object());
                return Err(Error::Parameter(format!("{index} has {entries} entries, {table} {rows} rows: build it before the commit")));
            }
        }
        Ok(())
    }

    fn staged_data_sets(&self) -> Vec<Arc<DataSet>> {
        let of_tables = self.defining.tables().flat_map(|table| table.partitions().cloned());
        of_tables.chain(self.defining.indexes().map(|index| Arc::clone(&index.data_set))).collect()
    }

    fn roll_back(&mut self) {
        let core = &self.database.core;
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
    let data_sets = table.partitions().map(|d| data_set_entry(d)).collect();
    TableEntry { object_id: table.object_id, attributes: table.attributes.clone(), data_sets }
}

pub(super) fn index_entry(index: &Index) -> IndexEntry {
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

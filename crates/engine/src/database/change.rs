//! A change of what is in the database: atomic, by fresh data sets beside the live ones.
//!
//! Order of a commit: data sets of new objects are flushed and synced; a complete new catalog is written as a fresh data set and synced; the directory is synced; the log, if there is one, is told
//! (what follows means nothing to a copy of before: `crate::backup`); the other control slot is written and synced. That is the commit. Old data sets are removed when nobody needs them any more
//! (`former`).
//!
//! Invariants:
//! - nothing that the current control slot names is changed before the commit;
//! - a change that is dropped without commit leaves no file behind; after a crash the next writer removes what it left.

use super::control_file::write_control;
use super::former::{Lifetime, Replaced};
use super::objects::Objects;
use super::open::{Database, control_state, unknown, write_catalog_data_set};
use crate::catalog::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry};
use crate::core::DATA_DIRECTORY;
use crate::data_set::DataSet;
use crate::index::{Index, IndexAttributes};
use crate::table_space::{Table, TableAttributes};
use crate::{Error, Result};
use std::sync::Arc;

/// A change that is being prepared.
#[derive(Debug)]
pub struct Change<'a> {
    database: &'a Database,
    replaced: Replaced,
    /// The control slot is being written, or has been.
    in_doubt: bool,
    /// Why nothing can be changed now: transactions are running.
    refused: Option<Error>,
}

impl<'a> Change<'a> {
    pub(super) fn new(database: &'a Database) -> Change<'a> {
        let refused = database.core.activity.begin_change().err();
        Change { database, replaced: Replaced::default(), in_doubt: false, refused }
    }

    fn check(&self) -> Result<()> {
        self.refused.clone().map_or(Ok(()), Err)?;
        self.database.core.check_writable()
    }

    /// A new table. It may have the name of one that this change drops.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub fn create_table(&mut self, attributes: TableAttributes) -> Result<Arc<Table>> {
        self.check()?;
        let name = &attributes.name;
        let live = self.database.objects.read().tables.contains_key(name);
        if (live && !self.replaced.dropped_tables.iter().any(|t| t.name() == name)) || self.replaced.tables.iter().any(|t| t.name() == name)
        {
            return Err(Error::Exists { kind: "table", name: name.clone() });
        }
        let core = Arc::clone(&self.database.core);
        let object_id = core.take_object_id();
        let mut table = Table::create(core, object_id, attributes)?;
        table.lifetime = Lifetime::staged();
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
        let name = &attributes.name;
        let live = self.database.objects.read().indexes.contains_key(name);
        if (live && !self.replaced.dropped_indexes.iter().any(|i| i.name() == name))
            || self.replaced.indexes.iter().any(|i| i.name() == name)
        {
            return Err(Error::Exists { kind: "index", name: name.clone() });
        }
        let core = Arc::clone(&self.database.core);
        let object_id = core.take_object_id();
        let mut index = Index::create(core, object_id, table.object_id, &table.attributes().schema, attributes)?;
        index.lifetime = Lifetime::staged();
        let index = Arc::new(index);
        self.replaced.indexes.push(Arc::clone(&index));
        Ok(index)
    }

    /// Drops a table and its indexes.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.check()?;
        let table = self.database.table(name)?;
        for index in self.database.indexes_of(&table) {
            if !self.replaced.dropped_indexes.iter().any(|i| Arc::ptr_eq(i, &index)) {
                self.replaced.dropped_indexes.push(index);
            }
        }
        self.replaced.dropped_tables.push(table);
        Ok(())
    }

    /// Drops an index.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn drop_index(&mut self, name: &str) -> Result<()> {
        self.check()?;
        self.replaced.dropped_indexes.push(self.database.index(name)?);
        Ok(())
    }

    /// A copy of a live table that takes its place: its pages are copied as they are, so RIDs stay. Add the indexes with [`Self::fork_index`].
    ///
    /// # Errors
    /// When there is no such table, or a page is damaged.
    pub fn fork_table(&mut self, name: &str) -> Result<Arc<Table>> {
        let old = self.database.table(name)?;
        self.drop_table(name)?;
        let fresh = self.create_table(old.attributes().clone())?;
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
        if !self.replaced.dropped_indexes.iter().any(|i| Arc::ptr_eq(i, &old)) {
            self.replaced.dropped_indexes.push(Arc::clone(&old));
        }
        let fresh = self.create_index(table, old.attributes().clone())?;
        if old.data_set.is_defined() {
            fresh.data_set.copy_pages(&old.data_set, &self.database.core.manager)?;
        }
        Ok(fresh)
    }

    /// Makes the change durable and seen.
    ///
    /// # Errors
    /// When a write fails: the database is then as before. When writing the control slot itself fails, only opening it again tells whether the change happened; until
    /// then nothing more is written.
    pub fn commit(mut self) -> Result<()> {
        self.check()?;
        let core = &self.database.core;
        // What the catalog does not name, recovery does not know: the first partition is named before it has a file.
        for table in &self.replaced.tables {
            if table.partitions().next().is_none() {
                table.add_partition()?;
            }
        }
        let staged = self.staged_data_sets();
        for data_set in &staged {
            core.manager.flush(data_set)?;
        }
        let mut objects = self.database.objects.write();
        let next = self.next_objects(&objects)?;
        let catalog = write_catalog_data_set(core, &entries(&next))?;
        if let Err(error) = core.storage.sync_directory(&core.directory.join(DATA_DIRECTORY)) {
            let _ = core.drop_data_set(&catalog);
            return Err(error.into());
        }
        let passage = core.pass().inspect_err(|_| drop(core.drop_data_set(&catalog)))?;
        if let Err(error) = self.database.log_catalog(catalog.file_id()) {
            let _ = core.drop_data_set(&catalog);
            return Err(error);
        }
        let control = control_state(core, objects.control.sequence + 1, &catalog);
        // From here on the change may have happened, whatever is reported: its files stay until the next open has seen which.
        self.in_doubt = true;
        if let Err(error) = write_control(core.storage.as_ref(), &core.directory, &control) {
            core.poison(&error);
            return Err(error);
        }
        drop(passage);
        // From here on nothing can fail the change.
        staged.iter().for_each(|data_set| data_set.set_logged());
        let replaced = std::mem::take(&mut self.replaced);
        let mut old = None;
        core.transactions.commit_definitions(|timestamp| {
            self.database.former.replaced(&replaced, timestamp);
            old = Some(std::mem::replace(&mut *objects, Objects { control, catalog, ..next }));
            objects.tell_tables();
        });
        drop(objects);
        self.database.former.leave(old.map(|old| old.catalog));
        drop((staged, replaced));
        self.database.sweep_former();
        Ok(())
    }

    fn staged_data_sets(&self) -> Vec<Arc<DataSet>> {
        let of_tables = self.replaced.tables.iter().flat_map(|table| table.partitions().cloned());
        of_tables.chain(self.replaced.indexes.iter().map(|index| Arc::clone(&index.data_set))).collect()
    }

    fn next_objects(&self, current: &Objects) -> Result<Objects> {
        let mut next = current.clone();
        for table in &self.replaced.dropped_tables {
            if !next.tables.remove(table.name()) {
                return Err(unknown("table", table.name(), next.tables.keys()));
            }
        }
        for index in &self.replaced.dropped_indexes {
            if !next.indexes.remove(index.name()) {
                return Err(unknown("index", index.name(), next.indexes.keys()));
            }
        }
        for table in &self.replaced.tables {
            if !next.tables.insert(Arc::clone(table)) {
                return Err(Error::Exists { kind: "table", name: table.name().into() });
            }
        }
        for index in &self.replaced.indexes {
            if !next.indexes.insert(Arc::clone(index)) {
                return Err(Error::Exists { kind: "index", name: index.name().into() });
            }
        }
        Ok(next)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if self.refused.is_none() {
            self.database.core.activity.end_change();
        }
        if !self.in_doubt {
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

fn entries(objects: &Objects) -> CatalogEntries {
    CatalogEntries {
        tables: objects
            .tables
            .values()
            .map(|table| TableEntry {
                object_id: table.object_id,
                attributes: table.attributes.clone(),
                data_sets: table.partitions().map(|d| data_set_entry(d)).collect(),
            })
            .collect(),
        indexes: objects
            .indexes
            .values()
            .map(|index| IndexEntry {
                object_id: index.object_id,
                table_id: index.table_id,
                attributes: index.attributes.clone(),
                data_sets: vec![data_set_entry(&index.data_set)],
            })
            .collect(),
    }
}

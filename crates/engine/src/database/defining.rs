//! What one transaction does to the set of tables and indexes: makes some, drops some.
//!
//! Invariants:
//! - a name that the transaction gives or takes away is locked, and a table that it drops or indexes is locked as a whole, until the transaction ends;
//! - what it has made is found by it alone, what it has dropped by everybody else; both change with the commit;
//! - nothing is logged here by itself: a transaction logs what a statement has defined at its end, a change of whole data sets when these are written.

use super::change::{index_entry, table_entry};
use super::definitions::Staged;
use super::former::{Lifetime, Replaced};
use super::objects::CATALOG_OBJECT;
use super::open::DatabaseState;
use crate::catalog::{index_definition, table_definition};
use crate::data_set::DataSet;
use crate::index::{Index, IndexAttributes};
use crate::log::Lsn;
use crate::table_space::{Table, TableAttributes};
use crate::transaction::{Mode, Resource, TransactionState};
use crate::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// Who defines, and how long it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definer<'a> {
    pub(super) database: &'a DatabaseState,
    pub(super) state: &'a Arc<TransactionState>,
    pub(super) lock_timeout: Duration,
}

impl Definer<'_> {
    /// Waits until no other transaction that has changed something in the table runs; from then on none does before the end of this one.
    pub(super) fn lock_whole(&self, table: &Table) -> Result<()> {
        let core = &self.database.core;
        table.check_no_build(self.state.id())?;
        Ok(core.locks.lock_whole(self.state.id(), table.object_id, Mode::Exclusive, self.lock_timeout)?)
    }

    /// Waits until no other transaction gives this name to something, or takes it away.
    fn lock_name(&self, name: &str) -> Result<()> {
        let core = &self.database.core;
        let key = Resource::Key(CATALOG_OBJECT, xxhash_rust::xxh3::xxh3_64(name.as_bytes()));
        core.locks.lock_past_removals(self.state.id(), key, Mode::Exclusive, self.lock_timeout)?;
        Ok(())
    }

    /// Locks the live table of a name as a whole, and gives the one that has the name then.
    pub(super) fn lock_live_table(&self, name: &str) -> Result<Arc<Table>> {
        loop {
            let table = self.database.table(name)?;
            self.lock_whole(&table)?;
            // It may have been replaced while it was waited for.
            if self.database.table(name).is_ok_and(|live| Arc::ptr_eq(&live, &table)) {
                return Ok(table);
            }
        }
    }

    /// Waits until nobody has the live table of a name as a whole; from then on nobody gets it so before the end of this one. Others change its rows.
    pub(super) fn lock_within_live_table(&self, name: &str) -> Result<Arc<Table>> {
        loop {
            let table = self.database.table(name)?;
            self.database.core.locks.lock_within(self.state.id(), table.object_id, self.lock_timeout)?;
            if self.database.table(name).is_ok_and(|live| Arc::ptr_eq(&live, &table)) {
                return Ok(table);
            }
        }
    }

    /// Locks the table of the live index of a name.
    fn lock_live_index(&self, name: &str) -> Result<Arc<Index>> {
        loop {
            let index = self.database.index(name)?;
            self.lock_whole(&*self.database.table_of(&index)?)?;
            if self.database.index(name).is_ok_and(|live| Arc::ptr_eq(&live, &index)) {
                return Ok(index);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Defined {
    Table(Arc<Table>),
    /// Of a table.
    Index(Arc<Index>, Arc<Table>),
    DroppedTable(Arc<Table>),
    DroppedIndex(Arc<Index>),
}

/// What a transaction has defined.
#[derive(Debug, Default)]
pub(super) struct Defining {
    /// In this order; each with the start of the transaction's record before it.
    done: Vec<(Lsn, Defined)>,
    /// How many of them are logged.
    logged: usize,
}

impl Defining {
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// How much it has defined.
    pub(super) fn len(&self) -> usize {
        self.done.len()
    }

    /// Has it dropped the object of this number?
    pub(super) fn has_dropped(&self, object_id: u32) -> bool {
        self.done.iter().any(|(_, defined)| match defined {
            Defined::DroppedTable(table) => table.object_id == object_id,
            Defined::DroppedIndex(index) => index.object_id == object_id,
            Defined::Table(_) | Defined::Index(..) => false,
        })
    }

    /// Tables that it has made and not dropped.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let made = self.done.iter().filter_map(|(_, defined)| if let Defined::Table(table) = defined { Some(table) } else { None });
        made.filter(|table| !self.has_dropped(table.object_id))
    }

    /// Indexes that it has made and not dropped.
    pub(super) fn indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes_with_tables().map(|(index, _)| index)
    }

    /// The same, each with its table.
    pub(super) fn indexes_with_tables(&self) -> impl Iterator<Item = (&Arc<Index>, &Arc<Table>)> {
        let made = self.done.iter().filter_map(|(_, defined)| match defined {
            Defined::Index(index, table) => Some((index, table)),
            _ => None,
        });
        made.filter(|(index, _)| !self.has_dropped(index.object_id))
    }

    /// The table that it has made and that has this name.
    pub(super) fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables().find(|table| table.name() == name)
    }

    /// The index that it has made and that has this name.
    pub(super) fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes().find(|index| index.name() == name)
    }

    /// Locks a name that no table and no index has, unless this transaction has dropped it, or will have done so at its end (`replaced`).
    fn take_name(&self, by: Definer<'_>, name: &str, replaced: Option<&Index>) -> Result<()> {
        by.lock_name(name)?;
        let objects = by.database.objects.read();
        let table = objects.tables.get(name).map(|table| table.object_id);
        let index = objects.indexes.get(name).map(|index| index.object_id);
        for (kind, own, live) in [("table", self.table(name).is_some(), table), ("index", self.index(name).is_some(), index)] {
            let is_replaced = |object_id| self.has_dropped(object_id) || replaced.is_some_and(|index| index.object_id == object_id);
            if own || live.is_some_and(|object_id| !is_replaced(object_id)) {
                return Err(Error::Exists { kind, name: name.into() });
            }
        }
        Ok(())
    }

    fn note(&mut self, by: Definer<'_>, defined: Defined) {
        self.done.push((by.state.last_lsn(), defined));
    }

    /// A new table, not logged yet.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub(super) fn create_table(&mut self, by: Definer<'_>, attributes: TableAttributes) -> Result<Arc<Table>> {
        let core = Arc::clone(&by.database.core);
        let mut table = Table::create(Arc::clone(&core), core.take_object_id(), attributes)?;
        table.lifetime = Lifetime::staged(by.state.id(), 0);
        self.take_name(by, table.name(), None)?;
        let table = Arc::new(table);
        self.note(by, Defined::Table(Arc::clone(&table)));
        Ok(table)
    }

    /// A new, empty index of a table, not logged yet. The table is locked as a whole before anything is read for it.
    ///
    /// # Errors
    /// When the table is not there for this transaction, the name is taken or an attribute is out of range.
    pub(super) fn create_index(&mut self, by: Definer<'_>, table: &Table, attributes: IndexAttributes) -> Result<Arc<Index>> {
        if !table.lifetime.is_staged() {
            by.lock_whole(table)?;
        }
        let table = self.must_be_there(by, table)?;
        // Nobody else changes the table any more: who looks at it as it was before must not take this index.
        let from = if table.lifetime.is_staged() { 0 } else { by.database.core.transactions.last_commit() };
        self.note_index(by, table, attributes, from, None)
    }

    /// The same, of a table that is locked within only: others change its rows meanwhile. It may have the name of one that it is to replace, with [`Self::replace_index`].
    ///
    /// # Errors
    /// As [`Self::create_index`].
    pub(super) fn create_index_beside(
        &mut self,
        by: Definer<'_>,
        table: &Arc<Table>,
        attributes: IndexAttributes,
        replaced: Option<&Index>,
    ) -> Result<Arc<Index>> {
        let table = self.must_be_there(by, table)?;
        self.note_index(by, table, attributes, 0, replaced)
    }

    fn note_index(
        &mut self,
        by: Definer<'_>,
        table: Arc<Table>,
        attributes: IndexAttributes,
        from: u64,
        replaced: Option<&Index>,
    ) -> Result<Arc<Index>> {
        let core = Arc::clone(&by.database.core);
        let mut index = Index::create(Arc::clone(&core), core.take_object_id(), table.object_id, &table.attributes().schema, attributes)?;
        index.lifetime = Lifetime::staged(by.state.id(), from);
        self.take_name(by, index.name(), replaced)?;
        let index = Arc::new(index);
        self.note(by, Defined::Index(Arc::clone(&index), table));
        Ok(index)
    }

    /// The table, which is live or of this transaction, and not dropped by it.
    fn must_be_there(&self, by: Definer<'_>, table: &Table) -> Result<Arc<Table>> {
        table.lifetime.check(None, by.state.id(), || table.object())?;
        self.check_not_dropped(table.object_id, || table.object())?;
        let own = self.tables().find(|own| own.object_id == table.object_id);
        let found = own.cloned().or_else(|| by.database.table_by_id(table.object_id));
        found
            .filter(|found| std::ptr::eq(&**found, table))
            .ok_or_else(|| Error::Parameter(format!("{} is of another database", table.object())))
    }

    /// Refuses what this transaction has dropped.
    #[inline]
    pub(super) fn check_not_dropped(&self, object_id: u32, object: impl FnOnce() -> String) -> Result<()> {
        if !self.is_empty() && self.has_dropped(object_id) {
            return Err(Error::Stale { object: object(), why: "was dropped by this transaction" });
        }
        Ok(())
    }

    /// Drops the table of a name, live or of this transaction, with its indexes.
    ///
    /// # Errors
    /// When there is none; those of locks. Some of its indexes may be dropped then.
    pub(super) fn drop_table(&mut self, by: Definer<'_>, name: &str) -> Result<Arc<Table>> {
        let table = match self.table(name) {
            Some(own) => Arc::clone(own),
            None => by.lock_live_table(name)?,
        };
        self.check_not_dropped(table.object_id, || table.object())?;
        by.lock_name(name)?;
        for index in self.indexes_of(&table) {
            self.forget_index(by, &index)?;
        }
        self.note(by, Defined::DroppedTable(Arc::clone(&table)));
        Ok(table)
    }

    /// Drops the index of a name, live or of this transaction.
    ///
    /// # Errors
    /// As [`Self::drop_table`].
    pub(super) fn drop_index(&mut self, by: Definer<'_>, name: &str) -> Result<Arc<Index>> {
        let index = match self.index(name) {
            Some(own) => Arc::clone(own),
            None => by.lock_live_index(name)?,
        };
        self.check_not_dropped(index.object_id, || index.object())?;
        self.forget_index(by, &index)?;
        Ok(index)
    }

    /// Drops the live index of a name, though this transaction has made another one.
    ///
    /// # Errors
    /// As [`Self::drop_table`].
    pub(super) fn replace_index(&mut self, by: Definer<'_>, name: &str) -> Result<Arc<Index>> {
        let index = by.lock_live_index(name)?;
        self.forget_index(by, &index)?;
        Ok(index)
    }

    fn forget_index(&mut self, by: Definer<'_>, index: &Arc<Index>) -> Result<()> {
        by.lock_name(index.name())?;
        self.note(by, Defined::DroppedIndex(Arc::clone(index)));
        Ok(())
    }

    /// Logs what was defined since the last time. `staged`: the pages of what is made are logged from now on, and undo finds it.
    ///
    /// # Errors
    /// When a name is too long for the catalog, or the log has no room.
    pub(super) fn log(&mut self, database: &DatabaseState, state: &Arc<TransactionState>, staged: bool) -> Result<()> {
        for (_, defined) in &self.done[self.logged..] {
            let (object_id, rows, made) = match defined {
                Defined::Table(table) => {
                    (table.object_id, Some(table_definition(&table_entry(table))?), Some(Staged::Table(Arc::clone(table))))
                }
                Defined::Index(index, _) => {
                    (index.object_id, Some(index_definition(&index_entry(index))?), Some(Staged::Index(Arc::clone(index))))
                }
                Defined::DroppedTable(table) => (table.object_id, None, None),
                Defined::DroppedIndex(index) => (index.object_id, None, None),
            };
            database.log_definition(state, object_id, rows, made.filter(|_| staged))?;
            self.logged += 1;
        }
        Ok(())
    }

    /// Indexes of a table as this transaction has them.
    pub(super) fn indexes_of(&self, table: &Table) -> Vec<Arc<Index>> {
        let indexes = table.indexes();
        let of_table = self.indexes().filter(|index| index.table_id == table.object_id);
        let unknown: Vec<_> = of_table.filter(|own| !indexes.iter().any(|index| Arc::ptr_eq(index, own))).cloned().collect();
        indexes.iter().filter(|index| !self.has_dropped(index.object_id)).cloned().chain(unknown).collect()
    }

    /// Forgets what came after the first `len`, which is taken back in the log.
    pub(super) fn truncate(&mut self, database: &DatabaseState, len: usize) {
        self.logged = self.logged.min(len);
        for (_, defined) in self.done.drain(len.min(self.done.len())..).rev() {
            match defined {
                Defined::Table(table) => {
                    table.lifetime.withdraw();
                    database.former.leave(table.partitions().cloned());
                }
                Defined::Index(index, table) => {
                    index.lifetime.withdraw();
                    table.remove_index(&index);
                    database.former.leave([Arc::clone(&index.data_set)]);
                }
                Defined::DroppedTable(_) | Defined::DroppedIndex(_) => {}
            }
        }
    }

    /// As [`Self::truncate`]: everything behind the transaction's record at `until` is taken back.
    pub(super) fn taken_back(&mut self, database: &DatabaseState, until: Lsn) {
        if !self.is_empty() {
            self.truncate(database, self.done.partition_point(|(after, _)| *after < until));
        }
    }

    /// What a commit makes of it, and data sets that are left of what was made and dropped again.
    fn outcome(&self) -> (Replaced, Vec<Arc<DataSet>>) {
        let (mut replaced, mut left) = (Replaced::default(), Vec::new());
        for (_, defined) in &self.done {
            match defined {
                Defined::Table(table) if self.has_dropped(table.object_id) => left.extend(table.partitions().cloned()),
                Defined::Index(index, table) if self.has_dropped(index.object_id) => {
                    table.remove_index(index);
                    left.push(Arc::clone(&index.data_set));
                }
                Defined::Table(table) => replaced.tables.push(Arc::clone(table)),
                Defined::Index(index, _) => replaced.indexes.push(Arc::clone(index)),
                Defined::DroppedTable(table) if table.lifetime.is_staged() => {}
                Defined::DroppedIndex(index) if index.lifetime.is_staged() => {}
                Defined::DroppedTable(table) => replaced.dropped_tables.push(Arc::clone(table)),
                Defined::DroppedIndex(index) => replaced.dropped_indexes.push(Arc::clone(index)),
            }
        }
        (replaced, left)
    }
}

impl DatabaseState {
    /// Publishes the commit of a transaction that has defined something, in the order of commits. To be called with `defining` held for writing since before the record of the commit.
    pub(super) fn publish(&self, state: &TransactionState, defining: &mut Defining, at_commit: impl FnOnce(u64)) {
        let (replaced, left) = defining.outcome();
        let mut objects = self.objects.write();
        self.core.transactions.commit(state, |timestamp| {
            at_commit(timestamp);
            self.former.replaced(&replaced, timestamp);
            objects.replace(&replaced, timestamp);
        });
        drop(objects);
        self.catalog_is_old.store(true, std::sync::atomic::Ordering::Release);
        self.definitions.ended(state.id());
        self.former.leave(left);
        *defining = Defining::default();
    }
}

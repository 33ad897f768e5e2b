//! What one transaction does to the set of tables and indexes: makes some, drops some.
//!
//! Invariants:
//! - a name that the transaction gives or takes away is locked, and a table that it drops or indexes is locked as a whole, until the transaction ends;
//! - what it has made is found by it alone, what it has dropped by everybody else; both change with the commit;
//! - nothing is logged here by itself: a transaction logs what a statement has defined at its end, a change of whole data sets when these are written.

use super::change::{index_entry, table_entry};
use super::definitions::Staged;
use super::open::DatabaseState;
use crate::catalog::{self, IndexEntry, OtherEntry, TableEntry, index_definition, other_definition, read_definition, table_definition};
use crate::core::Lifetime;
use crate::data_set::DataSet;
use crate::index::{Index, IndexAttributes};
use crate::log::Lsn;
use crate::names::check_name;
use crate::objects::{CATALOG_OBJECT, Replaced};
use crate::steps::step;
use crate::table_space::{Layouts, Table, TableAttributes};
use crate::transaction::{Mode, Resource, Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_format::catalog::{DefinedKind, Notes};
use parking_lot::RwLockWriteGuard;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
    pub(super) fn lock_name(&self, name: &str) -> Result<()> {
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

    /// The same, to drop it: whatever state it is in.
    fn lock_table_to_drop(&self, name: &str) -> Result<Arc<Table>> {
        loop {
            let table = self.database.table_to_drop(name)?;
            self.lock_whole(&table)?;
            if self.database.table_to_drop(name).is_ok_and(|live| Arc::ptr_eq(&live, &table)) {
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
    /// What has no pages.
    Other(Arc<OtherEntry>),
    DroppedOther(Arc<OtherEntry>),
    /// A table as it is from now on, and as it was before the transaction: live, or made by it.
    TableAs(Arc<Table>, Arc<Table>),
    /// An index likewise.
    IndexAs(Arc<Index>, Arc<Index>),
    /// Something else is said of an object: its definition, and what is said.
    Altered(u32, Arc<[u8]>, Arc<Notes>),
}

/// What a transaction has defined.
#[derive(Debug, Default)]
pub(super) struct Defining {
    /// In this order; each with the start of the transaction's record before it.
    done: Vec<(Lsn, Defined)>,
    /// How many of them are logged.
    logged: usize,
    /// Numbers of what it has dropped.
    dropped: BTreeSet<u32>,
    /// Where in `done` what it has made is, by number.
    made: BTreeMap<u32, usize>,
    /// Numbers of what it has made, by name and in this order.
    names: BTreeMap<String, Vec<u32>>,
}

/// A new table's rows are all of one layout.
fn in_one_layout(attributes: TableAttributes) -> TableAttributes {
    TableAttributes { layouts: attributes.layouts.fresh(&attributes.schema), ..attributes }
}

/// What is said of a handle of before.
fn altered_already(object: &str) -> Error {
    Error::Stale { object: object.into(), why: "was altered: look it up again" }
}

impl Defined {
    /// Is it another form of something that there was?
    fn is_other_form(&self) -> bool {
        matches!(self, Defined::TableAs(..) | Defined::IndexAs(..))
    }

    /// Number and name of what is made, or called so from now on.
    fn made(&self) -> Option<(u32, &str)> {
        match self {
            Defined::Table(table) | Defined::TableAs(table, _) => Some((table.object_id, table.name())),
            Defined::Index(index, _) | Defined::IndexAs(index, _) => Some((index.object_id, index.name())),
            Defined::Other(other) => Some((other.object_id, &other.name)),
            _ => None,
        }
    }

    /// Number of what is dropped.
    fn dropped(&self) -> Option<u32> {
        match self {
            Defined::DroppedTable(table) => Some(table.object_id),
            Defined::DroppedIndex(index) => Some(index.object_id),
            Defined::DroppedOther(other) => Some(other.object_id),
            _ => None,
        }
    }
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
        self.dropped.contains(&object_id)
    }

    /// The numbers of all that it has dropped.
    pub(super) fn all_dropped(&self) -> BTreeSet<u32> {
        self.dropped.clone()
    }

    /// What it has made and not dropped, of this name.
    fn made_as(&self, name: &str) -> impl Iterator<Item = &Defined> {
        let numbers = self.names.get(name).into_iter().flatten().filter(|object_id| !self.has_dropped(**object_id));
        let made = numbers.filter_map(|object_id| self.made_by_id(*object_id));
        made.filter(move |defined| defined.made().is_some_and(|(_, own)| own == name))
    }

    /// What it has made, of this number.
    fn made_by_id(&self, object_id: u32) -> Option<&Defined> {
        step();
        Some(&self.done.get(*self.made.get(&object_id)?)?.1)
    }

    /// Tables that it has made or altered and not dropped, as they are now.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let made = self.made.keys().filter_map(|object_id| self.table_by_id(*object_id));
        made.filter(|table| !self.has_dropped(table.object_id))
    }

    /// A table that it has made or altered, as it is now.
    pub(super) fn table_by_id(&self, object_id: u32) -> Option<&Arc<Table>> {
        match self.made_by_id(object_id)? {
            Defined::Table(table) | Defined::TableAs(table, _) => Some(table),
            _ => None,
        }
    }

    /// An index that it has made or altered, as it is now.
    pub(super) fn index_by_id(&self, object_id: u32) -> Option<&Arc<Index>> {
        match self.made_by_id(object_id)? {
            Defined::Index(index, _) | Defined::IndexAs(index, _) => Some(index),
            _ => None,
        }
    }

    /// Is what has this number and, for others, this name called something else by this transaction?
    pub(super) fn has_renamed(&self, object_id: u32, name: &str) -> bool {
        self.made_by_id(object_id).and_then(Defined::made).is_some_and(|(_, own)| own != name)
    }

    /// What a table was before this transaction, or as it was made, if it has altered it.
    fn table_before(&self, object_id: u32) -> Option<&Arc<Table>> {
        match self.made_by_id(object_id)? {
            Defined::TableAs(_, before) => Some(before),
            _ => None,
        }
    }

    /// The same of an index.
    fn index_before(&self, object_id: u32) -> Option<&Arc<Index>> {
        match self.made_by_id(object_id)? {
            Defined::IndexAs(_, before) => Some(before),
            _ => None,
        }
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
        self.made_as(name).find_map(|defined| match defined {
            Defined::Table(table) | Defined::TableAs(table, _) => Some(table),
            _ => None,
        })
    }

    /// The index that it has made and that has this name.
    pub(super) fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.made_as(name).find_map(|defined| match defined {
            Defined::Index(index, _) | Defined::IndexAs(index, _) => Some(index),
            _ => None,
        })
    }

    /// Locks a name that no table and no index has, unless this transaction has dropped it, or will have done so at its end (`replaced`).
    fn take_name(&self, by: Definer<'_>, name: &str, replaced: &[u32]) -> Result<()> {
        by.lock_name(name)?;
        let objects = by.database.objects.read();
        let table = objects.tables.get(name).map(|place| place.object_id);
        let index = objects.indexes.get(name).map(|place| place.object_id);
        let other = objects.others.get(name).map(|place| place.object_id);
        let own_other = self.own_other(name);
        let other_kind = own_other.map_or("object", |own| own.kind.name());
        let kinds = [
            ("table", self.table(name).is_some(), table),
            ("index", self.index(name).is_some(), index),
            (other_kind, own_other.is_some(), other),
        ];
        for (kind, own, live) in kinds {
            let is_replaced = |object_id| self.has_dropped(object_id) || replaced.contains(&object_id) || self.has_renamed(object_id, name);
            if own || live.is_some_and(|object_id| !is_replaced(object_id)) {
                return Err(Error::Exists { kind, name: name.into() });
            }
        }
        Ok(())
    }

    fn note(&mut self, by: Definer<'_>, defined: Defined) {
        if let Some((object_id, name)) = defined.made() {
            self.made.insert(object_id, self.done.len());
            self.names.entry(name.into()).or_default().push(object_id);
        }
        self.dropped.extend(defined.dropped());
        self.done.push((by.state.last_lsn(), defined));
    }

    /// A new table, not logged yet.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range.
    pub(super) fn create_table(&mut self, by: Definer<'_>, attributes: TableAttributes) -> Result<Arc<Table>> {
        self.note_table(by, in_one_layout(attributes), &[])
    }

    /// The same, of a table whose pages are those of another one: its rows have the layouts that they have there.
    ///
    /// # Errors
    /// As [`Self::create_table`].
    pub(super) fn create_table_of_pages(&mut self, by: Definer<'_>, attributes: TableAttributes) -> Result<Arc<Table>> {
        self.note_table(by, attributes, &[])
    }

    /// The same, in the place of live tables, perhaps under the name of one of them. These are locked within only and are to be replaced with [`Self::replace_table`].
    ///
    /// # Errors
    /// As [`Self::create_table`].
    pub(super) fn create_table_beside(&mut self, by: Definer<'_>, replaced: &[u32], attributes: TableAttributes) -> Result<Arc<Table>> {
        self.note_table(by, in_one_layout(attributes), replaced)
    }

    fn note_table(&mut self, by: Definer<'_>, attributes: TableAttributes, replaced: &[u32]) -> Result<Arc<Table>> {
        let core = Arc::clone(&by.database.core);
        if let Some(range) = &attributes.range {
            self.check_range(by.database, &attributes, range, replaced)?;
        }
        let mut table = Table::create(Arc::clone(&core), core.take_object_id(), attributes)?;
        table.lifetime = Lifetime::staged(by.state.id(), 0);
        self.take_name(by, table.name(), replaced)?;
        let table = Arc::new(table);
        self.note(by, Defined::Table(Arc::clone(&table)));
        Ok(table)
    }

    /// A new, empty index of a table, not logged yet. The table is locked as a whole before anything is read for it. `snapshot`: that of the transaction, if it has one.
    ///
    /// # Errors
    /// When the table is not there for this transaction, the name is taken or an attribute is out of range.
    pub(super) fn create_index(
        &mut self,
        by: Definer<'_>,
        table: &Table,
        attributes: IndexAttributes,
        snapshot: Option<&Snapshot>,
    ) -> Result<Arc<Index>> {
        if !table.lifetime.is_staged() {
            by.lock_whole(table)?;
        }
        let table = self.must_be_there(by, table)?;
        // Nobody else changes the table any more: who looks at it as it was before must not take this index.
        let is_now = |snapshot| table.writers.all_seen_by(snapshot).is_some();
        let from = if table.lifetime.is_staged() || snapshot.is_some_and(is_now) { 0 } else { by.database.core.transactions.last_commit() };
        self.note_index(by, table, attributes, from, &[])
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
        self.note_index(by, table, attributes, 0, replaced.map(|index| index.object_id).as_slice())
    }

    fn note_index(
        &mut self,
        by: Definer<'_>,
        table: Arc<Table>,
        attributes: IndexAttributes,
        from: u64,
        replaced: &[u32],
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
        let found = match self.table_by_id(table.object_id) {
            Some(own) => Some(Arc::clone(own)),
            None => by.database.table_by_id(table.object_id)?,
        };
        if found.as_ref().is_some_and(|found| found.is_same(table) && !std::ptr::eq(&**found, table)) {
            return Err(altered_already(&table.object()));
        }
        found
            .filter(|found| std::ptr::eq(&**found, table))
            .ok_or_else(|| Error::Parameter(format!("{} is of another database", table.object())))
    }

    /// Refuses a name that this transaction has taken from what has it for others.
    pub(super) fn check_name_is_there(&self, object_id: u32, kind: &'static str, name: &str) -> Result<()> {
        match self.has_renamed(object_id, name) {
            true => Err(Error::Unknown { kind, name: name.into(), hint: "; this transaction has renamed it".into() }),
            false => Ok(()),
        }
    }

    /// Refuses a handle of a table that this transaction has altered since.
    #[inline]
    pub(super) fn check_not_altered(&self, table: &Table) -> Result<()> {
        match self.is_empty() || self.table_by_id(table.object_id).is_none_or(|now| std::ptr::eq(&**now, table)) {
            true => Ok(()),
            false => Err(altered_already(&table.object())),
        }
    }

    /// Refuses what this transaction has dropped.
    #[inline]
    pub(super) fn check_not_dropped(&self, object_id: u32, object: impl FnOnce() -> String) -> Result<()> {
        if !self.is_empty() && self.has_dropped(object_id) {
            return Err(Error::Stale { object: object(), why: "was dropped by this transaction" });
        }
        Ok(())
    }

    /// Drops the table of a name, live or of this transaction, with its indexes, whatever state it is in: who is to read it asks whether it is damaged.
    ///
    /// # Errors
    /// When there is none; those of locks. Some of its indexes may be dropped then.
    pub(super) fn drop_table(&mut self, by: Definer<'_>, name: &str) -> Result<Arc<Table>> {
        let table = match self.table(name) {
            // For others it is as it was.
            Some(own) => Arc::clone(self.table_before(own.object_id).unwrap_or(own)),
            None => {
                let table = by.lock_table_to_drop(name)?;
                self.check_name_is_there(table.object_id, "table", name)?;
                table
            }
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
            Some(own) => Arc::clone(self.index_before(own.object_id).unwrap_or(own)),
            None => {
                let index = by.lock_live_index(name)?;
                self.check_name_is_there(index.object_id, "index", name)?;
                index
            }
        };
        self.check_not_dropped(index.object_id, || index.object())?;
        self.forget_index(by, &index)?;
        Ok(index)
    }

    /// Drops a live table and its indexes, though this transaction has made others under their names. It has locked the table as a whole.
    ///
    /// # Errors
    /// Those of locks.
    pub(super) fn replace_table(&mut self, by: Definer<'_>, table: &Arc<Table>) -> Result<()> {
        for index in table.all_indexes() {
            self.forget_index(by, &index)?;
        }
        by.lock_name(table.name())?;
        self.note(by, Defined::DroppedTable(Arc::clone(table)));
        Ok(())
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

    /// What it has made that has no pages, and not dropped.
    pub(super) fn others_made(&self) -> impl Iterator<Item = &Arc<OtherEntry>> {
        let made = self.done.iter().filter_map(|(_, defined)| if let Defined::Other(other) = defined { Some(other) } else { None });
        made.filter(|other| !self.has_dropped(other.object_id))
    }

    /// What it has made that has no pages and this name.
    fn own_other(&self, name: &str) -> Option<&Arc<OtherEntry>> {
        self.made_as(name).find_map(|defined| if let Defined::Other(other) = defined { Some(other) } else { None })
    }

    /// What it says of an object, if it has said something: by itself, or with another form of it.
    pub(super) fn notes(&self, object_id: u32) -> Option<Arc<Notes>> {
        self.done.iter().rev().find_map(|(_, defined)| match defined {
            Defined::Altered(altered, _, notes) if *altered == object_id => Some(Arc::clone(notes)),
            Defined::TableAs(table, _) if table.object_id == object_id => Some(table.notes()),
            Defined::IndexAs(index, _) if index.object_id == object_id => Some(index.notes()),
            _ => None,
        })
    }

    /// Has it given an object another form after its first `done` definitions? What was said of it before is among those then.
    fn has_other_form_after(&self, object_id: u32, done: usize) -> bool {
        self.made.get(&object_id).is_some_and(|at| *at > done && self.done[*at].1.is_other_form())
    }

    /// Something that has no pages, not logged yet.
    ///
    /// # Errors
    /// When the name is taken or none, or too much is said.
    pub(super) fn create_other(&mut self, by: Definer<'_>, kind: DefinedKind, name: &str, notes: Notes) -> Result<Arc<OtherEntry>> {
        check_name(&format!("a {}", kind.name()), name)?;
        let definition = other_definition(kind, name, &notes)?.into();
        self.take_name(by, name, &[])?;
        let object_id = by.database.core.take_object_id();
        let other = Arc::new(OtherEntry { object_id, kind, name: name.into(), definition, notes });
        self.note(by, Defined::Other(Arc::clone(&other)));
        Ok(other)
    }

    /// Drops what has no pages.
    ///
    /// # Errors
    /// When there is none of this kind and name; those of locks.
    pub(super) fn drop_other(&mut self, by: Definer<'_>, kind: DefinedKind, name: &str) -> Result<()> {
        by.lock_name(name)?;
        let other = self.other(by.database, kind, name)?;
        self.note(by, Defined::DroppedOther(other));
        Ok(())
    }

    /// What has no pages, by kind and name: its own, or what is committed.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn other(&self, database: &DatabaseState, kind: DefinedKind, name: &str) -> Result<Arc<OtherEntry>> {
        let own = self.own_other(name).filter(|own| own.kind == kind).cloned();
        let found = match own {
            Some(own) => Some(own),
            None => database.other(kind, name)?.filter(|other| !self.has_dropped(other.object_id)),
        };
        let found = found.ok_or_else(|| Error::Unknown { kind: kind.name(), name: name.into(), hint: String::new() })?;
        match self.notes(found.object_id) {
            Some(notes) => Ok(Arc::new(OtherEntry { notes: Notes::clone(&notes), ..OtherEntry::clone(&found) })),
            None => Ok(found),
        }
    }

    /// Says something else of a table, not logged yet. It is locked as a whole.
    ///
    /// # Errors
    /// When the table is not there for this transaction, or too much is said; those of locks.
    pub(super) fn alter_table(&mut self, by: Definer<'_>, table: &Table, notes: Notes) -> Result<()> {
        if !table.lifetime.is_staged() {
            by.lock_whole(table)?;
        }
        let table = self.must_be_there(by, table)?;
        self.note_table_notes(by, &table, notes)
    }

    /// A table under other attributes, not logged yet. It is locked as a whole.
    ///
    /// # Errors
    /// When the table is not there for this transaction, another name is taken, or it cannot be so without that its rows are written anew; those of locks.
    pub(super) fn alter_attributes(&mut self, by: Definer<'_>, table: &Table, attributes: TableAttributes) -> Result<Arc<Table>> {
        let table = self.lock_to_alter(by, table)?;
        if attributes.name != table.name() {
            by.lock_name(table.name())?;
            self.take_name(by, &attributes.name, &[])?;
        }
        let mut altered = table.altered(attributes)?;
        altered.lifetime = Lifetime::staged(by.state.id(), 0);
        let altered = Arc::new(altered);
        let before = Arc::clone(self.table_before(table.object_id).unwrap_or(&table));
        self.note(by, Defined::TableAs(Arc::clone(&altered), before));
        Ok(altered)
    }

    /// The table, which is there for this transaction and which nobody else changes any more.
    pub(super) fn lock_to_alter(&self, by: Definer<'_>, table: &Table) -> Result<Arc<Table>> {
        if !table.lifetime.is_staged() {
            by.lock_whole(table)?;
        }
        self.must_be_there(by, table)
    }

    /// An index under other attributes, not logged yet. Its table is locked as a whole.
    ///
    /// # Errors
    /// As [`Self::alter_attributes`].
    pub(super) fn alter_index_attributes(&mut self, by: Definer<'_>, index: &Index, attributes: IndexAttributes) -> Result<Arc<Index>> {
        let table = match self.table_by_id(index.table_id) {
            Some(own) => Arc::clone(own),
            None => by.database.table_of(index)?,
        };
        if !index.lifetime.is_staged() {
            by.lock_whole(&table)?;
        }
        index.lifetime.check(None, by.state.id(), || index.object())?;
        self.check_not_dropped(index.object_id, || index.object())?;
        if self.index_by_id(index.object_id).is_some_and(|now| !std::ptr::eq(&**now, index)) {
            return Err(altered_already(&index.object()));
        }
        if attributes.name != index.name() {
            by.lock_name(index.name())?;
            self.take_name(by, &attributes.name, &[])?;
        }
        let mut altered = index.altered(Some(&table.attributes().schema), attributes)?;
        altered.lifetime = Lifetime::staged(by.state.id(), 0);
        let altered = Arc::new(altered);
        let live = || match self.made_by_id(index.object_id) {
            Some(Defined::Index(own, _)) => Ok(Some(Arc::clone(own))),
            _ => by.database.index_by_id(index.object_id),
        };
        let before = match self.index_before(index.object_id) {
            Some(before) => Some(Arc::clone(before)),
            None => live()?,
        };
        let before = before.ok_or_else(|| Error::Stale { object: index.object(), why: "was dropped or replaced" })?;
        self.note(by, Defined::IndexAs(Arc::clone(&altered), before));
        Ok(altered)
    }

    /// What tables that this transaction has made may have had as layouts is in the log before its commit: of those that were taken back pages may have rows.
    pub(super) fn note_layouts(&mut self, by: Definer<'_>) -> Result<()> {
        let several = |table: &&Arc<Table>| table.lifetime.is_staged() && table.attributes_now().layouts.are_several();
        let tables: Vec<Arc<Table>> = self.tables().filter(several).cloned().collect();
        tables.into_iter().try_for_each(|table| {
            let notes = self.notes(table.object_id).unwrap_or_else(|| table.notes());
            self.note_table_notes(by, &table, Notes::clone(&notes))
        })
    }

    /// The definition of a table with these attributes, not logged yet.
    fn note_definition_of(&mut self, by: Definer<'_>, table: &Table, attributes: TableAttributes) -> Result<()> {
        attributes.check()?;
        let notes = Arc::new(attributes.notes.clone());
        let definition = table_definition(&TableEntry { object_id: table.object_id, attributes, data_sets: Vec::new() })?;
        self.note(by, Defined::Altered(table.object_id, definition.into(), notes));
        Ok(())
    }

    /// The definition of a table that says this of it, not logged yet.
    ///
    /// # Errors
    /// When too much is said.
    pub(super) fn note_table_notes(&mut self, by: Definer<'_>, table: &Table, notes: Notes) -> Result<()> {
        self.note_definition_of(by, table, TableAttributes { notes, ..table.attributes_now() })
    }

    /// Says something else of an index, not logged yet. Its table is locked as a whole.
    ///
    /// # Errors
    /// As [`Self::alter_table`].
    pub(super) fn alter_index(&mut self, by: Definer<'_>, index: &Index, notes: Notes) -> Result<()> {
        if !index.lifetime.is_staged() {
            by.lock_whole(&*by.database.table_of(index)?)?;
        }
        index.lifetime.check(None, by.state.id(), || index.object())?;
        self.check_not_dropped(index.object_id, || index.object())?;
        self.note_index_notes(by, index, notes, None)
    }

    /// The definition of an index that says this of it, and perhaps that it is damaged, not logged yet.
    ///
    /// # Errors
    /// When too much is said.
    pub(super) fn note_index_notes(&mut self, by: Definer<'_>, index: &Index, notes: Notes, damaged: Option<String>) -> Result<()> {
        let attributes = IndexAttributes { notes: notes.clone(), ..index.attributes.clone() };
        let (object_id, table_id) = (index.object_id, index.table_id);
        let entry = IndexEntry { object_id, table_id, attributes, data_sets: Vec::new(), damaged };
        self.note(by, Defined::Altered(index.object_id, index_definition(&entry)?.into(), Arc::new(notes)));
        Ok(())
    }

    /// Says something else of what has no pages, not logged yet.
    ///
    /// # Errors
    /// When there is none of this kind and name, or too much is said; those of locks.
    pub(super) fn alter_other(&mut self, by: Definer<'_>, kind: DefinedKind, name: &str, notes: Notes) -> Result<()> {
        by.lock_name(name)?;
        let other = self.other(by.database, kind, name)?;
        self.note(by, Defined::Altered(other.object_id, other_definition(kind, name, &notes)?.into(), Arc::new(notes)));
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
                Defined::TableAs(table, _) => {
                    (table.object_id, Some(table_definition(&table_entry(table))?), Some(Staged::Altered(Arc::clone(table))))
                }
                Defined::IndexAs(index, _) => (index.object_id, Some(index_definition(&index_entry(index))?), None),
                Defined::Other(other) => (other.object_id, Some(other.definition.to_vec()), None),
                Defined::Altered(object_id, definition, _) => (*object_id, Some(definition.to_vec()), None),
                Defined::DroppedTable(table) => (table.object_id, None, None),
                Defined::DroppedIndex(index) => (index.object_id, None, None),
                Defined::DroppedOther(other) => (other.object_id, None, None),
            };
            database.log_definition(state, object_id, rows, made.filter(|_| staged))?;
            self.logged += 1;
        }
        Ok(())
    }

    /// Says of an index that it is damaged, not logged yet.
    ///
    /// # Errors
    /// When too much is said.
    pub(super) fn mark_damaged(&mut self, by: Definer<'_>, index: &Index, reason: &str) -> Result<()> {
        self.note_index_notes(by, index, Notes::clone(&index.notes()), Some(reason.to_owned()))
    }

    /// Indexes of a table as this transaction has them, damaged ones too.
    pub(super) fn indexes_of(&self, table: &Table) -> Vec<Arc<Index>> {
        let indexes = table.all_indexes();
        let of_table = self.indexes().filter(|index| index.table_id == table.object_id);
        let unknown: Vec<_> = of_table.filter(|own| !indexes.iter().any(|index| index.object_id == own.object_id)).cloned().collect();
        indexes.iter().filter(|index| !self.has_dropped(index.object_id)).cloned().chain(unknown).collect()
    }

    /// The same, as this transaction has altered them: by the names that they have for it.
    pub(super) fn indexes_as_now(&self, table: &Table) -> Vec<Arc<Index>> {
        let now = |index: &Arc<Index>| Arc::clone(self.index_by_id(index.object_id).unwrap_or(index));
        self.indexes_of(table).iter().map(now).collect()
    }

    /// Forgets what came after the first `len`, which is taken back in the log.
    pub(super) fn truncate(&mut self, database: &DatabaseState, len: usize) {
        self.logged = self.logged.min(len);
        let gone = self.done.split_off(len.min(self.done.len()));
        for (_, defined) in gone.into_iter().rev() {
            if let Some((object_id, name)) = defined.made() {
                self.made.remove(&object_id);
                if defined.is_other_form() {
                    let is_it = |(_, before): &(Lsn, Defined)| before.made().is_some_and(|(number, _)| number == object_id);
                    let before = self.done.iter().rposition(is_it);
                    before.into_iter().for_each(|at| _ = self.made.insert(object_id, at));
                }
                if let Some(numbers) = self.names.get_mut(name)
                    && let Some(at) = numbers.iter().rposition(|number| *number == object_id)
                {
                    numbers.remove(at);
                }
            }
            if let Some(object_id) = defined.dropped() {
                self.dropped.remove(&object_id);
            }
            match defined {
                Defined::Table(table) => {
                    table.lifetime.withdraw();
                    database.former.leave(table.data_sets().cloned());
                }
                Defined::Index(index, table) => {
                    index.lifetime.withdraw();
                    table.remove_index(&index);
                    database.former.leave([Arc::clone(&index.data_set)]);
                }
                Defined::TableAs(table, _) => table.lifetime.withdraw(),
                Defined::IndexAs(index, _) => index.lifetime.withdraw(),
                Defined::DroppedTable(_) | Defined::DroppedIndex(_) => {}
                Defined::Other(_) | Defined::DroppedOther(_) | Defined::Altered(..) => {}
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
        for (at, (_, defined)) in self.done.iter().enumerate() {
            match defined {
                Defined::Table(table) if self.has_dropped(table.object_id) => left.extend(table.data_sets().cloned()),
                Defined::Index(index, table) if self.has_dropped(index.object_id) => {
                    table.remove_index(index);
                    left.push(Arc::clone(&index.data_set));
                }
                Defined::Table(table) => {
                    let now = self.table_by_id(table.object_id).unwrap_or(table);
                    if !Arc::ptr_eq(now, table) {
                        table.lifetime.withdraw();
                    }
                    replaced.tables.push(Arc::clone(now));
                }
                Defined::Index(index, _) => {
                    let now = self.index_by_id(index.object_id).unwrap_or(index);
                    if !Arc::ptr_eq(now, index) {
                        index.lifetime.withdraw();
                    }
                    replaced.indexes.push(Arc::clone(now));
                }
                Defined::TableAs(table, before) => {
                    let is_last = self.table_by_id(table.object_id).is_some_and(|last| Arc::ptr_eq(last, table));
                    match before.lifetime.is_staged() {
                        _ if !is_last || self.has_dropped(table.object_id) => table.lifetime.withdraw(),
                        true => {}
                        false => replaced.altered_tables.push((Arc::clone(table), Arc::clone(before))),
                    }
                }
                Defined::IndexAs(index, before) => {
                    let is_last = self.index_by_id(index.object_id).is_some_and(|last| Arc::ptr_eq(last, index));
                    match before.lifetime.is_staged() {
                        _ if !is_last || self.has_dropped(index.object_id) => index.lifetime.withdraw(),
                        true => {}
                        false => replaced.altered_indexes.push((Arc::clone(index), Arc::clone(before))),
                    }
                }
                Defined::DroppedTable(table) if table.lifetime.is_staged() => {}
                Defined::DroppedIndex(index) if index.lifetime.is_staged() => {}
                Defined::DroppedTable(table) => replaced.dropped_tables.push(Arc::clone(table)),
                Defined::DroppedIndex(index) => replaced.dropped_indexes.push(Arc::clone(index)),
                Defined::Other(other) if self.has_dropped(other.object_id) => {}
                Defined::Other(other) => replaced.others.push(Arc::clone(other)),
                // One of its own was never there for others, and is not found there.
                Defined::DroppedOther(other) => replaced.dropped_others.push(Arc::clone(other)),
                Defined::Altered(object_id, ..) if self.has_dropped(*object_id) || self.has_other_form_after(*object_id, at) => {}
                Defined::Altered(object_id, definition, _) => replaced.altered.push((*object_id, Arc::clone(definition))),
            }
        }
        (replaced, left)
    }
}

impl DatabaseState {
    /// What is committed and has no pages, by kind and name.
    ///
    /// # Errors
    /// When its definition makes no sense.
    pub(super) fn other(&self, kind: DefinedKind, name: &str) -> Result<Option<Arc<OtherEntry>>> {
        let Some(place) = self.objects.read().others.get(name).cloned() else { return Ok(None) };
        let Some(definition) = place.definition() else { return Ok(None) };
        match read_definition(place.object_id, &definition, |_| None)? {
            catalog::Defined::Other(other) if other.kind == kind => Ok(Some(Arc::new(other))),
            _ => Ok(None),
        }
    }

    /// The rows of a table may have these layouts from now on, whatever becomes of the transaction that makes the last one. It has locked the table as a whole.
    ///
    /// # Errors
    /// When the log has no room: nothing has happened then.
    pub(super) fn register_layouts(&self, table: &Table, layouts: Layouts) -> Result<()> {
        let live = self.objects.read().tables.by_id(table.object_id).and_then(|place| place.opened());
        match live {
            // Also when the transaction has altered it before: its rows lie on the same pages.
            Some(live) => {
                self.ensure_log()?;
                self.core.manager.prepare_log()?;
                let layouts = layouts.of_table(&live.attributes.schema, live.attributes.layouts.number());
                self.commit_alone(self.defining.write(), |defining, by| {
                    defining.note_definition_of(by, &live, TableAttributes { layouts, ..live.attributes_now() })
                })?;
            }
            None if !table.lifetime.is_staged() => return Ok(()),
            // It is the transaction's own, and goes with it.
            None => {}
        }
        table.set_layouts(layouts);
        Ok(())
    }

    /// A transaction that defines something and nothing else, beside all others: it locks no table and no row, and is committed at once. `defining` is held for writing since before it was looked at what
    /// there is. Where its commit ends in the log; on an error nothing has happened.
    pub(super) fn commit_alone(
        &self,
        held: RwLockWriteGuard<'_, ()>,
        define: impl FnOnce(&mut Defining, Definer<'_>) -> Result<()>,
    ) -> Result<Option<Lsn>> {
        let core = &self.core;
        let state = core.transactions.begin();
        let mut defining = Defining::default();
        let by = Definer { database: self, state: &state, lock_timeout: Duration::ZERO };
        let logged = define(&mut defining, by).and_then(|()| defining.log(self, &state, false)).and_then(|()| core.log_commit(&state));
        match &logged {
            Ok(_) => self.publish(&state, &mut defining, |timestamp| core.leftovers.committed(state.id(), timestamp, Vec::new())),
            Err(_) => {
                // Without its commit it has changed nothing, now or after a crash.
                self.definitions.ended(state.id());
                core.transactions.abort(&state);
            }
        }
        drop(held);
        core.release_undo_room(&state);
        logged
    }

    /// Publishes the commit of a transaction that has defined something, in the order of commits. To be called with `defining` held for writing since before the record of the commit.
    pub(super) fn publish(&self, state: &TransactionState, defining: &mut Defining, at_commit: impl FnOnce(u64)) {
        let (replaced, left) = defining.outcome();
        let mut objects = self.objects.write();
        self.core.transactions.commit(state, |timestamp| {
            at_commit(timestamp);
            self.former.replaced(&replaced, timestamp);
            objects.replace(&replaced, timestamp);
        });
        self.changes.fetch_add(1, Ordering::Release);
        drop(objects);
        self.definitions.ended(state.id());
        self.former.leave(left);
        *defining = Defining::default();
    }
}

//! What foreign keys need: a lock of a key that stands for references to it, and rows as they are now, whatever the snapshot.
//!
//! Who refers to a key of a table locks it shared and looks whether a row has it; who takes a key away locks it alone and looks who refers to it. Neither holds a page meanwhile.
//!
//! Invariants:
//! - whoever locks such a key has the table as one that is changed within: it is not replaced, altered or dropped before the end of the transaction;
//! - the look comes after the lock, and sees everything that was committed when the lock was had, and what the transaction has done itself.

use super::super::read_view::ReadView;
use super::super::reading::{Reading, Sought};
use super::{RowLock, Transaction, Writes, spans};
use crate::catalog::definition_notes;
use crate::index::Index;
use crate::objects::{PartitionedTable, split_partition_name};
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Mode, Resource, Snapshot};
use crate::{Error, Result};
use pagefold_format::catalog::Notes;
use pagefold_types::{Rid, ValueRef};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use xxhash_rust::xxh3::xxh3_64;

impl Transaction<'_> {
    /// Locks a key of a table for who refers to it (shared), or for who takes it away (alone), until the end of the transaction; then, whether a row has it now. `name` is the same for all who
    /// mean the same key of the table, whichever index they look in. `places`: the table with a unique index; of a partitioned one each partition in which the key may be, with its share of the index.
    ///
    /// # Errors
    /// Those of locks; [`Error::Conflict`] when the snapshot of the transaction has the key and no row has it now, and under SERIALIZABLE when it has come since;
    /// [`Error::Stale`] when the table was replaced since the snapshot.
    pub fn lock_reference(&mut self, places: &[(&Table, &Index)], key: &[ValueRef<'_>], name: &[u8], lock: RowLock) -> Result<bool> {
        let Some((first, index)) = places.first().copied() else { return Ok(false) };
        let mut encoded = Vec::with_capacity(64);
        index.key_layout().encode(key, &mut encoded).map_err(|e| Error::Value(format!("{}: {e}", index.object())))?;
        self.statement_that(Writes::Nothing, first, |t| {
            let mode = match lock {
                RowLock::Shared => Mode::Shared,
                RowLock::Exclusive => Mode::Exclusive,
            };
            let core = Arc::clone(&t.database.core);
            let resource = Resource::Reference(spans(first, index).unwrap_or(first.object_id), xxh3_64(name));
            core.locks.lock_past_removals(t.state.id(), resource, mode, t.options.lock_timeout)?;
            core.check_writable()?;
            if let Some(serializable) = t.serializable() {
                let bound = Bound::Included(&encoded[..]);
                for (_, index) in places {
                    serializable.on_read_range(t.state.id(), index.object_id, bound, bound)?;
                }
            }
            let (now, places) = t.places_now(places, &encoded)?;
            let unnoted = |snapshot| Reading { serializable: None, read: None, ..t.reading(snapshot) };
            let sought = (&encoded[..], key.len());
            let Some((table, rid)) = t.first_of(&unnoted(&now), &places, sought)? else {
                if let Some(snapshot) = &t.snapshot
                    && let Some((table, rid)) = t.first_of(&t.reading(snapshot), &places, sought)?
                {
                    return Err(Error::Conflict { object: table.name().into(), rid });
                }
                return Ok(false);
            };
            // A key that the snapshot does not have would have to come before it.
            if t.serializable().is_some()
                && let Some(snapshot) = &t.snapshot
                && t.first_of(&unnoted(snapshot), &places, sought)?.is_none()
            {
                return Err(Error::Conflict { object: table.name().into(), rid });
            }
            Ok(true)
        })
    }

    /// A snapshot of now, and the places where a row that it sees may have a key; none of them is replaced from now on.
    fn places_now<'p>(&mut self, places: &[(&'p Table, &'p Index)], key: &[u8]) -> Result<(Snapshot, Vec<(&'p Table, &'p Index)>)> {
        let may_have = |place: &(&Table, &Index)| match places {
            [_] => Ok(true),
            _ => place.1.tree().may_have(key),
        };
        loop {
            // Entries come before the commit that a snapshot sees: so it misses none.
            let now = self.database.core.transactions.snapshot(self.state.id());
            let mut found = Vec::with_capacity(1);
            let mut is_new = false;
            for place in places {
                if may_have(place)? {
                    is_new |= !self.is_within(place.0.object_id);
                    self.lock_within(place.0)?;
                    self.check_table(place.0, None)?;
                    found.push(*place);
                }
            }
            if !is_new {
                return Ok((now, found));
            }
        }
    }

    /// The first row with a key of so many values.
    fn first_of<'p>(
        &self,
        reading: &Reading<'_>,
        places: &[(&'p Table, &Index)],
        (key, values): (&[u8], usize),
    ) -> Result<Option<(&'p Table, Rid)>> {
        let mut found = None;
        for (table, index) in places {
            reading.rows_of(table, index, Sought { key, values }, &mut RowBuffer::for_columns(table, &[]), |rid, _| {
                found = Some((*table, rid));
                ControlFlow::Break(())
            })?;
            if found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// Is the newest state of a row one that the transaction's snapshot sees? Without a snapshot it is.
    ///
    /// # Errors
    /// When versions cannot be read.
    pub fn has_seen(&self, table: &Table, rid: Rid) -> Result<bool> {
        let Some(snapshot) = &self.snapshot else { return Ok(true) };
        Ok(self.database.core.versions.newest(table.object_id, rid)?.is_none_or(|writer| snapshot.sees(&writer)))
    }

    /// What is committed now, and what this transaction has done, whatever its snapshot: for who has to know what others find afterwards. Under SERIALIZABLE nothing is noted of what is read by it.
    ///
    /// # Errors
    /// When only rollback is left.
    pub fn newest_view(&mut self) -> Result<ReadView> {
        self.check()?;
        let snapshot = Arc::new(self.database.core.transactions.snapshot(self.state.id()));
        Ok(ReadView::new(&self.database, &self.state, snapshot, None, self.defining.all_dropped()))
    }

    /// Keeps everybody from altering or replacing a table until the end of the transaction, as every change of a row of it does. False when that was so before.
    ///
    /// # Errors
    /// Those of locks.
    pub fn keep_definition(&mut self, table: &Table) -> Result<bool> {
        let is_new = !self.is_within(table.object_id);
        self.lock_within(table).map(|()| is_new)
    }

    /// The table of a name as it is now, whatever the snapshot.
    ///
    /// # Errors
    /// When there is none.
    pub fn table_now(&mut self, name: &str) -> Result<Arc<Table>> {
        if let Some(own) = self.defining.table(name) {
            return Ok(Arc::clone(own));
        }
        let found = self.database.table(name)?;
        self.defining.check_not_dropped(found.object_id, || found.object())?;
        self.defining.check_name_is_there(found.object_id, "table", name)?;
        Ok(found)
    }

    /// The partitioned table of a name as it is now, whatever the snapshot.
    ///
    /// # Errors
    /// When there is none.
    pub fn partitioned_table_now(&mut self, name: &str) -> Result<Arc<PartitionedTable>> {
        self.defining.partitioned_table(&self.database, name, None)
    }

    /// The indexes of a table that can be used now, whatever the snapshot.
    #[must_use]
    pub fn indexes_now(&self, table: &Table) -> Vec<Arc<Index>> {
        let counts = |index: &&Arc<Index>| {
            index.lifetime.check(None, self.state.id(), || index.object()).is_ok()
                && index.damage().is_none()
                && !self.defining.has_dropped(index.object_id)
        };
        let now = |index: &Arc<Index>| self.defining.index_by_id(index.object_id).unwrap_or(index).clone();
        table.indexes().iter().filter(counts).map(now).collect()
    }

    /// All references from one table to another: the names of both, as what is committed and this transaction have it; of partitions that of their table. No table is opened for that.
    ///
    /// # Errors
    /// When a definition is damaged.
    pub fn references(&self) -> Result<Arc<[(String, String)]>> {
        // Read first: what is found may be newer, never older.
        let version = self.database.changes.load(Ordering::Acquire);
        if !self.defining.is_empty() {
            return Ok(self.find_references()?.into());
        }
        if let Some((known, references)) = &*self.database.references.lock()
            && *known == version
        {
            return Ok(Arc::clone(references));
        }
        let found: Arc<[(String, String)]> = self.find_references()?.into();
        *self.database.references.lock() = Some((version, Arc::clone(&found)));
        Ok(found)
    }

    fn find_references(&self) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        let mut add = |name: &str, is_partition: bool, notes: &Notes| {
            let child = split_partition_name(name).filter(|_| is_partition).map_or(name, |(whole, _)| whole);
            for reference in notes.constraints().into_iter().filter_map(|constraint| constraint.reference) {
                found.push((child.to_owned(), reference.name));
            }
        };
        let places: Vec<_> = {
            let objects = self.database.objects.read();
            let is_others = |object_id| !self.defining.has_dropped(object_id) && self.defining.table_by_id(object_id).is_none();
            objects.tables.places().filter(|place| is_others(place.object_id)).cloned().collect()
        };
        for place in places {
            match (self.defining.notes(place.object_id), place.opened()) {
                (Some(notes), _) => add(&place.name, place.name.contains('/'), &notes),
                (None, Some(table)) => add(&place.name, table.range().is_some(), &table.notes()),
                (None, None) => {
                    // It may be opened just now.
                    let notes = place.look(definition_notes).transpose()?;
                    let notes = notes.or_else(|| place.opened().map(|table| Notes::clone(&table.notes()))).unwrap_or_default();
                    add(&place.name, place.name.contains('/'), &notes);
                }
            }
        }
        for table in self.defining.tables() {
            add(table.name(), table.range().is_some(), &self.notes_of_table(table));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Tables that refer to one are told its new name.
    pub(super) fn rename_references(&mut self, from: &str, to: &str) -> Result<()> {
        let referring: Vec<String> =
            self.find_references()?.into_iter().filter(|(_, table)| table == from).map(|(child, _)| child).collect();
        for child in referring {
            // It may be the table itself, which has its new name by now.
            let child = if child == from { to.to_owned() } else { child };
            let tables = match self.table_now(&child) {
                Err(Error::Unknown { .. }) => {
                    let whole = self.partitioned_table_now(&child)?;
                    whole.partitions().iter().map(|partition| self.table_of_partition(partition)).collect::<Result<_>>()?
                }
                found => vec![found?],
            };
            for table in tables {
                let mut notes = Notes::clone(&self.notes_of_table(&table));
                let mut constraints = notes.constraints();
                for reference in constraints.iter_mut().filter_map(|constraint| constraint.reference.as_mut()) {
                    if reference.name == from {
                        to.clone_into(&mut reference.name);
                    }
                }
                notes.set_constraints(&constraints).map_err(|e| Error::Parameter(e.to_string()))?;
                self.alter_table(&table, notes)?;
            }
        }
        Ok(())
    }
}

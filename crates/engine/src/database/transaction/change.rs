//! Changing rows with their index entries.

use super::super::leftovers::key_of;
use super::known_keys::ENTRIES_NOTED;
use super::{Transaction, Writes};
use crate::btree::Unless;
use crate::index::Index;
use crate::pool::{By, Frees, MiniTransaction};
use crate::steps::step;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Resource, Snapshot};
use crate::{Error, Result};
use pagefold_format::log::Undo;
use pagefold_types::{Rid, ValueRef};
use std::ops::Bound;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Most keys are no longer.
const KEY_BYTES: usize = 64;

/// What became of a row that was to be inserted.
#[derive(Clone, Debug)]
pub enum Insertion {
    /// It is there.
    Inserted(Rid),
    /// A row has its key in a unique index. That row is locked, and nothing was changed.
    Taken {
        /// The first index, by name, of which that is so.
        index: Arc<Index>,
        /// The row that has the key.
        rid: Rid,
        /// The partition that has it, where that is another one.
        elsewhere: Option<Arc<Table>>,
    },
}

impl Transaction<'_> {
    /// Inserts a row, with its index entries.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::Conflict`] when the key was given or taken since the snapshot of the transaction; when a value does not fit its column or there is no room; those of
    /// locks. The row is not there then.
    pub fn insert(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Rid> {
        self.statement(table, |t| t.insert_row(table, values, None))
    }

    /// Inserts a row unless another one has its key in a unique index, which is found out before anything is changed: what ON CONFLICT asks for.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), but for duplicate keys.
    pub fn insert_unless_taken(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Insertion> {
        self.statement(table, |t| {
            let mut key = Vec::new();
            let (count, columns) = (values.len(), table.attributes().schema.len());
            if count != columns {
                return Err(Error::Value(format!("{} has {columns} columns, {count} values were given", table.object())));
            }
            let indexes = t.indexes_of(table);
            for index in indexes.iter().filter(|index| index.attributes().unique) {
                key.clear();
                let encoded = index.key_layout().encode_from_values(values, &mut key);
                encoded.map_err(|e| Error::Value(format!("{}: {e}", index.object())))?;
                if index.has_null(&key) {
                    continue;
                }
                let taken = |rid, elsewhere| Ok(Insertion::Taken { index: Arc::clone(index), rid, elsewhere });
                if let Some(rid) = t.row_with_key(table, index, &key, None)? {
                    return taken(rid, None);
                }
                if let Some((partition, rid)) = t.taker_elsewhere(table, index, &key)? {
                    return taken(rid, Some(partition));
                }
            }
            t.insert_row(table, values, Some(&indexes)).map(Insertion::Inserted)
        })
    }

    /// `looked_at`: somebody has found the keys free in these indexes, and holds their locks.
    fn insert_row(&mut self, table: &Table, values: &[ValueRef<'_>], looked_at: Option<&[Arc<Index>]>) -> Result<Rid> {
        let mut record = Vec::new();
        table.build_record(By::Transaction(&self.state), values, &mut record)?;
        self.insert_record(table, &record, looked_at)
    }

    pub(super) fn insert_record(&mut self, table: &Table, record: &[u8], looked_at: Option<&[Arc<Index>]>) -> Result<Rid> {
        table.check_range(record)?;
        self.check_damaged(table, None, record)?;
        let gate = table.gate.pass();
        let rid = table.insert_record(By::Transaction(&self.state), record)?;
        if let Some(observer) = &*gate {
            observer.row_changed(table, rid, None, Some(record));
        }
        // As they are with this change: an index that comes later has it from the observer.
        let indexes = self.indexes_of(table);
        drop(gate);
        self.wrote_row(table, rid)?;
        table.count(rid, |counters| &counters.inserts)?;
        let mut key = Vec::with_capacity(KEY_BYTES);
        for index in indexes.iter() {
            key_of(table, index, record, &mut key)?;
            match looked_at.is_some_and(|known| known.iter().any(|known| Arc::ptr_eq(known, index))) {
                true => self.insert_entry(index, &key, rid)?,
                false => self.insert_free_entry(table, index, &key, rid)?,
            }
        }
        Ok(rid)
    }

    /// Changes some columns of a row. False when the snapshot has no such row, or another transaction has deleted it meanwhile. Under READ COMMITTED a row is found that has got another RID since
    /// the transaction saw it; so in [`Self::delete`], [`Self::lock`] and [`Self::read`].
    ///
    /// # Errors
    /// As [`Self::insert`]; [`Error::Conflict`].
    pub fn update(&mut self, table: &Table, rid: Rid, changes: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        self.statement(table, |t| {
            let Some(rid) = t.lock_row(table, rid)? else { return Ok(false) };
            let gate = table.gate.pass();
            let observer = gate.as_ref().filter(|observer| changes.iter().any(|(changed, _)| observer.has_column(*changed)));
            let is_in_the_way = observer.is_some_and(|observer| observer.wants_records());
            let concerns = |index: &Arc<Index>| index.has_column(|column| changes.iter().any(|(changed, _)| *changed == column));
            let moves = table.is_of_range(changes.iter().map(|(column, _)| *column));
            if !is_in_the_way
                && !moves
                && !t.damaged_unique_indexes(table).iter().any(concerns)
                && t.indexes_of(table).iter().all(|index| !concerns(index))
                && let Some(found) = table.update_fixed(By::Transaction(&t.state), rid, changes)?
            {
                if let (Some(observer), true) = (observer, found) {
                    observer.row_changed(table, rid, None, None);
                }
                drop(gate);
                if found {
                    t.wrote_row(table, rid)?;
                    table.count(rid, |counters| &counters.updates)?;
                }
                return Ok(found);
            }
            drop(gate);
            let mut buffer = RowBuffer::default();
            let Some(before) = table.read(rid, &mut buffer, <[u8]>::to_vec)? else { return Ok(false) };
            let (mut after, mut unused) = (Vec::new(), Vec::new());
            table.changed_record(By::Transaction(&t.state), &before, changes, &mut after, &mut unused)?;
            table.check_range(&after)?;
            t.check_damaged(table, Some(&before), &after)?;
            let (mut old, mut new) = (Vec::new(), Vec::new());
            for value in unused {
                t.keep(Undo::KeptLargeValue { object_id: table.object_id, value })?;
            }
            let gate = table.gate.pass();
            if !table.replace_record(By::Transaction(&t.state), rid, &after)? {
                return Ok(false);
            }
            if let Some(observer) = &*gate {
                observer.row_changed(table, rid, Some(&before), Some(&after));
            }
            let indexes = t.indexes_of(table);
            drop(gate);
            t.wrote_row(table, rid)?;
            table.count(rid, |counters| &counters.updates)?;
            for index in indexes.iter() {
                key_of(table, index, &before, &mut old)?;
                key_of(table, index, &after, &mut new)?;
                if old != new {
                    t.insert_free_entry(table, index, &new, rid)?;
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
        self.statement_that(Writes::ToFree(Frees::Rows), table, |t| {
            let Some(rid) = t.lock_row(table, rid)? else { return Ok(false) };
            let gate = table.gate.pass();
            let before = table.record_for(&gate, rid)?;
            let found = table.mark_deleted(By::Transaction(&t.state), rid)?;
            if let (Some(observer), true) = (&*gate, found) {
                observer.row_changed(table, rid, before.as_deref(), None);
            }
            drop(gate);
            if found {
                t.wrote_row(table, rid)?;
                table.count(rid, |counters| &counters.deletes)?;
            }
            Ok(found)
        })
    }

    /// Locks a row against changes by others until the end of the transaction. False when the snapshot has no such row, or another transaction has deleted it meanwhile. Under READ COMMITTED,
    /// who chose the row by a condition reads it again afterwards: it may have been changed during the wait.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn lock(&mut self, table: &Table, rid: Rid) -> Result<bool> {
        self.statement_that(Writes::ToFree(Frees::Rows), table, |t| {
            let Some(rid) = t.lock_row(table, rid)? else { return Ok(false) };
            Ok(table.read(rid, &mut RowBuffer::default(), |_| ())?.is_some())
        })
    }

    /// A row was changed: its versions are this transaction's, and who has read it is concerned.
    pub(super) fn wrote_row(&mut self, table: &Table, rid: Rid) -> Result<()> {
        table.count_changed_row();
        self.meet_readers(table, rid)
    }

    /// Who has read a row that was changed is concerned.
    pub(super) fn meet_readers(&self, table: &Table, rid: Rid) -> Result<()> {
        match self.serializable() {
            Some(serializable) => Ok(serializable.on_write_row(self.state.id(), table.object_id, rid)?),
            None => Ok(()),
        }
    }

    /// Locks a row for change: the RID that it has by now. `None` when the snapshot does not see it.
    pub(super) fn lock_row(&mut self, table: &Table, rid: Rid) -> Result<Option<Rid>> {
        let core = &self.database.core;
        self.note_read(table, rid)?;
        self.acquire(Resource::Row(table.object_id, rid))?;
        let Some(snapshot) = self.snapshot.clone() else { return self.follow_locked(table, rid).map(Some) };
        match core.versions.newest(table.object_id, rid)? {
            Some(writer) if !snapshot.sees(&writer) => {
                // What it cannot see it cannot change; what it sees and somebody has changed since, neither.
                let seen = self.read_noted(table, rid, &snapshot, &mut RowBuffer::default(), |_| ())?;
                if seen.is_some() { Err(Error::Conflict { object: table.name().into(), rid }) } else { Ok(None) }
            }
            _ => Ok(Some(rid)),
        }
    }

    /// Refuses a record that has a key, which the one before it did not have, of a unique index that is damaged: whether the key is free nobody can tell.
    pub(super) fn check_damaged(&self, table: &Table, before: Option<&[u8]>, after: &[u8]) -> Result<()> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        // Nearly always there is none.
        for index in self.damaged_unique_indexes(table) {
            key_of(table, &index, after, &mut new)?;
            if let Some(before) = before {
                key_of(table, &index, before, &mut old)?;
            }
            if !index.has_null(&new) && (before.is_none() || old != new) {
                index.check_usable()?;
            }
        }
        Ok(())
    }

    /// Adds an index entry, unless the key is that of a living row in a unique index. Until the end of the transaction nobody takes it.
    pub(super) fn insert_free_entry(&mut self, table: &Table, index: &Index, key: &[u8], rid: Rid) -> Result<()> {
        if !index.attributes().unique || index.has_null(key) {
            return self.insert_entry(index, key, rid);
        }
        self.claim_key(table, index, key)?;
        let has_note = self.known_keys.row(index.object_id, key).is_some() || index.known_keys.note(key).is_some();
        // Nearly always the index has no entry of the key, and one descent finds that out and adds it.
        if !has_note && index.tree().insert_by(By::Transaction(&self.state), key, rid, Unless::Key)? {
            return self.inserted_key(index, key);
        }
        if self.row_with_key(table, index, key, Some(rid))?.is_some() {
            return Err(index.duplicate(key));
        }
        self.insert_entry(index, key, rid)
    }

    /// Locks a key of a unique index for a row: in its own partition it is to be looked at, in others no row has it.
    pub(super) fn claim_key(&mut self, table: &Table, index: &Index, key: &[u8]) -> Result<()> {
        self.ask_for_key(table, index, key)?;
        match self.taker_elsewhere(table, index, key)? {
            Some(_) => Err(index.duplicate(key)),
            None => Ok(()),
        }
    }

    /// Locks a key of a unique index: whether it is free is to be looked at.
    fn ask_for_key(&mut self, table: &Table, index: &Index, key: &[u8]) -> Result<()> {
        self.lock_key_of_all(table, index, key)?;
        self.acquire(Resource::Key(index.object_id, xxh3_64(key)))?;
        // That the key is free is something read: whoever takes it and is not seen has to come later.
        match self.serializable() {
            Some(serializable) => {
                Ok(serializable.on_read_range(self.state.id(), index.object_id, Bound::Included(key), Bound::Included(key))?)
            }
            None => Ok(()),
        }
    }

    /// The living row other than `own` that has a key of a unique index, if there is one: it is locked then, and so is the key.
    pub(super) fn row_with_key(&mut self, table: &Table, index: &Index, key: &[u8], own: Option<Rid>) -> Result<Option<Rid>> {
        self.ask_for_key(table, index, key)?;
        let mut now = None;
        if let Some(row) = self.known_row(index, key) {
            return match row.filter(|row| Some(*row) != own) {
                Some(row) => Ok(self.has_key(table, index, key, row, &mut now)?.then_some(row)),
                None => Ok(None),
            };
        }
        let mut cursor = index.tree().key_cursor(key);
        let (mut entries, mut taker) = (0, None);
        while let Some((_, other)) = cursor.next()? {
            step();
            entries += 1;
            if Some(other) != own && self.has_key(table, index, key, other, &mut now)? {
                taker = Some(other);
            }
        }
        if entries > ENTRIES_NOTED || index.known_keys.note(key).is_some() {
            self.known_keys.note(self.state.last_lsn(), index.object_id, key, taker);
        }
        Ok(taker)
    }

    /// The one row that may have a key, if that is known. The transaction has the key's lock.
    fn known_row(&mut self, index: &Index, key: &[u8]) -> Option<Option<Rid>> {
        if let Some(row) = self.known_keys.row(index.object_id, key) {
            return Some(row);
        }
        let (commit, row) = index.known_keys.note(key)?;
        // For an older snapshot other rows may have it: that would be a conflict.
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.timestamp() < commit) {
            return None;
        }
        self.known_keys.note(self.state.last_lsn(), index.object_id, key, row);
        Some(row)
    }

    /// Whether a row has a key, which the transaction has locked; the row is locked then. `now`: what is committed, and the transaction's own changes, since it has the lock of the key.
    ///
    /// Whoever changes the row just now decides it, if the row had the key before. If it had not, it does not get it: nobody else is given the key, and who takes changes back gives the row what it had.
    /// So a row is not waited for because of an entry that some former key of it, or a former row in its place, has left.
    fn has_key(&mut self, table: &Table, index: &Index, key: &[u8], rid: Rid, now: &mut Option<Snapshot>) -> Result<bool> {
        step();
        let (mut buffer, mut own) = (RowBuffer::default(), Vec::new());
        let mut test = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
        let now = now.get_or_insert_with(|| self.database.core.transactions.snapshot(self.state.id()));
        let mut is_taken = table.read_visible(rid, now, &mut buffer, &mut test, |_| ())?.transpose()?.unwrap_or(false);
        if is_taken {
            self.acquire(Resource::Row(table.object_id, rid))?;
            is_taken = table.read(rid, &mut buffer, &mut test)?.transpose()?.unwrap_or(false);
        }
        self.check_key(table, index, key, rid, is_taken)?;
        Ok(is_taken)
    }

    /// Adds an index entry. In a unique index its key is free.
    fn insert_entry(&mut self, index: &Index, key: &[u8], rid: Rid) -> Result<()> {
        // It may be there: left by an earlier key of this row, which is its key again.
        index.tree().insert_by(By::Transaction(&self.state), key, rid, Unless::Entry)?;
        if self.known_keys.row(index.object_id, key).is_some() {
            self.known_keys.note(self.state.last_lsn(), index.object_id, key, Some(rid));
        }
        self.inserted_key(index, key)
    }

    /// An entry was added: who has read that there is none is concerned.
    pub(super) fn inserted_key(&mut self, index: &Index, key: &[u8]) -> Result<()> {
        match self.serializable() {
            Some(serializable) => Ok(serializable.on_insert_key(self.state.id(), index.object_id, key)?),
            None => Ok(()),
        }
    }

    /// A row that has a key, or had it, is looked at as it is now, not as the snapshot has it. A conflict when the transaction would otherwise see the key twice; under SERIALIZABLE also when
    /// it would learn of a row that came after its snapshot.
    fn check_key(&self, table: &Table, index: &Index, key: &[u8], rid: Rid, is_taken: bool) -> Result<()> {
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        self.note_read(table, rid)?;
        if self.database.core.versions.newest(table.object_id, rid)?.is_none_or(|writer| snapshot.sees(&writer)) {
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

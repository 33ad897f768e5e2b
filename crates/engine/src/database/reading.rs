//! Reads of rows as a snapshot sees them: what scans and look-ups have in common. Under SERIALIZABLE each is noted before it is made, as a writer looks for marks after its change: so one of the two sees the other.
//!
//! Invariant: an entry of an index is one of a row that is seen only if it is not doubtful, or the row, as it is seen, has its key.

use super::leftovers::key_of;
use crate::btree::{Direction, Position};
use crate::core::{Core, Lifetime};
use crate::index::Index;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Serializable, Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_types::{KeyRange, Rid, prefix_end};
use parking_lot::Mutex;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The tables and indexes that a serializable transaction has read, by number: its own, and those of its read views.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectsRead(Arc<Mutex<Vec<u32>>>);

impl ObjectsRead {
    fn note(&self, object_id: u32, lifetime: &Lifetime) {
        let mut read = self.0.lock();
        // What it makes itself nobody else changes.
        if !lifetime.is_staged() && !read.contains(&object_id) {
            read.push(object_id);
        }
    }

    /// Is that so of any?
    pub(super) fn any(&self, is_it: impl Fn(u32) -> bool) -> bool {
        self.0.lock().iter().any(|object_id| is_it(*object_id))
    }
}

/// What the first entry of a whole key says, found without a copy of its leaf.
pub(super) enum FirstRow<R> {
    /// The key has no entry. As long as a snapshot sees a row, the entry of its key is there.
    None,
    /// Its row, as every snapshot sees it: it has no versions, and the entry is no leftover.
    Row(R),
    /// It takes a closer look.
    Unclear,
}

impl<R> FirstRow<R> {
    #[inline]
    pub(super) fn of(
        core: &Core,
        (table, index): (&Table, &Index),
        key: &[u8],
        buffer: &mut RowBuffer,
        visit: impl FnOnce(Rid, &[u8]) -> R,
    ) -> Result<FirstRow<R>> {
        let removals = core.leftovers.removals();
        let Some(rid) = index.tree().first_rid(key)? else { return Ok(FirstRow::None) };
        let _visiting = table.visit();
        let is_left = || core.leftovers.may_be_left(index.object_id, rid, removals);
        Ok(table.read_settled(rid, buffer, is_left, |record| visit(rid, record))?.map_or(FirstRow::Unclear, FirstRow::Row))
    }
}

/// Who reads, and what it sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) core: &'a Core,
    pub(super) transaction: u64,
    pub(super) serializable: Option<&'a Serializable>,
    pub(super) read: Option<&'a ObjectsRead>,
    pub(super) snapshot: &'a Snapshot,
}

/// Entries that have a key, or first values of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought<'k> {
    pub(super) key: &'k [u8],
    /// So many values.
    pub(super) values: usize,
}

impl Reading<'_> {
    /// Remembers that rows of a table are read.
    #[inline]
    pub(super) fn note_table(&self, table: &Table) {
        if let Some(read) = self.read {
            read.note(table.object_id, &table.lifetime);
        }
    }

    /// Notes that all of a table is about to be read.
    pub(super) fn note_all(&self, table: &Table) -> Result<()> {
        self.note_table(table);
        match self.serializable {
            Some(serializable) => Ok(serializable.on_read_object(self.transaction, table.object_id)?),
            None => Ok(()),
        }
    }

    /// Notes that a range of keys is about to be read.
    pub(super) fn note_range(&self, table: &Table, index: &Index, (low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> Result<()> {
        self.note_table(table);
        if let Some(read) = self.read {
            read.note(index.object_id, &index.lifetime);
        }
        match self.serializable {
            Some(serializable) => Ok(serializable.on_read_range(self.transaction, index.object_id, low, high)?),
            None => Ok(()),
        }
    }

    /// Notes that a row is about to be read.
    pub(super) fn note_row(&self, table: &Table, rid: Rid) -> Result<()> {
        match self.serializable {
            Some(serializable) => Ok(serializable.on_read_row(self.transaction, table.object_id, rid)?),
            None => Ok(()),
        }
    }

    /// Reads a row of which it was noted. `None` when the snapshot has none.
    pub(super) fn read_noted<R>(
        &self,
        table: &Table,
        rid: Rid,
        buffer: &mut RowBuffer,
        visit: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.serializable.is_none() {
            return table.read_visible(rid, self.snapshot, buffer, visit, |_| ());
        }
        let mut unseen = Vec::new();
        let read = table.read_visible(rid, self.snapshot, buffer, visit, |writer| unseen.push(Arc::clone(writer)))?;
        self.overwritten(&unseen)?;
        Ok(read)
    }

    /// Reads the row of an entry, of which it was noted. `key` is that of the entry if it is doubtful. `None` when the entry is not one of a row that the snapshot sees.
    pub(super) fn read_of_entry<R>(
        &self,
        (table, index): (&Table, &Index),
        (key, rid): (Option<&[u8]>, Rid),
        buffer: &mut RowBuffer,
        doubt: &mut Doubt,
        mut visit: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let Some(key) = key else { return self.read_noted(table, rid, buffer, visit) };
        let Doubt { record, key: own } = doubt;
        let read = self.read_noted(table, rid, record, |record| {
            key_of(table, index, record, own)?;
            Ok::<_, Error>((own == key).then(|| visit(record)))
        })?;
        Ok(read.transpose()?.flatten())
    }

    /// Calls `visit` with the rows of a key, or the beginning of one, in the order of the index.
    pub(super) fn rows_of(
        &self,
        table: &Table,
        index: &Index,
        sought: Sought<'_>,
        buffer: &mut RowBuffer,
        mut visit: impl FnMut(Rid, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        // Of a whole key no other one is in the range.
        let is_whole = sought.values == index.key_layout().column_count();
        // No other row has a key of a unique index, but for those with NULL. Of a former index the entries of deleted rows stay.
        let is_single = is_whole && index.attributes().unique && !index.has_null(sought.key) && !index.lifetime.has_ended();
        if is_single && self.serializable.is_none() {
            self.note_range(table, index, (Bound::Included(sought.key), Bound::Included(sought.key)))?;
            match FirstRow::of(self.core, (table, index), sought.key, buffer, &mut visit)? {
                FirstRow::None | FirstRow::Row(_) => return Ok(()),
                FirstRow::Unclear => {}
            }
        }
        let mut end = sought.key.to_vec();
        let end = prefix_end(&mut end).then_some(end);
        let low = Bound::Included(sought.key);
        let high = if is_whole { low } else { end.as_deref().map_or(Bound::Unbounded, Bound::Excluded) };
        self.note_range(table, index, (low, high))?;
        let mut entries = Entries::new(KeyRange { start: sought.key.to_vec(), end }, Direction::Forward);
        let mut doubt = Doubt::default();
        while let Some((key, rid, is_doubtful)) = entries.next(self, table, index)? {
            let _visiting = table.visit();
            let key = is_doubtful.then_some(key);
            let flow = self.read_of_entry((table, index), (key, rid), buffer, &mut doubt, |record| visit(rid, record))?;
            if flow.is_some_and(|flow| flow.is_break()) {
                break;
            }
        }
        Ok(())
    }

    /// Others have changed what was read in a way that the snapshot does not see.
    pub(super) fn overwritten(&self, writers: &[Arc<TransactionState>]) -> Result<()> {
        let Some(serializable) = self.serializable else { return Ok(()) };
        for writer in writers {
            serializable.on_read_of_version_overwritten_by(self.transaction, writer)?;
        }
        Ok(())
    }

    /// May the entry that an index has for a row be that of a key which the row had or will have, or of a row that the snapshot does not see? `removals` was read before the leaf was.
    #[inline]
    fn is_doubtful(&self, table: &Table, index: &Index, rid: Rid, removals: u64) -> bool {
        self.core.versions.page_may_have(table.object_id, rid) || self.may_be_leftover(table, index, rid, removals)
    }

    /// May it be of a key that the row does not have any more, or of a row that is gone, though no version says so?
    #[inline]
    fn may_be_leftover(&self, table: &Table, index: &Index, rid: Rid, removals: u64) -> bool {
        // Of a former index the entries of deleted rows stay when these go.
        index.lifetime.has_ended()
            || self.core.leftovers.may_be_left(index.object_id, rid, removals)
            || self.core.leftovers.may_be_left(table.object_id, rid, removals)
    }

    /// Refuses a table of another database, and one that does not count for the snapshot.
    pub(super) fn check_table(&self, table: &Table) -> Result<()> {
        if !std::ptr::eq(&*table.core, self.core) {
            return Err(Error::Parameter(format!("{} is of another database", table.object())));
        }
        table.lifetime.check(Some(self.snapshot.timestamp()), self.transaction, || table.object())
    }

    /// The same, of an index of a table.
    pub(super) fn check_index(&self, table: &Table, index: &Index) -> Result<()> {
        if !std::ptr::eq(&*index.core, self.core) {
            return Err(Error::Parameter(format!("{} is of another database", index.object())));
        }
        if index.table_id != table.object_id {
            return Err(Error::Parameter(format!("{} is not one of {}", index.object(), table.object())));
        }
        index.lifetime.check(Some(self.snapshot.timestamp()), self.transaction, || index.object())?;
        index.check_usable()
    }
}

/// What the row of a doubtful entry is read into, whatever columns are wanted of it: those of the key are needed.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    record: RowBuffer,
    key: Vec<u8>,
}

/// Entries of a range of keys, one after the other.
#[derive(Debug)]
pub(super) struct Entries {
    position: Position,
    /// Removals before the current leaf was copied.
    removals: u64,
}

impl Entries {
    pub(super) fn new(range: KeyRange, direction: Direction) -> Entries {
        Entries { position: Position::new(range, direction), removals: 0 }
    }

    /// Goes before the first entry of another range.
    pub(super) fn restart(&mut self, range: KeyRange) {
        self.position.restart(range);
    }

    /// Is there another entry?
    #[inline]
    pub(super) fn has_more(&mut self, reading: &Reading<'_>, index: &Index) -> Result<bool> {
        self.note_removals(reading);
        self.position.has_more(&index.tree())
    }

    /// Before a leaf is copied.
    #[inline]
    fn note_removals(&mut self, reading: &Reading<'_>) {
        if self.position.is_between_leaves() {
            self.removals = reading.core.leftovers.removals();
        }
    }

    /// The RIDs of the next entries of the current leaf, as many as `most`, that are not doubtful; it is noted that their rows are read. None where the next entry is doubtful.
    pub(super) fn next_settled(
        &mut self,
        reading: &Reading<'_>,
        (table, index): (&Table, &Index),
        most: usize,
        rids: &mut Vec<Rid>,
    ) -> Result<usize> {
        let removals = self.removals;
        let mut settled_page = None;
        self.position.take_rids(&index.tree(), most, rids, |rid| {
            reading.note_row(table, rid)?;
            let page = Some((rid.partition(), rid.page()));
            if page != settled_page && reading.core.versions.page_may_have(table.object_id, rid) {
                return Ok(false);
            }
            settled_page = page;
            Ok(!reading.may_be_leftover(table, index, rid, removals))
        })
    }

    /// The next entry, and whether it is doubtful; it is noted that its row is read.
    #[inline]
    pub(super) fn next(&mut self, reading: &Reading<'_>, table: &Table, index: &Index) -> Result<Option<(&[u8], Rid, bool)>> {
        self.note_removals(reading);
        let Some((key, rid)) = self.position.next(&index.tree())? else { return Ok(None) };
        reading.note_row(table, rid)?;
        Ok(Some((key, rid, reading.is_doubtful(table, index, rid, self.removals))))
    }
}

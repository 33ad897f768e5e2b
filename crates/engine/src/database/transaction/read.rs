//! Reading rows as the transaction sees them.
//!
//! A visitor is called while the page of its rows is latched. It cannot change rows of that table, by whatever transaction: that is an error. It may read.

use super::super::leftovers::key_of;
use super::super::read_view::ReadView;
use super::super::reading::Reading;
use super::{Isolation, Transaction};
use crate::btree::Direction;
use crate::index::Index;
use crate::table_space::{Batches, ColumnBatch, Filter, RowBuffer, RowSink, Rows, ScanOutcome, Table, buffer_for};
use crate::transaction::{Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_types::{KeyRange, Predicate, Rid, Value, ValueRef};
use std::mem;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// What is looked for in an index.
struct Sought {
    range: KeyRange,
    /// It is the whole of one key, so no other key is in the range.
    is_key: bool,
}

impl Sought {
    /// The keys that begin with this key, or beginning of a key, of so many values.
    fn key(index: &Index, values: usize, encoded: &[u8]) -> Sought {
        let mut end = encoded.to_vec();
        let end = pagefold_types::prefix_end(&mut end).then_some(end);
        Sought { range: KeyRange { start: encoded.to_vec(), end }, is_key: values == index.key_layout().column_count() }
    }

    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let start = Bound::Included(self.range.start.as_slice());
        (start, if self.is_key { start } else { self.range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded) })
    }
}

impl Transaction<'_> {
    /// What a statement sees, as a value: under READ COMMITTED a statement that begins now, otherwise what the transaction sees. Changes that this transaction makes later may be seen or not.
    ///
    /// # Errors
    /// When only rollback is left.
    pub fn read_view(&mut self) -> Result<ReadView> {
        let snapshot = self.snapshot()?;
        self.statement_ends();
        Ok(ReadView::new(&self.database, &self.state, snapshot, self.read.clone()))
    }

    /// Calls `visit` with the record of a row. `None` when the snapshot has no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn read<R>(&mut self, table: &Table, rid: Rid, buffer: &mut RowBuffer, visit: impl FnMut(&[u8]) -> R) -> Result<Option<R>> {
        let snapshot = self.snapshot()?;
        self.check_table(table, Some(snapshot.timestamp()))?;
        self.reading(&snapshot).note_table(table);
        self.note_read(table, rid)?;
        let read = self.read_noted(table, rid, &snapshot, buffer, visit);
        self.statement_ends();
        read
    }

    /// Notes that a row is read. That comes before the look, as a writer looks for marks after the change: one of the two sees the other.
    pub(super) fn note_read(&self, table: &Table, rid: Rid) -> Result<()> {
        match self.serializable() {
            Some(serializable) => Ok(serializable.on_read_row(self.state.id(), table.object_id, rid)?),
            None => Ok(()),
        }
    }

    /// Reads a row of which it was noted.
    pub(super) fn read_noted<R>(
        &self,
        table: &Table,
        rid: Rid,
        snapshot: &Snapshot,
        buffer: &mut RowBuffer,
        visit: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let _visiting = table.visit();
        self.reading(snapshot).read_noted(table, rid, buffer, visit)
    }

    fn reading<'a>(&'a self, snapshot: &'a Snapshot) -> Reading<'a> {
        Reading {
            core: &self.database.core,
            transaction: self.state.id(),
            serializable: self.serializable(),
            read: self.read.as_ref(),
            snapshot,
        }
    }

    /// The values of a row; `None` when the snapshot has no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn row(&mut self, table: &Table, rid: Rid) -> Result<Option<Vec<Value>>> {
        let mut buffer = mem::take(&mut self.scratch.row);
        let row = self.read(table, rid, &mut buffer, |record| table.values(record));
        self.scratch.row = buffer;
        row?.transpose()
    }

    /// Calls `visit` with RID and record of the first row that has this key, or these first values of a key. `None` when the snapshot sees none.
    ///
    /// # Errors
    /// When a value does not fit the key, or a page is damaged.
    pub fn get<R>(&mut self, table: &Table, index: &Index, key: &[ValueRef<'_>], visit: impl FnMut(Rid, &[u8]) -> R) -> Result<Option<R>> {
        let mut buffer = mem::take(&mut self.scratch.row);
        let found = self.get_with(table, index, key, &mut buffer, visit);
        self.scratch.row = buffer;
        found
    }

    /// As [`get`](Self::get), for the columns that the buffer is [for](RowBuffer::for_columns).
    ///
    /// # Errors
    /// As `get`.
    pub fn get_with<R>(
        &mut self,
        table: &Table,
        index: &Index,
        key: &[ValueRef<'_>],
        buffer: &mut RowBuffer,
        visit: impl FnMut(Rid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut encoded = mem::take(&mut self.scratch.key);
        encoded.clear();
        let found = match index.key_layout().encode(key, &mut encoded) {
            Ok(_) => self.get_encoded(table, index, key.len(), &encoded, buffer, visit),
            Err(e) => Err(Error::Value(format!("index \"{}\": {e}", index.name()))),
        };
        self.scratch.key = encoded;
        self.statement_ends();
        found
    }

    /// By a key, or by the beginning that all keys with some first values share.
    fn get_encoded<R>(
        &mut self,
        table: &Table,
        index: &Index,
        values: usize,
        key: &[u8],
        buffer: &mut RowBuffer,
        mut visit: impl FnMut(Rid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        let is_whole = values == index.key_layout().column_count();
        if is_whole && self.options.isolation == Isolation::ReadCommitted {
            self.check()?;
            self.check_objects(table, index, None)?;
            self.pin();
            let core = &self.database.core;
            let removals = core.leftovers.removals();
            // What is committed has its entry.
            let Some(rid) = index.tree().first_rid(key)? else { return Ok(None) };
            // A row without versions, found by an entry that is no leftover, is what every snapshot taken now sees: none is needed.
            let _visiting = table.visit();
            let is_left = || core.leftovers.may_be_left(index.object_id, rid, removals);
            if let Some(found) = table.read_settled(rid, buffer, is_left, |record| visit(rid, record))? {
                return Ok(Some(found));
            }
        }
        let mut found = None;
        self.rows_of(table, index, Sought::key(index, values, key), Direction::Forward, |rid, record| {
            found = Some(visit(rid, record));
            Ok::<_, Error>(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The RIDs of the rows that have this key, or these first values of a key, as far as the snapshot sees them.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn find(&mut self, table: &Table, index: &Index, key: &[ValueRef<'_>]) -> Result<Vec<Rid>> {
        let mut bytes = Vec::new();
        index.key_layout().encode(key, &mut bytes).map_err(|e| Error::Value(format!("index \"{}\": {e}", index.name())))?;
        let mut rids = Vec::new();
        self.rows_of(table, index, Sought::key(index, key.len(), &bytes), Direction::Forward, |rid, _| {
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
        visit: impl FnMut(Rid, &[u8]) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        self.rows_of(table, index, Sought { range, is_key: false }, direction, visit)
    }

    fn rows_of<E: From<Error>>(
        &mut self,
        table: &Table,
        index: &Index,
        sought: Sought,
        direction: Direction,
        mut visit: impl FnMut(Rid, &[u8]) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let (mut buffer, mut own) = (RowBuffer::default(), Vec::new());
        self.entries(table, index, sought, direction, |t, snapshot, key, rid, is_doubtful| {
            let flow = t.read_noted(table, rid, snapshot, &mut buffer, |record| {
                if is_doubtful {
                    key_of(table, index, record, &mut own)?;
                    if own != key {
                        return Ok(ControlFlow::Continue(()));
                    }
                }
                visit(rid, record)
            })?;
            flow.unwrap_or(Ok(ControlFlow::Continue(())))
        })
    }

    /// Delivers the keys of a range, with their rows' RIDs, in key order or backward. The table is asked only about rows on pages with versions, and about entries that may be left of an earlier key.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn keys<E: From<Error>>(
        &mut self,
        table: &Table,
        index: &Index,
        range: KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], Rid) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let (mut buffer, mut own) = (RowBuffer::default(), Vec::new());
        self.entries(table, index, Sought { range, is_key: false }, direction, |t, snapshot, key, rid, is_doubtful| {
            if is_doubtful {
                let has_key = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
                if !t.read_noted(table, rid, snapshot, &mut buffer, has_key)?.transpose()?.unwrap_or(false) {
                    return Ok(ControlFlow::Continue(()));
                }
            }
            visit(key, rid)
        })
    }

    /// Delivers the entries of a range of keys. The last argument says that an entry may be that of a key which its row had or will have, or of a row that the snapshot does not see; otherwise
    /// the row is there for every snapshot, with this key.
    fn entries<E: From<Error>>(
        &mut self,
        table: &Table,
        index: &Index,
        sought: Sought,
        direction: Direction,
        visit: impl FnMut(&Self, &Snapshot, &[u8], Rid, bool) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let outcome = self.entries_of_snapshot(table, index, sought, direction, visit);
        self.statement_ends();
        outcome
    }

    fn entries_of_snapshot<E: From<Error>>(
        &mut self,
        table: &Table,
        index: &Index,
        sought: Sought,
        direction: Direction,
        mut visit: impl FnMut(&Self, &Snapshot, &[u8], Rid, bool) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let snapshot = self.snapshot()?;
        self.check_objects(table, index, Some(snapshot.timestamp()))?;
        self.reading(&snapshot).note_index(table, index);
        if let Some(serializable) = self.serializable() {
            let (low, high) = sought.bounds();
            serializable.on_read_range(self.state.id(), index.object_id, low, high).map_err(Error::from)?;
        }
        let mut cursor = index.tree().range(sought.range, direction);
        let core = &self.database.core;
        let mut removals = 0;
        loop {
            if cursor.is_between_leaves() {
                removals = core.leftovers.removals();
            }
            let Some((key, rid)) = cursor.next()? else { break };
            self.note_read(table, rid)?;
            let doubt = self.reading(&snapshot).is_doubtful(table, index, rid, removals);
            if visit(self, &snapshot, key, rid, doubt)?.is_break() {
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
        self.scan_with(table, &mut RowBuffer::default(), visit)
    }

    /// As [`scan`](Self::scan), for the columns that the buffer is [for](RowBuffer::for_columns).
    ///
    /// # Errors
    /// As `scan`.
    pub fn scan_with<E: From<Error>>(
        &mut self,
        table: &Table,
        buffer: &mut RowBuffer,
        visit: impl FnMut(Rid, &[u8]) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        self.scan_into(table, buffer, &mut Rows(visit))
    }

    /// Delivers some columns of every row that satisfies the condition in page order, in batches of a thousand rows and more; of less, even none, where few rows satisfy it.
    ///
    /// # Errors
    /// When a page is damaged, there is no such column, or the visitor fails.
    pub fn scan_columns<E: From<Error>>(
        &mut self,
        table: &Table,
        columns: &[usize],
        condition: Option<&Predicate>,
        visit: impl FnMut(&ColumnBatch) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let filter = condition.map(|condition| Filter::new(table, condition));
        let mut sink = Batches::new(table, columns, filter.as_ref(), visit)?;
        let mut buffer = buffer_for(table, columns, condition);
        let outcome = self.scan_into(table, &mut buffer, &mut sink)?;
        if outcome == ScanOutcome::Complete && sink.finish()?.is_break() { Ok(ScanOutcome::Stopped) } else { Ok(outcome) }
    }

    fn scan_into<E: From<Error>>(
        &mut self,
        table: &Table,
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let snapshot = self.snapshot()?;
        self.check_table(table, Some(snapshot.timestamp()))?;
        self.reading(&snapshot).note_table(table);
        if let Some(serializable) = self.serializable() {
            serializable.on_read_object(self.state.id(), table.object_id).map_err(Error::from)?;
        }
        let mut unseen: Vec<Arc<TransactionState>> = Vec::new();
        let _visiting = table.visit();
        let outcome = table.scan_visible(&snapshot, buffer, sink, |writer| {
            if unseen.iter().all(|known| known.id() != writer.id()) {
                unseen.push(Arc::clone(writer));
            }
        });
        self.statement_ends();
        let outcome = outcome?;
        self.reading(&snapshot).overwritten(&unseen)?;
        Ok(outcome)
    }
}

//! Reading rows as the transaction sees them: read views, from which scans are pulled, and single rows by RID or key.
//!
//! A visitor of a single row is called while its page is latched. It cannot change rows of any table, by whatever transaction: that is an error. It may read.

use super::super::read_view::ReadView;
use super::super::reading::{FirstRow, Reading, Sought};
use super::{Isolation, Transaction};
use crate::index::Index;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::Snapshot;
use crate::{Error, Result};
use pagefold_types::{Rid, Value, ValueRef};
use std::mem;
use std::ops::ControlFlow;

impl Transaction<'_> {
    /// What a statement sees, as a value from which scans are pulled: under READ COMMITTED a statement that begins now, otherwise what the transaction sees. Of rows that this transaction itself changes later,
    /// a scan sees what they are when it comes to them.
    ///
    /// # Errors
    /// When only rollback is left.
    pub fn read_view(&mut self) -> Result<ReadView> {
        let snapshot = self.snapshot()?;
        self.statement_ends();
        Ok(ReadView::new(&self.database, &self.state, snapshot, self.read.clone(), self.defining.all_dropped()))
    }

    /// Calls `visit` with the record of a row. `None` when the snapshot has no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn read<R>(&mut self, table: &Table, rid: Rid, buffer: &mut RowBuffer, mut visit: impl FnMut(&[u8]) -> R) -> Result<Option<R>> {
        let snapshot = self.snapshot()?;
        self.check_table(table, Some(snapshot.timestamp()))?;
        self.reading(&snapshot).note_table(table);
        self.reading(&snapshot).note_row(table, rid)?;
        let mut read = self.read_noted(table, rid, &snapshot, buffer, &mut visit);
        if matches!(read, Ok(None)) && self.options.isolation == Isolation::ReadCommitted {
            read = self.read_moved(table, rid, buffer, &mut visit);
        }
        self.statement_ends();
        read
    }

    /// Reads a row that may have been put elsewhere, where it is now.
    fn read_moved<R>(&mut self, table: &Table, rid: Rid, buffer: &mut RowBuffer, visit: &mut impl FnMut(&[u8]) -> R) -> Result<Option<R>> {
        let mut at = rid;
        while let Some(moved) = self.database.core.moves.of(table.object_id, rid).filter(|moved| moved.to != at) {
            at = moved.to;
            let snapshot = loop {
                let snapshot = self.snapshot()?;
                // The note comes just before the commit is seen.
                if snapshot.timestamp() >= moved.commit {
                    break snapshot;
                }
                std::thread::yield_now();
            };
            let read = self.read_noted(table, at, &snapshot, buffer, &mut *visit)?;
            if read.is_some() {
                return Ok(read);
            }
        }
        Ok(None)
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

    pub(super) fn reading<'a>(&'a self, snapshot: &'a Snapshot) -> Reading<'a> {
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
            // Where every snapshot sees the same, none is needed.
            match FirstRow::of(&self.database.core, (table, index), key, buffer, &mut visit)? {
                FirstRow::None => return Ok(None),
                FirstRow::Row(found) => return Ok(Some(found)),
                FirstRow::Unclear => {}
            }
        }
        let mut found = None;
        self.rows_of(table, index, Sought { key, values }, buffer, |rid, record| {
            found = Some(visit(rid, record));
            ControlFlow::Break(())
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
        let sought = Sought { key: &bytes, values: key.len() };
        let found = self.rows_of(table, index, sought, &mut RowBuffer::for_columns(table, &[]), |rid, _| {
            rids.push(rid);
            ControlFlow::Continue(())
        });
        self.statement_ends();
        found.map(|()| rids)
    }

    /// Calls `visit` with the rows of a key, or the beginning of one, in the order of the index.
    fn rows_of(
        &mut self,
        table: &Table,
        index: &Index,
        sought: Sought<'_>,
        buffer: &mut RowBuffer,
        visit: impl FnMut(Rid, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let snapshot = self.snapshot()?;
        self.check_objects(table, index, Some(snapshot.timestamp()))?;
        self.reading(&snapshot).rows_of(table, index, sought, buffer, visit)
    }
}

//! What a statement sees, as a value: shared by the threads of a query, held by scans that are pulled, kept for as long as somebody has it.
//!
//! * `walk`: how a scan comes to its rows: page by page, by an index, by a list of RIDs
//! * `scan`: what it makes of them: batches of columns, or rows
//!
//! Invariants:
//! - a scan owns all that it needs, and between two items nothing is latched: a slow reader keeps nobody waiting;
//! - all scans of a view see the same rows, but for what the view's own transaction changes meanwhile;
//! - when that transaction has been rolled back, or the database is closed, or somebody has cancelled the view, scans end with an error.

mod scan;
mod walk;

pub use scan::{RowScan, Scan, ScanRequest};

use super::open::DatabaseState;
use super::reading::{ObjectsRead, Reading};
use crate::btree::Direction;
use crate::index::Index;
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_types::{KeyRange, Rid, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use walk::Walk;

/// What a statement sees. Made by [`Transaction::read_view`](super::Transaction::read_view); a clone is the same view.
#[derive(Clone, Debug)]
pub struct ReadView(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Arc<DatabaseState>,
    state: Arc<TransactionState>,
    snapshot: Arc<Snapshot>,
    /// Of a serializable transaction.
    read: Option<ObjectsRead>,
    cancelled: AtomicBool,
}

impl ReadView {
    pub(super) fn new(
        database: &Arc<DatabaseState>,
        state: &Arc<TransactionState>,
        snapshot: Arc<Snapshot>,
        read: Option<ObjectsRead>,
    ) -> ReadView {
        let (database, state) = (Arc::clone(database), Arc::clone(state));
        ReadView(Arc::new(Inner { database, state, snapshot, read, cancelled: AtomicBool::new(false) }))
    }

    /// Ends all scans of the view, and of its clones, with an error, whichever threads run them.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// The number of its transaction.
    pub(super) fn transaction(&self) -> u64 {
        self.0.state.id()
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.0.snapshot
    }

    fn reading(&self) -> Reading<'_> {
        let core = &*self.0.database.core;
        let read = self.0.read.as_ref();
        let serializable = read.map(|_| &core.serializable);
        Reading { core, transaction: self.0.state.id(), serializable, read, snapshot: &self.0.snapshot }
    }

    /// Refuses when nothing more is to be read.
    fn check(&self) -> Result<()> {
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if self.0.state.is_aborted() {
            return Err(Error::Stale { object: "a read view".into(), why: "is that of a transaction that was rolled back" });
        }
        self.0.database.core.check_open()
    }

    /// The rows of a table, in page order.
    ///
    /// # Errors
    /// When the table does not count for the view, or has no such column; under SERIALIZABLE those of serialization.
    pub fn scan(&self, table: &Arc<Table>, request: &ScanRequest) -> Result<Scan> {
        self.check()?;
        let reading = self.reading();
        reading.check_table(table)?;
        reading.note_table(table);
        if let Some(serializable) = reading.serializable {
            serializable.on_read_object(reading.transaction, table.object_id)?;
        }
        Scan::new(self.clone(), Arc::clone(table), Walk::pages(table), request)
    }

    /// The rows whose keys are in a range of an index, in the order of their keys or against it.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn range(
        &self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        range: KeyRange,
        direction: Direction,
        request: &ScanRequest,
    ) -> Result<Scan> {
        let walk = self.entries(table, index, range, direction, false)?;
        Scan::new(self.clone(), Arc::clone(table), walk, request)
    }

    /// The rows of these RIDs, in this order; those that the view does not see are left out. Pages are asked for ahead.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn rows(&self, table: &Arc<Table>, rids: Vec<Rid>, request: &ScanRequest) -> Result<Scan> {
        self.check()?;
        self.reading().check_table(table)?;
        self.reading().note_table(table);
        Scan::new(self.clone(), Arc::clone(table), Walk::rids(rids), request)
    }

    /// Keys of a range of an index, with the RIDs of their rows, in the order of the keys or against it. The table is asked only where an entry may be an earlier key.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn keys(&self, table: &Arc<Table>, index: &Arc<Index>, range: KeyRange, direction: Direction) -> Result<RowScan> {
        let walk = self.entries(table, index, range, direction, true)?;
        Ok(RowScan::of_keys(self.clone(), Arc::clone(table), Arc::clone(index), walk))
    }

    fn entries(&self, table: &Table, index: &Arc<Index>, range: KeyRange, direction: Direction, keys_only: bool) -> Result<Walk> {
        self.check()?;
        let reading = self.reading();
        reading.check_table(table)?;
        reading.check_index(table, index)?;
        reading.note_index(table, index);
        if let Some(serializable) = reading.serializable {
            let low = std::ops::Bound::Included(range.start.as_slice());
            let high = range.end.as_deref().map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            serializable.on_read_range(reading.transaction, index.object_id, low, high)?;
        }
        Ok(Walk::entries(index, range, direction, keys_only))
    }

    /// The values of a row; `None` when the view has no such row.
    ///
    /// # Errors
    /// When a page is damaged; as [`scan`](Self::scan).
    pub fn row(&self, table: &Table, rid: Rid) -> Result<Option<Vec<Value>>> {
        self.check()?;
        let reading = self.reading();
        reading.check_table(table)?;
        reading.note_table(table);
        reading.note_row(table, rid)?;
        reading.read_noted(table, rid, &mut RowBuffer::default(), |record| table.values(record))?.transpose()
    }
}

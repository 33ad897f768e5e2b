//! What a statement sees, as a value: shared by the threads of a query, held by scans that are pulled, kept for as long as somebody has it.
//!
//! * `walk`: how a scan comes to its rows: page by page, by an index, by a list of RIDs
//! * `partitions`: scans of several tables that are partitions of one
//! * `scan`: what it makes of them: batches of columns, or rows
//!
//! Invariants:
//! - a scan owns all that it needs, and between two items nothing is latched: a slow reader keeps nobody waiting;
//! - what others do after the view was taken no scan of it ever sees. A row that the view's own transaction changes later, or takes back, a scan sees as it is when the scan comes to it: so a row whose key it changes may come
//!   twice by that key, or not at all;
//! - versions that a view of a transaction with changes needs stay after its commit, though no snapshot separates them: they are marked;
//! - when that transaction has been rolled back, or the database is closed, or somebody has cancelled the view, scans end with an error.

mod partitions;
mod scan;
mod walk;

pub(in crate::database) use walk::PageWalk;

pub use partitions::{Part, PartOrder, PartRows, PartScan};
pub use scan::{RowScan, Scan, ScanRequest};

use super::open::DatabaseState;
use super::reading::{ObjectsRead, Reading, Sought};
use crate::btree::Direction;
use crate::index::Index;
use crate::table_space::{DataPages, RowBuffer, Table};
use crate::transaction::{Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_types::{KeyRange, Rid, Value, ValueRef};
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
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
    /// Tables and indexes that the transaction has dropped, by number.
    dropped: BTreeSet<u32>,
    cancelled: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.state.view_ends();
    }
}

impl ReadView {
    pub(super) fn new(
        database: &Arc<DatabaseState>,
        state: &Arc<TransactionState>,
        snapshot: Arc<Snapshot>,
        read: Option<ObjectsRead>,
        dropped: BTreeSet<u32>,
    ) -> ReadView {
        let (database, state) = (Arc::clone(database), Arc::clone(state));
        state.view_begins();
        ReadView(Arc::new(Inner { database, state, snapshot, read, dropped, cancelled: AtomicBool::new(false) }))
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

    /// Refuses what is not to be read, by this index.
    fn check_objects(&self, table: &Table, index: Option<&Index>) -> Result<()> {
        self.check()?;
        let (reading, dropped) = (self.reading(), &self.0.dropped);
        let was_dropped = |object| Err(Error::Stale { object, why: "was dropped by this transaction" });
        reading.check_table(table)?;
        if dropped.contains(&table.object_id) {
            return was_dropped(table.object());
        }
        match index {
            Some(index) if dropped.contains(&index.object_id) => was_dropped(index.object()),
            Some(index) => reading.check_index(table, index),
            None => Ok(()),
        }
    }

    /// May an index have keys in these ranges? Asked without a look at its pages, so that partitions are left out which have none. Under SERIALIZABLE it always may: that there is none is
    /// something read.
    ///
    /// # Errors
    /// When nothing more is to be read, or a page is damaged.
    pub fn may_have(&self, index: &Index, ranges: &[KeyRange]) -> Result<bool> {
        self.check()?;
        index.check_usable()?;
        if self.0.read.is_some() {
            return Ok(true);
        }
        for range in ranges {
            if index.tree().may_have_in(range)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows of a table, in page order.
    ///
    /// # Errors
    /// When the table does not count for the view, or has no such column; under SERIALIZABLE those of serialization.
    pub fn scan(&self, table: &Arc<Table>, request: &ScanRequest) -> Result<Scan> {
        self.scan_of(table, || DataPages::of(table), request)
    }

    /// The rows whose homes are on these pages of a table, by partition and number, in ascending order.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn scan_pages(&self, table: &Arc<Table>, pages: Vec<(u16, u32)>, request: &ScanRequest) -> Result<Scan> {
        self.scan_of(table, || DataPages::from(pages), request)
    }

    fn scan_of(&self, table: &Arc<Table>, pages: impl FnOnce() -> DataPages, request: &ScanRequest) -> Result<Scan> {
        self.check_objects(table, None)?;
        self.reading().note_all(table)?;
        Scan::new(self.clone(), Arc::clone(table), Walk::pages(pages()), request)
    }

    /// How many rows of a table the view sees. While nobody changes the table they are those that its headers count; otherwise those of nearly all pages are counted without a look at single ones.
    /// `go_on` is asked after each page.
    ///
    /// # Errors
    /// As [`scan`](Self::scan); that of `go_on`.
    pub fn count_rows<E: From<Error>>(
        &self,
        table: &Table,
        mut go_on: impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        self.check_objects(table, None)?;
        let reading = self.reading();
        reading.note_all(table)?;
        if let Some(rows) = table.rows_seen(reading.snapshot) {
            return Ok(rows);
        }
        let mut pages = PageWalk::of(DataPages::of(table));
        let mut rows = 0;
        while let Some(of_page) = pages.count_next(&reading, table)? {
            rows += of_page;
            self.check()?;
            go_on()?;
        }
        Ok(rows)
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
        self.ranges(table, index, vec![range], direction, request)
    }

    /// The rows whose keys are in these ranges of an index, one range after the other as they are listed: for a list of keys, too. Pages of many rows are asked for ahead, of several
    /// ranges at once if they are short. A row comes as often as there are ranges that have its key.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn ranges(
        &self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        ranges: Vec<KeyRange>,
        direction: Direction,
        request: &ScanRequest,
    ) -> Result<Scan> {
        let walk = self.entries(table, index, ranges, direction, false)?;
        Scan::new(self.clone(), Arc::clone(table), walk, request)
    }

    /// The rows of these RIDs, in this order; those that the view does not see are left out. Pages are asked for ahead.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn rows(&self, table: &Arc<Table>, rids: Vec<Rid>, request: &ScanRequest) -> Result<Scan> {
        self.check_objects(table, None)?;
        self.reading().note_table(table);
        Scan::new(self.clone(), Arc::clone(table), Walk::rids(rids), request)
    }

    /// Keys of a range of an index, with the RIDs of their rows, in the order of the keys or against it. The table is asked only where an entry may be an earlier key.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn keys(&self, table: &Arc<Table>, index: &Arc<Index>, range: KeyRange, direction: Direction) -> Result<RowScan> {
        let walk = self.entries(table, index, vec![range], direction, true)?;
        Ok(RowScan::of_keys(self.clone(), Arc::clone(table), Arc::clone(index), walk))
    }

    /// Calls `visit` with RID and record of each row that has this key, or these first values of a key, in the order of the index, until it says that this is enough. The buffer may be
    /// one [for some columns](RowBuffer::for_columns). A page is latched meanwhile: what `visit` reads elsewhere are rows of no transaction that changes any.
    ///
    /// # Errors
    /// As [`scan`](Self::scan); when a value does not fit the key.
    pub fn find(
        &self,
        table: &Table,
        index: &Index,
        key: &[ValueRef<'_>],
        buffer: &mut RowBuffer,
        visit: impl FnMut(Rid, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check_objects(table, Some(index))?;
        let mut encoded = Vec::with_capacity(64);
        index.key_layout().encode(key, &mut encoded).map_err(|e| Error::Value(format!("{}: {e}", index.object())))?;
        self.reading().rows_of(table, index, Sought { key: &encoded, values: key.len() }, buffer, visit)
    }

    fn entries(&self, table: &Table, index: &Arc<Index>, ranges: Vec<KeyRange>, direction: Direction, keys_only: bool) -> Result<Walk> {
        self.check_objects(table, Some(index))?;
        for range in &ranges {
            let low = Bound::Included(range.start.as_slice());
            let high = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            self.reading().note_range(table, index, (low, high))?;
        }
        Ok(Walk::entries(index, ranges, direction, keys_only))
    }

    /// The values of a row; `None` when the view has no such row.
    ///
    /// # Errors
    /// When a page is damaged; as [`scan`](Self::scan).
    pub fn row(&self, table: &Table, rid: Rid) -> Result<Option<Vec<Value>>> {
        self.check_objects(table, None)?;
        let reading = self.reading();
        reading.note_table(table);
        reading.note_row(table, rid)?;
        reading.read_noted(table, rid, &mut RowBuffer::default(), |record| table.values(record))?.transpose()
    }
}

//! The gate through which rows of a table change, and who is told of each change: what builds something of the table beside
//! its writers.
//!
//! Whoever changes a row for a transaction, or takes that back, passes the gate; while he is inside, the page changes and the
//! observer is told. So who closes the gate knows that the observer has been told of every change so far, and none comes
//! before it is open again: an observer can be put there and taken away without any change in between.
//!
//! Invariants:
//! - inside the gate nobody waits for a lock of a transaction, so it is closed at once;
//! - nobody passes the gate who has a page latched;
//! - the observer is told after the page has changed, and of what a rollback puts back as of any other change.

use super::RowBuffer;
use super::scan::{RowSink, Rows, ScanOutcome};
use super::table::Table;
use crate::pool::Access;
use crate::{Error, Result};
use pagefold_format::data::DataPage;
use pagefold_types::Rid;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Who is told of changes of rows. He cannot refuse any, nor wait.
pub(crate) trait RowObserver: Debug + Send + Sync {
    /// Does he want to know of changes of this column?
    fn has_column(&self, column: usize) -> bool;

    /// A row is another one now, has come or is gone; given the records as far as there are any.
    fn row_changed(&self, table: &Table, rid: Rid, before: Option<&[u8]>, after: Option<&[u8]>);
}

type Observed = Option<Arc<dyn RowObserver>>;

/// The gate of a table.
#[derive(Debug, Default)]
pub(crate) struct RowGate(RwLock<Observed>);

impl RowGate {
    /// Passes the gate. Rows may be changed while this is kept.
    #[inline]
    pub(crate) fn pass(&self) -> RwLockReadGuard<'_, Observed> {
        self.0.read()
    }

    /// Waits until nobody is inside, and keeps everybody out.
    pub(crate) fn close(&self) -> RwLockWriteGuard<'_, Observed> {
        self.0.write()
    }
}

impl Table {
    /// Delivers every row as it is now, committed or not. Rows that have moved are fetched by way of their home: so each that
    /// was there before the scan and stays is delivered once, whatever moves meanwhile. Of those that come, change or go
    /// meanwhile an observer is told.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub(crate) fn scan_newest<E: From<Error>>(
        &self,
        visit: impl FnMut(Rid, &[u8]) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ScanOutcome, E> {
        let (mut buffer, mut sink) = (RowBuffer::default(), Rows(visit));
        let _visiting = self.visit();
        for data_set in self.partitions() {
            let partition = data_set.attributes.partition;
            let pages: Vec<u32> = data_set.space().data_pages().collect();
            let window = self.pages_per_io(data_set);
            for (i, &number) in pages.iter().enumerate() {
                if i % window == 0 {
                    self.prefetch_pages(data_set, &pages[i..(i + 2 * window).min(pages.len())]);
                }
                if self.newest_of_page((partition, number), &mut buffer, &mut sink)?.is_break() {
                    return Ok(ScanOutcome::Stopped);
                }
            }
        }
        Ok(ScanOutcome::Complete)
    }

    fn newest_of_page<E: From<Error>>(
        &self,
        (partition, number): (u16, u32),
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let data_set = self.partition(partition)?;
        let mut moved = Vec::new();
        let page = self.core.manager.shared(data_set, number, Access::Scan)?;
        super::read::check_type(data_set, number, &page)?;
        let flow = self.rows_as_they_lie((&**data_set, number, partition), &DataPage::new(&page), false, buffer, &mut moved, sink)?;
        drop(page);
        if flow.is_break() {
            return Ok(flow);
        }
        for slot in moved {
            let rid = Rid::new(partition, number, slot);
            if self.read(rid, buffer, |record| sink.row(rid, record))?.transpose()?.is_some_and(|flow| flow.is_break()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The record of a row, if somebody is to be told of a change of it.
    pub(crate) fn record_for(&self, observed: &Observed, rid: Rid) -> Result<Option<Vec<u8>>> {
        if observed.is_none() {
            return Ok(None);
        }
        self.read(rid, &mut RowBuffer::default(), <[u8]>::to_vec)
    }
}

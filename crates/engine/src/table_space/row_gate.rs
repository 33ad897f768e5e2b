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
use super::table::Table;
use crate::Result;
use pagefold_types::Rid;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fmt::Debug;
use std::sync::Arc;

/// Who is told of changes of rows. He cannot refuse any, nor wait.
pub(crate) trait RowObserver: Debug + Send + Sync {
    /// Does he want to know of changes of this column?
    fn has_column(&self, column: usize) -> bool;

    /// Is a value of this column to stay in the row, if others can lie outside instead?
    fn keeps_inside(&self, column: usize) -> bool;

    /// Is he to be given records? If not, a row that changes need not be read for him.
    fn wants_records(&self) -> bool;

    /// A row is another one now, has come or is gone; given the records as far as there are any, if he wants them.
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
    /// The record of a row, if somebody wants it who is told of a change of it.
    pub(crate) fn record_for(&self, observed: &Observed, rid: Rid) -> Result<Option<Vec<u8>>> {
        match observed {
            Some(observer) if observer.wants_records() => self.read(rid, &mut RowBuffer::default(), <[u8]>::to_vec),
            _ => Ok(None),
        }
    }
}

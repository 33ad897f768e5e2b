//! What is asked of an engine.

use crate::work::Row;
use pagefold_lab_engine::data::Outcome;

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Insert(&'a Row<'a>),
    /// Sets quantity and comment of the row with this key.
    Update((i64, i64), i64, &'a str),
    Delete((i64, i64)),
}

/// Rows, their quantities in all, and the lengths of their comments in all.
pub(crate) type Sum = (u64, i64, u64);

pub(crate) trait Engine {
    /// Makes these changes in one transaction.
    fn transaction(&mut self, changes: &[Change<'_>]) -> Outcome<()>;
    /// What there is.
    fn sum(&mut self) -> Outcome<Sum>;
    /// Bytes of pages in use.
    fn size_bytes(&mut self) -> Outcome<u64>;
    /// Makes what there is as small as the engine can.
    fn compact(&mut self) -> Outcome<()>;
    /// Pages that were encoded anew, whole.
    fn images(&self) -> u64 {
        0
    }
    /// Bytes of log written; 0 where nobody knows.
    fn log_bytes(&self) -> u64 {
        0
    }
}

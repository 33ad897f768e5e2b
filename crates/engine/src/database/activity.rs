//! Who may work at the same time: transactions that change rows, or changes of tables and indexes.
//!
//! A change copies pages and builds indexes from what there is; rows that come meanwhile would be missing there. So one keeps the other out; readers are kept out by neither.

use crate::{Error, Result};
use parking_lot::Mutex;

/// What is going on.
#[derive(Debug, Default)]
pub(crate) struct Activity(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Transactions that have changed something and are not ended.
    writers: usize,
    /// Changes that are being prepared.
    changes: usize,
}

impl Activity {
    /// A transaction is about to change its first row.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        let mut counts = self.0.lock();
        if counts.changes > 0 {
            return Err(Error::Busy("tables or indexes are being loaded, built or dropped".into()));
        }
        counts.writers += 1;
        Ok(())
    }

    /// A transaction that has changed something is ended.
    pub(crate) fn end_writing(&self) {
        self.0.lock().writers -= 1;
    }

    /// A change of tables or indexes is about to begin.
    pub(crate) fn begin_change(&self) -> Result<()> {
        let mut counts = self.0.lock();
        if counts.writers > 0 {
            return Err(Error::Busy(format!("{} transactions have changed rows and are not ended", counts.writers)));
        }
        counts.changes += 1;
        Ok(())
    }

    /// It is ended.
    pub(crate) fn end_change(&self) {
        self.0.lock().changes -= 1;
    }
}

//! Who may work at the same time: transactions that change rows, or changes of tables and indexes.
//!
//! A change copies pages and builds indexes from what there is; rows that come meanwhile would be missing there. So one keeps the other out; readers are kept out by neither. What is done in the background is done in short
//! steps: a change waits for the one that is being done.

use crate::{Error, Result};
use parking_lot::{Condvar, Mutex};

/// What is going on.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    counts: Mutex<Counts>,
    step_ended: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Transactions that have changed something and are not ended.
    writers: usize,
    /// Changes that are being prepared.
    changes: usize,
    /// Steps in the background.
    steps: usize,
}

impl Activity {
    /// A transaction is about to change its first row.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        let mut counts = self.counts.lock();
        if counts.changes > 0 {
            return Err(Error::Busy("tables or indexes are being loaded, built or dropped".into()));
        }
        counts.writers += 1;
        Ok(())
    }

    /// A transaction that has changed something is ended.
    pub(crate) fn end_writing(&self) {
        self.counts.lock().writers -= 1;
    }

    /// A change of tables or indexes is about to begin.
    pub(crate) fn begin_change(&self) -> Result<()> {
        let mut counts = self.counts.lock();
        if counts.writers > 0 {
            return Err(Error::Busy(format!("{} transactions have changed rows and are not ended", counts.writers)));
        }
        counts.changes += 1;
        while counts.steps > 0 {
            self.step_ended.wait(&mut counts);
        }
        Ok(())
    }

    /// It is ended.
    pub(crate) fn end_change(&self) {
        self.counts.lock().changes -= 1;
    }

    /// A step in the background is about to begin. False, and then it is not done, when a change is being prepared.
    pub(crate) fn begin_step(&self) -> bool {
        let mut counts = self.counts.lock();
        let free = counts.changes == 0;
        counts.steps += usize::from(free);
        free
    }

    /// It is ended.
    pub(crate) fn end_step(&self) {
        self.counts.lock().steps -= 1;
        self.step_ended.notify_all();
    }
}

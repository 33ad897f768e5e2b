//! Which data sets were used since they were last looked at: a checkpoint looks at these alone.
//!
//! Invariant: a data set of which something is not on disk is in the list, or somebody who has taken it from there is writing it.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// File ids, each once.
#[derive(Debug, Default)]
pub(crate) struct ChangedList {
    files: Mutex<Vec<u32>>,
}

impl ChangedList {
    /// Enters a data set, unless it is there by its `mark`.
    #[inline]
    pub(crate) fn enter(&self, file_id: u32, mark: &AtomicBool) {
        if !mark.load(Ordering::Acquire) && !mark.swap(true, Ordering::AcqRel) {
            self.files.lock().push(file_id);
        }
    }

    /// Takes all. Whoever does takes their marks away before he looks at them.
    pub(crate) fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *self.files.lock())
    }

    /// All, which stay.
    pub(crate) fn all(&self) -> Vec<u32> {
        self.files.lock().clone()
    }
}

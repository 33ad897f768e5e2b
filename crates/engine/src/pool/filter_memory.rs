//! What filters of keys (`crate::index`) may take, beside the frames of all pools.
//!
//! Invariant: what all filters have together is never more than that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What filters of keys may take.
#[derive(Debug)]
pub(crate) struct FilterMemory {
    most: usize,
    taken: AtomicUsize,
}

impl FilterMemory {
    /// Filters of so many bytes together.
    pub(crate) fn new(most: usize) -> Arc<FilterMemory> {
        Arc::new(FilterMemory { most, taken: AtomicUsize::new(0) })
    }

    /// Bytes that filters have.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// A filter takes so many bytes; false, and nothing, when there is no room.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let with = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok()
    }

    /// A filter that has so many bytes goes.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

//! Tables whose dictionaries are renewed further when transactions have ended.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tables, by object, that wait for all transactions below an id to end.
#[derive(Debug, Default)]
pub(crate) struct RenewalWaits {
    tables: Mutex<BTreeMap<u32, u64>>,
    /// The largest of the ids.
    below: AtomicU64,
}

impl RenewalWaits {
    /// A table waits for all transactions below this id.
    pub(crate) fn enter(&self, object_id: u32, transaction: u64) {
        let mut tables = self.tables.lock();
        tables.insert(object_id, transaction);
        self.below.fetch_max(transaction, Ordering::Release);
    }

    /// Nobody waits for transactions from this id on.
    #[inline]
    pub(crate) fn below(&self) -> u64 {
        self.below.load(Ordering::Acquire)
    }

    /// Those that need not wait any more, when the oldest transaction that runs has this id.
    pub(crate) fn take_due(&self, oldest_running: u64) -> Vec<u32> {
        let mut tables = self.tables.lock();
        let due: Vec<u32> = tables.iter().filter(|(_, transaction)| **transaction <= oldest_running).map(|(id, _)| *id).collect();
        due.iter().for_each(|id| _ = tables.remove(id));
        self.below.store(tables.values().copied().max().unwrap_or(0), Ordering::Release);
        due
    }
}

//! Who waits in an open database, and what transactions take.

use super::open::Database;
use crate::Progress;
use crate::core::Watched;

impl Database {
    /// A progress of which others see how far it is, under this name, for as long as it is there ([`metrics`](super::DatabaseState::metrics)).
    #[must_use]
    pub fn watch<'a>(&'a self, utility: impl Into<String>, progress: &'a dyn Progress) -> Watched<'a> {
        self.core.running.watch(utility.into(), self.core.manager.clock().monotonic(), progress)
    }

    /// Number of transactions that wait for a lock just now.
    #[must_use]
    pub fn waiting_transactions(&self) -> usize {
        self.core.locks.waiting()
    }

    /// How often transactions had to wait for a lock, and how often they were woken then: once, or twice where somebody passed them.
    #[must_use]
    pub fn lock_waits(&self) -> (u64, u64) {
        self.core.locks.waits()
    }

    /// Number of locks that a transaction holds: of rows, keys and tables.
    #[must_use]
    pub fn locks_held(&self, transaction: u64) -> usize {
        self.core.locks.held(transaction)
    }

    /// Bytes of memory that old versions of rows take.
    #[must_use]
    pub fn version_bytes(&self) -> u64 {
        self.core.versions.bytes()
    }

    /// Bytes of the file in which old versions lie that find no room in memory.
    #[must_use]
    pub fn version_file_bytes(&self) -> u64 {
        self.core.versions.file_bytes()
    }
}

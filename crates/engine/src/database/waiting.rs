//! Who waits in an open database.

use super::open::Database;

impl Database {
    /// Number of transactions that wait for a lock just now.
    #[must_use]
    pub fn waiting_transactions(&self) -> usize {
        self.core.locks.waiting()
    }
}

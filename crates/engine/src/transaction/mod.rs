//! Transactions in memory: states and snapshots, row versions, locks, serializable snapshot isolation. No pages; no I/O but
//! of the file of row versions that find no room in memory.

mod births;
mod chain;
mod deadlocks;
mod interval_tree;
mod lock_error;
mod lock_queue;
mod lock_view;
mod locks;
mod manager;
mod moves;
mod page_filter;
mod page_versions;
mod pins;
mod read_marks;
mod serializable;
mod snapshot;
mod spill;
mod spilled;
mod state;
#[cfg(test)]
mod tests;
mod version_file;
mod versions;

pub(crate) use births::Births;
pub use chain::{Before, Seen};
pub use lock_error::{LockError, WaitFor};
pub use lock_queue::{Mode, Resource};
pub use lock_view::{LockHeld, LockWait};
pub use locks::LockTable;
pub(crate) use locks::REMOVER;
pub use manager::Transactions;
pub(crate) use moves::Moves;
pub(crate) use page_filter::PageFilter;
pub(crate) use pins::{Pin, Pins};
pub use read_marks::MarkLimits;
pub use serializable::{Access, Serializable, SerializationFailure};
pub use snapshot::{Horizon, Snapshot};
pub use state::TransactionState;
pub(crate) use version_file::OpenScratch;
pub use versions::{VersionError, VersionStore, VersionsFull};

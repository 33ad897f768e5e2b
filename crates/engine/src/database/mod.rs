//! A database directory: opening, and changing atomically what is in it.

mod beside;
mod change;
mod checkpoint;
mod damage;
mod defining;
mod definitions;
mod former;
mod index_build;
mod leftovers;
mod load;
mod maintenance;
mod objects;
mod open;
mod opening;
mod places;
mod read_view;
mod reading;
mod renewal;
mod transaction;

#[cfg(test)]
mod contention_tests;
#[cfg(test)]
mod leftovers_tests;
#[cfg(test)]
mod maintenance_tests;
#[cfg(test)]
mod scaling_tests;
#[cfg(test)]
mod tests;

pub use change::Change;
pub use checkpoint::read_checkpoint;
pub use index_build::{ALONE_MAX, BuildCounts, Filler, IndexBuild};
pub(crate) use objects::{Objects, open_objects};
pub use open::{Database, DatabaseState, OpenMode, Settings};
pub(crate) use open::{core_parts, new_id};
pub(crate) use opening::{Broken, Headers, KnownDataSets, open_index, open_table, reason_of};
pub(crate) use places::Place;
pub use read_view::{ReadView, RowScan, Scan, ScanRequest};
pub use renewal::Renewal;
pub use transaction::{Durability, Insertion, Isolation, LockWait, Locked, RowLock, Savepoint, Transaction, TransactionOptions};

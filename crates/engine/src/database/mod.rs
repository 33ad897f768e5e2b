//! A database directory: opening, and changing atomically what is in it.

mod activity;
mod change;
mod change_partitions;
mod change_taken;
mod checkpoint;
mod damage;
mod defining;
mod defining_partitions;
mod definitions;
mod former;
mod ghosts;
mod give_back;
mod index_build;
mod keys_of_partitions;
mod leftovers;
mod live;
mod load;
mod log_archive;
mod log_hold;
mod lookup;
mod maintenance;
mod metrics;
mod open;
mod partitioned;
mod read_view;
mod reading;
mod renewal;
mod row_places;
mod scratch;
mod shadow;
mod statistics;
mod table_build;
mod thin_pages;
mod transaction;

#[cfg(test)]
mod contention_tests;
#[cfg(test)]
mod counting_tests;
#[cfg(test)]
mod leftovers_tests;
#[cfg(test)]
mod maintenance_tests;
#[cfg(test)]
mod scaling_tests;
#[cfg(test)]
mod tests;

pub use crate::core::Watched;
pub use crate::objects::{PartitionedTable, RangePartition, first_key, partition_name, split_partition_name};
pub use crate::recovery::{GiveUp, GivenUp};
pub use activity::{LockActivity, LockKind, LogActivity, ObjectActivity, PoolActivity, TransactionActivity, UtilityActivity};
pub use change::Change;
pub use change_taken::{Dropped, TakenTable};
pub use checkpoint::read_checkpoint;
pub use index_build::{ALONE_MAX, BuildCounts, Filler, IndexBuild};
pub use live::{LIVE_INTERVAL, Onlooker};
pub use log_archive::{ArchiveState, archive_state};
pub(crate) use log_hold::LogHold;
pub use open::{Database, DatabaseState, OpenMode, Settings};
pub(crate) use open::{core_parts, new_id};
pub use partitioned::{PartitionSpec, limit_key};
pub use read_view::{Part, PartOrder, PartRows, PartScan, ReadView, RowScan, Scan, ScanRequest};
pub use renewal::Renewal;
pub use row_places::RowAt;
pub use shadow::Target;
pub use statistics::GatheredStatistics;
pub use table_build::{DRAIN, TableBuild, TableBuildCounts};
pub use thin_pages::{MoveOptions, MoveStep, MoveTally, ThinPages};
pub use transaction::{
    Durability, IndexChange, Insertion, Isolation, LockWait, Locked, RowLock, RowsToCome, Savepoint, TableChange, Transaction,
    TransactionOptions,
};

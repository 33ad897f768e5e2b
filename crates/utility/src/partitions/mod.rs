//! Partitioned tables: how a division is said, which table a row goes to, LOAD into many at once, and partitions that come and go.
//!
//! * `division`: columns and limits as text
//! * `tables`: a table, or the partitions of one, as where rows go
//! * `load`: LOAD, partitions in parallel
//! * `change`: ADD, DROP, ROTATE, EXCHANGE, SPLIT, MERGE
//! * `index`: an index of all partitions
//! * `each`: the same for each partition, several at once
//! * `list`: what there is of each

mod change;
mod division;
mod each;
mod index;
mod list;
mod load;
mod tables;

pub use change::{MovedRows, add_partition, drop_partition, exchange_partition, merge_partitions, rotate_partition, split_partition};
pub use division::{Division, PartitionText};
pub(crate) use each::each;
pub(crate) use index::{create_partitioned_index, drop_partitioned, reorg_partitioned};
pub use list::{PartitionLine, list_partitions};
pub(crate) use load::load_partitioned;
pub(crate) use tables::Tables;
pub use tables::first_table;

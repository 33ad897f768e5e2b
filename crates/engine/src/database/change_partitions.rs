//! Partitioned tables in a change of whole objects: LOAD makes them, SPLIT and MERGE fill new partitions from old ones.
//!
//! Invariant: as with other tables of a change: nothing is seen before the commit, and then all of it is.

use super::change::Change;
use super::defining::Defining;
use super::partitioned::PartitionSpec;
use crate::Result;
use crate::index::{Index, IndexAttributes};
use crate::objects::{PartitionedTable, RangePartition};
use crate::table_space::{Table, TableAttributes};
use pagefold_types::KeyRange;
use std::sync::Arc;

impl Change<'_> {
    /// A partitioned table and its partitions, in the order of their keys, which are to be filled.
    ///
    /// # Errors
    /// As [`Transaction::create_partitioned_table`](super::Transaction::create_partitioned_table).
    pub fn create_partitioned_table(
        &mut self,
        attributes: &TableAttributes,
        columns: &[usize],
        partitions: &[PartitionSpec],
    ) -> Result<Vec<Arc<Table>>> {
        self.define(|defining, by| defining.create_partitioned_table(by, attributes, columns, partitions))
    }

    /// A partitioned table as this change has it; nobody else changes what it consists of until the end.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub fn lock_partitioned_table(&mut self, name: &str) -> Result<Arc<PartitionedTable>> {
        self.define(|defining, by| defining.lock_partitioned(by, name))
    }

    /// An index of a partitioned table that is locked, or of this change, and those of its partitions, in their order, which are to be filled.
    ///
    /// # Errors
    /// As [`Transaction::create_partitioned_index`](super::Transaction::create_partitioned_index).
    pub fn create_partitioned_index(&mut self, table: &PartitionedTable, attributes: &IndexAttributes) -> Result<Vec<Arc<Index>>> {
        self.define(|defining, by| {
            defining.create_partitioned_index(by, table, attributes)?;
            let of_partition = |partition: &RangePartition| {
                let found = defining.table_of(by.database, partition)?;
                defining.create_index(by, &found, Defining::member_index_attributes(attributes, partition.name()))
            };
            table.partitions().iter().map(of_partition).collect()
        })
    }

    /// A partition with keys that none has, like one that there is, and its indexes.
    ///
    /// # Errors
    /// When a name is taken, or the range belongs to another partition.
    pub fn create_partition(
        &mut self,
        whole: &PartitionedTable,
        like: &RangePartition,
        keys: KeyRange,
        partition: &PartitionSpec,
    ) -> Result<(Arc<Table>, Vec<Arc<Index>>)> {
        self.define(|defining, by| {
            let table = defining.table_of(by.database, like)?;
            let indexes = defining.member_indexes(by.database, whole, like, &partition.name)?;
            let made = defining.add_like(by, whole, &table, keys, partition)?;
            let indexes = indexes.into_iter().map(|attributes| defining.create_index(by, &made, attributes));
            let indexes = indexes.collect::<Result<Vec<_>>>()?;
            Ok((made, indexes))
        })
    }

    /// Drops a partition, which is not the only one; what was dropped.
    ///
    /// # Errors
    /// As [`Transaction::drop_partition`](super::Transaction::drop_partition).
    pub fn drop_partition(&mut self, whole: &PartitionedTable, partition: &str) -> Result<Arc<Table>> {
        self.define(|defining, by| defining.drop_partition(by, whole, partition))
    }

    /// Drops a partitioned table; the partitions, which can still be read.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub fn drop_partitioned_table(&mut self, name: &str) -> Result<Vec<Arc<Table>>> {
        self.define(|defining, by| defining.drop_partitioned_table(by, name))
    }

    /// Drops an index of a partitioned table, in all partitions.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub fn drop_partitioned_index(&mut self, name: &str) -> Result<()> {
        self.define(|defining, by| defining.drop_partitioned_index(by, name))
    }
}

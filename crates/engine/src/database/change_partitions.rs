//! Partitioned tables in a change of whole objects: LOAD makes them, SPLIT and MERGE write old ones anew as others.
//!
//! Invariant: as with other tables of a change: nothing is seen before the commit, and then all of it is.

use super::change::Change;
use super::defining::Defining;
use super::keys_of_partitions::check_unique;
use super::partitioned::PartitionSpec;
use super::table_build::TableBuild;
use super::transaction::{Share, spans};
use crate::index::{Index, IndexAttributes};
use crate::objects::{PartitionedTable, RangePartition};
use crate::table_space::{Table, TableAttributes};
use crate::{Error, Progress, Result};
use pagefold_types::KeyRange;
use std::sync::Arc;
use std::time::Duration;

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
                defining.create_index(by, &found, Defining::member_index_attributes(attributes, partition.name()), None)
            };
            table.partitions().iter().map(of_partition).collect()
        })
    }

    /// Partitions that are written anew beside transactions that change rows of them, and are replaced then by others: each of these with its keys, and indexes like those of the
    /// first one that goes. The partitioned table is [locked](Self::lock_partitioned_table) by this change. [`Change::finish_table`] comes last.
    ///
    /// # Errors
    /// When a name is taken, ranges overlap, or an index is of one of these partitions alone; [`Error::Busy`] when one of them was replaced just now, or something of it is being built; those of locks.
    pub fn begin_partitions_again(
        &mut self,
        whole: &PartitionedTable,
        old: &[&RangePartition],
        new: &[(KeyRange, PartitionSpec)],
    ) -> Result<TableBuild> {
        let Some(like) = old.first() else { return Err(Error::Parameter("no partition is to be replaced".into())) };
        let olds = old.iter().map(|partition| self.database().table_of_partition(partition)).collect::<Result<Vec<_>>>()?;
        let ranges = new.iter().map(|(keys, _)| keys.clone()).collect();
        self.begin_tables_again(&olds, Some((whole.key_layout().clone(), ranges)), |defining, by| {
            let replaced: Vec<u32> = olds.iter().map(|old| old.object_id).collect();
            let names = defining.partitioned_indexes(by.database, whole);
            for (partition, table) in old.iter().zip(&olds) {
                let is_of_whole = |index: &Index| names.iter().any(|name| PartitionedTable::index_name(name, partition) == index.name());
                if let Some(alone) = table.all_indexes().iter().find(|index| !is_of_whole(index)) {
                    return Err(Error::Parameter(format!(
                        "{} is of partition \"{}\" alone: drop it first",
                        alone.object(),
                        partition.name()
                    )));
                }
            }
            let made = |(keys, spec): &(KeyRange, PartitionSpec)| {
                let indexes = defining.member_indexes(by.database, whole, like, &spec.name)?;
                Ok((defining.add_like(by, whole, &olds[0], keys.clone(), (spec, &replaced))?, indexes))
            };
            new.iter().map(made).collect()
        })
    }

    /// An index of all partitions of a table, of which each has its own by now. If some lack theirs, they are named, and the change is to be dropped.
    ///
    /// # Errors
    /// As [`Self::create_partitioned_index`].
    pub fn complete_partitioned_index(&mut self, table: &str, attributes: &IndexAttributes) -> Result<Vec<RangePartition>> {
        self.define(|defining, by| {
            let whole = defining.lock_partitioned(by, table)?;
            defining.create_partitioned_index(by, &whole, attributes)?;
            let lacks = |partition: &&RangePartition| {
                let index = by.database.index(&PartitionedTable::index_name(&attributes.name, partition));
                !index
                    .is_ok_and(|index| (&index.attributes().columns, index.attributes().unique) == (&attributes.columns, attributes.unique))
            };
            Ok(whole.partitions().iter().filter(lacks).cloned().collect())
        })
    }

    /// Refuses a key of a unique index that rows of two partitions have. Where each partition has had its share of the index before, who has changed rows since before that is waited for, with moments
    /// in which nobody else changes any; who comes later looks himself. Where this change has made some of them, nobody else gives a key to a row until it ends.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::Lock`] when others do not end in time; [`Error::Interrupted`].
    pub fn check_keys_of_all(
        &mut self,
        whole: &PartitionedTable,
        index: &str,
        patience: Option<Duration>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let shares = self.shares_of(whole, index)?;
        let Some(number) = shares.first().and_then(|share| spans(&share.table, &share.index)) else { return Ok(()) };
        let is_live = |share: &&Share| !share.table.lifetime.is_staged();
        let live: Vec<Arc<Table>> = shares.iter().filter(is_live).map(|share| Arc::clone(&share.table)).collect();
        if live.len() == shares.len() {
            self.define(|_, by| live.iter().try_for_each(|table| by.lock_within_live_table(table.name()).map(drop)))?;
            self.drain(&live, patience, progress, || Ok(()))?;
        } else if !live.is_empty() {
            self.lock_keys_of_all(number)?;
        }
        let snapshot = self.database().core.transactions.snapshot(self.transaction_id());
        if live.len() == shares.len() {
            self.stop_draining(&live)?;
        }
        check_unique(&shares, &snapshot, progress)
    }

    /// The same of all unique indexes of a table of which this change has made partitions.
    ///
    /// # Errors
    /// As [`Self::check_keys_of_all`].
    pub fn check_all_keys(&mut self, whole: &PartitionedTable, progress: &dyn Progress) -> Result<()> {
        let names = self.define(|defining, by| Ok(defining.partitioned_indexes(by.database, whole)))?;
        names.iter().try_for_each(|name| self.check_keys_of_all(whole, name, None, progress))
    }

    /// What the partitions of a table have of an index of it, as this change has them.
    fn shares_of(&mut self, whole: &PartitionedTable, index: &str) -> Result<Vec<Share>> {
        self.define(|defining, by| {
            let share = |partition: &RangePartition| {
                let table = defining.table_of(by.database, partition)?;
                let name = PartitionedTable::index_name(index, partition);
                let found = defining.index(&name).cloned().map_or_else(|| by.database.index(&name), Ok)?;
                Ok(Share { table, index: found })
            };
            whole.partitions().iter().map(share).collect()
        })
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

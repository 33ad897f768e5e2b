//! Partitioned tables in a transaction: found as it sees them, made, changed and dropped as part of it.
//!
//! Invariant: as with other tables: what is made is found by the transaction alone until the commit, and a savepoint takes it back.

use super::super::defining::Defining;
use super::super::keys_of_partitions::check_unique;
use super::super::partitioned::PartitionSpec;
use super::{Isolation, Transaction, spans};
use crate::index::{Index, IndexAttributes};
use crate::objects::{PartitionedTable, RangePartition};
use crate::pool::Frees;
use crate::table_space::{Table, TableAttributes};
use crate::{Error, Result, Silent};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Transaction<'_> {
    /// A partitioned table by its name, with the partitions that this transaction sees: under READ COMMITTED those that there are now.
    ///
    /// # Errors
    /// When there is none.
    pub fn partitioned_table(&mut self, name: &str) -> Result<Arc<PartitionedTable>> {
        let timestamp = self.snapshot.as_ref().map(|snapshot| snapshot.timestamp());
        self.defining.partitioned_table(&self.database, name, timestamp)
    }

    /// The same as it is now, whatever the snapshot, and locked: no partition of it comes or goes until the end of the transaction, but by this transaction.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub fn lock_partitioned_table(&mut self, name: &str) -> Result<Arc<PartitionedTable>> {
        self.define(None, |t| t.note_definition(|defining, by| defining.lock_partitioned(by, name)))
    }

    /// What changes whenever a commit, or this transaction, has changed which tables and indexes there are: what was found out of them before is found out again then.
    #[must_use]
    pub fn definitions_version(&self) -> (u64, usize) {
        (self.database.changes.load(Ordering::Acquire), self.defining.len())
    }

    /// Are the definitions that it finds those that everybody finds at this version? Under READ COMMITTED they are, unless it has changed some itself. Otherwise none was changed since its snapshot,
    /// which is taken if there is none.
    ///
    /// # Errors
    /// When only rollback is left.
    pub fn finds_newest_definitions(&mut self) -> Result<bool> {
        if !self.defining.is_empty() {
            return Ok(false);
        }
        if self.isolation() == Isolation::ReadCommitted {
            return Ok(true);
        }
        self.snapshot()?;
        Ok(self.definitions_of_snapshot == Some(self.database.changes.load(Ordering::Acquire)))
    }

    /// The table of a partition.
    ///
    /// # Errors
    /// [`Error::Stale`](crate::Error::Stale) when it was dropped or replaced since; when it cannot be opened.
    pub fn table_of_partition(&mut self, partition: &RangePartition) -> Result<Arc<Table>> {
        // One that was altered or exchanged since is for an older snapshot what it was.
        if let Some(timestamp) = self.snapshot.as_ref().map(|snapshot| snapshot.timestamp())
            && self.defining.table_by_id(partition.object_id()).is_none()
        {
            let is_it = |table: &Table| table.object_id == partition.object_id() && table.lifetime.covers(timestamp);
            if let Some(before) = self.database.former_tables(is_it).pop() {
                return Ok(before);
            }
        }
        self.defining.table_of(&self.database, partition)
    }

    /// The index of a partition that belongs to an index of its partitioned table; `None` when there is none.
    ///
    /// # Errors
    /// When its table cannot be used.
    pub fn index_of_partition(&mut self, partition: &RangePartition, table: &Table, index: &str) -> Result<Option<Arc<Index>>> {
        let name = PartitionedTable::index_name(index, partition);
        Ok(self.indexes(table)?.into_iter().find(|own| own.name() == name))
    }

    /// Names of the indexes of a partitioned table, in their order.
    #[must_use]
    pub fn partitioned_indexes_of(&self, table: &PartitionedTable) -> Vec<String> {
        self.defining.partitioned_indexes(&self.database, table)
    }

    /// Makes a table that is divided by the values of some columns. Each partition is a table, `<name>/<partition>`, with these attributes but for
    /// its name, and for the method and page size that it may have of its own.
    ///
    /// # Errors
    /// When a name is taken, there is no partition, limits do not ascend, or an attribute is out of range.
    pub fn create_partitioned_table(
        &mut self,
        attributes: &TableAttributes,
        columns: &[usize],
        partitions: &[PartitionSpec],
    ) -> Result<Arc<PartitionedTable>> {
        self.define(None, |t| {
            let made = t.note_definition(|defining, by| defining.create_partitioned_table(by, attributes, columns, partitions))?;
            t.have_partitions(&made)
        })?;
        self.partitioned_table(&attributes.name)
    }

    /// Makes an index of each partition, and of those that come later.
    ///
    /// # Errors
    /// As [`create_index`](Self::create_index).
    pub fn create_partitioned_index(&mut self, table: &str, attributes: &IndexAttributes) -> Result<()> {
        let savepoint = self.savepoint();
        let made = self.index_all(table, attributes);
        if made.is_err() {
            // Where only rollback is left, that takes it back, too.
            let _ = self.roll_back_to(savepoint);
        }
        made
    }

    fn index_all(&mut self, table: &str, attributes: &IndexAttributes) -> Result<()> {
        let whole = self.define(None, |t| {
            let whole = t.note_definition(|defining, by| {
                let whole = defining.lock_partitioned(by, table)?;
                defining.create_partitioned_index(by, &whole, attributes)?;
                Ok(whole)
            })?;
            t.log_definitions()?;
            Ok(whole)
        })?;
        for partition in whole.partitions() {
            let table = self.table_of_partition(partition)?;
            self.create_index(&table, Defining::member_index_attributes(attributes, partition.name()))?;
        }
        // Nobody else changes rows of any partition until the end of the transaction.
        self.check_keys_of(&whole, &attributes.name)
    }

    /// Refuses a key of an index that rows of two partitions have, where keys are unique over all. All partitions are locked as a whole.
    fn check_keys_of(&mut self, whole: &PartitionedTable, index: &str) -> Result<()> {
        let first = self.table_of_partition(whole.first())?;
        let Some(index) = self.index_of_partition(whole.first(), &first, index)? else { return Ok(()) };
        match spans(&first, &index) {
            Some(_) => {
                let shares = self.shares(&first, &index)?;
                let snapshot = self.database.core.transactions.snapshot(self.state.id());
                check_unique(&shares, &snapshot, &Silent)
            }
            None => Ok(()),
        }
    }

    /// The same of all indexes of a partitioned table.
    pub(super) fn check_keys_of_all(&mut self, table: &str) -> Result<()> {
        let whole = self.partitioned_table(table)?;
        self.partitioned_indexes_of(&whole).iter().try_for_each(|index| self.check_keys_of(&whole, index))
    }

    /// Adds a partition, with its indexes: where it is said to begin, like the first one; else behind the last one, which it is like.
    ///
    /// # Errors
    /// When another one has keys of its range, or the last one, behind which it is to come, has no limit; when the range is empty, or the name is taken.
    pub fn add_partition(&mut self, table: &str, partition: &PartitionSpec) -> Result<Arc<Table>> {
        let savepoint = self.savepoint();
        let made = self.add_member(table, partition);
        if made.is_err() {
            let _ = self.roll_back_to(savepoint);
        }
        made
    }

    fn add_member(&mut self, table: &str, partition: &PartitionSpec) -> Result<Arc<Table>> {
        let (made, indexes) = self.define(None, |t| {
            let (made, indexes) = t.note_definition(|defining, by| {
                let whole = defining.lock_partitioned(by, table)?;
                let made = defining.add_partition(by, &whole, partition)?;
                let like = if partition.start.is_some() { whole.first() } else { whole.last() };
                let indexes = defining.member_indexes(by.database, &whole, like, &partition.name)?;
                Ok((made, indexes))
            })?;
            t.have_partitions(&[Arc::clone(&made)])?;
            Ok((made, indexes))
        })?;
        for attributes in indexes {
            self.create_index(&made, attributes)?;
        }
        Ok(made)
    }

    /// Drops a partition with its rows, however many there are. Who has an older snapshot goes on with it.
    ///
    /// # Errors
    /// When there is none, or it is the only one; those of locks.
    pub fn drop_partition(&mut self, table: &str, partition: &str) -> Result<()> {
        self.define(Some(Frees::Objects), |t| {
            let dropped = t.note_definition(|defining, by| {
                let whole = defining.lock_partitioned(by, table)?;
                defining.drop_partition(by, &whole, partition)
            })?;
            t.check_seen(&dropped.lifetime, || dropped.object())?;
            t.log_definitions()
        })
    }

    /// Drops the first partition and adds one behind the last: a window that goes on. The name of the one that was dropped.
    ///
    /// # Errors
    /// As [`drop_partition`](Self::drop_partition) and [`add_partition`](Self::add_partition).
    pub fn rotate_partition(&mut self, table: &str, partition: &PartitionSpec) -> Result<String> {
        let savepoint = self.savepoint();
        let rotated = self.rotate(table, partition);
        if rotated.is_err() {
            let _ = self.roll_back_to(savepoint);
        }
        rotated
    }

    fn rotate(&mut self, table: &str, partition: &PartitionSpec) -> Result<String> {
        let whole = self.partitioned_table(table)?;
        let Some(first) = whole.own_partitions().first().map(|first| first.name().to_owned()) else {
            return Err(Error::Parameter(format!("{} has no partition", whole.object())));
        };
        // What goes makes room for what comes; the only one cannot go first.
        if whole.partitions().len() > 1 {
            self.drop_partition(table, &first)?;
            self.add_partition(table, partition)?;
        } else {
            self.add_partition(table, partition)?;
            self.drop_partition(table, &first)?;
        }
        Ok(first)
    }

    /// Drops a partitioned table with its partitions and indexes.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub fn drop_partitioned_table(&mut self, name: &str) -> Result<()> {
        self.define(Some(Frees::Objects), |t| {
            let dropped = t.note_definition(|defining, by| defining.drop_partitioned_table(by, name))?;
            dropped.iter().try_for_each(|table| t.check_seen(&table.lifetime, || table.object()))?;
            t.log_definitions()
        })
    }

    /// Drops an index of a partitioned table, in all partitions.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub fn drop_partitioned_index(&mut self, name: &str) -> Result<()> {
        self.define(Some(Frees::Objects), |t| {
            t.note_definition(|defining, by| defining.drop_partitioned_index(by, name))?;
            t.log_definitions()
        })
    }

    /// Gives an index of a partitioned table another name, in all partitions.
    ///
    /// # Errors
    /// When there is none, a name is taken, or a partition has no share of it that can be opened; those of locks; when there is no room in the log.
    pub fn rename_partitioned_index(&mut self, name: &str, to: &str) -> Result<()> {
        let savepoint = self.savepoint();
        let renamed = self.define(None, |t| {
            let before = t.note_definition(|defining, by| defining.rename_partitioned_index(by, name, to))?;
            before.iter().try_for_each(|index| t.check_seen(&index.lifetime, || index.object()))?;
            t.log_definitions()
        });
        if renamed.is_err() {
            // Where only rollback is left, that takes it back, too.
            let _ = self.roll_back_to(savepoint);
        }
        renamed
    }

    /// New tables get their first data sets, and are named in the log.
    fn have_partitions(&mut self, made: &[Arc<Table>]) -> Result<()> {
        made.iter().try_for_each(|table| table.add_partition().map(drop))?;
        self.log_definitions()
    }
}

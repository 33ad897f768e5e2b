//! What makes, changes and drops partitioned tables, as part of what one transaction defines.
//!
//! Invariants:
//! - while partitions come or go, or an index of all of them does, the name of the partitioned table is locked: one transaction at a time;
//! - a partitioned table has at least one partition, and all have the same columns and the same primary key;
//! - what is said of a partitioned table in notes is said of each of its partitions, whenever that comes;
//! - keys of a unique index are unique over all partitions: as a key is in one partition only if it has the columns by which the table is divided, and else as whoever gives it to a row looks in all;
//! - what a partition has of an index of the whole goes with that, or with the partition.

use super::defining::{Definer, Defining};
use super::open::DatabaseState;
use super::partitioned::PartitionSpec;
use crate::index::{Index, IndexAttributes};
use crate::objects::{PartitionedTable, RangePartition, SEPARATOR, partition_name, split_partition_name};
use crate::table_space::{RangeOf, Table, TableAttributes};
use crate::{Error, Result};
use pagefold_format::catalog::{DefinedKind, Notes};
use pagefold_types::{KeyRange, PARTITION_MAX};
use std::sync::Arc;

impl Defining {
    /// A partitioned table as this transaction has it.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn partitioned_table(&self, database: &DatabaseState, name: &str, timestamp: Option<u64>) -> Result<Arc<PartitionedTable>> {
        let unknown = |error| match error {
            Error::Unknown { name, hint, .. } => Error::Unknown { kind: "partitioned table", name, hint },
            other => other,
        };
        // For an older snapshot one that was dropped since comes first.
        let dropped = timestamp.and_then(|timestamp| database.former_other(DefinedKind::PartitionedTable, name, timestamp));
        let is_dropped = dropped.is_some();
        let other = dropped.map_or_else(|| self.other(database, DefinedKind::PartitionedTable, name).map_err(unknown), Ok)?;
        let is_seen = |table: &Arc<Table>| timestamp.is_none_or(|timestamp| table.lifetime.covers(timestamp));
        let is_member = |table: &Table| table.range().is_some_and(|range| range.table == other.object_id);
        let former = timestamp.map(|timestamp| database.former_tables(|table| is_member(table) && table.lifetime.covers(timestamp)));
        let former = former.unwrap_or_default();
        if self.is_empty() && former.is_empty() && !is_dropped {
            let live = database.partitioned_table(name)?;
            let opened = |partition: &RangePartition| database.opened_table(partition.object_id());
            if timestamp.is_none() || live.partitions().iter().filter_map(opened).all(|table| is_seen(&table)) {
                return Ok(live);
            }
        }
        // What there is, and is seen; what was there, and is seen; what it has made. Not what it has dropped.
        let live = database.objects.read().members.of(other.object_id);
        let is_there = |partition: &RangePartition| {
            let is_own = self.has_dropped(partition.object_id()) || self.table_by_id(partition.object_id()).is_some();
            !is_own && database.opened_table(partition.object_id()).is_none_or(|table| is_seen(&table))
        };
        let mut members: Vec<RangePartition> = live.into_iter().filter(is_there).collect();
        let made = self.tables().filter(|table| is_member(table));
        let of_others = former.iter().filter(|table| !self.has_dropped(table.object_id));
        members.extend(made.chain(of_others).filter_map(|table| RangePartition::of(table)));
        members.sort_by(|a, b| a.keys().start.cmp(&b.keys().start));
        members.dedup_by_key(|partition| partition.object_id());
        match members.first() {
            Some(first) => {
                // One that was altered or exchanged since: as it was.
                let before =
                    former.iter().find(|table| table.object_id == first.object_id() && self.table_by_id(table.object_id).is_none());
                let attributes = before.map_or_else(|| self.attributes_of(database, first), |table| Ok(table.attributes_now()))?;
                Ok(Arc::new(PartitionedTable::new(other.object_id, name, &attributes, members)?))
            }
            None => Err(Error::Stale {
                object: format!("partitioned table \"{name}\""),
                why: "was made after the snapshot of this transaction",
            }),
        }
    }

    fn attributes_of(&self, database: &DatabaseState, partition: &RangePartition) -> Result<TableAttributes> {
        match self.table(partition.table_name()) {
            Some(own) if own.object_id == partition.object_id() => Ok(own.attributes_now()),
            _ => database.attributes_of(partition),
        }
    }

    /// Refuses to drop by itself an index that is a partition's share of an index of the whole.
    pub(super) fn check_alone(&self, by: Definer<'_>, index: &Index) -> Result<()> {
        let Some((whole, partition)) = split_partition_name(index.name()) else { return Ok(()) };
        let Ok(other) = self.other(by.database, DefinedKind::PartitionedIndex, whole) else { return Ok(()) };
        let table = self.tables().find(|own| own.object_id == index.table_id).cloned();
        let table = table.map_or_else(|| by.database.table_of(index), Ok)?;
        if table.range().is_some_and(|range| Some(range.table) == other.notes.partitioned_table()) {
            return Err(Error::Parameter(format!(
                "{} is what partition \"{partition}\" has of index \"{whole}\": that goes as a whole",
                index.object()
            )));
        }
        Ok(())
    }

    /// The table of a partition, as this transaction has it.
    pub(super) fn table_of(&self, database: &DatabaseState, partition: &RangePartition) -> Result<Arc<Table>> {
        match self.table(partition.table_name()) {
            Some(own) if own.object_id == partition.object_id() => Ok(Arc::clone(own)),
            _ => database.table_of_partition(partition),
        }
    }

    /// A partitioned table and its partitions, not logged yet. `attributes` are those of each partition, but for the name.
    ///
    /// # Errors
    /// When a name is taken, there is no partition, limits do not ascend, or an attribute is out of range.
    pub(super) fn create_partitioned_table(
        &mut self,
        by: Definer<'_>,
        attributes: &TableAttributes,
        columns: &[usize],
        partitions: &[PartitionSpec],
    ) -> Result<Vec<Arc<Table>>> {
        let refuse = |why: String| Err(Error::Parameter(format!("partitioned table \"{}\": {why}", attributes.name)));
        if partitions.is_empty() || partitions.len() > usize::from(PARTITION_MAX) + 1 {
            return refuse(format!("{} partitions, not 1 to {}", partitions.len(), u32::from(PARTITION_MAX) + 1));
        }
        if let Some(twice) = partitions.iter().enumerate().find(|(at, spec)| partitions[..*at].iter().any(|own| own.name == spec.name)) {
            return refuse(format!("two partitions are called \"{}\"", twice.1.name));
        }
        let numbers: Vec<u32> = columns.iter().map(|column| *column as u32).collect();
        let mut notes = Notes::default();
        notes.set_ranges(&numbers, &[]).map_err(|e| Error::Parameter(e.to_string()))?;
        let whole = self.create_other(by, DefinedKind::PartitionedTable, &attributes.name, notes)?;
        let mut start = Vec::new();
        let mut made = Vec::with_capacity(partitions.len());
        for (number, spec) in partitions.iter().enumerate() {
            if number > 0 && start.is_empty() {
                return refuse(format!("partition \"{}\" comes behind one without a limit", spec.name));
            }
            let before = std::mem::take(&mut start);
            if spec.start.as_ref().is_some_and(|own| *own < before) {
                return refuse(format!("partition \"{}\" begins before the one before it ends", spec.name));
            }
            let keys = KeyRange { start: spec.start.clone().unwrap_or(before), end: spec.limit.clone() };
            if keys.end.as_ref().is_some_and(|end| *end <= keys.start) {
                return refuse(format!("the limit of partition \"{}\" is not above that of the one before", spec.name));
            }
            start = spec.limit.clone().unwrap_or_default();
            let range = RangeOf { table: whole.object_id, number: number as u16, columns: columns.to_vec(), keys };
            made.push(self.create_member(by, attributes, &attributes.name, range, (spec, &[]))?);
        }
        Ok(made)
    }

    /// Refuses a partition of keys that another one has, or of nothing. `replaced`: the tables that it is to replace, as they are now.
    pub(super) fn check_range(
        &self,
        database: &DatabaseState,
        attributes: &TableAttributes,
        range: &RangeOf,
        replaced: &[u32],
    ) -> Result<()> {
        let name = &attributes.name;
        let is_other = |object_id: u32| !replaced.contains(&object_id) && !self.has_dropped(object_id);
        let overlaps = |own: &RangeOf| {
            let begins_before = |a: &KeyRange, b: &KeyRange| b.end.as_ref().is_none_or(|end| a.start < *end);
            own.table == range.table && begins_before(&own.keys, &range.keys) && begins_before(&range.keys, &own.keys)
        };
        let objects = database.objects.read();
        let live = objects.members.of(range.table);
        let others = live
            .iter()
            // What this transaction has altered or exchanged is looked at as it is now.
            .filter(|partition| self.table_by_id(partition.object_id()).is_none())
            .filter(|partition| is_other(partition.object_id()) && overlaps(partition.range()))
            .map(|partition| partition.table_name());
        let own = self.tables().filter(|table| is_other(table.object_id) && table.range().is_some_and(overlaps)).map(|table| table.name());
        let refuse = |why: String| Err(Error::Parameter(format!("table \"{name}\": {why}")));
        if let Some(taken) = others.chain(own).next() {
            return refuse(format!("its range overlaps that of \"{taken}\""));
        }
        drop(objects);
        // All have the same columns and the same key; one that is about to be replaced has them, too.
        let of_range = |own: &TableAttributes| own.range.as_ref().map(|range| range.columns.clone());
        let check = |known: &TableAttributes| {
            let same =
                (&known.schema, &known.primary_key, of_range(known)) == (&attributes.schema, &attributes.primary_key, of_range(attributes));
            match same {
                true => Ok(()),
                false => refuse(format!("a partition has the columns and the primary key of the others, as of \"{}\"", known.name)),
            }
        };
        match self.tables().find(|own| own.range().is_some_and(|own| own.table == range.table)) {
            Some(own) => check(own.attributes())?,
            None => {
                // One that this transaction has dropped may have had other columns before it was altered.
                let other = live.iter().find(|partition| !self.has_dropped(partition.object_id()));
                other.map_or(Ok(()), |other| check(&database.attributes_of(other)?))?;
            }
        }
        let is_whole = |object_id: u32| object_id == range.table && !self.has_dropped(object_id);
        let made = self.others_made().any(|other| is_whole(other.object_id));
        if made || database.objects.read().others.by_id(range.table).is_some_and(|place| is_whole(place.object_id)) {
            return Ok(());
        }
        refuse("it is to be a partition of a table that is not there".into())
    }

    fn create_member(
        &mut self,
        by: Definer<'_>,
        attributes: &TableAttributes,
        whole: &str,
        range: RangeOf,
        (spec, replaced): (&PartitionSpec, &[u32]),
    ) -> Result<Arc<Table>> {
        if spec.name.is_empty() || spec.name.contains(SEPARATOR) {
            return Err(Error::Parameter(format!("\"{}\" is no name for a partition: it is empty, or has a slash", spec.name)));
        }
        let mut own = TableAttributes { range: Some(range), ..attributes.clone() };
        // It is another table, of which nothing is known yet.
        own.notes.set_statistics(None).map_err(|e| Error::Parameter(e.to_string()))?;
        if let Some(page_bytes) = spec.page_bytes {
            own = own.with_page_bytes(page_bytes);
        }
        own.name = partition_name(whole, &spec.name);
        own.method = spec.method.unwrap_or(own.method);
        self.create_table_beside(by, replaced, own)
    }

    /// Locks a partitioned table against others who would change what it consists of.
    pub(super) fn lock_partitioned(&self, by: Definer<'_>, name: &str) -> Result<Arc<PartitionedTable>> {
        by.lock_name(name)?;
        self.partitioned_table(by.database, name, None)
    }

    /// A partition in the place of none, not logged yet. It begins where it is said to, and is like the first then; else it is like the last one, and begins where that ends.
    ///
    /// # Errors
    /// When its range is empty or belongs to another one, or the name is taken.
    pub(super) fn add_partition(&mut self, by: Definer<'_>, table: &PartitionedTable, spec: &PartitionSpec) -> Result<Arc<Table>> {
        let refuse = |why: String| Err(Error::Parameter(format!("{}: {why}", table.object())));
        if let Some(start) = &spec.start {
            // That it is not empty, and overlaps no other, is made sure of as of every one.
            let keys = KeyRange { start: start.clone(), end: spec.limit.clone() };
            let like = self.table_of(by.database, table.first())?;
            return self.add_like(by, table, &like, keys, (spec, &[]));
        }
        let last = table.last();
        let Some(start) = last.keys().end.clone() else {
            return refuse(format!("its last partition \"{}\" has no limit: split it", last.name()));
        };
        if spec.limit.as_ref().is_some_and(|limit| *limit <= start) {
            return refuse(format!("the limit of partition \"{}\" is not above that of the last one, \"{}\"", spec.name, last.name()));
        }
        let keys = KeyRange { start, end: spec.limit.clone() };
        let like = self.table_of(by.database, last)?;
        self.add_like(by, table, &like, keys, (spec, &[]))
    }

    /// A partition with these keys, which none has but those that it replaces, that is else like one that there is. What is said of it is what is said of the table, so of its
    /// first partition.
    pub(super) fn add_like(
        &mut self,
        by: Definer<'_>,
        whole: &PartitionedTable,
        like: &Table,
        keys: KeyRange,
        (spec, replaced): (&PartitionSpec, &[u32]),
    ) -> Result<Arc<Table>> {
        let taken: Vec<u16> = self
            .tables()
            .filter_map(|own| own.range().filter(|range| range.table == whole.object_id()))
            .map(|range| range.number)
            .collect();
        let stays = |partition: &RangePartition| {
            let object_id = partition.object_id();
            !self.has_dropped(object_id) && !replaced.contains(&object_id)
        };
        let number = whole.free_number(stays, &taken)?;
        let range = RangeOf { table: whole.object_id(), number, columns: whole.columns().to_vec(), keys };
        let first = whole.first();
        let notes =
            self.notes(first.object_id()).map_or_else(|| self.attributes_of(by.database, first).map(|of| Arc::new(of.notes)), Ok)?;
        let attributes = TableAttributes { notes: Notes::clone(&notes), ..like.attributes_now() };
        self.create_member(by, &attributes, whole.name(), range, (spec, replaced))
    }

    /// What the indexes of a new partition are to be: as those that another one has of indexes of the whole.
    pub(super) fn member_indexes(
        &self,
        database: &DatabaseState,
        whole: &PartitionedTable,
        like: &RangePartition,
        new: &str,
    ) -> Result<Vec<IndexAttributes>> {
        let table = self.table_of(database, like)?;
        let names = self.partitioned_indexes(database, whole);
        let own = self.indexes_as_now(&table);
        let again = |index: &String| {
            let name = partition_name(index, like.name());
            let found = own.iter().find(|own| own.name() == name)?;
            Some(IndexAttributes { name: partition_name(index, new), ..found.attributes_now() })
        };
        Ok(names.iter().filter_map(again).collect())
    }

    /// Names of the indexes of a partitioned table, as this transaction has them.
    pub(super) fn partitioned_indexes(&self, database: &DatabaseState, whole: &PartitionedTable) -> Vec<String> {
        let mut names = database.partitioned_indexes_of(whole);
        let is_there = |name: &str| {
            let other = self.other(database, DefinedKind::PartitionedIndex, name);
            other.is_ok_and(|other| other.notes.partitioned_table() == Some(whole.object_id()))
        };
        names.extend(self.others_made().filter(|other| other.kind == DefinedKind::PartitionedIndex).map(|other| other.name.clone()));
        names.sort_unstable();
        names.dedup();
        names.retain(|name| is_there(name));
        names
    }

    /// The name of an index of all partitions; its indexes are made by themselves.
    ///
    /// # Errors
    /// When the name is taken.
    pub(super) fn create_partitioned_index(
        &mut self,
        by: Definer<'_>,
        table: &PartitionedTable,
        attributes: &IndexAttributes,
    ) -> Result<()> {
        let mut notes = attributes.notes.clone();
        notes.set_partitioned_table(table.object_id()).map_err(|e| Error::Parameter(e.to_string()))?;
        self.create_other(by, DefinedKind::PartitionedIndex, &attributes.name, notes).map(drop)
    }

    /// The attributes of the index of a partition that belongs to an index of the whole.
    pub(super) fn member_index_attributes(attributes: &IndexAttributes, partition: &str) -> IndexAttributes {
        IndexAttributes { name: partition_name(&attributes.name, partition), notes: Notes::default(), ..attributes.clone() }
    }

    /// Drops a partition: a table.
    ///
    /// # Errors
    /// When it is the only one.
    pub(super) fn drop_partition(&mut self, by: Definer<'_>, table: &PartitionedTable, name: &str) -> Result<Arc<Table>> {
        let partition = table.partition(name)?;
        if table.partitions().len() == 1 {
            return Err(Error::Parameter(format!("{}: \"{name}\" is its only partition; drop the table", table.object())));
        }
        self.drop_table(by, partition.table_name())
    }

    /// Drops a partitioned table, its indexes and its partitions.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub(super) fn drop_partitioned_table(&mut self, by: Definer<'_>, name: &str) -> Result<Vec<Arc<Table>>> {
        let table = self.lock_partitioned(by, name)?;
        for index in self.partitioned_indexes(by.database, &table) {
            self.drop_other(by, DefinedKind::PartitionedIndex, &index)?;
        }
        let dropped = table.partitions().iter().map(|partition| self.drop_table(by, partition.table_name()));
        let dropped = dropped.collect::<Result<Vec<_>>>()?;
        self.drop_other(by, DefinedKind::PartitionedTable, name)?;
        Ok(dropped)
    }

    /// Drops an index of a partitioned table, with those of its partitions.
    ///
    /// # Errors
    /// When there is none; those of locks.
    pub(super) fn drop_partitioned_index(&mut self, by: Definer<'_>, name: &str) -> Result<()> {
        let other = self.other(by.database, DefinedKind::PartitionedIndex, name)?;
        if let Some(whole) = self.table_of_partitioned_index(by.database, &other.notes) {
            let table = self.lock_partitioned(by, &whole)?;
            for partition in table.partitions() {
                let found = self.table_of(by.database, partition)?;
                let own = partition_name(name, partition.name());
                if self.indexes_as_now(&found).iter().any(|index| index.name() == own) {
                    self.drop_index(by, &own)?;
                }
            }
        }
        self.drop_other(by, DefinedKind::PartitionedIndex, name)
    }

    /// The name of the partitioned table that an index is of, by its notes.
    fn table_of_partitioned_index(&self, database: &DatabaseState, notes: &Notes) -> Option<String> {
        let object_id = notes.partitioned_table()?;
        let own = self.others_made().find(|own| own.object_id == object_id).map(|own| own.name.clone());
        let is_live = |whole: &String| {
            let found = database.other(DefinedKind::PartitionedTable, whole).ok().flatten();
            found.is_some_and(|found| found.object_id == object_id)
        };
        own.or_else(|| database.partitioned_names().into_iter().find(is_live))
    }

    /// Gives an index of a partitioned table another name, and what each partition has of it; these, as they were.
    ///
    /// # Errors
    /// When there is none, a name is taken, or a partition has no sound share of it; those of locks.
    pub(super) fn rename_partitioned_index(&mut self, by: Definer<'_>, name: &str, to: &str) -> Result<Vec<Arc<Index>>> {
        let other = self.other(by.database, DefinedKind::PartitionedIndex, name)?;
        let refuse = |why: String| Err(Error::Parameter(format!("index \"{name}\": {why}")));
        let Some(whole) = self.table_of_partitioned_index(by.database, &other.notes) else {
            return refuse("the table that it is of is not there".into());
        };
        let table = self.lock_partitioned(by, &whole)?;
        // Whoever looks for it by its name meets one or the other.
        self.drop_other(by, DefinedKind::PartitionedIndex, name)?;
        self.create_other(by, DefinedKind::PartitionedIndex, to, other.notes.clone())?;
        let mut renamed = Vec::with_capacity(table.partitions().len());
        for partition in table.partitions() {
            let found = self.table_of(by.database, partition)?;
            let own = partition_name(name, partition.name());
            let Some(index) = self.indexes_as_now(&found).into_iter().find(|index| index.name() == own) else {
                return refuse(format!("partition \"{}\" has none that can be opened", partition.name()));
            };
            let notes = self.notes(index.object_id).unwrap_or_else(|| index.notes());
            let name = partition_name(to, partition.name());
            self.alter_index_attributes(by, &index, IndexAttributes { name, notes: Notes::clone(&notes), ..index.attributes_now() })?;
            renamed.push(index);
        }
        Ok(renamed)
    }
}

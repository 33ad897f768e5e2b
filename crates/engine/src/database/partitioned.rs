//! Partitioned tables: what they are, the limits of partitions, and finding them (`defining_partitions` makes, changes and drops them).
//!
//! A partitioned table is an object without pages; its partitions are tables, named `<table>/<partition>`. Each says in its definition of which
//! table and which range it is, so a partition can be written anew, moved to another method and dropped like any other table. A partitioned
//! index is likewise a name for the indexes `<index>/<partition>`, one of each partition.

use super::open::DatabaseState;
use crate::catalog::{Defined, read_definition};
use crate::index::Index;
use crate::objects::{PartitionedTable, RangePartition, TEMPLATE_NAME, first_key};
use crate::table_space::{Method, Table, TableAttributes, range_key_layout};
use crate::{Error, Result};
use pagefold_format::catalog::DefinedKind;
use pagefold_types::{ValueRef, prefix_end};
use std::sync::Arc;

/// A partition that is to be made.
#[derive(Clone, Debug, Default)]
pub struct PartitionSpec {
    /// Its name among the partitions.
    pub name: String,
    /// The first key that it may have; `None`: it begins where the one before it ends.
    pub start: Option<Vec<u8>>,
    /// The key that is the first behind it, as [`limit_key`] makes it; `None`: it has no end.
    pub limit: Option<Vec<u8>>,
    /// Its method, if it is to have another one than the others.
    pub method: Option<Method>,
    /// Its page size, likewise.
    pub page_bytes: Option<usize>,
}

impl PartitionSpec {
    /// The partition that stands for a table which is made before its partitions: the only one then ([`PartitionedTable::is_open`]).
    #[must_use]
    pub fn template() -> PartitionSpec {
        PartitionSpec { name: TEMPLATE_NAME.into(), limit: Some(first_key()), ..PartitionSpec::default() }
    }
}

/// The limit of a partition: rows whose keys are less than these values are before it. Fewer values than columns: all rows that begin with less.
/// A value that is `None` is above all there are: MAXVALUE. What follows it does not count. `None` when the first one is so: there is no limit.
///
/// # Errors
/// When there are no values or too many, or one does not fit its column.
pub fn limit_key(attributes: &TableAttributes, columns: &[usize], values: &[Option<ValueRef<'_>>]) -> Result<Option<Vec<u8>>> {
    let refuse = |why: &dyn std::fmt::Display| Error::Parameter(format!("table \"{}\": a limit {why}", attributes.name));
    if values.is_empty() || values.len() > columns.len() {
        return Err(refuse(&format!("has {} values; the table is divided by {} columns", values.len(), columns.len())));
    }
    let given: Vec<ValueRef<'_>> = values.iter().copied().map_while(|value| value).collect();
    if given.is_empty() {
        return Ok(None);
    }
    let mut key = Vec::new();
    let layout = range_key_layout(&attributes.name, &attributes.schema, columns);
    layout.encode(&given, &mut key).map_err(|e| refuse(&e))?;
    // Behind all keys that begin with what is before a MAXVALUE.
    Ok((given.len() == values.len() || prefix_end(&mut key)).then_some(key))
}

impl DatabaseState {
    /// Names of all partitioned tables, in their order.
    #[must_use]
    pub fn partitioned_names(&self) -> Vec<String> {
        self.object_names(DefinedKind::PartitionedTable)
    }

    /// Names of all that has no pages and is of this kind, in their order.
    #[must_use]
    pub fn object_names(&self, kind: DefinedKind) -> Vec<String> {
        let names: Vec<String> = self.objects.read().others.names().map(str::to_owned).collect();
        names.into_iter().filter(|name| matches!(self.other(kind, name), Ok(Some(_)))).collect()
    }

    /// A partitioned table by name.
    ///
    /// # Errors
    /// When there is none, or a partition cannot be opened.
    pub fn partitioned_table(&self, name: &str) -> Result<Arc<PartitionedTable>> {
        let other = self.other(DefinedKind::PartitionedTable, name)?;
        let other = other.ok_or_else(|| Error::Unknown { kind: "partitioned table", name: name.into(), hint: String::new() })?;
        let members = {
            let objects = self.objects.read();
            if let Some(value) = objects.members.value(other.object_id) {
                return Ok(Arc::clone(value));
            }
            objects.members.of(other.object_id)
        };
        let value = Arc::new(self.partitioned_of(other.object_id, name, members)?);
        self.objects.read().members.set_value(&value);
        Ok(value)
    }

    fn partitioned_of(&self, object_id: u32, name: &str, members: Vec<RangePartition>) -> Result<PartitionedTable> {
        let none = || Error::Damaged { path: "catalog".into(), reason: format!("partitioned table \"{name}\" has no partition") };
        let attributes = self.attributes_of(members.first().ok_or_else(none)?)?;
        PartitionedTable::new(object_id, name, &attributes, members)
    }

    /// The table of a partition.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is gone; when it cannot be opened.
    pub fn table_of_partition(&self, partition: &RangePartition) -> Result<Arc<Table>> {
        self.table_by_id(partition.object_id())?.ok_or_else(|| Error::Stale {
            object: format!("table \"{}\"", partition.table_name()),
            why: "was dropped or replaced: look it up again",
        })
    }

    /// What the catalog says of a partition, whatever state its files are in: they are not looked at.
    pub(super) fn attributes_of(&self, partition: &RangePartition) -> Result<TableAttributes> {
        let place = self.objects.read().tables.by_id(partition.object_id()).cloned();
        let described = place.as_ref().and_then(|place| place.definition());
        match described.map(|definition| read_definition(partition.object_id(), &definition, |_| None)).transpose()? {
            Some(Defined::Table(entry)) => Ok(entry.attributes),
            // Somebody has used it, or it is a former one.
            _ => match place.and_then(|place| place.opened()) {
                Some(table) => Ok(table.attributes_now()),
                None => Ok(self.table_of_partition(partition)?.attributes_now()),
            },
        }
    }

    /// Names of the indexes of a partitioned table, in their order.
    #[must_use]
    pub fn partitioned_indexes_of(&self, table: &PartitionedTable) -> Vec<String> {
        let all = self.object_names(DefinedKind::PartitionedIndex).into_iter();
        all.filter(|name| self.is_index_of(name, table)).collect()
    }

    /// The partitioned table of a partitioned index, and the names of the indexes that its partitions have; `None` when there is none of this name.
    ///
    /// # Errors
    /// When a partition cannot be opened.
    pub fn partitioned_index(&self, name: &str) -> Result<Option<(Arc<PartitionedTable>, Vec<String>)>> {
        let Some(index) = self.other(DefinedKind::PartitionedIndex, name)? else { return Ok(None) };
        for name_of_whole in self.partitioned_names() {
            // Others are not looked at, as they may be damaged.
            let whole = self.other(DefinedKind::PartitionedTable, &name_of_whole)?.map(|whole| whole.object_id);
            if whole.is_some() && whole == index.notes.partitioned_table() {
                let whole = self.partitioned_table(&name_of_whole)?;
                let names = whole.partitions().iter().map(|partition| PartitionedTable::index_name(name, partition)).collect();
                return Ok(Some((whole, names)));
            }
        }
        Ok(None)
    }

    fn is_index_of(&self, index: &str, table: &PartitionedTable) -> bool {
        let other = self.other(DefinedKind::PartitionedIndex, index);
        matches!(other, Ok(Some(other)) if other.notes.partitioned_table() == Some(table.object_id()))
    }

    /// The index of a partition that belongs to an index of its partitioned table.
    ///
    /// # Errors
    /// [`Error::Unknown`] when there is none.
    pub fn index_of_partition(&self, partition: &RangePartition, index: &str) -> Result<Arc<Index>> {
        self.index(&PartitionedTable::index_name(index, partition))
    }
}

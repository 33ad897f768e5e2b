//! A partitioned table as a value: which partition has which keys.
//!
//! Invariants:
//! - there is a partition; they are in the order of their keys, and no key belongs to two;
//! - a value never changes: when partitions come or go, another one is made.

use crate::table_space::{RangeOf, Table, TableAttributes, range_key_layout};
use crate::{Error, Result};
use pagefold_types::text::to_text;
use pagefold_types::{Direction, KeyLayout, KeyRange, PARTITION_MAX, Predicate, Schema, Value, ValueRef};
use std::sync::Arc;

/// Between the name of a partitioned table, or index, and that of a partition.
pub(crate) const SEPARATOR: char = '/';

/// The name of the partition that stands for a table which is made before its partitions.
pub(crate) const TEMPLATE_NAME: &str = "pagefold_template";
/// The first of all keys: each has at least one byte.
const FIRST_KEY: [u8; 1] = [0];

/// The key that a range begins with which has no lower bound, beside a template.
#[must_use]
pub fn first_key() -> Vec<u8> {
    FIRST_KEY.to_vec()
}

/// The name that a partition has of its own, or its share of an index: that of the whole, then that of the partition.
#[must_use]
pub fn partition_name(whole: &str, partition: &str) -> String {
    format!("{whole}{SEPARATOR}{partition}")
}

/// Such a name in its parts: the whole, the partition; `None`: it is none.
#[must_use]
pub fn split_partition_name(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once(SEPARATOR)
}

/// A partition of a partitioned table: a table.
#[derive(Clone, Debug)]
pub struct RangePartition {
    object_id: u32,
    table: Arc<str>,
    range: Arc<RangeOf>,
}

impl RangePartition {
    pub(crate) fn new(object_id: u32, table: &str, range: RangeOf) -> RangePartition {
        RangePartition { object_id, table: table.into(), range: Arc::new(range) }
    }

    /// What a table is of a partitioned table, if it is a partition.
    #[must_use]
    pub fn of(table: &Table) -> Option<RangePartition> {
        Some(RangePartition::new(table.object_id, table.name(), table.range()?.clone()))
    }

    pub(crate) fn object_id(&self) -> u32 {
        self.object_id
    }

    /// The name of its table.
    #[must_use]
    pub fn table_name(&self) -> &str {
        &self.table
    }

    /// Its name among the partitions: what follows the name of the partitioned table.
    #[must_use]
    pub fn name(&self) -> &str {
        split_partition_name(&self.table).map_or(&self.table, |(_, name)| name)
    }

    /// Its number among the partitions.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.range.number
    }

    /// The keys that its rows have.
    #[must_use]
    pub fn keys(&self) -> &KeyRange {
        &self.range.keys
    }

    /// Is it the [template](PartitionedTable::is_open) of its table?
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.range.keys.start.is_empty() && self.range.keys.end.as_deref() == Some(&FIRST_KEY) && self.name() == TEMPLATE_NAME
    }

    pub(crate) fn range(&self) -> &RangeOf {
        &self.range
    }

    /// Can a key in this range, or one that begins with such, be in it?
    fn touches(&self, range: &KeyRange) -> bool {
        let own = &self.range.keys;
        let begins_before = own.end.as_ref().is_none_or(|end| range.start < *end);
        // A key of more columns than the range has lies behind the start of it that it begins with.
        begins_before && range.end.as_ref().is_none_or(|end| own.start < *end)
    }
}

/// A table that is divided by ranges of keys.
#[derive(Debug)]
pub struct PartitionedTable {
    object_id: u32,
    name: String,
    schema: Schema,
    columns: Vec<usize>,
    primary_key: Vec<usize>,
    layout: KeyLayout,
    partitions: Vec<RangePartition>,
}

impl PartitionedTable {
    /// Of partitions in the order of their keys, one of which has these attributes.
    pub(crate) fn new(
        object_id: u32,
        name: &str,
        attributes: &TableAttributes,
        partitions: Vec<RangePartition>,
    ) -> Result<PartitionedTable> {
        let damaged = |reason: &str| Error::Damaged { path: "catalog".into(), reason: format!("partitioned table \"{name}\": {reason}") };
        let range = attributes.range.as_ref().ok_or_else(|| damaged("a table without a range is a partition"))?;
        if partitions.is_empty() {
            return Err(damaged("it has no partition"));
        }
        for pair in partitions.windows(2) {
            if pair[0].keys().end.as_ref().is_none_or(|end| *end > pair[1].keys().start) {
                return Err(damaged(&format!("partitions \"{}\" and \"{}\" overlap", pair[0].name(), pair[1].name())));
            }
        }
        Ok(PartitionedTable {
            object_id,
            name: name.into(),
            schema: attributes.schema.clone(),
            columns: range.columns.clone(),
            primary_key: attributes.primary_key.clone(),
            layout: range_key_layout(name, &attributes.schema, &range.columns),
            partitions,
        })
    }

    pub(crate) fn object_id(&self) -> u32 {
        self.object_id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What errors call it.
    #[must_use]
    pub fn object(&self) -> String {
        format!("partitioned table \"{}\"", self.name)
    }

    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns by which it is divided, by number.
    #[must_use]
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The columns of its primary key, by number.
    #[must_use]
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// How these make a key.
    #[must_use]
    pub fn key_layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// The name that the index of a partition has that belongs to an index of the whole.
    #[must_use]
    pub fn index_name(index: &str, partition: &RangePartition) -> String {
        partition_name(index, partition.name())
    }

    /// The partition with the least keys.
    #[must_use]
    pub fn first(&self) -> &RangePartition {
        &self.partitions[0]
    }

    /// The partition with the greatest keys.
    #[must_use]
    pub fn last(&self) -> &RangePartition {
        &self.partitions[self.partitions.len() - 1]
    }

    /// Its partitions, in the order of their keys; a template among them.
    #[must_use]
    pub fn partitions(&self) -> &[RangePartition] {
        &self.partitions
    }

    /// Was it made before its partitions? Then the first of these is its template, which has no keys, and so no rows: it says what the table is while there is no other, and what others are like
    /// that come. Each partition is made with both of its bounds, between them there may be gaps, and the last one may go.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.first().is_template()
    }

    /// Its partitions but for the template, in the order of their keys.
    #[must_use]
    pub fn own_partitions(&self) -> &[RangePartition] {
        &self.partitions[usize::from(self.is_open())..]
    }

    /// The partition of this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn partition(&self, name: &str) -> Result<&RangePartition> {
        let own = self.own_partitions();
        let found = own.iter().find(|partition| partition.name() == name);
        found.ok_or_else(|| {
            const SHOWN: usize = 20;
            let names: Vec<&str> = own.iter().take(SHOWN).map(RangePartition::name).collect();
            let more = if own.len() > SHOWN { ", ..." } else { "" };
            let hint = format!(" of \"{}\"; there are: {}{more}", self.name, names.join(", "));
            Error::Unknown { kind: "partition", name: name.into(), hint }
        })
    }

    /// A number that none of the partitions has that stay.
    ///
    /// # Errors
    /// When there are all that can be.
    pub(crate) fn free_number(&self, stays: impl Fn(&RangePartition) -> bool, also_taken: &[u16]) -> Result<u16> {
        let own = self.partitions.iter().filter(|partition| stays(partition)).map(RangePartition::number);
        let mut taken: Vec<u16> = own.chain(also_taken.iter().copied()).collect();
        taken.sort_unstable();
        taken.dedup();
        let next = taken.last().map_or(0, |last| last.saturating_add(1));
        if next <= PARTITION_MAX {
            return Ok(next);
        }
        let gap = taken.iter().enumerate().find_map(|(at, number)| (at != usize::from(*number)).then_some(at as u16));
        gap.filter(|_| taken.len() <= usize::from(PARTITION_MAX)).ok_or_else(|| self.is_full())
    }

    fn is_full(&self) -> Error {
        Error::Parameter(format!("{} has all {} partitions it can have", self.object(), u32::from(PARTITION_MAX) + 1))
    }

    /// The key of a row, given all of its values.
    ///
    /// # Errors
    /// When a value does not fit.
    pub fn key(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        self.layout.encode_from_values(values, key).map(drop).map_err(|e| Error::Value(format!("{}: {e}", self.object())))
    }

    /// The values with which a partition ends, as texts, of the first columns by which the table is divided; `None` is MAXVALUE. None at all where no values give its limit.
    #[must_use]
    pub fn limit_texts(&self, partition: &RangePartition) -> Vec<Option<String>> {
        match &partition.keys().end {
            Some(limit) => self.bound_texts(limit),
            None => vec![None],
        }
    }

    /// The same of the values with which it begins. None at all where it has no lower bound, or no values give it.
    #[must_use]
    pub fn start_texts(&self, partition: &RangePartition) -> Vec<Option<String>> {
        let start = &partition.keys().start;
        if start.as_slice() <= FIRST_KEY.as_slice() { Vec::new() } else { self.bound_texts(start) }
    }

    fn bound_texts(&self, bound: &[u8]) -> Vec<Option<String>> {
        let Some((layout, key, is_max)) = self.readable_limit(bound) else { return Vec::new() };
        let values = layout.decode(&key).unwrap_or_default();
        let text = |(value, column): (&Value, &usize)| Some(to_text(value.as_ref(), &self.schema.columns()[*column].data_type));
        values.iter().zip(&self.columns).map(text).chain(is_max.then_some(None)).collect()
    }

    /// The key that a limit is, of as many columns as it has values for; or the one that it comes behind, with all that begin with that.
    #[must_use]
    pub fn readable_limit(&self, limit: &[u8]) -> Option<(KeyLayout, Vec<u8>, bool)> {
        for count in (1..=self.columns.len()).rev() {
            let layout = range_key_layout(&self.name, &self.schema, &self.columns[..count]);
            if layout.decode(limit).is_ok_and(|values| !values.contains(&Value::Null)) {
                return Some((layout, limit.to_vec(), false));
            }
            let mut before = limit.to_vec();
            if let Some(last) = before.last_mut().filter(|last| **last > 0) {
                *last -= 1;
                if layout.decode(&before).is_ok() {
                    return Some((layout, before, true));
                }
            }
        }
        None
    }

    /// Number in the list of the partition that has a key, if one has.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let behind = self.partitions.partition_point(|partition| partition.keys().start.as_slice() <= key);
        let at = behind.checked_sub(1)?;
        self.partitions[at].keys().end.as_deref().is_none_or(|end| key < end).then_some(at)
    }

    /// The same, where a row is to go there.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn find_for(&self, key: &[u8]) -> Result<usize> {
        self.find(key).ok_or_else(|| Error::OutOfRange {
            object: self.object(),
            key: self.layout.describe(key),
            why: "belongs in no partition",
        })
    }

    /// Does an index of these columns have keys in the order of the partitions? Then ranges of it tell which partitions have them.
    #[must_use]
    pub fn is_in_order_of(&self, columns: &[(usize, Direction)]) -> bool {
        let shared = self.columns.len().min(columns.len());
        let same = self.columns.iter().zip(columns).all(|(own, (other, direction))| own == other && *direction == Direction::Ascending);
        shared > 0 && same
    }

    /// The key of ranges that rows have whose columns `columns` have these values, if these are enough to tell. Values may be of the first columns only.
    ///
    /// # Errors
    /// When a value does not fit.
    pub fn key_from(&self, columns: &[(usize, Direction)], values: &[ValueRef<'_>]) -> Result<Option<Vec<u8>>> {
        let value_of = |column: &usize| columns.iter().position(|(own, _)| own == column).and_then(|at| values.get(at).copied());
        let Some(values) = self.columns.iter().map(value_of).collect::<Option<Vec<ValueRef<'_>>>>() else { return Ok(None) };
        let mut key = Vec::new();
        self.layout.encode(&values, &mut key).map_err(|e| Error::Value(format!("{}: {e}", self.object())))?;
        Ok(Some(key))
    }

    /// How these ranges of an index of these columns are read: which partitions, by their numbers in the list, in which order, each in which ranges; and
    /// whether that is the order of the keys, range by range as they are listed. If not, all are to be read by key. Of `chosen` partitions only.
    #[must_use]
    pub fn plan(
        &self,
        columns: &[(usize, Direction)],
        ranges: &[KeyRange],
        chosen: &[usize],
        backward: bool,
    ) -> (Vec<(usize, Vec<KeyRange>)>, bool) {
        if !self.is_in_order_of(columns) {
            return (chosen.iter().map(|at| (*at, ranges.to_vec())).collect(), false);
        }
        let mut parts: Vec<(usize, Vec<KeyRange>)> = Vec::new();
        for range in ranges {
            let mut found = self.find_ranges(std::slice::from_ref(range));
            found.retain(|at| chosen.binary_search(at).is_ok());
            if backward {
                found.reverse();
            }
            for at in found {
                // Those of one partition that follow each other go together.
                match parts.last_mut() {
                    Some((last, ranges)) if *last == at => ranges.push(range.clone()),
                    _ => parts.push((at, vec![range.clone()])),
                }
            }
        }
        (parts, true)
    }

    /// Numbers in the list of the partitions that may have rows for which a condition is true, in order; of all where there is none.
    #[must_use]
    pub fn find_for_condition(&self, condition: Option<&Predicate>) -> Vec<usize> {
        match condition {
            Some(condition) => self.find_ranges(&condition.key_ranges(&self.layout)),
            None => (0..self.partitions.len()).collect(),
        }
    }

    /// Numbers in the list of the partitions that may have keys in one of these ranges, in order. Keys may have more columns behind those by
    /// which the table is divided.
    #[must_use]
    pub fn find_ranges(&self, ranges: &[KeyRange]) -> Vec<usize> {
        (0..self.partitions.len()).filter(|at| ranges.iter().any(|range| self.partitions[*at].touches(range))).collect()
    }
}

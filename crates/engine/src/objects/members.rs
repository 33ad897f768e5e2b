//! The range partitions of partitioned tables, by the keys that they begin with.
//!
//! Invariants:
//! - a table is a member if its definition says so, and of that partitioned table;
//! - a value of a partitioned table that was made is given again until one of its partitions comes or goes.

use super::partitioned::{PartitionedTable, RangePartition};
use super::places::{Place, State};
use crate::Result;
use crate::catalog::definition_range;
use crate::table_space::{RangeOf, Table};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Those of one partitioned table.
#[derive(Clone, Debug, Default)]
struct Group {
    by_start: BTreeMap<Vec<u8>, RangePartition>,
    /// What they are together, if somebody has asked.
    value: OnceLock<Arc<PartitionedTable>>,
}

/// Those of all partitioned tables, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(BTreeMap<u32, Group>);

impl Place<Table> {
    fn range(&self) -> Result<Option<RangeOf>> {
        match &*self.state.read() {
            State::Open(table) => Ok(table.range().cloned()),
            State::Described(definition) => definition_range(definition),
        }
    }
}

impl Members {
    /// A table comes. False when another one begins with the same key.
    pub(super) fn insert(&mut self, place: &Arc<Place<Table>>) -> Result<bool> {
        let Some(range) = place.range()? else { return Ok(true) };
        let group = self.0.entry(range.table).or_default();
        if group.by_start.contains_key(&range.keys.start) {
            return Ok(false);
        }
        group.value = OnceLock::new();
        group.by_start.insert(range.keys.start.clone(), RangePartition::new(place.object_id, &place.name, range));
        Ok(true)
    }

    /// A table goes.
    pub(super) fn remove(&mut self, place: &Place<Table>) {
        let Ok(Some(range)) = place.range() else { return };
        let Some(group) = self.0.get_mut(&range.table) else { return };
        let is_it = |found: &RangePartition| found.object_id() == place.object_id;
        if group.by_start.get(&range.keys.start).is_some_and(is_it) {
            group.by_start.remove(&range.keys.start);
            group.value = OnceLock::new();
        }
        if group.by_start.is_empty() {
            self.0.remove(&range.table);
        }
    }

    /// Has a partitioned table a partition?
    pub(crate) fn has_any(&self, partitioned: u32) -> bool {
        self.0.contains_key(&partitioned)
    }

    /// Those of a partitioned table, in the order of their keys.
    pub(crate) fn of(&self, partitioned: u32) -> Vec<RangePartition> {
        self.0.get(&partitioned).map(|group| group.by_start.values().cloned().collect()).unwrap_or_default()
    }

    /// The value that was made of a partitioned table since its partitions are these.
    pub(crate) fn value(&self, partitioned: u32) -> Option<&Arc<PartitionedTable>> {
        self.0.get(&partitioned)?.value.get()
    }

    /// A value was made of these partitions, if they are still those that there are.
    pub(crate) fn set_value(&self, value: &Arc<PartitionedTable>) {
        let Some(group) = self.0.get(&value.object_id()) else { return };
        if group.by_start.values().map(RangePartition::object_id).eq(value.partitions().iter().map(RangePartition::object_id)) {
            let _ = group.value.set(Arc::clone(value));
        }
    }
}

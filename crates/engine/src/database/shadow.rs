//! Rows of tables that are written anew beside writers: each is brought from its old table to the new one that its key belongs to, by a look at it.
//!
//! Invariants:
//! - who looks at a row to settle it has its place to himself until it is settled: what he has seen is not older than what is there;
//! - an error that is of the row alone leaves the new tables as they were.

use super::leftovers::key_of;
use super::open::DatabaseState;
use super::row_places::{RowAt, RowPlaces};
use crate::btree::Unless;
use crate::index::{EntryQueue, Index};
use crate::pool::By;
use crate::table_space::row_gate::RowObserver;
use crate::table_space::{RowBuffer, Table};
use crate::{Error, Result};
use pagefold_types::{DataType, KeyLayout, KeyRange, LargeValueRef, Rid, ValueRef, key_bytes_max};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A table that is replaced, for those who change its rows.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) object_id: u32,
    /// Columns that are dropped: in the new tables they are NULL.
    pub(super) hidden: Vec<usize>,
    /// When all rows have one.
    pub(super) places: OnceLock<RowPlaces>,
}

/// A table that is written, and its indexes.
#[derive(Debug)]
pub struct Target {
    /// It.
    pub table: Arc<Table>,
    /// They.
    pub indexes: Vec<Arc<Index>>,
}

/// What those who change rows meet.
#[derive(Debug)]
pub(super) struct Shadow {
    pub(super) database: Arc<DatabaseState>,
    pub(super) sources: Vec<Source>,
    pub(super) targets: Vec<Target>,
    /// Which keys go to each of the targets; without it there is one, and it has all rows.
    pub(super) ranges: Option<(KeyLayout, Vec<KeyRange>)>,
    /// With the number of the source in place of a key.
    pub(super) noted: EntryQueue,
    /// Do those who change rows settle them?
    pub(super) is_at_once: AtomicBool,
    pub(super) at_once: AtomicU64,
}

impl RowObserver for Shadow {
    fn has_column(&self, _: usize) -> bool {
        true
    }

    fn keeps_inside(&self, _: usize) -> bool {
        false
    }

    fn wants_records(&self) -> bool {
        false
    }

    fn row_changed(&self, table: &Table, rid: Rid, _: Option<&[u8]>, _: Option<&[u8]>) {
        if self.has_ended() {
            // It was given up.
            return;
        }
        let Some(source) = self.sources.iter().position(|source| source.object_id == table.object_id) else { return };
        let row = RowAt { table: source, rid };
        if !self.is_at_once.load(Ordering::Acquire) || self.noted.check().is_err() {
            return self.note(row);
        }
        self.at_once.fetch_add(1, Ordering::Relaxed);
        // Nobody but who looks at notes is told of an error: the one who changes the row does not fail for it.
        let settled = self.database.core.manager.prepare_log().map_err(Unsettled::Table);
        match settled.and_then(|()| self.settle(table, row, &mut Buffers::default())) {
            Ok(()) => {}
            Err(Unsettled::Row(error)) if is_of_row(&error) => self.note(row),
            Err(Unsettled::Row(error) | Unsettled::Table(error)) => self.noted.fail(error),
        }
    }
}

/// Why a row is not settled.
#[derive(Debug)]
pub(super) enum Unsettled {
    /// It cannot be brought into the new form, or a large value of it be read. In the new tables nothing has changed.
    Row(Error),
    /// Something else, or in the midst of it: the new table is of no use any more.
    Table(Error),
}

impl From<Error> for Unsettled {
    fn from(error: Error) -> Unsettled {
        Unsettled::Table(error)
    }
}

impl Shadow {
    pub(super) fn has_ended(&self) -> bool {
        self.targets.iter().any(|target| target.table.lifetime.has_ended())
    }

    pub(super) fn note(&self, row: RowAt) {
        self.noted.put(&(row.table as u16).to_le_bytes(), row.rid);
    }

    /// Which of the new tables a row goes to.
    pub(super) fn target_of(&self, old: &Table, rid: Rid, record: &[u8], key: &mut Vec<u8>) -> Result<usize> {
        let Some((layout, ranges)) = &self.ranges else { return Ok(0) };
        key.clear();
        layout.encode_from_record(old.layout(), record, key).map_err(|e| Error::Value(e.to_string()))?;
        ranges.iter().position(|range| range.contains(key)).ok_or_else(|| {
            let reason = format!("the row in slot {} is outside the range of its partition: {}", rid.slot(), layout.describe(key));
            Error::corrupt(old.object(), rid.page(), reason)
        })
    }

    /// Makes a row in the new tables what it is now in the old one.
    pub(super) fn settle(&self, old: &Table, row: RowAt, buffers: &mut Buffers) -> std::result::Result<(), Unsettled> {
        let Buffers { rows, record, fresh, keys, .. } = buffers;
        let source = &self.sources[row.table];
        let Some(places) = source.places.get() else { return Ok(()) };
        // Before the look at it: who changes it meanwhile settles it afterwards, or has noted it.
        let place = places.of(row.rid)?;
        record.clear();
        let is_there = old.read(row.rid, rows, |bytes| record.extend_from_slice(bytes))?.is_some();
        if !is_there {
            if let Some(at) = place.new {
                self.take_out(at, buffers)?;
                place.set(None);
            }
            return Ok(());
        }
        let to = self.target_of(old, row.rid, record, &mut keys.0).map_err(Unsettled::Row)?;
        let target = &self.targets[to];
        if let Some(at) = place.new.filter(|at| at.table == to) {
            return self.replace(source, old, at, buffers);
        }
        self.anew(source, old, target, record, fresh).map_err(Unsettled::Row)?;
        let rid = target.table.insert_record(By::Nobody, fresh)?;
        target.move_entries(None, Some(fresh), rid, keys)?;
        if let Some(elsewhere) = place.new {
            self.take_out(elsewhere, buffers)?;
        }
        place.set(Some(RowAt { table: to, rid }));
        Ok(())
    }

    /// A row that stays in its new table is there what it is in the old one.
    fn replace(&self, source: &Source, old: &Table, at: RowAt, buffers: &mut Buffers) -> std::result::Result<(), Unsettled> {
        self.read_placed(at, buffers)?;
        let target = &self.targets[at.table];
        let Buffers { record, fresh, before, keys, .. } = buffers;
        let large = large_values(&target.table, before)?;
        self.anew(source, old, target, record, fresh).map_err(Unsettled::Row)?;
        if large.is_empty() && fresh == before {
            return Ok(());
        }
        target.move_entries(Some(before), Some(fresh), at.rid, keys)?;
        target.table.replace_record(By::Nobody, at.rid, fresh)?;
        Ok(large.into_iter().try_for_each(|value| target.table.free_large(value))?)
    }

    fn take_out(&self, at: RowAt, buffers: &mut Buffers) -> Result<()> {
        self.read_placed(at, buffers)?;
        let target = &self.targets[at.table];
        target.move_entries(Some(&buffers.before), None, at.rid, &mut buffers.keys)?;
        target.table.delete(at.rid).map(drop)
    }

    /// Reads a row that was written into a new table.
    fn read_placed(&self, at: RowAt, buffers: &mut Buffers) -> Result<()> {
        let Buffers { rows, before, .. } = buffers;
        before.clear();
        let table = &self.targets[at.table].table;
        match table.read(at.rid, rows, |bytes| before.extend_from_slice(bytes))? {
            Some(()) => Ok(()),
            None => {
                let reason = format!("no row in slot {}, where one was written", at.rid.slot());
                Err(Error::corrupt(table.object(), at.rid.page(), reason))
            }
        }
    }

    /// The record of a row in a new table. Large values lie in pages of the old one, and another page size has another limit: such rows
    /// are built anew. Keys of all indexes can be made of it.
    pub(super) fn anew(&self, source: &Source, old: &Table, target: &Target, record: &[u8], fresh: &mut Vec<u8>) -> Result<()> {
        fresh.clear();
        let (hidden, table) = (&source.hidden, &target.table);
        let is_same = hidden.is_empty() && record.len() <= table.record_bytes_max() && large_values(old, record)?.is_empty();
        if is_same {
            fresh.extend_from_slice(record);
        } else {
            let shown: Vec<usize> = (0..old.layout().column_count()).filter(|column| !hidden.contains(column)).collect();
            let values = old.values_of(record, &shown)?;
            let mut refs = vec![ValueRef::Null; old.layout().column_count()];
            shown.iter().zip(&values).for_each(|(column, value)| refs[*column] = value.as_ref());
            table.build_record(By::Nobody, &refs, fresh)?;
        }
        let mut key = Vec::new();
        let columns = table.attributes().schema.columns();
        // In keys CHAR is padded.
        let is_padded = |index: &Index| index.attributes().columns.iter().any(|(c, _)| matches!(columns[*c].data_type, DataType::Char(_)));
        let is_short = |index: &Index| fresh.len() < key_bytes_max(index.data_set.page_bytes()) / SHORT_PART;
        let has_key = |index: &&Arc<Index>| is_same && is_short(index) && !is_padded(index);
        let keys = target.indexes.iter().filter(|index| !has_key(index)).try_for_each(|index| key_of(table, index, fresh, &mut key));
        if keys.is_err() && !is_same {
            // The row does not come, and nothing names them.
            large_values(table, fresh)?.into_iter().try_for_each(|value| table.free_large(value))?;
        }
        keys
    }
}

impl Target {
    /// A row has this record instead of that one: so have its entries.
    fn move_entries(&self, before: Option<&[u8]>, after: Option<&[u8]>, rid: Rid, keys: &mut (Vec<u8>, Vec<u8>)) -> Result<()> {
        let (old, new) = keys;
        for index in &self.indexes {
            let tree = index.tree();
            before.map(|record| key_of(&self.table, index, record, old)).transpose()?;
            after.map(|record| key_of(&self.table, index, record, new)).transpose()?;
            if before.is_some() && after.is_some() && old == new {
                continue;
            }
            if before.is_some() {
                tree.delete(old, rid)?;
            }
            // Keys pass from row to row; that none is there twice at the end, the old index has seen to.
            if after.is_some() {
                tree.insert_by(By::Nobody, new, rid, Unless::Entry)?;
            }
        }
        Ok(())
    }
}

pub(super) fn large_values(table: &Table, record: &[u8]) -> Result<Vec<LargeValueRef>> {
    let found = table.layout().large_values(record).map_err(|e| Error::Damaged { path: table.object(), reason: e.to_string() })?;
    Ok(found.into_iter().map(|(_, value)| value).collect())
}

/// May it be one of a row that changes just then? A row that does not fit, or a large value that has gone.
pub(super) fn is_of_row(error: &Error) -> bool {
    matches!(error, Error::Value(_)) || error.is_damage()
}

/// A record with less than this part of the longest key's bytes makes no key that is too long.
const SHORT_PART: usize = 4;

/// What is used for each row that is settled.
#[derive(Default)]
pub(super) struct Buffers {
    rows: RowBuffer,
    pub(super) record: Vec<u8>,
    fresh: Vec<u8>,
    before: Vec<u8>,
    keys: (Vec<u8>, Vec<u8>),
}

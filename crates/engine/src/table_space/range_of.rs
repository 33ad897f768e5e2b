//! Of which rows of a partitioned table a table is a partition.
//!
//! Invariant: every row of a range partition has a key in its range. Whoever inserts a row, or changes a column of the key, asks for it first.

use super::Table;
use crate::{Error, Result};
use pagefold_format::FormatError;
use pagefold_format::catalog::{Notes, RangePartition};
use pagefold_types::{Direction, KeyLayout, KeyRange, PARTITION_MAX, Schema};

/// Keys of ranges are at most so long.
const KEY_BYTES_MAX: usize = 1024;

/// Which range partition a table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeOf {
    /// Object id of the partitioned table.
    pub table: u32,
    /// Number among its partitions, 0 to 4,095.
    pub number: u16,
    /// The columns by which it is divided, by number.
    pub columns: Vec<usize>,
    /// The keys that rows may have.
    pub keys: KeyRange,
}

/// How the values of some columns make a key of ranges.
#[must_use]
pub fn range_key_layout(table: &str, schema: &Schema, columns: &[usize]) -> KeyLayout {
    let columns: Vec<(usize, Direction)> = columns.iter().map(|column| (*column, Direction::Ascending)).collect();
    KeyLayout::new(schema, &columns).with_limit(table, KEY_BYTES_MAX)
}

impl RangeOf {
    /// As a definition has it: what is said of a table in [`Notes`], with nothing else.
    pub(crate) fn written(&self) -> std::result::Result<Notes, FormatError> {
        let columns: Vec<u32> = self.columns.iter().map(|column| *column as u32).collect();
        let start = Some(self.keys.start.clone()).filter(|start| !start.is_empty());
        let limit = self.keys.end.clone();
        let range = RangePartition { number: self.number, start, limit, table: Some(self.table), ..RangePartition::default() };
        let mut notes = Notes::default();
        notes.set_ranges(&columns, &[range])?;
        Ok(notes)
    }

    /// Read back; `None` when nothing is said.
    pub(crate) fn read(notes: &Notes) -> std::result::Result<Option<RangeOf>, FormatError> {
        let refuse = |reason: &str| Err(FormatError::new(reason.to_owned()));
        let (columns, ranges) = notes.ranges();
        let range = match (columns.as_slice(), <[RangePartition; 1]>::try_from(ranges)) {
            ([], Err(ranges)) if ranges.is_empty() => return Ok(None),
            ([_, ..], Ok([range])) => range,
            _ => return refuse("it is said to be a range partition, but not which"),
        };
        let Some(table) = range.table else { return refuse("it is a range partition of no table") };
        if range.number > PARTITION_MAX {
            return refuse("the number of its range partition is beyond 4,095");
        }
        let keys = KeyRange { start: range.start.unwrap_or_default(), end: range.limit };
        Ok(Some(RangeOf { table, number: range.number, columns: columns.into_iter().map(|column| column as usize).collect(), keys }))
    }

    /// Refuses what cannot be.
    pub(super) fn check(&self, schema: &Schema) -> std::result::Result<(), String> {
        let is_twice = |at: usize| self.columns[..at].contains(&self.columns[at]);
        if self.columns.is_empty() || (0..self.columns.len()).any(|at| self.columns[at] >= schema.len() || is_twice(at)) {
            return Err("the columns of its range are none of it, or come twice".into());
        }
        let is_long = |key: &[u8]| key.len() > KEY_BYTES_MAX;
        if is_long(&self.keys.start) || self.keys.end.as_deref().is_some_and(is_long) {
            return Err(format!("a limit of its range is longer than {KEY_BYTES_MAX} bytes"));
        }
        if self.keys.end.as_ref().is_some_and(|end| *end <= self.keys.start) {
            return Err("its range is empty".into());
        }
        Ok(())
    }
}

impl Table {
    /// Of which rows of a partitioned table it is a partition.
    #[must_use]
    pub fn range(&self) -> Option<&RangeOf> {
        self.attributes().range.as_ref()
    }

    /// Refuses a record that does not belong in the range of the table.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    #[inline]
    pub(crate) fn check_range(&self, record: &[u8]) -> Result<()> {
        match (&self.range_key, self.range()) {
            (Some(layout), Some(range)) => self.check_key_in(layout, range, record),
            _ => Ok(()),
        }
    }

    fn check_key_in(&self, layout: &KeyLayout, range: &RangeOf, record: &[u8]) -> Result<()> {
        let mut key = Vec::with_capacity(64);
        layout.encode_from_record(self.layout(), record, &mut key).map_err(|e| Error::Value(format!("{}: {e}", self.object())))?;
        if range.keys.contains(&key) {
            return Ok(());
        }
        Err(Error::OutOfRange { object: self.object(), key: layout.describe(&key), why: "belongs in another partition" })
    }

    /// Does a change of these columns move the key of the range?
    pub(crate) fn is_of_range(&self, mut columns: impl Iterator<Item = usize>) -> bool {
        self.range().is_some_and(|range| columns.any(|column| range.columns.contains(&column)))
    }
}

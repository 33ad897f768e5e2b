//! String codes of many rows at once, for columns whose values are mostly new: by other threads than the one that fills pages.
//!
//! Invariant: codes follow from a value alone, so an area does not depend on who found them, nor on which columns were prepared.

use std::sync::Arc;

use super::int_rows::{PROBE_DISTINCT, PROBE_ROWS};
use super::schema::{Class, PageSchema, without_blanks};
use super::string_rows::{CodesOf, hash};
use crate::row::Encoder;

/// Finds the codes of rows that come onto pages later.
#[derive(Clone, Debug)]
pub struct RowPreparer {
    schema: Arc<PageSchema>,
    codes: Arc<Encoder>,
}

/// What was found of some rows.
#[derive(Debug, Default)]
pub struct PreparedRows {
    /// By column; `None` where the codes are found when a value is new to its page.
    columns: Vec<Option<Codes>>,
}

/// The codes of a column, one row's behind the other's.
#[derive(Debug, Default)]
struct Codes {
    codes: Vec<u16>,
    ends: Vec<u32>,
}

/// A row that was prepared, by its number.
#[derive(Clone, Copy, Debug)]
pub struct PreparedRow<'a> {
    /// The rows it is one of.
    pub rows: &'a PreparedRows,
    /// Which.
    pub row: usize,
}

impl<'a> PreparedRow<'a> {
    pub(super) fn codes(&self, column: usize) -> Option<CodesOf<'a>> {
        let Codes { codes, ends } = self.rows.columns.get(column)?.as_ref()?;
        let start = self.row.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
        Some(CodesOf::Known(codes.get(start as usize..*ends.get(self.row)? as usize)?))
    }
}

impl RowPreparer {
    pub(super) fn new(schema: Arc<PageSchema>, codes: Arc<Encoder>) -> Self {
        Self { schema, codes }
    }

    /// Prepares packed records; those that are none have no codes.
    pub fn prepare<'r>(&self, records: impl Iterator<Item = &'r [u8]> + Clone) -> PreparedRows {
        let mut prepared = PreparedRows::default();
        for (number, column) in self.schema.columns.iter().enumerate() {
            let Class::Variable { chars } = column.class else {
                prepared.columns.push(None);
                continue;
            };
            let value = |record: &'r [u8]| match self.schema.record_bytes(number, record) {
                Some((value, false)) if chars.is_some() => without_blanks(value),
                Some((value, _)) => value,
                None => &[],
            };
            let mut hashes: Vec<u64> = records.clone().take(PROBE_ROWS).map(|record| hash(value(record))).collect();
            hashes.sort_unstable();
            hashes.dedup();
            let codes = (hashes.len() > PROBE_DISTINCT).then(|| {
                let mut codes = Codes::default();
                for record in records.clone() {
                    self.codes.codes(value(record), |code| codes.codes.push(code));
                    codes.ends.push(codes.codes.len() as u32);
                }
                codes
            });
            prepared.columns.push(codes);
        }
        prepared
    }
}

//! Rows in batches, column by column: how scans read pages whose rows lie so, and what turns into Arrow arrays without a look at single values.
//!
//! Invariant: every column of a batch has as many values as the batch has rows.

use super::table::Table;
use crate::{Error, Result};
use pagefold_codec::page::{Bitmap, ColumnArea};
use pagefold_format::data::{DataPage, StoredKind};
use pagefold_types::LARGE_VALUE_REF_BYTES;
use std::ops::Range;

/// Bytes of strings in a batch; what one page holds may come on top.
const BYTES_MAX: usize = 1 << 30;

/// The values of a column.
#[derive(Debug)]
pub enum BatchValues {
    /// BOOLEAN, integers, dates, times, DECIMAL of up to 8 bytes: the number; REAL and DOUBLE: the two's complement of their bits. NULL rows have some number.
    Ints(Vec<i64>),
    /// The bytes of all others, as in the record, one behind the other, and behind each its end. NULL rows have none.
    Bytes {
        /// All of them.
        bytes: Vec<u8>,
        /// As many as rows.
        ends: Vec<i32>,
        /// The bit of a row is set when its bytes are a reference to a large value.
        large: Bitmap,
    },
}

/// A column of a batch.
#[derive(Debug)]
pub struct BatchColumn {
    number: usize,
    values: BatchValues,
    validity: Bitmap,
    nulls: usize,
}

impl BatchColumn {
    /// Its number in the table.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its values.
    #[must_use]
    pub fn values(&self) -> &BatchValues {
        &self.values
    }

    /// A bit for each row: not NULL.
    #[must_use]
    pub fn validity(&self) -> &Bitmap {
        &self.validity
    }

    /// Rows that are NULL.
    #[must_use]
    pub fn null_count(&self) -> usize {
        self.nulls
    }

    /// The numbers of a column of [`BatchValues::Ints`]; empty for others.
    #[must_use]
    pub fn ints(&self) -> &[i64] {
        if let BatchValues::Ints(ints) = &self.values { ints } else { &[] }
    }
}

/// Some columns of some rows.
#[derive(Debug)]
pub struct ColumnBatch<'t> {
    table: &'t Table,
    columns: Vec<BatchColumn>,
    rows: usize,
}

impl<'t> ColumnBatch<'t> {
    /// An empty batch of these columns.
    ///
    /// # Errors
    /// When the table has no such column.
    pub fn new(table: &'t Table, columns: &[usize]) -> Result<ColumnBatch<'t>> {
        let schema = table.decoder.columns();
        let columns = columns.iter().map(|number| {
            if *number >= schema.column_count() {
                return Err(Error::Value(format!("{}: no column number {number}", table.object())));
            }
            let values = if schema.is_int(*number) {
                BatchValues::Ints(Vec::new())
            } else {
                BatchValues::Bytes { bytes: Vec::new(), ends: Vec::new(), large: Bitmap::default() }
            };
            Ok(BatchColumn { number: *number, values, validity: Bitmap::default(), nulls: 0 })
        });
        Ok(ColumnBatch { table, columns: columns.collect::<Result<_>>()?, rows: 0 })
    }

    /// Its columns, as they were asked for.
    #[must_use]
    pub fn columns(&self) -> &[BatchColumn] {
        &self.columns
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// No rows?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Lets go of the rows; keeps the memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        for column in &mut self.columns {
            column.validity.clear();
            column.nulls = 0;
            match &mut column.values {
                BatchValues::Ints(ints) => ints.clear(),
                BatchValues::Bytes { bytes, ends, large } => {
                    bytes.clear();
                    ends.clear();
                    large.clear();
                }
            }
        }
    }

    /// Adds a row by its record.
    pub(super) fn push_record(&mut self, record: &[u8]) -> Result<()> {
        let schema = self.table.decoder.columns();
        let damaged = || Error::Damaged { path: self.table.object(), reason: "a record that is too short".into() };
        for column in &mut self.columns {
            let null = schema.is_null(column.number, record);
            column.validity.append(1, !null);
            column.nulls += usize::from(null);
            match &mut column.values {
                BatchValues::Ints(ints) => ints.push(schema.record_int(column.number, record).ok_or_else(damaged)?),
                BatchValues::Bytes { bytes, ends, large } => {
                    let (value, is_large) = schema.record_bytes(column.number, record).ok_or_else(damaged)?;
                    if !null {
                        bytes.extend_from_slice(value);
                    }
                    ends.push(bytes.len() as i32);
                    large.append(1, is_large && value.len() == LARGE_VALUE_REF_BYTES);
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds rows of an area.
    fn push_rows(&mut self, area: &ColumnArea<'_>, rows: Range<usize>) -> Result<()> {
        for column in &mut self.columns {
            column.nulls += area.validity(column.number, rows.clone(), &mut column.validity);
            match &mut column.values {
                BatchValues::Ints(ints) => area.ints(column.number, rows.clone(), ints),
                BatchValues::Bytes { bytes, ends, large } => {
                    let read = area.strings(column.number, rows.clone(), ends, bytes, BYTES_MAX);
                    read.map_err(|e| Error::Damaged { path: self.table.object(), reason: e.to_string() })?;
                    area.large(column.number, rows.clone(), large);
                }
            }
        }
        self.rows += rows.len();
        Ok(())
    }

    /// Adds the rows that a page has in its column part.
    pub(super) fn push_area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>) -> Result<()> {
        if page.entries().next().is_none() && usize::from(page.row_count()) == area.rows() {
            return self.push_rows(area, 0..area.rows());
        }
        let is_there = |slot: &usize| page.row(*slot as u16).is_some_and(|row| row.kind == StoredKind::Column);
        let mut from = 0;
        while let Some(start) = (from..area.rows()).find(is_there) {
            let end = (start..area.rows()).find(|slot| !is_there(slot)).unwrap_or(area.rows());
            self.push_rows(area, start..end)?;
            from = end;
        }
        Ok(())
    }

    /// Are its strings so long that it should be taken before more rows come?
    pub(super) fn is_large(&self) -> bool {
        let long = |column: &BatchColumn| matches!(&column.values, BatchValues::Bytes { bytes, .. } if bytes.len() > BYTES_MAX / 4);
        self.columns.iter().any(long)
    }
}

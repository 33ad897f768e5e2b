//! Columns of a compact record, each in constant time.
//!
//! No access panics or leaves the record, validated or not; an unvalidated record may give an error or a value outside its type's range.

use std::ops::Range;

use super::expand::{extend_low, extend_sign};
use super::layout::CompactLayout;
use crate::data_type::Physical;
use crate::row::layout::{ColumnLayout, get_decimal};
use crate::{Interval, LargeValueRef, RecordError};

impl CompactLayout {
    fn layout_of(&self, column: usize) -> Result<&ColumnLayout, RecordError> {
        self.packed.columns.get(column).ok_or(RecordError::NoSuchColumn { column })
    }

    /// Where the bytes of a column lie in the record. A change that leaves as many, as [`compact`](Self::compact) would, is a change of these.
    ///
    /// # Errors
    /// [`RecordError`] when the record is damaged or there is no such column.
    pub fn column_span(&self, record: &[u8], column: usize) -> Result<Range<usize>, RecordError> {
        self.span(record, column).map(|span| span.bytes)
    }

    /// Is the column NULL?
    ///
    /// # Errors
    /// [`RecordError::NoSuchColumn`]
    pub fn is_null(&self, record: &[u8], column: usize) -> Result<bool, RecordError> {
        Ok(self.layout_of(column)?.is_null(record))
    }

    /// What is left of a column: for CHAR without blanks at the end, for numbers as the layout says. `None` is NULL.
    ///
    /// # Errors
    /// [`RecordError`] when the record is damaged or there is no such column; [`RecordError::Large`] when the value lies outside the record.
    pub fn column<'r>(&self, record: &'r [u8], column: usize) -> Result<Option<&'r [u8]>, RecordError> {
        let span = self.span(record, column)?;
        if self.layout_of(column)?.is_null(record) {
            return Ok(None);
        }
        if span.large { Err(RecordError::Large { column }) } else { Ok(Some(&record[span.bytes])) }
    }

    /// The reference of a column whose value lies outside the record; `None` when it does not.
    ///
    /// # Errors
    /// [`RecordError`] when the record is damaged or there is no such column.
    pub fn large_value(&self, record: &[u8], column: usize) -> Result<Option<LargeValueRef>, RecordError> {
        let span = self.span(record, column)?;
        if !span.large {
            return Ok(None);
        }
        LargeValueRef::from_bytes(&record[span.bytes]).map(Some).ok_or(RecordError::EndOffset { column })
    }

    /// The column, when it is held like this.
    fn of_kind<'r>(&self, record: &'r [u8], column: usize, kind: fn(Physical) -> bool) -> Result<Option<&'r [u8]>, RecordError> {
        if kind(self.layout_of(column)?.physical) { self.column(record, column) } else { Err(RecordError::NoSuchColumn { column }) }
    }

    /// BOOLEAN. `None` is NULL.
    ///
    /// # Errors
    /// As [`column()`](Self::column), or the column is of another kind.
    pub fn boolean(&self, record: &[u8], column: usize) -> Result<Option<bool>, RecordError> {
        Ok(self.of_kind(record, column, |kind| kind == Physical::Boolean)?.map(|bytes| !bytes.is_empty()))
    }

    /// Integers, dates, times, timestamps.
    ///
    /// # Errors
    /// As [`boolean`](Self::boolean).
    #[inline]
    pub fn int(&self, record: &[u8], column: usize) -> Result<Option<i64>, RecordError> {
        let bytes = self.of_kind(record, column, |kind| matches!(kind, Physical::Int { .. }))?;
        Ok(bytes.map(|bytes| {
            let mut all = [0; 8];
            extend_sign(bytes, &mut all);
            i64::from_le_bytes(all)
        }))
    }

    /// DECIMAL, unscaled.
    ///
    /// # Errors
    /// As [`boolean`](Self::boolean).
    pub fn decimal(&self, record: &[u8], column: usize) -> Result<Option<i128>, RecordError> {
        let bytes = self.of_kind(record, column, |kind| matches!(kind, Physical::Decimal { .. }))?;
        Ok(bytes.map(|bytes| if bytes.is_empty() { 0 } else { get_decimal(bytes) }))
    }

    /// REAL.
    ///
    /// # Errors
    /// As [`boolean`](Self::boolean).
    pub fn real(&self, record: &[u8], column: usize) -> Result<Option<f32>, RecordError> {
        let bytes = self.of_kind(record, column, |kind| kind == Physical::Real)?;
        Ok(bytes.map(|bytes| {
            let mut all = [0; 4];
            extend_low(bytes, &mut all);
            f32::from_le_bytes(all)
        }))
    }

    /// DOUBLE.
    ///
    /// # Errors
    /// As [`boolean`](Self::boolean).
    pub fn double(&self, record: &[u8], column: usize) -> Result<Option<f64>, RecordError> {
        let bytes = self.of_kind(record, column, |kind| kind == Physical::Double)?;
        Ok(bytes.map(|bytes| {
            let mut all = [0; 8];
            extend_low(bytes, &mut all);
            f64::from_le_bytes(all)
        }))
    }

    /// INTERVAL.
    ///
    /// # Errors
    /// As [`boolean`](Self::boolean).
    pub fn interval(&self, record: &[u8], column: usize) -> Result<Option<Interval>, RecordError> {
        let bytes = self.of_kind(record, column, |kind| kind == Physical::Interval)?;
        let interval = |bytes: &[u8]| bytes.try_into().map(Interval::from_bytes).map_err(|_| RecordError::Value { column });
        bytes.map(interval).transpose()
    }

    /// UUID.
    ///
    /// # Errors
    /// As [`boolean`](Self::boolean).
    pub fn uuid(&self, record: &[u8], column: usize) -> Result<Option<[u8; 16]>, RecordError> {
        let bytes = self.of_kind(record, column, |kind| kind == Physical::Uuid)?;
        bytes.map(|bytes| bytes.try_into().map_err(|_| RecordError::Value { column })).transpose()
    }
}

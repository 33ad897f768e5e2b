//! Columns of a record, each in constant time.
//!
//! No access panics or leaves the record, validated or not; an unvalidated record may give an error or a value outside its type's range.

use super::layout::{ColumnLayout, RowLayout, VarValue, get_decimal, get_int};
use super::{ColumnValue, LargeValueRef};
use crate::data_type::Physical;
use crate::{Interval, RecordError, Value, ValueRef, push_value};

fn text<'r>(bytes: &'r [u8], column: usize) -> Result<ValueRef<'r>, RecordError> {
    std::str::from_utf8(bytes).map(ValueRef::Text).map_err(|_| RecordError::Utf8 { column })
}

impl RowLayout {
    fn layout_of(&self, column: usize) -> Result<&ColumnLayout, RecordError> {
        self.columns.get(column).ok_or(RecordError::NoSuchColumn { column })
    }

    /// What the record says of a column.
    ///
    /// # Errors
    /// [`RecordError`] when the record is damaged or there is no such column.
    pub fn column<'r>(&self, record: &'r [u8], column: usize) -> Result<ColumnValue<'r>, RecordError> {
        let layout = self.layout_of(column)?;
        if record.len() < self.fixed_len() {
            return Err(self.length_error(record));
        }
        if layout.is_null(record) {
            return Ok(ColumnValue::Value(ValueRef::Null));
        }
        let Some(width) = layout.physical.fixed_width() else {
            return match self.var_value(column, layout, record)? {
                VarValue::Large(large) => Ok(ColumnValue::Large(large)),
                VarValue::Inline(bytes) if layout.data_type.is_text() => text(bytes, column).map(ColumnValue::Value),
                VarValue::Inline(bytes) => Ok(ColumnValue::Value(ValueRef::Bytes(bytes))),
            };
        };
        let bytes = self.fixed_bytes(layout, width, record)?;
        let damaged = RecordError::Value { column };
        let value = match layout.physical {
            Physical::Boolean => ValueRef::Boolean(bytes[0] != 0),
            Physical::Int { .. } => ValueRef::Int(get_int(bytes).ok_or(damaged)?),
            Physical::Decimal { .. } => ValueRef::Decimal(get_decimal(bytes)),
            Physical::Real => ValueRef::Real(f32::from_le_bytes(bytes.try_into().map_err(|_| damaged)?)),
            Physical::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().map_err(|_| damaged)?)),
            Physical::Uuid => ValueRef::Uuid(bytes.try_into().map_err(|_| damaged)?),
            Physical::Interval => ValueRef::Interval(Interval::from_bytes(bytes.try_into().map_err(|_| damaged)?)),
            Physical::Char { .. } | Physical::Text | Physical::Bytes => return Err(damaged),
        };
        Ok(ColumnValue::Value(value))
    }

    /// The value of a column.
    ///
    /// # Errors
    /// As [`RowLayout::column`]; [`RecordError::Large`] when the value lies outside the record.
    pub fn value<'r>(&self, record: &'r [u8], column: usize) -> Result<ValueRef<'r>, RecordError> {
        match self.column(record, column)? {
            ColumnValue::Value(value) => Ok(value),
            ColumnValue::Large(_) => Err(RecordError::Large { column }),
        }
    }

    /// All columns of a record.
    ///
    /// # Errors
    /// As [`RowLayout::column`].
    pub fn decode<'r>(&self, record: &'r [u8]) -> Result<Vec<ColumnValue<'r>>, RecordError> {
        (0..self.columns.len()).map(|i| self.column(record, i)).collect()
    }

    /// All columns of a record, copied. `fetch` gives the bytes of a large value.
    ///
    /// # Errors
    /// As [`RowLayout::column`], and what `fetch` refuses.
    pub fn decode_owned<E: From<RecordError>>(
        &self,
        record: &[u8],
        mut fetch: impl FnMut(LargeValueRef) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<Value>, E> {
        let mut values = Vec::with_capacity(self.columns.len());
        for i in 0..self.columns.len() {
            if let Some(large) = self.push_column(record, i, &mut values)? {
                values.push(self.large_value(i, fetch(large)?)?);
            }
        }
        Ok(values)
    }

    /// Puts the value of a column, copied, behind others; one that lies outside the record is not put there, but its reference given.
    ///
    /// Numbers come to their place by one write each: a value that is moved as part of others costs several times as much as finding it.
    ///
    /// # Errors
    /// As [`RowLayout::column`].
    #[inline]
    pub fn push_column(&self, record: &[u8], column: usize, values: &mut Vec<Value>) -> Result<Option<LargeValueRef>, RecordError> {
        let layout = self.layout_of(column)?;
        if let Physical::Int { width } = layout.physical
            && record.len() >= self.fixed_len()
            && !layout.is_null(record)
            && let Some(number) = self.fixed_bytes(layout, width.into(), record).ok().and_then(get_int)
        {
            push_value(values, Value::Int(number));
            return Ok(None);
        }
        self.push_other(record, column, values)
    }

    fn push_other(&self, record: &[u8], column: usize, values: &mut Vec<Value>) -> Result<Option<LargeValueRef>, RecordError> {
        match self.column(record, column)? {
            ColumnValue::Value(ValueRef::Text(text)) => values.push(Value::Text(text.to_owned())),
            ColumnValue::Value(ValueRef::Decimal(number)) => values.push(Value::Decimal(number)),
            ColumnValue::Value(value) => values.push(value.to_owned()),
            ColumnValue::Large(large) => return Ok(Some(large)),
        }
        Ok(None)
    }

    /// A reader of one column for scans: what can be worked out once is.
    ///
    /// # Errors
    /// [`RecordError::NoSuchColumn`]
    pub fn reader(&self, column: usize) -> Result<ColumnReader<'_>, RecordError> {
        Ok(ColumnReader { layout: self, column: self.layout_of(column)?, index: column })
    }

    /// An `Int` column. `None` is NULL.
    ///
    /// # Errors
    /// [`RecordError`] when the record is too short, the column of another kind or not there.
    #[inline]
    pub fn int_at(&self, record: &[u8], column: usize) -> Result<Option<i64>, RecordError> {
        self.reader(column)?.int(record)
    }

    /// A DECIMAL column, unscaled. `None` is NULL.
    ///
    /// # Errors
    /// As [`RowLayout::int_at`].
    #[inline]
    pub fn decimal_at(&self, record: &[u8], column: usize) -> Result<Option<i128>, RecordError> {
        self.reader(column)?.decimal(record)
    }

    /// The bytes of a variable column; text is not checked to be UTF-8. `None` is NULL.
    ///
    /// # Errors
    /// As [`RowLayout::int_at`]; [`RecordError::Large`] when the value lies outside the record.
    #[inline]
    pub fn bytes_at<'r>(&self, record: &'r [u8], column: usize) -> Result<Option<&'r [u8]>, RecordError> {
        self.reader(column)?.bytes(record)
    }
}

/// Reads one column of many records.
#[derive(Clone, Copy, Debug)]
pub struct ColumnReader<'l> {
    layout: &'l RowLayout,
    column: &'l ColumnLayout,
    index: usize,
}

impl ColumnReader<'_> {
    /// How the column is held.
    #[must_use]
    pub fn physical(&self) -> Physical {
        self.column.physical
    }

    /// NULL in this record?
    #[inline]
    #[must_use]
    pub fn is_null(&self, record: &[u8]) -> bool {
        self.column.is_null(record)
    }

    #[cold]
    fn wrong_kind(&self) -> RecordError {
        RecordError::NoSuchColumn { column: self.index }
    }

    #[inline]
    fn fixed<'r>(&self, width: u8, record: &'r [u8]) -> Result<&'r [u8], RecordError> {
        self.layout.fixed_bytes(self.column, usize::from(width), record)
    }

    #[inline]
    fn array<const N: usize>(&self, record: &[u8]) -> Result<[u8; N], RecordError> {
        let bytes = self.fixed(N as u8, record)?;
        bytes.try_into().map_err(|_| self.wrong_kind())
    }

    /// SMALLINT, INTEGER, BIGINT, DATE, TIME, TIMESTAMP
    ///
    /// # Errors
    /// [`RecordError`]: the record is too short, or the column is of another kind.
    #[inline]
    pub fn int(&self, record: &[u8]) -> Result<Option<i64>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        match self.column.physical {
            Physical::Int { width: 4 } => Ok(Some(i64::from(i32::from_le_bytes(self.array(record)?)))),
            Physical::Int { width: 8 } => Ok(Some(i64::from_le_bytes(self.array(record)?))),
            Physical::Int { .. } => Ok(Some(i64::from(i16::from_le_bytes(self.array(record)?)))),
            _ => Err(self.wrong_kind()),
        }
    }

    /// DECIMAL, unscaled
    ///
    /// # Errors
    /// As [`ColumnReader::int`].
    #[inline]
    pub fn decimal(&self, record: &[u8]) -> Result<Option<i128>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        let Physical::Decimal { width } = self.column.physical else { return Err(self.wrong_kind()) };
        Ok(Some(get_decimal(self.fixed(width, record)?)))
    }

    /// BOOLEAN
    ///
    /// # Errors
    /// As [`ColumnReader::int`].
    #[inline]
    pub fn boolean(&self, record: &[u8]) -> Result<Option<bool>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        if self.column.physical == Physical::Boolean { Ok(Some(self.fixed(1, record)?[0] != 0)) } else { Err(self.wrong_kind()) }
    }

    /// REAL
    ///
    /// # Errors
    /// As [`ColumnReader::int`].
    #[inline]
    pub fn real(&self, record: &[u8]) -> Result<Option<f32>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        if self.column.physical == Physical::Real { Ok(Some(f32::from_le_bytes(self.array(record)?))) } else { Err(self.wrong_kind()) }
    }

    /// DOUBLE
    ///
    /// # Errors
    /// As [`ColumnReader::int`].
    #[inline]
    pub fn double(&self, record: &[u8]) -> Result<Option<f64>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        if self.column.physical == Physical::Double { Ok(Some(f64::from_le_bytes(self.array(record)?))) } else { Err(self.wrong_kind()) }
    }

    /// UUID
    ///
    /// # Errors
    /// As [`ColumnReader::int`].
    #[inline]
    pub fn uuid(&self, record: &[u8]) -> Result<Option<[u8; 16]>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        if self.column.physical == Physical::Uuid { self.array(record).map(Some) } else { Err(self.wrong_kind()) }
    }

    /// INTERVAL
    ///
    /// # Errors
    /// As [`ColumnReader::int`].
    #[inline]
    pub fn interval(&self, record: &[u8]) -> Result<Option<Interval>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        if self.column.physical == Physical::Interval {
            self.array(record).map(|bytes| Some(Interval::from_bytes(bytes)))
        } else {
            Err(self.wrong_kind())
        }
    }

    /// CHAR, VARCHAR, BYTEA; text is not checked to be UTF-8.
    ///
    /// # Errors
    /// As [`ColumnReader::int`]; [`RecordError::Large`] when the value lies outside the record.
    #[inline]
    pub fn bytes<'r>(&self, record: &'r [u8]) -> Result<Option<&'r [u8]>, RecordError> {
        if self.column.is_null(record) {
            return Ok(None);
        }
        if !self.column.is_variable() {
            return Err(self.wrong_kind());
        }
        match self.layout.var_value(self.index, self.column, record)? {
            VarValue::Inline(bytes) => Ok(Some(bytes)),
            VarValue::Large(_) => Err(RecordError::Large { column: self.index }),
        }
    }

    /// Any column.
    ///
    /// # Errors
    /// As [`RowLayout::column`].
    pub fn value<'r>(&self, record: &'r [u8]) -> Result<ColumnValue<'r>, RecordError> {
        self.layout.column(record, self.index)
    }
}

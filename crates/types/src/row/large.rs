//! Values that lie outside their record, in large-value pages; the record holds a reference of 16 bytes.
//!
//! | Offset | Bytes | Field (little-endian) |
//! |---|---|---|
//! | 0 | 4 | first page |
//! | 4 | 4 | bytes of the value |
//! | 8 | 4 | bytes stored, compressed or not |
//! | 12 | 4 | partition |

use super::layout::{RowLayout, VarValue};
use crate::{RecordError, Value, ValueError, ValueRef};

/// Bytes of a reference.
pub const LARGE_VALUE_REF_BYTES: usize = 16;

/// The largest value: 1 GB.
pub const LARGE_VALUE_BYTES_MAX: usize = 1 << 30;

/// Where a large value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LargeValueRef {
    /// Its first page.
    pub first_page: u32,
    /// Bytes of the value.
    pub raw_bytes: u32,
    /// Bytes it takes in the pages.
    pub stored_bytes: u32,
    /// The partition (data set) of the page.
    pub partition: u32,
}

impl LargeValueRef {
    /// Its 16 bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; LARGE_VALUE_REF_BYTES] {
        let mut bytes = [0; LARGE_VALUE_REF_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip([self.first_page, self.raw_bytes, self.stored_bytes, self.partition]) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From 16 bytes; `None` when there are not 16 or the value would be larger than [`LARGE_VALUE_BYTES_MAX`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<LargeValueRef> {
        let word = |i: usize| Some(u32::from_le_bytes(bytes.get(4 * i..4 * i + 4)?.try_into().ok()?));
        let large = LargeValueRef { first_page: word(0)?, raw_bytes: word(1)?, stored_bytes: word(2)?, partition: word(3)? };
        (bytes.len() == LARGE_VALUE_REF_BYTES && large.raw_bytes as usize <= LARGE_VALUE_BYTES_MAX).then_some(large)
    }
}

/// What a record says of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// The value (or NULL).
    Value(ValueRef<'a>),
    /// The value lies in large-value pages.
    Large(LargeValueRef),
}

impl<'a> From<ValueRef<'a>> for ColumnValue<'a> {
    fn from(value: ValueRef<'a>) -> ColumnValue<'a> {
        ColumnValue::Value(value)
    }
}

impl RowLayout {
    /// The large values of a record: column (from 0) and reference.
    ///
    /// # Errors
    /// [`RecordError`] when the record is damaged.
    pub fn large_values(&self, record: &[u8]) -> Result<Vec<(usize, LargeValueRef)>, RecordError> {
        let mut found = Vec::new();
        for (i, column) in self.columns.iter().enumerate().filter(|(_, c)| c.is_variable()) {
            if let VarValue::Large(large) = self.var_value(i, column, record)? {
                found.push((i, large));
            }
        }
        Ok(found)
    }

    /// Which columns to move out so that the record takes at most `limit` bytes: the longest values first, as few as possible. Empty when it fits as it is.
    /// Values of at most 16 bytes and the columns in `keep` stay.
    ///
    /// # Errors
    /// [`ValueError::TooWide`] with the bytes that would be left, and everything that [`RowLayout::encoded_len`] refuses.
    pub fn plan_large(&self, values: &[ValueRef<'_>], limit: usize, keep: &[usize]) -> Result<Vec<usize>, ValueError> {
        let limit = limit.min(super::RECORD_BYTES_MAX);
        let mut left = self.encoded_len(values)?;
        let mut lengths: Vec<(usize, usize)> = Vec::new();
        for (i, (column, value)) in self.columns.iter().zip(values).enumerate() {
            let length = column.var_len(*value)?;
            if column.is_variable() && length > LARGE_VALUE_REF_BYTES && !keep.contains(&i) {
                lengths.push((length, i));
            }
        }
        lengths.sort_unstable_by_key(|(length, column)| (std::cmp::Reverse(*length), *column));
        let mut moved = Vec::new();
        for (length, column) in lengths {
            if left <= limit {
                break;
            }
            left -= length - LARGE_VALUE_REF_BYTES;
            moved.push(column);
        }
        if left > limit {
            return Err(ValueError::TooWide { bytes: left, max: limit });
        }
        moved.sort_unstable();
        Ok(moved)
    }

    /// The bytes that a column's value has in a record, and so in large-value pages: CHAR(n) is padded.
    ///
    /// # Errors
    /// [`ValueError`] when the value does not fit the column, or the column is of fixed width.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn large_bytes(&self, column: usize, value: ValueRef<'_>) -> Result<Vec<u8>, ValueError> {
        let column = &self.columns[column];
        if !column.is_variable() {
            return Err(ValueError::NotLarge { column: column.name.to_string(), data_type: column.data_type });
        }
        let mut out = Vec::with_capacity(column.var_len(value)?);
        column.put_var(value, &mut out)?;
        Ok(out)
    }

    /// The value that [`RowLayout::large_bytes`] gave these bytes for.
    ///
    /// # Errors
    /// [`RecordError`] when the bytes are no value of the column.
    pub fn large_value(&self, column: usize, bytes: Vec<u8>) -> Result<Value, RecordError> {
        let layout = self.columns.get(column).ok_or(RecordError::NoSuchColumn { column })?;
        if !layout.is_variable() {
            return Err(RecordError::NoSuchColumn { column });
        }
        layout.check_var(column, &bytes)?;
        if layout.data_type.is_text() {
            return String::from_utf8(bytes).map(Value::Text).map_err(|_| RecordError::Utf8 { column });
        }
        Ok(Value::Bytes(bytes))
    }
}

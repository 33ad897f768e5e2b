//! Values that lie outside their record, in large-value pages; the record holds a reference of 16 bytes.
//!
//! | Offset | Bytes | Field (little-endian) |
//! |---|---|---|
//! | 0 | 4 | first page |
//! | 4 | 4 | bytes of the value |
//! | 8 | 8 | bits 0-31: the low bits of the tag; 32-43: partition; 44-63: the high bits of the tag |
//!
//! The tag, of 52 bits, is a hash of what is stored of the value: so another value that has come to its
//! place is not taken for it.

use super::layout::{RowLayout, VarValue};
use crate::{RecordError, Value, ValueError, ValueRef};

/// Bytes of a reference.
pub const LARGE_VALUE_REF_BYTES: usize = 16;

const PARTITION_BITS: u32 = 12;
const PARTITION_MASK: u16 = (1 << PARTITION_BITS) - 1;
const TAG_BITS: u32 = 52;
const TAG_LOW_BITS: u32 = 32;
const TAG_LOW: u64 = (1 << TAG_LOW_BITS) - 1;
/// The high bits of the tag lie behind the partition.
const TAG_HIGH_AT: u32 = TAG_LOW_BITS + PARTITION_BITS;
const _: () = assert!(TAG_BITS + PARTITION_BITS == u64::BITS);
const _: () = assert!(PARTITION_MASK == crate::PARTITION_MAX);

/// The largest value: 1 GB.
pub const LARGE_VALUE_BYTES_MAX: usize = 1 << 30;

/// Where a large value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LargeValueRef {
    /// Its first page.
    pub first_page: u32,
    /// Bytes of the value.
    pub raw_bytes: u32,
    /// The partition (data set) of the page: 12 bits.
    pub partition: u16,
    /// Hash of what is stored of it: 52 bits.
    pub tag: u64,
}

impl LargeValueRef {
    /// Its 16 bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; LARGE_VALUE_REF_BYTES] {
        debug_assert!(self.partition <= PARTITION_MASK && self.tag >> TAG_BITS == 0);
        let tag = (self.tag & TAG_LOW) | (self.tag >> TAG_LOW_BITS << TAG_HIGH_AT) | (u64::from(self.partition) << TAG_LOW_BITS);
        let mut bytes = [0; LARGE_VALUE_REF_BYTES];
        bytes[..4].copy_from_slice(&self.first_page.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[8..].copy_from_slice(&tag.to_le_bytes());
        bytes
    }

    /// From 16 bytes; `None` when there are not 16 or the value would be larger than [`LARGE_VALUE_BYTES_MAX`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<LargeValueRef> {
        let bytes: &[u8; LARGE_VALUE_REF_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (low, high) = (word(8), word(12));
        let large = LargeValueRef {
            first_page: word(0),
            raw_bytes: word(4),
            partition: high as u16 & PARTITION_MASK,
            tag: u64::from(low) | (u64::from(high) >> PARTITION_BITS << TAG_LOW_BITS),
        };
        (large.raw_bytes as usize <= LARGE_VALUE_BYTES_MAX).then_some(large)
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
        if left <= limit {
            return Ok(Vec::new());
        }
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

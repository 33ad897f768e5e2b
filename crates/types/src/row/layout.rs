//! Where everything lies in a record. This file alone knows the layout; the others ask it.
//!
//! | Part | Bytes | What |
//! |---|---|---|
//! | NULL bitmap | (nullable columns + 7) / 8 | bit k (from the least significant of byte 0) is set when the k-th nullable column is NULL; absent when no column is nullable |
//! | fixed-width columns | sum of the widths | in column order, little-endian two's complement, IEEE 754, UUID as it is written; zeros when NULL |
//! | end offsets | 2 per variable column | `u16` little-endian in column order: low 15 bits = offset in the record behind the value's last byte; top bit = the value is a [`LargeValueRef`] |
//! | variable columns | | the bytes, in column order; CHAR(n) padded to n characters; no bytes when NULL |
//!
//! Invariants: offsets of fixed-width columns are the same in every record of a layout; a value starts where the one before ends; the last one ends where the
//! record ends. So any column is found in constant time.

use crate::data_type::Physical;
use crate::{DataType, LargeValueRef, RecordError, Schema, SchemaError};

/// The longest record: end offsets have 15 bits.
pub const RECORD_BYTES_MAX: usize = 0x7FFF;

/// Set in an end offset when the value is a large-value reference.
const LARGE_BIT: u16 = 0x8000;

/// Marks a column without NULL bit.
const NO_BIT: u16 = u16::MAX;

/// One column's place.
#[derive(Clone, Debug)]
pub(super) struct ColumnLayout {
    pub(super) name: Box<str>,
    pub(super) data_type: DataType,
    pub(super) physical: Physical,
    /// Fixed width: offset of the value. Variable: offset of its end offset.
    pub(super) offset: u16,
    /// Bit in the NULL bitmap, or [`NO_BIT`].
    null_bit: u16,
}

/// The layout of the records of one schema.
#[derive(Clone, Debug)]
pub struct RowLayout {
    pub(super) columns: Box<[ColumnLayout]>,
    /// Offset of the first end offset.
    ends_start: u16,
    /// Offset of the first byte of the first variable column.
    var_start: u16,
    nullable_columns: u16,
}

impl ColumnLayout {
    #[inline]
    pub(super) fn nullable(&self) -> bool {
        self.null_bit != NO_BIT
    }

    /// Is the column NULL in this record? The record has at least the fixed part, else false.
    #[inline]
    pub(super) fn is_null(&self, record: &[u8]) -> bool {
        self.nullable() && record.get(usize::from(self.null_bit / 8)).is_some_and(|b| b >> (self.null_bit % 8) & 1 == 1)
    }

    /// Sets or clears the NULL bit of a nullable column. The record has at least the fixed part.
    #[inline]
    pub(super) fn set_null(&self, record: &mut [u8], null: bool) {
        if self.nullable() {
            let mask = 1u8 << (self.null_bit % 8);
            let byte = &mut record[usize::from(self.null_bit / 8)];
            *byte = if null { *byte | mask } else { *byte & !mask };
        }
    }

    #[inline]
    pub(super) fn is_variable(&self) -> bool {
        self.physical.fixed_width().is_none()
    }

    /// Writes the end offset of a variable column. The record has at least the fixed part; `end` is at most [`RECORD_BYTES_MAX`].
    #[inline]
    pub(super) fn set_end(&self, record: &mut [u8], end: usize, large: bool) {
        debug_assert!(self.is_variable() && end <= RECORD_BYTES_MAX);
        let at = usize::from(self.offset);
        let word = end as u16 | if large { LARGE_BIT } else { 0 };
        record[at..at + 2].copy_from_slice(&word.to_le_bytes());
    }
}

/// Reads an integer of 2, 4 or 8 bytes.
#[inline]
pub(super) fn get_int(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        2 => Some(i64::from(i16::from_le_bytes(bytes.try_into().ok()?))),
        4 => Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        8 => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Reads two's complement of 1 to 16 bytes.
#[inline]
pub(super) fn get_decimal(bytes: &[u8]) -> i128 {
    if bytes.len() <= 8 {
        let low = match (bytes.first_chunk(), bytes.last_chunk()) {
            // Two loads that overlap take less time than a copy of any length.
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - size_of::<u32>()))
            }
            _ => bytes.iter().rev().fold(0, |low, byte| low << 8 | u64::from(*byte)),
        };
        let shift = 64 - 8 * bytes.len() as u32;
        return i128::from((low as i64).wrapping_shl(shift) >> shift.min(63));
    }
    let width = bytes.len().min(16);
    let mut all = [if bytes[width - 1] & 0x80 == 0 { 0u8 } else { 0xFF }; 16];
    all[..width].copy_from_slice(&bytes[..width]);
    i128::from_le_bytes(all)
}

/// Writes the low bytes of `value`, as many as `to` has.
#[inline]
pub(super) fn put_int(to: &mut [u8], value: i64) {
    let n = to.len().min(8);
    to[..n].copy_from_slice(&value.to_le_bytes()[..n]);
}

/// Writes the low bytes of `value`, as many as `to` has.
#[inline]
pub(super) fn put_decimal(to: &mut [u8], value: i128) {
    let n = to.len().min(16);
    to[..n].copy_from_slice(&value.to_le_bytes()[..n]);
}

/// What a variable column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VarValue<'a> {
    Inline(&'a [u8]),
    Large(LargeValueRef),
}

impl RowLayout {
    /// The layout of records of this schema.
    ///
    /// # Errors
    /// [`SchemaError::RowTooWide`] when the fixed part alone exceeds [`RECORD_BYTES_MAX`].
    pub fn new(schema: &Schema) -> Result<RowLayout, SchemaError> {
        let nullable_columns = schema.columns().iter().filter(|c| c.nullable).count();
        let bitmap = nullable_columns.div_ceil(8);
        let fixed: usize = schema.columns().iter().filter_map(|c| c.data_type.fixed_width()).sum();
        let variable = schema.columns().iter().filter(|c| c.data_type.fixed_width().is_none()).count();
        let bytes = bitmap + fixed + 2 * variable;
        if bytes > RECORD_BYTES_MAX {
            return Err(SchemaError::RowTooWide { bytes, max: RECORD_BYTES_MAX });
        }
        let (mut at, mut end_at, mut null_bit) = (bitmap, bitmap + fixed, 0u16);
        let mut columns = Vec::with_capacity(schema.len());
        for column in schema.columns() {
            let physical = column.data_type.physical();
            let place = if let Some(width) = physical.fixed_width() { (&mut at, width) } else { (&mut end_at, 2) };
            let offset = *place.0 as u16;
            *place.0 += place.1;
            let bit = if column.nullable { null_bit } else { NO_BIT };
            null_bit += u16::from(column.nullable);
            columns.push(ColumnLayout { name: column.name.as_str().into(), data_type: column.data_type, physical, offset, null_bit: bit });
        }
        Ok(RowLayout {
            columns: columns.into(),
            ends_start: (bitmap + fixed) as u16,
            var_start: bytes as u16,
            nullable_columns: nullable_columns as u16,
        })
    }

    /// How many columns.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Name of a column.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn column_name(&self, column: usize) -> &str {
        &self.columns[column].name
    }

    /// Type of a column.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn data_type(&self, column: usize) -> DataType {
        self.columns[column].data_type
    }

    /// May the column be NULL?
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn is_nullable(&self, column: usize) -> bool {
        self.columns[column].nullable()
    }

    /// Bytes of NULL bitmap, fixed-width columns and end offsets: the shortest record there can be.
    #[must_use]
    pub fn fixed_len(&self) -> usize {
        usize::from(self.var_start)
    }

    /// Bytes of every record, when no column is variable.
    #[must_use]
    pub fn constant_len(&self) -> Option<usize> {
        (self.ends_start == self.var_start).then_some(usize::from(self.var_start))
    }

    /// Bytes of the NULL bitmap.
    pub(super) fn bitmap_len(&self) -> usize {
        usize::from(self.nullable_columns).div_ceil(8)
    }

    /// No bit behind the last nullable column is set? The record has at least the fixed part.
    pub(super) fn bitmap_is_clean(&self, record: &[u8]) -> bool {
        let used = self.nullable_columns % 8;
        used == 0 || record[self.bitmap_len() - 1] >> used == 0
    }

    /// Where a fixed-width column lies in every record: offset and length in bytes. `None` for a variable column or none.
    #[must_use]
    pub fn fixed_span(&self, column: usize) -> Option<(usize, usize)> {
        let column = self.columns.get(column)?;
        Some((usize::from(column.offset), column.physical.fixed_width()?))
    }

    /// Byte in the record and mask of a column's NULL bit. `None` when it is not nullable.
    #[must_use]
    pub fn null_bit(&self, column: usize) -> Option<(usize, u8)> {
        let bit = self.columns.get(column)?.null_bit;
        (bit != NO_BIT).then(|| (usize::from(bit / 8), 1 << (bit % 8)))
    }

    /// Start, end and large flag of a variable column, by the end offsets alone.
    #[inline]
    pub(super) fn var_span(&self, column: &ColumnLayout, record: &[u8]) -> Option<(usize, usize, bool)> {
        let at = usize::from(column.offset);
        let word = u16::from_le_bytes(record.get(at..at + 2)?.try_into().ok()?);
        let start = if at == usize::from(self.ends_start) {
            usize::from(self.var_start)
        } else {
            usize::from(u16::from_le_bytes(record.get(at - 2..at)?.try_into().ok()?) & !LARGE_BIT)
        };
        Some((start, usize::from(word & !LARGE_BIT), word & LARGE_BIT != 0))
    }

    /// The bytes or the reference of variable column number `index`.
    #[inline]
    pub(super) fn var_value<'r>(&self, index: usize, column: &ColumnLayout, record: &'r [u8]) -> Result<VarValue<'r>, RecordError> {
        let damaged = RecordError::EndOffset { column: index };
        let (start, end, large) = self.var_span(column, record).ok_or(damaged)?;
        if start < usize::from(self.var_start) {
            return Err(damaged);
        }
        let bytes = record.get(start..end).ok_or(damaged)?;
        if large { LargeValueRef::from_bytes(bytes).map(VarValue::Large).ok_or(damaged) } else { Ok(VarValue::Inline(bytes)) }
    }

    /// The bytes of a fixed-width column.
    #[inline]
    pub(super) fn fixed_bytes<'r>(&self, column: &ColumnLayout, width: usize, record: &'r [u8]) -> Result<&'r [u8], RecordError> {
        let at = usize::from(column.offset);
        record.get(at..at + width).ok_or_else(|| self.length_error(record))
    }

    #[cold]
    pub(super) fn length_error(&self, record: &[u8]) -> RecordError {
        RecordError::Length { bytes: record.len(), least: self.fixed_len(), most: self.constant_len().unwrap_or(RECORD_BYTES_MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_every_width() {
        for width in 1..=16usize {
            let top = if width == 16 { i128::MAX } else { (1i128 << (8 * width - 1)) - 1 };
            for value in [0, 1, -1, top, -top - 1, top / 3, -(top / 7)] {
                let mut bytes = vec![0u8; width];
                put_decimal(&mut bytes, value);
                assert_eq!(get_decimal(&bytes), value, "width {width}");
            }
        }
    }
}

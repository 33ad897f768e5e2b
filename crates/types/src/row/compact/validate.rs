//! The structural check of a compact record from disk.

use super::encode::{left, padding};
use super::expand::{extend_low, extend_sign};
use super::layout::{CompactLayout, INLINE_MAX, LONG, LONG_INLINE, get_u16};
use crate::RecordError;
use crate::data_type::Physical;
use crate::row::layout::ColumnLayout;
use crate::row::{LargeValueRef, RECORD_BYTES_MAX};

/// Bytes of the widest column of fixed width.
const FIXED_WIDTH_MAX: usize = 16;

impl CompactLayout {
    /// Checks that these bytes are a record that [`compact`](Self::compact) could have made: lengths, sums, end offsets, NULL bitmap, that no value takes
    /// more bytes than it needs, UTF-8, ranges. After it, [`expand`](Self::expand) gives a packed record and no access an error, but
    /// for [`RecordError::Large`] and columns that do not exist.
    ///
    /// # Errors
    /// [`RecordError`] with the first thing that is wrong.
    pub fn validate(&self, record: &[u8]) -> Result<(), RecordError> {
        let header = self.header_len();
        if !(header..=RECORD_BYTES_MAX).contains(&record.len()) {
            return Err(self.length_error(record));
        }
        if !self.packed.bitmap_is_clean(record) {
            return Err(RecordError::NullBitmap);
        }
        if !self.lengths_are_clean(record) {
            return Err(RecordError::Lengths);
        }
        let mut at = header;
        for index in 0..self.packed.column_count() {
            if self.sum_at(index).is_some_and(|sum_at| get_u16(record, sum_at).map(usize::from) != Some(at - header)) {
                return Err(RecordError::Lengths);
            }
            at += match self.length(record, index) {
                Some(LONG) | None => LONG_INLINE,
                Some(length) => length,
            };
        }
        // The lengths and sums are right, so inline values are where they are looked for; now that they are within the record.
        if at > record.len() {
            return Err(RecordError::Lengths);
        }
        let (mut inline, mut end_before, mut packed_len) = (header, at, self.packed.fixed_len());
        for (index, column) in self.packed.columns.iter().enumerate() {
            let damaged = RecordError::EndOffset { column: index };
            let length = self.length(record, index).ok_or(RecordError::Lengths)?;
            let (bytes, large) = if length == LONG {
                let (end, large) = self.long_end(record, index).ok_or(damaged)?;
                let bytes = record.get(end_before..end).ok_or(damaged)?;
                if bytes.len() <= INLINE_MAX {
                    return Err(damaged);
                }
                (inline, end_before) = (inline + LONG_INLINE, end);
                (bytes, large)
            } else {
                inline += length;
                (&record[inline - length..inline], false)
            };
            packed_len += if large {
                if column.is_null(record) || !column.is_variable() || LargeValueRef::from_bytes(bytes).is_none() {
                    return Err(damaged);
                }
                bytes.len()
            } else if column.is_null(record) {
                if !bytes.is_empty() {
                    return Err(RecordError::NullBitmap);
                }
                0
            } else {
                check(column, index, bytes)?
            };
        }
        if packed_len > RECORD_BYTES_MAX {
            return Err(RecordError::Length { bytes: packed_len, least: self.packed.fixed_len(), most: RECORD_BYTES_MAX });
        }
        if end_before == record.len() { Ok(()) } else { Err(RecordError::Trailing { bytes: record.len() - end_before }) }
    }
}

/// Checks what is left of a value; returns the bytes it has in the variable part of the packed record.
fn check(column: &ColumnLayout, index: usize, bytes: &[u8]) -> Result<usize, RecordError> {
    let misfit = RecordError::Value { column: index };
    if let Some(width) = column.physical.fixed_width() {
        let mut all = [0; FIXED_WIDTH_MAX];
        let all = &mut all[..width];
        if bytes.len() > width {
            return Err(misfit);
        }
        match column.physical {
            Physical::Real | Physical::Double => extend_low(bytes, all),
            Physical::Uuid | Physical::Interval if bytes.len() < width => return Err(misfit),
            _ => extend_sign(bytes, all),
        }
        column.check_fixed(index, all)?;
        // In no more bytes than it needs.
        return if left(column.physical, all) == Some(bytes) { Ok(0) } else { Err(misfit) };
    }
    let Physical::Char { chars } = column.physical else {
        column.check_var(index, bytes)?;
        return Ok(bytes.len());
    };
    std::str::from_utf8(bytes).map_err(|_| RecordError::Utf8 { column: index })?;
    match padding(bytes, chars) {
        Some(blanks) if bytes.last() != Some(&b' ') => Ok(bytes.len() + blanks),
        _ => Err(misfit),
    }
}

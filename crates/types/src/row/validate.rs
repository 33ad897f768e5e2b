//! The structural check of a record from disk.

use super::layout::{ColumnLayout, RECORD_BYTES_MAX, RowLayout, VarValue, get_decimal, get_int};
use crate::RecordError;
use crate::data_type::{DataType, Physical, decimal_limit};
use crate::value::at_most_chars;

impl ColumnLayout {
    /// Are these bytes a value of a variable column?
    pub(super) fn check_var(&self, index: usize, bytes: &[u8]) -> Result<(), RecordError> {
        if !self.data_type.is_text() {
            return Ok(());
        }
        let text = std::str::from_utf8(bytes).map_err(|_| RecordError::Utf8 { column: index })?;
        let fits = match self.data_type {
            DataType::Char(n) => (if text.is_ascii() { text.len() } else { text.chars().count() }) == n as usize,
            DataType::Varchar(Some(n)) => at_most_chars(text, n),
            _ => true,
        };
        if fits { Ok(()) } else { Err(RecordError::Value { column: index }) }
    }

    pub(super) fn check_fixed(&self, index: usize, bytes: &[u8]) -> Result<(), RecordError> {
        let fits = match self.data_type {
            DataType::Boolean => bytes[0] <= 1,
            DataType::Decimal { precision, .. } => get_decimal(bytes).unsigned_abs() < decimal_limit(precision).unsigned_abs(),
            DataType::Time { .. } => {
                get_int(bytes).zip(self.data_type.int_range()).is_some_and(|(i, (least, most))| (least..=most).contains(&i))
            }
            _ => true,
        };
        debug_assert!(!matches!(self.physical, Physical::Text | Physical::Char { .. } | Physical::Bytes));
        if fits { Ok(()) } else { Err(RecordError::Value { column: index }) }
    }
}

impl RowLayout {
    /// Checks that these bytes are a record that [`RowLayout::encode`] could have made (with large-value references): lengths, end offsets, NULL bitmap, UTF-8,
    /// ranges. After it, no access to the record gives an error, but for [`RecordError::Large`] and columns that do not exist.
    ///
    /// # Errors
    /// [`RecordError`] with the first thing that is wrong.
    pub fn validate(&self, record: &[u8]) -> Result<(), RecordError> {
        let length_fits = match self.constant_len() {
            Some(length) => record.len() == length,
            None => (self.fixed_len()..=RECORD_BYTES_MAX).contains(&record.len()),
        };
        if !length_fits {
            return Err(self.length_error(record));
        }
        if !self.bitmap_is_clean(record) {
            return Err(RecordError::NullBitmap);
        }
        let mut end_before = self.fixed_len();
        for (index, column) in self.columns.iter().enumerate() {
            let null = column.is_null(record);
            let Some(width) = column.physical.fixed_width() else {
                let (_, end, large) = self.var_span(column, record).ok_or(RecordError::EndOffset { column: index })?;
                let value = self.var_value(index, column, record)?;
                if null && (end != end_before || large) {
                    return Err(RecordError::NullBitmap);
                }
                end_before = end;
                if let (false, VarValue::Inline(bytes)) = (null, value) {
                    column.check_var(index, bytes)?;
                }
                continue;
            };
            let bytes = self.fixed_bytes(column, width, record)?;
            if null {
                if bytes.iter().any(|b| *b != 0) {
                    return Err(RecordError::NullBitmap);
                }
            } else {
                column.check_fixed(index, bytes)?;
            }
        }
        if end_before == record.len() { Ok(()) } else { Err(RecordError::Trailing { bytes: record.len() - end_before }) }
    }
}

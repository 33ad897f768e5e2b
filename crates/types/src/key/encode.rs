//! Values or records to keys.

use super::layout::{Direction, KeyColumn, KeyLayout};
use super::scalar;
use crate::data_type::Physical;
use crate::row::RowLayout;
use crate::{KeyError, RecordError, ValueError, ValueRef};

const NOT_NULL: u8 = 0;
const NULL: u8 = 1;

impl KeyColumn {
    /// Appends one value of the key.
    fn put(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let start = out.len();
        if value.is_null() {
            if !self.nullable {
                return Err(ValueError::Null { column: self.name.to_string() });
            }
            out.push(NULL);
        } else {
            value.check(&self.data_type, &self.name)?;
            if self.nullable {
                out.push(NOT_NULL);
            }
            let kind_fits = scalar::put(value, self.physical, out);
            debug_assert!(kind_fits, "check() lets no other kind pass");
        }
        self.turn(start, out);
        Ok(())
    }

    #[inline]
    fn turn(&self, start: usize, out: &mut [u8]) {
        if self.direction == Direction::Descending {
            out[start..].iter_mut().for_each(|b| *b = !*b);
        }
    }

    /// Appends one value of the key, from a record that has it; range and length of a record's values are not checked again.
    #[inline]
    fn put_from_record(&self, layout: &RowLayout, record: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
        let start = out.len();
        let reader = layout.reader(self.column)?;
        if self.nullable {
            if reader.is_null(record) {
                out.push(NULL);
                self.turn(start, out);
                return Ok(());
            }
            out.push(NOT_NULL);
        }
        match self.physical {
            Physical::Int { .. } | Physical::Decimal { .. } => {
                let (at, width) = layout.fixed_span(self.column).ok_or(RecordError::NoSuchColumn { column: self.column })?;
                let bytes = record.get(at..at + width).ok_or(RecordError::Value { column: self.column })?;
                scalar::put_flipped(bytes, out);
            }
            Physical::Text | Physical::Bytes => {
                scalar::put_terminated(reader.bytes(record)?.unwrap_or_default(), out);
            }
            // Padded in the record as in the key.
            Physical::Char { .. } => out.extend_from_slice(reader.bytes(record)?.unwrap_or_default()),
            Physical::Boolean | Physical::Real | Physical::Double | Physical::Uuid | Physical::Interval => {
                let value = layout.value(record, self.column)?;
                if !scalar::put(value, self.physical, out) {
                    return Err(RecordError::Value { column: self.column }.into());
                }
            }
        }
        self.turn(start, out);
        Ok(())
    }
}

impl KeyLayout {
    /// Runs `put` for each column; on an error, or above the limit, `out` is as before.
    #[inline]
    fn build(
        &self,
        columns: usize,
        out: &mut Vec<u8>,
        mut put: impl FnMut(usize, &KeyColumn, &mut Vec<u8>) -> Result<(), KeyError>,
    ) -> Result<usize, KeyError> {
        let start = out.len();
        let (mut longest, mut column_bytes) = (0, 0);
        for (i, column) in self.columns[..columns].iter().enumerate() {
            let before = out.len();
            if let Err(e) = put(i, column, out) {
                out.truncate(start);
                return Err(match e {
                    KeyError::Record(RecordError::Large { .. }) => KeyError::Large { column: column.name.to_string() },
                    other => other,
                });
            }
            if out.len() - before > column_bytes {
                (longest, column_bytes) = (i, out.len() - before);
            }
            if out.len() - start > self.bytes_max {
                let bytes = out.len() - start;
                out.truncate(start);
                return Err(self.too_long(longest, column_bytes, bytes));
            }
        }
        Ok(out.len() - start)
    }

    #[cold]
    fn too_long(&self, longest: usize, column_bytes: usize, bytes: usize) -> KeyError {
        KeyError::TooLong {
            index: self.name.to_string(),
            column: self.columns[longest].name.to_string(),
            column_bytes,
            bytes,
            max: self.bytes_max,
        }
    }

    /// Appends the key of a row of the table, all its values given; returns the key's length. On an error `out` is as before.
    ///
    /// # Errors
    /// [`KeyError`]: a value that does not fit its column, or a key that is too long.
    ///
    /// # Panics
    /// When `row` has fewer values than the table has columns.
    pub fn encode_from_values(&self, row: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<usize, KeyError> {
        self.build(self.columns.len(), out, |_, column, out| Ok(column.put(row[column.column], out)?))
    }

    /// Appends the key of key values in key order; fewer values than columns give the beginning that all keys with these values share.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_from_values`]; [`ValueError::Count`] when there are more values than columns.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<usize, KeyError> {
        if values.len() > self.columns.len() {
            return Err(ValueError::Count { expected: self.columns.len(), found: values.len() }.into());
        }
        self.build(values.len(), out, |i, column, out| Ok(column.put(values[i], out)?))
    }

    /// Appends what all keys have in common whose first values are `values` and whose next column is a text that begins with `text`.
    ///
    /// # Errors
    /// As [`KeyLayout::encode`]; [`ValueError::Type`] when the next column is not text, [`ValueError::Count`] when there is none.
    pub fn encode_text_prefix(&self, values: &[ValueRef<'_>], text: &str, out: &mut Vec<u8>) -> Result<usize, KeyError> {
        let Some(next) = self.columns.get(values.len()) else {
            return Err(ValueError::Count { expected: self.columns.len(), found: values.len() + 1 }.into());
        };
        if !next.data_type.is_text() {
            let found = ValueRef::Text(text).kind();
            return Err(ValueError::Type { column: next.name.to_string(), data_type: next.data_type, found }.into());
        }
        self.build(values.len() + 1, out, |i, column, out| {
            if let Some(value) = values.get(i) {
                return Ok(column.put(*value, out)?);
            }
            let start = out.len();
            if column.nullable {
                out.push(NOT_NULL);
            }
            if column.physical == Physical::Text {
                scalar::put_terminated(text.as_bytes(), out);
                out.pop();
            } else {
                out.extend_from_slice(text.as_bytes());
            }
            column.turn(start, out);
            Ok(())
        })
    }

    /// What all keys have in common whose first values are `values` and whose next column is not NULL. The values have been encoded before.
    pub(crate) fn not_null_prefix(&self, values: &[ValueRef<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        let encoded = self.encode(values, &mut out);
        debug_assert!(encoded.is_ok());
        if let Some(next) = self.columns.get(values.len()).filter(|c| c.nullable) {
            out.push(NOT_NULL);
            let last = out.len() - 1;
            next.turn(last, &mut out);
        }
        out
    }

    /// Appends the key of a record; returns the key's length. On an error `out` is as before.
    ///
    /// # Errors
    /// [`KeyError`]: a damaged record, [`RecordError::Large`] for a key column that lies outside it (the caller fetches it and uses
    /// [`KeyLayout::encode_from_values`]), or a key that is too long.
    pub fn encode_from_record(&self, layout: &RowLayout, record: &[u8], out: &mut Vec<u8>) -> Result<usize, KeyError> {
        self.build(self.columns.len(), out, |_, column, out| column.put_from_record(layout, record, out))
    }
}

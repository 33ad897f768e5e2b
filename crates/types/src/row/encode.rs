//! Values to a record, one row at a time. Many rows at once: `batch.rs`.

use super::layout::{ColumnLayout, RECORD_BYTES_MAX, RowLayout, put_decimal, put_int};
use super::{ColumnValue, LARGE_VALUE_REF_BYTES};
use crate::data_type::Physical;
use crate::value::fit_char;
use crate::{RecordError, ValueError, ValueRef};

impl ColumnLayout {
    #[cold]
    pub(super) fn null_error(&self) -> ValueError {
        ValueError::Null { column: self.name.to_string() }
    }

    #[cold]
    pub(super) fn misfit(&self, value: ValueRef<'_>) -> ValueError {
        value.check(&self.data_type, &self.name).err().unwrap_or(ValueError::Type {
            column: self.name.to_string(),
            data_type: self.data_type,
            found: value.kind(),
        })
    }

    /// Bytes of a value in the variable part: 0 for NULL and fixed-width columns. Refuses text that is too long and values of another kind.
    pub(super) fn var_len(&self, value: ValueRef<'_>) -> Result<usize, ValueError> {
        match (self.physical, value) {
            (Physical::Text | Physical::Char { .. } | Physical::Bytes, ValueRef::Null) => Ok(0),
            (Physical::Text, ValueRef::Text(s)) => Ok(s.len()),
            (Physical::Char { chars }, ValueRef::Text(s)) => {
                fit_char(s, chars).map(|(kept, pad)| kept.len() + pad).ok_or_else(|| self.misfit(value))
            }
            (Physical::Bytes, ValueRef::Bytes(b)) => Ok(b.len()),
            (Physical::Text | Physical::Char { .. } | Physical::Bytes, _) => Err(self.misfit(value)),
            _ => Ok(0),
        }
    }

    /// Appends the bytes of a value of a variable column.
    pub(super) fn put_var(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        value.check(&self.data_type, &self.name)?;
        match (self.physical, value) {
            (Physical::Char { chars }, ValueRef::Text(s)) => {
                let (kept, pad) = fit_char(s, chars).ok_or_else(|| self.misfit(value))?;
                out.extend_from_slice(kept.as_bytes());
                out.resize(out.len() + pad, b' ');
            }
            (_, ValueRef::Text(s)) => out.extend_from_slice(s.as_bytes()),
            (_, ValueRef::Bytes(b)) => out.extend_from_slice(b),
            _ => {}
        }
        Ok(())
    }

    /// Writes a value that is not NULL into the bytes of a fixed-width column.
    #[inline]
    pub(super) fn put_fixed(&self, value: ValueRef<'_>, to: &mut [u8]) -> Result<(), ValueError> {
        match (self.physical, value) {
            (Physical::Boolean, ValueRef::Boolean(b)) => to[0] = u8::from(b),
            (Physical::Int { .. }, ValueRef::Int(i)) => {
                value.check(&self.data_type, &self.name)?;
                put_int(to, i);
            }
            (Physical::Decimal { .. }, ValueRef::Decimal(d)) => {
                value.check(&self.data_type, &self.name)?;
                put_decimal(to, d);
            }
            (Physical::Real, ValueRef::Real(x)) => to.copy_from_slice(&x.to_le_bytes()),
            (Physical::Double, ValueRef::Double(x)) => to.copy_from_slice(&x.to_le_bytes()),
            (Physical::Uuid, ValueRef::Uuid(u)) => to.copy_from_slice(&u),
            (Physical::Interval, ValueRef::Interval(i)) => to.copy_from_slice(&i.to_bytes()),
            _ => return Err(self.misfit(value)),
        }
        Ok(())
    }
}

impl RowLayout {
    fn check_count(&self, found: usize) -> Result<(), ValueError> {
        if found == self.columns.len() { Ok(()) } else { Err(ValueError::Count { expected: self.columns.len(), found }) }
    }

    /// Bytes of the record of these values, without making it; may exceed [`RECORD_BYTES_MAX`].
    ///
    /// # Errors
    /// [`ValueError`] for another number of values than of columns, and for values whose length cannot be told because they do not fit.
    pub fn encoded_len(&self, values: &[ValueRef<'_>]) -> Result<usize, ValueError> {
        self.check_count(values.len())?;
        let mut bytes = self.fixed_len();
        for (column, value) in self.columns.iter().zip(values) {
            bytes = bytes.saturating_add(column.var_len(*value)?);
        }
        Ok(bytes)
    }

    /// Appends the record of these values to `out`; returns its length in bytes. On an error `out` is as before.
    ///
    /// # Errors
    /// [`ValueError`], naming the column: NULL in a NOT NULL column, a value that does not fit; [`ValueError::TooWide`] above [`RECORD_BYTES_MAX`].
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<usize, ValueError> {
        self.check_count(values.len())?;
        self.encode_all(values.iter().map(|v| ColumnValue::Value(*v)), out)
    }

    /// As [`RowLayout::encode`], with some values replaced by references to large values.
    ///
    /// # Errors
    /// As [`RowLayout::encode`], and [`ValueError::NotLarge`] for a reference in a column of fixed width.
    pub fn encode_columns(&self, values: &[ColumnValue<'_>], out: &mut Vec<u8>) -> Result<usize, ValueError> {
        self.check_count(values.len())?;
        self.encode_all(values.iter().copied(), out)
    }

    fn encode_all<'a>(&self, values: impl Iterator<Item = ColumnValue<'a>> + Clone, out: &mut Vec<u8>) -> Result<usize, ValueError> {
        let start = out.len();
        let result = self.append(values, start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn append<'a>(
        &self,
        values: impl Iterator<Item = ColumnValue<'a>> + Clone,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, ValueError> {
        // The length first, so that a gigantic value is refused before it is copied.
        let mut bytes = self.fixed_len();
        for (column, value) in self.columns.iter().zip(values.clone()) {
            bytes = bytes.saturating_add(match value {
                ColumnValue::Value(value) => column.var_len(value)?,
                ColumnValue::Large(_) => LARGE_VALUE_REF_BYTES,
            });
        }
        if bytes > RECORD_BYTES_MAX {
            return Err(ValueError::TooWide { bytes, max: RECORD_BYTES_MAX });
        }
        out.reserve(bytes);
        out.resize(start + self.fixed_len(), 0);
        for (column, value) in self.columns.iter().zip(values) {
            match value {
                ColumnValue::Value(ValueRef::Null) if !column.nullable() => return Err(column.null_error()),
                ColumnValue::Value(ValueRef::Null) => column.set_null(&mut out[start..], true),
                ColumnValue::Value(value) => match column.physical.fixed_width() {
                    Some(width) => {
                        let at = start + usize::from(column.offset);
                        column.put_fixed(value, &mut out[at..at + width])?;
                    }
                    None => column.put_var(value, out)?,
                },
                ColumnValue::Large(_) if !column.is_variable() => {
                    return Err(ValueError::NotLarge { column: column.name.to_string(), data_type: column.data_type });
                }
                ColumnValue::Large(large) => out.extend_from_slice(&large.to_bytes()),
            }
            if column.is_variable() {
                let end = out.len() - start;
                column.set_end(&mut out[start..], end, matches!(value, ColumnValue::Large(_)));
            }
        }
        Ok(out.len() - start)
    }

    /// Overwrites one fixed-width column of a record in place; NULL too.
    ///
    /// # Errors
    /// [`ValueError`] when the value does not fit, the column is NOT NULL and the value NULL, or the column is not of fixed width; the record is then as before.
    /// [`ValueError::Count`] when the record is shorter than the layout's fixed part.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn patch_fixed(&self, record: &mut [u8], column: usize, value: ValueRef<'_>) -> Result<(), ValueError> {
        let column = &self.columns[column];
        let Some(width) = column.physical.fixed_width() else {
            return Err(column.misfit(value));
        };
        if record.len() < self.fixed_len() {
            return Err(ValueError::Count { expected: self.columns.len(), found: 0 });
        }
        let at = usize::from(column.offset);
        let to = &mut record[at..at + width];
        if value.is_null() {
            if !column.nullable() {
                return Err(column.null_error());
            }
            to.fill(0);
        } else {
            column.put_fixed(value, to)?;
        }
        column.set_null(record, value.is_null());
        Ok(())
    }

    /// Appends the record with some columns replaced: for updates, and to move values out to large-value pages.
    ///
    /// # Errors
    /// The outer error when `record` is damaged, the inner one as [`RowLayout::encode_columns`].
    pub fn replace(
        &self,
        record: &[u8],
        changes: &[(usize, ColumnValue<'_>)],
        out: &mut Vec<u8>,
    ) -> Result<Result<usize, ValueError>, RecordError> {
        let mut values = Vec::with_capacity(self.columns.len());
        for i in 0..self.columns.len() {
            values.push(match changes.iter().rev().find(|(column, _)| *column == i) {
                Some((_, value)) => *value,
                None => self.column(record, i)?,
            });
        }
        Ok(self.encode_all(values.iter().copied(), out))
    }
}

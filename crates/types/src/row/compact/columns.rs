//! Some columns of a compact record, in the form of a packed one.

use super::encode::padding;
use super::expand::{extend_low, extend_sign, sign_extended};
use super::layout::{ColumnPlace, CompactLayout};
use crate::RecordError;
use crate::data_type::Physical;
use crate::row::RECORD_BYTES_MAX;

/// Some columns that are integers in records: what can be worked out once to read them.
#[derive(Clone, Debug)]
pub struct CompactColumns {
    columns: Box<[IntegerColumn]>,
    bitmap_len: usize,
    fixed_len: usize,
}

#[derive(Clone, Copy, Debug)]
struct IntegerColumn {
    index: usize,
    place: ColumnPlace,
    /// In the packed record.
    at: usize,
    width: usize,
}

/// Bytes that an integer is written as.
const WORD: usize = size_of::<u64>();

impl CompactColumns {
    /// Writes a packed record of which only these columns may be read to the front of `out`, which grows as needed; returns its length.
    ///
    /// # Errors
    /// [`RecordError`] when one of them is damaged.
    #[inline]
    pub fn expand(&self, layout: &CompactLayout, compact: &[u8], out: &mut Vec<u8>) -> Result<usize, RecordError> {
        if out.len() < self.fixed_len + WORD {
            out.resize(self.fixed_len + WORD, 0);
        }
        if compact.len() < layout.header_len() {
            return Err(layout.length_error(compact));
        }
        out[..self.bitmap_len].copy_from_slice(&compact[..self.bitmap_len]);
        for column in &self.columns {
            let bytes = layout.inline_bytes(compact, &column.place);
            let damaged = RecordError::EndOffset { column: column.index };
            let rest = compact.get(bytes.start..).ok_or(damaged)?;
            let word = match rest.first_chunk() {
                Some(word) => u64::from_le_bytes(*word),
                None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            };
            if bytes.len() > column.width.min(rest.len()) {
                return Err(damaged);
            }
            // What is written too much belongs to columns that come later, or may not be read.
            let to = &mut out[column.at..column.at + WORD];
            to.copy_from_slice(&sign_extended(word, bytes.len()).to_le_bytes());
        }
        Ok(self.fixed_len)
    }
}

impl CompactLayout {
    /// What it takes to read only these columns (ascending). `None` unless all of them are integers of up to eight bytes in the record.
    #[must_use]
    pub fn integer_columns(&self, columns: &[usize]) -> Option<CompactColumns> {
        let columns = columns.iter().map(|&index| {
            let column = self.packed.columns.get(index)?;
            let width = column.physical.fixed_width().filter(|width| *width <= WORD)?;
            let is_integer = matches!(column.physical, Physical::Boolean | Physical::Int { .. } | Physical::Decimal { .. });
            is_integer.then(|| IntegerColumn { index, place: self.place(index), at: usize::from(column.offset), width })
        });
        Some(CompactColumns {
            columns: columns.collect::<Option<_>>()?,
            bitmap_len: self.packed.bitmap_len(),
            fixed_len: self.packed.fixed_len(),
        })
    }

    /// Appends a packed record of which only the columns named (ascending) may be read; returns its length. Each is looked up by itself, so this pays for few.
    ///
    /// # Errors
    /// [`RecordError`] when one of them is damaged or there is no such column; `out` is then as before.
    pub fn expand_columns(&self, compact: &[u8], columns: &[usize], out: &mut Vec<u8>) -> Result<usize, RecordError> {
        let start = out.len();
        let result = self.append_columns(compact, columns, start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn append_columns(&self, compact: &[u8], columns: &[usize], out_start: usize, out: &mut Vec<u8>) -> Result<usize, RecordError> {
        if compact.len() < self.header_len() {
            return Err(self.length_error(compact));
        }
        out.resize(out_start + self.packed.fixed_len(), 0);
        let bitmap = self.packed.bitmap_len();
        out[out_start..out_start + bitmap].copy_from_slice(&compact[..bitmap]);
        // Variable columns before this one have their ends.
        let mut ended = 0;
        for &index in columns {
            let span = self.span(compact, index)?;
            let column = &self.packed.columns[index];
            let value = &compact[span.bytes];
            if let Some(width) = column.physical.fixed_width() {
                let place = out_start + usize::from(column.offset);
                let to = &mut out[place..place + width];
                match column.physical {
                    Physical::Real | Physical::Double => extend_low(value, to),
                    Physical::Uuid | Physical::Interval => to[..value.len().min(width)].copy_from_slice(&value[..value.len().min(width)]),
                    _ => extend_sign(value, to),
                }
                continue;
            }
            let blanks = match column.physical {
                Physical::Char { chars } if !span.large && !column.is_null(compact) => {
                    padding(value, chars).ok_or(RecordError::Value { column: index })?
                }
                _ => 0,
            };
            self.end_variable(ended..index, out_start, out);
            out.extend_from_slice(value);
            out.resize(out.len() + blanks, b' ');
            let end = out.len() - out_start;
            if end > RECORD_BYTES_MAX {
                return Err(RecordError::Length { bytes: end, least: self.packed.fixed_len(), most: RECORD_BYTES_MAX });
            }
            column.set_end(&mut out[out_start..], end, span.large);
            ended = index + 1;
        }
        self.end_variable(ended..self.packed.column_count(), out_start, out);
        Ok(out.len() - out_start)
    }

    /// Lets variable columns end where the record ends so far.
    fn end_variable(&self, columns: std::ops::Range<usize>, out_start: usize, out: &mut [u8]) {
        let end = out.len() - out_start;
        for column in &self.packed.columns[columns] {
            if column.physical.fixed_width().is_none() {
                column.set_end(&mut out[out_start..], end, false);
            }
        }
    }
}

//! Many rows at once, column by column: the way of bulk load.
//!
//! First the lengths of all variable columns are announced, then each column is written once, variable ones in column order. Rows that would be
//! longer than the limit are *wide*: they get no record; the caller takes their values from the source and moves some out to large-value pages.

use super::layout::{ColumnLayout, RECORD_BYTES_MAX, RowLayout, put_decimal, put_int};
use crate::data_type::{Physical, decimal_limit};
use crate::value::fit_char;
use crate::{Value, ValueError, ValueRef};

/// Records packed one behind the other, and the rows too wide for a record.
#[derive(Clone, Debug, Default)]
pub struct PackedRows {
    bytes: Vec<u8>,
    /// End of each row's record in `bytes`; a wide row has none.
    ends: Vec<u32>,
    /// Row and values, ascending.
    wide: Vec<(u32, Vec<Value>)>,
}

/// One row of [`PackedRows`].
#[derive(Clone, Copy, Debug)]
pub enum PackedRow<'a> {
    /// A record within the limit.
    Record(&'a [u8]),
    /// The values of a row that is wider than the limit.
    Wide(&'a [Value]),
}

impl PackedRows {
    /// No rows; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.wide.clear();
    }

    /// How many rows, wide ones too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// No rows?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all records.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = PackedRow<'_>> + Clone {
        let mut wide = self.wide.iter().peekable();
        let mut start = 0usize;
        self.ends.iter().enumerate().map(move |(row, end)| {
            let record = &self.bytes[start..*end as usize];
            start = *end as usize;
            match wide.next_if(|(at, _)| *at as usize == row) {
                Some((_, values)) => PackedRow::Wide(values),
                None => PackedRow::Record(record),
            }
        })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// As [`RowLayout::encode`], but a row above `limit` bytes becomes a wide one.
    pub fn push(&mut self, layout: &RowLayout, values: &[ValueRef<'_>], limit: usize) -> Result<(), ValueError> {
        if layout.encoded_len(values)? > limit.min(RECORD_BYTES_MAX) {
            self.wide.push((self.ends.len() as u32, values.iter().map(ValueRef::to_owned).collect()));
        } else {
            layout.encode(values, &mut self.bytes)?;
        }
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }
}

/// The most rows of one batch.
const BATCH_ROWS_MAX: usize = 1 << 16;

/// Writes a batch of rows, column by column, into a [`PackedRows`].
#[derive(Debug)]
pub struct BatchWriter<'w> {
    layout: &'w RowLayout,
    limit: usize,
    rows: &'w mut PackedRows,
    first_row: usize,
    /// Bytes of each row's record; 0 = wide.
    lengths: Vec<u32>,
    /// Start of each row's record in `rows.bytes`.
    starts: Vec<u32>,
    /// End of what is written of each record.
    cursors: Vec<u32>,
}

impl<'w> BatchWriter<'w> {
    /// Starts a batch of `count` rows behind those already in `rows`. Records of more than `limit` bytes are wide.
    ///
    /// # Panics
    /// When `count` is above 65,536, or `limit` is below the layout's fixed part: no row would fit.
    #[must_use]
    pub fn new(layout: &'w RowLayout, count: usize, limit: usize, rows: &'w mut PackedRows) -> BatchWriter<'w> {
        assert!(count <= BATCH_ROWS_MAX && layout.fixed_len() <= limit);
        let first_row = rows.ends.len();
        let lengths = vec![layout.fixed_len() as u32; count];
        BatchWriter { layout, limit: limit.min(RECORD_BYTES_MAX), rows, first_row, lengths, starts: Vec::new(), cursors: Vec::new() }
    }

    /// First pass, for each variable column: the bytes or NULL of each row.
    ///
    /// # Errors
    /// [`ValueError`] with the row's position in the batch, when a text does not fit its CHAR or VARCHAR.
    ///
    /// # Panics
    /// When the column is not a variable one.
    pub fn add_lengths<'v>(&mut self, column: usize, value: impl Fn(usize) -> Option<&'v [u8]>) -> Result<(), (usize, ValueError)> {
        let column = &self.layout.columns[column];
        assert!(column.is_variable());
        let unbounded = matches!(column.data_type, crate::DataType::Varchar(None) | crate::DataType::Bytea);
        for (row, length) in self.lengths.iter_mut().enumerate() {
            let Some(bytes) = value(row) else { continue };
            let added = if unbounded { bytes.len() } else { bounded_len(column, bytes).map_err(|e| (row, e))? };
            *length = u32::try_from(added).map_or(u32::MAX, |added| length.saturating_add(added));
        }
        Ok(())
    }

    /// Ends the first pass; returns the wide rows (positions in the batch). Their values are to be given to [`BatchWriter::finish`].
    ///
    /// # Panics
    /// When `rows` would exceed 4 GB: batches are to be bounded.
    pub fn place(&mut self) -> Vec<usize> {
        let fixed = self.layout.fixed_len();
        let mut wide = Vec::new();
        let mut at = self.rows.bytes.len();
        self.starts.reserve(self.lengths.len());
        for (row, length) in self.lengths.iter_mut().enumerate() {
            if *length as usize > self.limit {
                wide.push(row);
                *length = 0;
            }
            self.starts.push(u32::try_from(at).expect("batches are bounded to far below 4 GB"));
            at += *length as usize;
        }
        u32::try_from(at).expect("batches are bounded to far below 4 GB");
        self.rows.bytes.resize(at, 0);
        self.cursors = vec![fixed as u32; self.lengths.len()];
        wide
    }

    /// Calls `put` with each row that has a record, the record, and the row's value; NULL is handled here.
    #[inline]
    fn each<T>(
        &mut self,
        column: usize,
        value: impl Fn(usize) -> Option<T>,
        put: impl Fn(&ColumnLayout, T, &mut [u8]) -> Result<(), ValueError>,
    ) -> Result<(), (usize, ValueError)> {
        let layout = &self.layout.columns[column];
        let at = usize::from(layout.offset);
        let width = layout.physical.fixed_width().expect("put_* of fixed-width columns");
        for (row, (start, length)) in self.starts.iter().zip(&self.lengths).enumerate() {
            if *length == 0 {
                continue;
            }
            let start = *start as usize;
            match value(row) {
                Some(value) => {
                    let at = start + at;
                    put(layout, value, &mut self.rows.bytes[at..at + width]).map_err(|e| (row, e))?;
                }
                None if layout.nullable() => layout.set_null(&mut self.rows.bytes[start..start + *length as usize], true),
                None => return Err((row, layout.null_error())),
            }
        }
        Ok(())
    }

    /// Writes an `Int` column.
    ///
    /// # Errors
    /// [`ValueError`] with the row's position in the batch.
    ///
    /// # Panics
    /// When the column is of another kind, or before [`BatchWriter::place`].
    pub fn put_ints(&mut self, column: usize, value: impl Fn(usize) -> Option<i64>) -> Result<(), (usize, ValueError)> {
        let layout = &self.layout.columns[column];
        let (least, most) = layout.data_type.int_range().expect("put_ints of an Int column");
        let check = move |c: &ColumnLayout, v: i64| {
            if (least..=most).contains(&v) { Ok(()) } else { Err(c.misfit(ValueRef::Int(v))) }
        };
        // One loop per width: the copy of a constant number of bytes is a single store.
        match layout.physical {
            Physical::Int { width: 4 } => self.each(column, value, |c, v, to| {
                check(c, v)?;
                to.copy_from_slice(&(v as i32).to_le_bytes());
                Ok(())
            }),
            Physical::Int { width: 8 } => self.each(column, value, |c, v, to| {
                check(c, v)?;
                to.copy_from_slice(&v.to_le_bytes());
                Ok(())
            }),
            _ => self.each(column, value, |c, v, to| {
                check(c, v)?;
                put_int(to, v);
                Ok(())
            }),
        }
    }

    /// Writes a DECIMAL column, unscaled values.
    ///
    /// # Errors
    /// As [`BatchWriter::put_ints`].
    ///
    /// # Panics
    /// As [`BatchWriter::put_ints`].
    pub fn put_decimals(&mut self, column: usize, value: impl Fn(usize) -> Option<i128>) -> Result<(), (usize, ValueError)> {
        let crate::DataType::Decimal { precision, .. } = self.layout.columns[column].data_type else {
            panic!("put_decimals of a DECIMAL column");
        };
        let limit = decimal_limit(precision);
        self.each(column, value, |c, v, to| {
            if v >= limit || v <= -limit {
                return Err(c.misfit(ValueRef::Decimal(v)));
            }
            if to.len() <= 8 {
                put_int(to, v as i64)
            } else {
                put_decimal(to, v)
            }
            Ok(())
        })
    }

    /// Writes a column of any other fixed width.
    ///
    /// # Errors
    /// As [`BatchWriter::put_ints`].
    ///
    /// # Panics
    /// When the column is variable, or before [`BatchWriter::place`].
    pub fn put_values<'v>(&mut self, column: usize, value: impl Fn(usize) -> Option<ValueRef<'v>>) -> Result<(), (usize, ValueError)> {
        self.each(column, value, |c, v, to| c.put_fixed(v, to))
    }

    /// Writes a variable column: the same values as in the first pass, columns in column order. Text has to be UTF-8.
    ///
    /// # Errors
    /// As [`BatchWriter::put_ints`].
    ///
    /// # Panics
    /// When the column is of fixed width, before [`BatchWriter::place`], or when values are longer than announced.
    pub fn put_bytes<'v>(&mut self, column: usize, value: impl Fn(usize) -> Option<&'v [u8]>) -> Result<(), (usize, ValueError)> {
        let layout = &self.layout.columns[column];
        assert!(layout.is_variable());
        for row in 0..self.lengths.len() {
            let length = self.lengths[row] as usize;
            if length == 0 {
                continue;
            }
            let start = self.starts[row] as usize;
            let record = &mut self.rows.bytes[start..start + length];
            let mut end = self.cursors[row] as usize;
            match value(row) {
                Some(bytes) => {
                    let (kept, pad) = match layout.physical {
                        Physical::Char { chars } => kept_and_pad(bytes, chars).expect("checked in the first pass"),
                        _ => (bytes, 0),
                    };
                    record[end..end + kept.len()].copy_from_slice(kept);
                    record[end + kept.len()..end + kept.len() + pad].fill(b' ');
                    end += kept.len() + pad;
                }
                None if layout.nullable() => layout.set_null(record, true),
                None => return Err((row, layout.null_error())),
            }
            layout.set_end(record, end, false);
            self.cursors[row] = end as u32;
        }
        Ok(())
    }

    /// Ends the batch. `wide_values` gives all values of a wide row.
    ///
    /// # Errors
    /// [`ValueError`] with the row's position in the batch, for values of wide rows that do not fit.
    pub fn finish(self, wide: &[usize], mut wide_values: impl FnMut(usize) -> Vec<Value>) -> Result<(), (usize, ValueError)> {
        for row in wide {
            let values = wide_values(*row);
            for (column, value) in self.layout.columns.iter().zip(&values) {
                if matches!(value, Value::Null) && !column.nullable() {
                    return Err((*row, column.null_error()));
                }
                value.as_ref().check(&column.data_type, &column.name).map_err(|e| (*row, e))?;
            }
            self.rows.wide.push(((self.first_row + row) as u32, values));
        }
        self.rows.ends.extend(self.starts.iter().zip(&self.lengths).map(|(start, length)| start + length));
        Ok(())
    }
}

/// The text (not checked: the caller's source is UTF-8) cut and padded to a CHAR of `chars` characters.
fn kept_and_pad(bytes: &[u8], chars: u32) -> Option<(&[u8], usize)> {
    let text = std::str::from_utf8(bytes).ok()?;
    fit_char(text, chars).map(|(kept, pad)| (kept.as_bytes(), pad))
}

fn bounded_len(column: &ColumnLayout, bytes: &[u8]) -> Result<usize, ValueError> {
    let text = String::from_utf8_lossy(bytes);
    let value = ValueRef::Text(&text);
    value.check(&column.data_type, &column.name)?;
    column.var_len(value)
}

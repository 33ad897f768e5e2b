//! Reading an area: one value, one row.

use super::check::check;
use super::encoder::{LARGE_BIT, char_count};
use super::ints::{Ints, int};
use super::layout::{Entry, Kind, header_rows};
use super::schema::{Class, PageColumn, PageSchema};
use super::strings::Strings;
use crate::CodecError;
use crate::row::Dictionary;
use pagefold_types::{LargeValueRef, RECORD_BYTES_MAX};

/// Bytes of the widest integer.
const WORD: usize = 8;

const TOO_LONG: CodecError = CodecError::Page("value longer than a record can be");

/// The column area of a page: a view of its bytes.
///
/// No access panics or reads outside the bytes but for a column or row that does not exist. In a [parsed](ColumnArea::parse) area every integer column can be read; strings are
/// checked as they are read.
#[derive(Clone, Copy, Debug)]
pub struct ColumnArea<'a> {
    pub(super) schema: &'a PageSchema,
    pub(super) dictionary: Option<&'a Dictionary>,
    pub(super) bytes: &'a [u8],
    rows: usize,
}

/// A value of a column of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringValue<'a> {
    /// The bytes that the record has: CHAR with its trailing blanks.
    Bytes(&'a [u8]),
    /// The value lies in large-value pages.
    Large(LargeValueRef),
}

impl<'a> ColumnArea<'a> {
    /// Checks the structure of bytes from disk: one pass over the directory. `dictionary` is that of the string codes.
    ///
    /// # Errors
    /// When `bytes` is not exactly an area of the schema, or has string codes and there is no dictionary.
    pub fn parse(schema: &'a PageSchema, dictionary: Option<&'a Dictionary>, bytes: &'a [u8]) -> Result<Self, CodecError> {
        check(schema, dictionary.is_some(), bytes)?;
        Ok(Self::trusted(schema, dictionary, bytes))
    }

    /// The area that these bytes were found to be before. Of other bytes it reads anything, but does no harm.
    #[inline]
    #[must_use]
    pub fn trusted(schema: &'a PageSchema, dictionary: Option<&'a Dictionary>, bytes: &'a [u8]) -> Self {
        Self { schema, dictionary, bytes, rows: header_rows(bytes) }
    }

    /// Bytes of the area that `bytes` begins with, as it says itself.
    #[must_use]
    pub fn len_at(bytes: &[u8]) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes([*bytes.get(4)?, *bytes.get(5)?])))
    }

    /// The name of each column's encoding, and the bits of its packed numbers.
    pub fn encodings(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        (0..self.schema.columns.len()).map(|column| {
            let entry = Entry::read(self.bytes, column);
            (entry.known_kind().map_or("unknown", Kind::name), entry.width)
        })
    }

    /// How many rows.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// # Panics
    /// When there is no such column or row.
    #[inline(always)]
    pub(super) fn column(&self, column: usize, row: usize) -> &'a PageColumn {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &self.schema.columns[column]
    }

    #[inline(always)]
    pub(super) fn ints_of(&self, column: usize) -> Ints<'a> {
        assert!(self.schema.is_int(column), "column {column} is not an integer one");
        Ints::of(self.bytes, column)
    }

    #[inline(always)]
    pub(super) fn strings_of(&self, column: usize) -> Strings<'a> {
        assert!(!self.schema.is_int(column), "column {column} is an integer one");
        Strings::of(self.bytes, column, self.dictionary)
    }

    /// Is the value NULL?
    ///
    /// # Panics
    /// When there is no such column or row.
    #[must_use]
    pub fn is_null(&self, column: usize, row: usize) -> bool {
        self.column(column, row);
        if self.schema.is_int(column) { self.ints_of(column).is_null(row) } else { self.strings_of(column).is_null(row) }
    }

    /// A value of an integer column; `None` is NULL. REAL and DOUBLE as the two's complement of their bits.
    ///
    /// # Panics
    /// When there is no such column or row, or the column is not an [integer one](PageSchema::is_int).
    #[inline]
    #[must_use]
    pub fn int(&self, column: usize, row: usize) -> Option<i64> {
        self.column(column, row);
        assert!(self.schema.is_int(column), "column {column} is not an integer one");
        int(self.bytes, column, row)
    }

    /// A value of any other column; `None` is NULL. It lies in the area or in `buffer`, whose contents are lost.
    ///
    /// # Errors
    /// When the area is damaged.
    ///
    /// # Panics
    /// When there is no such column or row, or the column is an integer one.
    pub fn bytes<'b>(&self, column: usize, row: usize, buffer: &'b mut Vec<u8>) -> Result<Option<StringValue<'b>>, CodecError>
    where
        'a: 'b,
    {
        let class = self.column(column, row).class;
        let strings = self.strings_of(column);
        if strings.is_null(row) {
            return Ok(None);
        }
        let index = strings.index(row);
        if !matches!(class, Class::Variable { chars: Some(_) })
            && !strings.is_large(row)
            && let Some(bytes) = strings.heap.plain(index)?
        {
            return Ok(Some(StringValue::Bytes(bytes)));
        }
        buffer.clear();
        let large = strings.is_large(row);
        append_value(&strings, class, index, large, buffer)?;
        if !large {
            return Ok(Some(StringValue::Bytes(buffer)));
        }
        let large = LargeValueRef::from_bytes(buffer).ok_or(CodecError::Page("not a large-value reference"))?;
        Ok(Some(StringValue::Large(large)))
    }

    /// Appends the packed record of a row as it was pushed; returns its length. On an error `out` is as it was.
    ///
    /// # Errors
    /// When the area is damaged: a string outside its heap, or a record that would be too long.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn record(&self, row: usize, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        assert!(row < self.rows);
        let start = out.len();
        let result = self.append_record(row, start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends a packed record of a row of which only the columns named (ascending) may be read; returns its length. On an error `out` is as it was.
    ///
    /// # Errors
    /// As [`ColumnArea::record`].
    ///
    /// # Panics
    /// When there is no such row or column.
    pub fn record_columns(&self, row: usize, columns: &[usize], out: &mut Vec<u8>) -> Result<usize, CodecError> {
        assert!(row < self.rows);
        let start = out.len();
        out.resize(start + self.schema.fixed_len, 0);
        let mut ended = 0;
        for &column in columns {
            if !self.schema.is_int(column) {
                self.end_variable(ended..column, start, out);
                ended = column + 1;
            }
            if let Err(error) = self.append_column(column, row, start, out) {
                out.truncate(start);
                return Err(error);
            }
        }
        if ended > 0 {
            self.end_variable(ended..self.schema.columns.len(), start, out);
        }
        Ok(out.len() - start)
    }

    /// Lets variable columns end where the record ends so far.
    fn end_variable(&self, columns: std::ops::Range<usize>, start: usize, out: &mut [u8]) {
        let end = (out.len() - start) as u16;
        for column in &self.schema.columns[columns] {
            if let Class::Variable { .. } = column.class {
                out[start + column.at..start + column.at + 2].copy_from_slice(&end.to_le_bytes());
            }
        }
    }

    /// Looks at each column's number of a row: the processor fetches them side by side, where decoding one value after the other would wait for each.
    #[inline]
    fn fetch(&self, row: usize) {
        let fetched = (0..self.schema.columns.len()).fold(0, |bytes, column| {
            let entry = Entry::read(self.bytes, column);
            bytes ^ self.bytes.get(entry.at + row * entry.width as usize / 8).copied().unwrap_or(0)
        });
        std::hint::black_box(fetched);
    }

    fn append_record(&self, row: usize, start: usize, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.fetch(row);
        out.resize(start + self.schema.fixed_len + WORD, 0);
        let record = &mut out[start..];
        for column in &self.schema.ints {
            let value = int(self.bytes, column.number, row);
            if let (None, Some((byte, mask))) = (value, column.null_bit) {
                record[byte] |= mask;
            }
            // Eight bytes whatever the width: what is too much is what comes next in the record, which is written later.
            record[column.at..][..WORD].copy_from_slice(&value.unwrap_or(0).to_le_bytes());
        }
        out.truncate(start + self.schema.fixed_len);
        for &column in &self.schema.strings {
            self.append_column(column, row, start, out)?;
        }
        Ok(out.len() - start)
    }

    /// Puts a value into the record that begins at `start`, of which the variable columns before have their ends.
    #[inline]
    fn append_column(&self, number: usize, row: usize, start: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let column = &self.schema.columns[number];
        let at = start + column.at;
        let set_null = |out: &mut Vec<u8>| {
            if let Some((byte, mask)) = column.null_bit {
                out[start + byte] |= mask;
            }
        };
        if let Class::Int { width } = column.class {
            match int(self.bytes, number, row) {
                None => set_null(out),
                Some(value) => put_int(&mut out[at..at + usize::from(width)], value),
            }
            return Ok(());
        }
        let strings = Strings::of(self.bytes, number, self.dictionary);
        let value_at = out.len();
        let null = strings.is_null(row);
        let large = !null && strings.is_large(row);
        if null {
            set_null(out);
        } else if let Class::Variable { chars: None } = column.class {
            // What most columns are, without a call.
            strings.heap.append(strings.index(row), out)?;
        } else {
            append_value(&strings, column.class, strings.index(row), large, out)?;
        }
        if let Class::Fixed { width } = column.class {
            // A fixed column lies before the variable ones: what was appended moves there.
            out.resize(value_at + usize::from(width), 0);
            out.copy_within(value_at.., at);
            out.truncate(value_at);
            return Ok(());
        }
        let end = out.len() - start;
        if end > RECORD_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let word = end as u16 | if large { LARGE_BIT } else { 0 };
        out[at..at + 2].copy_from_slice(&word.to_le_bytes());
        Ok(())
    }
}

/// Writes the low bytes of `value`, as many as `to` has: 1 to 8. In pieces of constant lengths that overlap, as each is a single store.
#[inline(always)]
fn put_int(to: &mut [u8], value: i64) {
    let bytes = value.to_le_bytes();
    match to.len() {
        8 => to.copy_from_slice(&bytes),
        width @ 4..8 => {
            to[..4].copy_from_slice(&bytes[..4]);
            to[width - 4..].copy_from_slice(&((value >> (8 * (width - 4))) as u32).to_le_bytes());
        }
        2 => to.copy_from_slice(&bytes[..2]),
        width => (0..width.min(8)).for_each(|at| to[at] = bytes[at]),
    }
}

/// Appends the bytes that a record has for string `index`. On an error `out` may have more bytes than before.
#[inline]
pub(super) fn append_value(strings: &Strings<'_>, class: Class, index: usize, large: bool, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    strings.heap.append(index, out)?;
    let len = out.len() - start;
    match class {
        Class::Fixed { width } if len != usize::from(width) => return Err(CodecError::Page("length of a value of fixed width")),
        Class::Variable { chars: Some(chars) } if !large => {
            let blanks = (chars as usize).saturating_sub(char_count(&out[start..]));
            out.resize(out.len() + blanks, b' ');
        }
        _ => {}
    }
    if out.len() - start > RECORD_BYTES_MAX { Err(TOO_LONG) } else { Ok(()) }
}

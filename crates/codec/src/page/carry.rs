//! Rows of one area carried over into another, as they are when a page is built anew.
//!
//! No record is made of them, and they are taken in column by column. A string of a dictionary is looked up once, whatever many rows have it; string codes stay as they are.
//!
//! Invariant: what is encoded is what [`PageEncoder::push`] makes of the records of the rows.

use super::area::{ColumnArea, append_value};
use super::bits::unpack_all;
use super::encoder::{PageEncoder, Rows};
use super::ints::Ints;
use super::layout::ROWS_MAX;
use super::schema::{Class, PageColumn, without_blanks};
use super::string_rows::{CodesOf, KnownValue, StringRows};
use super::strings::Strings;
use crate::CodecError;
use crate::row::Encoder;
use pagefold_types::{LARGE_VALUE_REF_BYTES, RECORD_BYTES_MAX};

/// Strings of a column are made together up to so many bytes.
const STRINGS_BYTES_MAX: usize = 1 << 20;

const NULL: CodecError = CodecError::Page("NULL in a column that has none");

/// What is known of a column of the area.
#[derive(Debug)]
enum Known<'a> {
    /// With the number of each row.
    Ints(Ints<'a>, Vec<i64>),
    Strings(Strings<'a>, KnownStrings),
}

/// What is known of the strings of a column.
#[derive(Debug)]
struct KnownStrings {
    /// By row: which string it has, where there is a dictionary.
    indexes: Vec<usize>,
    /// By string of a dictionary: what it has become.
    values: Vec<Option<KnownValue>>,
    /// The strings, where there is none.
    bytes: Joined<u8, i32>,
    /// Their codes, where they have those of the encoder.
    codes: Joined<u16, usize>,
}

/// Strings one behind the other, and where each of them ends.
#[derive(Debug)]
struct Joined<T, E>(Vec<T>, Vec<E>);

impl<T, E: Copy + TryInto<usize>> Joined<T, E> {
    const NONE: Self = Joined(Vec::new(), Vec::new());

    /// `None` where it is not known.
    fn get(&self, index: usize) -> Option<&[T]> {
        let end = |index: usize| self.1.get(index).and_then(|end| (*end).try_into().ok());
        let start = if index == 0 { 0 } else { end(index - 1)? };
        self.0.get(start..end(index)?)
    }
}

impl KnownStrings {
    /// What is damaged is not known: it is looked at string by string, and refused there.
    fn of(area: &ColumnArea<'_>, column: usize, strings: &Strings<'_>, same_codes: bool) -> KnownStrings {
        let rows = area.rows();
        let (mut indexes, mut values, mut bytes, mut codes) = (Vec::new(), Vec::new(), Joined::NONE, Joined::NONE);
        if strings.has_dictionary() {
            indexes = unpack_all(strings.area, strings.entry.at, strings.entry.width, rows, |index| index as usize);
            values = vec![None; strings.heap.count];
        } else {
            // Nothing is appended where that fails.
            let Joined(bytes, ends) = &mut bytes;
            _ = area.strings(column, 0..rows, ends, bytes, STRINGS_BYTES_MAX);
        }
        if let (true, Ok(Some((all, ends)))) = (same_codes, strings.heap.all_codes()) {
            codes = Joined(all, ends);
        }
        KnownStrings { indexes, values, bytes, codes }
    }
}

/// The rows of an area, for an encoder that is filled with some of them.
#[derive(Debug)]
pub struct CarriedRows<'a> {
    area: ColumnArea<'a>,
    columns: Vec<Known<'a>>,
    /// Room to work in: a value; bytes of the records of rows.
    value: Vec<u8>,
    lengths: Vec<usize>,
}

impl<'a> CarriedRows<'a> {
    /// `same_codes`: the encoder has the dictionary of the area's string codes. They are for one filling of one encoder.
    #[must_use]
    pub fn new(area: ColumnArea<'a>, same_codes: bool) -> Self {
        let column = |number: usize| {
            if !area.schema.is_int(number) {
                let strings = area.strings_of(number);
                return Known::Strings(strings, KnownStrings::of(&area, number, &strings, same_codes));
            }
            let mut values = Vec::new();
            area.ints(number, 0..area.rows(), &mut values);
            Known::Ints(area.ints_of(number), values)
        };
        let columns = (0..area.schema.columns.len()).map(column).collect();
        Self { area, columns, value: Vec::new(), lengths: Vec::new() }
    }
}

impl PageEncoder {
    /// Takes in rows of an area of its schema, in this order. Their [held records](Self::held_record) are empty, and they cannot be [drained](Self::drain).
    ///
    /// # Errors
    /// When the area is damaged; what is taken in is of no use any more then.
    ///
    /// # Panics
    /// When there are more than [`ROWS_MAX`] rows then, or the schema is another one.
    pub fn push_carried(&mut self, from: &mut CarriedRows<'_>, rows: &[u16]) -> Result<(), CodecError> {
        assert!(self.rows() + rows.len() <= ROWS_MAX && self.columns.len() == from.columns.len());
        if rows.iter().any(|row| usize::from(*row) >= from.area.rows()) {
            return Err(CodecError::Page("row behind the last one"));
        }
        let CarriedRows { columns, value, lengths, .. } = from;
        lengths.clear();
        lengths.resize(rows.len(), self.schema.fixed_len);
        for ((column, own), known) in self.schema.columns.iter().zip(&mut self.columns).zip(columns) {
            match (own, known) {
                (Rows::Ints(own), Known::Ints(ints, values)) => {
                    let Class::Int { width } = column.class else { unreachable!("an integer column") };
                    let shift = 64 - 8 * u32::from(width);
                    let value = |row: u16| values[usize::from(row)] << shift >> shift;
                    if !ints.has_nulls() {
                        own.extend(rows.iter().map(|row| value(*row)));
                        continue;
                    }
                    column.null_bit.ok_or(NULL)?;
                    for row in rows {
                        if ints.is_null(usize::from(*row)) { own.push_null() } else { own.push(value(*row)) }
                    }
                }
                (Rows::Strings(own), Known::Strings(strings, known)) => {
                    let mut source = StringSource { strings, column, encoder: self.codes.as_deref(), value };
                    own.reserve(rows.len());
                    for (row, length) in rows.iter().zip(&mut *lengths) {
                        *length += source.push_row(own, known, usize::from(*row))?;
                    }
                }
                _ => unreachable!("the same schema"),
            }
        }
        if lengths.iter().any(|length| *length > RECORD_BYTES_MAX) {
            return Err(CodecError::Page("value longer than a record can be"));
        }
        self.note_carried(rows.len());
        Ok(())
    }
}

/// A column of strings of the area, and room to work in.
struct StringSource<'s, 'a> {
    strings: &'s Strings<'a>,
    column: &'s PageColumn,
    /// What the encoder turns strings into codes with.
    encoder: Option<&'s Encoder>,
    value: &'s mut Vec<u8>,
}

impl StringSource<'_, '_> {
    /// A row of the area; gives the bytes that it has in the part of a record that grows.
    fn push_row(&mut self, own: &mut StringRows, known: &mut KnownStrings, row: usize) -> Result<usize, CodecError> {
        if self.strings.is_null(row) {
            self.column.null_bit.ok_or(NULL)?;
            own.push_null();
            return Ok(0);
        }
        let (index, large) = (known.indexes.get(row).copied().unwrap_or(row), self.strings.is_large(row));
        let value = match known.values.get(index).copied().flatten() {
            Some(value) if !large && own.knows_equal_values() => {
                own.push_known(value);
                value
            }
            _ => {
                let value = self.push(own, known, index, large)?;
                if let Some(known) = known.values.get_mut(index).filter(|_| !large) {
                    *known = Some(value);
                }
                value
            }
        };
        Ok(if let Class::Variable { .. } = self.column.class { value.bytes as usize } else { 0 })
    }

    /// A row with the string of this number.
    fn push(&mut self, own: &mut StringRows, known: &KnownStrings, index: usize, large: bool) -> Result<KnownValue, CodecError> {
        let class = self.column.class;
        let value = if let Some(bytes) = known.bytes.get(index) {
            bytes
        } else {
            self.value.clear();
            append_value(self.strings, class, index, large, self.value)?;
            &self.value[..]
        };
        let value = match class {
            Class::Variable { chars: Some(_) } if !large => without_blanks(value),
            _ => value,
        };
        if large && value.len() != LARGE_VALUE_REF_BYTES {
            return Err(CodecError::Page("not a large-value reference"));
        }
        let codes = match (self.encoder, known.codes.get(index)) {
            (None, _) => CodesOf::Unknown,
            (Some(_), Some(codes)) => CodesOf::Known(codes),
            (Some(encoder), None) => CodesOf::Encoder(encoder),
        };
        Ok(own.push(value, large, codes))
    }
}

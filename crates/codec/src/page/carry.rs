//! Rows of one area carried over into another, as they are when a page is built anew.
//!
//! No record is made of them. Numbers are unpacked column by column; a string of a dictionary is looked up once, whatever many rows have it; string codes stay as they are.
//!
//! Invariant: what is encoded is what [`PageEncoder::push`] makes of the record of the row.

use super::area::{ColumnArea, append_value};
use super::encoder::{PageEncoder, Rows};
use super::ints::Ints;
use super::layout::ROWS_MAX;
use super::schema::{Class, without_blanks};
use super::string_rows::CodesOf;
use super::strings::Strings;
use crate::CodecError;
use pagefold_types::{LARGE_VALUE_REF_BYTES, RECORD_BYTES_MAX};

const NULL: CodecError = CodecError::Page("NULL in a column that has none");

/// What is known of a column of the area.
#[derive(Debug)]
enum Known<'a> {
    /// With the number of each row.
    Ints(Ints<'a>, Vec<i64>),
    /// With, of each string of its dictionary, the number that the encoder has given it, and 1; 0: none yet.
    Strings(Strings<'a>, Vec<u32>),
}

/// The rows of an area, for an encoder that is filled with some of them.
#[derive(Debug)]
pub struct CarriedRows<'a> {
    area: ColumnArea<'a>,
    /// Do string codes mean the same to the encoder?
    same_codes: bool,
    columns: Vec<Known<'a>>,
    value: Vec<u8>,
    codes: Vec<u16>,
}

impl<'a> CarriedRows<'a> {
    /// `same_codes`: the encoder has the dictionary of the area's string codes. They are for one filling of one encoder.
    #[must_use]
    pub fn new(area: ColumnArea<'a>, same_codes: bool) -> Self {
        let column = |number: usize| {
            if !area.schema.is_int(number) {
                let strings = area.strings_of(number);
                return Known::Strings(strings, vec![0; if strings.has_dictionary() { strings.heap.count } else { 0 }]);
            }
            let mut values = Vec::new();
            area.ints(number, 0..area.rows(), &mut values);
            Known::Ints(area.ints_of(number), values)
        };
        let columns = (0..area.schema.columns.len()).map(column).collect();
        Self { area, same_codes, columns, value: Vec::new(), codes: Vec::new() }
    }
}

impl PageEncoder {
    /// Takes in a row of an area of its schema. [`held_record`](Self::held_record) of it is empty, and it cannot be [drained](Self::drain).
    ///
    /// # Errors
    /// When the area is damaged; what is taken in is of no use any more then.
    ///
    /// # Panics
    /// When it holds [`ROWS_MAX`] rows, or the schema is another one.
    pub fn push_carried(&mut self, from: &mut CarriedRows<'_>, row: usize) -> Result<(), CodecError> {
        assert!(self.rows() < ROWS_MAX && self.columns.len() == from.columns.len());
        if row >= from.area.rows() {
            return Err(CodecError::Page("row behind the last one"));
        }
        let CarriedRows { same_codes, columns, value, codes, .. } = from;
        let mut length = self.schema.fixed_len;
        for ((column, rows), known) in self.schema.columns.iter().zip(&mut self.columns).zip(columns) {
            match (rows, known) {
                (Rows::Ints(rows), Known::Ints(ints, values)) => {
                    let (Class::Int { width }, null) = (column.class, ints.is_null(row)) else { continue };
                    let shift = 64 - 8 * u32::from(width);
                    match (null, column.null_bit) {
                        (false, _) => rows.push(values[row] << shift >> shift),
                        (true, Some(_)) => rows.push_null(),
                        (true, None) => return Err(NULL),
                    }
                }
                (Rows::Strings(rows), Known::Strings(strings, ids)) => {
                    if strings.is_null(row) {
                        column.null_bit.ok_or(NULL)?;
                        rows.push_null();
                        continue;
                    }
                    let (index, large) = (strings.index(row), strings.is_large(row));
                    let known = ids.get(index).and_then(|id| id.checked_sub(1));
                    let bytes = match known.filter(|_| !large && rows.knows_equal_values()) {
                        Some(id) => rows.push_known(id as usize),
                        None => {
                            value.clear();
                            append_value(strings, column.class, index, large, value)?;
                            let value = match column.class {
                                Class::Variable { chars: Some(_) } if !large => without_blanks(value),
                                _ => &value[..],
                            };
                            if large && value.len() != LARGE_VALUE_REF_BYTES {
                                return Err(CodecError::Page("not a large-value reference"));
                            }
                            let codes = match &self.codes {
                                None => CodesOf::Unknown,
                                Some(_) if *same_codes && strings.heap.append_raw_codes(index, codes)? => CodesOf::Known(codes),
                                Some(encoder) => CodesOf::Encoder(encoder),
                            };
                            let id = rows.push(value, large, codes);
                            if let Some(known) = ids.get_mut(index).filter(|_| !large) {
                                *known = id as u32 + 1;
                            }
                            value.len()
                        }
                    };
                    if let Class::Variable { .. } = column.class {
                        length += bytes;
                    }
                }
                _ => unreachable!("the same schema"),
            }
        }
        if length > RECORD_BYTES_MAX {
            return Err(CodecError::Page("value longer than a record can be"));
        }
        self.note_carried();
        Ok(())
    }
}

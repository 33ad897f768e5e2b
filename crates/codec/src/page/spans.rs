//! Where the variable columns of a packed record lie; and is it one?

use super::encoder::{LARGE_BIT, char_count, is_null};
use super::schema::{Class, PageSchema, without_blanks};
use crate::CodecError;
use pagefold_types::LARGE_VALUE_REF_BYTES;

/// Start, end and large flag of the variable columns of a record, CHAR without trailing blanks.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<(usize, usize, bool)>);

impl Spans {
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        self.0.iter().copied()
    }

    /// Those of this record.
    ///
    /// # Errors
    /// When it is not a record of the schema.
    pub(super) fn find(&mut self, schema: &PageSchema, record: &[u8]) -> Result<(), CodecError> {
        self.0.clear();
        let damaged = Err(CodecError::Page("not a record of the schema"));
        let mut start = schema.fixed_len;
        if record.len() < start || schema.unused_bits.is_some_and(|(at, mask)| record[at] & mask != 0) {
            return damaged;
        }
        for column in &schema.columns {
            let null = is_null(column, record);
            let chars = match column.class {
                Class::Variable { chars } => chars,
                Class::Int { width } | Class::Fixed { width } => {
                    if null && record[column.at..column.at + usize::from(width)].iter().any(|byte| *byte != 0) {
                        return damaged;
                    }
                    continue;
                }
            };
            let word = u16::from_le_bytes([record[column.at], record[column.at + 1]]);
            let (end, large) = (usize::from(word & !LARGE_BIT), word & LARGE_BIT != 0);
            let Some(value) = record.get(start..end) else { return damaged };
            if null && (large || !value.is_empty()) || large && value.len() != LARGE_VALUE_REF_BYTES {
                return damaged;
            }
            let mut kept = value.len();
            if let (Some(chars), false, false) = (chars, large, null) {
                kept = without_blanks(value).len();
                if char_count(&value[..kept]) + (value.len() - kept) != chars as usize {
                    return damaged;
                }
            }
            self.0.push((start, start + kept, large));
            start = end;
        }
        if start == record.len() { Ok(()) } else { damaged }
    }
}

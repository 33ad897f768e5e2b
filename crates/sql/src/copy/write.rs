//! Rows to bytes, quoted as PostgreSQL does.
//!
//! Invariant: a line is never `\.` alone, which would end what is read back.

use super::options::TextFormat;
use super::{RECORD_BYTES_MAX, too_long};
use crate::SqlResult;
use crate::expression::written;
use pagefold_types::{DataType, Value};

/// What is written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Writes records into a buffer.
pub(crate) struct RecordWriter<'w> {
    format: &'w TextFormat,
    /// For each column: it is quoted whatever it has.
    quoted: &'w [bool],
    bytes: Vec<u8>,
}

impl<'w> RecordWriter<'w> {
    pub(crate) fn new(format: &'w TextFormat, quoted: &'w [bool]) -> RecordWriter<'w> {
        RecordWriter { format, quoted, bytes: Vec::new() }
    }

    /// What waits to be written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }

    /// It has been written. The memory of a long record goes.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * CHUNK_BYTES);
    }

    /// A row of these types.
    pub(crate) fn row(&mut self, row: &[Value], types: &[DataType]) -> SqlResult<()> {
        self.record(row.len(), |number| match (&row[number], types.get(number)) {
            (Value::Null, _) => None,
            (Value::Text(text), _) => Some(text.as_str().into()),
            (value, Some(data_type)) => Some(written(value.as_ref(), data_type).into()),
            (_, None) => None,
        })
    }

    /// Names of columns.
    pub(crate) fn names<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> SqlResult<()> {
        let names: Vec<&str> = names.collect();
        // They are no values of the columns, so nothing is forced.
        let quoted = std::mem::take(&mut self.quoted);
        let done = self.record(names.len(), |number| Some(names[number].into()));
        self.quoted = quoted;
        done
    }

    fn record<'v>(&mut self, columns: usize, text: impl Fn(usize) -> Option<std::borrow::Cow<'v, str>>) -> SqlResult<()> {
        let begin = self.bytes.len();
        self.fields(begin, columns, &text, false)?;
        if &self.bytes[begin..] == b"\\." {
            self.bytes.truncate(begin);
            self.fields(begin, columns, &text, true)?;
        }
        self.bytes.push(b'\n');
        Ok(())
    }

    fn fields<'v>(
        &mut self,
        begin: usize,
        columns: usize,
        text: &impl Fn(usize) -> Option<std::borrow::Cow<'v, str>>,
        all_quoted: bool,
    ) -> SqlResult<()> {
        for number in 0..columns {
            if number > 0 {
                self.bytes.push(self.format.delimiter);
            }
            match text(number) {
                None => self.bytes.extend_from_slice(self.format.null.as_bytes()),
                Some(text) if self.format.is_csv => {
                    let is_forced = all_quoted || self.quoted.get(number).copied().unwrap_or(false);
                    self.csv(&text, is_forced);
                }
                Some(text) => self.text(&text),
            }
            if self.bytes.len() - begin > RECORD_BYTES_MAX {
                return Err(too_long());
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            let letter = match byte {
                b'\\' => b'\\',
                0x08 => b'b',
                0x0c => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x0b => b'v',
                byte if byte == self.format.delimiter => byte,
                byte => {
                    self.bytes.push(byte);
                    continue;
                }
            };
            self.bytes.extend_from_slice(&[b'\\', letter]);
        }
    }

    fn csv(&mut self, text: &str, is_forced: bool) {
        let TextFormat { delimiter, quote, escape, .. } = *self.format;
        let needs_quotes = |byte: u8| byte == delimiter || byte == quote || matches!(byte, b'\n' | b'\r');
        if !is_forced && text != self.format.null && !text.bytes().any(needs_quotes) {
            self.bytes.extend_from_slice(text.as_bytes());
            return;
        }
        self.bytes.push(quote);
        for byte in text.bytes() {
            if byte == quote || byte == escape {
                self.bytes.push(escape);
            }
            self.bytes.push(byte);
        }
        self.bytes.push(quote);
    }
}

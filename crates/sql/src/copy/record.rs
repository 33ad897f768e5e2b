//! Bytes to records: the texts of one row after the other.
//!
//! A record is a line. In text format a backslash takes the byte behind it along, a line end, too; in CSV line ends within quotes are part of the record. `\.` alone on a line ends
//! the input: nothing behind that line is read, so whoever gave the input can go on there.
//!
//! Invariants:
//! - what a record is made of was asked for by `fill_buf`, and only its bytes are consumed;
//! - all lines end alike: what the first one ends with decides. Another end is an error, as it may be part of a value;
//! - a text is UTF-8 without NUL, also where it was written with escapes.

use super::options::TextFormat;
use super::{RECORD_BYTES_MAX, bad_format, too_long};
use crate::execute::Limits;
use crate::{SqlError, SqlResult};
use std::io::{BufRead, ErrorKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Newline,
    CarriageReturnNewline,
}

/// Reads records.
pub(crate) struct Records<'r> {
    input: &'r mut dyn BufRead,
    format: &'r TextFormat,
    /// The last line that was read, from 1.
    line: u64,
    /// The record, without its line end.
    record: Vec<u8>,
    line_end: Option<LineEnd>,
    is_over: bool,
}

/// Where the bytes of a record are.
#[derive(Default)]
struct Place {
    in_quotes: bool,
    /// The byte before takes the next one along.
    is_escaped: bool,
}

impl Place {
    /// Takes a byte: does the record end with it?
    fn is_end(&mut self, byte: u8, format: &TextFormat) -> bool {
        if !format.is_csv {
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            // What a backslash took along is no end.
            return byte == b'\n';
        }
        if self.in_quotes && byte == format.escape && format.escape != format.quote {
            self.is_escaped = !self.is_escaped;
            return false;
        }
        if byte == format.quote && !self.is_escaped {
            self.in_quotes = !self.in_quotes;
        }
        self.is_escaped = false;
        byte == b'\n' && !self.in_quotes
    }
}

impl<'r> Records<'r> {
    pub(crate) fn new(input: &'r mut dyn BufRead, format: &'r TextFormat) -> Records<'r> {
        Records { input, format, line: 0, record: Vec::new(), line_end: None, is_over: false }
    }

    /// The last line that was read: that with which the record ends.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The record, as far as it is a text.
    pub(crate) fn text(&self) -> &str {
        match std::str::from_utf8(&self.record) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&self.record[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// Reads the next record; false at the end of the input.
    pub(crate) fn next(&mut self, limits: &Limits) -> SqlResult<bool> {
        self.record.clear();
        if self.is_over {
            return Ok(false);
        }
        self.line += 1;
        let has_ended = self.read(limits)?;
        if !has_ended && self.record.is_empty() {
            self.is_over = true;
            return Ok(false);
        }
        let is_marker = |record: &[u8]| record == b"\\.";
        if is_marker(self.record.strip_suffix(b"\r").unwrap_or(&self.record)) {
            self.is_over = true;
            return Ok(false);
        }
        if has_ended {
            self.end_line()?;
        }
        check_text(&self.record)?;
        Ok(true)
    }

    /// Collects a record up to its line end; false where the input ended before that.
    fn read(&mut self, limits: &Limits) -> SqlResult<bool> {
        let mut place = Place::default();
        loop {
            limits.check()?;
            let bytes = match self.input.fill_buf() {
                Ok([]) => return Ok(false),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(SqlError::new("58030", format!("could not read what is to be copied: {error}"))),
            };
            let (mut used, mut has_ended) = (0, false);
            for byte in bytes {
                used += 1;
                let was_escaped = !self.format.is_csv && place.is_escaped;
                if place.is_end(*byte, self.format) && !was_escaped {
                    has_ended = true;
                    break;
                }
                self.line += u64::from(*byte == b'\n');
            }
            let taken = &bytes[..used - usize::from(has_ended)];
            if self.record.len() + taken.len() > RECORD_BYTES_MAX {
                return Err(too_long());
            }
            self.record.extend_from_slice(taken);
            self.input.consume(used);
            if has_ended {
                return Ok(true);
            }
        }
    }

    /// A line end has come: is it as those before?
    fn end_line(&mut self) -> SqlResult<()> {
        let found = match self.record.split_last() {
            Some((b'\r', before)) if self.format.is_csv || !ends_with_escape(before) => LineEnd::CarriageReturnNewline,
            _ => LineEnd::Newline,
        };
        match (*self.line_end.get_or_insert(found), found) {
            (LineEnd::CarriageReturnNewline, LineEnd::CarriageReturnNewline) => _ = self.record.pop(),
            (LineEnd::Newline, LineEnd::Newline) => {}
            // It is found where the record is taken apart.
            (LineEnd::Newline, LineEnd::CarriageReturnNewline) => {}
            (LineEnd::CarriageReturnNewline, LineEnd::Newline) => return Err(stray_end(self.format, "newline", "\\n")),
        }
        Ok(())
    }

    /// Takes the record apart into as many texts as there are columns: NULL is `None`.
    pub(crate) fn split(&self, fields: &mut Fields, columns: usize) -> SqlResult<()> {
        fields.clear();
        if self.format.is_csv {
            split_csv(&self.record, self.format, fields, columns)
        } else {
            split_text(&self.record, self.format, fields, columns)
        }
    }
}

/// Does what follows stand behind a backslash that is itself behind none?
fn ends_with_escape(bytes: &[u8]) -> bool {
    bytes.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// 22021 for what is no text.
fn check_text(bytes: &[u8]) -> SqlResult<()> {
    let wrong = |bytes: &[u8]| {
        let shown: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
        SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")))
    };
    if bytes.contains(&0) {
        return Err(wrong(&[0]));
    }
    std::str::from_utf8(bytes).map(drop).map_err(|error| {
        let from = error.valid_up_to();
        let until = error.error_len().map_or(bytes.len(), |len| from + len);
        wrong(&bytes[from..until])
    })
}

/// 22P04: a line end where there can be none.
fn stray_end(format: &TextFormat, name: &str, written: &str) -> SqlError {
    let (message, hint) = match format.is_csv {
        true => (format!("unquoted {name} found in data"), format!("Use quoted CSV field to represent {name}.")),
        false => (format!("literal {name} found in data"), format!("Use \"{written}\" to represent {name}.")),
    };
    bad_format(message).with_hint(hint)
}

/// The texts of a record; their memory is used again.
#[derive(Default)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    fields: Vec<Field>,
    /// How many there are, also where they are more than were wanted.
    count: usize,
}

struct Field {
    end: usize,
    is_null: bool,
}

impl Fields {
    fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.count = 0;
    }

    /// Ends a field. Of those that are too many only their number is kept.
    fn end(&mut self, is_null: bool, most: usize) {
        self.count += 1;
        if self.fields.len() < most {
            self.fields.push(Field { end: self.bytes.len(), is_null });
        } else {
            self.bytes.truncate(self.fields.last().map_or(0, |field| field.end));
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A text by its number: `None` is NULL, and one that there is not.
    pub(crate) fn get(&self, number: usize) -> Option<&str> {
        let field = self.fields.get(number).filter(|field| !field.is_null)?;
        let begin = number.checked_sub(1).map_or(0, |before| self.fields[before].end);
        // All of it was checked.
        std::str::from_utf8(&self.bytes[begin..field.end]).ok()
    }
}

/// The byte that a letter stands for behind a backslash.
fn letter(byte: u8) -> u8 {
    match byte {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => other,
    }
}

/// A byte written in digits of base 8, at most 3, or of base 16 behind `x`, at most 2; how many bytes that took. `None`: it is written otherwise.
fn written_byte(rest: &[u8]) -> Option<(u8, usize)> {
    let value = |byte: &u8, base: u32| char::from(*byte).to_digit(base);
    let (digits, base, most, skipped) = match rest {
        [b'x', digits @ ..] => (digits, 16, 2, 1),
        digits => (digits, 8, 3, 0),
    };
    let digits: Vec<u32> = digits.iter().take(most).map_while(|byte| value(byte, base)).collect();
    // Base 8 can say more than a byte has: PostgreSQL keeps the lower bits.
    let byte = digits.iter().fold(0, |byte, digit| byte * base + digit) & 0xff;
    (!digits.is_empty()).then(|| (byte as u8, skipped + digits.len()))
}

fn split_text(record: &[u8], format: &TextFormat, fields: &mut Fields, columns: usize) -> SqlResult<()> {
    let mut rest = record;
    let mut has_written_bytes = false;
    loop {
        let (begin, mut at) = (fields.bytes.len(), 0);
        while let Some(byte) = rest.get(at).filter(|byte| **byte != format.delimiter) {
            match (byte, rest.get(at + 1)) {
                (b'\\', Some(b'.')) => return Err(bad_format("end-of-copy marker is not alone on its line")),
                (b'\\', Some(next)) => {
                    if let Some((byte, len)) = written_byte(&rest[at + 1..]) {
                        has_written_bytes = true;
                        fields.bytes.push(byte);
                        at += 1 + len;
                    } else {
                        fields.bytes.push(letter(*next));
                        at += 2;
                    }
                }
                // As PostgreSQL has it: it would take along what is not there.
                (b'\\', None) => at += 1,
                (b'\r', _) => return Err(stray_end(format, "carriage return", "\\r")),
                (byte, _) => {
                    fields.bytes.push(*byte);
                    at += 1;
                }
            }
        }
        // What stands for NULL is compared as it is written.
        let is_null = &rest[..at] == format.null.as_bytes();
        if has_written_bytes {
            check_text(&fields.bytes[begin..])?;
        }
        fields.end(is_null, columns);
        match rest.get(at + 1..) {
            Some(behind) => rest = behind,
            None => return Ok(()),
        }
    }
}

fn split_csv(record: &[u8], format: &TextFormat, fields: &mut Fields, columns: usize) -> SqlResult<()> {
    let mut at = 0;
    loop {
        let (begin, from) = (fields.bytes.len(), at);
        let (mut in_quotes, mut had_quotes) = (false, false);
        loop {
            let Some(byte) = record.get(at).copied() else {
                if in_quotes {
                    return Err(bad_format("unterminated CSV quoted field"));
                }
                break;
            };
            if !in_quotes && byte == format.delimiter {
                break;
            }
            at += 1;
            if in_quotes {
                match record.get(at) {
                    Some(next) if byte == format.escape && (*next == format.escape || *next == format.quote) => {
                        fields.bytes.push(*next);
                        at += 1;
                    }
                    _ if byte == format.quote => in_quotes = false,
                    _ => fields.bytes.push(byte),
                }
            } else if byte == format.quote {
                (in_quotes, had_quotes) = (true, true);
            } else if byte == b'\r' {
                return Err(stray_end(format, "carriage return", "\\r"));
            } else {
                fields.bytes.push(byte);
            }
        }
        debug_assert!(fields.bytes.len() >= begin, "a field only grows");
        let is_null = !had_quotes && &record[from..at] == format.null.as_bytes();
        fields.end(is_null, columns);
        if at >= record.len() {
            return Ok(());
        }
        at += 1;
    }
}

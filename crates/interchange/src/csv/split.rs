//! A text file to records of fields.
//!
//! Invariant: a record that is handed out lies in the buffer as a whole; its fields are slices of it, or of `unescaped` where something had to be taken out.

use super::dialect::Dialect;
use crate::InterchangeError;
use pagefold_io::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes asked for at a time.
const READ_BYTES: usize = 256 * 1024;

/// The longest record: a value of the largest size and something around it.
const RECORD_BYTES_MAX: usize = pagefold_types::LARGE_VALUE_BYTES_MAX + (64 << 20);

/// One field of a record.
#[derive(Clone, Debug)]
struct Field {
    range: Range<usize>,
    quoted: bool,
    /// In `unescaped`, not in the buffer
    unescaped: bool,
}

/// Reads records of one file.
#[derive(Debug)]
pub(crate) struct Splitter {
    file: Arc<dyn File>,
    /// As the user named it
    path: PathBuf,
    dialect: Dialect,
    /// Bytes read, not yet split: `buffer[at..filled]`.
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset in the file of `buffer[filled]`.
    offset: u64,
    at_end: bool,
    /// The next record starts on this line, from 1.
    line: u64,
    fields: Vec<Field>,
    unescaped: Vec<u8>,
    record_line: u64,
    record_offset: u64,
    /// The record in the buffer
    record: Range<usize>,
    done: Arc<AtomicU64>,
}

enum Step {
    /// The record ends before this place in the buffer, so many line ends within and behind it.
    Record { next: usize, lines: u64 },
    /// The buffer ends within it.
    More,
}

impl Splitter {
    /// From `offset`, where a record starts, on line `line`.
    pub(crate) fn new(file: Arc<dyn File>, path: &Path, dialect: Dialect, offset: u64, line: u64, done: Arc<AtomicU64>) -> Splitter {
        Splitter {
            file,
            path: path.to_owned(),
            dialect,
            buffer: Vec::new(),
            at: 0,
            filled: 0,
            offset,
            at_end: false,
            line,
            fields: Vec::new(),
            unescaped: Vec::new(),
            record_line: line,
            record_offset: offset,
            record: 0..0,
            done,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The record as it is in the file, with its line end.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.buffer[self.record.clone()]
    }

    /// Is the field written between quotes?
    pub(super) fn is_quoted(&self, i: usize) -> bool {
        self.fields[i].quoted
    }

    /// The line, from 1, on which the record starts.
    pub(crate) fn record_line(&self) -> u64 {
        self.record_line
    }

    /// Where in the file the record starts.
    pub(crate) fn record_offset(&self) -> u64 {
        self.record_offset
    }

    /// How many fields the record has.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The bytes of a field; `None` for NULL.
    pub(super) fn field(&self, i: usize) -> Option<&[u8]> {
        let field = &self.fields[i];
        let bytes = if field.unescaped { &self.unescaped[field.range.clone()] } else { &self.buffer[field.range.clone()] };
        if !field.quoted && bytes == self.dialect.null { None } else { Some(bytes) }
    }

    /// A line without anything?
    pub(super) fn is_blank(&self) -> bool {
        self.is_empty_at(0) && self.fields.len() == 1
    }

    /// No bytes and no quotes?
    pub(super) fn is_empty_at(&self, i: usize) -> bool {
        !self.fields[i].quoted && self.fields[i].range.is_empty()
    }

    /// Goes to the next record; false behind the last one.
    pub(crate) fn next(&mut self) -> Result<bool, InterchangeError> {
        loop {
            if let Step::Record { next, lines } = self.split()? {
                self.record_line = self.line;
                self.record_offset = self.offset - (self.filled - self.at) as u64;
                self.line += lines;
                self.record = self.at..next;
                self.at = next;
                return Ok(true);
            }
            if self.at_end && self.at == self.filled {
                return Ok(false);
            }
            self.fill()?;
        }
    }

    fn error(&self, lines: u64, reason: impl Into<String>) -> InterchangeError {
        InterchangeError::line(self.path(), self.line + lines, reason)
    }

    /// Reads on; the record begun moves to the front.
    fn fill(&mut self) -> Result<(), InterchangeError> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled > RECORD_BYTES_MAX {
            return Err(self.error(0, format!("the row is longer than {RECORD_BYTES_MAX} bytes; is a quote not closed?")));
        }
        // A long record doubles the buffer, so that it is not looked at again and again in small steps.
        let wanted = (2 * self.filled).max(READ_BYTES);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let read = self.file.read_at(&mut self.buffer[self.filled..], self.offset)?;
        self.at_end = read == 0;
        self.filled += read;
        self.offset += read as u64;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Splits the record at `at`, if the buffer has all of it.
    fn split(&mut self) -> Result<Step, InterchangeError> {
        self.fields.clear();
        self.unescaped.clear();
        let Dialect { delimiter, quote, line_end, skip_blanks, .. } = self.dialect;
        let end = self.filled;
        let mut at = self.at;
        let mut lines = 0;
        if self.at_end && at == end {
            return Ok(Step::More);
        }
        loop {
            // One field.
            if skip_blanks {
                at += self.buffer[at..end].iter().take_while(|b| **b == b' ').count();
                if at == end && !self.at_end {
                    return Ok(Step::More);
                }
            }
            if at < end && quote == Some(self.buffer[at]) {
                let Some(after) = self.quoted(at, &mut lines)? else { return Ok(Step::More) };
                at = after;
            } else {
                let start = at;
                let plain = self.buffer[at..end].iter().position(|b| *b == delimiter || *b == line_end);
                at = plain.map_or(end, |n| at + n);
                if at == end && !self.at_end {
                    return Ok(Step::More);
                }
                // CR LF; at the end of the file a CR may stand alone.
                let ends_line = at == end || self.buffer[at] == line_end;
                let behind = if ends_line && at > start && self.buffer[at - 1] == b'\r' { at - 1 } else { at };
                self.fields.push(Field { range: start..behind, quoted: false, unescaped: false });
            }
            // What is behind it.
            match (at < end).then(|| self.buffer[at]) {
                Some(byte) if byte == delimiter => at += 1,
                Some(byte) if byte == line_end => return Ok(Step::Record { next: at + 1, lines: lines + 1 }),
                Some(b'\r') if at + 1 < end && self.buffer[at + 1] == b'\n' => return Ok(Step::Record { next: at + 2, lines: lines + 1 }),
                Some(b'\r') if at + 1 == end && self.at_end => return Ok(Step::Record { next: end, lines: lines + 1 }),
                None if self.at_end => return Ok(Step::Record { next: end, lines: lines + 1 }),
                None => return Ok(Step::More),
                Some(b'\r') if at + 1 == end => return Ok(Step::More),
                Some(_) => {
                    let reason = format!("column {}: text behind the closing quote", self.fields.len());
                    return Err(self.error(lines, reason));
                }
            }
        }
    }

    /// The field in quotes that starts at `open`; returns the place behind its closing quote. `None`: the buffer ends before.
    fn quoted(&mut self, open: usize, lines: &mut u64) -> Result<Option<usize>, InterchangeError> {
        let Dialect { quote, escape, line_end, .. } = self.dialect;
        let quote = quote.unwrap_or_default();
        let end = self.filled;
        let mut at = open + 1;
        let mut plain = true;
        let opened = *lines;
        loop {
            let special = self.buffer[at..end].iter().position(|b| *b == quote || Some(*b) == escape);
            let behind = special.map_or(end, |n| at + n);
            *lines += self.buffer[at..behind].iter().filter(|b| **b == line_end).count() as u64;
            at = behind;
            if at == end {
                if self.at_end {
                    return Err(self.error(opened, format!("column {}: the quote is not closed", self.fields.len() + 1)));
                }
                return Ok(None);
            }
            // Whether a quote closes shows the byte behind it.
            if at + 1 == end && !self.at_end {
                return Ok(None);
            }
            let doubled = self.buffer[at] == quote && at + 1 < end && self.buffer[at + 1] == quote;
            if doubled || (Some(self.buffer[at]) == escape && at + 1 < end) {
                plain = false;
                *lines += u64::from(self.buffer[at + 1] == line_end);
                at += 2;
            } else if self.buffer[at] == quote {
                break;
            } else {
                at += 1;
            }
        }
        if plain {
            self.fields.push(Field { range: open + 1..at, quoted: true, unescaped: false });
        } else {
            self.unescape(open + 1..at, quote);
        }
        Ok(Some(at + 1))
    }

    /// Appends a field in quotes without its escapes: `escape x` is x, and two quotes are one.
    fn unescape(&mut self, range: Range<usize>, quote: u8) {
        let start = self.unescaped.len();
        let mut at = range.start;
        while at < range.end {
            let byte = self.buffer[at];
            if at + 1 < range.end && (Some(byte) == self.dialect.escape || (byte == quote && quote == self.buffer[at + 1])) {
                at += 1;
            }
            self.unescaped.push(self.buffer[at]);
            at += 1;
        }
        self.fields.push(Field { range: start..self.unescaped.len(), quoted: true, unescaped: true });
    }
}

//! COPY with STDIN and STDOUT, and `\copy`.
//!
//! The rows of COPY FROM STDIN are the lines behind it, up to one that is `\.`, or the end; those of a statement that is an argument come from standard input.
//!
//! Invariants:
//! - rows are never run as statements: when COPY fails, what is left of them is skipped;
//! - lines of a script are counted, those of rows, too.

use super::input::Input;
use super::{Shell, Stop};
use crate::failure::Failure;
use pagefold::sql::{CopyStream, Statement};
use std::io::{BufRead, ErrorKind, Read, Write};

/// Where the rows of COPY FROM STDIN are.
pub(super) enum Rows<'l, 'r> {
    /// Behind the line that is read.
    NextLine(&'l mut Lines<'r>),
    /// They come next.
    Here(&'l mut Lines<'r>),
    StandardInput,
}

impl<'l, 'r> Rows<'l, 'r> {
    /// The line that they stand behind is read.
    pub(super) fn here(self) -> Rows<'l, 'r> {
        match self {
            Rows::NextLine(lines) => Rows::Here(lines),
            other => other,
        }
    }
}

/// Longer lines are no end of rows: `\.` and a carriage return.
const MARKER_BYTES_MAX: usize = 3;

/// Lines that are counted as they are read.
pub(super) struct Lines<'r> {
    inner: &'r mut dyn BufRead,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    /// Line ends.
    count: u64,
    /// The beginning of the line that is read.
    line: Vec<u8>,
    /// The last line that was read as a whole, and nothing behind it, is `\.`.
    has_ended: bool,
}

impl Seen {
    fn take(&mut self, byte: u8) {
        self.has_ended = false;
        if byte == b'\n' {
            self.count += 1;
            self.has_ended = self.line == b"\\." || self.line == b"\\.\r";
            self.line.clear();
        } else if self.line.len() <= MARKER_BYTES_MAX {
            self.line.push(byte);
        }
    }
}

impl<'r> Lines<'r> {
    pub(super) fn new(inner: &'r mut dyn BufRead) -> Lines<'r> {
        Lines { inner, seen: Seen::default() }
    }

    /// Line ends that were read.
    pub(super) fn count(&self) -> u64 {
        self.seen.count
    }

    /// The next byte; none at the end, and where nothing can be read.
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            match self.inner.fill_buf() {
                Ok(bytes) => {
                    let byte = bytes.first().copied()?;
                    self.consume(1);
                    return Some(byte);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Reads what is left of rows.
    fn skip_rows(&mut self) {
        while !self.seen.has_ended && self.next_byte().is_some() {}
    }

    /// Reads what is left of the line; was that blanks, or a comment?
    fn end_line(&mut self) -> bool {
        // So much says whether it is a comment.
        let mut begin = Vec::new();
        while let Some(byte) = self.next_byte().filter(|byte| *byte != b'\n') {
            if begin.len() < 2 && !byte.is_ascii_whitespace() {
                begin.push(byte);
            }
        }
        // It is no line of rows.
        self.seen.has_ended = false;
        self.seen.line.clear();
        begin.is_empty() || begin == b"--"
    }
}

impl Read for Lines<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(bytes)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Lines<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // They are there already: nothing is read for that.
        if let Ok(bytes) = self.inner.fill_buf() {
            bytes.iter().take(amount).for_each(|byte| self.seen.take(*byte));
        }
        self.inner.consume(amount);
    }
}

/// Notes whether nobody reads the output any more.
struct Noted<'w> {
    inner: &'w mut dyn Write,
    is_closed: &'w mut bool,
}

impl Noted<'_> {
    fn noted<R>(&mut self, done: std::io::Result<R>) -> std::io::Result<R> {
        done.inspect_err(|error| *self.is_closed |= error.kind() == ErrorKind::BrokenPipe)
    }
}

impl Write for Noted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.inner.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.inner.flush();
        self.noted(done)
    }
}

/// Does a text begin with the word COPY, behind blanks and comments?
fn begins_with_copy(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, behind)| behind).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let mut depth = 1;
            let mut at = 0;
            let bytes = comment.as_bytes();
            while depth > 0 && at < bytes.len() {
                match &bytes[at..] {
                    [b'*', b'/', ..] => (depth -= 1, at += 2).1,
                    [b'/', b'*', ..] => (depth += 1, at += 2).1,
                    _ => at += 1,
                }
            }
            rest = comment.get(at..).unwrap_or_default().trim_start();
        } else {
            let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            return word.eq_ignore_ascii_case("copy");
        }
    }
}

/// The statement that `\copy` stands for.
pub(super) fn of_command(text: &str) -> Option<String> {
    let rest = text.trim().strip_prefix("\\copy")?;
    rest.starts_with(char::is_whitespace).then(|| format!("COPY{}", rest.trim_end_matches(';')))
}

impl Shell<'_> {
    /// Runs a statement if it is COPY with STDIN or STDOUT; false: it is another one.
    pub(super) fn copy(&mut self, text: &str, rows: Rows<'_, '_>) -> Result<bool, Stop> {
        if !begins_with_copy(text) {
            return Ok(false);
        }
        // What is wrong with it is told when it is run as any other.
        let Ok(statement) = self.sql.prepare(text) else { return Ok(false) };
        match statement.copy_stream() {
            None => Ok(false),
            Some(CopyStream::In) => self.copy_in(&statement, rows).map(|()| true),
            Some(CopyStream::Out) => self.copy_out(&statement).map(|()| true),
        }
    }

    fn copy_in(&mut self, statement: &Statement, rows: Rows<'_, '_>) -> Result<(), Stop> {
        let lines = match rows {
            Rows::NextLine(lines) => {
                if !lines.end_line() {
                    lines.skip_rows();
                    let message = "the rows of COPY FROM STDIN begin on the next line: nothing else may stand behind it on its own";
                    return Err(Stop::Other(Failure::Failed(message.into())));
                }
                Some(lines)
            }
            Rows::Here(lines) => Some(lines),
            Rows::StandardInput => None,
        };
        let copied = match lines {
            Some(lines) => self.sql.copy_from(statement, lines).inspect_err(|_| lines.skip_rows()),
            None => {
                let input = match &mut self.input {
                    Some(input) => input,
                    none => none.insert(Input::begin().map_err(|error| Stop::Other(error.into()))?),
                };
                self.sql.copy_from(statement, input)
            }
        };
        let count = copied?;
        self.tell_tag(&format!("COPY {count}"), Some(count)).map_err(Stop::Other)
    }

    fn copy_out(&mut self, statement: &Statement) -> Result<(), Stop> {
        let (sql, mut is_closed) = (&mut self.sql, false);
        let written = self.output.raw(|out| sql.copy_to(statement, &mut Noted { inner: out, is_closed: &mut is_closed }));
        match written.map_err(Stop::Other)? {
            Err(_) if is_closed => Err(Stop::Other(Failure::OutputClosed)),
            done => Ok(done.map(drop)?),
        }
    }
}

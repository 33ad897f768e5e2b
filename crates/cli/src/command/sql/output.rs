//! Where results go: standard output, a file (`.output`, `.once`), or a pager.
//!
//! Invariants:
//! - a Parquet file has one result and appears when it is complete; other files are written as rows come;
//! - a pager is started only when there is more than fits the terminal: so much is kept, and no more.

use super::format::{OutputColumn, ParquetRows, RowWriter, Style, text_writer};
use crate::arguments::RowsFormat;
use crate::command::output_file::{check_outside, text_file};
use crate::failure::{Failure, Result};
use pagefold::Value;
use pagefold::interchange::{FileFormat, FileSink, ParquetOptions};
use pagefold::io::Storage;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

/// So much waits until it is clear whether it fits the terminal.
const PAGER_BYTES: usize = 1 << 20;

/// A file that results go to.
struct OutputFile {
    path: PathBuf,
    /// Opened with the first text.
    out: Option<BufWriter<Box<dyn Write>>>,
    /// A Parquet file is complete.
    is_complete: bool,
}

/// Where results go.
pub(super) struct Output {
    database: PathBuf,
    storage: Arc<dyn Storage>,
    file: Option<OutputFile>,
    once: Option<OutputFile>,
    /// The pager, and rows and columns of the terminal; only where there is one.
    pub(super) pager: Option<Pager>,
}

/// A pager that may be started.
#[derive(Clone)]
pub(super) struct Pager {
    pub(super) command: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Output {
    pub(super) fn new(database: &Path, storage: Arc<dyn Storage>) -> Output {
        Output { database: database.to_owned(), storage, file: None, once: None, pager: None }
    }

    fn open(&self, path: &str) -> OutputFile {
        OutputFile { path: path.into(), out: None, is_complete: false }
    }

    /// Results go to this file from now on; without one to standard output.
    pub(super) fn set_file(&mut self, path: Option<&str>) -> Result<()> {
        self.end()?;
        self.file = path.map(|path| self.open(path));
        Ok(())
    }

    /// The next result goes to this file.
    pub(super) fn once(&mut self, path: &str) {
        self.once = Some(self.open(path));
    }

    /// Do results go to a file?
    pub(super) fn is_file(&self) -> bool {
        self.file.is_some() || self.once.is_some()
    }

    /// Writes what is left.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.file.take() {
            Some(mut file) => file.flush(),
            None => Ok(()),
        }
    }

    /// Writes a result, whose rows come from `next`.
    pub(super) fn rows(&mut self, style: &Style, columns: &[OutputColumn], next: impl FnMut() -> Result<Option<Vec<Value>>>) -> Result<()> {
        let mut once = self.once.take();
        let Some(file) = once.as_mut().or(self.file.as_mut()) else {
            if style.format == RowsFormat::Parquet {
                return Err(Failure::Failed("a Parquet file needs a name: --output FILE, or .once FILE before the statement".into()));
            }
            return match self.pager.clone() {
                Some(pager) => {
                    let mut paged = Paged::new(pager);
                    let written = write_rows(text_writer(style, columns).as_mut(), &mut paged, next);
                    paged.end(written)
                }
                None => {
                    let mut out = crate::session::stdout();
                    let written = write_rows(text_writer(style, columns).as_mut(), &mut out, next);
                    out.flush()?;
                    written
                }
            };
        };
        if style.format == RowsFormat::Parquet {
            file.refuse_complete()?;
            check_outside(&self.database, &file.path)?;
            let format = FileFormat::Parquet(ParquetOptions::default());
            let open = |schema: &_| Ok(FileSink::create(Arc::clone(&self.storage), &file.path, &format, schema)?);
            let mut writer = ParquetRows::new(columns, open)?;
            write_rows(&mut writer, &mut std::io::sink(), next)?;
            file.is_complete = true;
            return Ok(());
        }
        let out = file.writer(&self.storage, &self.database)?;
        let written = write_rows(text_writer(style, columns).as_mut(), out, next);
        file.flush()?;
        written
    }

    /// Where a result goes that is written as it is.
    pub(super) fn raw<R>(&mut self, write: impl FnOnce(&mut dyn Write) -> R) -> Result<R> {
        let mut once = self.once.take();
        match once.as_mut().or(self.file.as_mut()) {
            Some(file) => {
                let done = write(file.writer(&self.storage, &self.database)?);
                file.flush().map(|()| done)
            }
            None => match self.pager.clone() {
                Some(pager) => {
                    let mut paged = Paged::new(pager);
                    let done = write(&mut paged);
                    paged.end(Ok(())).map(|()| done)
                }
                None => Ok(write(&mut crate::session::stdout())),
            },
        }
    }

    /// Writes a text with a line end behind it.
    pub(super) fn text(&mut self, text: &str) -> Result<()> {
        let mut once = self.once.take();
        match once.as_mut().or(self.file.as_mut()) {
            Some(file) => {
                writeln!(file.writer(&self.storage, &self.database)?, "{text}")?;
                file.flush()
            }
            None => match self.pager.clone() {
                Some(pager) => {
                    let mut paged = Paged::new(pager);
                    let written = writeln!(paged, "{text}").map_err(Failure::from);
                    paged.end(written)
                }
                None => {
                    let mut out = crate::session::stdout();
                    writeln!(out, "{text}")?;
                    Ok(out.flush()?)
                }
            },
        }
    }
}

impl OutputFile {
    fn refuse_complete(&self) -> Result<()> {
        if self.is_complete || self.out.is_some() {
            return Err(Failure::Failed(format!(
                "{}: a Parquet file has one result, and this one is written; name another with .output or .once",
                self.path.display()
            )));
        }
        Ok(())
    }

    fn writer(&mut self, storage: &Arc<dyn Storage>, database: &Path) -> Result<&mut BufWriter<Box<dyn Write>>> {
        if self.is_complete {
            self.refuse_complete()?;
        }
        if self.out.is_none() {
            self.out = Some(BufWriter::with_capacity(1 << 18, text_file(storage, database, &self.path)?));
        }
        self.out.as_mut().ok_or(Failure::OutputClosed)
    }

    fn flush(&mut self) -> Result<()> {
        match &mut self.out {
            Some(out) => out.flush().map_err(|error| Failure::Failed(format!("{}: {error}", self.path.display()))),
            None => Ok(()),
        }
    }
}

fn write_rows(writer: &mut dyn RowWriter, out: &mut dyn Write, mut next: impl FnMut() -> Result<Option<Vec<Value>>>) -> Result<()> {
    loop {
        match next() {
            Ok(Some(row)) => writer.row(&row, out)?,
            Ok(None) => return writer.end(true, out),
            Err(failure) => {
                writer.end(false, out)?;
                return Err(failure);
            }
        }
    }
}

/// Keeps what fits the terminal, and starts the pager with the first line that does not.
struct Paged {
    pager: Pager,
    waiting: Vec<u8>,
    lines: usize,
    /// The last line that is not complete yet begins here.
    line: usize,
    running: Option<(Child, ChildStdin)>,
    /// There is none: everything goes to the terminal.
    is_plain: bool,
}

impl Paged {
    fn new(pager: Pager) -> Paged {
        Paged { pager, waiting: Vec::new(), lines: 0, line: 0, running: None, is_plain: false }
    }

    fn is_too_long(&mut self) -> bool {
        while let Some(length) = self.waiting[self.line..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.waiting[self.line..self.line + length]);
            if line.width() > self.pager.columns {
                return true;
            }
            self.lines += 1;
            self.line += length + 1;
        }
        self.lines + 1 > self.pager.rows || self.waiting.len() > PAGER_BYTES
    }

    fn start(&mut self) -> std::io::Result<()> {
        let child = Command::new("sh").arg("-c").arg(&self.pager.command).stdin(Stdio::piped()).spawn();
        match child.map(|mut child| (child.stdin.take(), child)) {
            Ok((Some(stdin), child)) => self.running = Some((child, stdin)),
            _ => self.is_plain = true,
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.write_all(&waiting)
    }

    fn end(mut self, written: Result<()>) -> Result<()> {
        let shown = match self.running.take() {
            Some((mut child, stdin)) => {
                drop(stdin);
                child.wait().map(drop)
            }
            None => std::io::stdout().write_all(&self.waiting).and_then(|()| std::io::stdout().flush()),
        };
        match written {
            // Whoever has left the pager wants no more.
            Err(Failure::OutputClosed) => Ok(()),
            written => written.and(shown.map_err(Failure::from)),
        }
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some((_, stdin)) = &mut self.running {
            stdin.write_all(bytes)?;
        } else if self.is_plain {
            std::io::stdout().write_all(bytes)?;
        } else {
            self.waiting.extend_from_slice(bytes);
            if self.is_too_long() {
                self.start()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(command: &str) -> Pager {
        Pager { command: command.into(), rows: 5, columns: 20 }
    }

    #[test]
    fn a_pager_is_started_for_what_does_not_fit() {
        let mut fits = Paged::new(pager("cat > /dev/null"));
        fits.write_all("1\n2\n3\nschön und kurz genug\n".as_bytes()).unwrap();
        assert!(fits.running.is_none());
        fits.write_all(b"5\n").unwrap();
        assert!(fits.running.is_some(), "too many lines");
        fits.end(Ok(())).unwrap();
        let mut wide = Paged::new(pager("cat > /dev/null"));
        wide.write_all("schön und kurz genug.".as_bytes()).unwrap();
        assert!(wide.running.is_none(), "the line may go on");
        wide.write_all(b"\n").unwrap();
        assert!(wide.running.is_some(), "too wide");
        wide.end(Ok(())).unwrap();
    }

    #[test]
    fn who_leaves_the_pager_wants_no_more() {
        let mut paged = Paged::new(pager("head -c 1 > /dev/null"));
        let mut written = Ok(());
        for _ in 0..100_000 {
            written = paged.write_all(b"a line of text\n");
            if written.is_err() {
                break;
            }
        }
        assert!(written.is_err());
        paged.end(written.map_err(Failure::from)).unwrap();
    }
}

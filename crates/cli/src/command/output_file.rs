//! Files that rows are written to: what a name stands for decides how.
//!
//! Invariants:
//! - a file appears when it is complete; what is no file stays what it is;
//! - nothing is written into the directory of a database that is read: one of its files could be meant by mistake.

use crate::failure::{Failure, Result};
use crate::progress;
use pagefold::interchange::{FileFormat, FileSink, Sink, TableSchema};
use pagefold::io::{FileWriter, OpenOptions, Storage};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Refuses a target in the directory of the database that it comes from.
pub(super) fn check_outside(database: &Path, target: &Path) -> Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_within(database, folder) { Err(lies_within(target)) } else { Ok(()) }
}

/// The same of a directory, for files that come later.
pub(super) fn check_directory_outside(database: &Path, directory: &Path) -> Result<()> {
    if is_within(database, directory) { Err(lies_within(directory)) } else { Ok(()) }
}

fn is_within(database: &Path, directory: &Path) -> bool {
    matches!((database.canonicalize(), directory.canonicalize()), (Ok(database), Ok(directory)) if directory.starts_with(&database))
}

fn lies_within(target: &Path) -> Failure {
    Failure::Failed(format!("{}: it lies in the directory of the database; choose another place", target.display()))
}

/// Writes a file, link, pipe or device with rows of a database by `run`; what that gives, and how many bytes were written.
pub(super) fn write_file<T>(
    storage: &Arc<dyn Storage>,
    (database, path): (&Path, &Path),
    format: &FileFormat,
    schema: &TableSchema,
    run: impl FnOnce(&mut dyn Sink) -> Result<T>,
) -> Result<(T, u64)> {
    match target(path)? {
        Target::Device => {
            let mut written = Counted { out: BufWriter::with_capacity(1 << 20, device(path)?), bytes: 0 };
            let mut sink = format.sink(&mut written, schema, Some(path))?;
            let done = run(sink.as_mut())?;
            drop(sink);
            written.flush().map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
            Ok((done, written.bytes))
        }
        Target::File(path) => {
            check_outside(database, &path)?;
            progress::begin_changes();
            let mut sink = FileSink::create(Arc::clone(storage), &path, format, schema)?;
            let done = run(&mut sink)?;
            Ok((done, storage.open(&path, &OpenOptions::read_only())?.len()?))
        }
    }
}

/// A file for text, a link, pipe or device, which is written as text comes.
pub(super) fn text_file(storage: &Arc<dyn Storage>, database: &Path, path: &Path) -> Result<Box<dyn Write>> {
    match target(path)? {
        Target::Device => Ok(Box::new(device(path)?)),
        Target::File(path) => {
            check_outside(database, &path)?;
            let file = storage.open(&path, &OpenOptions::create())?;
            file.set_len(0)?;
            Ok(Box::new(FileWriter::at(file, 0)))
        }
    }
}

/// What a name stands for.
enum Target {
    /// A file, which appears when it is complete; where a link leads to.
    File(PathBuf),
    /// A pipe, a terminal, a device: it is written as rows come, and stays what it is.
    Device,
}

fn target(path: &Path) -> Result<Target> {
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Failure::Failed(format!("{}: it is a directory", path.display()))),
        Ok(found) if found.is_file() => Ok(Target::File(path.canonicalize().map_err(failed)?)),
        Ok(_) => Ok(Target::Device),
        Err(_) => Ok(Target::File(match path.read_link() {
            // A link that leads to nothing yet.
            Ok(to) => path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => path.to_owned(),
        })),
    }
}

fn device(path: &Path) -> Result<std::fs::File> {
    let opened = std::fs::OpenOptions::new().write(true).open(path);
    opened.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

/// Counts what goes through.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

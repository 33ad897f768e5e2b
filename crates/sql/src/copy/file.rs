//! Files of COPY, through the storage of the database.
//!
//! Invariants:
//! - a file that is written has its name when it is complete and durable; what failed leaves what was there before;
//! - nothing is written into the directory of the database, nor in the place of a device, by whatever links;
//! - no other file than the one that is named is written, or loses what it has.

use crate::{SqlError, SqlResult};
use pagefold_engine::database::Database;
use pagefold_io::{File, FileReader, FileWriter, OpenOptions, Storage, parent_directory};
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

const BUFFER_BYTES: usize = 64 << 10;
/// Names that are tried until one is free.
const PARTIAL_MAX: u32 = 1000;

/// An error of a file, with the SQLSTATE that PostgreSQL has for it.
fn failed(what: &str, path: &Path, error: &std::io::Error) -> SqlError {
    let sqlstate = match error.kind() {
        ErrorKind::NotFound => "58P01",
        ErrorKind::PermissionDenied => "42501",
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => "42809",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => "53100",
        _ => "58030",
    };
    SqlError::new(sqlstate, format!("could not {what} file \"{}\": {error}", path.display()))
}

/// Opens a file to be read.
pub(crate) fn open(database: &Database, name: &str) -> SqlResult<BufReader<FileReader>> {
    let path = Path::new(name);
    let file = database.outside().open(path, &OpenOptions::read_only()).map_err(|error| failed("open", path, &error))?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, FileReader::new(file)))
}

/// A path without `.` and `..`, by its letters alone.
fn plain(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    let directory = parent_directory(path);
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

/// Where a name leads to: a file that is there, by links to it; else a file of its name in the directory that it leads to.
fn target(storage: &dyn Storage, path: &Path) -> PathBuf {
    match (storage.real_path(path), storage.real_path(directory_of(path)), path.file_name()) {
        (Ok(real), ..) => real,
        (_, Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

/// A file that is written.
pub(crate) struct CopyFile {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Its name until it is complete.
    partial: PathBuf,
    out: FileWriter,
    is_complete: bool,
}

impl CopyFile {
    /// Begins a file.
    pub(crate) fn create(database: &Database, name: &str) -> SqlResult<CopyFile> {
        let storage = Arc::clone(database.outside());
        let path = target(storage.as_ref(), Path::new(name));
        let own = storage.real_path(database.directory()).unwrap_or_else(|_| database.directory().to_owned());
        let places = [plain(Path::new(name)), plain(&path)];
        if places.iter().any(|place| place.starts_with(plain(database.directory())) || place.starts_with(plain(&own))) {
            return Err(SqlError::new("42501", format!("\"{name}\" lies in the directory of the database")));
        }
        if ["/dev", "/proc", "/sys"].iter().any(|devices| places.iter().any(|place| place.starts_with(devices))) {
            return Err(SqlError::new("42809", format!("\"{name}\" is no file")).with_hint("COPY ... TO STDOUT writes wherever you like."));
        }
        let Some(last) = path.file_name() else { return Err(SqlError::new("42809", format!("\"{name}\" is no name of a file"))) };
        let last = last.to_owned();
        let open_failed = |error: std::io::Error| failed("open", &path, &error);
        if storage.exists(&path).map_err(open_failed)? {
            // A directory cannot be opened so, and a pipe or device has no length that could be set.
            let there = storage.open(&path, &OpenOptions::read_write()).map_err(open_failed)?;
            there.len().and_then(|len| there.set_len(len)).map_err(open_failed)?;
        }
        let mut number = 0;
        let (partial, file): (PathBuf, Arc<dyn File>) = loop {
            let mut partial = last.clone();
            partial.push(if number == 0 { ".partial".to_owned() } else { format!(".partial{number}") });
            let partial = path.with_file_name(partial);
            match storage.open(&partial, &OpenOptions::create_new()) {
                Ok(file) => break (partial, file),
                // Somebody's own, or what a process has left that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < PARTIAL_MAX => number += 1,
                Err(error) => return Err(open_failed(error)),
            }
        };
        Ok(CopyFile { storage, path, partial, out: FileWriter::at(file, 0), is_complete: false })
    }

    fn failed(&self, error: &std::io::Error) -> SqlError {
        failed("write", &self.path, error)
    }

    /// All is written: makes it durable, and gives it its name.
    pub(crate) fn finish(mut self) -> SqlResult<()> {
        let done = self.out.file().sync().and_then(|()| self.storage.rename(&self.partial, &self.path)).and_then(|()| {
            self.is_complete = true;
            self.storage.sync_directory(directory_of(&self.path))
        });
        done.map_err(|error| self.failed(&error))
    }
}

impl Write for CopyFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for CopyFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // What failed is told already.
            let _ = self.storage.remove(&self.partial);
        }
    }
}

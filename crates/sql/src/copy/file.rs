//! Files of COPY, through the storage of the database.
//!
//! Invariants:
//! - a file that is written has its name when it is complete and durable ([`NewFile`]);
//! - nothing is written into the directory of the database, nor in the place of a device, by whatever links.

use crate::{SqlError, SqlResult};
use pagefold_engine::database::Database;
use pagefold_io::{FileReader, FileWriter, NewFile, OpenOptions, Storage, directory_of};
use std::io::{BufReader, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

const BUFFER_BYTES: usize = 64 << 10;

/// An error of a file, with the SQLSTATE that PostgreSQL has for it.
fn failed(what: &str, path: &Path, error: &std::io::Error) -> SqlError {
    SqlError::new(SqlError::sqlstate_of_io(error), format!("could not {what} file \"{}\": {error}", path.display()))
}

/// The path of a file to be read, which is there and no directory.
pub(crate) fn path_to_read(database: &Database, name: &str) -> SqlResult<PathBuf> {
    open(database, name).map(|_| PathBuf::from(name))
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

/// Where a name leads to: a file that is there, by links to it; else a file of its name in the directory that it leads to.
fn target(storage: &dyn Storage, path: &Path) -> PathBuf {
    match (storage.real_path(path), storage.real_path(directory_of(path)), path.file_name()) {
        (Ok(real), ..) => real,
        (_, Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

/// Where a name leads to that is to be written: neither into the directory of the database nor to a device.
pub(crate) fn outside(database: &Database, name: &str) -> SqlResult<PathBuf> {
    let storage = database.outside();
    let path = target(storage.as_ref(), Path::new(name));
    let own = storage.real_path(database.directory()).unwrap_or_else(|_| database.directory().to_owned());
    let places = [plain(Path::new(name)), plain(&path)];
    if places.iter().any(|place| place.starts_with(plain(database.directory())) || place.starts_with(plain(&own))) {
        return Err(SqlError::new("42501", format!("\"{name}\" lies in the directory of the database")));
    }
    if ["/dev", "/proc", "/sys"].iter().any(|devices| places.iter().any(|place| place.starts_with(devices))) {
        return Err(SqlError::new("42809", format!("\"{name}\" is no file")));
    }
    if path.file_name().is_none() {
        return Err(SqlError::new("42809", format!("\"{name}\" is no name of a file")));
    }
    Ok(path)
}

/// A file that is written.
pub(crate) struct CopyFile {
    file: NewFile,
    out: FileWriter,
}

impl CopyFile {
    /// Begins a file.
    pub(crate) fn create(database: &Database, name: &str) -> SqlResult<CopyFile> {
        let storage = database.outside();
        let elsewhere = |error: SqlError| {
            if error.sqlstate() == "42809" { error.with_hint("COPY ... TO STDOUT writes wherever you like.") } else { error }
        };
        let path = outside(database, name).map_err(elsewhere)?;
        let open_failed = |error: std::io::Error| failed("open", &path, &error);
        if storage.exists(&path).map_err(open_failed)? {
            // A directory cannot be opened so, and a pipe or device has no length that could be set.
            let there = storage.open(&path, &OpenOptions::read_write()).map_err(open_failed)?;
            there.len().and_then(|len| there.set_len(len)).map_err(open_failed)?;
        }
        let file = NewFile::create(Arc::clone(storage), &path).map_err(open_failed)?;
        Ok(CopyFile { out: file.writer(), file })
    }

    /// All is written: makes it durable, and gives it its name.
    pub(crate) fn finish(mut self) -> SqlResult<()> {
        self.file.finish().map_err(|error| failed("write", self.file.path(), &error))
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

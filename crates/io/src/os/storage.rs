//! The operating system's file system.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::error::error_on;
use crate::os::direct;
use crate::os::file::OsFile;
use crate::os::lock;
use crate::storage::{File, Lock, LockKind, OpenOptions, Storage};

/// The operating system's file system. Paths mean what they mean to the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsStorage;

/// Opens a regular file. Without blocking: opening a pipe by mistake must not wait for its other end.
pub(super) fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<fs::File> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(options.write)
        .create(options.create)
        .create_new(options.create_new)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// The directory of a bare file name is the empty path, which the system does not know.
fn directory_name(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

impl Storage for OsStorage {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        options.check(path)?;
        let file = open_regular(path, options).map_err(|error| error_on("open", path, error))?;
        let alignment = if options.direct { direct::enable(&file) } else { direct::NONE };
        Ok(Arc::new(OsFile::new(file, path.to_owned(), options.write, alignment)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(|error| error_on("remove", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(|error| error_on("rename", from, error_on("to", to, error)))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match directory_name(path).try_exists() {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
            other => other.map_err(|error| error_on("inspect", path, error)),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let entries =
            || fs::read_dir(directory_name(directory))?.map(|entry| Ok(directory.join(entry?.file_name()))).collect::<io::Result<Vec<_>>>();
        let mut paths = entries().map_err(|error| error_on("list", directory, error))?;
        paths.sort_unstable();
        Ok(paths)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path).map_err(|error| error_on("create directory", path, error))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path).map_err(|error| error_on("remove directory", path, error))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::DIRECTORY.bits().cast_signed();
        let open = || fs::OpenOptions::new().read(true).custom_flags(flags).open(directory_name(path))?.sync_all();
        open().map_err(|error| error_on("sync directory", path, error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(lock::take(path, LockKind::Exclusive, Duration::ZERO, io::ErrorKind::WouldBlock)?))
    }

    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(lock::take(path, kind, limit, io::ErrorKind::TimedOut)?))
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path).map_err(|error| error_on("find", path, error))
    }

    fn lock_holder(&self, path: &Path) -> Option<String> {
        lock::holder(path)
    }
}

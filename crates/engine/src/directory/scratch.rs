//! The folder of what concerns readers, and files without a name in it.

use super::READERS_DIRECTORY;
use pagefold_io::{File, OpenOptions, Storage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files of readers lie, and those without a name.
pub(crate) fn readers_directory(directory: &Path) -> PathBuf {
    directory.join(READERS_DIRECTORY)
}

/// Makes the folder if it is not there. Nothing in it has to survive a crash, nor has its name.
pub(crate) fn make_directory(storage: &dyn Storage, readers: &Path) -> io::Result<()> {
    if storage.exists(readers)? {
        return Ok(());
    }
    match storage.create_directory(readers) {
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// A file of this process alone, for what it does not want to keep in memory. It has no name, and goes with its last handle.
///
/// # Errors
/// The storage's.
pub(crate) fn scratch_file(storage: &dyn Storage, directory: &Path, name: &str) -> io::Result<Arc<dyn File>> {
    let readers = readers_directory(directory);
    make_directory(storage, &readers)?;
    nameless(storage, &readers.join(name).with_extension("tmp"))
}

/// Makes a file and takes its name away. One that a process which died has left is used again.
pub(crate) fn nameless(storage: &dyn Storage, path: &Path) -> io::Result<Arc<dyn File>> {
    let file = storage.open(path, &OpenOptions::create())?;
    match storage.remove(path) {
        // A reader that registers removes names that were left.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(file),
    }
}

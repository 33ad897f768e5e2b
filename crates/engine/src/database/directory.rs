//! The directory in which a database is made: what may be there, and who may write in it.

use super::control_file::FRESH_CONTROL_NAME;
use crate::core::{DATA_DIRECTORY, file_id_of};
use crate::readers::READERS_DIRECTORY;
use crate::{Error, Result};
use pagefold_io::{Lock, OpenOptions, Storage, parent_directory};
use std::path::{Path, PathBuf};

const LOCK_NAME: &str = "lock";
/// The data set of the catalog that a database is made with.
pub(super) const FIRST_CATALOG: u32 = 1;

/// Makes the directories of a new database. One that is there may be what a killed process left: its name is synced, too, since the control file must not outlive it.
pub(super) fn prepare_directory(storage: &dyn Storage, directory: &Path) -> Result<()> {
    for path in [directory.to_path_buf(), directory.join(DATA_DIRECTORY)] {
        if !storage.exists(&path)? {
            storage.create_directory(&path)?;
        }
        storage.sync_directory(parent_directory(&path))?;
    }
    Ok(())
}

/// Refuses to make a database where there is something else than what the making of one leaves that was cut short: the files of a
/// database that has lost its control file, or anything of somebody else.
pub(super) fn check_nothing_is_lost(storage: &dyn Storage, directory: &Path) -> Result<()> {
    if !storage.exists(directory)? {
        return Ok(());
    }
    let listed = |path: &Path| match storage.list(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    };
    let mut lost = Vec::new();
    for path in listed(directory)? {
        match path.file_name().and_then(|name| name.to_str()) {
            Some(LOCK_NAME | FRESH_CONTROL_NAME | READERS_DIRECTORY) => {}
            Some(DATA_DIRECTORY) => {
                let is_left = |path: &PathBuf| file_id_of(path) == Some(FIRST_CATALOG) || path.extension().is_some_and(|end| end == "tmp");
                lost.extend(listed(&path)?.into_iter().filter(|path| !is_left(path)));
            }
            _ => lost.push(path),
        }
    }
    match lost.first() {
        None => Ok(()),
        Some(first) => Err(Error::NoControlFile {
            path: directory.display().to_string(),
            first: first.strip_prefix(directory).unwrap_or(first).display().to_string(),
            others: lost.len() - 1,
        }),
    }
}

/// Takes the lock of the writing process, and says in it who that is.
pub(super) fn take_lock(storage: &dyn Storage, directory: &Path) -> Result<Box<dyn Lock>> {
    let path = directory.join(LOCK_NAME);
    let lock = storage.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked(match writer_of(storage, &path) {
            Some(process) => format!("{} is being written by another process, {process}", directory.display()),
            None => format!("{} is being written by another process", directory.display()),
        }),
        _ => Error::from(error),
    })?;
    // For messages of others alone: who cannot write it writes the database all the same.
    let text = format!("{:<LOCK_TEXT_BYTES$}", std::process::id());
    let _ = storage.open(&path, &OpenOptions::read_write()).and_then(|file| file.write_at(text.as_bytes(), 0));
    Ok(lock)
}

/// Bytes of the number of a process in the lock file, blanks behind it.
const LOCK_TEXT_BYTES: usize = 16;

/// The process that a lock file names.
fn writer_of(storage: &dyn Storage, path: &Path) -> Option<u32> {
    let mut text = [0; LOCK_TEXT_BYTES];
    let file = storage.open(path, &OpenOptions::read_only()).ok()?;
    pagefold_io::read_exact_at(&*file, &mut text, 0).ok()?;
    std::str::from_utf8(&text).ok()?.trim_end().parse().ok()
}

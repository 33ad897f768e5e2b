//! The directory in which a database is made: what may be there, and who may write in it.

use super::control_file::FRESH_CONTROL_NAME;
use super::{DATA_DIRECTORY, READERS_DIRECTORY, file_id_of};
use crate::{Error, Result};
use pagefold_io::{Lock, Storage, parent_directory};
use std::path::{Path, PathBuf};

const LOCK_NAME: &str = "lock";
/// The data set of the catalog that a database is made with.
pub(crate) const FIRST_CATALOG: u32 = 1;

/// Makes the directories of a new database. One that is there may be what a killed process left: its name is synced, too, since the control file must not outlive it.
pub(crate) fn prepare_directory(storage: &dyn Storage, directory: &Path) -> Result<()> {
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
pub(crate) fn check_nothing_is_lost(storage: &dyn Storage, directory: &Path) -> Result<()> {
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

/// The file that the writing process has locked.
#[must_use]
pub fn lock_path(directory: &Path) -> PathBuf {
    directory.join(LOCK_NAME)
}

pub(crate) fn take_lock(storage: &dyn Storage, directory: &Path) -> Result<Box<dyn Lock>> {
    let path = lock_path(directory);
    storage.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let who = storage.lock_holder(&path).map_or(String::new(), |who| format!(": {who}"));
            Error::Locked(directory.display().to_string(), who)
        }
        _ => Error::from(error),
    })
}

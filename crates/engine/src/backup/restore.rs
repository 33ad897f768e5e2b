//! A database directory that is being made from parts of another database.
//!
//! Invariants:
//! - it has its name when it is complete, recovered and durable; until then it is `<name>.partial`, and removed when it does not come to that;
//! - it gets a log of its own: what the database that it was copied from goes on to log is never taken for its log, nor the other way round.

use super::stream::{check_absent, partial_path};
use super::take::{LogName, Sink};
use crate::database::{Database, OpenMode, Settings, new_id, read_checkpoint};
use crate::directory::{DATA_DIRECTORY, LOG_DIRECTORY, create_control, data_set_path, read_control, write_control};
use crate::log::{Log, LogParts, LogSettings};
use crate::{Error, Result};
use pagefold_format::control::ControlSlot;
use pagefold_format::copy::Manifest;
use pagefold_format::log::{Checkpoint, Lsn, RecordKind};
use pagefold_io::{Clock, File, OpenOptions, Storage, parent_directory};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory is longer than its files' pages in use by less than this.
const FILE_STEP: u64 = 4096;

/// A database that is being made.
#[derive(Debug)]
pub(super) struct NewDatabase {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    directory: PathBuf,
    files: BTreeMap<u32, Arc<dyn File>>,
    log: Option<LogParts>,
    finished: bool,
}

impl NewDatabase {
    pub(super) fn create(storage: Arc<dyn Storage>, clock: Arc<dyn Clock>, path: &Path) -> Result<NewDatabase> {
        check_absent(storage.as_ref(), "directory", path)?;
        let directory = partial_path(path);
        remove_all(storage.as_ref(), &directory)?;
        storage.create_directory(&directory)?;
        storage.create_directory(&directory.join(DATA_DIRECTORY))?;
        Ok(NewDatabase { storage, clock, path: path.to_path_buf(), directory, files: BTreeMap::new(), log: None, finished: false })
    }

    /// Where it is as yet.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where its log is as yet.
    pub(super) fn log_directory(&self) -> PathBuf {
        self.directory.join(LOG_DIRECTORY)
    }

    /// Its log.
    pub(super) fn log_parts(&mut self, log: LogName) -> Result<&LogParts> {
        let parts = match self.log.take() {
            Some(parts) => parts,
            None => LogParts::create(Arc::clone(&self.storage), &self.log_directory(), log.log_id, log.segment_bytes)?,
        };
        Ok(self.log.insert(parts))
    }

    /// All parts of the copies are there: makes the files a state of a database, whose log may go on.
    pub(super) fn complete(&self, manifest: &Manifest) -> Result<()> {
        let storage = self.storage.as_ref();
        for data_set in &manifest.data_sets {
            let Some(file) = self.files.get(&data_set.file_id) else {
                let path = data_set_path(&self.path, data_set.file_id).display().to_string();
                return Err(Error::Damaged { path, reason: "the copies have no page of it".into() });
            };
            let bytes = (u64::from(data_set.page_count) * u64::from(data_set.page_bytes)).next_multiple_of(FILE_STEP);
            if file.len()? < bytes {
                file.set_len(bytes)?;
            }
            file.sync()?;
        }
        storage.sync_directory(&self.directory.join(DATA_DIRECTORY))?;
        let mut control = manifest.control;
        if self.log.is_none() {
            control.log_id = new_id(self.clock.as_ref(), &self.path);
        }
        create_control(storage, &self.directory, &control)
    }

    /// Recovers it, with its log up to `log_end`, and gives it its name.
    pub(super) fn finish(mut self, manifest: &Manifest, log_end: Lsn, settings: Settings) -> Result<()> {
        if !self.storage.exists(&self.directory.join("control"))? {
            self.complete(manifest)?;
        }
        if self.log.is_some() {
            // Syncs it, and zeroes what lies behind the end.
            let log_id = manifest.control.log_id;
            drop(Log::open(Arc::clone(&self.storage), &self.log_directory(), log_id, LogSettings::default(), log_end)?);
        }
        let (storage, clock) = (Arc::clone(&self.storage), Arc::clone(&self.clock));
        let database = Database::open(storage, clock, &self.directory, OpenMode::Write, settings)?;
        database.close()?;
        if self.log.is_some() {
            let log = LogSettings { segment_bytes: manifest.segment_bytes, ..settings.log };
            start_new_log(&self.storage, &self.directory, new_id(self.clock.as_ref(), &self.path), log)?;
        }
        self.storage.sync_directory(&self.directory)?;
        check_absent(self.storage.as_ref(), "directory", &self.path)?;
        self.storage.rename(&self.directory, &self.path)?;
        self.finished = true;
        Ok(self.storage.sync_directory(parent_directory(&self.path))?)
    }
}

impl Sink for NewDatabase {
    fn pages(&mut self, file_id: u32, page_bytes: u32, first: u32, pages: &[u8]) -> Result<()> {
        let file = match self.files.get(&file_id) {
            Some(file) => file,
            None => {
                let file = self.storage.open(&data_set_path(&self.directory, file_id), &OpenOptions::create_new())?;
                self.files.entry(file_id).or_insert(file)
            }
        };
        Ok(file.write_at(pages, u64::from(first) * u64::from(page_bytes))?)
    }

    fn log(&mut self, log: LogName, start: Lsn, bytes: &[u8]) -> Result<()> {
        self.log_parts(log)?.put(start, bytes)
    }
}

impl Drop for NewDatabase {
    fn drop(&mut self) {
        if !self.finished {
            // What stays is known by its name for what it is.
            let _ = remove_all(self.storage.as_ref(), &self.directory);
        }
    }
}

/// Puts a log of its own in the place of the log of a database that was closed in order. Positions go on, so no page is ahead of it.
fn start_new_log(storage: &Arc<dyn Storage>, directory: &Path, log_id: u128, settings: LogSettings) -> Result<()> {
    let control = read_control(storage.as_ref(), directory)?.current;
    let (last, end) = read_checkpoint(storage.as_ref(), directory, control.log_id, control.checkpoint)?;
    if !(last.transactions.is_empty() && last.leftovers.is_empty() && last.definitions.is_empty()) {
        let reason = "its last checkpoint has transactions that run: it was not closed in order".into();
        return Err(Error::Damaged { path: directory.display().to_string(), reason });
    }
    let log = Log::create(Arc::clone(storage), &directory.join(LOG_DIRECTORY), log_id, settings, end)?;
    let mut body = Vec::new();
    Checkpoint { redo: log.end(), ..last }.encode(&mut body);
    let place = log.append(RecordKind::Checkpoint as u8, &[&body], &mut |_| {})?;
    log.make_durable(place.end)?;
    write_control(storage.as_ref(), directory, &ControlSlot { sequence: control.sequence + 1, checkpoint: place.start, log_id, ..control })
}

/// Removes a directory with all that is in it, if it is there.
fn remove_all(storage: &dyn Storage, directory: &Path) -> Result<()> {
    if !storage.exists(directory)? {
        return Ok(());
    }
    for path in storage.list(directory)? {
        match storage.remove(&path) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => remove_all(storage, &path)?,
            removed => removed?,
        }
    }
    Ok(storage.remove_directory(directory)?)
}

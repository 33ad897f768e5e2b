//! The archive of the log: segments are copied there before they are given back, so that copies can be taken to any later moment.
//!
//! Which directory that is stands in the file `archive` of the database directory, so every process that writes keeps to it.
//!
//! Invariants:
//! - a segment is given back only when its copy is complete, durable and has its name; when that fails, it stays, and the log grows;
//! - a file in an archive is never overwritten: segments lie under the id of their log.

use super::checkpoint::read_checkpoint;
use super::log_hold::LogHold;
use super::open::{Database, DatabaseState};
use crate::directory::{LOG_DIRECTORY, read_control};
use crate::gate::Passage;
use crate::log::{Log, LogReader, Lsn, archive_name, segment_number, segment_path};
use crate::{Error, Result};
use pagefold_format::page::{get_u64, put_u64};
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const ARCHIVE_NAME: &str = "archive";
const MAGIC: &[u8; 8] = b"pgfoldar";
const HEADER_BYTES: usize = 16;
const PATH_BYTES_MAX: usize = 4096;
const PIECE_BYTES: usize = 1 << 20;

impl Database {
    /// From now on the log is kept in this directory, which must be there; `None`: it is given back when recovery does not need it any more. Stays so until it is set again.
    ///
    /// # Errors
    /// When the directory is missing, its name is not UTF-8 or too long, or the setting cannot be written.
    pub fn set_log_archive(&self, archive: Option<&Path>) -> Result<()> {
        let core = &self.core;
        core.check_writable()?;
        let path = core.directory.join(ARCHIVE_NAME);
        let storage = core.storage.as_ref();
        match archive {
            Some(archive) => {
                let name = archive.to_str().filter(|name| name.len() <= PATH_BYTES_MAX);
                let Some(name) = name else { return Err(Error::Parameter("the name of the archive is not UTF-8, or too long".into())) };
                check_is_there(storage, archive)?;
                write_archive(storage, &path, name)?;
            }
            None if storage.exists(&path)? => storage.remove(&path)?,
            None => {}
        }
        storage.sync_directory(&core.directory)?;
        *core.archive.lock() = archive.map(Path::to_path_buf);
        Ok(())
    }
}

impl DatabaseState {
    /// Gives back the log below a position, unless a copy is being taken. With an archive, only what is there by then.
    pub(crate) fn give_back_log(&self, log: &Log, below: Lsn) -> Result<()> {
        let core = &self.core;
        let numbers = log.segments_below(below);
        if numbers.is_empty() {
            return Ok(());
        }
        let Some(_hold) = LogHold::try_take(core.storage.as_ref(), &core.directory)? else { return Ok(()) };
        let archive = core.archive.lock().clone();
        if let Some(archive) = archive {
            check_is_there(core.storage.as_ref(), &archive)?;
            let to = archive.join(archive_name(core.log_id));
            archive_segments(core.storage.as_ref(), &core.log_directory(), &to, &archive, &numbers)?;
        }
        // A reader that is there may need what they hold.
        let passage = core.pass()?;
        let is_read = passage.as_ref().map_or(Ok(false), Passage::meets_reader)?;
        log.recycle(below, !is_read)
    }
}

/// An archive that is not there may be a disk that is not mounted: nothing is made in its place.
fn check_is_there(storage: &dyn Storage, archive: &Path) -> Result<()> {
    match storage.exists(archive)? {
        true => Ok(()),
        false => Err(Error::Damaged { path: archive.display().to_string(), reason: "the archive of the log is missing".into() }),
    }
}

fn write_archive(storage: &dyn Storage, path: &Path, name: &str) -> Result<()> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[8..].copy_from_slice(MAGIC);
    bytes.extend_from_slice(name.as_bytes());
    let sum = xxh3_64_with_seed(&bytes[8..], 0);
    put_u64(&mut bytes, 0, sum);
    let fresh = path.with_extension("new");
    if storage.exists(&fresh)? {
        storage.remove(&fresh)?;
    }
    let file = storage.open(&fresh, &OpenOptions::create_new())?;
    file.write_at(&bytes, 0)?;
    file.sync()?;
    Ok(storage.rename(&fresh, path)?)
}

/// The archive that a database directory names, if it does.
pub(crate) fn read_archive(storage: &dyn Storage, directory: &Path) -> Result<Option<PathBuf>> {
    let path = directory.join(ARCHIVE_NAME);
    if !storage.exists(&path)? {
        return Ok(None);
    }
    let damaged = |reason: &str| Error::Damaged { path: path.display().to_string(), reason: reason.into() };
    let file = storage.open(&path, &OpenOptions::read_only())?;
    let length = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    if !(HEADER_BYTES + 1..=HEADER_BYTES + PATH_BYTES_MAX).contains(&length) {
        return Err(damaged("no name of an archive has this length"));
    }
    let mut bytes = vec![0; length];
    read_exact_at(file.as_ref(), &mut bytes, 0)?;
    if get_u64(&bytes, 0) != xxh3_64_with_seed(&bytes[8..], 0) || bytes[8..HEADER_BYTES] != *MAGIC {
        return Err(damaged("the checksum does not match"));
    }
    let name = str::from_utf8(&bytes[HEADER_BYTES..]).map_err(|_| damaged("the name of the archive is not UTF-8"))?;
    Ok(Some(PathBuf::from(name)))
}

/// Copies segments from a log to where they lie in an archive; durable, names too, when this returns.
fn archive_segments(storage: &dyn Storage, from: &Path, to: &Path, archive: &Path, numbers: &[u64]) -> Result<()> {
    if !storage.exists(to)? {
        storage.create_directory(to)?;
        storage.sync_directory(archive)?;
    }
    for &number in numbers {
        let (source, place) = (storage.open(&segment_path(from, number), &OpenOptions::read_only())?, segment_path(to, number));
        if storage.exists(&place)? {
            // Copied before a crash, and not given back then.
            let there = storage.open(&place, &OpenOptions::read_only())?;
            if there.len()? != source.len()? || !pieces(source.as_ref(), |bytes, at| same(there.as_ref(), bytes, at))? {
                return Err(Error::Damaged {
                    path: place.display().to_string(),
                    reason: "another segment of the log has this name".into(),
                });
            }
            there.sync()?;
            continue;
        }
        let fresh = place.with_extension("new");
        if storage.exists(&fresh)? {
            storage.remove(&fresh)?;
        }
        let file = storage.open(&fresh, &OpenOptions::create_new())?;
        pieces(source.as_ref(), |bytes, at| Ok(file.write_at(bytes, at).map(|()| true)?))?;
        file.sync()?;
        storage.rename(&fresh, &place)?;
    }
    Ok(storage.sync_directory(to)?)
}

/// Hands out the bytes of a file piece by piece, while the answer is true; was it for all?
fn pieces(file: &dyn File, mut each: impl FnMut(&[u8], u64) -> Result<bool>) -> Result<bool> {
    let length = file.len()?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < length {
        let bytes = usize::try_from(length - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        read_exact_at(file, &mut piece[..bytes], at)?;
        if !each(&piece[..bytes], at)? {
            return Ok(false);
        }
        at += bytes as u64;
    }
    Ok(true)
}

fn same(file: &dyn File, bytes: &[u8], at: u64) -> Result<bool> {
    let mut found = vec![0; bytes.len()];
    read_exact_at(file, &mut found, at)?;
    Ok(found == bytes)
}

/// How it stands with the archive of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveState {
    /// Where it is.
    pub path: PathBuf,
    /// Segments that recovery does not need any more, and that are not in the archive.
    pub waiting_segments: u64,
    /// What keeps them from it, as far as that can be seen from here.
    pub problem: Option<String>,
}

/// How it stands with the archive of the database in a directory, by its files; `None` when it has none.
///
/// # Errors
/// When a file cannot be read.
pub fn archive_state(storage: &dyn Storage, directory: &Path) -> Result<Option<ArchiveState>> {
    let Some(path) = read_archive(storage, directory)? else { return Ok(None) };
    let problem = check_is_there(storage, &path).err().map(|error| error.to_string());
    let control = read_control(storage, directory)?.current;
    let mut waiting_segments = 0;
    if control.checkpoint != 0 {
        let log = directory.join(LOG_DIRECTORY);
        let (checkpoint, _) = read_checkpoint(storage, directory, control.log_id, control.checkpoint)?;
        let reader = LogReader::open(storage, &log, control.log_id, control.checkpoint, 0)?;
        let needed = reader.segment_of(checkpoint.oldest());
        let archived = path.join(archive_name(control.log_id));
        for number in storage.list(&log)?.iter().filter_map(|path| segment_number(path)).filter(|number| *number < needed) {
            waiting_segments += u64::from(!storage.exists(&segment_path(&archived, number))?);
        }
    }
    Ok(Some(ArchiveState { path, waiting_segments, problem }))
}

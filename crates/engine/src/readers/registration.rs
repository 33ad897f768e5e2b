//! The reader's side: taking a snapshot of a database's files.
//!
//! While `gate` is held alone, the files are what a crash would leave: whole pages, one state of the control file, a log that covers what the pages have. What is not preserved by the writer is
//! copied meanwhile (the control file, and the images of double writes), or bounded: of the log only what was there counts.

use super::refused::Refused;
use super::view::{Kept, Kind, Preserved, ViewFile};
use crate::directory::{
    DATA_DIRECTORY, DOUBLE_WRITE_NAME, LOG_DIRECTORY, control_path, file_id_of, lock_path, make_directory, nameless, read_control,
    readers_directory,
};
use crate::gate::{Listed, Registered, is_newest, is_preserved_pages, remove_if_there, take_alone};
use crate::log::{LogEnd, SEGMENT_HEADER_BYTES, segment_number};
use crate::pool::double_write::{self, Image};
use crate::recovery::put_back;
use crate::{Error, Result};
use pagefold_format::control::{CONTROL_SLOT_BYTES, CONTROL_SLOTS, ControlSlot};
use pagefold_io::{File, Lock, LockKind, MemoryStorage, OpenOptions, Overlay, Storage, error_on, read_file};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a reader that cannot write to the directory may keep in memory of its own changes.
const UNREGISTERED_BYTES_MAX: u64 = 256 << 20;

/// A reader that was overtaken so often gives up.
const OVERTAKEN_MAX: u32 = 2;

/// The files of a database as they are at one moment, for as long as it or a handle of it is open. Changes stay private.
#[derive(Clone, Debug)]
pub struct Snapshot {
    files: Overlay,
    registered: bool,
}

/// A reader's preserved-pages file. Dropping it ends the registration.
#[derive(Debug)]
pub(super) struct Registration {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    _lock: Box<dyn Lock>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // What cannot be removed is removed by who finds that its lock is free.
        let _ = self.storage.remove(&self.path);
    }
}

/// A reader's files.
struct Place {
    registration: Registration,
    file: Arc<dyn File>,
    scratch: Arc<dyn File>,
}

/// A database's files, open.
struct Found {
    slot: ControlSlot,
    control: (Arc<dyn File>, Vec<u8>),
    data_sets: Vec<(PathBuf, u32, Arc<dyn File>, u64)>,
    log: Vec<(PathBuf, Arc<dyn File>, u64)>,
    end: Option<LogEnd>,
    /// Images of double writes: pages that were torn, or have been damaged since, are made good from them.
    images: Vec<Image>,
}

impl Snapshot {
    /// Takes a snapshot of the database in a directory: waits while a batch of pages is being written. Where the directory cannot be written, the reader cannot be registered: its files are
    /// what they are, also when somebody writes to them.
    ///
    /// # Errors
    /// When there is no database, its control file or its log is damaged, or a file cannot be read.
    pub fn take(storage: &Arc<dyn Storage>, directory: &Path, direct: bool) -> Result<Snapshot> {
        // Most of the log is looked through before others have to wait.
        let control = match read_control(storage.as_ref(), directory) {
            // Nothing is made in a directory that is none of ours.
            Err(error @ Error::NotADatabase(_)) => return Err(error),
            read => read,
        };
        let seen = control.and_then(|control| log_end(storage.as_ref(), directory, &control.current, None)).ok().flatten();
        let mut overtaken = 0;
        loop {
            match Snapshot::registered(storage, directory, direct, seen.clone()) {
                Ok(Some(snapshot)) => return Ok(snapshot),
                Ok(None) if overtaken < OVERTAKEN_MAX => overtaken += 1,
                Ok(None) => {
                    let slow = "it took a reader too long to register, each time it tried, for others to wait: try again";
                    return Err(Error::Busy(format!("{}: {slow}", directory.display())));
                }
                Err(error) if error.is_kind(&[ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem]) => {
                    return Snapshot::unregistered(storage, directory, direct, None);
                }
                Err(error) if error.is_kind(&[ErrorKind::StorageFull, ErrorKind::QuotaExceeded]) => {
                    let writers = keep_writers_out(storage.as_ref(), directory)?;
                    return Snapshot::unregistered(storage, directory, direct, Some(writers));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A snapshot of which the process that writes knows. `None`: somebody did not wait for it.
    fn registered(storage: &Arc<dyn Storage>, directory: &Path, direct: bool, seen: Option<LogEnd>) -> Result<Option<Snapshot>> {
        let readers = readers_directory(directory);
        make_directory(storage.as_ref(), &readers)?;
        let (gate, listed) = take_alone(storage.as_ref(), &readers)?;
        let register = || {
            let Place { registration, file, scratch } = enter(storage, &readers, listed)?;
            let found = find(storage.as_ref(), directory, direct, seen)?;
            let lengths = found.data_sets.iter().map(|(_, file_id, _, length)| (*file_id, *length)).collect();
            let registered = Registered { database_id: found.slot.database_id, lengths };
            let preserved = Arc::new(Preserved::begin(file, &registered, registration)?);
            Ok::<_, Error>((found, preserved, scratch))
        };
        let done = register();
        // Whoever begins a new gate later finds all of the file, and serves it. One that began it before may have removed it, or changed what was read.
        if !is_newest(storage.as_ref(), &readers, &gate)? {
            return Ok(None);
        }
        let (found, preserved, scratch) = done?;
        drop(gate);
        Snapshot::of(found, directory, scratch, &Kept::Preserved(preserved)).map(Some)
    }

    /// A snapshot of which nobody knows.
    fn unregistered(storage: &Arc<dyn Storage>, directory: &Path, direct: bool, writers: Option<Box<dyn Lock>>) -> Result<Snapshot> {
        let found = find(storage.as_ref(), directory, direct, None)?;
        let memory = MemoryStorage::with(1, Some(UNREGISTERED_BYTES_MAX));
        let scratch = memory.open(Path::new("scratch"), &OpenOptions::create_new())?;
        Snapshot::of(found, directory, scratch, &writers.map_or(Kept::AsTheyAre, |lock| Kept::NobodyWrites(Arc::from(lock))))
    }

    fn of(found: Found, directory: &Path, scratch: Arc<dyn File>, kept: &Kept) -> Result<Snapshot> {
        let (control, bytes) = found.control;
        let length = bytes.len() as u64;
        let control: Arc<dyn File> = Arc::new(ViewFile { file: control, length, kind: Kind::Copied(bytes) });
        let mut files = vec![(control_path(directory), control)];
        for (path, file_id, file, length) in found.data_sets {
            files.push((path, Arc::new(ViewFile { file, length, kind: Kind::DataSet(file_id, kept.clone()) })));
        }
        for (path, file, length) in found.log {
            let written = match (segment_number(&path), &found.end) {
                (Some(number), Some(end)) if number < end.segment => length,
                (Some(number), Some(end)) if number == end.segment => end.offset,
                // Made ahead: nothing but its header.
                (Some(_), _) => SEGMENT_HEADER_BYTES as u64,
                (None, _) => 0,
            };
            files.push((path, Arc::new(ViewFile { file, length, kind: Kind::Segment(written) })));
        }
        let files = Overlay::new(files, scratch)?;
        for name in [DATA_DIRECTORY, LOG_DIRECTORY] {
            if !files.exists(&directory.join(name))? {
                files.create_directory(&directory.join(name))?;
            }
        }
        put_back(&files, directory, found.slot.database_id, found.images, &mut |_, _| Ok(()))?;
        Ok(Snapshot { files, registered: !matches!(kept, Kept::AsTheyAre) })
    }

    /// The files, under their paths. They can be changed: nobody else sees that.
    #[must_use]
    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.files.clone())
    }

    /// Do the files stay as they are for it? If not, a process that writes the database does not know of it, and its pages may change.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.registered
    }

    /// Bytes that the changes take in the scratch file.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        self.files.scratch_bytes()
    }
}

/// Makes a reader's files. Those of readers that died are removed.
fn enter(storage: &Arc<dyn Storage>, readers: &Path, listed: Listed) -> Result<Place> {
    for path in listed.paths {
        let left = path.extension().is_some_and(|extension| extension == "tmp");
        if left || (is_preserved_pages(&path) && storage.lock(&path).is_ok()) {
            remove_if_there(storage.as_ref(), &path)?;
        }
    }
    let mut hasher = RandomState::new().build_hasher();
    hasher.write(readers.as_os_str().as_encoded_bytes());
    let path = readers.join(format!("{:016x}.pfr", hasher.finish()));
    let lock = storage.lock(&path)?;
    let registration = Registration { storage: Arc::clone(storage), path: path.clone(), _lock: lock };
    let file = storage.open(&path, &OpenOptions::read_write())?;
    let scratch = nameless(storage.as_ref(), &path.with_extension("tmp"))?;
    Ok(Place { registration, file, scratch })
}

/// For a reader that can have no file: as long as it has this lock, nobody writes.
fn keep_writers_out(storage: &dyn Storage, directory: &Path) -> Result<Box<dyn Lock>> {
    let path = lock_path(directory);
    storage.lock_within(&path, LockKind::Shared, Duration::ZERO).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => {
            let writer = storage.lock_holder(&path).unwrap_or_else(|| "another process".into());
            let full =
                format!("the disk has no room for the file of a reader, and {writer} writes the database: a reader needs one beside it");
            Error::from(error_on("read", directory, std::io::Error::new(ErrorKind::StorageFull, full)))
        }
        _ => error.into(),
    })
}

/// Opens what there is.
fn find(storage: &dyn Storage, directory: &Path, direct: bool, seen: Option<LogEnd>) -> Result<Found> {
    let slot = read_control(storage, directory)?.current;
    let path = control_path(directory);
    let control = (storage.open(&path, &OpenOptions::read_only())?, read_file(storage, &path, CONTROL_SLOTS * CONTROL_SLOT_BYTES)?);
    let mut log = Vec::new();
    if slot.checkpoint != 0 {
        for path in storage.list(&directory.join(LOG_DIRECTORY))? {
            let Some(file) = open_if_there(storage, &path, false)? else { continue };
            let length = file.len()?;
            log.push((path, file, length));
        }
    }
    let end = log_end(storage, directory, &slot, seen)?;
    // Later: what the log defines up to there has its files by now, and none is removed before the gate is passed.
    let mut data_sets = Vec::new();
    for path in storage.list(&directory.join(DATA_DIRECTORY))? {
        let Some(file_id) = file_id_of(&path) else { continue };
        let opened = match open_if_there(storage, &path, direct) {
            Ok(None) => continue,
            Ok(Some(file)) => file.len().map(|length| (file, length)).map_err(Error::from),
            Err(error) => Err(error),
        };
        // One that the system refuses is missed by who needs it, not by all: but not because there are too many.
        let (file, length) = match opened {
            Err(Error::Io(error)) if is_out_of_files(&error) => {
                let many = format!("{error}: a reader has all data sets of the database open: let it have more (`ulimit -n`)");
                return Err(error_on("read", directory, std::io::Error::new(error.kind(), many)).into());
            }
            Err(Error::Io(error)) => Refused::file(&path, &error),
            opened => opened?,
        };
        data_sets.push((path, file_id, file, length));
    }
    let images = double_write::images_if_whole(storage, &directory.join(DOUBLE_WRITE_NAME), slot.database_id)?;
    Ok(Found { slot, control, data_sets, log, end, images })
}

/// Has the process, or the system, all files open that it may?
fn is_out_of_files(error: &std::io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    [Some(ENFILE), Some(EMFILE)].contains(&error.raw_os_error())
}

/// A file that may be removed at any time, because nobody names it.
fn open_if_there(storage: &dyn Storage, path: &Path, direct: bool) -> Result<Option<Arc<dyn File>>> {
    match storage.open(path, &OpenOptions::read_only().direct(direct)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// Where the log ends, looked for from the last checkpoint on, or from where it was `seen` to end before.
fn log_end(storage: &dyn Storage, directory: &Path, slot: &ControlSlot, seen: Option<LogEnd>) -> Result<Option<LogEnd>> {
    if slot.checkpoint == 0 {
        return Ok(None);
    }
    let (from, records) = match seen {
        Some(seen) if seen.end > slot.checkpoint => (seen.end, seen.records),
        _ => (slot.checkpoint, 0),
    };
    let mut end = LogEnd::find(storage, &directory.join(LOG_DIRECTORY), slot.log_id, from)?;
    end.records += records;
    Ok(Some(end))
}

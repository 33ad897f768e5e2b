//! The segment files of a log that is written: made ahead, written to, used again.
//!
//! Invariants:
//!
//! - Below [`SegmentFiles::prepared`] all segments are there, names and headers durable, their blocks taken: a write to them finds its space.
//! - A segment gets its name last: it is made, or made over, under another name, synced, renamed, and its name synced.
//! - A file that is made over (a spare) holds records of positions below the segment it becomes, which are valid nowhere else.
//! - A failed sync of the directory poisons: whether the names in it are durable is not known any more. A file whose own making failed holds
//!   no record: it is thrown away, and the next attempt takes another.

use super::record::Lsn;
use super::segment::{Geometry, SEGMENT_HEADER_BYTES, SegmentHeader, damaged, open_segment, segment_number, segment_path};
use super::writer::LogSettings;
use crate::{Error, Result};
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// How much is zeroed by a call.
const ZERO_BYTES: usize = 1 << 20;
static ZEROS: [u8; ZERO_BYTES] = [0; ZERO_BYTES];

#[derive(Debug)]
pub(super) struct SegmentFiles {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    log_id: u128,
    geometry: Geometry,
    spares_max: usize,
    sync: bool,
    /// Why nothing more can be written.
    pub(super) poison: OnceLock<String>,
    handles: Mutex<BTreeMap<u64, Arc<dyn File>>>,
    /// Held while segments are made or recycled; `handles` is locked inside it, never the other way round.
    names: Mutex<Names>,
    prepared: AtomicU64,
}

#[derive(Debug, Default)]
struct Names {
    /// Files to be made over.
    spares: Vec<PathBuf>,
    /// Segments that are there.
    present: BTreeSet<u64>,
}

/// Where a file lies that waits to be made over.
fn spare_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("spare-{number:016x}.pfl"))
}

fn is_spare(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("spare-") && name.ends_with(".pfl"))
}

/// Where a new segment is made.
fn new_path(directory: &Path) -> PathBuf {
    directory.join("segment.new")
}

impl SegmentFiles {
    fn new(storage: Arc<dyn Storage>, directory: &Path, log_id: u128, geometry: Geometry, settings: LogSettings) -> SegmentFiles {
        SegmentFiles {
            storage,
            directory: directory.to_path_buf(),
            log_id,
            geometry,
            spares_max: settings.spare_segments,
            sync: settings.sync,
            poison: OnceLock::new(),
            handles: Mutex::default(),
            names: Mutex::default(),
            prepared: AtomicU64::new(0),
        }
    }

    /// A log without records, whose first one will be at `start` or after. What a directory has of another log goes.
    pub(super) fn create(
        storage: Arc<dyn Storage>,
        directory: &Path,
        log_id: u128,
        geometry: Geometry,
        settings: LogSettings,
        start: Lsn,
    ) -> Result<SegmentFiles> {
        let files = SegmentFiles::new(storage, directory, log_id, geometry, settings);
        for path in files.storage.list(directory)? {
            if segment_number(&path).is_some() || is_spare(&path) {
                files.storage.remove(&path)?;
            }
        }
        let number = geometry.segment_of(start);
        if !geometry.is_segment(number) {
            return Err(Error::Parameter(format!("a log cannot start at {start}")));
        }
        files.make(&mut files.names.lock(), number)?;
        Ok(files)
    }

    /// The files of a log that ends at `end`: all of it made durable, nothing valid left behind the end.
    pub(super) fn open(
        storage: Arc<dyn Storage>,
        directory: &Path,
        log_id: u128,
        (numbers, geometry): (Vec<u64>, Geometry),
        settings: LogSettings,
        end: Lsn,
    ) -> Result<SegmentFiles> {
        let files = SegmentFiles::new(storage, directory, log_id, geometry, settings);
        let last = geometry.segment_of(end);
        let mut names = files.names.lock();
        for number in numbers {
            let path = segment_path(directory, number);
            if number > last {
                files.storage.remove(&path)?;
                continue;
            }
            names.present.insert(number);
            match open_segment(files.storage.as_ref(), directory, number, log_id, Some(geometry), &OpenOptions::read_write()) {
                Ok((file, _)) => {
                    if number == last {
                        zero(file.as_ref(), geometry.offset_of(end), geometry.segment_bytes())?;
                    }
                    // What was read may be in the system's cache only: written by a process that was stopped before it synced.
                    file.sync()?;
                    files.handles.lock().insert(number, file);
                }
                // A reader has checked those that recovery needs.
                Err(Error::Damaged { .. }) if number < last => {}
                // Nor does any record lie in this one: it is made anew.
                Err(Error::Damaged { .. }) if end == geometry.start_of(last) => {
                    files.storage.remove(&path)?;
                    names.present.remove(&number);
                }
                Err(error) => return Err(error),
            }
        }
        if files.storage.exists(&new_path(directory))? {
            files.storage.remove(&new_path(directory))?;
        }
        for path in files.storage.list(directory)?.into_iter().filter(|path| is_spare(path)) {
            let file = files.storage.open(&path, &OpenOptions::read_only())?;
            if names.spares.len() < files.spares_max && file.len()? == geometry.segment_bytes() {
                names.spares.push(path);
            } else {
                files.storage.remove(&path)?;
            }
        }
        files.storage.sync_directory(directory)?;
        if names.present.contains(&last) {
            files.prepared.store(geometry.end_of(last), Ordering::Release);
        } else if end == geometry.start_of(last) && geometry.is_segment(last) {
            files.make(&mut names, last)?;
        } else {
            return Err(damaged(&segment_path(directory, last), "the segment is missing"));
        }
        drop(names);
        Ok(files)
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The position up to which records may be appended.
    pub(super) fn prepared(&self) -> Lsn {
        self.prepared.load(Ordering::Acquire)
    }

    pub(super) fn check_poison(&self) -> Result<()> {
        self.poison.get().map_or(Ok(()), |reason| Err(Error::Poisoned(reason.clone())))
    }

    /// Sees to it that the segments up to position `end` are there.
    pub(super) fn prepare(&self, end: Lsn) -> Result<()> {
        if self.prepared() >= end {
            return Ok(());
        }
        let mut names = self.names.lock();
        while self.prepared() < end {
            self.check_poison()?;
            let number = self.geometry.segment_of(self.prepared());
            if !self.geometry.is_segment(number) {
                return Err(Error::Parameter("the log has used up all its positions".into()));
            }
            self.make(&mut names, number)?;
        }
        Ok(())
    }

    /// Makes the segment with this number, the one behind the last.
    fn make(&self, names: &mut Names, number: u64) -> Result<()> {
        let header = SegmentHeader { log_id: self.log_id, number, segment_bytes: self.geometry.segment_bytes() }.build();
        let (path, made) = match names.spares.pop() {
            Some(path) => {
                let made = self.make_over(&path, &header);
                (path, made)
            }
            None => {
                let path = new_path(&self.directory);
                let made = self.make_new(&path, &header);
                (path, made)
            }
        };
        let renamed = made.and_then(|file| {
            self.storage.rename(&path, &segment_path(&self.directory, number))?;
            Ok(file)
        });
        let file = renamed.inspect_err(|_| {
            // The space may be what is missing. When this fails, too, the file is in nobody's way.
            self.storage.remove(&path).ok();
        })?;
        self.sync_directory()?;
        self.handles.lock().insert(number, file);
        names.present.insert(number);
        self.prepared.store(self.geometry.end_of(number), Ordering::Release);
        Ok(())
    }

    fn make_over(&self, path: &Path, header: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Arc<dyn File>> {
        let file = self.storage.open(path, &OpenOptions::read_write())?;
        self.write_header(file, header)
    }

    fn make_new(&self, path: &Path, header: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Arc<dyn File>> {
        if self.storage.exists(path)? {
            self.storage.remove(path)?;
        }
        let file = self.storage.open(path, &OpenOptions::create_new())?;
        file.allocate(0, self.geometry.segment_bytes())?;
        // Zeros are written, not only reserved: else the first sync of every block would write the file system's journal, too.
        for from in (0..self.geometry.segment_bytes()).step_by(ZERO_BYTES) {
            let bytes = usize::try_from(self.geometry.segment_bytes() - from).map_or(ZERO_BYTES, |left| left.min(ZERO_BYTES));
            file.write_at(&ZEROS[..bytes], from)?;
        }
        self.write_header(file, header)
    }

    fn write_header(&self, file: Arc<dyn File>, header: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Arc<dyn File>> {
        file.write_at(header, 0)?;
        if self.sync {
            file.sync()?;
        }
        Ok(file)
    }

    fn sync_directory(&self) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        self.storage.sync_directory(&self.directory).map_err(|error| {
            self.poison.get_or_init(|| error.to_string());
            Error::from(error)
        })
    }

    /// The numbers of the segments wholly below `lsn`.
    pub(super) fn segments_below(&self, lsn: Lsn) -> Vec<u64> {
        let wholly_below = |number: &u64| self.geometry.is_segment(*number) && self.geometry.end_of(*number) <= lsn;
        self.names.lock().present.iter().copied().take_while(wholly_below).collect()
    }

    /// Keeps some of the segments wholly below `lsn` as spares, if they may be written over, removes the others.
    pub(super) fn recycle(&self, lsn: Lsn, reuse: bool) -> Result<()> {
        let mut names = self.names.lock();
        while let Some(&number) = names.present.first()
            && self.geometry.is_segment(number)
            && self.geometry.end_of(number) <= lsn
        {
            let path = segment_path(&self.directory, number);
            if reuse
                && names.spares.len() < self.spares_max
                && self.storage.open(&path, &OpenOptions::read_only())?.len()? == self.geometry.segment_bytes()
            {
                let spare = spare_path(&self.directory, number);
                self.storage.rename(&path, &spare)?;
                names.spares.push(spare);
            } else {
                self.storage.remove(&path)?;
            }
            names.present.remove(&number);
            self.handles.lock().remove(&number);
        }
        Ok(())
    }

    fn handle(&self, number: u64) -> Result<Arc<dyn File>> {
        let handle = self.handles.lock().get(&number).map(Arc::clone);
        handle.ok_or_else(|| damaged(&segment_path(&self.directory, number), "the segment is missing, or its header was damaged"))
    }

    /// Writes bytes of the stream; the segments are there. Those written to are added to `dirty`.
    pub(super) fn write(&self, start: Lsn, bytes: &[u8], dirty: &mut BTreeMap<u64, Arc<dyn File>>) -> Result<()> {
        let mut rest = bytes;
        for (number, offset, length) in self.geometry.parts(start, bytes.len()) {
            let file = self.handle(number)?;
            let (part, behind) = rest.split_at(length);
            file.write_at(part, offset)?;
            rest = behind;
            dirty.insert(number, file);
        }
        Ok(())
    }

    /// Reads bytes of the stream.
    pub(super) fn read(&self, start: Lsn, bytes: &mut [u8]) -> Result<()> {
        let mut rest = &mut *bytes;
        for (number, offset, length) in self.geometry.parts(start, rest.len()) {
            let (part, behind) = rest.split_at_mut(length);
            read_exact_at(self.handle(number)?.as_ref(), part, offset)?;
            rest = behind;
        }
        Ok(())
    }

    /// An error about the record at a position.
    pub(super) fn damaged_record(&self, start: Lsn, reason: &str) -> Error {
        damaged_record(&self.directory, self.geometry, start, reason)
    }
}

/// An error about the record at a position: names segment and offset.
pub(super) fn damaged_record(directory: &Path, geometry: Geometry, start: Lsn, reason: &str) -> Error {
    let path = segment_path(directory, geometry.segment_of(start));
    damaged(&path, format!("record at offset {} (log position {start}): {reason}", geometry.offset_of(start)))
}

/// Zeroes a range of a file where it is not zero.
fn zero(file: &dyn File, from: u64, to: u64) -> Result<()> {
    let mut piece = vec![0; 64 << 10];
    let mut at = from;
    while at < to {
        let bytes = usize::try_from(to - at).map_or(piece.len(), |left| left.min(piece.len()));
        read_exact_at(file, &mut piece[..bytes], at)?;
        if piece[..bytes].iter().any(|&byte| byte != 0) {
            file.write_at(&ZEROS[..bytes], at)?;
        }
        at += bytes as u64;
    }
    Ok(())
}

//! Copies as the files of the database that they make, without making it: for whoever looks at a copy, or takes a table out of one.
//!
//! Invariants:
//! - the copies are only read; what is changed (the log is applied) goes to a scratch file of this process's own, or to memory where none can be made;
//! - memory goes with the blocks of the copies, 16 bytes each: their pages stay where they are. A page is looked for in the newest copy first;
//! - what no copy has reads as zeros, and every page is verified by who reads it.

use super::recover::{Found, Log, RecoverOptions, Stop, check_chain, log_name};
use super::source::Described;
use super::stream::{CopyReader, Part};
use super::take::advance;
use crate::database::{Database, GiveUp, GivenUp, LogHold, OpenMode, Settings, new_id};
use crate::directory::{DATA_DIRECTORY, LOG_DIRECTORY, control_path, create_control, data_set_path, nameless};
use crate::log::{Log as OpenLog, LogParts, LogSettings};
use crate::{Error, Progress, Result, Unit};
use pagefold_format::copy::{CopyBlock, Manifest, is_asked};
use pagefold_format::log::Lsn;
use pagefold_io::{Clock, File, MemoryStorage, OpenOptions, Overlay, Storage, error_at, read_exact_at};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Data sets end at a multiple of this.
const FILE_STEP: u64 = 4096;
/// How often the end of a log that grows is looked for.
const END_ATTEMPTS: u32 = 5;
const END_WAIT: Duration = Duration::from_millis(5);
/// What is changed, where no scratch file can be made.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Consecutive pages in a copy.
#[derive(Clone, Copy, Debug)]
struct Extent {
    first: u32,
    count: u32,
    /// Where the first one lies.
    at: u64,
}

/// What one copy has of a data set.
#[derive(Debug)]
struct Layer {
    file: Arc<dyn File>,
    /// By their first pages.
    extents: Vec<Extent>,
}

impl Layer {
    /// The extent in which a page lies, or else the first page behind it that the copy has.
    fn find(&self, page: u32) -> std::result::Result<Extent, u32> {
        let behind = self.extents.partition_point(|extent| extent.first <= page);
        match behind.checked_sub(1).and_then(|at| self.extents.get(at)) {
            Some(extent) if page - extent.first < extent.count => Ok(*extent),
            _ => Err(self.extents.get(behind).map_or(u32::MAX, |extent| extent.first)),
        }
    }
}

/// A data set as copies have it.
#[derive(Debug)]
struct CopiedFile {
    path: PathBuf,
    length: u64,
    page_bytes: u32,
    /// The newest first.
    layers: Vec<Layer>,
}

impl CopiedFile {
    /// Reads what lies in one extent, or the zeros before one: at least a byte.
    fn read_piece(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let page_bytes = u64::from(self.page_bytes);
        let page = u32::try_from(offset / page_bytes).unwrap_or(u32::MAX);
        // Up to where nothing newer begins.
        let mut end = u32::MAX;
        let mut found = None;
        for layer in &self.layers {
            match layer.find(page) {
                Ok(extent) => {
                    end = end.min(extent.first.saturating_add(extent.count));
                    found = Some((layer, extent));
                    break;
                }
                Err(next) => end = end.min(next),
            }
        }
        let bytes =
            usize::try_from((u64::from(end) * page_bytes).saturating_sub(offset)).map_or(buf.len(), |left| left.min(buf.len())).max(1);
        let piece = &mut buf[..bytes];
        match found {
            Some((layer, extent)) => {
                let at = extent.at + (offset - u64::from(extent.first) * page_bytes);
                read_exact_at(layer.file.as_ref(), piece, at)?;
            }
            None => piece.fill(0),
        }
        Ok(bytes)
    }

    fn refuse<T>(&self, what: &'static str) -> io::Result<T> {
        Err(error_at(what, &self.path, 0, io::Error::new(ErrorKind::PermissionDenied, "it lies in a copy")))
    }
}

impl File for CopiedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let total = usize::try_from(self.length.saturating_sub(offset)).map_or(buf.len(), |left| left.min(buf.len()));
        let mut done = 0;
        while done < total {
            done += self.read_piece(&mut buf[done..total], offset + done as u64)?;
        }
        Ok(total)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        self.refuse("write")
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        self.refuse("set length of")
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        self.refuse("allocate")
    }

    fn punch_hole(&self, _: u64, _: u64) -> io::Result<()> {
        self.refuse("punch hole")
    }

    fn alignment(&self) -> usize {
        1
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// What of copies is to be looked at.
#[derive(Clone, Debug, Default)]
pub struct MountOptions {
    /// With which log, up to where.
    pub recover: RecoverOptions,
    /// Only these tables, with their indexes, and partitions where one is partitioned: nothing of the others is there. All that the copies have, when it is empty.
    pub tables: Vec<String>,
    /// Beside which file or directory a scratch file is made; by default beside the last copy.
    pub scratch: Option<PathBuf>,
}

/// The database that copies make, as files that can be read, and changed for oneself.
#[derive(Debug)]
pub struct MountedCopy {
    files: Overlay,
    directory: PathBuf,
    manifest: Manifest,
    tables: Vec<String>,
    found: Found,
}

impl MountedCopy {
    /// The files of the database that a copy makes, with those that go on from it, in their order, and with log.
    ///
    /// # Errors
    /// When a copy or a segment of the log is damaged or missing, or a table that was asked for is not in the copies.
    pub fn open(
        storage: &Arc<dyn Storage>,
        clock: &Arc<dyn Clock>,
        copies: &[PathBuf],
        options: &MountOptions,
        progress: &dyn Progress,
    ) -> Result<MountedCopy> {
        let mut chain = copies.iter().map(|path| CopyReader::open(storage.as_ref(), path)).collect::<Result<Vec<_>>>()?;
        check_chain(&chain)?;
        let Some(last) = chain.last() else { return Err(Error::Parameter("no copy to look at".into())) };
        let (manifest, directory) = (last.manifest().clone(), last.path().to_path_buf());
        if let Some(lacks) = options.tables.iter().find(|name| !manifest.has_table(name)) {
            let has = manifest.tables.join(", ");
            return Err(last.damaged(format!("it does not have table \"{lacks}\": it is a copy of {has} only")));
        }
        let tables = if options.tables.is_empty() { manifest.tables.clone() } else { options.tables.clone() };
        let scratch = scratch_file(storage, clock, options.scratch.as_deref().unwrap_or(&directory))?;
        let bytes = chain.iter().map(CopyReader::length).sum();
        progress.start("looking through copies", Some(bytes), Unit::Bytes);
        let files = copied_files(&mut chain, &manifest, &directory, progress)?;
        let overlay = Overlay::new(files, scratch)?;
        for name in [DATA_DIRECTORY, LOG_DIRECTORY] {
            if !overlay.exists(&directory.join(name))? {
                overlay.create_directory(&directory.join(name))?;
            }
        }
        let mut mounted = MountedCopy {
            files: overlay,
            directory,
            found: Found { log_end: manifest.log_end, stop: Stop::EndOfLog, last_commit_ns: manifest.last_commit_ns },
            manifest,
            tables,
        };
        mounted.put_log(storage, clock, &mut chain, options, progress)?;
        progress.finish();
        Ok(mounted)
    }

    fn put_log(
        &mut self,
        storage: &Arc<dyn Storage>,
        clock: &Arc<dyn Clock>,
        chain: &mut [CopyReader],
        options: &MountOptions,
        progress: &dyn Progress,
    ) -> Result<()> {
        let (manifest, made) = (&self.manifest, self.storage());
        let Some(last) = chain.last_mut() else { return Ok(()) };
        let mut control = manifest.control;
        if manifest.segment_bytes == 0 {
            control.log_id = new_id(clock.as_ref(), &self.directory);
            create_control(made.as_ref(), &self.directory, &control)?;
            if options.recover != RecoverOptions::default() {
                return Err(last.damaged("when it was taken the database had no log: it cannot be taken any further"));
            }
            let described = Described::read(&made, clock, &self.directory)?;
            let called = described.tables.iter().filter(|table| self.has_table(&table.name)).map(|table| table.object_id).collect();
            return self.keep_only(&described, &called);
        }
        let directory = self.directory.join(LOG_DIRECTORY);
        made.remove_directory(&directory)?;
        let name = log_name(manifest);
        let parts = LogParts::create(Arc::clone(&made), &directory, name.log_id, name.segment_bytes)?;
        let mut end = manifest.log_start;
        while let Some(block) = last.peek()? {
            if let CopyBlock::Log { .. } = block.0
                && let Some(Part::Log { start, bytes }) = last.next()?
            {
                if start != end || start + bytes.len() as u64 > manifest.log_end {
                    let next = end;
                    return Err(last.damaged(format!("log from {start} on where {next} is next")));
                }
                end += bytes.len() as u64;
                parts.put(start, bytes)?;
            }
            last.pass(block);
            advance(progress, 0)?;
        }
        if end != manifest.log_end {
            return Err(last.damaged(format!("its log ends at {end}, not at {}", manifest.log_end)));
        }
        create_control(made.as_ref(), &self.directory, &control)?;
        // The state before anything of the log is applied. Pages of a copy can be looked at though its catalog cannot be read.
        let is_as_it_lies = self.tables.is_empty() && options.recover.logs.is_empty();
        let described = if is_as_it_lies { Described::default() } else { Described::read(&made, clock, &self.directory)? };
        // No segment goes while it is looked for and taken.
        let mut holds = Vec::new();
        for directory in &options.recover.logs {
            if storage.exists(&control_path(directory))? {
                holds.push(LogHold::take(storage.as_ref(), clock.as_ref(), directory)?);
            }
        }
        let log = Log { storage, made: &made, manifest, copy: &self.directory, described: &described, tables: &self.tables, progress };
        let mut attempt = 1;
        let (found, called) = loop {
            match log.put_together(&parts, &directory, &options.recover) {
                // A log that grows: what lies behind may have come between the looks at two pieces of it.
                Err(Error::Damaged { .. }) if !holds.is_empty() && attempt < END_ATTEMPTS => {
                    attempt += 1;
                    clock.sleep(END_WAIT);
                }
                found => break found?,
            }
        };
        drop(holds);
        // Zeroes what lies behind the end.
        drop(OpenLog::open(made, &directory, control.log_id, LogSettings::default(), found.log_end)?);
        self.found = found;
        self.keep_only(&described, &called)
    }

    /// Takes away the files of tables that nobody asked for, so that nothing is done for them: of those that are not `called` so where the log ends, whatever they were called before.
    fn keep_only(&self, described: &Described, called: &BTreeSet<u32>) -> Result<()> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let storage = self.storage();
        let others = described.tables.iter().filter(|table| !called.contains(&table.object_id));
        for path in others.flat_map(|table| &table.files).map(|file_id| data_set_path(&self.directory, *file_id)) {
            if storage.exists(&path)? {
                storage.remove(&path)?;
            }
        }
        Ok(())
    }

    /// Is this one of the tables that are there?
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        is_asked(&self.tables, name)
    }

    /// The files, under their paths. They can be changed: nobody else sees that.
    #[must_use]
    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.files.clone())
    }

    /// The directory of the database among these files: the path of the last copy.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the log ends, and why there.
    #[must_use]
    pub fn end(&self) -> (Lsn, Stop) {
        (self.found.log_end, self.found.stop)
    }

    /// The latest time of a commit in its log, in nanoseconds since 1970-01-01 UTC; 0 when there is none.
    #[must_use]
    pub fn last_commit_ns(&self) -> u64 {
        self.found.last_commit_ns
    }

    /// Opens the database, with its log applied. What it changes stays among these files.
    ///
    /// # Errors
    /// As [`Self::bring_in_order`]; that of a table which should be there, and cannot get what the log has for it.
    pub fn database(&self, clock: &Arc<dyn Clock>, settings: Settings) -> Result<Database> {
        if let Some(GivenUp { error, .. }) = self.bring_in_order(clock, settings)?.into_iter().next() {
            return Err(error);
        }
        let settings = Settings { direct: false, ..settings };
        Database::open(self.storage(), Arc::clone(clock), &self.directory, OpenMode::Write, settings)
    }

    /// Applies the log to the files. Tables that cannot get what it has for them are gone then: those of them are told of that should be there.
    ///
    /// # Errors
    /// When the log or the catalog cannot be read.
    pub fn bring_in_order(&self, clock: &Arc<dyn Clock>, settings: Settings) -> Result<Vec<GivenUp>> {
        let settings = Settings { direct: false, ..settings };
        let without = GiveUp::OthersThan(&self.tables);
        let database = Database::open_giving_up(self.storage(), Arc::clone(clock), &self.directory, settings, without)?;
        let given_up = database.given_up().iter().filter(|gone| self.has_table(&gone.table)).cloned().collect();
        database.close()?;
        Ok(given_up)
    }
}

/// A file for what is changed; memory where none can be made.
fn scratch_file(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, beside: &Path) -> Result<Arc<dyn File>> {
    let mut name = beside.as_os_str().to_owned();
    name.push(format!(".{:032x}.tmp", new_id(clock.as_ref(), beside)));
    match nameless(storage.as_ref(), Path::new(&name)) {
        Ok(file) => Ok(file),
        Err(error) if is_no_place(error.kind()) => {
            let memory = MemoryStorage::with(1, Some(MEMORY_BYTES_MAX));
            Ok(memory.open(Path::new("scratch"), &OpenOptions::create_new())?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Is it that nothing can be written there, now or ever?
fn is_no_place(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The data sets that the last copy has, by their paths.
fn copied_files(
    chain: &mut [CopyReader],
    last: &Manifest,
    directory: &Path,
    progress: &dyn Progress,
) -> Result<Vec<(PathBuf, Arc<dyn File>)>> {
    let mut files: Vec<CopiedFile> = Vec::with_capacity(last.data_sets.len());
    let mut sorted = last.data_sets.clone();
    sorted.sort_by_key(|data_set| data_set.file_id);
    for data_set in &sorted {
        let length = (u64::from(data_set.page_count) * u64::from(data_set.page_bytes)).next_multiple_of(FILE_STEP);
        let path = data_set_path(directory, data_set.file_id);
        files.push(CopiedFile { path, length, page_bytes: data_set.page_bytes, layers: Vec::with_capacity(chain.len()) });
    }
    for copy in chain.iter_mut().rev() {
        let mut layers: Vec<Vec<Extent>> = vec![Vec::new(); files.len()];
        let start = copy.begin();
        while let Some(block) = copy.peek()? {
            let (what, bytes, at) = block;
            if let CopyBlock::Pages { file_id, page_bytes, first } = what
                && let Ok(index) = sorted.binary_search_by_key(&file_id, |data_set| data_set.file_id)
            {
                if sorted[index].page_bytes != page_bytes {
                    return Err(copy.damaged(format!("file {file_id:08x} has another page size than its manifest says")));
                }
                layers[index].push(Extent { first, count: bytes as u32 / page_bytes, at });
            }
            copy.pass(block);
            advance(progress, bytes as u64)?;
        }
        copy.go_to(start);
        for (file, mut extents) in files.iter_mut().zip(layers) {
            extents.sort_unstable_by_key(|extent| extent.first);
            file.layers.push(Layer { file: Arc::clone(copy.file()), extents });
        }
    }
    for file in &files {
        if file.layers.iter().all(|layer| layer.extents.is_empty()) {
            return Err(Error::Damaged { path: file.path.display().to_string(), reason: "the copies have no page of it".into() });
        }
    }
    Ok(files.into_iter().map(|file| (file.path.clone(), Arc::new(file) as Arc<dyn File>)).collect())
}

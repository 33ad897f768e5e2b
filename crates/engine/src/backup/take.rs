//! Taking a copy of a database, whoever writes it meanwhile.
//!
//! Invariants:
//! - the log is held from before the last checkpoint is looked for until the copy has the log;
//! - data sets that the log defines come along, since it does not have the pages that they were made with;
//! - the end of the log is looked for after the last page was read; what the log defines up to there has its data sets in the copy.

use super::restore::NewDatabase;
use super::source::Source;
use super::stream::{CopyReader, CopyWriter};
use super::walk::{Visitor, walk};
use crate::data_set::DataSet;
use crate::database::{Database, LogHold, Settings, new_id};
use crate::directory::{LOG_DIRECTORY, read_control};
use crate::log::LogReader;
use crate::{Error, Progress, Result, Unit, spans};
use pagefold_format::control::ControlSlot;
use pagefold_format::copy::{BaseCopy, CopiedDataSet, Manifest, stands_for};
use pagefold_format::log::{Commit, Lsn, RecordKind};
use pagefold_format::page;
use pagefold_io::{Clock, Storage};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a copy begins anew because the catalog, or files that it names, went while they were opened.
const ATTEMPTS: u32 = 5;
/// How often the end of a log that grows is looked for.
const END_ATTEMPTS: u32 = 20;
const END_WAIT: Duration = Duration::from_millis(5);
const LOG_PIECE_BYTES: usize = 1 << 20;

/// Whose log it is, and how it is cut into segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogName {
    pub(super) log_id: u128,
    pub(super) segment_bytes: u64,
}

/// Where the parts of a copy go.
pub(super) trait Sink {
    /// Consecutive pages of a data set.
    fn pages(&mut self, file_id: u32, page_bytes: u32, first: u32, pages: &[u8]) -> Result<()>;
    /// Bytes of the log.
    fn log(&mut self, log: LogName, start: Lsn, bytes: &[u8]) -> Result<()>;
}

/// What a copy came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Data sets.
    pub data_sets: u64,
    /// Pages that were copied, header and map pages included.
    pub pages: u64,
    /// Their bytes.
    pub page_bytes: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// Where the log ends in it; 0: the database has none.
    pub log_end: Lsn,
    /// The latest time of a commit in its part of the log, in nanoseconds since 1970-01-01 UTC; 0 when there is none.
    pub last_commit_ns: u64,
    /// Bytes of the file, or of the directory's data sets.
    pub size_bytes: u64,
    /// Indexes that are damaged, and are so in the copy: no page of them is needed.
    pub damaged_indexes: Vec<String>,
}

impl Database {
    /// Brings the files to a state from which a copy takes least: a checkpoint, and a log, without which a copy cannot be taken further.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn prepare_copy(&self) -> Result<()> {
        self.ensure_log()?;
        self.checkpoint()
    }

    /// Copies the database into a file while it is used; with `base`, a copy taken before, only what has changed since. Made into a database again by [`super::recover`].
    ///
    /// # Errors
    /// When the file is there, the base is of another database, a page is damaged, or something cannot be read or written. There is no file then.
    pub fn copy(&self, target: &Path, base: Option<&Path>, progress: &dyn Progress) -> Result<CopyReport> {
        self.prepare_copy()?;
        copy_to_file(self.storage(), self.manager().clock(), self.directory(), target, base, progress)
    }
}

/// Copies the database in a directory into a file, whoever writes it meanwhile; with `base`, a copy taken before, only what has changed since.
///
/// # Errors
/// As [`Database::copy`]; when tables or indexes are changed all the time.
pub fn copy_to_file(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    target: &Path,
    base: Option<&Path>,
    progress: &dyn Progress,
) -> Result<CopyReport> {
    copy_tables_to_file(storage, clock, directory, target, &[], base, progress)
}

/// Copies some tables of the database in a directory, with their indexes, into a file, whoever writes it meanwhile; all partitions of those that are partitioned; all tables when none is named. With
/// `base`, a copy taken before that has them, only what has changed since. [`super::MountedCopy`] has them as files.
///
/// # Errors
/// As [`copy_to_file`]; when there is no such table.
pub fn copy_tables_to_file(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    target: &Path,
    tables: &[String],
    base: Option<&Path>,
    progress: &dyn Progress,
) -> Result<CopyReport> {
    let base = base.map(|path| CopyReader::open(storage.as_ref(), path)).transpose()?;
    let tables = names_in_order(tables)?;
    Taking { storage, clock, directory, base, tables, progress }.repeat(|taking| {
        let mut writer = CopyWriter::create(Arc::clone(storage), target, new_id(clock.as_ref(), target))?;
        let (manifest, mut report) = taking.take(&mut writer)?;
        report.size_bytes = writer.finish(&manifest)?;
        Ok(report)
    })
}

/// Copies the database in a directory into a new database of its own, whoever writes it meanwhile.
///
/// # Errors
/// As [`copy_to_file`].
pub fn copy_to_directory(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    target: &Path,
    settings: Settings,
    progress: &dyn Progress,
) -> Result<CopyReport> {
    Taking { storage, clock, directory, base: None, tables: Vec::new(), progress }.repeat(|taking| {
        let mut fresh = NewDatabase::create(Arc::clone(storage), Arc::clone(clock), target)?;
        let (manifest, report) = taking.take(&mut fresh)?;
        fresh.finish(&manifest, manifest.log_end, settings)?;
        Ok(report)
    })
}

/// Each name once, in their order; without those that another one stands for.
fn names_in_order(names: &[String]) -> Result<Vec<String>> {
    if names.iter().any(String::is_empty) {
        return Err(Error::Parameter("a table without a name".into()));
    }
    let mut sorted = names.to_vec();
    sorted.retain(|name| !names.iter().any(|other| other != name && stands_for(other, name)));
    sorted.sort();
    sorted.dedup();
    Ok(sorted)
}

/// How far the log goes.
#[derive(Debug, Default)]
struct LogEnd {
    at: Lsn,
    /// The latest time of a commit up to there.
    last_commit_ns: u64,
}

struct Taking<'a> {
    storage: &'a Arc<dyn Storage>,
    clock: &'a Arc<dyn Clock>,
    directory: &'a Path,
    base: Option<CopyReader>,
    /// Only these; none: all.
    tables: Vec<String>,
    progress: &'a dyn Progress,
}

impl Taking<'_> {
    /// Until no file goes while it is opened.
    fn repeat(&self, once: impl Fn(&Self) -> Result<CopyReport>) -> Result<CopyReport> {
        let _copy = spans::copy(&self.directory).entered();
        let mut attempt = 1;
        loop {
            let before = self.catalog_file_id()?;
            match once(self) {
                // Files that go while they are opened are no damage.
                Err(error)
                    if attempt < ATTEMPTS
                        && !matches!(error, Error::Interrupted | Error::Exists { .. })
                        && self.catalog_file_id()? != before => {}
                done => return done,
            }
            attempt += 1;
        }
    }

    fn catalog_file_id(&self) -> Result<u32> {
        Ok(read_control(self.storage.as_ref(), self.directory)?.current.catalog_file_id)
    }

    fn take(&self, sink: &mut dyn Sink) -> Result<(Manifest, CopyReport)> {
        let hold = LogHold::take(self.storage.as_ref(), self.clock.as_ref(), self.directory)?;
        let begun_ns = self.clock.unix_time().as_nanos() as u64;
        let source = Source::open(self.storage, self.clock, self.directory, &self.tables)?;
        self.check_base(&source)?;
        let data_sets = source.data_sets();
        let bytes = data_sets.iter().map(|data_set| u64::from(data_set.page_count()) * data_set.page_bytes() as u64).sum();
        self.progress.start("copying pages", Some(bytes), Unit::Bytes);
        let mut copied = Vec::with_capacity(data_sets.len());
        let mut report = CopyReport::default();
        let mut lsn = 0;
        let mut end = LogEnd::default();
        let mut left = data_sets;
        loop {
            for data_set in left.drain(..) {
                let (file_id, page_bytes) = (data_set.file_id(), data_set.page_bytes() as u32);
                let base = self.base.as_ref().map(CopyReader::manifest);
                let since = base.filter(|base| base.data_set(file_id).is_some()).map(|base| base.redo);
                let mut pages = Pages { file_id, page_bytes, since, lsn, sink, report: &mut report, progress: self.progress };
                let page_count = walk(&data_set, self.clock.as_ref(), &mut pages)?;
                lsn = pages.lsn;
                copied.push(CopiedDataSet { file_id, page_bytes, page_count });
            }
            let Some(log_start) = source.log_start() else {
                source.followed(0)?;
                break;
            };
            // While pages were copied, others may have been defined. Those that are defined behind this end are not in the copy.
            let defined = self.follow(&source, log_start, &mut end)?;
            left.extend(defined.into_iter().filter(|data_set| copied.iter().all(|copied| copied.file_id != data_set.file_id())));
            if left.is_empty() {
                break;
            }
        }
        report.data_sets = copied.len() as u64;
        report.damaged_indexes = source.damaged_indexes();
        let mut manifest = Manifest {
            base: self.base.as_ref().map(|base| BaseCopy { copy_id: base.copy_id(), redo: base.manifest().redo }),
            control: source.control,
            redo: 0,
            log_start: 0,
            log_end: end.at,
            segment_bytes: 0,
            begun_ns,
            last_commit_ns: end.last_commit_ns,
            data_sets: copied,
            tables: self.tables.clone(),
        };
        if let (Some(log_start), Some(checkpoint)) = (source.log_start(), &source.checkpoint) {
            (manifest.redo, manifest.log_start) = (checkpoint.redo, log_start);
            self.take_log(&mut manifest, sink)?;
            if manifest.log_end < lsn {
                let path = self.directory.join(LOG_DIRECTORY).display().to_string();
                let reason = format!("it ends at {}, but a page has a change of {lsn}", manifest.log_end);
                return Err(Error::Damaged { path, reason });
            }
        }
        drop(hold);
        self.progress.finish();
        report.log_bytes = manifest.log_end - manifest.log_start;
        (report.log_end, report.last_commit_ns) = (manifest.log_end, manifest.last_commit_ns);
        report.size_bytes = report.page_bytes;
        Ok((manifest, report))
    }

    fn check_base(&self, source: &Source) -> Result<()> {
        let Some(base) = &self.base else { return Ok(()) };
        let (control, now) = (&base.manifest().control, &source.control);
        if control.database_id != now.database_id {
            return Err(base.damaged(format!("a copy of another database than {}", self.directory.display())));
        }
        if control.log_id != now.log_id {
            return Err(base.damaged("the database has another log since: take a whole copy"));
        }
        let has = &base.manifest().tables;
        if !has.is_empty() && (self.tables.is_empty() || self.tables.iter().any(|table| !base.manifest().has_table(table))) {
            return Err(base.damaged(format!("it is a copy of {} only: what else is to be copied has no base there", has.join(", "))));
        }
        Ok(())
    }

    /// The data sets of what there is where the log ends by now.
    fn follow(&self, source: &Source, log_start: Lsn, end: &mut LogEnd) -> Result<Vec<Arc<DataSet>>> {
        let mut attempt = 1;
        loop {
            self.find_end(&source.control, log_start, end)?;
            match source.followed(end.at) {
                // A file that went meanwhile was dropped by what is logged behind this end.
                Err(error) if attempt < END_ATTEMPTS && error.is_damage() => {
                    attempt += 1;
                    self.clock.sleep(END_WAIT);
                }
                defined => return defined,
            }
        }
    }

    /// Finds the end of the log, which is read from where it ended before.
    fn find_end(&self, control: &ControlSlot, log_start: Lsn, end: &mut LogEnd) -> Result<()> {
        let directory = self.directory.join(LOG_DIRECTORY);
        let open = |at| LogReader::open(self.storage.as_ref(), &directory, control.log_id, at, 0);
        let mut reader = open(end.at.max(log_start))?;
        let mut attempt = 1;
        end.at = loop {
            match reader.next() {
                Ok(Some(record)) if RecordKind::from_u8(record.kind) == Some(RecordKind::Commit) => {
                    let commit = Commit::decode(record.body).map_err(|e| {
                        let path = directory.display().to_string();
                        Error::Damaged { path, reason: format!("the record at {}: {e}", record.start) }
                    })?;
                    end.last_commit_ns = end.last_commit_ns.max(commit.unix_time_ns);
                }
                Ok(Some(_)) => {}
                Ok(None) => break reader.end(),
                // Two groups may have been written between the look at the first one and the look behind it.
                Err(Error::Damaged { .. }) if attempt < END_ATTEMPTS => {
                    attempt += 1;
                    self.clock.sleep(END_WAIT);
                    reader = open(reader.end())?;
                }
                Err(error) => return Err(error),
            }
        };
        Ok(())
    }

    /// Copies the log, up to the end that was found.
    fn take_log(&self, manifest: &mut Manifest, sink: &mut dyn Sink) -> Result<()> {
        let (log_id, end) = (manifest.control.log_id, manifest.log_end);
        let reader = LogReader::open(self.storage.as_ref(), &self.directory.join(LOG_DIRECTORY), log_id, manifest.log_start, 0)?;
        manifest.segment_bytes = reader.segment_bytes();
        let log = LogName { log_id, segment_bytes: manifest.segment_bytes };
        self.progress.start("copying the log", Some(end - manifest.log_start), Unit::Bytes);
        let mut at = manifest.log_start;
        let mut piece = vec![0; LOG_PIECE_BYTES];
        while at < end {
            let bytes = usize::try_from(end - at).map_or(LOG_PIECE_BYTES, |left| left.min(LOG_PIECE_BYTES));
            reader.read_bytes(at, &mut piece[..bytes])?;
            sink.log(log, at, &piece[..bytes])?;
            at += bytes as u64;
            advance(self.progress, bytes as u64)?;
        }
        Ok(())
    }
}

/// Tells of progress; an error when it is to stop.
pub(super) fn advance(progress: &dyn Progress, bytes: u64) -> Result<()> {
    progress.advance(bytes);
    if progress.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

/// The pages of a data set on their way into a copy.
struct Pages<'a> {
    file_id: u32,
    page_bytes: u32,
    /// Only what was changed since.
    since: Option<Lsn>,
    /// The highest LSN of a page.
    lsn: Lsn,
    sink: &'a mut dyn Sink,
    report: &'a mut CopyReport,
    progress: &'a dyn Progress,
}

impl Visitor for Pages<'_> {
    fn wants(&self, page: &[u8]) -> bool {
        self.since.is_none_or(|since| page::lsn(page) >= since)
    }

    fn pages(&mut self, first: u32, pages: &[u8]) -> Result<()> {
        let count = pages.len() / self.page_bytes as usize;
        self.lsn = pages.chunks_exact(self.page_bytes as usize).map(page::lsn).fold(self.lsn, Lsn::max);
        self.report.pages += count as u64;
        self.report.page_bytes += pages.len() as u64;
        self.sink.pages(self.file_id, self.page_bytes, first, pages)
    }

    fn advance(&mut self, bytes: u64) -> Result<()> {
        advance(self.progress, bytes)
    }
}

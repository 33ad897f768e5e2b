//! RECOVER: from a copy, the copies that go on from it, and log, to a database as it was at some moment.
//!
//! Invariants:
//! - copies and log are checked to belong together before anything counts: ids, positions, checksums; what is missing is named;
//! - the result is the database as of one position of the log: every transaction committed before, nothing of any other;
//! - that position lies behind everything that pages of the copies have.

use super::defining::Defining;
use super::restore::NewDatabase;
use super::source::{Described, Source};
use super::stream::{CopyReader, Part};
use super::take::{LogName, Sink, advance};
use super::walk::{Visitor, walk};
use crate::database::Settings;
use crate::log::{LogParts, LogReader, SegmentSources};
use crate::{Error, Progress, Result, Unit};
use pagefold_format::FormatError;
use pagefold_format::copy::Manifest;
use pagefold_format::log::{Action, Commit, Lsn, RecordKind};
use pagefold_format::wire::Reader;
use pagefold_io::{Clock, Storage};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TELL_BYTES: u64 = 1 << 20;

/// Up to where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// The end of the log that there is.
    #[default]
    End,
    /// All transactions that committed up to this time, in nanoseconds since 1970-01-01 UTC.
    Time(u64),
    /// All log records that end at or before this position.
    Lsn(Lsn),
}

/// What to recover with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverOptions {
    /// Directories with log: archives, and the old database if it is still there.
    pub logs: Vec<PathBuf>,
    /// Up to where.
    pub until: Until,
}

/// Why it goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is no more log.
    EndOfLog,
    /// What was asked for.
    Asked,
    /// A table or index was loaded, reorganized or built then (nanoseconds since 1970-01-01 UTC), whose pages the log does not have: only a copy taken afterwards has them. Or a table that was asked for
    /// was dropped, or lost its name, and none has that since.
    TablesChanged(u64),
}

/// What was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Position in the log up to which.
    pub log_end: Lsn,
    /// Why no further.
    pub stop: Stop,
    /// The latest time of a commit that was read from the log, in nanoseconds since 1970-01-01 UTC; 0 when there was none.
    pub last_commit_ns: u64,
    /// Pages taken from copies.
    pub pages: u64,
}

/// Makes a database in the new directory `target` from a copy and those that go on from it, in their order, and log.
///
/// # Errors
/// When the directory is there, a copy is damaged or missing, a segment of the log is damaged or missing, or the copies hold more than what was asked for. There is no database then.
pub fn recover(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    target: &Path,
    copies: &[PathBuf],
    options: &RecoverOptions,
    settings: Settings,
    progress: &dyn Progress,
) -> Result<Recovered> {
    let mut chain = copies.iter().map(|path| CopyReader::open(storage.as_ref(), path)).collect::<Result<Vec<_>>>()?;
    check_chain(&chain)?;
    let Some(last) = chain.last() else { return Err(Error::Parameter("no copy to recover from".into())) };
    let (manifest, last_path) = (last.manifest().clone(), last.path().to_path_buf());
    if !manifest.tables.is_empty() {
        let only = format!("it is a copy of {} only: recover these in a database (`recover DB --table`)", manifest.tables.join(", "));
        return Err(last.damaged(only));
    }
    let mut fresh = NewDatabase::create(Arc::clone(storage), Arc::clone(clock), target)?;
    let bytes = chain.iter().map(CopyReader::length).sum();
    progress.start("reading copies", Some(bytes), Unit::Bytes);
    let mut pages = 0;
    for copy in &mut chain {
        pages += put_parts(copy, &manifest, &mut fresh, progress)?;
    }
    fresh.complete(&manifest)?;
    check_pages(storage, clock, fresh.directory(), &manifest, progress)?;
    let mut found = Found { log_end: manifest.log_end, stop: Stop::EndOfLog, last_commit_ns: manifest.last_commit_ns };
    if manifest.segment_bytes == 0 {
        if !options.logs.is_empty() || options.until != Until::End {
            let reason = "when it was taken the database had no log: it cannot be taken any further".into();
            return Err(Error::Damaged { path: last_path.display().to_string(), reason });
        }
    } else {
        let directory = fresh.log_directory();
        let described = Described::read(storage, clock, fresh.directory())?;
        let parts = fresh.log_parts(log_name(&manifest))?;
        let (made, described, tables) = (storage, &described, &manifest.tables);
        let log = Log { storage, made, manifest: &manifest, copy: &last_path, described, tables, progress };
        (found, _) = log.put_together(parts, &directory, options)?;
    }
    progress.start("applying the log", None, Unit::Bytes);
    fresh.finish(&manifest, found.log_end, settings)?;
    progress.finish();
    Ok(Recovered { log_end: found.log_end, stop: found.stop, last_commit_ns: found.last_commit_ns, pages })
}

/// Refuses copies that do not go on from each other.
pub(super) fn check_chain(chain: &[CopyReader]) -> Result<()> {
    let Some(first) = chain.first() else { return Ok(()) };
    if let Some(base) = first.manifest().base {
        return Err(first.damaged(format!("it goes on from copy {:032x}, which is missing before it", base.copy_id)));
    }
    for pair in chain.windows(2) {
        let (before, copy) = (&pair[0], &pair[1]);
        let Some(base) = copy.manifest().base else {
            return Err(copy.damaged("it is a whole copy: what comes before it is not needed, and not wanted"));
        };
        if base.copy_id != before.copy_id() {
            let before = before.path().display();
            return Err(copy.damaged(format!("it goes on from copy {:032x}, which is missing: {before} is another one", base.copy_id)));
        }
        let (old, new) = (before.manifest(), copy.manifest());
        if (old.control.database_id, old.control.log_id, old.redo) != (new.control.database_id, new.control.log_id, base.redo) {
            return Err(copy.damaged(format!("its manifest and that of {} contradict each other", before.path().display())));
        }
        if let Some(lacks) =
            new.tables.iter().find(|table| !old.has_table(table)).or_else(|| new.tables.is_empty().then(|| old.tables.first()).flatten())
        {
            return Err(copy.damaged(format!("{} does not have the same tables: {lacks}", before.path().display())));
        }
    }
    Ok(())
}

/// Puts the pages of a copy in their places, and its log if it is the last one; returns the number of pages.
fn put_parts(copy: &mut CopyReader, last: &Manifest, fresh: &mut NewDatabase, progress: &dyn Progress) -> Result<u64> {
    let own = copy.manifest().clone();
    let damaged = |copy: &CopyReader, reason: String| Err(copy.damaged(reason));
    let log = LogName { log_id: own.control.log_id, segment_bytes: own.segment_bytes };
    let (mut pages_put, mut log_end) = (0, own.log_start);
    while let Some(part) = copy.next()? {
        match part {
            Part::Pages { file_id, page_bytes, first, pages } => {
                let count = pages.len() as u32 / page_bytes;
                let known = own.data_set(file_id).filter(|d| d.page_bytes == page_bytes && first + count <= d.page_count);
                if known.is_none() {
                    return damaged(copy, format!("pages of file {file_id:08x} from {first} on, which its manifest does not have"));
                }
                match last.data_set(file_id) {
                    Some(wanted) if wanted.page_bytes == page_bytes => fresh.pages(file_id, page_bytes, first, pages)?,
                    Some(_) => return damaged(copy, format!("file {file_id:08x} has another page size in a later copy")),
                    // Dropped later.
                    None => {}
                }
                pages_put += u64::from(count);
                advance(progress, pages.len() as u64)?;
            }
            Part::Log { start, bytes } => {
                let end = start + bytes.len() as u64;
                if start != log_end || end > own.log_end {
                    return damaged(copy, format!("log from {start} to {end} where {log_end} is next"));
                }
                log_end = end;
                if own == *last {
                    fresh.log(log, start, bytes)?;
                }
                advance(progress, bytes.len() as u64)?;
            }
        }
    }
    if log_end != own.log_end {
        return damaged(copy, format!("its log ends at {log_end}, not at {}", own.log_end));
    }
    Ok(pages_put)
}

/// Reads every page that the maps name, so that none is missing or older than it should be.
fn check_pages(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    manifest: &Manifest,
    progress: &dyn Progress,
) -> Result<()> {
    let bytes = manifest.data_sets.iter().map(|d| u64::from(d.page_count) * u64::from(d.page_bytes)).sum();
    progress.start("checking pages", Some(bytes), Unit::Bytes);
    for data_set in Source::open(storage, clock, directory, &[])?.data_sets() {
        walk(&data_set, clock.as_ref(), &mut Checking { progress })?;
    }
    Ok(())
}

struct Checking<'a> {
    progress: &'a dyn Progress,
}

impl Visitor for Checking<'_> {
    fn wants(&self, _page: &[u8]) -> bool {
        false
    }

    fn pages(&mut self, _first: u32, _pages: &[u8]) -> Result<()> {
        Ok(())
    }

    fn advance(&mut self, bytes: u64) -> Result<()> {
        advance(self.progress, bytes)
    }
}

/// Where the log is to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) log_end: Lsn,
    pub(super) stop: Stop,
    pub(super) last_commit_ns: u64,
}

/// The log of a copy.
pub(super) fn log_name(manifest: &Manifest) -> LogName {
    LogName { log_id: manifest.control.log_id, segment_bytes: manifest.segment_bytes }
}

/// The log that the last copy begins.
pub(super) struct Log<'a> {
    /// Where it is taken from.
    pub(super) storage: &'a Arc<dyn Storage>,
    /// Where it is put together.
    pub(super) made: &'a Arc<dyn Storage>,
    pub(super) manifest: &'a Manifest,
    pub(super) copy: &'a Path,
    /// What there is where redo of the copy begins.
    pub(super) described: &'a Described,
    /// Only these tables, and what comes and goes of them, matter; none: all.
    pub(super) tables: &'a [String],
    pub(super) progress: &'a dyn Progress,
}

impl Log<'_> {
    /// Adds to the copy's own log what goes on from it, and finds where it is to end; the numbers of the tables that are called there as it was asked for.
    pub(super) fn put_together(&self, parts: &LogParts, directory: &Path, options: &RecoverOptions) -> Result<(Found, BTreeSet<u32>)> {
        let missing = self.gather(parts, directory, &options.logs)?;
        let (found, tables) = self.find_stop(directory, options.until)?;
        if let Some(number) = missing.filter(|_| found.stop == Stop::EndOfLog) {
            let (start, end) = parts.positions(number);
            let given = options.logs.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::Damaged {
                path: given,
                reason: format!("segment {number:016x} of the log (positions {start} to {end}) is missing, later ones are there"),
            });
        }
        Ok((found, tables))
    }

    fn open(&self, directory: &Path, from: Lsn) -> Result<LogReader> {
        LogReader::open(self.made.as_ref(), directory, self.manifest.control.log_id, from, self.manifest.log_end)
    }

    /// Adds the segments that go on from the copy's log; returns the number of one that is missing before others.
    fn gather(&self, parts: &LogParts, log_directory: &Path, directories: &[PathBuf]) -> Result<Option<u64>> {
        let end = self.manifest.log_end;
        let sources = SegmentSources::find(self.storage.as_ref(), directories, self.manifest.control.log_id)?;
        let Some(last) = sources.last() else { return Ok(None) };
        let known = self.manifest.log_start..end;
        let mut reached = end;
        for number in parts.segment_of(end)..=last {
            let places = sources.of(number);
            let (mut best, mut refused) = (None, None);
            for (i, place) in places.iter().enumerate() {
                match parts.take(self.storage.as_ref(), number, place, &known) {
                    // Another directory may have it whole.
                    Err(error) if error.is_damage() && places.len() > 1 => {
                        refused = refused.or(Some(error));
                        continue;
                    }
                    taken => taken?,
                }
                if places.len() > 1 {
                    let mut reader = self.open(log_directory, reached)?;
                    // What is damaged will be said when all is there.
                    while let Ok(Some(_)) = reader.next() {}
                    best = best.max(Some((reader.end(), usize::MAX - i)));
                }
            }
            if let Some((end, i)) = best {
                parts.take(self.storage.as_ref(), number, &places[usize::MAX - i], &known)?;
                reached = end;
            } else if let Some(error) = refused {
                return Err(error);
            } else if places.is_empty() && parts.positions(number).0.max(end) < parts.positions(number).1 {
                return Ok(Some(number));
            }
            advance(self.progress, 0)?;
        }
        Ok(None)
    }

    /// Reads the log as recovery will, up to where it is to end.
    fn find_stop(&self, directory: &Path, until: Until) -> Result<(Found, BTreeSet<u32>)> {
        self.progress.start("reading the log", None, Unit::Bytes);
        let damaged = |start: Lsn, e: FormatError| Error::Damaged {
            path: directory.display().to_string(),
            reason: format!("the record at {start}: {e}"),
        };
        let mut reader = self.open(directory, self.manifest.redo)?;
        let mut found = Found { log_end: self.manifest.redo, stop: Stop::EndOfLog, last_commit_ns: 0 };
        let mut defining = Defining::new(self.manifest, self.tables, self.described)?;
        // Names that no table has any more, since it got another one: where the log ended before that, and which tables there were. Another one may get it.
        let mut lost: BTreeMap<&str, (Found, BTreeSet<u32>)> = BTreeMap::new();
        let mut told = found.log_end;
        while let Some(record) = reader.next()? {
            let mut commit = None;
            match RecordKind::from_u8(record.kind) {
                Some(RecordKind::Commit) => commit = Some(Commit::decode(record.body).map_err(|e| damaged(record.start, e))?),
                Some(RecordKind::Action) => {
                    let action = Action::decode(record.body).map_err(|e| damaged(record.start, e))?;
                    defining.follow(&action.role)?;
                }
                Some(RecordKind::RolledBack) => {
                    let transaction = Reader::new(record.body).varint().map_err(|e| damaged(record.start, e))?;
                    defining.taken_back(transaction, 0);
                }
                _ => {}
            }
            let commit_ns = commit.map(|commit| commit.unix_time_ns);
            let too_far = match until {
                Until::End => false,
                Until::Time(time) => commit_ns.is_some_and(|commit| commit > time),
                Until::Lsn(lsn) => record.end > lsn,
            };
            if too_far {
                found.stop = Stop::Asked;
                break;
            }
            if let Some(commit) = commit {
                // What came in the copy's own part of the log and has no files in it went there, too.
                if record.start >= self.manifest.log_end && defining.is_end(commit.transaction) {
                    found.stop = Stop::TablesChanged(commit.unix_time_ns);
                    break;
                }
                let before = defining.is_about_asked(commit.transaction).then(|| (defining.tables(), defining.lacking()));
                defining.committed(commit.transaction);
                if let Some((tables, lacked)) = before {
                    let lacking = defining.lacking();
                    lost.retain(|name, _| lacking.contains(name));
                    for name in lacking.difference(&lacked).filter(|_| record.start >= self.manifest.log_end) {
                        lost.insert(name, (Found { stop: Stop::TablesChanged(commit.unix_time_ns), ..found }, tables.clone()));
                    }
                }
            }
            found.last_commit_ns = found.last_commit_ns.max(commit_ns.unwrap_or(0));
            found.log_end = record.end;
            if record.end - told >= TELL_BYTES {
                advance(self.progress, record.end - told)?;
                told = record.end;
            }
        }
        self.check_not_before_copy(&found, until)?;
        let first = lost.into_values().min_by_key(|(found, _)| found.log_end);
        Ok(first.unwrap_or_else(|| (found, defining.tables())))
    }

    /// What pages have cannot be taken away.
    fn check_not_before_copy(&self, found: &Found, until: Until) -> Result<()> {
        let Manifest { log_end, begun_ns, last_commit_ns, .. } = *self.manifest;
        let too_early = match until {
            // Without a commit in its log, those that it has are older than itself.
            Until::Time(time) => time < if last_commit_ns > 0 { last_commit_ns } else { begun_ns },
            _ => found.stop == Stop::Asked && found.log_end < log_end,
        };
        if too_early {
            let reason = "it was taken later than what is asked for: use an earlier copy, or fewer of those that go on from it".into();
            return Err(Error::Damaged { path: self.copy.display().to_string(), reason });
        }
        Ok(())
    }
}

//! A log put together from elsewhere: from the log in a copy, from archived segments, from the log of a database that is no more.
//!
//! Invariant: what is put together is of one log and has its bytes in their places; a reader then checks every record of it.

use super::record::Lsn;
use super::segment::{Geometry, SEGMENT_HEADER_BYTES, SegmentHeader, open_segment, segment_number, segment_path};
use crate::directory::LOG_DIRECTORY;
use crate::{Error, Result};
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much is copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Segments that are being put together in a directory.
#[derive(Debug)]
pub(crate) struct LogParts {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    log_id: u128,
    geometry: Geometry,
}

/// Segments of a log in some directories, by number.
#[derive(Debug, Default)]
pub(crate) struct SegmentSources(BTreeMap<u64, BTreeSet<PathBuf>>);

impl LogParts {
    /// None yet; the directory is made.
    pub(crate) fn create(storage: Arc<dyn Storage>, directory: &Path, log_id: u128, segment_bytes: u64) -> Result<LogParts> {
        let geometry = Geometry::new(segment_bytes)?;
        storage.create_directory(directory)?;
        Ok(LogParts { storage, directory: directory.to_path_buf(), log_id, geometry })
    }

    /// Puts bytes of the stream in their places.
    pub(crate) fn put(&self, start: Lsn, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for (number, offset, length) in self.geometry.parts(start, bytes.len()) {
            let (part, behind) = rest.split_at(length);
            self.segment(number)?.write_at(part, offset)?;
            rest = behind;
        }
        Ok(())
    }

    /// The file of a segment; made with its header when it is not there.
    fn segment(&self, number: u64) -> Result<Arc<dyn File>> {
        if !self.geometry.is_segment(number) {
            return Err(Error::Parameter(format!("no log has a segment {number:016x}")));
        }
        let file = self.storage.open(&segment_path(&self.directory, number), &OpenOptions::create())?;
        if file.is_empty()? {
            file.set_len(self.geometry.segment_bytes())?;
            let header = SegmentHeader { log_id: self.log_id, number, segment_bytes: self.geometry.segment_bytes() };
            file.write_at(&header.build(), 0)?;
        }
        Ok(file)
    }

    /// The segment in which a position lies.
    pub(crate) fn segment_of(&self, at: Lsn) -> u64 {
        self.geometry.segment_of(at)
    }

    /// The positions of a segment.
    pub(crate) fn positions(&self, number: u64) -> (Lsn, Lsn) {
        (self.geometry.start_of(number), self.geometry.end_of(number))
    }

    /// Takes a whole segment from a directory of this storage, in place of what is there. The bytes in `known` must be the same.
    pub(crate) fn take(&self, source: &dyn Storage, number: u64, directory: &Path, known: &Range<Lsn>) -> Result<()> {
        let (from, _) = open_segment(source, directory, number, self.log_id, Some(self.geometry), &OpenOptions::read_only())?;
        let to = self.segment(number)?;
        let (mut new, mut old) = (vec![0; PIECE_BYTES], Vec::new());
        let mut at = SEGMENT_HEADER_BYTES as u64;
        while at < self.geometry.segment_bytes() {
            let bytes = usize::try_from(self.geometry.segment_bytes() - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
            let new = &mut new[..bytes];
            read_exact_at(from.as_ref(), new, at)?;
            let position = self.geometry.start_of(number) + at - SEGMENT_HEADER_BYTES as u64;
            let place = |lsn: Lsn| usize::try_from(lsn.saturating_sub(position)).map_or(bytes, |at| at.min(bytes));
            let same = place(known.start)..place(known.end);
            old.resize(same.len(), 0);
            read_exact_at(to.as_ref(), &mut old, at + same.start as u64)?;
            if let Some(differs) = old.iter().zip(&new[same.clone()]).position(|(a, b)| a != b) {
                let path = segment_path(directory, number).display().to_string();
                let differs = position + (same.start + differs) as u64;
                return Err(Error::Damaged { path, reason: format!("it is not the log of the copy: another byte at position {differs}") });
            }
            to.write_at(new, at)?;
            at += bytes as u64;
        }
        Ok(())
    }
}

impl SegmentSources {
    /// Looks for segments of a log in these directories: archives, logs, databases.
    pub(crate) fn find(storage: &dyn Storage, directories: &[PathBuf], log_id: u128) -> Result<SegmentSources> {
        let mut sources = SegmentSources::default();
        for directory in directories {
            storage.list(directory)?;
            for place in [directory.clone(), directory.join(archive_name(log_id)), directory.join(LOG_DIRECTORY)] {
                if !storage.exists(&place)? {
                    continue;
                }
                for number in storage.list(&place)?.iter().filter_map(|path| segment_number(path)) {
                    sources.0.entry(number).or_default().insert(place.clone());
                }
            }
        }
        if sources.0.is_empty() && !directories.is_empty() {
            let path = directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::Damaged { path, reason: "no segment of the log of this database is there".into() });
        }
        Ok(sources)
    }

    /// Where a segment lies.
    pub(crate) fn of(&self, number: u64) -> Vec<PathBuf> {
        self.0.get(&number).into_iter().flatten().cloned().collect()
    }

    /// The highest number.
    pub(crate) fn last(&self) -> Option<u64> {
        self.0.keys().next_back().copied()
    }
}

/// What the segments of a log lie under in an archive.
pub(crate) fn archive_name(log_id: u128) -> String {
    format!("{log_id:032x}")
}

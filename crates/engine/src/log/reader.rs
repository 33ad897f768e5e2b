//! Reading the log forward, for recovery, and finding where it ends.
//!
//! Invariants:
//!
//! - What is returned is valid in its place; a reader that has returned its last record returns none after it.
//! - Memory is bounded by the longest record that the segments can hold: a length is believed only when so many bytes are there.
//! - A reader writes nothing.

use super::files::damaged_record;
use super::record::{FLUSH_BYTES, FLUSH_KIND, FRAME_HEADER_BYTES, Frames, Lsn, RecordRef, frame_bytes, parts};
use super::segment::{Geometry, damaged, discover, open_segment, segment_path};
use crate::{Error, Result};
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much is read at a time.
const READ_BYTES: usize = 256 << 10;

/// What is wrong with a segment.
#[derive(Clone, Debug)]
struct Refused {
    reason: String,
    /// Bytes of its file.
    length: u64,
}

/// Reads records in their order.
#[derive(Debug)]
pub struct LogReader {
    directory: PathBuf,
    geometry: Geometry,
    frames: Frames,
    segments: BTreeMap<u64, Arc<dyn File>>,
    /// Segments with headers that are not theirs, or that are too short or too long. One in which no record lies does no harm.
    refused: BTreeMap<u64, Refused>,
    /// Up to here there is no gap in the segments, and none of them is refused.
    available: Lsn,
    known_durable: Lsn,
    window: Vec<u8>,
    window_start: Lsn,
    position: Lsn,
    at_end: bool,
}

impl LogReader {
    /// Reads from `from`: the start of a record, or what [`Log::end`](super::Log::end) or [`Log::cut`](super::Log::cut) said. Up to
    /// `known_durable` the log is known to have been durable (0 when nothing is known): should it end before, it is damaged.
    ///
    /// # Errors
    /// When there is no log; when the segment of `from` is missing, or its header is damaged, of another database or of another segment; those of the
    /// device.
    pub fn open(storage: &dyn Storage, directory: &Path, log_id: u128, from: Lsn, known_durable: Lsn) -> Result<LogReader> {
        let (numbers, geometry) = discover(storage, directory, log_id)?;
        let first = geometry.segment_of(from);
        let mut segments = BTreeMap::new();
        let mut refused = BTreeMap::new();
        for number in numbers.into_iter().filter(|&number| number >= first) {
            let file = match open_segment(storage, directory, number, log_id, Some(geometry), &OpenOptions::read_only()) {
                Ok((file, _)) => file,
                Err(Error::Damaged { reason, .. }) if number > first && geometry.is_segment(number) => {
                    let file = storage.open(&segment_path(directory, number), &OpenOptions::read_only())?;
                    refused.insert(number, Refused { reason, length: file.len()? });
                    file
                }
                Err(error) => return Err(error),
            };
            segments.insert(number, file);
        }
        if !segments.contains_key(&first) {
            return Err(damaged(&segment_path(directory, first), "the segment is missing"));
        }
        let gap = (first..).find(|number| !segments.contains_key(number) || refused.contains_key(number)).unwrap_or(first);
        Ok(LogReader {
            directory: directory.to_path_buf(),
            geometry,
            frames: Frames::new(log_id),
            segments,
            refused,
            available: geometry.start_of(gap),
            known_durable,
            window: Vec::new(),
            window_start: from,
            position: from,
            at_end: false,
        })
    }

    /// Length of a segment file in bytes.
    #[must_use]
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_bytes()
    }

    /// The number of the segment in which a position lies.
    pub(crate) fn segment_of(&self, at: Lsn) -> u64 {
        self.geometry.segment_of(at)
    }

    /// Reads bytes of the stream, of records that have been read.
    ///
    /// # Errors
    /// Those of the device; when they are not in the segments.
    pub(crate) fn read_bytes(&self, start: Lsn, bytes: &mut [u8]) -> Result<()> {
        // From the first one to `available` no segment is missing.
        let first_is_there = self.segments.contains_key(&self.geometry.segment_of(start));
        if !first_is_there || start.saturating_add(bytes.len() as u64) > self.available {
            return Err(damaged_record(&self.directory, self.geometry, start, "the segment is missing"));
        }
        read_stream(self.geometry, &self.segments, start, bytes)
    }

    /// The end of what has been read; once there is no next record, the end of the log.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.position
    }

    /// The next record; `None` at the end of the log, be it clean or torn.
    ///
    /// # Errors
    /// When the log is damaged: a record is not valid although it was durable. Those of the device.
    #[expect(clippy::should_implement_trait, reason = "what it returns borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>> {
        loop {
            let start = self.position;
            if self.at_end {
                return Ok(None);
            }
            let Some(bytes) = self.frame_at(start)? else {
                self.check_end(start)?;
                self.at_end = true;
                return Ok(None);
            };
            self.position += bytes as u64;
            let at = (start - self.window_start) as usize;
            if parts(&self.window[at..at + bytes]).0 != FLUSH_KIND {
                let (kind, body) = parts(&self.window[at..at + bytes]);
                return Ok(Some(RecordRef { start, end: self.position, kind, body }));
            }
        }
    }

    /// The length of the valid frame at a position, which then is in the window.
    fn frame_at(&mut self, start: Lsn) -> Result<Option<usize>> {
        if !self.load(start, FRAME_HEADER_BYTES)? {
            return Ok(None);
        }
        let at = (start - self.window_start) as usize;
        let Some(bytes) = frame_bytes(&self.window[at..]) else { return Ok(None) };
        if !self.load(start, bytes)? {
            return Ok(None);
        }
        let at = (start - self.window_start) as usize;
        Ok(self.frames.is_valid(start, &self.window[at..at + bytes]).then_some(bytes))
    }

    /// Sees to it that so many bytes from a position on are in the window; false when they are not in the segments.
    fn load(&mut self, at: Lsn, bytes: usize) -> Result<bool> {
        let loaded = self.window_start + self.window.len() as u64;
        let Some(wanted) = at.checked_add(bytes as u64).filter(|&wanted| wanted <= self.available) else { return Ok(false) };
        if wanted > loaded {
            let to = wanted.max(loaded.saturating_add(READ_BYTES as u64)).min(self.available);
            self.window.drain(..(at - self.window_start) as usize);
            self.window_start = at;
            let old = self.window.len();
            self.window.resize((to - at) as usize, 0);
            let read = read_stream(self.geometry, &self.segments, loaded, &mut self.window[old..]);
            read.inspect_err(|_| self.window.truncate(old))?;
        }
        Ok(true)
    }

    /// No valid record starts at `at`: is that the end of the log?
    fn check_end(&mut self, at: Lsn) -> Result<()> {
        let gap = self.geometry.segment_of(self.available);
        if let Some(refused) = self.refused.get(&gap).cloned()
            && self.reaches_into(gap, at, &refused)?
        {
            return Err(damaged(&segment_path(&self.directory, gap), refused.reason));
        }
        let durable = if at < self.known_durable { Some(self.known_durable) } else { self.durable_beyond(at)? };
        let Some(durable) = durable else { return Ok(()) };
        if let Some(refused) = self.refused.get(&gap).filter(|_| durable > self.available) {
            return Err(damaged(&segment_path(&self.directory, gap), &refused.reason));
        }
        let reason = if at < self.available {
            format!("it is damaged: the log was durable up to {durable}")
        } else {
            format!("the segment is missing: the log was durable up to {durable}")
        };
        Err(damaged_record(&self.directory, self.geometry, at, &reason))
    }

    /// Has a record that starts at `at` bytes in a segment that is refused? Where that lacks bytes, one that would have.
    fn reaches_into(&mut self, segment: u64, at: Lsn, refused: &Refused) -> Result<bool> {
        if refused.length < self.geometry.segment_bytes() {
            let has_header = at + FRAME_HEADER_BYTES as u64 <= self.available && self.load(at, FRAME_HEADER_BYTES)?;
            let claimed = if has_header { frame_bytes(&self.window[(at - self.window_start) as usize..]) } else { None };
            return Ok(!has_header || claimed.is_some_and(|bytes| at + bytes as u64 > self.available));
        }
        // It is looked for in that segment, and those behind, as they are.
        let is_whole = |number: &u64| {
            let is_short = self.refused.get(number).is_some_and(|refused| refused.length < self.geometry.segment_bytes());
            self.segments.contains_key(number) && !is_short
        };
        let missing = (segment..).find(|number| !is_whole(number)).unwrap_or(segment);
        let available = std::mem::replace(&mut self.available, self.geometry.start_of(missing));
        let is_there = self.frame_at(at);
        self.available = available;
        Ok(is_there?.is_some())
    }

    /// A position beyond `at` up to which, by a Flush record behind `at`, the log was durable.
    fn durable_beyond(&self, at: Lsn) -> Result<Option<Lsn>> {
        let mut bytes = Vec::new();
        let mut start = at;
        for &number in self.segments.keys().filter(|&&number| self.geometry.end_of(number) > at) {
            let from = self.geometry.start_of(number).max(at);
            if from != start + bytes.len() as u64 {
                // Behind a gap.
                bytes.clear();
                start = from;
            }
            let mut next = from;
            // Of one that is cut off what is there counts.
            let end =
                self.refused.get(&number).map_or(self.geometry.end_of(number), |refused| self.geometry.end_in(number, refused.length));
            while next < end {
                let length = (end - next).min(READ_BYTES as u64);
                let old = bytes.len();
                bytes.resize(old + length as usize, 0);
                read_stream(self.geometry, &self.segments, next, &mut bytes[old..])?;
                if let Some((_, durable)) = self.frames.find_flushes(start, &bytes).find(|&(_, durable)| durable > at) {
                    return Ok(Some(durable));
                }
                // One may begin in the last bytes.
                let done = bytes.len().saturating_sub(FLUSH_BYTES - 1);
                bytes.drain(..done);
                start += done as u64;
                next += length;
            }
        }
        Ok(None)
    }
}

/// Where a log ended at a moment.
#[derive(Clone, Debug)]
pub(crate) struct LogEnd {
    /// The end.
    pub(crate) end: Lsn,
    /// The segment in which that lies.
    pub(crate) segment: u64,
    /// Its offset in that.
    pub(crate) offset: u64,
    /// Records between where the search began and the end.
    pub(crate) records: u64,
}

impl LogEnd {
    /// Looks for the end of a log to which another process may be writing: what follows meanwhile may be seen or not.
    ///
    /// # Errors
    /// As [`LogReader::open`] and [`LogReader::next`].
    pub(crate) fn find(storage: &dyn Storage, directory: &Path, database_id: u128, from: Lsn) -> Result<LogEnd> {
        let (mut at, mut records, mut doubtful) = (from, 0, None);
        loop {
            let mut reader = LogReader::open(storage, directory, database_id, at, 0)?;
            let ended = loop {
                match reader.next() {
                    Ok(Some(_)) => records += 1,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            let (end, geometry) = (reader.end(), reader.geometry);
            match ended {
                None => return Ok(LogEnd { end, segment: geometry.segment_of(end), offset: geometry.offset_of(end), records }),
                // The record was not whole when it was read, but was before something behind it was: it is by now, unless it is damaged.
                Some(Error::Damaged { .. }) if doubtful != Some(end) => (at, doubtful) = (end, Some(end)),
                Some(error) => return Err(error),
            }
        }
    }
}

/// Reads bytes of the stream that lie in these segments.
fn read_stream(geometry: Geometry, segments: &BTreeMap<u64, Arc<dyn File>>, start: Lsn, bytes: &mut [u8]) -> Result<()> {
    let mut rest = bytes;
    for (number, offset, length) in geometry.parts(start, rest.len()) {
        let (part, behind) = rest.split_at_mut(length);
        read_exact_at(segments[&number].as_ref(), part, offset)?;
        rest = behind;
    }
    Ok(())
}

//! The log, for writing: appending to a buffer, writing and syncing it by groups.
//!
//! Invariants:
//!
//! - `synced <= durable <= written <= end`, all of them boundaries of frames. Records below `written` are in the files; those from there on
//!   are in the group being written, then in the buffer. A record lies wholly in one of the three.
//! - A buffer that is not empty begins with room for a Flush record, filled in when the group is written.
//! - One thread at a time leads: it writes a group, and syncs if it was asked to. Meanwhile others append, and wait for it if they must.
//! - A record is in the buffer only when the segments it reaches into are durable. So writing one never lacks space.
//! - Nothing is written or synced after a write or sync failed.
//! - Locks: the buffer's is the innermost; it is not held during I/O. `publish` and `cut` run under it.

use super::files::SegmentFiles;
use super::record::{BODY_BYTES_MAX, FLUSH_BYTES, FLUSH_KIND, FRAME_HEADER_BYTES, Frames, Lsn, Record, frame_bytes, parts};
use super::segment::{Geometry, discover};
use super::turn::Turns;
use crate::{Error, Result};
use pagefold_io::{File, Storage, parent_directory};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that waits in the buffer, unless a single record is longer.
const BUFFER_BYTES_MAX: usize = 8 << 20;

/// When so much waits in the buffer, somebody in the background is asked to write it: who appends would take milliseconds for a full buffer.
const WRITTEN_AHEAD_BYTES: u64 = 1 << 20;

/// Writes end at multiples of this, filled up with zeros: so that a block of a segment used again need not be read before it is written.
const BLOCK_BYTES: u64 = 4096;
const _: () = assert!(super::segment::SEGMENT_BYTES_STEP.is_multiple_of(BLOCK_BYTES));

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Length of a segment file in bytes: 16 KB to 1 GB, a multiple of 4 KB. Counts when a log is created; it then keeps its length.
    pub segment_bytes: u64,
    /// Sync. Without, what is called durable has been written only: it survives the process, not the machine. For benchmarks against
    /// rivals that do not sync.
    pub sync: bool,
    /// How many segments that nobody needs are kept to be used again.
    pub spare_segments: usize,
}

impl Default for LogSettings {
    fn default() -> LogSettings {
        LogSettings { segment_bytes: 16 << 20, sync: true, spare_segments: 8 }
    }
}

/// Where a record was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its start: what other records point to.
    pub start: Lsn,
    /// Its end: what pages are stamped with, and what to wait for.
    pub end: Lsn,
}

/// A log that is written.
#[derive(Debug)]
pub struct Log {
    files: SegmentFiles,
    frames: Frames,
    sync: bool,
    tail: Mutex<Tail>,
    end: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    /// Durable for sure, also when `sync` is off: what Flush records name.
    synced: AtomicU64,
    /// Bytes kept for taking running transactions back.
    undo_bytes: AtomicU64,
    /// Up to where somebody has been asked to make segments ahead.
    ahead: AtomicU64,
    /// Where the log ended when there was no room for a segment last.
    refused: AtomicU64,
    /// Up to where somebody has been asked to write.
    write_asked: AtomicU64,
    turns: Turns<Wish>,
    /// Written since the last sync. Locked by whoever leads, and by nobody else.
    dirty: Mutex<BTreeMap<u64, Arc<dyn File>>>,
}

/// What a thread waits for: that the log is written, or synced, up to a position.
#[derive(Clone, Copy, Debug)]
struct Wish {
    lsn: Lsn,
    sync: bool,
}

#[derive(Debug, Default)]
struct Tail {
    end: Lsn,
    /// Position of the buffer's first byte; `end` when it is empty.
    base: Lsn,
    buffer: Vec<u8>,
    group: Option<Arc<Group>>,
    /// A buffer that was written, to be filled again.
    empty: Vec<u8>,
}

/// What is being written.
#[derive(Debug)]
struct Group {
    start: Lsn,
    end: Lsn,
    /// Longer than the group by the zeros up to the end of the block.
    bytes: Vec<u8>,
}

impl Log {
    /// A new log in a directory, which is made if it is not there. What it holds of an earlier log is removed: there was no database yet.
    /// `start` is the lowest position that a record may have, at least 1.
    ///
    /// # Errors
    /// When a setting is out of range; those of making files.
    pub fn create(storage: Arc<dyn Storage>, directory: &Path, log_id: u128, settings: LogSettings, start: Lsn) -> Result<Log> {
        let geometry = Geometry::new(settings.segment_bytes)?;
        if start == 0 {
            return Err(Error::Parameter("a log starts at position 1 or later: 0 stands for none".into()));
        }
        if !storage.exists(directory)? {
            storage.create_directory(directory)?;
        }
        storage.sync_directory(parent_directory(directory))?;
        let files = SegmentFiles::create(storage, directory, log_id, geometry, settings, start)?;
        Ok(Log::at(files, log_id, settings, start))
    }

    /// A log that a reader has read up to `end`: makes all of it durable, zeroes or removes what lies behind, and appends there.
    ///
    /// # Errors
    /// When there is no log, or its last segment is damaged; those of the device. It can be tried again: nothing before `end` has changed.
    pub fn open(storage: Arc<dyn Storage>, directory: &Path, log_id: u128, settings: LogSettings, end: Lsn) -> Result<Log> {
        let found = discover(storage.as_ref(), directory, log_id)?;
        let files = SegmentFiles::open(storage, directory, log_id, found, settings, end)?;
        Ok(Log::at(files, log_id, settings, end))
    }

    fn at(files: SegmentFiles, log_id: u128, settings: LogSettings, end: Lsn) -> Log {
        Log {
            files,
            frames: Frames::new(log_id),
            sync: settings.sync,
            tail: Mutex::new(Tail { end, base: end, ..Tail::default() }),
            end: AtomicU64::new(end),
            written: AtomicU64::new(end),
            durable: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            undo_bytes: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            write_asked: AtomicU64::new(0),
            turns: Turns::default(),
            dirty: Mutex::default(),
        }
    }

    /// Appends a record; its body is the parts one behind the other. `publish` is called under the append mutex, once the record has its
    /// place: what it counts agrees with the log at every [`cut`](Self::cut). It must be short and must not call the log.
    ///
    /// # Errors
    /// When the record is too long or of the kind 255, when a segment cannot be made (the log stays usable), when the log is poisoned. Nothing
    /// was appended then, and `publish` was not called.
    pub fn append(&self, kind: u8, body: &[&[u8]], publish: &mut dyn FnMut(Appended)) -> Result<Appended> {
        let body_bytes = body.iter().try_fold(0usize, |sum, part| sum.checked_add(part.len()));
        let Some(frame_bytes) = body_bytes.filter(|&bytes| bytes <= BODY_BYTES_MAX).map(|bytes| FRAME_HEADER_BYTES + bytes) else {
            return Err(Error::Parameter(format!("a log record has at most {BODY_BYTES_MAX} bytes")));
        };
        if kind == FLUSH_KIND {
            return Err(Error::Parameter(format!("log records of kind {FLUSH_KIND} are the log's own")));
        }
        let mut tail = self.tail.lock();
        let start = loop {
            self.files.check_poison()?;
            if !tail.buffer.is_empty() && tail.buffer.len() + frame_bytes > BUFFER_BYTES_MAX {
                MutexGuard::unlocked(&mut tail, || self.write_out())?;
                continue;
            }
            let start = tail.end.saturating_add(if tail.buffer.is_empty() { FLUSH_BYTES as u64 } else { 0 });
            let end = start.saturating_add(frame_bytes as u64);
            if end <= self.files.prepared() {
                break start;
            }
            MutexGuard::unlocked(&mut tail, || self.files.prepare(end))?;
        };
        if tail.buffer.is_empty() {
            tail.buffer.resize(FLUSH_BYTES, 0);
        }
        self.frames.put(&mut tail.buffer, start, kind, body);
        let end = start + frame_bytes as u64;
        tail.end = end;
        self.end.store(end, Ordering::Release);
        let appended = Appended { start, end };
        publish(appended);
        Ok(appended)
    }

    /// A consistent cut: calls `f` with the end of the log while nobody can append. A reader may start from there. `f` must not call the log.
    pub fn cut<R>(&self, f: impl FnOnce(Lsn) -> R) -> R {
        let tail = self.tail.lock();
        f(tail.end)
    }

    /// Where the log ends. A reader may start from there.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.end.load(Ordering::Acquire)
    }

    /// Everything below is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// Why nothing more is written, if that is so.
    #[must_use]
    pub fn poisoned(&self) -> Option<String> {
        self.files.poison.get().cloned()
    }

    /// Length of a segment file in bytes.
    #[must_use]
    pub fn segment_bytes(&self) -> u64 {
        self.files.geometry().segment_bytes()
    }

    /// Returns when everything below `lsn` is durable. The first who comes writes and syncs all there is; who comes meanwhile waits, and is
    /// served by the next.
    ///
    /// # Errors
    /// When a write or sync fails or has failed: whether what was not durable before is in the log shows when it is read. When `lsn` is
    /// beyond the end.
    pub fn make_durable(&self, lsn: Lsn) -> Result<()> {
        let end = self.end();
        if lsn > end {
            return Err(Error::Parameter(format!("log position {lsn} is beyond the end of the log, {end}")));
        }
        self.reach(Wish { lsn, sync: true })
    }

    /// Writes what has been appended, without a sync.
    ///
    /// # Errors
    /// As [`Self::make_durable`].
    pub fn write_out(&self) -> Result<()> {
        self.reach(Wish { lsn: self.end(), sync: false })
    }

    /// Makes the segment behind the one in which the log ends, if it is not there: for a thread in the background, so that no append has to.
    ///
    /// # Errors
    /// As an append that needs it.
    pub fn prepare_next(&self) -> Result<()> {
        let geometry = self.files.geometry();
        let end = self.end().saturating_add(self.undo_bytes.load(Ordering::Relaxed));
        self.files.prepare(geometry.end_of(geometry.segment_of(end)).saturating_add(1))
    }

    /// Is it time to [make a segment ahead](Self::prepare_ahead)? Says so once for each segment, and not before a quarter of it is used: most processes log less.
    pub(crate) fn wants_segment_ahead(&self) -> bool {
        let (geometry, end) = (self.files.geometry(), self.end());
        let segment = geometry.segment_of(end);
        let ahead = geometry.end_of(segment).saturating_add(geometry.segment_bytes());
        let is_due = self.files.prepared() < ahead && end - geometry.start_of(segment) >= geometry.segment_bytes() / 4;
        is_due && self.ahead.fetch_max(ahead, Ordering::Relaxed) < ahead
    }

    /// Makes the segment that was [wanted](Self::wants_segment_ahead), the one behind that of [`Self::prepare_next`]. It takes as long as writing it, and nobody waits for that when a thread in
    /// the background has made it.
    ///
    /// # Errors
    /// As an append that needs it; it is not needed yet.
    pub(crate) fn prepare_ahead(&self) -> Result<()> {
        self.files.prepare(self.ahead.load(Ordering::Relaxed))
    }

    /// Is it time to [write out](Self::write_out) what nobody waits for? Says so once for each megabyte that waits.
    pub(crate) fn wants_to_be_written(&self) -> bool {
        let asked = self.write_asked.load(Ordering::Relaxed);
        let (end, since) = (self.end(), asked.max(self.written.load(Ordering::Relaxed)));
        let is_due = end.saturating_sub(since) >= WRITTEN_AHEAD_BYTES;
        is_due && self.write_asked.compare_exchange(asked, end, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// From now on [`Self::prepare_next`] makes room for so many bytes more (or fewer): what running transactions need to be taken back.
    pub(crate) fn keep_for_undo(&self, bytes: i64) {
        let change = |kept: u64| Some(kept.saturating_add_signed(bytes));
        // The update never refuses.
        let _ = self.undo_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// As [`Self::prepare_next`], for who can do without if so many bytes are left. Where there was no room for a segment it is not tried again with each record: it costs as much as writing what there is room for.
    pub(crate) fn prepare_next_or_spare(&self, margin: u64) -> Result<()> {
        let (end, refused) = (self.end(), self.refused.load(Ordering::Relaxed));
        let is_recent = refused != 0 && (refused..refused.saturating_add(self.segment_bytes() / 64)).contains(&end);
        if is_recent && self.has_spare(margin) {
            return Ok(());
        }
        match self.prepare_next() {
            Err(error) if error.is_no_room() => {
                self.refused.store(end, Ordering::Relaxed);
                if self.has_spare(margin) { Ok(()) } else { Err(error) }
            }
            prepared => prepared,
        }
    }

    /// Is there room for so many bytes beside what is kept for taking transactions back?
    pub(crate) fn has_spare(&self, bytes: u64) -> bool {
        self.end().saturating_add(self.undo_bytes.load(Ordering::Relaxed)).saturating_add(bytes) <= self.files.prepared()
    }

    /// The numbers of the segments that [`Self::recycle`] would give back.
    pub(crate) fn segments_below(&self, lsn: Lsn) -> Vec<u64> {
        self.files.segments_below(lsn.min(self.durable()))
    }

    /// Segments wholly below `lsn` and below what is durable are kept to be used again, or removed; without `reuse` all of them are removed: who has them open
    /// still reads what they hold.
    ///
    /// # Errors
    /// Those of the device; it can be tried again.
    pub fn recycle(&self, lsn: Lsn, reuse: bool) -> Result<()> {
        self.files.recycle(lsn.min(self.durable()), reuse)
    }

    /// Leads until the wish is fulfilled, or waits for those who lead.
    fn reach(&self, wish: Wish) -> Result<()> {
        loop {
            if self.is_fulfilled(wish) {
                return Ok(());
            }
            self.files.check_poison()?;
            if self.turns.take_or_wait(wish, || self.is_fulfilled(wish) || self.files.poison.get().is_some()) {
                break;
            }
        }
        let turn = Turn(self);
        // The turn may have come from one who has seen a failure elsewhere.
        let result = self.files.check_poison().and_then(|()| self.write_group(wish.sync)).inspect_err(|error| {
            self.files.poison.get_or_init(|| error.to_string());
        });
        drop(turn);
        result
    }

    fn is_fulfilled(&self, wish: Wish) -> bool {
        let mark = if wish.sync { &self.durable } else { &self.written };
        mark.load(Ordering::Acquire) >= wish.lsn
    }

    /// Writes what is in the buffer. For the one who leads.
    fn write_group(&self, sync: bool) -> Result<()> {
        let mut dirty = self.dirty.lock();
        if let Some(group) = self.take_group() {
            self.files.write(group.start, &group.bytes, &mut dirty)?;
            self.written.store(group.end, Ordering::Release);
            let mut tail = self.tail.lock();
            tail.group = None;
            // A reader may still hold it.
            if let Some(mut group) = Arc::into_inner(group)
                && group.bytes.capacity() <= 2 * BUFFER_BYTES_MAX
            {
                group.bytes.clear();
                tail.empty = group.bytes;
            }
        }
        if sync {
            let written = self.written.load(Ordering::Acquire);
            if self.sync {
                for file in dirty.values() {
                    file.sync()?;
                }
                dirty.clear();
                self.synced.store(written, Ordering::Release);
            }
            self.durable.store(written, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the buffer, with its Flush record, and leaves an empty one.
    fn take_group(&self) -> Option<Arc<Group>> {
        let mut tail = self.tail.lock();
        if tail.buffer.is_empty() {
            return None;
        }
        let (start, end) = (tail.base, tail.end);
        let empty = std::mem::take(&mut tail.empty);
        let mut bytes = std::mem::replace(&mut tail.buffer, empty);
        bytes[..FLUSH_BYTES].copy_from_slice(&self.frames.flush(start, self.synced.load(Ordering::Acquire)));
        let padding = end.next_multiple_of(BLOCK_BYTES) - end;
        bytes.resize(bytes.len() + padding as usize, 0);
        let group = Arc::new(Group { start, end, bytes });
        tail.base = end;
        tail.group = Some(Arc::clone(&group));
        Some(group)
    }

    /// The record that starts at `start`.
    ///
    /// # Errors
    /// When none does, or it is damaged, or its segment has been recycled; those of the device.
    pub fn read(&self, start: Lsn) -> Result<Record> {
        let tail = self.tail.lock();
        if start >= tail.base {
            return self.read_from(start, start - tail.base, &tail.buffer);
        }
        let group = tail.group.as_ref().filter(|group| start >= group.start).map(Arc::clone);
        drop(tail);
        match group {
            Some(group) => self.read_from(start, start - group.start, &group.bytes),
            None => self.read_from_files(start),
        }
    }

    /// The record that starts at an offset of these bytes.
    fn read_from(&self, start: Lsn, offset: u64, bytes: &[u8]) -> Result<Record> {
        let frame = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).and_then(|rest| rest.get(..frame_bytes(rest)?));
        self.checked(start, frame.unwrap_or(&[]))
    }

    fn read_from_files(&self, start: Lsn) -> Result<Record> {
        const FIRST_BYTES: usize = 512;
        let left = usize::try_from(self.written.load(Ordering::Acquire).saturating_sub(start)).unwrap_or(usize::MAX);
        let mut first = [0; FIRST_BYTES];
        let first = &mut first[..left.min(FIRST_BYTES)];
        self.files.read(start, first)?;
        let Some(bytes) = frame_bytes(first).filter(|&bytes| bytes <= left) else {
            return self.checked(start, &[]);
        };
        if let Some(frame) = first.get(..bytes) {
            return self.checked(start, frame);
        }
        let mut frame = vec![0; bytes];
        self.files.read(start, &mut frame)?;
        self.checked(start, &frame)
    }

    fn checked(&self, start: Lsn, frame: &[u8]) -> Result<Record> {
        if !self.frames.is_valid(start, frame) {
            return Err(self.files.damaged_record(start, "no valid record starts here"));
        }
        let (kind, body) = parts(frame);
        Ok(Record { start, end: start + frame.len() as u64, kind, body: body.to_vec() })
    }
}

/// The turn to lead. When it ends by a panic, nobody knows what was written.
struct Turn<'a>(&'a Log);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.files.poison.get_or_init(|| "a write was cut short".into());
        }
        // Nothing is written after a failure: all are woken to hear of it.
        let is_poisoned = self.0.files.poison.get().is_some();
        self.0.turns.end(|&wish| is_poisoned || self.0.is_fulfilled(wish));
    }
}

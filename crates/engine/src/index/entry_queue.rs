//! Entries that wait to be looked at: in order, in bounded memory, the rest in a scratch file.
//!
//! Invariants:
//! - who puts entries in is never refused and gets no error: what cannot be kept makes the queue useless, which who takes them out is told;
//! - one takes entries out at a time;
//! - the file has no name as soon as it is open, so it goes with the process; what is read back is checked by a hash that stays in memory.

use crate::transaction::OpenScratch;
use crate::{Error, Result};
use pagefold_io::{File, read_exact_at};
use pagefold_types::{RID_BYTES, Rid};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// Entries that take so many bytes go to the file with one write.
const BLOCK_BYTES: usize = 256 << 10;
/// Before the key: its length and the RID.
const HEADER_BYTES: usize = 2 + RID_BYTES;

#[derive(Debug)]
struct Block {
    offset: u64,
    bytes: u32,
    entries: u32,
    checksum: u64,
}

#[derive(Debug, Default)]
struct Parts {
    /// The newest entries, and how many these are.
    tail: Vec<u8>,
    entries: u32,
    /// Those before, in the file.
    blocks: VecDeque<Block>,
    file: Option<Arc<dyn File>>,
    file_end: u64,
    /// Why entries are missing.
    failure: Option<Error>,
}

/// A queue of entries.
pub(crate) struct EntryQueue {
    open: OpenScratch,
    parts: Mutex<Parts>,
    /// Entries that were put in, and taken out.
    put: AtomicU64,
    taken: AtomicU64,
}

impl fmt::Debug for EntryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryQueue").field("put", &self.put).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl EntryQueue {
    pub(crate) fn new(open: OpenScratch) -> EntryQueue {
        EntryQueue { open, parts: Mutex::default(), put: AtomicU64::new(0), taken: AtomicU64::new(0) }
    }

    /// Puts an entry in; without a key it stands for its row.
    pub(crate) fn put(&self, key: &[u8], rid: Rid) {
        let Ok(length) = u16::try_from(key.len()) else {
            return self.fail(Error::Value(format!("a key of {} bytes", key.len())));
        };
        let mut parts = self.parts.lock();
        if parts.failure.is_some() {
            return;
        }
        parts.tail.extend_from_slice(&length.to_le_bytes());
        parts.tail.extend_from_slice(&rid.to_bytes());
        parts.tail.extend_from_slice(key);
        parts.entries += 1;
        self.put.fetch_add(1, Ordering::Relaxed);
        if parts.tail.len() >= BLOCK_BYTES
            && let Err(error) = parts.spill(&self.open)
        {
            parts.fail(error.into());
        }
    }

    /// Entries are missing from now on.
    pub(crate) fn fail(&self, error: Error) {
        self.parts.lock().fail(error);
    }

    /// Entries that are in it.
    pub(crate) fn len(&self) -> u64 {
        self.put.load(Ordering::Relaxed).saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Refuses a queue that lacks entries.
    ///
    /// # Errors
    /// Why that is so.
    pub(crate) fn check(&self) -> Result<()> {
        self.parts.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Takes out some of the oldest entries; none when it is empty.
    ///
    /// # Errors
    /// When entries are missing, or cannot be read.
    pub(crate) fn take(&self) -> Result<Entries> {
        let mut parts = self.parts.lock();
        if let Some(error) = &parts.failure {
            return Err(error.clone());
        }
        let entries = match parts.blocks.front() {
            None => Entries { left: std::mem::take(&mut parts.entries).into(), bytes: std::mem::take(&mut parts.tail), at: 0 },
            Some(&Block { offset, bytes, entries, checksum }) => {
                let (mut read, file) = (vec![0; bytes as usize], parts.file.clone().ok_or_else(damaged)?);
                // Who puts entries in goes on meanwhile; its place is not used again before the block is out of the list.
                drop(parts);
                read_exact_at(file.as_ref(), &mut read, offset)?;
                if xxh3_64(&read) != checksum {
                    return Err(damaged().into());
                }
                let mut parts = self.parts.lock();
                parts.blocks.pop_front();
                if parts.blocks.is_empty() {
                    parts.file_end = 0;
                    // Else it takes the space until the build is over.
                    let _ = file.set_len(0);
                }
                Entries { left: entries.into(), bytes: read, at: 0 }
            }
        };
        self.taken.fetch_add(entries.left, Ordering::Relaxed);
        Ok(entries)
    }
}

impl Parts {
    fn spill(&mut self, open: &OpenScratch) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(open()?)),
        };
        file.write_at(&self.tail, self.file_end)?;
        let (bytes, entries) = (self.tail.len() as u32, std::mem::take(&mut self.entries));
        let block = Block { offset: self.file_end, bytes, entries, checksum: xxh3_64(&self.tail) };
        self.file_end += self.tail.len() as u64;
        self.blocks.push_back(block);
        self.tail.clear();
        Ok(())
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        (self.tail, self.entries, self.blocks, self.file, self.file_end) = Default::default();
    }
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the scratch file of an index build is damaged")
}

/// Entries that were taken out.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    at: usize,
    left: u64,
}

impl Entries {
    /// How many are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }
}

impl Iterator for Entries {
    type Item = (Vec<u8>, Rid);

    fn next(&mut self) -> Option<(Vec<u8>, Rid)> {
        let (length, rest) = self.bytes.get(self.at..)?.split_first_chunk::<2>()?;
        let (rid, rest) = rest.split_first_chunk::<RID_BYTES>()?;
        let key = rest.get(..usize::from(u16::from_le_bytes(*length)))?;
        self.at += HEADER_BYTES + key.len();
        self.left = self.left.saturating_sub(1);
        Some((key.to_vec(), Rid::from_bytes(*rid)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "helpers of tests")]

    use super::*;
    use pagefold_io::{FaultOptions, FaultStorage, OpenOptions, Storage};
    use std::path::Path;

    fn queue() -> (FaultStorage, EntryQueue) {
        let storage = FaultStorage::new(FaultOptions::default());
        let opened = storage.clone();
        let open = move || opened.open(Path::new("scratch"), &OpenOptions::create());
        (storage, EntryQueue::new(Box::new(open)))
    }

    fn entry(n: u64) -> (Vec<u8>, Rid) {
        (vec![n as u8; (n % 700) as usize], Rid::new((n % 3) as u16, n as u32 % 1_000, (n % 90) as u16))
    }

    fn put(queue: &EntryQueue, numbers: std::ops::Range<u64>) {
        for (key, rid) in numbers.map(entry) {
            queue.put(&key, rid);
        }
    }

    #[test]
    fn what_is_put_in_comes_out_in_order_and_memory_stays_bounded() {
        let (_, queue) = queue();
        let (mut next, mut put_in) = (0, 0);
        for round in 0..40 {
            let more = (round * 397) % 3_000;
            put(&queue, put_in..put_in + more);
            put_in += more;
            assert_eq!(queue.len(), put_in - next);
            assert!(queue.parts.lock().tail.capacity() <= 3 * BLOCK_BYTES);
            for taken in queue.take().unwrap() {
                assert_eq!(taken, entry(next));
                next += 1;
            }
        }
        assert!(queue.parts.lock().file_end > 10 * BLOCK_BYTES as u64, "it was in the file");
        while queue.len() > 0 {
            for taken in queue.take().unwrap() {
                assert_eq!(taken, entry(next));
                next += 1;
            }
        }
        assert_eq!((next, queue.take().unwrap().count(), queue.parts.lock().file_end), (put_in, 0, 0));
    }

    #[test]
    fn who_puts_in_is_not_refused_when_the_disk_is_full() {
        let (storage, queue) = queue();
        storage.set_capacity(Some(storage.taken_bytes()));
        put(&queue, 0..10_000);
        assert!(queue.take().unwrap_err().is_no_room());
        storage.set_capacity(None);
        put(&queue, 0..10);
        assert!(queue.take().is_err(), "some are missing for good");
        assert_eq!(queue.parts.lock().tail.len(), 0);
    }

    #[test]
    fn what_has_rotted_is_an_error() {
        let (storage, queue) = queue();
        put(&queue, 0..3_000);
        storage.flip_bit(Path::new("scratch"), 1_000, 3).unwrap();
        assert!(matches!(queue.take(), Err(Error::Io(error)) if error.kind() == ErrorKind::InvalidData));
    }
}

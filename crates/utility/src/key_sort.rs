//! Sorting (key, RID) entries in bounded memory: an external merge sort.
//!
//! Entries that arrive in order are only stored, never compared again. When memory is full, a sorted run goes to a temporary file, which has all runs. As many runs are merged at once as have a block
//! of memory each; of more, the first are merged to one before, in a second file (Knuth, The Art of Computer Programming 3, 5.4.1).
//!
//! Invariants:
//! - a run is ascending by (key, RID);
//! - the last run is at the end of the file, so that it can go on;
//! - blocks of runs that are merged take no more memory than entries may, but for [`RUNS_MIN`] of them;
//! - temporary files are removed when the sorter is dropped; after a crash the next writer removes them.

use crate::{Error, Result};
use pagefold_engine::database::Database;
use pagefold_io::{AlignedBuffer, File, OpenOptions, Storage};
use pagefold_types::{RID_BYTES, Rid};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// An entry in memory: key length (u16), RID, key.
const ENTRY_HEADER: usize = 2 + RID_BYTES;
const ENTRY_BYTES_MAX: usize = ENTRY_HEADER + u16::MAX as usize;
/// Less memory does not sort.
const MEMORY_MIN: usize = 64 * 1024;
/// Bytes read, written or handed over at a time.
const BLOCK_BYTES: usize = 256 * 1024;
/// Bytes of a run that are read at a time, at least.
const RUN_BLOCK_MIN: usize = 32 * 1024;
/// Runs that can be merged at once, with however little memory.
const RUNS_MIN: usize = 4;
/// Blocks that wait to be visited.
const BLOCKS_WAITING: usize = 4;
/// Fewer entries are not worth a thread.
const ENTRIES_FOR_A_THREAD: u64 = 64 * 1024;

/// Collects entries.
pub(crate) struct KeySorter {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    name: String,
    memory_bytes: usize,
    bytes: Vec<u8>,
    starts: Vec<u32>,
    ascending: bool,
    slot_max: u16,
    count: u64,
    /// From the first run on.
    file: Option<Arc<RunFile>>,
    runs: Vec<Run>,
}

/// The temporary file.
struct RunFile {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Arc<dyn File>,
}

struct Run {
    file: Arc<RunFile>,
    /// Where it begins.
    start: u64,
    bytes: u64,
    /// Its last entry.
    last: (Vec<u8>, Rid),
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // What stays is removed at the next open.
        let _ = self.storage.remove(&self.path);
    }
}

impl KeySorter {
    /// A sorter with temporary files in the database directory; `name` tells it from others at work at the same time.
    #[must_use]
    pub(crate) fn new(database: &Database, name: &str, memory_bytes: usize) -> KeySorter {
        KeySorter::in_directory(Arc::clone(database.storage()), database.temporary_directory(), name, memory_bytes)
    }

    /// A sorter with temporary files in a directory that exists.
    #[must_use]
    pub(crate) fn in_directory(storage: Arc<dyn Storage>, directory: PathBuf, name: &str, memory_bytes: usize) -> KeySorter {
        KeySorter {
            storage,
            directory,
            name: name.to_string(),
            memory_bytes: memory_bytes.clamp(MEMORY_MIN, 1 << 30),
            bytes: Vec::new(),
            starts: Vec::new(),
            ascending: true,
            slot_max: 0,
            count: 0,
            file: None,
            runs: Vec::new(),
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// When a run cannot be written.
    pub(crate) fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        if self.ascending
            && let Some(last) = self.starts.last()
        {
            let (last_key, last_rid) = entry(&self.bytes, *last as usize);
            self.ascending = (last_key, last_rid) <= (key, rid);
        }
        let start = self.bytes.len() as u32;
        append_entry(&mut self.bytes, key, rid)?;
        self.starts.push(start);
        self.slot_max = self.slot_max.max(rid.slot());
        self.count += 1;
        if self.bytes.len() + 4 * self.starts.len() >= self.memory_bytes {
            self.spill()?;
        }
        Ok(())
    }

    /// The largest slot of all RIDs.
    #[must_use]
    pub(crate) fn slot_max(&self) -> u16 {
        self.slot_max
    }

    /// Number of entries.
    #[must_use]
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    fn sort(&mut self) {
        if !self.ascending {
            let bytes = &self.bytes;
            self.starts.sort_unstable_by(|a, b| entry(bytes, *a as usize).cmp(&entry(bytes, *b as usize)));
        }
    }

    fn run_file(&mut self) -> Result<Arc<RunFile>> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let made = self.new_file("tmp")?;
        Ok(Arc::clone(self.file.insert(made)))
    }

    fn new_file(&self, ending: &str) -> Result<Arc<RunFile>> {
        let path = self.directory.join(format!("{}.{ending}", self.name));
        let file = self.storage.open(&path, &OpenOptions::create())?;
        let made = Arc::new(RunFile { storage: Arc::clone(&self.storage), path, file });
        made.file.set_len(0)?;
        Ok(made)
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let Some((first, last)) = self.starts.first().copied().zip(self.starts.last().copied()) else { return Ok(()) };
        let file = self.run_file()?;
        let [first, last] = [first, last].map(|start| entry(&self.bytes, start as usize));
        // What goes on where a run ends is more of that run: entries that come in order are one.
        let goes_on = self.runs.last().is_some_and(|run| (&run.last.0[..], run.last.1) <= first);
        let mut run = match self.runs.pop_if(|_| goes_on) {
            Some(run) => run,
            None => {
                let start = self.runs.last().map_or(0, |run| run.start + run.bytes);
                Run { file, start, bytes: 0, last: (Vec::new(), Rid::default()) }
            }
        };
        run.last = (last.0.to_vec(), last.1);
        let mut block = Vec::with_capacity(BLOCK_BYTES + 4096);
        for start in &self.starts {
            let from = *start as usize;
            let (key, _) = entry(&self.bytes, from);
            block.extend_from_slice(&self.bytes[from..from + ENTRY_HEADER + key.len()]);
            if block.len() >= BLOCK_BYTES {
                run.append(&mut block)?;
            }
        }
        run.append(&mut block)?;
        self.runs.push(run);
        self.bytes.clear();
        self.starts.clear();
        self.ascending = true;
        Ok(())
    }

    /// Visits all entries in order. Many are sorted, read back and merged by another thread meanwhile.
    ///
    /// # Errors
    /// When a run cannot be read, or the visitor fails.
    pub(crate) fn drain(self, mut visit: impl FnMut(&[u8], Rid) -> Result<()>) -> Result<()> {
        if self.count < ENTRIES_FOR_A_THREAD {
            return self.merge(visit);
        }
        let (full, blocks) = sync_channel::<Vec<u8>>(BLOCKS_WAITING);
        let (empty, reusable) = sync_channel(BLOCKS_WAITING);
        // Whoever merges takes it: the thread, or this one if there is none to be had.
        let sorter = &Mutex::new(Some(self));
        let take = || sorter.lock().unwrap_or_else(PoisonError::into_inner).take();
        std::thread::scope(|scope| {
            let merge = move || {
                let Some(own) = take() else { return Ok(()) };
                let mut block = Vec::with_capacity(BLOCK_BYTES + ENTRY_BYTES_MAX);
                own.merge(|key, rid| {
                    append_entry(&mut block, key, rid)?;
                    if block.len() < BLOCK_BYTES {
                        return Ok(());
                    }
                    let next = reusable.try_recv().unwrap_or_default();
                    // The other side hangs up when it has failed, and says why.
                    full.send(std::mem::replace(&mut block, next)).map_err(|_| Error::Interrupted)
                })?;
                full.send(block).map_err(|_| Error::Interrupted)
            };
            let Ok(merging) = Builder::new().spawn_scoped(scope, merge) else {
                return take().map_or(Ok(()), |own| own.merge(visit));
            };
            let visited = blocks.into_iter().try_for_each(|mut block| {
                let mut at = 0;
                while at < block.len() {
                    let (key, rid) = entry(&block, at);
                    at += ENTRY_HEADER + key.len();
                    visit(key, rid)?;
                }
                block.clear();
                let _ = empty.try_send(block);
                Ok(())
            });
            let merged = merging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            visited.and(merged)
        })
    }

    /// Visits all entries in order.
    fn merge(mut self, mut visit: impl FnMut(&[u8], Rid) -> Result<()>) -> Result<()> {
        self.sort();
        if self.runs.is_empty() {
            return self.starts.iter().try_for_each(|start| {
                let (key, rid) = entry(&self.bytes, *start as usize);
                visit(key, rid)
            });
        }
        if !self.starts.is_empty() {
            self.spill()?;
        }
        (self.bytes, self.starts, self.file) = (Vec::new(), Vec::new(), None);
        self.merge_first_runs()?;
        merge_runs(&self.runs, self.memory_bytes, visit)
    }

    /// Makes of the first runs one, until there are no more than can be merged at once.
    fn merge_first_runs(&mut self) -> Result<()> {
        let most = (self.memory_bytes / RUN_BLOCK_MIN).max(RUNS_MIN);
        let mut file: Option<Arc<RunFile>> = None;
        let mut end = 0;
        while self.runs.len() > most {
            let merged = match &file {
                Some(file) => Arc::clone(file),
                None => Arc::clone(file.insert(self.new_file("merged.tmp")?)),
            };
            let runs: Vec<Run> = self.runs.drain(..most.min(self.runs.len() - most + 1)).collect();
            let mut run = Run { file: merged, start: end, bytes: 0, last: (Vec::new(), Rid::default()) };
            let mut block = Vec::with_capacity(BLOCK_BYTES + 4096);
            merge_runs(&runs, self.memory_bytes, |key, rid| {
                append_entry(&mut block, key, rid)?;
                if block.len() < BLOCK_BYTES { Ok(()) } else { run.append(&mut block) }
            })?;
            run.append(&mut block)?;
            end += run.bytes;
            self.runs.push(run);
        }
        Ok(())
    }
}

/// Visits all entries of some runs in order.
fn merge_runs(runs: &[Run], memory_bytes: usize, mut visit: impl FnMut(&[u8], Rid) -> Result<()>) -> Result<()> {
    let block_bytes = (memory_bytes / runs.len().max(1)).clamp(RUN_BLOCK_MIN, BLOCK_BYTES);
    let mut readers = Vec::with_capacity(runs.len());
    let mut heap = BinaryHeap::new();
    for (number, run) in runs.iter().enumerate() {
        let mut reader = RunReader::new(run, block_bytes);
        if let Some(first) = reader.next()? {
            heap.push(Reverse((first, number)));
        }
        readers.push(reader);
    }
    while let Some(Reverse(((key, rid), number))) = heap.pop() {
        visit(&key, rid)?;
        let reader: &mut RunReader<'_> = &mut readers[number];
        if let Some(next) = reader.next_into(key)? {
            heap.push(Reverse((next, number)));
        }
    }
    Ok(())
}

fn append_entry(bytes: &mut Vec<u8>, key: &[u8], rid: Rid) -> Result<()> {
    let length = u16::try_from(key.len()).map_err(|_| Error::Data(format!("a key of {} bytes", key.len())))?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&rid.to_bytes());
    bytes.extend_from_slice(key);
    Ok(())
}

/// The entry at an offset.
fn entry(bytes: &[u8], at: usize) -> (&[u8], Rid) {
    let length = usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let mut rid = [0; RID_BYTES];
    rid.copy_from_slice(&bytes[at + 2..at + ENTRY_HEADER]);
    (&bytes[at + ENTRY_HEADER..at + ENTRY_HEADER + length], Rid::from_bytes(rid))
}

impl Run {
    fn append(&mut self, block: &mut Vec<u8>) -> Result<()> {
        self.file.file.write_at(block, self.start + self.bytes)?;
        self.bytes += block.len() as u64;
        block.clear();
        Ok(())
    }
}

struct RunReader<'a> {
    run: &'a Run,
    offset: u64,
    buffer: AlignedBuffer,
    at: usize,
    end: usize,
}

impl<'a> RunReader<'a> {
    fn new(run: &'a Run, block_bytes: usize) -> RunReader<'a> {
        RunReader { run, offset: 0, buffer: AlignedBuffer::new(block_bytes & !4095, 4096), at: 0, end: 0 }
    }

    fn next(&mut self) -> Result<Option<(Vec<u8>, Rid)>> {
        self.next_into(Vec::new())
    }

    /// The next entry, in a vector that is used again.
    fn next_into(&mut self, mut key: Vec<u8>) -> Result<Option<(Vec<u8>, Rid)>> {
        let mut header = [0; ENTRY_HEADER];
        if !self.fill(&mut header)? {
            return Ok(None);
        }
        let mut rid = [0; RID_BYTES];
        rid.copy_from_slice(&header[2..]);
        let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
        if length == 0 {
            // No key is empty: what was written is not there.
            return Err(Error::Data(format!("{} has an entry without a key", self.run.file.path.display())));
        }
        key.resize(length, 0);
        if !self.fill(&mut key)? {
            return Err(Error::Data(format!("{} ends in the middle of an entry", self.run.file.path.display())));
        }
        Ok(Some((key, Rid::from_bytes(rid))))
    }

    /// Fills `out`; false at the end of the run.
    fn fill(&mut self, out: &mut [u8]) -> Result<bool> {
        let mut done = 0;
        while done < out.len() {
            if self.at == self.end {
                let left = (self.run.bytes - self.offset).min(self.buffer.len() as u64) as usize;
                if left == 0 {
                    return Ok(false);
                }
                pagefold_io::read_exact_at(self.run.file.file.as_ref(), &mut self.buffer[..left], self.run.start + self.offset)?;
                self.offset += left as u64;
                self.at = 0;
                self.end = left;
            }
            let part = (out.len() - done).min(self.end - self.at);
            out[done..done + part].copy_from_slice(&self.buffer[self.at..self.at + part]);
            self.at += part;
            done += part;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_io::MemoryStorage;

    /// Enough for several runs, and for a thread.
    const ENTRIES: u32 = 100_000;

    fn sorter() -> KeySorter {
        sorter_with(1 << 20)
    }

    fn sorter_with(memory_bytes: usize) -> KeySorter {
        let storage = MemoryStorage::new();
        let directory = PathBuf::from("sorted");
        storage.create_directory(&directory).unwrap();
        KeySorter::in_directory(Arc::new(storage), directory, "keys", memory_bytes)
    }

    fn key(number: u32) -> (Vec<u8>, Rid) {
        let mut key = number.to_be_bytes().to_vec();
        key.resize(4 + number as usize % 30, 7);
        (key, Rid::new(0, number, (number % 100) as u16))
    }

    /// Entries in this order: the sorter has so many runs then, and gives all of them in ascending order.
    fn sorts(order: impl Iterator<Item = u32>, runs: std::ops::RangeInclusive<usize>) {
        let mut sorter = sorter();
        order.for_each(|number| {
            let (key, rid) = key(number);
            sorter.push(&key, rid).unwrap();
        });
        assert!(runs.contains(&sorter.runs.len()), "{} runs", sorter.runs.len());
        let mut next = 0;
        sorter
            .drain(|found, rid| {
                assert_eq!((found.to_vec(), rid), key(next));
                next += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(next, ENTRIES);
    }

    #[test]
    fn entries_in_any_order_come_out_sorted() {
        sorts(0..ENTRIES, 1..=1);
        sorts((0..ENTRIES).rev(), 2..=20);
        sorts((0..ENTRIES).map(|number| number * 7_919 % ENTRIES), 2..=20);
        // In order, but for the first.
        sorts((1..ENTRIES).chain([0]), 1..=2);
        sorts([ENTRIES - 1].into_iter().chain(0..ENTRIES - 1), 2..=20);
    }

    /// With so little memory only four runs are merged at once: there are some 50, and 4 after enough of them have become one. Both files go.
    #[test]
    fn more_runs_than_are_merged_at_once() {
        for order in [|number: u32| ENTRIES - 1 - number, |number: u32| number * 7_919 % ENTRIES] {
            let mut sorter = sorter_with(MEMORY_MIN);
            (0..ENTRIES).map(order).map(key).for_each(|(key, rid)| sorter.push(&key, rid).unwrap());
            assert!(sorter.runs.len() > RUNS_MIN * RUNS_MIN, "{} runs", sorter.runs.len());
            let (storage, directory) = (Arc::clone(&sorter.storage), sorter.directory.clone());
            let (mut next, mut files) = (0, 0);
            sorter
                .drain(|found, rid| {
                    if next == ENTRIES / 2 {
                        files = storage.list(&directory).unwrap().len();
                    }
                    assert_eq!((found.to_vec(), rid), key(next));
                    next += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(next, ENTRIES);
            assert!((1..=2).contains(&files), "{files} files while the last are merged");
            assert!(storage.list(&directory).unwrap().is_empty());
        }
    }

    /// A run that was merged from others, and cannot be written, or read back.
    #[test]
    fn a_disk_that_is_full_while_runs_are_merged_ends_it() {
        let mut sorter = sorter_with(MEMORY_MIN);
        (0..ENTRIES).rev().map(key).for_each(|(key, rid)| sorter.push(&key, rid).unwrap());
        let before = sorter.runs.len();
        sorter.directory = PathBuf::from("nowhere");
        assert!(before > RUNS_MIN && sorter.drain(|_, _| Ok(())).is_err());
    }

    /// Sorted by a thread, and without one.
    #[test]
    fn a_run_that_cannot_be_read_ends_it() {
        for count in [ENTRIES_FOR_A_THREAD as u32 - 1, ENTRIES] {
            let mut sorter = sorter();
            (0..count).rev().for_each(|number| sorter.push(&key(number).0, key(number).1).unwrap());
            let run = &sorter.runs[0];
            run.file.file.set_len(run.start + run.bytes / 2).unwrap();
            let mut seen = 0;
            let outcome = sorter.drain(|_, _| {
                seen += 1;
                Ok(())
            });
            assert!(outcome.is_err() && seen < count, "{outcome:?} after {seen}");
        }
    }

    #[test]
    fn a_visitor_that_fails_ends_it() {
        for at in [0, 1, 70_000, ENTRIES - 1] {
            let mut sorter = sorter();
            (0..ENTRIES).for_each(|number| sorter.push(&key(number).0, key(number).1).unwrap());
            let mut seen = 0;
            let outcome = sorter.drain(|_, _| {
                seen += 1;
                if seen > at { Err(Error::Data("enough".into())) } else { Ok(()) }
            });
            assert_eq!(outcome.unwrap_err().to_string(), "enough");
            assert_eq!(seen, at + 1);
        }
    }
}

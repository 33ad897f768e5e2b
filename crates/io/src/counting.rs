//! Counts what goes through the seam.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::storage::{File, Lock, LockKind, OpenOptions, Storage};

/// What went through since the start, or between two readings (see [`since`](Self::since)). Calls that failed count as calls but carry no
/// bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Calls of `read_at`.
    pub reads: u64,
    /// Bytes that they delivered.
    pub read_bytes: u64,
    /// Calls of `write_at`.
    pub writes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
    /// Calls of `sync`.
    pub syncs: u64,
    /// Calls of `sync_directory`.
    pub directory_syncs: u64,
    /// Calls of `set_len`, `allocate` and `punch_hole`.
    pub space_changes: u64,
    /// Files opened, locks included.
    pub opens: u64,
    /// Files and directories created, removed or renamed by name; files created on open count as opens.
    pub name_changes: u64,
}

impl IoCounts {
    /// What came in between.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.wrapping_sub(earlier.reads),
            read_bytes: self.read_bytes.wrapping_sub(earlier.read_bytes),
            writes: self.writes.wrapping_sub(earlier.writes),
            written_bytes: self.written_bytes.wrapping_sub(earlier.written_bytes),
            syncs: self.syncs.wrapping_sub(earlier.syncs),
            directory_syncs: self.directory_syncs.wrapping_sub(earlier.directory_syncs),
            space_changes: self.space_changes.wrapping_sub(earlier.space_changes),
            opens: self.opens.wrapping_sub(earlier.opens),
            name_changes: self.name_changes.wrapping_sub(earlier.name_changes),
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    directory_syncs: AtomicU64,
    space_changes: AtomicU64,
    opens: AtomicU64,
    name_changes: AtomicU64,
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// A storage that passes everything on to another and counts it. Clones share the counters.
#[derive(Debug, Clone)]
pub struct CountingStorage {
    inner: Arc<dyn Storage>,
    counters: Arc<Counters>,
}

impl CountingStorage {
    /// Counts what goes to `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self { inner, counters: Arc::default() }
    }

    /// What went through so far.
    #[must_use]
    pub fn counts(&self) -> IoCounts {
        let counters = &*self.counters;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoCounts {
            reads: load(&counters.reads),
            read_bytes: load(&counters.read_bytes),
            writes: load(&counters.writes),
            written_bytes: load(&counters.written_bytes),
            syncs: load(&counters.syncs),
            directory_syncs: load(&counters.directory_syncs),
            space_changes: load(&counters.space_changes),
            opens: load(&counters.opens),
            name_changes: load(&counters.name_changes),
        }
    }
}

impl Storage for CountingStorage {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        add(&self.counters.opens, 1);
        let inner = self.inner.open(path, options)?;
        Ok(Arc::new(CountingFile { inner, counters: Arc::clone(&self.counters) }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.rename(from, to)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(directory)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        add(&self.counters.directory_syncs, 1);
        self.inner.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        add(&self.counters.opens, 1);
        self.inner.lock(path)
    }

    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>> {
        add(&self.counters.opens, 1);
        self.inner.lock_within(path, kind, limit)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.real_path(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<String> {
        self.inner.lock_holder(path)
    }
}

#[derive(Debug)]
struct CountingFile {
    inner: Arc<dyn File>,
    counters: Arc<Counters>,
}

impl File for CountingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        add(&self.counters.reads, 1);
        let read = self.inner.read_at(buf, offset)?;
        add(&self.counters.read_bytes, read as u64);
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        add(&self.counters.writes, 1);
        self.inner.write_at(buf, offset)?;
        add(&self.counters.written_bytes, buf.len() as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        add(&self.counters.syncs, 1);
        self.inner.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        add(&self.counters.space_changes, 1);
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        add(&self.counters.space_changes, 1);
        self.inner.allocate(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        add(&self.counters.space_changes, 1);
        self.inner.punch_hole(offset, len)
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

//! A storage whose syncs take a while, as those of devices do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::storage::{File, Lock, LockKind, OpenOptions, Storage};

/// Passes everything on; each sync of a file first does something.
#[derive(Clone)]
pub struct SlowSync {
    inner: Arc<dyn Storage>,
    wait: Arc<dyn Fn() + Send + Sync>,
}

impl SlowSync {
    /// `wait` is called before each sync of a file: to sleep, or to wait for others.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>, wait: impl Fn() + Send + Sync + 'static) -> SlowSync {
        SlowSync { inner, wait: Arc::new(wait) }
    }
}

impl fmt::Debug for SlowSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlowSync").field(&self.inner).finish()
    }
}

impl Storage for SlowSync {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(SlowFile { inner: self.inner.open(path, options)?, storage: self.clone() }))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(directory)
    }
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.create_directory(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_directory(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_directory(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>> {
        self.inner.lock_within(path, kind, limit)
    }
}

#[derive(Debug)]
struct SlowFile {
    inner: Arc<dyn File>,
    storage: SlowSync,
}

impl File for SlowFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(buf, offset)
    }
    fn sync(&self) -> io::Result<()> {
        (self.storage.wait)();
        self.inner.sync()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.allocate(offset, len)
    }
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.punch_hole(offset, len)
    }
    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
    fn path(&self) -> &Path {
        self.inner.path()
    }
}

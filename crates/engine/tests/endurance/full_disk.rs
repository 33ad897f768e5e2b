//! A disk of the operating system that is full when it is told to be: what is there can be written, nothing grows, no file is made.

use pagefold_io::{File, Lock, LockKind, OpenOptions, OsStorage, Storage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Clones are one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    full: Arc<AtomicBool>,
}

impl Disk {
    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    /// Refuses what takes more room.
    fn need_room(&self, grows: impl FnOnce() -> io::Result<bool>) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) && grows()? {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the disk is said to be full"));
        }
        Ok(())
    }
}

impl Storage for Disk {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        self.need_room(|| Ok((options.create || options.create_new) && !OsStorage.exists(path)?))?;
        Ok(Arc::new(FileOnDisk { inner: OsStorage.open(path, options)?, disk: self.clone() }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsStorage.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsStorage.rename(from, to)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        OsStorage.exists(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        OsStorage.list(directory)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.need_room(|| Ok(true))?;
        OsStorage.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        OsStorage.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        OsStorage.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        OsStorage.lock(path)
    }

    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>> {
        OsStorage.lock_within(path, kind, limit)
    }
}

#[derive(Debug)]
struct FileOnDisk {
    inner: Arc<dyn File>,
    disk: Disk,
}

impl FileOnDisk {
    fn need_room_to(&self, end: u64) -> io::Result<()> {
        self.disk.need_room(|| Ok(end > self.inner.len()?))
    }
}

impl File for FileOnDisk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.need_room_to(offset + buf.len() as u64)?;
        self.inner.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.need_room_to(len)?;
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.need_room_to(offset + len)?;
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

//! The storage seam: what the engine may ask of a file system.
//!
//! Rules that every implementation keeps:
//!
//! - A file is an inode: handles stay valid after its name was removed or renamed, and two handles of one file see each other's writes.
//! - What `write_at`, `set_len`, `allocate` and `punch_hole` did is durable after [`File::sync`] of any handle of the file; before, a
//!   crash may keep, lose or tear each write on its own, in any order, at sector granularity.
//! - That a name exists, is gone or was renamed is durable after [`Storage::sync_directory`] of its directory (of both, when a rename goes
//!   from one to another). A rename is atomic. Syncing a file does not make its name durable.
//! - After a failed [`File::sync`] nothing is known about the unsynced writes. Do not retry it: the retry may succeed although data was
//!   dropped.
//! - Every error names the path.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{error_at, error_on};

/// How to open a file. The default opens an existing file for reading, buffered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Also for writing. Reading is always possible.
    pub write: bool,
    /// Create the file if it is not there. Needs `write`.
    pub create: bool,
    /// Create the file; fail with [`io::ErrorKind::AlreadyExists`] if it is there. Needs `write`.
    pub create_new: bool,
    /// Bypass the operating system's cache where that is possible; [`File::alignment`] says whether it was and what it asks for.
    pub direct: bool,
}

impl OpenOptions {
    /// An existing file, for reading.
    #[must_use]
    pub const fn read_only() -> Self {
        Self { write: false, create: false, create_new: false, direct: false }
    }

    /// An existing file, for reading and writing.
    #[must_use]
    pub const fn read_write() -> Self {
        Self { write: true, create: false, create_new: false, direct: false }
    }

    /// For reading and writing; created if it is not there. What the file holds stays: there is no truncation on open.
    #[must_use]
    pub const fn create() -> Self {
        Self { write: true, create: true, create_new: false, direct: false }
    }

    /// For reading and writing; must not exist yet.
    #[must_use]
    pub const fn create_new() -> Self {
        Self { write: true, create: true, create_new: true, direct: false }
    }

    /// The same with direct I/O asked for or not.
    #[must_use]
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Creating needs `write`.
    pub(crate) fn check(&self, path: &Path) -> io::Result<()> {
        if (self.create || self.create_new) && !self.write {
            return Err(error_on("open", path, io::Error::new(io::ErrorKind::InvalidInput, "creating a file needs write access")));
        }
        Ok(())
    }
}

/// A file system, or something that behaves like one.
pub trait Storage: Send + Sync + Debug {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists`, `IsADirectory`; `InvalidInput` for `create` or `create_new` without `write`; whatever the system says.
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>>;

    /// Removes a file's name; the space comes back when the last handle is dropped.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory` for a directory.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or directory another name, atomically replacing a file that has it.
    ///
    /// # Errors
    /// `NotFound`; a directory does not replace a file nor a file a directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Whether the name exists, as a file or as a directory.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// The paths (`directory` joined with the name) of the files and directories directly inside, sorted.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Creates one directory; its parent must exist.
    ///
    /// # Errors
    /// `AlreadyExists`, also when a file has the name; `NotFound` without the parent.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `DirectoryNotEmpty`.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;

    /// Makes all creations, removals and renames directly inside durable.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, or the device's error; after that nothing is known about what was to be made durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Takes the exclusive advisory lock on a file, which is created if it is not there and stays there. Released on drop, and when the
    /// process ends in whatever way.
    ///
    /// # Errors
    /// `WouldBlock` when it is taken, by this process or another.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// As [`lock`](Storage::lock), of either kind, and waits while it is taken, for as long as `limit`. In which order those who wait get it is not
    /// said. Shared locks exclude exclusive ones only.
    ///
    /// # Errors
    /// `TimedOut` when it is taken for longer; never `WouldBlock`.
    fn lock_within(&self, path: &Path, kind: LockKind, limit: Duration) -> io::Result<Box<dyn Lock>>;

    /// Where a path leads to that is there, by whatever links; the path itself where there are none.
    ///
    /// # Errors
    /// `NotFound`, where links lead nowhere, too.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Who has a lock on a file, in words that follow "is held by"; `None` where nobody can tell.
    fn lock_holder(&self, path: &Path) -> Option<String> {
        let _ = path;
        None
    }
}

/// Whom a lock excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Exclusive locks.
    Shared,
    /// All other locks.
    Exclusive,
}

/// A lock that is held until it is dropped.
pub trait Lock: Send + Sync + Debug {
    /// The lock file.
    fn path(&self) -> &Path;
}

/// An open file, addressed by offset. Closed on drop, without a sync.
pub trait File: Send + Sync + Debug {
    /// Reads into `buf` and returns the number of bytes: fewer than `buf.len()` at the end of the file, 0 at or beyond it. (A fault may cut
    /// a read short elsewhere; [`read_exact_at`] asks for the rest.) Any offset, length and memory address will do; a direct file copies
    /// through a buffer of its own when they are not aligned.
    ///
    /// # Errors
    /// The device's.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `buf`, extending the file as needed; a gap reads as zeros.
    ///
    /// # Errors
    /// The device's, after which any part of `buf` may have been written. `StorageFull`. `PermissionDenied` when the file was not opened
    /// for writing. `InvalidInput` when `offset` or `buf.len()` is not a multiple of [`alignment`](File::alignment).
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything written so far durable, the length included. Not the file's name.
    ///
    /// # Errors
    /// The device's; unsynced data may be gone then, and a second call may succeed regardless.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros that take no space.
    ///
    /// # Errors
    /// The device's. `PermissionDenied` when the file was not opened for writing.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Bytes in the file.
    ///
    /// # Errors
    /// The device's.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// As [`len`](File::len).
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reserves space for the range and extends the file to its end when it ends before; content stays, new bytes read as zeros. Writes
    /// into the range do not run out of space later, where the file system can promise it.
    ///
    /// # Errors
    /// `StorageFull`, after which the file may have grown in part. `PermissionDenied`.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Gives the space of a range back; it reads as zeros. The length of the file stays.
    ///
    /// # Errors
    /// The device's. `PermissionDenied`.
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()>;

    /// What offset and length of a write must be a multiple of, and what best suits all I/O, memory addresses included: 1 when there is
    /// no such rule (buffered), else a power of two.
    fn alignment(&self) -> usize;

    /// The path it was opened under.
    fn path(&self) -> &Path;
}

/// Fills `buf` from `offset`, over as many reads as it takes.
///
/// # Errors
/// `UnexpectedEof` when the file ends before; the device's errors. Both name path and offset.
pub fn read_exact_at(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        let at = offset.saturating_add(done as u64);
        match file.read_at(&mut buf[done..], at) {
            Ok(0) => {
                let wanted = buf.len() - done;
                let end = io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file ends here, {wanted} more bytes were expected"));
                return Err(error_at("read", file.path(), at, end));
            }
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

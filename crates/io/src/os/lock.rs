//! Locks of the operating system: `flock`, which belongs to the open file, so that it also excludes within the process.
//!
//! A lock is given up by its own call, not only by closing the file: a process that another thread starts has a copy of every open file until it runs its
//! program, and the lock would go on with the copy. What is left when a process ends goes with its files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use crate::clock::Clock;
use crate::error::error_on;
use crate::os::clock::OsClock;
use crate::os::storage::open_regular;
use crate::storage::{Lock, LockKind, OpenOptions};

/// Who waits looks again after so long at first, and after twice as long each time, up to `LOOK_MAX`: the system has no lock with a limit.
const LOOK_MIN: Duration = Duration::from_micros(50);
const LOOK_MAX: Duration = Duration::from_millis(4);

/// Takes a lock, or gives up when it is still taken after `limit`: with what `taken` says.
pub(super) fn take(path: &Path, kind: LockKind, limit: Duration, taken: io::ErrorKind) -> io::Result<OsLock> {
    let file = open_to_lock(path).map_err(|error| error_on("lock", path, error))?;
    let operation = match kind {
        LockKind::Shared => FlockOperation::NonBlockingLockShared,
        LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    let mut began = None;
    let mut pause = LOOK_MIN;
    loop {
        match flock(&file, operation) {
            Ok(()) => return Ok(OsLock { path: path.to_owned(), file }),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => {
                let now = OsClock.monotonic();
                let waited = now - *began.get_or_insert(now);
                if waited >= limit {
                    return Err(error_on("lock", path, taken.into()));
                }
                OsClock.sleep(pause.min(limit - waited));
                pause = (pause * 2).min(LOOK_MAX);
            }
            Err(error) => return Err(error_on("lock", path, error.into())),
        }
    }
}

/// One that is there is locked also where nothing can be written.
fn open_to_lock(path: &Path) -> io::Result<fs::File> {
    match open_regular(path, &OpenOptions::create()) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::StorageFull) =>
        {
            open_regular(path, &OpenOptions::read_only()).map_err(|_| error)
        }
        opened => opened,
    }
}

/// How often the list of locks is read where it does not have one that is held: the system lists in pieces, and passes over locks when others go meanwhile.
const LOOKS_FOR_HOLDER: usize = 4;

/// The process that has a lock on a file, in words, where the system tells.
pub(super) fn holder(path: &Path) -> Option<String> {
    let locked = fs::metadata(path).ok()?;
    let device = locked.dev();
    let name = format!("{:02x}:{:02x}:{}", major(device), minor(device), locked.ino());
    let listed = || {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        // "1: FLOCK  ADVISORY  WRITE 1234 fe:00:262161 0 EOF"; "1: -> ..." waits for it.
        locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&name.as_str())).then(|| words[4].to_owned())
        })
    };
    let process = (0..LOOKS_FOR_HOLDER).find_map(|_| listed())?;
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let program = field("Name:").map_or(String::new(), |program| format!(" ({program})"));
    let stopped = if field("State:").is_some_and(|state| state.starts_with(['T', 't'])) { ", which is stopped" } else { "" };
    Some(format!("process {process}{program}{stopped}"))
}

#[derive(Debug)]
pub(super) struct OsLock {
    path: PathBuf,
    file: fs::File,
}

impl Lock for OsLock {
    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Closing the file comes next, and gives it up too where this fails.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_when_it_is_given_up_though_a_process_being_started_has_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let exclusive = || take(&path, LockKind::Exclusive, Duration::ZERO, io::ErrorKind::WouldBlock);
        let lock = exclusive().unwrap();
        // What a process has between being made and running its program.
        let copy = lock.file.try_clone().unwrap();
        assert_eq!(exclusive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        exclusive().unwrap();
        drop(copy);
    }
}

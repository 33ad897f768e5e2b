//! Files of data sets that are open: so many at most that a process may have.
//!
//! Invariants:
//! - a file is opened when it is first read or written, and may be closed at any time that nobody reads or writes it;
//! - before a file is closed, what was written to it is made durable: an error of that is met by whoever uses the file next, and by all after him;
//! - no more are open than may be, beside those that somebody is using.

use crate::{Error, Result};
use pagefold_io::File;
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The file of one data set.
#[derive(Debug, Default)]
pub(crate) struct FileCell {
    file: RwLock<Option<Arc<dyn File>>>,
    /// Asked for since it was last looked at.
    used: AtomicBool,
    /// What was written to it could not be made durable.
    failed: RwLock<Option<String>>,
}

impl FileCell {
    /// The file, if it is open.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<dyn File>> {
        let file = self.file.read().clone();
        if file.is_some() {
            self.used.store(true, Ordering::Relaxed);
        }
        file
    }

    /// Refuses when something written to it was lost.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.failed.read() {
            Some(reason) => Err(Error::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// The file is gone, or is about to be removed.
    pub(crate) fn forget(&self) {
        *self.file.write() = None;
    }

    /// Closes the file, unless somebody uses it. False when it is open still.
    fn close(&self) -> bool {
        let mut file = self.file.write();
        let Some(open) = &*file else { return true };
        if Arc::strong_count(open) > 1 {
            return false;
        }
        if let Err(error) = open.sync() {
            *self.failed.write() = Some(error.to_string());
        }
        *file = None;
        true
    }
}

/// All files that are open.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    most: usize,
    /// In the order in which they were opened, or met again.
    open: Mutex<VecDeque<Weak<FileCell>>>,
}

impl OpenFiles {
    /// So many at most.
    pub(crate) fn new(most: usize) -> OpenFiles {
        OpenFiles { most, open: Mutex::default() }
    }

    /// The file of a data set, opened now unless it is open.
    pub(crate) fn get(&self, cell: &Arc<FileCell>, open: impl FnOnce() -> Result<Arc<dyn File>>) -> Result<Arc<dyn File>> {
        if let Some(file) = cell.get() {
            return Ok(file);
        }
        cell.check()?;
        let mut place = cell.file.write();
        if let Some(file) = &*place {
            return Ok(Arc::clone(file));
        }
        let file = open()?;
        *place = Some(Arc::clone(&file));
        drop(place);
        self.opened(cell);
        Ok(file)
    }

    /// A file was opened: another one may have to go, the one that was not used for longest by the second chance that each has.
    pub(crate) fn opened(&self, cell: &Arc<FileCell>) {
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(cell));
        let mut looks = 2 * open.len();
        while open.len() > self.most && looks > 0 {
            looks -= 1;
            let Some(first) = open.pop_front() else { return };
            // One that is closed already, or of a data set that is gone, is none any more.
            let Some(other) = first.upgrade() else { continue };
            if std::ptr::eq(&*other, &**cell) || other.used.swap(false, Ordering::Relaxed) || !other.close() {
                open.push_back(first);
            }
        }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        let is_open = |cell: &Weak<FileCell>| cell.upgrade().is_some_and(|cell| cell.file.read().is_some());
        self.open.lock().iter().filter(|cell| is_open(cell)).count()
    }
}

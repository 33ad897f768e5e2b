//! Data sets that the system does not let a reader open: whoever reads one gets the error, all others go on.

use pagefold_io::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long they seem to be: whoever begins to read one comes to the error.
const LENGTH: u64 = 64 << 10;

/// One of them.
#[derive(Debug)]
pub(super) struct Refused {
    path: PathBuf,
    kind: io::ErrorKind,
    reason: String,
}

impl Refused {
    /// The file, and how long it says it is.
    pub(super) fn file(path: &Path, error: &io::Error) -> (Arc<dyn File>, u64) {
        let refused = Refused { path: path.to_owned(), kind: error.kind(), reason: error.to_string() };
        (Arc::new(refused), LENGTH)
    }

    fn refuse<T>(&self) -> io::Result<T> {
        Err(io::Error::new(self.kind, self.reason.clone()))
    }
}

impl File for Refused {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        self.refuse()
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn sync(&self) -> io::Result<()> {
        self.refuse()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(LENGTH)
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn punch_hole(&self, _: u64, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn alignment(&self) -> usize {
        1
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

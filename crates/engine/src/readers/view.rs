//! Files as they were when a reader registered.
//!
//! Invariants:
//! - a page is read from the data set first and then looked for among those preserved: the writer preserves first and then overwrites, so what was read is right, or replaced;
//! - nothing is written.

use super::registration::Registration;
use crate::gate::{Registered, entry_at};
use pagefold_io::{File, Lock, error_at, error_on, read_exact_at};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The pages that the writer has preserved for this reader.
#[derive(Debug)]
pub(super) struct Preserved {
    file: Arc<dyn File>,
    index: Mutex<Index>,
    /// For as long as a file is open, the reader is registered.
    _registration: Registration,
}

#[derive(Debug)]
struct Index {
    /// Where the next entry begins.
    end: u64,
    data_sets: BTreeMap<u32, DataSetPages>,
}

/// Where the images of a data set's pages lie.
#[derive(Debug)]
struct DataSetPages {
    page_bytes: usize,
    images_at: BTreeMap<u32, u64>,
}

impl Preserved {
    /// Writes the header of a reader's file.
    pub(super) fn begin(file: Arc<dyn File>, registered: &Registered, registration: Registration) -> io::Result<Preserved> {
        let header = registered.encode();
        file.write_at(&header, 0)?;
        let index = Mutex::new(Index { end: header.len() as u64, data_sets: BTreeMap::new() });
        Ok(Preserved { file, index, _registration: registration })
    }

    /// Replaces what was read from a data set by what was preserved.
    fn patch(&self, file_id: u32, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut index = self.index.lock();
        self.look(&mut index)?;
        let Some(pages) = index.data_sets.get(&file_id).filter(|_| !bytes.is_empty()) else { return Ok(()) };
        let page_bytes = pages.page_bytes as u64;
        let end = offset + bytes.len() as u64;
        let number = |at: u64| u32::try_from(at / page_bytes).unwrap_or(u32::MAX);
        for (&page, &image_at) in pages.images_at.range(number(offset)..=number(end - 1)) {
            let start = u64::from(page) * page_bytes;
            let (from, to) = (offset.max(start), end.min(start + page_bytes));
            read_exact_at(self.file.as_ref(), &mut bytes[(from - offset) as usize..(to - offset) as usize], image_at + (from - start))?;
        }
        Ok(())
    }

    /// Sees what has been preserved meanwhile.
    fn look(&self, index: &mut Index) -> io::Result<()> {
        let length = self.file.len()?;
        if length == 0 {
            let gone =
                io::Error::other("the process that writes the database could not preserve pages for this reader: open the database again");
            return Err(error_on("read", self.file.path(), gone));
        }
        while index.end < length
            && let Some(entry) = entry_at(self.file.as_ref(), index.end, length).map_err(io::Error::other)?
        {
            let pages = index.data_sets.entry(entry.file_id);
            let pages = pages.or_insert_with(|| DataSetPages { page_bytes: entry.page_bytes, images_at: BTreeMap::new() });
            if pages.page_bytes != entry.page_bytes {
                return Err(error_at("read", self.file.path(), index.end, io::Error::other("two page sizes in one data set")));
            }
            pages.images_at.entry(entry.page).or_insert(entry.image_at);
            index.end = entry.end();
        }
        Ok(())
    }
}

/// Why pages stay what they were, for as long as a file is open.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// The writer preserves them.
    Preserved(Arc<Preserved>),
    /// While this lock is held, nobody writes.
    NobodyWrites(#[expect(dead_code, reason = "held, not used")] Arc<dyn Lock>),
    /// They do not, should somebody write.
    AsTheyAre,
}

/// What a file was.
#[derive(Debug)]
pub(super) enum Kind {
    /// A data set, with its file id.
    DataSet(u32, Kept),
    /// A file that was copied.
    Copied(Vec<u8>),
    /// A file of the log; what counted of it ended at this offset, and the rest is zeros.
    Segment(u64),
}

/// A file as it was at registration.
#[derive(Debug)]
pub(super) struct ViewFile {
    pub(super) file: Arc<dyn File>,
    pub(super) length: u64,
    pub(super) kind: Kind,
}

impl ViewFile {
    fn refuse<T>(&self) -> io::Result<T> {
        Err(error_on("change", self.file.path(), io::ErrorKind::PermissionDenied.into()))
    }
}

impl File for ViewFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let there = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..there];
        match &self.kind {
            Kind::DataSet(file_id, kept) => {
                read_exact_at(self.file.as_ref(), buf, offset)?;
                if let Kept::Preserved(preserved) = kept {
                    preserved.patch(*file_id, offset, buf)?;
                }
            }
            Kind::Copied(bytes) => {
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                if let Some(bytes) = bytes.get(offset..).and_then(|bytes| bytes.get(..there)) {
                    buf.copy_from_slice(bytes);
                }
            }
            Kind::Segment(end) => {
                let written = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(there);
                let (written, empty) = buf.split_at_mut(written);
                read_exact_at(self.file.as_ref(), written, offset)?;
                empty.fill(0);
            }
        }
        Ok(there)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn punch_hole(&self, _: u64, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn alignment(&self) -> usize {
        self.file.alignment()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

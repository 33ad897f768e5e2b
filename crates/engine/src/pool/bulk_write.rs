//! Writing fresh pages in large clusters past the pools: LOAD, REORG, index build.
//!
//! Invariants:
//! - only pages that were never in memory are written here, each once;
//! - the data set is being built: the catalog does not name it yet, so nothing of it is logged.

use super::leaf_io;
use crate::Result;
use crate::data_set::DataSet;
use crate::frames::add;
use pagefold_format::page;
use pagefold_io::AlignedBuffer;

/// Bytes of a cluster.
pub const BULK_WRITE_BYTES: usize = 1 << 20;

/// Writes fresh pages of one data set.
pub struct BulkWriter<'a> {
    data_set: &'a DataSet,
    buffer: AlignedBuffer,
    first: u32,
    count: usize,
}

impl<'a> BulkWriter<'a> {
    /// A writer for a data set.
    #[must_use]
    pub fn new(data_set: &'a DataSet) -> BulkWriter<'a> {
        BulkWriter::with_buffer(data_set, BULK_WRITE_BYTES)
    }

    /// The same with clusters of about so many bytes: a page at least.
    #[must_use]
    pub fn with_buffer(data_set: &'a DataSet, bytes: usize) -> BulkWriter<'a> {
        let bytes = (bytes.min(BULK_WRITE_BYTES) / data_set.page_bytes()).max(1) * data_set.page_bytes();
        BulkWriter { data_set, buffer: AlignedBuffer::new(bytes, 4096), first: 0, count: 0 }
    }

    /// The data set.
    #[must_use]
    pub fn data_set(&self) -> &'a DataSet {
        self.data_set
    }

    /// Takes a page in its form in memory; leaves of a folded index are folded here.
    ///
    /// # Errors
    /// When a write fails.
    pub fn push(&mut self, number: u32, image: &[u8]) -> Result<()> {
        let page_bytes = self.data_set.page_bytes();
        if self.count > 0 && (number != self.first + self.count as u32 || (self.count + 1) * page_bytes > self.buffer.len()) {
            self.flush()?;
        }
        if self.count == 0 {
            self.first = number;
        }
        let at = self.count * page_bytes;
        let disk = &mut self.buffer[at..at + page_bytes];
        leaf_io::from_frame(self.data_set, number, image, disk)?;
        page::set_write_counter(disk, self.data_set.space().count_write(number));
        page::seal(disk, &self.data_set.identity(number));
        self.count += 1;
        Ok(())
    }

    /// Writes what has been taken.
    ///
    /// # Errors
    /// When the write fails; the data set is poisoned then.
    pub fn flush(&mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        self.data_set.check_poison()?;
        let bytes = self.count * self.data_set.page_bytes();
        let offset = u64::from(self.first) * self.data_set.page_bytes() as u64;
        let written = self.data_set.file().and_then(|file| Ok(file.write_at(&self.buffer[..bytes], offset)?));
        written.inspect_err(|error| self.data_set.poison(error))?;
        add(&self.data_set.counters.synchronous_writes, 1);
        add(&self.data_set.counters.pages_written, self.count as u64);
        self.count = 0;
        Ok(())
    }
}

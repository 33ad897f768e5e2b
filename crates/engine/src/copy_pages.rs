//! Copying a data set page by page into a fresh one.
//!
//! Page numbers stay, so RIDs and child pointers do; checksums are made anew, as they are bound to the file. To the log they are as pages that were loaded: older than all of its records. Pages go from disk to disk, folded leaves folded.

use crate::Result;
use crate::data_set::{DataSet, DataSetFacts};
use crate::pool::BufferManager;
use pagefold_format::page::{self, PageType};
use pagefold_format::space_map::{CLASS_UNALLOCATED, is_map_page};
use pagefold_io::AlignedBuffer;

const CLUSTER_BYTES: usize = 1 << 20;

impl DataSet {
    /// Fills this fresh data set with the pages of another of the same page size, and tells of the bytes.
    ///
    /// # Errors
    /// When a page of the other is damaged, or a read or write fails; that of who is told.
    pub(crate) fn copy_pages(&self, from: &DataSet, manager: &BufferManager, told: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        manager.flush_pages(from)?;
        self.file()?;
        let page_bytes = self.page_bytes();
        let per_cluster = CLUSTER_BYTES / page_bytes;
        let mut buffer = AlignedBuffer::new(per_cluster * page_bytes, 4096);
        let mut first = 1;
        while first < from.page_count() {
            let count = per_cluster.min((from.page_count() - first) as usize);
            let bytes = &mut buffer[..count * page_bytes];
            from.read_raw(first, bytes)?;
            for (number, page) in (first..).zip(bytes.chunks_exact_mut(page_bytes)) {
                let class = from.space().word(number).class();
                let taken = self.space().push_copy(class, number);
                debug_assert_eq!(taken, number);
                if class == CLASS_UNALLOCATED || is_map_page(number, page_bytes) {
                    continue;
                }
                let found = page::verify(page, &from.identity(number)).map_err(|e| from.corrupt(number, e))?;
                if matches!(found, PageType::Header | PageType::SpaceMap) {
                    return Err(from.corrupt(number, format!("a page of type {found:?} among the others")));
                }
                // Positions of another log mean nothing here: a page that seems newer than a record would not get what that has for it.
                page::set_lsn(page, 0);
                page::set_write_counter(page, self.space().count_write(number));
                page::seal(page, &self.identity(number));
            }
            self.extend_to_map()?;
            self.file()?.write_at(bytes, u64::from(first) * page_bytes as u64)?;
            first += count as u32;
            told(bytes.len() as u64)?;
        }
        let facts: DataSetFacts = from.facts().clone();
        *self.facts() = facts;
        Ok(())
    }
}

//! Opening a data set: its header page, its space map, its length.

use super::{Allocation, DataSet, DataSetFacts, HeaderWrites};
use crate::Result;
use crate::space_map::SpaceMap;
use pagefold_format::data_set_header::DataSetHeader;
use pagefold_format::page::PageType;
use pagefold_format::space_map::SpaceWord;
use pagefold_format::{page, space_map};
use pagefold_io::AlignedBuffer;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;

impl DataSet {
    /// Opens the file of an existing data set, reads its header page and its space map.
    ///
    /// # Errors
    /// When the file cannot be read, or header or map pages are damaged or belong elsewhere.
    pub(crate) fn open(&self, write: bool, expected: HeaderWrites) -> Result<()> {
        self.writable.store(write, Ordering::Relaxed);
        self.defined.store(true, Ordering::Release);
        let file = self.file().map_err(|error| match error.is_kind(&[ErrorKind::NotFound]) {
            true => self.corrupt(0, error),
            false => error,
        })?;
        let length = file.len()?;
        drop(file);
        *self.allocation.lock() = Allocation { extents_taken: 1, bytes: length };
        // Header and first map page lie side by side, and a file is longer than both: one read.
        let page_bytes = self.attributes.page_bytes;
        let mut buffer = AlignedBuffer::new(2 * page_bytes, 4096);
        let first_bytes = if length < 2 * page_bytes as u64 { page_bytes } else { 2 * page_bytes };
        self.read_raw(0, &mut buffer[..first_bytes])?;
        let (header_page, map_page) = buffer.split_at_mut(page_bytes);
        self.verify(0, header_page, PageType::Header)?;
        let header = DataSetHeader::parse(header_page).map_err(|e| self.corrupt(0, e))?;
        self.check_header(&header, length)?;
        let writes = page::write_counter(header_page);
        let (lost, expected) = match expected {
            HeaderWrites::Exactly(expected) => (writes != expected, expected),
            HeaderWrites::AtLeast(expected) => (writes < expected, expected),
        };
        if lost {
            return Err(self.corrupt(0, format!("write counter {writes} where {expected} is known: a lost write")));
        }
        if writes != expected {
            self.set_unrecorded();
        }
        self.header_writes.store(writes, Ordering::Relaxed);
        self.header_lsn.store(page::lsn(header_page), Ordering::Relaxed);
        let map = self.read_space_map(&header, map_page)?;
        self.page_count.store(map.page_count(), Ordering::Release);
        *self.space.lock() = map;
        *self.facts.lock() = DataSetFacts {
            data_pages: header.data_pages,
            rows: header.rows,
            root_page: header.root_page,
            levels: header.levels,
            keys: header.keys,
            dictionaries: header.dictionaries,
        };
        Ok(())
    }

    /// Refuses a file that ends before a page that is in use; with `written`, before one that has been written, which is so although redo may have to make
    /// others: a crash may have lost the growth of the file and not the header that came after it, but a page that was written is there, or its second image was.
    ///
    /// # Errors
    /// When it does.
    pub(crate) fn check_length(&self, written: bool) -> Result<()> {
        let pages = self.allocation.lock().bytes / self.attributes.page_bytes as u64;
        let (space, count) = (self.space.lock(), self.page_count());
        if !self.is_defined() || pages >= u64::from(count) {
            return Ok(());
        }
        let is_missed = |word: SpaceWord| word.class() != space_map::CLASS_UNALLOCATED && (!written || word.write_counter() > 0);
        match (pages as u32..count).find(|page| is_missed(space.word(*page))) {
            Some(page) => Err(self.corrupt(page, format!("the file ends before it: {count} pages should be there, {pages} are"))),
            None => Ok(()),
        }
    }

    fn check_header(&self, header: &DataSetHeader, length: u64) -> Result<()> {
        let own = &self.attributes;
        if (header.file_id, header.object_id, header.kind, header.partition) != (own.file_id, own.object_id, own.kind, own.partition) {
            return Err(self.corrupt(0, "the header describes another data set"));
        }
        if (header.page_bytes as usize, header.leaf_bytes as usize) != (own.page_bytes, own.leaf_bytes) {
            return Err(self.corrupt(0, "the header and the catalog disagree on the page size"));
        }
        // A crash may have lost the growth of the file and not the header that came after it: pages that were never written are not there then.
        if u64::from(header.page_count) * own.page_bytes as u64 > length && !self.is_recovering() {
            return Err(self.corrupt(0, format!("{} pages in a file of {length} bytes", header.page_count)));
        }
        Ok(())
    }

    /// `buffer` has the first map page, if there is one.
    fn read_space_map(&self, header: &DataSetHeader, buffer: &mut [u8]) -> Result<SpaceMap> {
        let mut map = SpaceMap::new(self.attributes.page_bytes);
        while map.page_count() < header.page_count {
            let map_page = map.page_count();
            if map_page > 1 {
                self.read_raw(map_page, buffer)?;
            }
            self.verify(map_page, buffer, PageType::SpaceMap)?;
            for word in space_map::words(buffer).map_err(|e| self.corrupt(map_page, e))? {
                map.push(word);
            }
            let full = map_page + space_map::words_per_page(self.attributes.page_bytes);
            // After a crash a map page may be newer than the header.
            let newer = self.is_recovering() && map.page_count() > header.page_count && map.page_count() <= full;
            if map.page_count() != full.min(header.page_count) && !newer {
                return Err(self.corrupt(map_page, format!("describes {} pages", map.page_count() - map_page)));
            }
            if map.word(map_page).page_ahead(page::write_counter(buffer)) != 0 {
                return Err(self.corrupt(map_page, "write counter differs from its own entry"));
            }
        }
        if map.map_writes() < header.space_map_writes || (map.map_writes() != header.space_map_writes && !self.is_recovering()) {
            return Err(self.corrupt(
                0,
                format!(
                    "space-map pages were written {} times, the header says {}: a lost write",
                    map.map_writes(),
                    header.space_map_writes
                ),
            ));
        }
        if map.map_writes() != header.space_map_writes || map.page_count() != header.page_count {
            self.set_changed();
        }
        Ok(map)
    }

    fn verify(&self, page_number: u32, bytes: &[u8], expected: PageType) -> Result<()> {
        let found = page::verify(bytes, &self.identity(page_number)).map_err(|e| self.corrupt(page_number, e))?;
        if found != expected {
            return Err(self.corrupt(page_number, format!("a page of type {found:?} where {expected:?} is expected")));
        }
        Ok(())
    }
}

//! The file of a data set: made with its first page, longer with others, and which page is taken next.
//!
//! Invariant: the map never describes pages that the file has not.

use super::{Allocation, DataSet};
use crate::Result;
use crate::space_map::SpaceMap;
use pagefold_io::{File, OpenOptions, read_exact_at};
use parking_lot::MutexGuard;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most pages of a data set.
pub(super) const PAGES_MAX: u32 = u32::MAX - 1;

impl DataSet {
    /// The file; made when it is not there yet, opened when it is closed.
    pub(crate) fn file(&self) -> Result<Arc<dyn File>> {
        if !self.is_defined() {
            return self.define();
        }
        let options = OpenOptions { write: self.writable.load(Ordering::Relaxed), ..OpenOptions::read_only() };
        self.files.get(&self.file, || self.open_file(&options))
    }

    /// Opens the file for direct I/O, or buffered where single pages are smaller than what the device takes.
    fn open_file(&self, options: &OpenOptions) -> Result<Arc<dyn File>> {
        let file = self.storage.open(&self.path, &options.direct(self.direct))?;
        if self.attributes.page_bytes.is_multiple_of(file.alignment()) {
            return Ok(file);
        }
        drop(file);
        Ok(self.storage.open(&self.path, &OpenOptions { create: false, create_new: false, ..*options })?)
    }

    /// Makes the file, with an empty header page number 0 reserved.
    fn define(&self) -> Result<Arc<dyn File>> {
        self.check_poison()?;
        let mut allocation = self.allocation.lock();
        if self.is_defined() {
            drop(allocation);
            return self.file();
        }
        let file = self.open_file(&OpenOptions::create_new())?;
        let end = self.extent_end(&allocation);
        // A file without room for its header must not be there when a checkpoint comes.
        if let Err(error) = file.allocate(0, end) {
            drop(file);
            self.storage.remove(&self.path)?;
            return Err(error.into());
        }
        *allocation = Allocation { extents_taken: 1, bytes: end };
        self.page_count.store(1, Ordering::Release);
        let file = self.files.get(&self.file, || Ok(file))?;
        self.defined.store(true, Ordering::Release);
        Ok(file)
    }

    /// Takes a page with this space-map class; extends the file when it must. Until a mini-transaction settles it, it is free on disk.
    pub(crate) fn allocate_page(&self, class: u8) -> Result<u32> {
        self.allocate_with(true, false, |space| space.allocate(class, PAGES_MAX, self.is_logged()))
    }

    /// As [`Self::allocate_page`], from what was [reserved](Self::reserve): the file has it.
    pub(crate) fn allocate_reserved(&self, class: u8) -> Result<u32> {
        self.allocate_with(true, true, |space| space.allocate(class, PAGES_MAX, self.is_logged()))
    }

    /// Reserves bytes of pages for taking changes back, and makes the file long enough for them. The space map, for what else is to be noted there.
    ///
    /// # Errors
    /// When the file cannot grow: nothing is reserved then.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<MutexGuard<'_, SpaceMap>> {
        let mut space = self.space.lock();
        space.reserve(bytes as i64);
        self.fill_holes(&mut space, 0);
        self.extend(space.page_count() + space.reserve_pages(0)).inspect_err(|_| space.reserve(-(bytes as i64)))?;
        Ok(space)
    }

    /// Takes the next page at the end.
    pub(crate) fn append_page(&self, class: u8) -> Result<u32> {
        self.allocate_with(false, false, |space| space.append(class, PAGES_MAX))
    }

    fn allocate_with(&self, free_ones: bool, reserved: bool, take: impl FnOnce(&mut SpaceMap) -> Result<u32>) -> Result<u32> {
        self.check_poison()?;
        self.file()?;
        let mut space = self.space.lock();
        if free_ones && !reserved {
            self.fill_holes(&mut space, 1);
        }
        // The file first: the map never describes pages that the file has not.
        let reserve = if reserved { 0 } else { space.reserve_pages(free_ones.into()) };
        self.extend(space.page_count_with_next(free_ones) + reserve)?;
        let page = take(&mut space)?;
        self.page_count.store(space.page_count(), Ordering::Release);
        Ok(page)
    }

    /// Makes the file long enough for all pages of the space map, and the page count say so.
    pub(crate) fn extend_to_map(&self) -> Result<()> {
        let count = self.space.lock().page_count();
        self.extend(count)?;
        self.page_count.store(count, Ordering::Release);
        Ok(())
    }

    /// Where the next extent ends.
    fn extent_end(&self, allocation: &Allocation) -> u64 {
        let page_bytes = self.attributes.page_bytes as u64;
        let extent = self.attributes.extents.next(allocation.extents_taken).next_multiple_of(page_bytes).max(page_bytes);
        // On a device with 4 KB sectors the last extent must end on one.
        (allocation.bytes + extent).next_multiple_of(4096)
    }

    /// Makes the file long enough for `pages`.
    pub(super) fn extend(&self, pages: u32) -> Result<()> {
        let wanted = u64::from(pages) * self.attributes.page_bytes as u64;
        let file = self.file()?;
        let mut allocation = self.allocation.lock();
        while allocation.bytes < wanted {
            let end = self.extent_end(&allocation);
            file.allocate(allocation.bytes, end - allocation.bytes)?;
            allocation.bytes = end;
            allocation.extents_taken += 1;
        }
        Ok(())
    }

    /// Reads a page as it is on disk, unverified.
    pub(crate) fn read_raw(&self, page_number: u32, buffer: &mut [u8]) -> Result<()> {
        let offset = u64::from(page_number) * self.attributes.page_bytes as u64;
        read_exact_at(self.file()?.as_ref(), buffer, offset).map_err(|error| match error.kind() {
            // Which table or index it is says more than the number of the file.
            ErrorKind::UnexpectedEof => self.corrupt(page_number, error),
            _ => error.into(),
        })
    }

    /// Removes the file. Nobody uses the data set any more.
    pub(crate) fn remove(&self) -> Result<()> {
        self.file.forget();
        if self.storage.exists(&self.path)? {
            self.storage.remove(&self.path)?;
        }
        Ok(())
    }

    /// A page that was taken and then not needed is free again.
    pub(crate) fn give_back(&self, page: u32) {
        self.space().free(page);
    }
}

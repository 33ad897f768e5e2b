//! The deferred-write engine: dirty pages go to disk in page order and in clusters; leaves are folded here, never by the thread that changed them.
//!
//! Invariants:
//! - a page is copied (or folded) into the work area under its shared latch and written without it; the WRITING bit keeps it in memory until the write has ended;
//! - write counters are given out here, and the space map has them before the page is written; map pages are written after the pages they describe, the header
//!   page after the map pages;
//! - a page that somebody changes is left for later, not waited for: who has it may be waiting for a frame, and so for this writer;
//! - a failed write poisons the data set.

use super::counters::add;
use super::leaf_io;
use super::manager::BufferManager;
use crate::data_set::DataSet;
use crate::{Error, Result};
use pagefold_format::{page, space_map};
use std::sync::atomic::Ordering;

/// What became of a page that was to be copied.
enum Copied {
    Yes,
    /// It is not in memory, or has been written already.
    Clean,
    /// Somebody has it latched for change.
    Busy,
}

impl BufferManager {
    /// Writes every dirty page of a data set, its map pages and its header, and syncs the file. Afterwards the file is complete.
    ///
    /// # Errors
    /// When a write or the sync fails; the data set is poisoned then.
    pub fn flush(&self, data_set: &DataSet) -> Result<()> {
        data_set.check_poison()?;
        if !data_set.is_defined() {
            return Ok(());
        }
        self.flush_pages(data_set)?;
        let result = self.write_map_and_header(data_set).and_then(|()| Ok(data_set.file()?.sync()?));
        result.inspect_err(|error| data_set.poison(error))
    }

    /// Writes every dirty page of a data set, but neither map nor header, so that its pages can be read from disk.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub(crate) fn flush_pages(&self, data_set: &DataSet) -> Result<()> {
        while !self.write_dirty(data_set)? {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Writes every dirty page of a data set that nobody is changing. True when there were no others.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub(super) fn write_dirty(&self, data_set: &DataSet) -> Result<bool> {
        let mut pages = std::mem::take(&mut *data_set.dirty.lock());
        pages.sort_unstable();
        pages.dedup();
        let mut busy = Vec::new();
        let writes = self.write_pages(data_set, &pages, &mut busy)?;
        add(&data_set.counters.deferred_writes, writes);
        let done = busy.is_empty();
        data_set.dirty.lock().extend(busy);
        Ok(done)
    }

    /// Writes those of these pages (ascending) that are in memory and dirty; those that somebody changes just now go to `busy` instead. Returns the number of writes.
    pub(super) fn write_pages(&self, data_set: &DataSet, pages: &[u32], busy: &mut Vec<u32>) -> Result<u64> {
        data_set.check_poison()?;
        let _writer = data_set.write_lock.lock();
        let page_bytes = data_set.page_bytes();
        let mut buffer = self.cluster_buffers.take();
        let room = self.cluster_buffers.buffer_bytes() / page_bytes;
        let mut cluster: Vec<u32> = Vec::with_capacity(room);
        let mut writes = 0;
        for &number in pages {
            if cluster.len() == room || cluster.last().is_some_and(|last| last + 1 != number) {
                writes += self.write_cluster(data_set, &mut cluster, &buffer)?;
            }
            let at = cluster.len() * page_bytes;
            match self.copy_out(data_set, number, &mut buffer[at..at + page_bytes])? {
                Copied::Yes => {
                    cluster.push(number);
                    continue;
                }
                Copied::Busy => busy.push(number),
                Copied::Clean => {}
            }
            writes += self.write_cluster(data_set, &mut cluster, &buffer)?;
        }
        writes += self.write_cluster(data_set, &mut cluster, &buffer)?;
        Ok(writes)
    }

    /// Copies a dirty page in its form on disk.
    fn copy_out(&self, data_set: &DataSet, number: u32, disk: &mut [u8]) -> Result<Copied> {
        let word = data_set.translation.word(number);
        if !word.state().dirty {
            return Ok(Copied::Clean);
        }
        let Some(frame) = self.try_shared(data_set, number) else { return Ok(Copied::Busy) };
        if !word.begin_write() {
            return Ok(Copied::Clean);
        }
        self.became_clean();
        if let Err(error) = leaf_io::from_frame(data_set, number, &frame, disk) {
            word.end_write(false);
            self.became_dirty_again(data_set, number);
            data_set.poison(&error);
            return Err(error);
        }
        drop(frame);
        page::set_write_counter(disk, data_set.space().count_write(number));
        page::seal(disk, &data_set.identity(number));
        Ok(Copied::Yes)
    }

    fn write_cluster(&self, data_set: &DataSet, cluster: &mut Vec<u32>, buffer: &[u8]) -> Result<u64> {
        let Some(&first) = cluster.first() else { return Ok(0) };
        let bytes = cluster.len() * data_set.page_bytes();
        let offset = u64::from(first) * data_set.page_bytes() as u64;
        let result = data_set.file().and_then(|file| Ok(file.write_at(&buffer[..bytes], offset)?));
        for &number in cluster.iter() {
            data_set.translation.word(number).end_write(result.is_ok());
            if result.is_err() {
                self.became_dirty_again(data_set, number);
            }
        }
        add(&data_set.counters.pages_written, cluster.len() as u64);
        cluster.clear();
        result.map(|()| 1).inspect_err(|error| data_set.poison(error))
    }

    fn write_map_and_header(&self, data_set: &DataSet) -> Result<()> {
        let _writer = data_set.write_lock.lock();
        let mut buffer = self.page_buffers.take();
        let disk = &mut buffer[..data_set.page_bytes()];
        let changed = {
            let mut space = data_set.space();
            let changed = space.take_changed();
            // Its own word counts a map page too, so all are counted before any is written.
            for map_page in &changed {
                space.count_write(*map_page);
            }
            space.take_changed();
            changed
        };
        for (i, map_page) in changed.iter().enumerate() {
            {
                let space = data_set.space();
                space_map::build(disk, *map_page, &space.words_of(*map_page));
                page::set_write_counter(disk, space.word(*map_page).write_counter());
            }
            page::seal(disk, &data_set.identity(*map_page));
            let offset = u64::from(*map_page) * data_set.page_bytes() as u64;
            if let Err(error) = data_set.file()?.write_at(disk, offset) {
                data_set.space().put_back(&changed[i..]);
                return Err(Error::from(error));
            }
        }
        data_set.header().build(disk);
        let writes = data_set.header_writes.load(Ordering::Relaxed).wrapping_add(1);
        page::set_write_counter(disk, writes);
        page::seal(disk, &data_set.identity(0));
        data_set.file()?.write_at(disk, 0)?;
        data_set.header_writes.store(writes, Ordering::Relaxed);
        add(&data_set.counters.pages_written, changed.len() as u64 + 1);
        Ok(())
    }
}

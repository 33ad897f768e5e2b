//! The deferred-write engine: dirty pages go to disk in page order and in clusters; leaves are folded here, never by the thread that changed them.
//!
//! Invariants:
//! - a page is copied (or folded) into the work area under its shared latch and written without it; the WRITING bit keeps it in memory until the write has ended;
//! - write counters are given out here, and the space map has them before the page is written; map pages are written after the pages they describe, the header
//!   page after the map pages;
//! - a page that somebody changes is left for later, not waited for: who has it may be waiting for a frame, and so for this writer;
//! - the list of dirty pages is taken and emptied under `write_lock`, and whoever takes it marks the data set as changed: so a flush, or a checkpoint that asks whether one is due, never takes pages
//!   that the background has yet to write for written ones;
//! - a dirty page that is given back is written like any other until it is made anew: redo from a checkpoint on repeats what was done to it before;
//! - a failed write poisons the data set;
//! - of data sets that are logged, a page is written only when the log is durable up to its LSN, and when its image is safe in the file of double writes: a torn page is restored from there; and
//!   when readers that need what it is on disk have that (`readers/`).

use super::double_write::{DoubleWrite, Protected};
use super::leaf_io;
use super::manager::BufferManager;
use super::mini_transaction::LogSink;
use crate::Result;
use crate::data_set::{DataSet, MapAndHeader};
use crate::frames::add;
use crate::gate::Passage;
use pagefold_format::log::Lsn;
use pagefold_format::{page, space_map};
use pagefold_io::AlignedBuffer;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What keeps the pages of logged data sets from harm.
#[derive(Debug)]
pub(crate) struct Protection {
    pub(crate) log: Arc<dyn LogSink>,
    /// A reader has none.
    pub(crate) double_write: Option<DoubleWrite>,
}

/// Pages in their form on disk, on their way out: numbers ascending, images one behind the other.
struct Batch<'b> {
    pages: Vec<u32>,
    images: &'b mut [u8],
    /// The highest LSN of a page.
    lsn: Lsn,
}

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
        data_set.check_poison()?;
        // Before the list is taken: whoever finds it empty then, and waits for this lock, finds its pages written.
        let _writer = data_set.write_lock.lock();
        let mut pages = data_set.take_dirty();
        pages.sort_unstable();
        pages.dedup();
        let mut busy = Vec::new();
        let writes = self.write_pages_locked(data_set, &pages, &mut busy)?;
        add(&data_set.counters.deferred_writes, writes);
        let done = busy.is_empty();
        data_set.note_dirty(busy);
        Ok(done)
    }

    /// Writes those of these pages (ascending) that are in memory and dirty; those that somebody changes just now go to `busy` instead. Returns the number of writes.
    pub(super) fn write_pages(&self, data_set: &DataSet, pages: &[u32], busy: &mut Vec<u32>) -> Result<u64> {
        data_set.check_poison()?;
        let _writer = data_set.write_lock.lock();
        self.write_pages_locked(data_set, pages, busy)
    }

    /// As [`Self::write_pages`], by whoever holds the data set's `write_lock`.
    fn write_pages_locked(&self, data_set: &DataSet, pages: &[u32], busy: &mut Vec<u32>) -> Result<u64> {
        let page_bytes = data_set.page_bytes();
        let mut buffer = self.batch_buffers.take();
        let room = self.batch_pages(page_bytes);
        let mut writes = 0;
        for part in pages.chunks(room) {
            let mut batch = Batch { pages: Vec::with_capacity(part.len()), images: &mut buffer, lsn: 0 };
            for &number in part {
                let at = batch.pages.len() * page_bytes;
                match self.copy_out(data_set, number, &mut batch.images[at..at + page_bytes]) {
                    Ok(Copied::Yes) => {
                        batch.lsn = batch.lsn.max(page::lsn(&batch.images[at..]));
                        batch.pages.push(number);
                    }
                    Ok(Copied::Busy) => busy.push(number),
                    Ok(Copied::Clean) => {}
                    Err(error) => {
                        self.end_batch(data_set, &batch, false);
                        return Err(error);
                    }
                }
            }
            let written = self.write_batch(data_set, &batch);
            self.end_batch(data_set, &batch, written.is_ok());
            writes += written.inspect_err(|error| data_set.poison(error))?;
        }
        Ok(writes)
    }

    /// How many pages a batch has at most.
    fn batch_pages(&self, page_bytes: usize) -> usize {
        let room = self.batch_buffers.buffer_bytes() / page_bytes;
        let double_write = self.protection().and_then(|protection| protection.double_write.as_ref());
        double_write.map_or(room, |double_write| room.min(double_write.pages_max(page_bytes)))
    }

    /// The pages of a batch are clean, or dirty again.
    fn end_batch(&self, data_set: &DataSet, batch: &Batch<'_>, written: bool) {
        for &number in &batch.pages {
            data_set.translation.get_or_make(number).end_write(written);
            if !written {
                self.became_dirty_again(data_set, number);
            }
        }
    }

    /// Writes a batch in clusters; returns the number of writes.
    fn write_batch(&self, data_set: &DataSet, batch: &Batch<'_>) -> Result<u64> {
        let (protection, most) = self.protected_at_once(data_set.page_bytes());
        let mut images = &batch.images[..batch.pages.len() * data_set.page_bytes()];
        let mut writes = 0;
        for pages in batch.pages.chunks(most) {
            let (part, rest) = images.split_at(pages.len() * data_set.page_bytes());
            writes += self.write_part(data_set, (pages, part, batch.lsn), protection)?;
            images = rest;
        }
        Ok(writes)
    }

    /// What protects pages that have been copied already, and how many of them at once. To be asked once for all that is written with the answer: the log may have come since the pages were put
    /// together, and where it comes later, they have nothing that is in it.
    fn protected_at_once(&self, page_bytes: usize) -> (Option<&Protection>, usize) {
        let protection = self.protection();
        let double_write = protection.and_then(|protection| protection.double_write.as_ref());
        (protection, double_write.map_or(usize::MAX, |double_write| double_write.pages_max(page_bytes)))
    }

    /// Writes as many pages of a batch as are protected at once.
    fn write_part(&self, data_set: &DataSet, (pages, images, lsn): (&[u32], &[u8], Lsn), protection: Option<&Protection>) -> Result<u64> {
        let page_bytes = data_set.page_bytes();
        let passage = self.pass(data_set, pages)?;
        let protected = self.protect(data_set, (pages, images, lsn), protection)?;
        let file = data_set.file()?;
        let room = (self.cluster_buffers.buffer_bytes() / page_bytes).max(1);
        let mut writes = 0;
        let mut images = images;
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            for cluster in run.chunks(room) {
                let (bytes, rest) = images.split_at(cluster.len() * page_bytes);
                file.write_at(bytes, u64::from(cluster[0]) * page_bytes as u64)?;
                images = rest;
                writes += 1;
            }
        }
        protected.into_iter().for_each(Protected::finished);
        drop(passage);
        add(&data_set.counters.pages_written, pages.len() as u64);
        Ok(writes)
    }

    /// Preserves what these pages (ascending, but for the header) are on disk for the readers that need it. No reader registers before the passage is dropped.
    fn pass<'g>(&'g self, data_set: &DataSet, pages: &[u32]) -> Result<Option<Passage<'g>>> {
        let Some(gate) = self.gate().filter(|_| data_set.is_logged() && !pages.is_empty()) else { return Ok(None) };
        let passage = gate.pass()?;
        passage.preserve(data_set.file_id(), data_set.page_bytes(), pages, data_set.file()?.as_ref())?;
        Ok(Some(passage))
    }

    /// Makes the log durable and puts images of pages into the file of double writes. What comes back is kept until they are written in place.
    fn protect<'p>(
        &'p self,
        data_set: &DataSet,
        (pages, images, lsn): (&[u32], &[u8], Lsn),
        protection: Option<&'p Protection>,
    ) -> Result<Option<Protected<'p>>> {
        let Some(protection) = protection.filter(|_| data_set.is_logged() && !pages.is_empty()) else { return Ok(None) };
        if lsn > 0 {
            protection.log.make_durable(lsn)?;
        }
        let Some(double_write) = &protection.double_write else { return Ok(None) };
        let names: Vec<(u32, u32)> = pages.iter().map(|page| (data_set.file_id(), *page)).collect();
        let mut sync = |files: &BTreeSet<u32>| self.sync_files(files);
        double_write.protect(&names, images, data_set.page_bytes(), &mut sync).map(Some)
    }

    /// Makes the images in the file of double writes void if there is one of some pages, by file and number: all that was written is durable in its place then.
    ///
    /// # Errors
    /// When a data set or that file cannot be synced, or written.
    pub(crate) fn retire_double_writes(&self, is_one: &dyn Fn(u32, u32) -> bool) -> Result<()> {
        let double_write = self.protection().and_then(|protection| protection.double_write.as_ref());
        double_write.map_or(Ok(()), |double_write| double_write.retire(is_one, &mut |files| self.sync_files(files)))
    }

    /// Makes the writes in place of data sets durable.
    fn sync_files(&self, files: &BTreeSet<u32>) -> Result<()> {
        for file_id in files {
            // One that is gone was dropped.
            let Some(data_set) = self.data_set(*file_id) else { continue };
            data_set.file()?.sync().inspect_err(|error| data_set.poison(error))?;
        }
        Ok(())
    }

    /// Copies a dirty page in its form on disk.
    fn copy_out(&self, data_set: &DataSet, number: u32, disk: &mut [u8]) -> Result<Copied> {
        let word = data_set.translation.get_or_make(number);
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

    /// Writes the map pages that have changed, then the header page.
    fn write_map_and_header(&self, data_set: &DataSet) -> Result<()> {
        let _writer = data_set.write_lock.lock();
        let mut cut = None;
        match self.log().filter(|_| data_set.is_logged()) {
            // Nobody can add to the log meanwhile, so counts and maps are those of all records up to here.
            Some(log) => log.cut(&mut |end| cut = Some(data_set.map_and_header(end))),
            None => cut = Some(data_set.map_and_header(0)),
        }
        let Some(MapAndHeader { maps, header, lsn }) = cut else { return Ok(()) };
        let page_bytes = data_set.page_bytes();
        let mut images = AlignedBuffer::new((maps.len() + 1) * page_bytes, 4096);
        let mut numbers = Vec::with_capacity(maps.len() + 1);
        for (map, disk) in maps.iter().zip(images.chunks_exact_mut(page_bytes)) {
            space_map::build(disk, map.page, &map.words);
            page::set_write_counter(disk, map.write_counter);
            page::seal(disk, &data_set.identity(map.page));
            numbers.push(map.page);
        }
        let writes = data_set.header_writes.load(Ordering::Relaxed).wrapping_add(1);
        if let Some(disk) = images.chunks_exact_mut(page_bytes).last() {
            header.build(disk);
            page::set_lsn(disk, lsn);
            page::set_write_counter(disk, writes);
            page::seal(disk, &data_set.identity(0));
            numbers.push(0);
        }
        let written = self.write_in_place(data_set, &numbers, &images, lsn);
        if let Err(error) = written {
            data_set.space().put_back(&numbers[..maps.len()]);
            return Err(error);
        }
        data_set.header_writes.store(writes, Ordering::Relaxed);
        add(&data_set.counters.pages_written, numbers.len() as u64);
        Ok(())
    }

    fn write_in_place(&self, data_set: &DataSet, numbers: &[u32], images: &[u8], lsn: Lsn) -> Result<()> {
        let page_bytes = data_set.page_bytes();
        let file = data_set.file()?;
        let (protection, most) = self.protected_at_once(page_bytes);
        let most = most.min(numbers.len().max(1));
        for (numbers, images) in numbers.chunks(most).zip(images.chunks(most * page_bytes)) {
            let passage = self.pass(data_set, numbers)?;
            let protected = self.protect(data_set, (numbers, images, lsn), protection)?;
            for (number, image) in numbers.iter().zip(images.chunks_exact(page_bytes)) {
                file.write_at(image, u64::from(*number) * page_bytes as u64)?;
            }
            protected.into_iter().for_each(Protected::finished);
            drop(passage);
        }
        Ok(())
    }
}

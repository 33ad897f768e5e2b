//! The double-write file: pages go there first, so that one whose write in place is cut short can be put back whole.
//!
//! Layout: `docs/file-format.md`, "Double-write file". The file has two halves, filled in turn, batch by batch.
//!
//! Invariants:
//!
//! - When [`DoubleWrite::protect`] returns, the images are durable. They stay so until the writes in place are finished and durable: a half is
//!   used again only when all its [`Protected`] have said that they are finished, and `before_reuse` has made the data files durable.
//! - Sequence numbers of batches grow by one and are never used again; a half's valid batches are those from its start on with consecutive
//!   numbers. So what an earlier filling left behind them does not count, and the valid batches are the last ones there were: when a page
//!   has images among them, its newest is that of its last write. (As long as pages of live data sets are written in no other way.)
//! - Opening makes what is there void: recovery has put it in place. Numbers go on behind it. So does [`DoubleWrite::retire`], when it is durable in its places.
//! - Batches begin at multiples of 4,096 bytes: a write cut short damages no sector of the batch before.
//! - After a failed write or sync, or a write in place that was not finished, nothing is overwritten any more: the next recovery needs it.

use crate::{Error, Result};
use pagefold_format::page::{PAGE_SIZE_MAX, PageIdentity, get_u32, get_u64, is_page_size, put_u32, put_u64, verify};
use pagefold_io::{File, OpenOptions, Storage, parent_directory, read_exact_at};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: &[u8; 8] = b"pgfolddw";
const BATCH_MAGIC: &[u8; 8] = b"pgfolddb";
/// Version of the double-write file's format.
pub const DOUBLE_WRITE_VERSION: u32 = 1;

/// Bytes of the file before its halves, and what batches begin at multiples of.
const BLOCK_BYTES: usize = 4096;

// The file's header.
const CHECKSUM: usize = 0;
const MAGIC_AT: usize = CHECKSUM + 8;
const VERSION: usize = MAGIC_AT + 8;
const HALF_BYTES: usize = VERSION + 8;
const DATABASE_ID: usize = HALF_BYTES + 8;
const _: () = assert!(DATABASE_ID + 16 == 48);

// A batch's header; checksum and magic are where the file's header has them.
const SEQUENCE: usize = MAGIC_AT + 8;
const PAGE_BYTES: usize = SEQUENCE + 8;
const COUNT: usize = PAGE_BYTES + 4;
const ENTRIES: usize = COUNT + 4;
const ENTRY_BYTES: usize = 16;
const _: () = assert!(ENTRIES == 32);

/// The smallest half.
pub const HALF_BYTES_MIN: u64 = 64 << 10;
/// The largest half.
pub const HALF_BYTES_MAX: u64 = 256 << 20;
const _: () = assert!(HALF_BYTES_MIN as usize >= BLOCK_BYTES + PAGE_SIZE_MAX);

/// A page as it was, or was to be, written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its data set.
    pub file_id: u32,
    /// Its number in that.
    pub page_number: u32,
    /// Its bytes on disk, with a checksum that matches.
    pub bytes: Vec<u8>,
}

/// Where pages go before they go to their places.
#[derive(Debug)]
pub struct DoubleWrite {
    file: Arc<dyn File>,
    database_id: u128,
    half_bytes: u64,
    sync: bool,
    /// Held while a batch is written; `halves` is locked inside it.
    area: Mutex<Area>,
    halves: Mutex<[Half; 2]>,
    /// A write in place was finished or given up.
    released: Condvar,
    poison: OnceLock<String>,
}

/// Where the next batch goes.
#[derive(Debug)]
struct Area {
    half: usize,
    offset: u64,
    sequence: u64,
}

#[derive(Debug, Default)]
struct Half {
    /// Batches whose pages are being written in place.
    writing: usize,
    /// Of which pages images are here, by data set.
    pages: BTreeMap<u32, BTreeSet<u32>>,
}

/// Pages whose images are durable and which now may be written in place. Dropping it says that this failed: their images are kept for good.
#[derive(Debug)]
#[must_use = "say when the writes in place are finished"]
pub struct Protected<'a> {
    area: &'a DoubleWrite,
    half: usize,
    finished: bool,
}

impl Protected<'_> {
    /// All pages have been written in place; syncing them is up to `before_reuse`.
    pub fn finished(mut self) {
        self.finished = true;
    }
}

impl Drop for Protected<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.area.poison.get_or_init(|| "pages were not written in place".into());
        }
        self.area.halves.lock()[self.half].writing -= 1;
        self.area.released.notify_all();
    }
}

impl DoubleWrite {
    /// Opens the file, or makes it. All that recovery takes from it must be in place and durable. An existing file keeps its length; without
    /// `sync` nothing is synced but the making of the file, and images survive the process only.
    ///
    /// # Errors
    /// When `half_bytes` is not 64 KB to 256 MB in steps of 4,096, or the file is damaged or of another database; those of the device.
    pub fn create_or_open(storage: &dyn Storage, path: &Path, database_id: u128, half_bytes: u64, sync: bool) -> Result<DoubleWrite> {
        if !is_half_bytes(half_bytes) {
            return Err(Error::Parameter(format!(
                "halves of {half_bytes} bytes: they have {HALF_BYTES_MIN} to {HALF_BYTES_MAX}, in steps of {BLOCK_BYTES}"
            )));
        }
        let (file, half_bytes, area) = if storage.exists(path)? {
            let (file, half_bytes) = open(storage, path, database_id, &OpenOptions::read_write())?;
            let halves = read_halves(file.as_ref(), half_bytes)?;
            let area = Area::after(&halves, database_id);
            // Recovery has taken what it needs. A last batch that is not whole must not count once others have followed it.
            void(file.as_ref(), half_bytes)?;
            file.sync()?;
            (file, half_bytes, area)
        } else {
            (create(storage, path, database_id, half_bytes)?, half_bytes, Area { half: 0, offset: 0, sequence: 1 })
        };
        Ok(DoubleWrite {
            file,
            database_id,
            half_bytes,
            sync,
            area: Mutex::new(area),
            halves: Mutex::default(),
            released: Condvar::new(),
            poison: OnceLock::new(),
        })
    }

    /// The most pages of a size that one batch takes.
    #[must_use]
    pub fn pages_max(&self, page_bytes: usize) -> usize {
        // A header takes 16 bytes a page, and less than a block and a batch's end less than a block beside that.
        let room = (self.half_bytes as usize).saturating_sub(3 * BLOCK_BYTES);
        (room / (page_bytes + ENTRY_BYTES)).max(1)
    }

    /// Puts the images of pages into the file, durably: then the pages may be written in place. `pages` are their file ids and page numbers, in
    /// the order of the images; `images` are sealed pages of `page_bytes` each, one behind the other. When the other half is about to be
    /// overwritten, `before_reuse` is called with the data sets of which images lie there, once all writes in place from there are
    /// finished: it must make those writes durable. One thread at a time; a thread must not ask again before it has finished.
    ///
    /// # Errors
    /// When the pages do not fit in one batch ([`Self::pages_max`]), or `before_reuse` fails: nothing has happened then. When writing fails, or
    /// has failed before: nothing is protected any more until recovery.
    pub fn protect(
        &self,
        pages: &[(u32, u32)],
        images: &[u8],
        page_bytes: usize,
        before_reuse: &mut dyn FnMut(&BTreeSet<u32>) -> Result<()>,
    ) -> Result<Protected<'_>> {
        let fits = is_page_size(page_bytes) && pages.len().checked_mul(page_bytes) == Some(images.len());
        let batch_bytes = batch_bytes(pages.len(), page_bytes).filter(|&bytes| fits && bytes <= self.half_bytes);
        let Some(batch_bytes) = batch_bytes.filter(|_| !pages.is_empty()) else {
            return Err(Error::Parameter(format!("a batch of {} pages of {page_bytes} bytes, {} in all", pages.len(), images.len())));
        };
        let mut area = self.area.lock();
        self.check_poison()?;
        if area.offset + batch_bytes > self.half_bytes {
            self.turn(&mut area, before_reuse)?;
        }
        let at = BLOCK_BYTES as u64 + area.half as u64 * self.half_bytes + area.offset;
        let header = batch_header(self.database_id, at, area.sequence, pages, images, page_bytes);
        let written = self.write(at, &header, images);
        written.inspect_err(|error| {
            self.poison.get_or_init(|| error.to_string());
        })?;
        area.offset += batch_bytes;
        area.sequence += 1;
        let half = &mut self.halves.lock()[area.half];
        half.writing += 1;
        for &(file_id, page) in pages {
            half.pages.entry(file_id).or_default().insert(page);
        }
        Ok(Protected { area: self, half: area.half, finished: false })
    }

    /// Makes void what is there, if there is an image of one of some pages: who recovers puts none of them back then. All is to be in its places, durably, before: `make_durable` is called with
    /// the data sets of which images lie here.
    ///
    /// # Errors
    /// When `make_durable` fails: nothing has happened then. When writing fails, or has failed before, as in [`Self::protect`].
    pub fn retire(&self, is_one: &dyn Fn(u32, u32) -> bool, make_durable: &mut dyn FnMut(&BTreeSet<u32>) -> Result<()>) -> Result<()> {
        let mut area = self.area.lock();
        let mut halves = self.halves.lock();
        while halves.iter().any(|half| half.writing > 0) {
            self.released.wait(&mut halves);
        }
        self.check_poison()?;
        let has_one = |(file_id, pages): (&u32, &BTreeSet<u32>)| pages.iter().any(|page| is_one(*file_id, *page));
        if !halves.iter().flat_map(|half| &half.pages).any(has_one) {
            return Ok(());
        }
        let file_ids: BTreeSet<u32> = halves.iter().flat_map(|half| half.pages.keys()).copied().collect();
        drop(halves);
        make_durable(&file_ids)?;
        let voided = void(self.file.as_ref(), self.half_bytes).and_then(|()| if self.sync { Ok(self.file.sync()?) } else { Ok(()) });
        voided.inspect_err(|error| {
            self.poison.get_or_init(|| error.to_string());
        })?;
        self.halves.lock().iter_mut().for_each(|half| half.pages.clear());
        area.offset = 0;
        Ok(())
    }

    /// Goes on to the other half.
    fn turn(&self, area: &mut Area, before_reuse: &mut dyn FnMut(&BTreeSet<u32>) -> Result<()>) -> Result<()> {
        let other = 1 - area.half;
        let mut halves = self.halves.lock();
        while halves[other].writing > 0 {
            self.released.wait(&mut halves);
        }
        self.check_poison()?;
        let file_ids: BTreeSet<u32> = halves[other].pages.keys().copied().collect();
        drop(halves);
        if !file_ids.is_empty() {
            before_reuse(&file_ids)?;
        }
        self.halves.lock()[other].pages.clear();
        (area.half, area.offset) = (other, 0);
        Ok(())
    }

    fn write(&self, at: u64, header: &[u8], images: &[u8]) -> Result<()> {
        self.file.write_at(header, at)?;
        self.file.write_at(images, at + header.len() as u64)?;
        if self.sync {
            self.file.sync()?;
        }
        Ok(())
    }

    fn check_poison(&self) -> Result<()> {
        self.poison.get().map_or(Ok(()), |reason| Err(Error::Poisoned(reason.clone())))
    }
}

impl Area {
    /// Where to go on in a file that is there.
    fn after(halves: &[Vec<u8>; 2], database_id: u128) -> Area {
        let half_bytes = halves[0].len() as u64;
        let newest = |half: usize| batches(halves, database_id, half).last().map_or(0, |batch| batch.sequence);
        let half = usize::from(newest(1) < newest(0));
        // Also those that do not count: no number may come twice.
        let offsets = (0..half_bytes as usize).step_by(BLOCK_BYTES);
        let all = (0..2).flat_map(|half| offsets.clone().filter_map(move |offset| batch_at(halves, database_id, half, offset)));
        let highest = all.map(|batch| batch.sequence).max().unwrap_or(0);
        Area { half, offset: 0, sequence: highest.saturating_add(1) }
    }
}

/// All images found whole, oldest first: of several of a page, the last is that of its last write. None of a last batch that is not whole, and when there is no file.
///
/// # Errors
/// When the file is damaged or of another database; those of the device.
pub fn images(storage: &dyn Storage, path: &Path, database_id: u128) -> Result<Vec<Image>> {
    if !storage.exists(path)? {
        return Ok(Vec::new());
    }
    let (file, half_bytes) = open(storage, path, database_id, &OpenOptions::read_only())?;
    let halves = read_halves(file.as_ref(), half_bytes)?;
    let mut found: Vec<Batch> = batches(&halves, database_id, 0).chain(batches(&halves, database_id, 1)).collect();
    found.sort_by_key(|batch| batch.sequence);
    let image = |(entry, bytes): (&[u8], &[u8])| {
        let (file_id, page_number) = (get_u32(entry, 0), get_u32(entry, 4));
        // Where an image did not reach the disk there may lie an older one of the same page.
        if get_u64(entry, 8) != xxh3_64_with_seed(bytes, 0) {
            return None;
        }
        verify(bytes, &PageIdentity { database_id, file_id, page_number }).ok()?;
        Some(Image { file_id, page_number, bytes: bytes.to_vec() })
    };
    let entries =
        |batch: &Batch<'_>| batch.entries.chunks_exact(ENTRY_BYTES).zip(batch.images.chunks_exact(batch.page_bytes)).map(image).collect();
    let mut images: Vec<Vec<Option<Image>>> = found.iter().map(entries).collect();
    // A batch follows only when the one before is durable. So if the last one is not whole, nothing of it was written in place, and a part of it (a header without its map) is none of the
    // states there were.
    images.pop_if(|last| last.iter().any(Option::is_none));
    Ok(images.into_iter().flatten().flatten().collect())
}

/// As [`images`]; none when the file is damaged: recovery does without, and finds the pages that only an image would have made whole.
///
/// # Errors
/// When it is of a newer format; those of the device.
pub(crate) fn images_if_whole(storage: &dyn Storage, path: &Path, database_id: u128) -> Result<Vec<Image>> {
    match images(storage, path, database_id) {
        Err(Error::Damaged { .. }) => Ok(Vec::new()),
        found => found,
    }
}

fn is_half_bytes(bytes: u64) -> bool {
    (HALF_BYTES_MIN..=HALF_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(BLOCK_BYTES as u64)
}

fn file_header(database_id: u128, half_bytes: u64) -> [u8; BLOCK_BYTES] {
    let mut header = [0; BLOCK_BYTES];
    header[MAGIC_AT..VERSION].copy_from_slice(MAGIC);
    put_u32(&mut header, VERSION, DOUBLE_WRITE_VERSION);
    put_u64(&mut header, HALF_BYTES, half_bytes);
    header[DATABASE_ID..DATABASE_ID + 16].copy_from_slice(&database_id.to_le_bytes());
    let checksum = xxh3_64_with_seed(&header[MAGIC_AT..], 0);
    put_u64(&mut header, CHECKSUM, checksum);
    header
}

fn create(storage: &dyn Storage, path: &Path, database_id: u128, half_bytes: u64) -> Result<Arc<dyn File>> {
    let fresh = path.with_extension("new");
    if storage.exists(&fresh)? {
        storage.remove(&fresh)?;
    }
    let file = storage.open(&fresh, &OpenOptions::create_new())?;
    let end = BLOCK_BYTES as u64 + 2 * half_bytes;
    file.allocate(0, end)?;
    // Written, not only reserved: else the first sync of every block would write the file system's journal, too.
    let zeros = vec![0; HALF_BYTES_MIN as usize];
    for from in (0..end).step_by(zeros.len()) {
        file.write_at(&zeros[..zeros.len().min((end - from) as usize)], from)?;
    }
    file.write_at(&file_header(database_id, half_bytes), 0)?;
    file.sync()?;
    storage.rename(&fresh, path)?;
    storage.sync_directory(parent_directory(path))?;
    Ok(file)
}

/// Makes the batches of both halves void.
fn void(file: &dyn File, half_bytes: u64) -> Result<()> {
    for half in 0..2 {
        file.write_at(&[0; BLOCK_BYTES], BLOCK_BYTES as u64 + half * half_bytes)?;
    }
    Ok(())
}

/// Opens the file; its halves have the length returned.
fn open(storage: &dyn Storage, path: &Path, database_id: u128, options: &OpenOptions) -> Result<(Arc<dyn File>, u64)> {
    let damaged = |reason: String| Error::Damaged { path: path.display().to_string(), reason };
    let file = storage.open(path, options)?;
    let length = file.len()?;
    if length < BLOCK_BYTES as u64 {
        return Err(damaged(format!("{length} bytes long: it has no header")));
    }
    let mut header = [0; BLOCK_BYTES];
    read_exact_at(file.as_ref(), &mut header, 0)?;
    if get_u64(&header, CHECKSUM) != xxh3_64_with_seed(&header[MAGIC_AT..], 0) || header[MAGIC_AT..VERSION] != *MAGIC {
        return Err(damaged("not a double-write file of pagefold, or its header is damaged".into()));
    }
    let found = get_u32(&header, VERSION);
    if found != DOUBLE_WRITE_VERSION {
        return Err(Error::NewerFormat { path: path.display().to_string(), found, known: DOUBLE_WRITE_VERSION });
    }
    if header[DATABASE_ID..DATABASE_ID + 16] != database_id.to_le_bytes() {
        return Err(damaged("the double-write file of another database".into()));
    }
    let half_bytes = get_u64(&header, HALF_BYTES);
    if !is_half_bytes(half_bytes) || length != BLOCK_BYTES as u64 + 2 * half_bytes {
        return Err(damaged(format!("{length} bytes long, with halves of {half_bytes}")));
    }
    Ok((file, half_bytes))
}

fn read_halves(file: &dyn File, half_bytes: u64) -> Result<[Vec<u8>; 2]> {
    let mut halves = [vec![0; half_bytes as usize], vec![0; half_bytes as usize]];
    read_exact_at(file, &mut halves[0], BLOCK_BYTES as u64)?;
    read_exact_at(file, &mut halves[1], BLOCK_BYTES as u64 + half_bytes)?;
    Ok(halves)
}

/// Bytes of a batch's header, its padding included.
fn header_bytes(count: usize) -> Option<usize> {
    count.checked_mul(ENTRY_BYTES)?.checked_add(ENTRIES)?.checked_next_multiple_of(BLOCK_BYTES)
}

/// Bytes of a batch up to where the next one begins.
fn batch_bytes(count: usize, page_bytes: usize) -> Option<u64> {
    let bytes = count.checked_mul(page_bytes)?.checked_add(header_bytes(count)?)?.checked_next_multiple_of(BLOCK_BYTES)?;
    u64::try_from(bytes).ok()
}

/// The checksum of the header of a batch at an offset in the file.
fn batch_checksum(header: &[u8], database_id: u128, at: u64) -> u64 {
    xxh3_64_with_seed(&header[MAGIC_AT..], xxh3_64_with_seed(&at.to_le_bytes(), xxh3_64_with_seed(&database_id.to_le_bytes(), 0)))
}

fn batch_header(database_id: u128, at: u64, sequence: u64, pages: &[(u32, u32)], images: &[u8], page_bytes: usize) -> Vec<u8> {
    let mut header = vec![0; header_bytes(pages.len()).expect("the header of a batch that fits in a half")];
    header[MAGIC_AT..SEQUENCE].copy_from_slice(BATCH_MAGIC);
    put_u64(&mut header, SEQUENCE, sequence);
    put_u32(&mut header, PAGE_BYTES, page_bytes as u32);
    put_u32(&mut header, COUNT, pages.len() as u32);
    let entries = header[ENTRIES..].chunks_exact_mut(ENTRY_BYTES);
    for ((&(file_id, page_number), image), entry) in pages.iter().zip(images.chunks_exact(page_bytes)).zip(entries) {
        put_u32(entry, 0, file_id);
        put_u32(entry, 4, page_number);
        put_u64(entry, 8, xxh3_64_with_seed(image, 0));
    }
    let checksum = batch_checksum(&header, database_id, at);
    put_u64(&mut header, CHECKSUM, checksum);
    header
}

/// A batch with a valid header; its images may be torn.
struct Batch<'a> {
    sequence: u64,
    page_bytes: usize,
    entries: &'a [u8],
    images: &'a [u8],
    /// Where the next one begins, in the half.
    end: usize,
}

fn batch_at(halves: &[Vec<u8>; 2], database_id: u128, half: usize, offset: usize) -> Option<Batch<'_>> {
    let area = halves[half].get(offset..).filter(|area| area.len() >= BLOCK_BYTES && area[MAGIC_AT..SEQUENCE] == *BATCH_MAGIC)?;
    let (page_bytes, count) = (get_u32(area, PAGE_BYTES) as usize, get_u32(area, COUNT) as usize);
    let header_bytes = header_bytes(count)?;
    let batch_bytes = usize::try_from(batch_bytes(count, page_bytes)?).ok()?;
    if !is_page_size(page_bytes) || count == 0 || batch_bytes > area.len() {
        return None;
    }
    let at = (BLOCK_BYTES + half * halves[half].len() + offset) as u64;
    if get_u64(area, CHECKSUM) != batch_checksum(&area[..header_bytes], database_id, at) {
        return None;
    }
    Some(Batch {
        sequence: get_u64(area, SEQUENCE),
        page_bytes,
        entries: &area[ENTRIES..ENTRIES + count * ENTRY_BYTES],
        images: &area[header_bytes..header_bytes + count * page_bytes],
        end: offset + batch_bytes,
    })
}

/// The batches of a half that count.
fn batches(halves: &[Vec<u8>; 2], database_id: u128, half: usize) -> impl Iterator<Item = Batch<'_>> {
    std::iter::successors(batch_at(halves, database_id, half, 0), move |before| {
        batch_at(halves, database_id, half, before.end).filter(|batch| before.sequence.checked_add(1) == Some(batch.sequence))
    })
}

#[cfg(test)]
mod tests;

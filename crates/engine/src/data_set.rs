//! A data set: one file, its pages' words, its space map and its header.
//!
//! Invariants:
//! - pages at or above `page_count` were never written and are never asked for;
//! - the file comes into being with the first page that is allocated (DEFINE NO);
//! - header page and map pages are not in a pool: they are written from here, after all other pages (`pool/deferred_write.rs`).

use crate::changed_list::ChangedList;
use crate::doubling::{Doubling, segments_for};
use crate::open_files::{FileCell, OpenFiles};
use crate::pool::counters::Counters;
use crate::pool::frames::Pool;
use crate::pool::word::PageWord;
use crate::space_map::SpaceMap;
use crate::{CounterValues, Error, Result};
use pagefold_format::data_set_header::{DICTIONARIES_MAX, DataSetHeader, DictionaryRoot, ObjectKind};
use pagefold_format::log::{DataSetOp, Lsn};
use pagefold_format::page::{PageIdentity, PageType};
use pagefold_format::space_map::SpaceWord;
use pagefold_format::{page, space_map};
use pagefold_io::{AlignedBuffer, File, OpenOptions, Storage, read_exact_at};
use parking_lot::{Mutex, MutexGuard};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// How a data set grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Bytes of the first extent.
    pub first_bytes: u64,
    /// Bytes of each further one; 0 for the sliding scale, on which the k-th extent is k times the first, at most 64 MB.
    pub second_bytes: u64,
}

impl Default for Extents {
    fn default() -> Extents {
        Extents { first_bytes: 64 * 1024, second_bytes: 0 }
    }
}

/// Page words in the first segment of the translation array, as a power of two: most data sets of a database with very many are small.
const TRANSLATION_BITS: u32 = 4;

/// The most pages of a data set.
const PAGES_MAX: u32 = u32::MAX - 1;

/// The sliding scale ends here.
const SLIDING_EXTENT_MAX: u64 = 64 << 20;

impl Extents {
    /// Bytes of the extent that follows `taken` others.
    fn next(&self, taken: u64) -> u64 {
        if taken == 0 {
            self.first_bytes
        } else if self.second_bytes > 0 {
            self.second_bytes
        } else {
            (self.first_bytes * (taken + 1)).min(SLIDING_EXTENT_MAX.max(self.first_bytes))
        }
    }
}

/// A map page to be written.
#[derive(Debug)]
pub(crate) struct MapPage {
    pub(crate) page: u32,
    pub(crate) write_counter: u32,
    pub(crate) words: Vec<SpaceWord>,
}

/// What a data set knows beside its pages, at one point of the log.
#[derive(Debug)]
pub(crate) struct MapAndHeader {
    pub(crate) maps: Vec<MapPage>,
    pub(crate) header: DataSetHeader,
    pub(crate) lsn: Lsn,
}

/// How often a header page must have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderWrites {
    /// Just so often: nothing was written since.
    Exactly(u32),
    /// So often or more: a crash may have come later.
    AtLeast(u32),
}

/// What is fixed when a data set is created.
#[derive(Clone, Debug)]
pub struct DataSetAttributes {
    /// Its file id.
    pub file_id: u32,
    /// Table or index it belongs to.
    pub object_id: u32,
    /// What that is.
    pub kind: ObjectKind,
    /// Partition number.
    pub partition: u16,
    /// Page size on disk.
    pub page_bytes: usize,
    /// Size of leaf pages in memory; larger than `page_bytes` in folded indexes only.
    pub leaf_bytes: usize,
    /// How the file grows.
    pub extents: Extents,
    /// What errors call it: `table "lineitem"`.
    pub object: String,
}

/// The counts and roots kept in the header page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataSetFacts {
    /// Pages with rows, or leaf pages.
    pub data_pages: u32,
    /// Rows, or RIDs.
    pub rows: u64,
    /// Root page of an index; 0 when empty.
    pub root_page: u32,
    /// Levels of an index; 0 when empty.
    pub levels: u16,
    /// Distinct keys of an index.
    pub keys: u64,
    /// Dictionaries.
    pub dictionaries: Vec<DictionaryRoot>,
}

#[derive(Debug, Default)]
struct Allocation {
    extents_taken: u64,
    bytes: u64,
}

/// A data set.
#[derive(Debug)]
pub struct DataSet {
    pub(crate) attributes: DataSetAttributes,
    database_id: u128,
    pub(crate) pools: [Arc<Pool>; 2],
    storage: Arc<dyn Storage>,
    path: PathBuf,
    direct: bool,
    file: Arc<FileCell>,
    files: Arc<OpenFiles>,
    /// It has a file.
    defined: AtomicBool,
    /// It is opened for writing, too.
    writable: AtomicBool,
    allocation: Mutex<Allocation>,
    page_count: AtomicU32,
    /// Page number -> page word. Callers check the number against the page count first: a wild one from a damaged page allocates nothing.
    pub(crate) translation: Doubling<PageWord, TRANSLATION_BITS, { segments_for(TRANSLATION_BITS, u32::MAX) }>,
    space: Mutex<SpaceMap>,
    facts: Mutex<DataSetFacts>,
    /// Root page (low half) and levels of the facts, for descents; 0 when not known here.
    root_cache: AtomicU64,
    /// The header's write counter; 0 until it was written or read.
    pub(crate) header_writes: AtomicU32,
    /// Pages that became dirty, in that order; a page may be here and clean again.
    pub(crate) dirty: Mutex<Vec<u32>>,
    /// Held while pages of this data set are written, so that a page has one writer.
    pub(crate) write_lock: Mutex<()>,
    pub(crate) counters: Counters,
    poison: OnceLock<String>,
    /// Everything up to here is in the counts of the header page as it was read.
    header_lsn: AtomicU64,
    /// The header on disk is not up to date.
    changed: AtomicBool,
    /// It came since the last checkpoint, or its header page is not as the last one says.
    unrecorded: AtomicBool,
    /// Where it is entered when it is used, and whether it is there.
    changed_list: Arc<ChangedList>,
    listed: AtomicBool,
    /// Redo is going on: pages on disk may have been written later than the map.
    recovering: AtomicBool,
    /// The log defines it, or the catalog names it: its changes are logged, its pages written twice.
    logged: AtomicBool,
    /// Serialises what a latch on one leaf cannot: the first root, and keys whose RID lists reach over leaves.
    pub(crate) structure_lock: Mutex<()>,
}

/// Everything a data set needs from its database.
pub(crate) struct DataSetContext {
    pub(crate) database_id: u128,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) path: PathBuf,
    pub(crate) direct: bool,
    pub(crate) pools: [Arc<Pool>; 2],
    pub(crate) files: Arc<OpenFiles>,
    pub(crate) changed_list: Arc<ChangedList>,
}

impl DataSet {
    /// A data set that has no file yet.
    pub(crate) fn new(attributes: DataSetAttributes, context: DataSetContext) -> DataSet {
        DataSet {
            database_id: context.database_id,
            pools: context.pools,
            storage: context.storage,
            path: context.path,
            direct: context.direct,
            file: Arc::default(),
            files: context.files,
            defined: AtomicBool::new(false),
            writable: AtomicBool::new(true),
            allocation: Mutex::default(),
            page_count: AtomicU32::new(0),
            translation: Doubling::default(),
            space: Mutex::new(SpaceMap::new(attributes.page_bytes)),
            facts: Mutex::default(),
            root_cache: AtomicU64::new(0),
            header_writes: AtomicU32::new(0),
            dirty: Mutex::default(),
            write_lock: Mutex::default(),
            counters: Counters::default(),
            poison: OnceLock::new(),
            header_lsn: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            unrecorded: AtomicBool::new(false),
            changed_list: context.changed_list,
            listed: AtomicBool::new(false),
            recovering: AtomicBool::new(false),
            logged: AtomicBool::new(false),
            structure_lock: Mutex::default(),
            attributes,
        }
    }

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

    /// Is something of it not on disk?
    pub(crate) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed) || !self.dirty.lock().is_empty() || self.space.lock().has_changes()
    }

    /// Whoever looks at what was used finds it.
    #[inline]
    pub(crate) fn enter(&self) {
        self.changed_list.enter(self.attributes.file_id, &self.listed);
    }

    /// It was taken out of the list, and is about to be looked at.
    pub(crate) fn left_list(&self) {
        self.listed.store(false, Ordering::Release);
    }

    fn set_changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
        self.enter();
    }

    /// The next checkpoint is to name it, also if nothing of it is to be written.
    pub(crate) fn set_unrecorded(&self) {
        self.unrecorded.store(true, Ordering::Relaxed);
        self.enter();
    }

    /// Is the next checkpoint to name it?
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.unrecorded.load(Ordering::Relaxed)
    }

    /// Is the next checkpoint to name it? It will.
    pub(crate) fn take_unrecorded(&self) -> bool {
        self.unrecorded.swap(false, Ordering::Relaxed)
    }

    /// A page became dirty.
    pub(crate) fn note_dirty(&self, pages: impl IntoIterator<Item = u32>) {
        let mut dirty = self.dirty.lock();
        dirty.extend(pages);
        let any = !dirty.is_empty();
        drop(dirty);
        if any {
            self.enter();
        }
    }

    /// Is something of it not on disk? A flush that follows makes it so.
    pub(crate) fn take_changed(&self) -> bool {
        let dirty = self.dirty.lock();
        let changed = self.changed.swap(false, Ordering::Relaxed) || !dirty.is_empty();
        drop(dirty);
        changed || self.space.lock().has_changes()
    }

    /// Takes the list of dirty pages, to write them. Until a flush, the data set counts as changed.
    pub(crate) fn take_dirty(&self) -> Vec<u32> {
        let mut dirty = self.dirty.lock();
        if !dirty.is_empty() {
            self.set_changed();
        }
        std::mem::take(&mut *dirty)
    }

    /// The map pages to write and the header, as they are now; `lsn` is the end of the log.
    pub(crate) fn map_and_header(&self, lsn: Lsn) -> MapAndHeader {
        let maps = {
            let mut space = self.space.lock();
            let changed = space.take_changed();
            // Its own word counts a map page too, so all are counted before any is written.
            for map_page in &changed {
                space.count_write(*map_page);
            }
            space.take_changed();
            changed
                .into_iter()
                .map(|page| MapPage { page, write_counter: space.word(page).write_counter(), words: space.words_of(page) })
                .collect()
        };
        MapAndHeader { maps, header: self.header(), lsn }
    }

    /// The header as it is to be written.
    pub(crate) fn header(&self) -> DataSetHeader {
        let facts = self.facts.lock().clone();
        let space = self.space.lock();
        DataSetHeader {
            file_id: self.attributes.file_id,
            object_id: self.attributes.object_id,
            kind: self.attributes.kind,
            partition: self.attributes.partition,
            page_bytes: self.attributes.page_bytes as u32,
            leaf_bytes: self.attributes.leaf_bytes as u32,
            page_count: space.page_count(),
            data_pages: facts.data_pages,
            rows: facts.rows,
            root_page: facts.root_page,
            levels: facts.levels,
            keys: facts.keys,
            space_map_writes: space.map_writes(),
            dictionaries: facts.dictionaries,
        }
    }

    /// File id.
    #[must_use]
    pub fn file_id(&self) -> u32 {
        self.attributes.file_id
    }

    /// Page size on disk.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.attributes.page_bytes
    }

    /// Size of leaf pages in memory.
    #[must_use]
    pub fn leaf_bytes(&self) -> usize {
        self.attributes.leaf_bytes
    }

    /// Are leaves folded on disk?
    #[must_use]
    pub fn is_folded(&self) -> bool {
        self.attributes.leaf_bytes != self.attributes.page_bytes
    }

    /// What errors call it.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.attributes.object
    }

    /// Where its file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has it a file?
    #[must_use]
    pub fn is_defined(&self) -> bool {
        self.defined.load(Ordering::Acquire)
    }

    /// Pages in use, header and map pages included; 0 while there is no file.
    #[must_use]
    pub fn page_count(&self) -> u32 {
        self.page_count.load(Ordering::Acquire)
    }

    /// Bytes of the file, extents that are not used yet included.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        self.allocation.lock().bytes
    }

    /// Counts and roots.
    pub fn facts(&self) -> MutexGuard<'_, DataSetFacts> {
        self.facts.lock()
    }

    /// Root page and levels of an index; (0, 0) when it is empty.
    #[inline]
    pub(crate) fn root(&self) -> (u32, u16) {
        let mut word = self.root_cache.load(Ordering::Acquire);
        if word == 0 {
            let facts = self.facts.lock();
            word = u64::from(facts.levels) << 32 | u64::from(facts.root_page);
            self.root_cache.store(word, Ordering::Release);
        }
        (word as u32, (word >> 32) as u16)
    }

    fn set_root(&self, page: u32, levels: u16) {
        let mut facts = self.facts.lock();
        (facts.root_page, facts.levels) = (page, levels);
        self.root_cache.store(u64::from(levels) << 32 | u64::from(page), Ordering::Release);
    }

    /// Are its changes logged?
    #[inline]
    pub(crate) fn is_logged(&self) -> bool {
        self.logged.load(Ordering::Relaxed)
    }

    /// The log is about to define it. Everything of it is on disk.
    pub(crate) fn set_logged(&self) {
        self.logged.store(true, Ordering::Relaxed);
    }

    /// Makes what a mini-transaction did to the data set seen. The log calls this when the record has its place.
    pub(crate) fn apply(&self, page: u32, op: DataSetOp) {
        self.set_changed();
        match op {
            DataSetOp::Allocate { .. } => self.space().settle(page),
            DataSetOp::Free => self.space().free(page),
            DataSetOp::Root { levels } => self.set_root(page, levels),
            DataSetOp::Count(counts) => {
                let mut facts = self.facts.lock();
                facts.rows = facts.rows.saturating_add_signed(counts.rows);
                facts.keys = facts.keys.saturating_add_signed(counts.keys);
                facts.data_pages = i64::from(facts.data_pages).saturating_add(counts.data_pages).clamp(0, u32::MAX.into()) as u32;
            }
            DataSetOp::Dictionary { version, bytes } => {
                let mut facts = self.facts.lock();
                if facts.dictionaries.iter().all(|root| root.version != version) {
                    facts.dictionaries.push(DictionaryRoot { version, first_page: page, bytes });
                }
            }
            DataSetOp::DropDictionary { version } => self.facts.lock().dictionaries.retain(|root| root.version != version),
            // The table says which partitions it has; of ghosts only redo keeps a list.
            DataSetOp::Partition { .. } | DataSetOp::GhostGone { .. } => {}
        }
    }

    /// Redo begins: what a crash left may be newer on disk than header and map say.
    pub(crate) fn set_recovering(&self, recovering: bool) {
        self.recovering.store(recovering, Ordering::Relaxed);
        if !recovering {
            self.space.lock().collect_unallocated();
        }
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Relaxed)
    }

    /// The counts that the header had when it was read are those of all records up to here.
    pub(crate) fn header_lsn(&self) -> Lsn {
        self.header_lsn.load(Ordering::Relaxed)
    }

    /// Has it this dictionary, or fewer than there can be?
    pub(crate) fn has_room_for_dictionary(&self, version: u16) -> bool {
        let facts = self.facts.lock();
        facts.dictionaries.len() < DICTIONARIES_MAX || facts.dictionaries.iter().any(|root| root.version == version)
    }

    /// Redo of taking a page (with its class) or giving it back.
    pub(crate) fn redo_space(&self, page: u32, class: Option<u8>) -> Result<()> {
        if page == 0 || page >= PAGES_MAX || space_map::is_map_page(page, self.attributes.page_bytes) {
            return Err(self.corrupt(page, "the log has it as a page that was taken or given back"));
        }
        self.file()?;
        // The file first: so the device bounds what a damaged log makes of the map.
        self.extend(page + 1)?;
        self.space().redo(page, class.unwrap_or(space_map::CLASS_UNALLOCATED));
        self.extend_to_map()
    }

    /// Redo makes a page anew: if it has been written before, the map is to know how often.
    pub(crate) fn see_write_counter(&self, page: u32) {
        let mut buffer = AlignedBuffer::new(self.attributes.page_bytes, 4096);
        if self.read_raw(page, &mut buffer).is_ok() && page::verify(&buffer, &self.identity(page)).is_ok() {
            self.space().see_write(page, page::write_counter(&buffer));
        }
    }

    /// A page that was taken and then not needed is free again.
    pub(crate) fn give_back(&self, page: u32) {
        self.space().free(page);
    }

    /// The space map. Who asks for it may change it.
    pub(crate) fn space(&self) -> MutexGuard<'_, SpaceMap> {
        self.enter();
        self.space.lock()
    }

    /// Bytes of a page that are kept for running transactions.
    pub(crate) fn kept_bytes(&self, page: u32) -> usize {
        self.space.lock().kept(page).0
    }

    /// Might a change of a page's rows have to be taken back?
    pub(crate) fn is_kept(&self, page: u32) -> bool {
        self.space.lock().kept(page).1 > 0
    }

    /// Numbers of the pages that hold rows, ascending.
    #[must_use]
    pub fn data_page_numbers(&self) -> Vec<u32> {
        self.space.lock().data_pages().collect()
    }

    /// Counters of this object.
    #[must_use]
    pub fn counters(&self) -> CounterValues {
        self.counters.values()
    }

    /// What a page's checksum is bound to.
    #[must_use]
    pub fn identity(&self, page_number: u32) -> PageIdentity {
        PageIdentity { database_id: self.database_id, file_id: self.attributes.file_id, page_number }
    }

    /// An error about a page of this data set.
    pub fn corrupt(&self, page: u32, reason: impl ToString) -> Error {
        Error::corrupt(self.attributes.object.clone(), page, reason)
    }

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
        self.extend(space.page_count() + space.reserve_pages(0)).inspect_err(|_| space.reserve(-(bytes as i64)))?;
        Ok(space)
    }

    /// Changes what is kept of a page: by so many bytes, for so many rows. Nothing of that is on disk.
    pub(crate) fn keep(&self, page: u32, bytes: isize, rows: i32) {
        self.space.lock().keep(page, bytes, rows);
    }

    /// Takes the next page at the end.
    pub(crate) fn append_page(&self, class: u8) -> Result<u32> {
        self.allocate_with(false, false, |space| space.append(class, PAGES_MAX))
    }

    fn allocate_with(&self, free_ones: bool, reserved: bool, take: impl FnOnce(&mut SpaceMap) -> Result<u32>) -> Result<u32> {
        self.check_poison()?;
        self.file()?;
        let mut space = self.space.lock();
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

    /// How often the header page was written.
    #[must_use]
    pub fn header_writes(&self) -> u32 {
        self.header_writes.load(Ordering::Relaxed)
    }

    /// Where the next extent ends.
    fn extent_end(&self, allocation: &Allocation) -> u64 {
        let page_bytes = self.attributes.page_bytes as u64;
        let extent = self.attributes.extents.next(allocation.extents_taken).next_multiple_of(page_bytes).max(page_bytes);
        // On a device with 4 KB sectors the last extent must end on one.
        (allocation.bytes + extent).next_multiple_of(4096)
    }

    /// Makes the file long enough for `pages`.
    fn extend(&self, pages: u32) -> Result<()> {
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

    fn verify(&self, page_number: u32, bytes: &[u8], expected: PageType) -> Result<()> {
        let found = page::verify(bytes, &self.identity(page_number)).map_err(|e| self.corrupt(page_number, e))?;
        if found != expected {
            return Err(self.corrupt(page_number, format!("a page of type {found:?} where {expected:?} is expected")));
        }
        Ok(())
    }

    /// Refuses when an earlier write failed.
    pub(crate) fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(reason) => Err(Error::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// Has a write failed, or is its file missing?
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Remembers that a write failed.
    pub(crate) fn poison(&self, reason: impl ToString) {
        let _ = self.poison.set(reason.to_string());
    }

    /// Removes the file. Nobody uses the data set any more.
    pub(crate) fn remove(&self) -> Result<()> {
        self.file.forget();
        if self.storage.exists(&self.path)? {
            self.storage.remove(&self.path)?;
        }
        Ok(())
    }
}

//! A data set: one file, its pages' words, its space map and its header.
//!
//! Invariants:
//! - pages at or above `page_count` were never written and are never asked for;
//! - the file comes into being with the first page that is allocated (DEFINE NO);
//! - header page and map pages are not in a pool: they are written from here, after all other pages (`pool/deferred_write.rs`).
//!
//! * `attributes`: what it is, and what is known of it
//! * `open`: opening it
//! * `file`: the file, and pages that are taken
//! * `changes`: what is not on disk
//! * `holes`: blocks of free pages, which go back to the file system
//! * `logged`: what the log says of it

mod attributes;
mod changes;
mod file;
mod holes;
mod logged;
mod open;

pub(crate) use attributes::HeaderWrites;
pub use attributes::{DataSetAttributes, DataSetEntry, DataSetFacts, Extents};
pub(crate) use changes::MapAndHeader;

use crate::changed_list::ChangedList;
use crate::doubling::{Doubling, segments_for};
use crate::frames::{CounterValues, Counters, PageWord, Pool};
use crate::open_files::{FileCell, OpenFiles};
use crate::space_map::SpaceMap;
use crate::{Error, Result};
use pagefold_format::page::PageIdentity;
use pagefold_format::space_map::CLASS_FULL;
use pagefold_io::Storage;
use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Page words in the first segment of the translation array, as a power of two: most data sets of a database with very many are small.
const TRANSLATION_BITS: u32 = 4;

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

    /// The space map. Who asks for it may change it.
    pub(crate) fn space(&self) -> MutexGuard<'_, SpaceMap> {
        self.enter();
        self.space.lock()
    }

    /// Bytes of a page that are kept for running transactions.
    pub(crate) fn kept_bytes(&self, page: u32) -> usize {
        self.space.lock().kept(page).0
    }

    /// The same of a page of rows; `None` when it is none.
    pub(crate) fn kept_of_rows(&self, page: u32) -> Option<usize> {
        let space = self.space.lock();
        (space.word(page).class() >= CLASS_FULL).then(|| space.kept(page).0)
    }

    /// Might a change of a page's rows have to be taken back?
    pub(crate) fn is_kept(&self, page: u32) -> bool {
        self.space.lock().kept(page).1 > 0
    }

    /// Is a page below the end none of rows? It may have been.
    pub(crate) fn is_given_back(&self, page: u32) -> bool {
        let space = self.space.lock();
        page < space.page_count() && space.word(page).class() < CLASS_FULL
    }

    /// Numbers of pages of rows that have none, by the map, but for those that are left for rows to come; ascending.
    pub(crate) fn surplus_empty_pages(&self) -> Vec<u32> {
        self.space.lock().surplus_empty_pages()
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

    /// Changes what is kept of a page: by so many bytes, for so many rows. Nothing of that is on disk.
    pub(crate) fn keep(&self, page: u32, bytes: isize, rows: i32) {
        self.space.lock().keep(page, bytes, rows);
    }

    /// How often the header page was written.
    #[must_use]
    pub fn header_writes(&self) -> u32 {
        self.header_writes.load(Ordering::Relaxed)
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
}

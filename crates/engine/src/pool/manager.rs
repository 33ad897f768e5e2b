//! The buffer manager: getpage.
//!
//! Invariants:
//! - a page is read by the thread that claimed its word; everyone else waits for that word, nobody reads it twice;
//! - who has read a page for a getpage has it latched from the read on: it cannot leave before it is had;
//! - a frame is published in a page word only after its bytes were verified (or zeroed, for a new page);
//! - no lock is held across a read or write but the word of the page itself, and a data set's write lock during writes.

use super::background::Background;
use super::deferred_write::Protection;
use super::filter_memory::FilterMemory;
use super::guard::{ExclusivePage, Frame, SharedPage, held};
use super::leaf_io;
use super::mini_transaction::{Frees, LogSink};
use super::reserve::{Reserve, Turn};
use super::work_area::WorkArea;
use crate::Result;
use crate::data_set::DataSet;
use crate::frames::{Arena, CounterValues, Evict, Eviction, ExclusiveWait, Latch, Order, PageWord, Pool, add};
use crate::gate::Gate;
use pagefold_io::Clock;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Why a page is asked for; it decides what prefetch and replacement make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One of many pages in no order.
    Random,
    /// One of all pages in order: takes no frames from pages that others use, and leaves first.
    Scan,
}

/// Settings of the buffer manager.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// Bytes of the frames of all pools together, in chunks of 256 KB; one at least. Beside them there are 1 MB of frames of the reserve, and the buffers that pages pass through on their way.
    pub memory_bytes: usize,
    /// Threads for prefetch and deferred write.
    pub background_threads: usize,
    /// Bytes on disk that one prefetch or deferred-write I/O moves at most.
    pub bytes_per_io: usize,
    /// Share of a pool's frames, in percent, that may be dirty before the deferred-write engine starts by itself.
    pub dirty_percent: usize,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        PoolSettings { memory_bytes: 256 << 20, background_threads: 2, bytes_per_io: 128 * 1024, dirty_percent: 30 }
    }
}

/// All buffer pools.
#[derive(Debug)]
pub struct BufferManager {
    pub(super) settings: PoolSettings,
    pub(super) arena: Arena,
    pub(super) reserve: Reserve,
    pub(super) pools: RwLock<Vec<Arc<Pool>>>,
    pub(super) data_sets: RwLock<HashMap<u32, Weak<DataSet>>>,
    /// For each unit where a frame starts: file id (high half) and page number of the page in it.
    pub(super) owners: Box<[AtomicU64]>,
    pub(super) dirty_pages: AtomicUsize,
    /// Single pages on their way in.
    pub(super) page_buffers: WorkArea,
    /// Clusters of pages on their way in or out.
    pub(super) cluster_buffers: WorkArea,
    /// Batches of dirty pages in their form on disk.
    pub(super) batch_buffers: WorkArea,
    pub(super) clock: Arc<dyn Clock>,
    protection: OnceLock<Protection>,
    gate: OnceLock<Arc<Gate>>,
    pub(super) retired: Mutex<CounterValues>,
    background: Background,
    /// Turns among the pools whose last chunk is taken.
    pub(super) last_victim: AtomicUsize,
    /// Chunks that went from one pool to another.
    pub(super) steals: AtomicU64,
    /// What filters of keys may take beside the frames.
    filter_memory: Arc<FilterMemory>,
    /// Held while counts go from one data set to another.
    moving_counts: RwLock<()>,
}

/// Bytes of a batch of deferred writes: what is protected, and synced, at once.
const BATCH_BYTES: usize = 1 << 20;

/// Filters of keys take this part of what frames may take, beside it.
const FILTERS_OF_MEMORY: usize = 4;

impl BufferManager {
    /// Makes the arena and starts the background threads.
    ///
    /// # Errors
    /// When the memory cannot be reserved.
    pub fn new(settings: PoolSettings, clock: Arc<dyn Clock>) -> Result<Arc<BufferManager>> {
        let arena = Arena::new(settings.memory_bytes)?;
        let reserve = Reserve::new(arena.first_reserved_unit());
        let owners = (0..arena.units()).map(|_| AtomicU64::new(0)).collect();
        let bytes_per_io = settings.bytes_per_io.clamp(32 * 1024, 4 << 20);
        let manager = Arc::new(BufferManager {
            settings: PoolSettings { bytes_per_io, ..settings },
            arena,
            reserve,
            pools: RwLock::default(),
            data_sets: RwLock::default(),
            owners,
            dirty_pages: AtomicUsize::new(0),
            page_buffers: WorkArea::new(32 * 1024, 32),
            cluster_buffers: WorkArea::new(bytes_per_io, settings.background_threads + 4),
            clock,
            protection: OnceLock::new(),
            gate: OnceLock::new(),
            batch_buffers: WorkArea::new(BATCH_BYTES, 2),
            retired: Mutex::default(),
            background: Background::default(),
            last_victim: AtomicUsize::new(0),
            steals: AtomicU64::new(0),
            filter_memory: FilterMemory::new(settings.memory_bytes / FILTERS_OF_MEMORY),
            moving_counts: RwLock::default(),
        });
        Background::start(&manager, settings.background_threads);
        Ok(manager)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    /// What filters of keys may take, and have.
    pub(crate) fn filter_memory(&self) -> &Arc<FilterMemory> {
        &self.filter_memory
    }

    /// What pages of live data sets pass before they are written in place.
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.gate.get().map(Arc::as_ref)
    }

    /// From now on pages of live data sets pass this gate before they are written in place.
    pub(crate) fn set_gate(&self, gate: Arc<Gate>) {
        let _ = self.gate.set(gate);
    }

    /// Held exclusively while counts of rows go from one data set to another, shared while those of several are added up.
    pub(crate) fn moving_counts(&self) -> &RwLock<()> {
        &self.moving_counts
    }

    /// The log; `None` while changes need none.
    pub(crate) fn log(&self) -> Option<&dyn LogSink> {
        self.protection.get().map(|protection| protection.log.as_ref())
    }

    /// The clock of the database.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Makes room in the log for the records to come.
    ///
    /// # Errors
    /// When the device is full.
    pub(crate) fn prepare_log(&self) -> Result<()> {
        self.log().map_or(Ok(()), LogSink::prepare)
    }

    /// The same for records of what frees space.
    ///
    /// # Errors
    /// When the device is full, and what is kept back for them is used up.
    pub(crate) fn prepare_log_to_free(&self, what: Frees) -> Result<()> {
        self.log().map_or(Ok(()), |log| log.prepare_to_free(what))
    }

    pub(super) fn protection(&self) -> Option<&Protection> {
        self.protection.get()
    }

    /// From now on changes of logged data sets go to this log, and their pages are written twice.
    pub(crate) fn set_protection(&self, protection: Protection) {
        let _ = self.protection.set(protection);
    }

    pub(super) fn background(&self) -> &Background {
        &self.background
    }

    /// How often a pool has taken a chunk from another one.
    #[must_use]
    pub fn steals(&self) -> u64 {
        self.steals.load(Ordering::Relaxed)
    }

    /// How often a thread has taken its turn to have frames of the reserve, as pages that it needed together had left before it had them.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.reserve.turns()
    }

    /// Waits until it is the caller's turn to get frames of the reserve, until what is returned is dropped. The caller has no latch that somebody may wait for whose turn it is.
    pub(crate) fn take_turn(&self) -> Turn<'_> {
        self.reserve.take_turn()
    }

    fn check_number(&self, data_set: &DataSet, page: u32) -> Result<()> {
        if page >= data_set.page_count() {
            return Err(data_set.corrupt(page, format!("no such page: the data set has {}", data_set.page_count())));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn frame(&self, data_set: &DataSet, unit: u32, second: bool) -> Frame {
        Frame { address: self.arena.address(unit), bytes: data_set.pools[usize::from(second)].frame_bytes() }
    }

    /// The page for reading, if it is in memory and nobody changes it. Nothing is read. Who waits
    /// for it is passed: nobody asks again and again.
    #[inline]
    pub fn try_shared<'a>(&self, data_set: &'a DataSet, page: u32) -> Option<SharedPage<'a>> {
        if page >= data_set.page_count() {
            return None;
        }
        let word = data_set.translation.get_or_make(page);
        match word.try_shared(true, Order::Ahead) {
            Latch::Taken(unit, second) => {
                data_set.counters.getpages.add_one();
                Some(SharedPage::new(word, self.frame(data_set, unit, second), page))
            }
            _ => None,
        }
    }

    /// Getpage: the page for reading, read from disk when it is not in memory.
    ///
    /// # Errors
    /// When it does not exist, cannot be read or is damaged; when no frame can be had.
    #[inline]
    pub fn shared<'a>(&self, data_set: &'a DataSet, page: u32, access: Access) -> Result<SharedPage<'a>> {
        self.shared_in(None, data_set, page, access)
    }

    /// As [`Self::shared`], with a frame of the reserve in a turn.
    ///
    /// # Errors
    /// As `shared`.
    #[inline]
    pub(crate) fn shared_in<'a>(
        &self,
        turn: Option<&Turn<'_>>,
        data_set: &'a DataSet,
        page: u32,
        access: Access,
    ) -> Result<SharedPage<'a>> {
        self.check_number(data_set, page)?;
        data_set.counters.getpages.add_one();
        let word = data_set.translation.get_or_make(page);
        // The first try costs no look at what the thread holds: who may go ahead finds that out
        // when it fails.
        let (mut order, mut tries) = (Order::InTurn, 0);
        loop {
            match word.try_shared(access == Access::Random, order) {
                Latch::Taken(unit, second) => {
                    return Ok(SharedPage::new(word, self.frame(data_set, unit, second), page));
                }
                Latch::NotResident => {
                    if let Some(frame) = self.read_page(data_set, page, word, (access, turn))? {
                        word.downgrade();
                        return Ok(SharedPage::new(word, frame, page));
                    }
                }
                Latch::Busy => order = wait_shared(data_set, word, 0, &mut tries),
            }
        }
    }

    /// Getpage for change.
    ///
    /// # Errors
    /// As [`Self::shared`]; also when an earlier write of the data set failed.
    pub fn exclusive<'a>(&self, data_set: &'a DataSet, page: u32) -> Result<ExclusivePage<'a>> {
        self.exclusive_in(None, data_set, page)
    }

    /// As [`Self::exclusive`], with a frame of the reserve in a turn.
    ///
    /// # Errors
    /// As `exclusive`.
    pub(crate) fn exclusive_in<'a>(&self, turn: Option<&Turn<'_>>, data_set: &'a DataSet, page: u32) -> Result<ExclusivePage<'a>> {
        self.check_number(data_set, page)?;
        data_set.check_poison()?;
        data_set.counters.getpages.add_one();
        let word = data_set.translation.get_or_make(page);
        let mut wait = Wait::new(data_set, word);
        loop {
            match word.try_exclusive() {
                Latch::Taken(unit, second) => return Ok(ExclusivePage::new(data_set, word, self.frame(data_set, unit, second), page)),
                Latch::NotResident => {
                    if let Some(frame) = self.read_page(data_set, page, word, (Access::Random, turn))? {
                        return Ok(ExclusivePage::new(data_set, word, frame, page));
                    }
                }
                Latch::Busy => wait.once(),
            }
        }
    }

    /// The page for change, read from disk when it is not in memory; `None` when somebody else has it, or is reading it: that is not waited for.
    ///
    /// # Errors
    /// As [`Self::exclusive`].
    pub(crate) fn exclusive_unless_busy<'a>(&self, data_set: &'a DataSet, page: u32) -> Result<Option<ExclusivePage<'a>>> {
        self.check_number(data_set, page)?;
        data_set.check_poison()?;
        let word = data_set.translation.get_or_make(page);
        let frame = match word.try_exclusive() {
            Latch::Taken(unit, second) => Some(self.frame(data_set, unit, second)),
            Latch::NotResident => self.read_page(data_set, page, word, (Access::Random, None))?,
            Latch::Busy => None,
        };
        Ok(frame.map(|frame| {
            data_set.counters.getpages.add_one();
            ExclusivePage::new(data_set, word, frame, page)
        }))
    }

    /// The page for reading if it is in memory; waits for who changes it, but not for who reads it
    /// from disk. The one latch that the thread may hold is that of a page which all take before
    /// this one: its parent.
    #[inline]
    pub(crate) fn shared_resident<'a>(&self, data_set: &'a DataSet, page: u32) -> Option<SharedPage<'a>> {
        if page >= data_set.page_count() {
            return None;
        }
        let word = data_set.translation.get_or_make(page);
        let (mut order, mut tries) = (Order::InTurn, 0);
        loop {
            match word.try_shared(true, order) {
                Latch::Taken(unit, second) => {
                    data_set.counters.getpages.add_one();
                    return Some(SharedPage::new(word, self.frame(data_set, unit, second), page));
                }
                Latch::Busy if word.state().resident => order = wait_shared(data_set, word, 1, &mut tries),
                _ => return None,
            }
        }
    }

    /// The page for change if it is in memory; waits for others who have it, but not for who reads it from disk.
    ///
    /// # Errors
    /// When an earlier write of the data set failed.
    pub(crate) fn exclusive_resident<'a>(&self, data_set: &'a DataSet, page: u32) -> Result<Option<ExclusivePage<'a>>> {
        data_set.check_poison()?;
        if page >= data_set.page_count() {
            return Ok(None);
        }
        let word = data_set.translation.get_or_make(page);
        let mut wait = Wait::new(data_set, word);
        loop {
            match word.try_exclusive() {
                Latch::Taken(unit, second) => {
                    data_set.counters.getpages.add_one();
                    return Ok(Some(ExclusivePage::new(data_set, word, self.frame(data_set, unit, second), page)));
                }
                Latch::Busy if word.state().resident => wait.once(),
                _ => return Ok(None),
            }
        }
    }

    /// A page that is to be made anew, latched. `leaf` chooses the pool of a folded index.
    ///
    /// An earlier page of this number may be in memory still: given back, and perhaps not written since it was changed. Recovery repeats those changes before it makes the page anew, and
    /// a checkpoint may go by meanwhile; so it stays what it was, dirty too, until the first op.
    ///
    /// # Errors
    /// When no frame can be had, or the earlier page cannot be written.
    pub(crate) fn create<'a>(&self, turn: Option<&Turn<'_>>, data_set: &'a DataSet, page: u32, leaf: bool) -> Result<ExclusivePage<'a>> {
        let second = data_set.is_folded() && !leaf;
        let word = data_set.translation.get_or_make(page);
        let mut wait = Wait::new(data_set, word);
        while !word.claim() {
            if let Latch::Taken(unit, in_second) = word.try_exclusive() {
                if in_second == second {
                    return Ok(ExclusivePage::new(data_set, word, self.frame(data_set, unit, second), page));
                }
                word.release_exclusive();
                match word.try_evict(unit, in_second, Evict::Force) {
                    Eviction::Evicted => {
                        self.give_frame_back(&data_set.pools[usize::from(in_second)], unit);
                        continue;
                    }
                    Eviction::Dirty => {
                        let writes = self.write_pages(data_set, &[page], &mut Vec::new())?;
                        add(&data_set.counters.synchronous_writes, writes);
                    }
                    Eviction::Kept => {}
                }
            }
            wait.once();
        }
        drop(wait);
        let claim = Claim(Some(word));
        let unit = self.acquire_frame(&data_set.pools[usize::from(second)], Access::Random, turn)?;
        self.own(unit, data_set, page);
        word.set_frame(unit, second, 1);
        claim.keep();
        let mut guard = ExclusivePage::new(data_set, word, self.frame(data_set, unit, second), page);
        guard.bytes_mut().fill(0);
        Ok(guard)
    }

    pub(super) fn own(&self, unit: u32, data_set: &DataSet, page: u32) {
        self.owners[unit as usize].store(u64::from(data_set.file_id()) << 32 | u64::from(page), Ordering::Release);
    }

    /// Reads one page in the asking thread, which has it latched exclusively then; `None` when somebody else has been at it.
    #[cold]
    fn read_page(
        &self,
        data_set: &DataSet,
        page: u32,
        word: &PageWord,
        (access, turn): (Access, Option<&Turn<'_>>),
    ) -> Result<Option<Frame>> {
        if !word.claim() {
            return Ok(None);
        }
        let claim = Claim(Some(word));
        let cpu = self.clock.thread_cpu();
        let start = self.clock.monotonic();
        let mut buffer = self.page_buffers.take();
        let disk = &mut buffer[..data_set.page_bytes()];
        data_set.read_raw(page, disk)?;
        let waited = self.clock.monotonic().saturating_sub(start);
        let second = leaf_io::verify(data_set, page, disk)?;
        let unit = self.acquire_frame(&data_set.pools[usize::from(second)], access, turn)?;
        let frame = self.frame(data_set, unit, second);
        // SAFETY: the frame has just been acquired and the page is claimed: nobody else knows of it.
        #[expect(unsafe_code, reason = "filling a frame before it is published")]
        let into = unsafe { frame.as_mut_slice() };
        if let Err(error) = leaf_io::into_frame(data_set, page, disk, into) {
            self.give_frame_back(&data_set.pools[usize::from(second)], unit);
            return Err(error);
        }
        self.own(unit, data_set, page);
        // To be read counts as one use, and to be asked for as another.
        self.publish(data_set, (unit, second), word, access, 2);
        claim.keep();
        add(&data_set.counters.synchronous_reads, 1);
        add(&data_set.counters.read_wait_ns, waited.as_nanos() as u64);
        add(&data_set.counters.asking_cpu_ns, self.clock.thread_cpu().saturating_sub(cpu).as_nanos() as u64);
        Ok(Some(frame))
    }

    /// Names a filled frame in the word of its page. Pages that a scan brings in count as unused and go on the ring.
    pub(super) fn publish(&self, data_set: &DataSet, (unit, second): (u32, bool), word: &PageWord, access: Access, uses: u8) {
        word.set_frame(unit, second, if access == Access::Random { uses } else { 0 });
        if access == Access::Scan && !self.reserve.has(unit) {
            data_set.pools[usize::from(second)].push_ring(unit);
        }
    }

    /// A mini-transaction has made a clean page dirty.
    pub(super) fn became_dirty(&self, data_set: &DataSet, page: u32) {
        data_set.note_dirty([page]);
        let dirty = self.dirty_pages.fetch_add(1, Ordering::Relaxed) + 1;
        // Against the pool at hand: a database of one busy pool is the common case.
        if dirty * 100 > data_set.pools[0].frames_max() * self.settings.dirty_percent && dirty.is_multiple_of(64) {
            self.background.request_write(data_set.file_id());
        }
    }

    pub(super) fn became_clean(&self) {
        self.dirty_pages.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn became_dirty_again(&self, data_set: &DataSet, page: u32) {
        data_set.note_dirty([page]);
        self.dirty_pages.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for BufferManager {
    fn drop(&mut self) {
        self.background.stop();
    }
}

/// Waits once for a shared latch that was not to be had, by a thread that holds at most `ordered`
/// latches which come before it, or else goes ahead of others. How to try again.
#[cold]
fn wait_shared(data_set: &DataSet, word: &PageWord, ordered: u32, tries: &mut u32) -> Order {
    let order = Order::of(held(), ordered, *tries);
    // Who goes ahead may not have to wait.
    if (*tries > 0 || order == Order::InTurn) && word.wait_shared(order, *tries) {
        add(&data_set.counters.latch_sleeps, 1);
    }
    *tries += 1;
    order
}

/// Who waits for an exclusive latch, from the first time it was not to be had.
struct Wait<'a> {
    data_set: &'a DataSet,
    word: &'a PageWord,
    waits: Option<ExclusiveWait<'a>>,
    tries: u32,
}

impl<'a> Wait<'a> {
    fn new(data_set: &'a DataSet, word: &'a PageWord) -> Wait<'a> {
        Wait { data_set, word, waits: None, tries: 0 }
    }

    #[cold]
    fn once(&mut self) {
        self.waits.get_or_insert_with(|| self.word.wait_for_exclusive());
        if self.word.wait_exclusive(self.tries) {
            add(&self.data_set.counters.latch_sleeps, 1);
        }
        self.tries += 1;
    }
}

/// A claimed page word: given up unless kept.
pub(super) struct Claim<'a>(pub(super) Option<&'a PageWord>);

impl Claim<'_> {
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(word) = self.0 {
            word.abandon();
        }
    }
}

//! The buffer manager: getpage, and who gets a frame.
//!
//! Invariants:
//! - a page is read by the thread that claimed its word; everyone else waits for that word, nobody reads it twice;
//! - a frame is published in a page word only after its bytes were verified (or zeroed, for a new page);
//! - no lock is held across a read or write but the word of the page itself, and a data set's write lock during writes.

use super::arena::{Arena, CHUNK_BYTES};
use super::background::Background;
use super::counters::add;
use super::deferred_write::Protection;
use super::frames::Pool;
use super::guard::{ExclusivePage, Frame, SharedPage, held};
use super::leaf_io;
use super::mini_transaction::LogSink;
use super::word::{Evict, Eviction, ExclusiveWait, Latch, Order, PageWord};
use super::work_area::WorkArea;
use crate::data_set::DataSet;
use crate::readers::Gate;
use crate::{CounterValues, Error, Result};
use pagefold_format::page::is_page_size;
use pagefold_io::Clock;
use parking_lot::{Mutex, RwLock};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

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
    /// Bytes of all frames together. Pools get chunks of 256 KB: below 2 MB, a database with pages of many sizes may find no frame.
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
    settings: PoolSettings,
    arena: Arena,
    pools: RwLock<Vec<Arc<Pool>>>,
    data_sets: RwLock<HashMap<u32, Weak<DataSet>>>,
    /// For each unit where a frame starts: file id (high half) and page number of the page in it.
    owners: Box<[AtomicU64]>,
    dirty_pages: AtomicUsize,
    /// Single pages on their way in.
    pub(super) page_buffers: WorkArea,
    /// Clusters of pages on their way in or out.
    pub(super) cluster_buffers: WorkArea,
    /// Batches of dirty pages in their form on disk.
    pub(super) batch_buffers: WorkArea,
    pub(super) clock: Arc<dyn Clock>,
    protection: OnceLock<Protection>,
    gate: OnceLock<Arc<Gate>>,
    retired: Mutex<CounterValues>,
    background: Background,
    /// Turns among the pools whose last chunk is taken.
    last_victim: AtomicUsize,
}

/// Dirty pages met on the way that make the search stop and write them.
const DIRTY_CANDIDATES: usize = 64;

/// Bytes of a batch of deferred writes: what is protected, and synced, at once.
const BATCH_BYTES: usize = 1 << 20;

/// How many frames a scan looks at for one without uses before it takes one with.
const SCAN_CANDIDATES: usize = 64;

/// How many times an empty-handed search for a frame is repeated, with a pause, before it fails.
const FRAME_TRIES: u32 = 1000;

/// Memory from which on a pool gives its last chunk to one that has none. An operation needs pages of some pools at once; with less, they would take them from each other for ever.
const LAST_CHUNK_MEMORY: usize = 8 * CHUNK_BYTES;

/// Of these so many are made at once, the rest with a pause in between.
const FRAME_YIELDS: u32 = 300;
const FRAME_PAUSE: Duration = Duration::from_millis(1);

impl BufferManager {
    /// Makes the arena and starts the background threads.
    ///
    /// # Errors
    /// When the memory cannot be reserved.
    pub fn new(settings: PoolSettings, clock: Arc<dyn Clock>) -> Result<Arc<BufferManager>> {
        let arena = Arena::new(settings.memory_bytes)?;
        let owners = (0..arena.units()).map(|_| AtomicU64::new(0)).collect();
        let bytes_per_io = settings.bytes_per_io.clamp(32 * 1024, 4 << 20);
        let manager = Arc::new(BufferManager {
            settings: PoolSettings { bytes_per_io, ..settings },
            arena,
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
        });
        Background::start(&manager, settings.background_threads);
        Ok(manager)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    /// What pages of live data sets pass before they are written in place.
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.gate.get().map(Arc::as_ref)
    }

    /// From now on pages of live data sets pass this gate before they are written in place.
    pub(crate) fn set_gate(&self, gate: Arc<Gate>) {
        let _ = self.gate.set(gate);
    }

    /// The log; `None` while changes need none.
    pub(crate) fn log(&self) -> Option<&dyn LogSink> {
        self.protection.get().map(|protection| protection.log.as_ref())
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Makes room in the log for the records to come.
    ///
    /// # Errors
    /// When the device is full.
    pub(crate) fn prepare_log(&self) -> Result<()> {
        self.log().map_or(Ok(()), LogSink::prepare)
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

    /// Makes a pool.
    ///
    /// # Errors
    /// When the name is taken or the frame size is no page size.
    pub fn create_pool(&self, name: &str, frame_bytes: usize, limit_bytes: usize) -> Result<Arc<Pool>> {
        if !is_page_size(frame_bytes) {
            return Err(Error::Parameter(format!("buffer pool \"{name}\": {frame_bytes} bytes is no page size")));
        }
        let mut pools = self.pools.write();
        if pools.iter().any(|pool| pool.name() == name) {
            return Err(Error::Exists { kind: "buffer pool", name: name.into() });
        }
        let pool = Arc::new(Pool::new(name.into(), frame_bytes, limit_bytes));
        pools.push(Arc::clone(&pool));
        Ok(pool)
    }

    /// The pool of this name; made with the whole memory as its limit when it is not there.
    ///
    /// # Errors
    /// When a pool of this name has another frame size.
    pub fn pool(&self, name: &str, frame_bytes: usize) -> Result<Arc<Pool>> {
        if let Some(pool) = self.pools.read().iter().find(|pool| pool.name() == name) {
            if pool.frame_bytes() != frame_bytes {
                return Err(Error::Parameter(format!(
                    "buffer pool \"{name}\" has frames of {} bytes, pages of {frame_bytes} do not fit",
                    pool.frame_bytes()
                )));
            }
            return Ok(Arc::clone(pool));
        }
        match self.create_pool(name, frame_bytes, self.settings.memory_bytes) {
            // Somebody else was quicker.
            Err(Error::Exists { .. }) => self.pool(name, frame_bytes),
            made => made,
        }
    }

    /// All pools.
    #[must_use]
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.read().clone()
    }

    /// Counters of a pool: of all objects assigned to it. A folded index counts in the pool of its leaves.
    #[must_use]
    pub fn pool_counters(&self, pool: &Pool) -> CounterValues {
        let mut sum = CounterValues::default();
        for data_set in self.data_sets.read().values().filter_map(Weak::upgrade) {
            if data_set.pools[0].name() == pool.name() {
                sum += data_set.counters();
            }
        }
        sum
    }

    /// Counters of all pools together, those of objects that are gone included.
    #[must_use]
    pub fn counters(&self) -> CounterValues {
        let mut sum = *self.retired.lock();
        for data_set in self.data_sets.read().values().filter_map(Weak::upgrade) {
            sum += data_set.counters();
        }
        sum
    }

    /// Makes a data set's pages known to the replacement.
    pub(crate) fn register(&self, data_set: &Arc<DataSet>) {
        self.data_sets.write().insert(data_set.file_id(), Arc::downgrade(data_set));
    }

    /// If only the caller has the data set, it is forgotten: from here on nobody else can come to it.
    pub(crate) fn forget_unused(&self, data_set: &Arc<DataSet>) -> bool {
        let mut data_sets = self.data_sets.write();
        // Whoever has none of his own gets it from the map, under its lock.
        let unused = Arc::strong_count(data_set) == 1;
        if unused {
            // What others did with it, before they gave it up, comes before what is done now.
            fence(Ordering::Acquire);
            data_sets.remove(&data_set.file_id());
        }
        unused
    }

    /// Takes all pages of a data set out of memory, dirty ones too, without writing them. Nobody uses it any more.
    pub(crate) fn discard(&self, data_set: &DataSet) {
        self.background.finish(data_set.file_id());
        let _writer = data_set.write_lock.lock();
        for (_, word) in data_set.translation.all() {
            if word.state().dirty {
                self.dirty_pages.fetch_sub(1, Ordering::Relaxed);
            }
            if let Some((unit, second)) = word.discard() {
                data_set.pools[usize::from(second)].push_free(unit);
            }
        }
        self.data_sets.write().remove(&data_set.file_id());
        *self.retired.lock() += data_set.counters();
    }

    fn check_number(&self, data_set: &DataSet, page: u32) -> Result<()> {
        if page >= data_set.page_count() {
            return Err(data_set.corrupt(page, format!("no such page: the data set has {}", data_set.page_count())));
        }
        Ok(())
    }

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
                Latch::NotResident => self.read_page(data_set, page, word, access)?,
                Latch::Busy => order = wait_shared(data_set, word, 0, &mut tries),
            }
        }
    }

    /// Getpage for change.
    ///
    /// # Errors
    /// As [`Self::shared`]; also when an earlier write of the data set failed.
    pub fn exclusive<'a>(&self, data_set: &'a DataSet, page: u32) -> Result<ExclusivePage<'a>> {
        self.check_number(data_set, page)?;
        data_set.check_poison()?;
        data_set.counters.getpages.add_one();
        let word = data_set.translation.get_or_make(page);
        let mut wait = Wait::new(data_set, word);
        loop {
            match word.try_exclusive() {
                Latch::Taken(unit, second) => return Ok(ExclusivePage::new(data_set, word, self.frame(data_set, unit, second), page)),
                Latch::NotResident => self.read_page(data_set, page, word, Access::Random)?,
                Latch::Busy => wait.once(),
            }
        }
    }

    /// The page for change, if it is in memory and nobody has it. Nothing is read.
    pub fn try_exclusive<'a>(&self, data_set: &'a DataSet, page: u32) -> Option<ExclusivePage<'a>> {
        if page >= data_set.page_count() || data_set.check_poison().is_err() {
            return None;
        }
        let word = data_set.translation.get_or_make(page);
        match word.try_exclusive() {
            Latch::Taken(unit, second) => {
                data_set.counters.getpages.add_one();
                Some(ExclusivePage::new(data_set, word, self.frame(data_set, unit, second), page))
            }
            _ => None,
        }
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

    /// Reads a page into memory, if it is not there, without latching it.
    ///
    /// # Errors
    /// As [`Self::shared`].
    pub fn make_resident(&self, data_set: &DataSet, page: u32) -> Result<()> {
        self.check_number(data_set, page)?;
        let word = data_set.translation.get_or_make(page);
        if !word.state().resident {
            self.read_page(data_set, page, word, Access::Random)?;
        }
        Ok(())
    }

    /// A page that is to be made anew, latched. `leaf` chooses the pool of a folded index.
    ///
    /// An earlier page of this number may be in memory still: given back, and perhaps not written since it was changed. Recovery repeats those changes before it makes the page anew, and
    /// a checkpoint may go by meanwhile; so it stays what it was, dirty too, until the first op.
    ///
    /// # Errors
    /// When no frame can be had, or the earlier page cannot be written.
    pub(crate) fn create<'a>(&self, data_set: &'a DataSet, page: u32, leaf: bool) -> Result<ExclusivePage<'a>> {
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
                        data_set.pools[usize::from(in_second)].push_free(unit);
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
        let unit = self.acquire_frame(&data_set.pools[usize::from(second)], Access::Random)?;
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

    /// Reads one page in the asking thread, unless somebody else is at it already.
    #[cold]
    fn read_page(&self, data_set: &DataSet, page: u32, word: &PageWord, access: Access) -> Result<()> {
        if !word.claim() {
            return Ok(());
        }
        let claim = Claim(Some(word));
        let cpu = self.clock.thread_cpu();
        let start = self.clock.monotonic();
        let mut buffer = self.page_buffers.take();
        let disk = &mut buffer[..data_set.page_bytes()];
        data_set.read_raw(page, disk)?;
        let waited = self.clock.monotonic().saturating_sub(start);
        let second = leaf_io::verify(data_set, page, disk)?;
        let unit = self.acquire_frame(&data_set.pools[usize::from(second)], access)?;
        let frame = self.frame(data_set, unit, second);
        // SAFETY: the frame has just been acquired and the page is claimed: nobody else knows of it.
        #[expect(unsafe_code, reason = "filling a frame before it is published")]
        let into = unsafe { frame.as_mut_slice() };
        if let Err(error) = leaf_io::into_frame(data_set, page, disk, into) {
            data_set.pools[usize::from(second)].push_free(unit);
            return Err(error);
        }
        self.own(unit, data_set, page);
        self.publish(data_set, unit, second, word, access);
        claim.keep();
        word.release_exclusive();
        add(&data_set.counters.synchronous_reads, 1);
        add(&data_set.counters.read_wait_ns, waited.as_nanos() as u64);
        add(&data_set.counters.asking_cpu_ns, self.clock.thread_cpu().saturating_sub(cpu).as_nanos() as u64);
        Ok(())
    }

    /// Names a filled frame in the word of its page. Pages that a scan brings in count as unused and go on the ring.
    pub(super) fn publish(&self, data_set: &DataSet, unit: u32, second: bool, word: &PageWord, access: Access) {
        word.set_frame(unit, second, u8::from(access == Access::Random));
        if access == Access::Scan {
            data_set.pools[usize::from(second)].push_ring(unit);
        }
    }

    /// A frame for a page of this pool.
    pub(super) fn acquire_frame(&self, pool: &Arc<Pool>, access: Access) -> Result<u32> {
        for attempt in 0..FRAME_TRIES {
            if let Some(unit) = pool.pop_free() {
                return Ok(unit);
            }
            if pool.below_limit() && (self.take_chunk(pool) || (self.below_share(pool) && self.steal_chunk(pool)?)) {
                continue;
            }
            if let Some(unit) = self.evict_one(pool, access)? {
                return Ok(unit);
            }
            if pool.below_limit() && self.steal_chunk(pool)? {
                continue;
            }
            match attempt {
                0..10 => {}
                10..FRAME_YIELDS => std::thread::yield_now(),
                // Those who have the frames may not be running.
                _ => self.clock.sleep(FRAME_PAUSE),
            }
        }
        Err(Error::PoolFull(pool.name().into()))
    }

    fn take_chunk(&self, pool: &Pool) -> bool {
        self.arena.take_chunk().map(|unit| pool.add_chunk(unit)).is_some()
    }

    /// Has the pool fewer chunks than its share, were the arena divided equally among the pools in use?
    fn below_share(&self, pool: &Pool) -> bool {
        let pools = self.pools.read();
        let in_use = pools.iter().filter(|p| p.chunk_count() > 0).count().max(1);
        let share = self.settings.memory_bytes / CHUNK_BYTES / (in_use + usize::from(pool.chunk_count() == 0));
        pool.chunk_count() < share
    }

    /// Makes a page leave. For a scan the oldest of the ring, else one without uses, else any; otherwise the clock decides.
    fn evict_one(&self, pool: &Pool, access: Access) -> Result<Option<u32>> {
        let mut dirty = Vec::new();
        while access == Access::Scan
            && let Some(unit) = pool.pop_ring()
        {
            match self.try_evict(pool, unit, Evict::Unused) {
                (Eviction::Evicted, _) => return Ok(Some(unit)),
                (Eviction::Dirty, Some(page)) => dirty.push(page),
                _ => {}
            }
        }
        let frames = pool.chunk_count() * pool.frames_per_chunk() as usize;
        let rounds: &[(Evict, usize)] = match access {
            Access::Scan => &[(Evict::Unused, SCAN_CANDIDATES), (Evict::Force, SCAN_CANDIDATES), (Evict::Clock, 4 * frames + 8)],
            Access::Random => &[(Evict::Clock, 4 * frames + 8)],
        };
        for (how, most) in rounds {
            for _ in 0..*most {
                let Some(unit) = pool.next_candidate() else { break };
                match self.try_evict(pool, unit, *how) {
                    (Eviction::Evicted, _) => return Ok(Some(unit)),
                    (Eviction::Dirty, Some(page)) if dirty.len() < DIRTY_CANDIDATES => dirty.push(page),
                    _ => {}
                }
                if dirty.len() == DIRTY_CANDIDATES {
                    break;
                }
            }
        }
        self.write_for_frames(dirty)?;
        Ok(None)
    }

    /// Takes the page of a frame out of memory if it is one of this pool: the frame's chunk may have gone to another pool since the frame was chosen (by the ring, or the clock's hand).
    fn try_evict(&self, pool: &Pool, unit: u32, how: Evict) -> (Eviction, Option<(Arc<DataSet>, u32)>) {
        let owner = self.owners[unit as usize].load(Ordering::Acquire);
        let page = owner as u32;
        let Some(data_set) = self.data_sets.read().get(&((owner >> 32) as u32)).and_then(Weak::upgrade) else {
            return (Eviction::Kept, None);
        };
        let Some(second) = data_set.pools.iter().position(|own| std::ptr::eq(&raw const **own, pool)) else {
            return (Eviction::Kept, None);
        };
        let outcome = data_set.translation.get_or_make(page).try_evict(unit, second == 1, how);
        (outcome, Some((data_set, page)))
    }

    /// Takes a chunk from the pool that has most, for one that needs it. One that has none takes it from any, if need be the last: there may be more pools than chunks.
    fn steal_chunk(&self, for_pool: &Pool) -> Result<bool> {
        let own = for_pool.chunk_count();
        let mut victims = self.pools();
        victims.retain(|pool| pool.name() != for_pool.name() && pool.chunk_count() > own.max(usize::from(own > 0)));
        if own == 0 && self.settings.memory_bytes >= LAST_CHUNK_MEMORY {
            // Another one each time: of two pools that are needed together, none must take its chunk from the other again and again.
            let turns = self.last_victim.fetch_add(1, Ordering::Relaxed) % victims.len().max(1);
            victims.rotate_left(turns);
        } else {
            victims.retain(|pool| pool.chunk_count() > 1);
        }
        victims.sort_by_key(|pool| Reverse(pool.chunk_count()));
        victims.truncate(if own == 0 { usize::MAX } else { 1 });
        for victim in victims {
            let chunks = victim.state().chunks.clone();
            for first_unit in chunks {
                let mut dirty = Vec::new();
                for _ in 0..2 {
                    if self.empty_chunk(&victim, first_unit, &mut dirty) {
                        for_pool.add_chunk(first_unit);
                        return Ok(true);
                    }
                    self.write_for_frames(std::mem::take(&mut dirty))?;
                }
            }
        }
        Ok(false)
    }

    /// Tries to evict every page of a chunk; on success the chunk belongs to nobody.
    fn empty_chunk(&self, pool: &Pool, first_unit: u32, dirty: &mut Vec<(Arc<DataSet>, u32)>) -> bool {
        let units: Vec<u32> = (0..pool.frames_per_chunk()).map(|frame| first_unit + frame * pool.units_per_frame()).collect();
        let mut taken = {
            let mut state = pool.state();
            let of_chunk: Vec<u32> = state.free.iter().copied().filter(|unit| units.contains(unit)).collect();
            state.free.retain(|unit| !units.contains(unit));
            of_chunk
        };
        for unit in &units {
            if !taken.contains(unit) {
                match self.try_evict(pool, *unit, Evict::Force) {
                    (Eviction::Evicted, _) => taken.push(*unit),
                    (Eviction::Dirty, Some(page)) => dirty.push(page),
                    _ => {}
                }
            }
        }
        let mut state = pool.state();
        if taken.len() == units.len() {
            state.chunks.retain(|chunk| *chunk != first_unit);
            true
        } else {
            state.free.extend(taken);
            false
        }
    }

    /// Writes dirty pages because their frames are wanted.
    fn write_for_frames(&self, mut pages: Vec<(Arc<DataSet>, u32)>) -> Result<()> {
        pages.sort_unstable_by_key(|(data_set, page)| (data_set.file_id(), *page));
        for group in pages.chunk_by(|a, b| a.0.file_id() == b.0.file_id()) {
            let mut numbers: Vec<u32> = group.iter().map(|(_, page)| *page).collect();
            // Ring and clock may have met the same page.
            numbers.dedup();
            // Busy ones are in the list of dirty pages still.
            let writes = self.write_pages(&group[0].0, &numbers, &mut Vec::new())?;
            add(&group[0].0.counters.synchronous_writes, writes);
        }
        Ok(())
    }

    /// A mini-transaction has made a clean page dirty.
    pub(super) fn became_dirty(&self, data_set: &DataSet, page: u32) {
        data_set.dirty.lock().push(page);
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
        data_set.dirty.lock().push(page);
        self.dirty_pages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn data_set(&self, file_id: u32) -> Option<Arc<DataSet>> {
        self.data_sets.read().get(&file_id).and_then(Weak::upgrade)
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

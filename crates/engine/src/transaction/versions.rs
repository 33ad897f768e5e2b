//! Before-images of rows, for readers whose snapshot is older than the page (memory-optimised MVCC: Freitag, Kemper, Neumann 2022).
//!
//! Invariants:
//! - A writer pushes under the page's exclusive latch, before the page changes; it takes back under that latch, after the page is as it
//!   was. A reader looks under the shared latch. So page and chain always belong together.
//! - The bytes of a deleted row are not changed while `NotDeleted` stands for them, nor is its slot used again while a snapshot sees the row.
//!   The one that deleted it may overwrite it and then pushes `Present` with the bytes of the deleted row.
//! - Lock order: the sweep, one shard, then the table of snapshots and the file's blocks. Nothing else is locked or waited for inside.
//! - The bytes counted are those of maps' entries, vectors and bodies, as allocated; [`VersionStore::push`] keeps them below the limit,
//!   but for the versions of the page that it brings back from the file.
//! - Above the limit, once no snapshot can do with less, versions go to a file, page by page (`spilled`). Readers look at them there; who
//!   changes the versions of a page brings them back first. Who only takes some away is never refused: he may go above the limit, and
//!   then brings other pages to the file if that takes them.

use super::chain::{Before, Chain, Seen};
use super::manager::Transactions;
use super::page_filter::PageFilter;
use super::page_versions::{PageVersions, SlotChain};
use super::snapshot::{Horizon, Snapshot};
use super::state::TransactionState;
use super::version_file::VersionFile;
use crate::hash::FastMap;
use pagefold_types::Rid;
use parking_lot::{Mutex, RwLock};
use std::collections::hash_map;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) const SHARDS: usize = 64;
/// A chain is pruned when it has so many entries, and then whenever their number has doubled.
const PRUNE_FROM: usize = 4;
/// Of a page in a shard's map: key, vector, control bytes and the map's free part.
const PAGE_BYTES: usize = 64;
/// After a sweep that was in vain, the next one waits this long unless a snapshot ended or a transaction committed.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// Why a version was not entered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// No room, in memory or in the file.
    #[error(transparent)]
    Full(#[from] VersionsFull),
    /// What lies in the file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// No room left for versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row versions fill their limit of {limit} bytes of memory{}: {}", self.file(), self.reason())]
#[non_exhaustive]
pub struct VersionsFull {
    /// Bytes.
    pub limit: u64,
    /// Bytes that those in the file take.
    pub file_bytes: u64,
    /// Of these, held by transactions that have not ended.
    pub uncommitted: u64,
    /// Age of the oldest snapshot, and the number of commits since; `None` without any snapshot.
    pub oldest: Option<(Duration, u64)>,
}

impl VersionsFull {
    fn file(&self) -> String {
        if self.file_bytes > 0 { format!(", and {} bytes of their file", self.file_bytes) } else { String::new() }
    }

    fn reason(&self) -> String {
        match self.oldest {
            Some((age, commits)) if self.uncommitted <= self.limit / 2 => format!(
                "a long reader holds them (the oldest snapshot is {:.1} s old, {commits} commits behind); end it or raise the limit",
                age.as_secs_f64()
            ),
            _ => format!("transactions that have not ended hold {} bytes of them; commit more often or raise the limit", self.uncommitted),
        }
    }
}

/// (Object, partition and page as in the RID).
type PageKey = (u32, u64);
type Pages = FastMap<PageKey, PageVersions>;

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shard(pub(super) RwLock<Pages>);

/// A sweep that has found no room.
#[derive(Debug)]
struct InVain {
    oldest_snapshot: u64,
    last_commit: u64,
    at: Duration,
    /// Bytes of transactions that had not ended.
    uncommitted: u64,
    /// Why the file took nothing, if it was not its limit.
    error: Option<(io::ErrorKind, String)>,
}

#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The next shard to look through.
    pub(super) hand: usize,
    in_vain: Option<InVain>,
}

/// The versions of all rows of a database.
#[derive(Debug)]
pub struct VersionStore {
    transactions: Arc<Transactions>,
    pub(super) limit: u64,
    bytes: AtomicU64,
    filter: PageFilter,
    pub(super) shards: Box<[Shard]>,
    sweep: Mutex<Sweep>,
    pub(super) file: Option<VersionFile>,
}

impl VersionStore {
    /// An empty store that holds at most about `limit` bytes.
    #[must_use]
    pub fn new(transactions: Arc<Transactions>, limit: u64) -> VersionStore {
        VersionStore {
            transactions,
            limit,
            bytes: AtomicU64::new(0),
            filter: PageFilter::new(),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            sweep: Mutex::default(),
            file: None,
        }
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether some row of the page that `rid` lies on may have versions: one load. Never `false` for a page that has some.
    #[must_use]
    #[inline]
    pub fn page_may_have(&self, object: u32, rid: Rid) -> bool {
        self.filter.may_have(PageFilter::hash(object, page_of(rid)))
    }

    /// Enters what the row was before the change that `by` is about to make. `true` when it is this transaction's first change of the row
    /// (as far as it was not taken back): later ones only count, and those on a page that it has [added](Self::push_page) need no entry.
    ///
    /// # Errors
    /// When there is no room, or versions in the file cannot be read; then nothing has been entered.
    pub fn push(&self, object: u32, rid: Rid, by: &Arc<TransactionState>, before: Before) -> Result<bool, VersionError> {
        let body_bytes = before.heap_bytes();
        self.make_room(body_bytes + size_of::<SlotChain>() + PAGE_BYTES)?;
        let (page, hash) = located(object, rid);
        let mut pages = self.shard(hash).0.write();
        let versions = self.enter(&mut pages, (object, page), hash);
        if versions.is_addition_of(by.id()) {
            return Ok(false);
        }
        self.bring_back(versions)?;
        let at = match versions.find(rid.slot()) {
            Ok(at) => at,
            Err(at) => {
                debug_assert!(versions.added_by.as_ref().is_none_or(|by| !by.is_active()), "a row on a page that another one is adding");
                let heap_before = versions.heap_bytes();
                versions.chains.insert(at, SlotChain { slot: rid.slot(), chain: Chain::new(by, before) });
                self.count(heap_before, versions.heap_bytes() + body_bytes);
                return Ok(true);
            }
        };
        let chain = &mut versions.chains[at].chain;
        let length = chain.entries().len();
        if length >= PRUNE_FROM && length.is_power_of_two() {
            let bytes_before = chain.bytes();
            chain.prune(&self.transactions.recent_horizon());
            self.count(bytes_before, chain.bytes());
        }
        let (heap_before, newest_before) = (chain.heap_bytes(), chain.newest_body_bytes());
        let again = chain.push(by, before);
        // The newest entry is the one before or a further one.
        self.count(heap_before + if again { newest_before } else { 0 }, chain.heap_bytes() + chain.newest_body_bytes());
        Ok(!again)
    }

    /// Enters that a page had no rows before: `by` is about to put the first ones on it, and nobody else will put any there before it has
    /// ended. Instead of an entry for each row. No row of the page has versions.
    ///
    /// # Errors
    /// When there is no room; then nothing has been entered.
    pub fn push_page(&self, object: u32, partition: u16, page: u32, by: &Arc<TransactionState>) -> Result<(), VersionError> {
        self.make_room(PAGE_BYTES)?;
        let (page, hash) = located(object, Rid::new(partition, page, 0));
        let mut pages = self.shard(hash).0.write();
        let versions = self.enter(&mut pages, (object, page), hash);
        debug_assert!(versions.is_empty(), "a page with versions is added");
        versions.added_by = Some(Arc::clone(by));
        Ok(())
    }

    /// Undoes [`push_page`](Self::push_page), after all rows have been taken off the page. `false` when it was not added by this
    /// transaction.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    pub fn take_back_page(&self, object: u32, partition: u16, page: u32, by: &TransactionState) -> io::Result<bool> {
        let mut found = false;
        self.change(object, Rid::new(partition, page, 0), 0, |versions, _| {
            found = versions.is_addition_of(by.id());
            if found {
                versions.added_by = None;
            }
        })?;
        Ok(found)
    }

    /// What the snapshot sees of a row.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    #[inline]
    pub fn look(&self, object: u32, rid: Rid, snapshot: &Snapshot) -> io::Result<Seen> {
        self.look_noting(object, rid, snapshot, |_| ())
    }

    /// [`look`](Self::look); `unseen` gets the writer of the first version that the snapshot does not see, if there is one.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    #[inline]
    pub fn look_noting(&self, object: u32, rid: Rid, snapshot: &Snapshot, unseen: impl FnOnce(&Arc<TransactionState>)) -> io::Result<Seen> {
        let (page, hash) = located(object, rid);
        if !self.filter.may_have(hash) {
            return Ok(Seen::Current);
        }
        let pages = self.shard(hash).0.read();
        match pages.get(&(object, page)) {
            Some(versions) if !versions.is_all_seen(snapshot) => {
                self.in_memory(versions, |versions| versions.look(rid.slot(), snapshot, unseen))
            }
            _ => Ok(Seen::Current),
        }
    }

    /// All rows of a page at once: what the snapshot sees of a row is in `rows` (by slot, ascending; emptied before) or else what is
    /// returned, [`Seen::Current`] or, when the whole page is too new, [`Seen::Absent`]. `unseen` gets the writer of the first version not
    /// seen for each row where there is one, and for the page. A row stored away from home is found under its home page.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    #[inline]
    pub fn of_page(
        &self,
        object: u32,
        partition: u16,
        page: u32,
        snapshot: &Snapshot,
        rows: &mut Vec<(u16, Seen)>,
        unseen: impl FnMut(Option<u16>, &Arc<TransactionState>),
    ) -> io::Result<Seen> {
        rows.clear();
        let (page, hash) = located(object, Rid::new(partition, page, 0));
        if !self.filter.may_have(hash) {
            return Ok(Seen::Current);
        }
        let pages = self.shard(hash).0.read();
        match pages.get(&(object, page)) {
            Some(versions) if !versions.is_all_seen(snapshot) => {
                self.in_memory(versions, |versions| versions.look_at_all(snapshot, rows, unseen))
            }
            _ => Ok(Seen::Current),
        }
    }

    /// Drops the versions of a row that no snapshot needs. What is left: whether there is any, and the bodies that it had in them.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    pub fn needed(&self, object: u32, rid: Rid, horizon: &Horizon) -> io::Result<(bool, Vec<Arc<[u8]>>)> {
        let mut needed = (false, Vec::new());
        self.change(object, rid, horizon.oldest(), |versions, slot| {
            versions.forget_addition(horizon.oldest());
            let Ok(at) = versions.find(slot) else { return };
            if versions.chains[at].chain.prune(horizon) {
                versions.chains.remove(at);
            } else {
                needed = (true, versions.bodies(slot));
            }
        })?;
        Ok(needed)
    }

    /// Who changed the row, or added its page, last, as far as that is still known: when it is `None`, every snapshot sees the page.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    pub fn newest(&self, object: u32, rid: Rid) -> io::Result<Option<Arc<TransactionState>>> {
        let (page, hash) = located(object, rid);
        if !self.filter.may_have(hash) {
            return Ok(None);
        }
        match self.shard(hash).0.read().get(&(object, page)) {
            Some(versions) => self.in_memory(versions, |versions| versions.newest_by(rid.slot()).cloned()),
            None => Ok(None),
        }
    }

    /// Undoes the newest push of `by` for this row, after the page has been restored. Changes are taken back in reverse order, all of them
    /// or those since a savepoint. `false` when the newest entry is not of this transaction.
    ///
    /// # Errors
    /// When versions in the file cannot be read.
    pub fn take_back(&self, object: u32, rid: Rid, by: &TransactionState) -> io::Result<bool> {
        let mut found = false;
        self.change(object, rid, 0, |versions, slot| {
            found = versions.is_addition_of(by.id());
            if found {
                return;
            }
            let Ok(at) = versions.find(slot) else { return };
            let taken = versions.chains[at].chain.take_back(by.id());
            found = taken.is_some();
            if taken == Some(true) {
                versions.chains.remove(at);
            }
        })?;
        Ok(found)
    }

    /// Drops every version that no snapshot needs, shard by shard; returns the bytes freed.
    pub fn sweep(&self) -> u64 {
        let horizon = self.transactions.horizon();
        (0..SHARDS).map(|shard| self.sweep_shard(shard, &horizon).0).sum()
    }

    /// What took `before` bytes takes `after` now.
    pub(super) fn count(&self, before: usize, after: usize) {
        self.bytes.fetch_add((after as u64).wrapping_sub(before as u64), Ordering::Relaxed);
    }

    fn shard(&self, page_hash: u64) -> &Shard {
        // The filter uses the top bits.
        &self.shards[page_hash as usize % SHARDS]
    }

    /// The versions of a page, none yet perhaps.
    fn enter<'a>(&self, pages: &'a mut Pages, key: PageKey, hash: u64) -> &'a mut PageVersions {
        pages.entry(key).or_insert_with(|| {
            self.filter.enter(hash);
            self.count(0, PAGE_BYTES);
            PageVersions::default()
        })
    }

    /// Runs `shrink` on the versions of the row's page, if there are any, and takes the page out when none is left. It may change the
    /// chain of this row, and no other one. Those in the file are forgotten first if every snapshot from `oldest` on sees all of them.
    fn change(&self, object: u32, rid: Rid, oldest: u64, shrink: impl FnOnce(&mut PageVersions, u16)) -> io::Result<()> {
        let (page, hash) = located(object, rid);
        if !self.filter.may_have(hash) {
            return Ok(());
        }
        {
            let mut pages = self.shard(hash).0.write();
            let hash_map::Entry::Occupied(mut entry) = pages.entry((object, page)) else { return Ok(()) };
            let versions = entry.get_mut();
            let heap_before = versions.heap_bytes();
            self.forget_spilled(versions, oldest);
            self.count(heap_before, versions.heap_bytes());
            self.bring_back(versions)?;
            let bytes = |versions: &PageVersions| versions.find(rid.slot()).map_or(0, |at| versions.chains[at].chain.bytes());
            let bytes_before = bytes(versions);
            shrink(versions, rid.slot());
            self.count(bytes_before, bytes(versions));
            if versions.is_empty() {
                self.count(PAGE_BYTES + versions.heap_bytes(), 0);
                entry.remove();
                self.filter.leave(hash);
            }
        }
        if self.file.is_some() && self.bytes() > self.limit {
            // Who takes away is not refused.
            let _ = self.make_room(0);
        }
        Ok(())
    }

    /// (Bytes freed, bytes that transactions hold which have not ended).
    fn sweep_shard(&self, shard: usize, horizon: &Horizon) -> (u64, u64) {
        let (mut freed, mut uncommitted) = (0, 0);
        let mut pages = self.shards[shard].0.write();
        pages.retain(|&(object, page), versions| {
            let heap_before = versions.heap_bytes();
            self.forget_spilled(versions, horizon.oldest());
            let (freed_here, uncommitted_here) = versions.prune(horizon);
            uncommitted += uncommitted_here;
            freed += freed_here + heap_before - versions.heap_bytes();
            if versions.is_empty() {
                freed += PAGE_BYTES + versions.heap_bytes();
                self.filter.leave(PageFilter::hash(object, page));
            }
            !versions.is_empty()
        });
        if pages.len() * 8 < pages.capacity() {
            pages.shrink_to_fit();
        }
        self.count(freed, 0);
        (freed as u64, uncommitted as u64)
    }

    /// Makes sure that there is room for so many bytes more. Sweeps no more shards than it must, since the caller holds a latch; what
    /// snapshots need goes to the file then.
    fn make_room(&self, wanted: usize) -> Result<(), VersionError> {
        let wanted = wanted as u64;
        if self.bytes() + wanted <= self.limit {
            return Ok(());
        }
        let mut sweep = self.sweep.lock();
        if self.bytes() + wanted <= self.limit {
            return Ok(());
        }
        let horizon = self.transactions.horizon();
        let (at, oldest_snapshot, last_commit) = (self.transactions.now(), horizon.oldest(), self.transactions.last_commit());
        let is_as_then = |in_vain: &InVain| {
            (in_vain.oldest_snapshot, in_vain.last_commit) == (oldest_snapshot, last_commit) && at.saturating_sub(in_vain.at) < SWEEP_PAUSE
        };
        let (at, uncommitted) = match sweep.in_vain.take().filter(is_as_then) {
            Some(in_vain) if in_vain.error.is_none() => return Err(self.no_room(sweep.in_vain.insert(in_vain))),
            // A sweep finds nothing more, but the device may have room again.
            Some(in_vain) => (in_vain.at, in_vain.uncommitted),
            None => {
                let mut uncommitted = 0;
                for _ in 0..SHARDS {
                    uncommitted += self.sweep_shard(sweep.hand, &horizon).1;
                    sweep.hand = (sweep.hand + 1) % SHARDS;
                    if self.bytes() + wanted <= self.limit - self.limit / 16 {
                        return Ok(());
                    }
                }
                // So much at least that the next pushes do without a sweep.
                if self.bytes() + wanted <= self.limit - self.limit / 64 {
                    return Ok(());
                }
                (at, uncommitted)
            }
        };
        let spilled = self.spill_for(&mut sweep, wanted);
        if self.bytes() + wanted <= self.limit {
            return Ok(());
        }
        let error = spilled.err().map(|error| (error.kind(), error.to_string()));
        Err(self.no_room(sweep.in_vain.insert(InVain { oldest_snapshot, last_commit, at, uncommitted, error })))
    }

    fn no_room(&self, in_vain: &InVain) -> VersionError {
        match &in_vain.error {
            Some((kind, reason)) => io::Error::new(*kind, reason.as_str()).into(),
            None => {
                let oldest = self.transactions.snapshot_age().map(|age| (age.time, age.commits));
                let (uncommitted, file_bytes) = (in_vain.uncommitted, self.file_bytes());
                VersionsFull { limit: self.limit, uncommitted, oldest, file_bytes }.into()
            }
        }
    }
}

/// The part of a RID that all rows of its page share.
pub(super) fn page_of(rid: Rid) -> u64 {
    rid.to_u64() >> 12
}

/// The row's page, and that page's hash.
#[inline]
fn located(object: u32, rid: Rid) -> (u64, u64) {
    let page = page_of(rid);
    (page, PageFilter::hash(object, page))
}

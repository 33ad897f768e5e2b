//! Before-images of rows, for readers whose snapshot is older than the page (memory-optimised MVCC: Freitag, Kemper, Neumann 2022).
//!
//! Invariants:
//! - A writer pushes under the page's exclusive latch, before the page changes; it takes back under that latch, after the page is as it
//!   was. A reader looks under the shared latch. So page and chain always belong together.
//! - The slot of a deleted row is not used again, nor its bytes changed, while the row's chain has an entry of another transaction. The one
//!   that deleted it may overwrite it and then pushes `Present` with the bytes of the deleted row.
//! - Lock order: the sweep, one shard, then the table of snapshots. Nothing else is locked or waited for inside.
//! - The bytes counted are those of maps' entries, vectors and bodies, as allocated; [`VersionStore::push`] keeps them below the limit.

use super::chain::{Before, Chain, Seen};
use super::hash::FastMap;
use super::manager::Transactions;
use super::page_filter::PageFilter;
use super::snapshot::{Horizon, Snapshot};
use super::state::TransactionState;
use pagefold_types::Rid;
use parking_lot::{Mutex, RwLock};
use std::collections::hash_map;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SHARDS: usize = 64;
/// A chain is pruned when it has so many entries, and then whenever their number has doubled.
const PRUNE_FROM: usize = 4;
/// Of a page in a shard's map: key, vector, control bytes and the map's free part.
const PAGE_BYTES: usize = 64;
/// After a sweep that was in vain, the next one waits this long unless a snapshot ended or a transaction committed.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);

/// No memory left for versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row versions fill their limit of {limit} bytes: {}", self.reason())]
#[non_exhaustive]
pub struct VersionsFull {
    /// Bytes.
    pub limit: u64,
    /// Of these, held by transactions that have not ended.
    pub uncommitted: u64,
    /// Age of the oldest snapshot, and the number of commits since; `None` without any snapshot.
    pub oldest: Option<(Duration, u64)>,
}

impl VersionsFull {
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

#[derive(Debug)]
struct SlotChain {
    slot: u16,
    chain: Chain,
}

/// By slot, ascending. Never empty outside of a call.
#[derive(Debug, Default)]
struct PageChains(Vec<SlotChain>);

impl PageChains {
    fn find(&self, slot: u16) -> Result<usize, usize> {
        self.0.binary_search_by_key(&slot, |chain| chain.slot)
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<SlotChain>()
    }
}

/// (Object, partition and page as in the RID).
type PageKey = (u32, u64);
type Pages = FastMap<PageKey, PageChains>;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(RwLock<Pages>);

#[derive(Debug, Default)]
struct Sweep {
    /// The next shard to look through.
    hand: usize,
    /// The last sweep in vain: (oldest snapshot, last commit, when, bytes of transactions that had not ended).
    in_vain: Option<(u64, u64, Duration, u64)>,
}

/// The versions of all rows of a database.
#[derive(Debug)]
pub struct VersionStore {
    transactions: Arc<Transactions>,
    limit: u64,
    bytes: AtomicU64,
    filter: PageFilter,
    shards: Box<[Shard]>,
    sweep: Mutex<Sweep>,
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
    /// (as far as it was not taken back): later ones only count.
    ///
    /// # Errors
    /// [`VersionsFull`], and then nothing has been entered.
    pub fn push(&self, object: u32, rid: Rid, by: &Arc<TransactionState>, before: Before) -> Result<bool, VersionsFull> {
        let body_bytes = before.heap_bytes();
        self.make_room(body_bytes + size_of::<SlotChain>() + PAGE_BYTES)?;
        let (page, hash) = located(object, rid);
        let mut pages = self.shard(hash).0.write();
        let chains = match pages.entry((object, page)) {
            hash_map::Entry::Occupied(page) => page.into_mut(),
            hash_map::Entry::Vacant(page) => {
                self.filter.enter(hash);
                self.count(0, PAGE_BYTES);
                page.insert(PageChains::default())
            }
        };
        let at = match chains.find(rid.slot()) {
            Ok(at) => at,
            Err(at) => {
                let heap_before = chains.heap_bytes();
                chains.0.insert(at, SlotChain { slot: rid.slot(), chain: Chain::new(by, before) });
                self.count(heap_before, chains.heap_bytes() + body_bytes);
                return Ok(true);
            }
        };
        let chain = &mut chains.0[at].chain;
        let length = chain.entries().len();
        if length >= PRUNE_FROM && length.is_power_of_two() {
            let bytes_before = chain.bytes();
            chain.prune(&self.transactions.horizon());
            self.count(bytes_before, chain.bytes());
        }
        let (heap_before, newest_before) = (chain.heap_bytes(), chain.newest_body_bytes());
        let again = chain.push(by, before);
        // The newest entry is the one before or a further one.
        self.count(heap_before + if again { newest_before } else { 0 }, chain.heap_bytes() + chain.newest_body_bytes());
        Ok(!again)
    }

    /// What the snapshot sees of a row.
    #[must_use]
    #[inline]
    pub fn look(&self, object: u32, rid: Rid, snapshot: &Snapshot) -> Seen {
        self.look_noting(object, rid, snapshot, |_| ())
    }

    /// [`look`](Self::look); `unseen` gets the writer of the first version that the snapshot does not see, if there is one.
    #[inline]
    pub fn look_noting(&self, object: u32, rid: Rid, snapshot: &Snapshot, unseen: impl FnOnce(&Arc<TransactionState>)) -> Seen {
        let (page, hash) = located(object, rid);
        if !self.filter.may_have(hash) {
            return Seen::Current;
        }
        let pages = self.shard(hash).0.read();
        pages
            .get(&(object, page))
            .and_then(|chains| Some(&chains.0[chains.find(rid.slot()).ok()?]))
            .map_or(Seen::Current, |found| found.chain.look(snapshot, unseen))
    }

    /// The rows of a page that the snapshot does not see as the page has them, by slot, ascending, in `rows` (emptied before). `unseen`
    /// gets for each of them the writer of the first version not seen. A row stored away from home is found under its home page.
    #[inline]
    pub fn of_page(
        &self,
        object: u32,
        partition: u16,
        page: u32,
        snapshot: &Snapshot,
        rows: &mut Vec<(u16, Seen)>,
        mut unseen: impl FnMut(u16, &Arc<TransactionState>),
    ) {
        rows.clear();
        let (page, hash) = located(object, Rid::new(partition, page, 0));
        if !self.filter.may_have(hash) {
            return;
        }
        let pages = self.shard(hash).0.read();
        for SlotChain { slot, chain } in pages.get(&(object, page)).into_iter().flat_map(|chains| &chains.0) {
            match chain.look(snapshot, |writer| unseen(*slot, writer)) {
                Seen::Current => {}
                seen => rows.push((*slot, seen)),
            }
        }
    }

    /// Who changed the row last, as far as that is still known: when it is `None`, every snapshot sees the page.
    #[must_use]
    pub fn newest(&self, object: u32, rid: Rid) -> Option<Arc<TransactionState>> {
        let (page, hash) = located(object, rid);
        if !self.filter.may_have(hash) {
            return None;
        }
        let pages = self.shard(hash).0.read();
        let chains = pages.get(&(object, page))?;
        chains.0[chains.find(rid.slot()).ok()?].chain.newest_by().cloned()
    }

    /// Undoes the newest push of `by` for this row, after the page has been restored. Changes are taken back in reverse order, all of them
    /// or those since a savepoint. `false` when the newest entry is not of this transaction.
    pub fn take_back(&self, object: u32, rid: Rid, by: &TransactionState) -> bool {
        let mut found = false;
        self.change(object, rid, |chain| {
            let empty = chain.take_back(by.id());
            found = empty.is_some();
            empty == Some(true)
        });
        found
    }

    /// Drops the versions of a row that every snapshot sees: committed at or before `oldest`
    /// ([`Transactions::oldest_snapshot`]), and all that are older. `true` when the row has none left.
    pub fn forget(&self, object: u32, rid: Rid, oldest: u64) -> bool {
        let mut empty = true;
        self.change(object, rid, |chain| {
            empty = chain.forget(oldest);
            empty
        });
        empty
    }

    /// Drops every version that no snapshot needs, shard by shard; returns the bytes freed.
    pub fn sweep(&self) -> u64 {
        let horizon = self.transactions.horizon();
        (0..SHARDS).map(|shard| self.sweep_shard(shard, &horizon).0).sum()
    }

    /// What took `before` bytes takes `after` now.
    fn count(&self, before: usize, after: usize) {
        self.bytes.fetch_add((after as u64).wrapping_sub(before as u64), Ordering::Relaxed);
    }

    fn shard(&self, page_hash: u64) -> &Shard {
        // The filter uses the top bits.
        &self.shards[page_hash as usize % SHARDS]
    }

    /// Runs `shrink` on the row's chain, if there is one, and removes the chain when it says so.
    fn change(&self, object: u32, rid: Rid, shrink: impl FnOnce(&mut Chain) -> bool) {
        let (page, hash) = located(object, rid);
        if !self.filter.may_have(hash) {
            return;
        }
        let mut pages = self.shard(hash).0.write();
        let hash_map::Entry::Occupied(mut entry) = pages.entry((object, page)) else { return };
        let chains = entry.get_mut();
        let Ok(at) = chains.find(rid.slot()) else { return };
        let chain = &mut chains.0[at].chain;
        let bytes_before = chain.bytes();
        if shrink(chain) {
            self.count(bytes_before, 0);
            chains.0.remove(at);
        } else {
            self.count(bytes_before, chain.bytes());
        }
        if chains.0.is_empty() {
            self.count(PAGE_BYTES + chains.heap_bytes(), 0);
            entry.remove();
            self.filter.leave(hash);
        }
    }

    /// (Bytes freed, bytes that transactions hold which have not ended).
    fn sweep_shard(&self, shard: usize, horizon: &Horizon) -> (u64, u64) {
        let (mut freed, mut uncommitted) = (0, 0);
        let mut pages = self.shards[shard].0.write();
        pages.retain(|&(object, page), chains| {
            let heap_before = chains.heap_bytes();
            chains.0.retain_mut(|SlotChain { chain, .. }| {
                uncommitted += chain.uncommitted_bytes();
                let bytes_before = chain.bytes();
                let empty = chain.prune(horizon);
                freed += bytes_before - if empty { 0 } else { chain.bytes() };
                !empty
            });
            if chains.0.is_empty() {
                freed += PAGE_BYTES + heap_before;
                self.filter.leave(PageFilter::hash(object, page));
                return false;
            }
            if chains.0.len() * 2 < chains.0.capacity() {
                chains.0.shrink_to_fit();
                freed += heap_before - chains.heap_bytes();
            }
            true
        });
        if pages.len() * 8 < pages.capacity() {
            pages.shrink_to_fit();
        }
        self.count(freed, 0);
        (freed as u64, uncommitted as u64)
    }

    /// Makes sure that there is room for so many bytes more. Sweeps no more shards than it must, since the caller holds a latch.
    fn make_room(&self, wanted: usize) -> Result<(), VersionsFull> {
        let wanted = wanted as u64;
        if self.bytes() + wanted <= self.limit {
            return Ok(());
        }
        let mut sweep = self.sweep.lock();
        if self.bytes() + wanted <= self.limit {
            return Ok(());
        }
        let horizon = self.transactions.horizon();
        let now = self.transactions.now();
        let state = (horizon.oldest(), self.transactions.last_commit());
        if let Some((oldest, last_commit, at, uncommitted)) = sweep.in_vain
            && (oldest, last_commit) == state
            && now.saturating_sub(at) < SWEEP_PAUSE
        {
            return Err(self.full(uncommitted));
        }
        let mut uncommitted = 0;
        for _ in 0..SHARDS {
            uncommitted += self.sweep_shard(sweep.hand, &horizon).1;
            sweep.hand = (sweep.hand + 1) % SHARDS;
            if self.bytes() + wanted <= self.limit - self.limit / 16 {
                sweep.in_vain = None;
                return Ok(());
            }
        }
        if self.bytes() + wanted <= self.limit {
            return Ok(());
        }
        sweep.in_vain = Some((state.0, state.1, now, uncommitted));
        Err(self.full(uncommitted))
    }

    fn full(&self, uncommitted: u64) -> VersionsFull {
        let oldest = self.transactions.snapshot_age().map(|age| (age.time, age.commits));
        VersionsFull { limit: self.limit, uncommitted, oldest }
    }
}

fn page_of(rid: Rid) -> u64 {
    rid.to_u64() >> 12
}

/// The row's page, and that page's hash.
#[inline]
fn located(object: u32, rid: Rid) -> (u64, u64) {
    let page = page_of(rid);
    (page, PageFilter::hash(object, page))
}

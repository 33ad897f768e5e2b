//! The lock table: locks on rows, keys and objects until the end of a transaction; waits, deadlocks, timeouts.
//!
//! Invariants:
//! - A transaction waits for at most one lock at a time, and nobody calls [`LockTable::release_all`] for one that is waiting.
//! - Each wait is in the wait-for graph before its thread sleeps, and looks for cycles after it has been entered (`deadlocks`). A wait gets further edges
//!   only by the request of an upgrade, which is itself such a wait, and by one who passes it, who does not wait then. So the last wait of a cycle sees all of it.
//! - What a removal holds it gives up without waiting for any lock: so who waits for a removal is on no cycle, and need not be in the graph. So with a transaction that moves rows, which waits for no
//!   lock either.
//! - Who changes something within an object notes that among what it holds, and nowhere else, as long as nobody asks for whole objects. Who does says so first, and then puts everybody who has noted it for that object into its
//!   queue. So one of two that meet sees the other.
//! - Who has a table to himself instead of its rows and keys ([`LockTable::escalate`]) holds it exclusively, and nobody holds one of them:
//!   who would lock one holds the table as one that is changed within, but for removals, which ask.
//! - Lock order: the ends that are waited for, a removal's turn, the graph, a set of what a transaction holds, shards in ascending order, a waiter's outcome;
//!   the escalated objects are last.

use super::lock_error::LockError;
use super::lock_queue::{Asked, Mode, Outcome, Queue, Resource, Waiter};
use crate::hash::{self, FastMap, FastSet};
use crate::spans;
use crate::steps::step;
use pagefold_io::{Clock, OsClock};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::collections::hash_map;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const SHARDS: usize = 128;
const OWNER_SHARDS: usize = 32;
/// Shards with room for more than this give it back when it is no longer used: small ones stay in the processor's cache.
const KEPT_CAPACITY: usize = 64;

/// How often one looks who has come in vain: some microseconds, less than to sleep and be woken.
const SPINS: u32 = 200;

/// So many movers are known, the latest: those too that have ended, as who met one of them may find that out a moment later.
const MOVERS_KNOWN: usize = 64;

/// So long at most one waits for a mover before one looks again.
const MOVER_LOOK: Duration = Duration::from_millis(20);

/// Who holds the locks of removals: no transaction has this id.
pub(crate) const REMOVER: u64 = u64::MAX;

pub(super) type Queues = FastMap<Resource, Queue>;

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shard(pub(super) Mutex<Queues>);

/// How a wait without an outcome ends.
enum GivenUp {
    /// With the resource.
    Had,
    /// Without; this transaction was in the way.
    Left(u64),
    /// It has an outcome.
    Decided,
}

/// What each transaction holds.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnerShard(Mutex<FastMap<u64, FastSet<Resource>>>);

/// All locks of a database. A lock that is held takes 40 bytes in its map and 17 in its owner's set, and what these keep free.
#[derive(Debug)]
pub struct LockTable {
    pub(super) shards: Box<[Shard]>,
    owners: Box<[OwnerShard]>,
    /// The transactions that wait.
    graph: Mutex<FastMap<u64, Arc<Waiter>>>,
    pub(super) deadlocks: AtomicU64,
    /// Waits so far, and how often these were woken.
    waits: AtomicU64,
    wake_ups: AtomicU64,
    /// Held by a removal for as long as it holds its lock.
    removal: Mutex<()>,
    /// The transactions that wait until that is over.
    behind_removal: AtomicUsize,
    /// The transactions that may have asked for whole objects.
    wholes: AtomicUsize,
    /// The transactions that are made victims before others.
    pub(super) yielding: Mutex<FastSet<u64>>,
    /// Tables, and their indexes, whose rows and keys a transaction does not lock one by one any more.
    escalated: Mutex<FastMap<u32, u64>>,
    escalations: AtomicUsize,
    /// The transactions that wait for nobody and end at once: whoever does not want to wait is told of no lock of theirs, and waits.
    movers: Mutex<VecDeque<u64>>,
    mover_count: AtomicUsize,
    /// Who waits for the end of transactions, whatever they hold.
    watchers: AtomicUsize,
    ends: Mutex<()>,
    ended: Condvar,
}

/// The lock of a removal; given up when this is dropped.
#[derive(Debug)]
pub(crate) struct RemovalLock<'a> {
    table: &'a LockTable,
    resource: Resource,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for RemovalLock<'_> {
    fn drop(&mut self) {
        self.table.release_wholly(REMOVER, self.resource);
    }
}

impl Default for LockTable {
    fn default() -> LockTable {
        LockTable::new()
    }
}

impl LockTable {
    /// No locks.
    #[must_use]
    pub fn new() -> LockTable {
        LockTable {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            owners: (0..OWNER_SHARDS).map(|_| OwnerShard::default()).collect(),
            graph: Mutex::default(),
            deadlocks: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            wake_ups: AtomicU64::new(0),
            removal: Mutex::default(),
            behind_removal: AtomicUsize::new(0),
            wholes: AtomicUsize::new(0),
            yielding: Mutex::default(),
            escalated: Mutex::default(),
            escalations: AtomicUsize::new(0),
            movers: Mutex::default(),
            mover_count: AtomicUsize::new(0),
            watchers: AtomicUsize::new(0),
            ends: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// As [`Self::lock`], but removals and movers do not count: one that is in the way is waited for, whatever the timeout, and the time begins anew then. Not for who has a page latched, which the removal may need.
    ///
    /// # Errors
    /// As [`Self::lock`], never because of a removal.
    pub(crate) fn lock_past_removals(
        &self,
        transaction: u64,
        resource: Resource,
        mode: Mode,
        timeout: Duration,
    ) -> Result<bool, LockError> {
        loop {
            match self.lock(transaction, resource, mode, timeout) {
                Err(LockError::Timeout { holder: REMOVER, .. }) => {
                    self.behind_removal.fetch_add(1, Ordering::Relaxed);
                    drop(self.removal.lock());
                    self.behind_removal.fetch_sub(1, Ordering::Relaxed);
                }
                Err(LockError::Timeout { holder, .. }) if self.is_mover(holder) && !self.is_mover(transaction) => {
                    self.wait_for_end(&[holder], MOVER_LOOK);
                }
                outcome => return outcome,
            }
        }
    }

    /// The transaction only moves rows: it never waits, and ends soon. So others may wait for it, even those who would not wait.
    pub(crate) fn note_mover(&self, transaction: u64) {
        let mut movers = self.movers.lock();
        movers.truncate(MOVERS_KNOWN - 1);
        movers.push_front(transaction);
        self.mover_count.store(movers.len(), Ordering::Release);
    }

    fn is_mover(&self, transaction: u64) -> bool {
        self.mover_count.load(Ordering::Acquire) > 0 && self.movers.lock().contains(&transaction)
    }

    /// Locks a resource for a removal, which asks for no other lock; `None` when others hold it in a mode that excludes that, or wait for it.
    pub(crate) fn lock_for_removal(&self, resource: Resource, mode: Mode) -> Option<RemovalLock<'_>> {
        let turn = self.removal.lock();
        if let Resource::Row(object, _) | Resource::Key(object, _) | Resource::Reference(object, _) = resource
            && self.escalated_by(object).is_some()
        {
            return None;
        }
        self.lock(REMOVER, resource, mode, Duration::ZERO).ok()?;
        Some(RemovalLock { table: self, resource, _turn: turn })
    }

    /// Locks an object for who changes something within: [`Mode::IntentExclusive`]. As long as nobody asks for whole objects that takes no more than a note.
    ///
    /// # Errors
    /// As [`Self::lock_past_removals`].
    pub(crate) fn lock_within(&self, transaction: u64, object: u32, timeout: Duration) -> Result<(), LockError> {
        {
            let mut owners = self.owner_shard(transaction).lock();
            if self.wholes.load(Ordering::SeqCst) == 0 {
                owners.entry(transaction).or_default().insert(Resource::Within(object));
                return Ok(());
            }
        }
        self.lock_past_removals(transaction, Resource::Object(object), Mode::IntentExclusive, timeout).map(drop)
    }

    /// Locks an object as a whole.
    ///
    /// # Errors
    /// As [`Self::lock_past_removals`].
    pub(crate) fn lock_whole(&self, transaction: u64, object: u32, mode: Mode, timeout: Duration) -> Result<(), LockError> {
        if self.owner_shard(transaction).lock().entry(transaction).or_default().insert(Resource::Wholes) {
            self.wholes.fetch_add(1, Ordering::SeqCst);
        }
        let resource = Resource::Object(object);
        for shard in &self.owners {
            for (owner, held) in shard.0.lock().iter_mut() {
                if held.remove(&Resource::Within(object)) {
                    held.insert(resource);
                    let mut queues = self.shard(resource).lock();
                    queues
                        .entry(resource)
                        .and_modify(|queue| queue.admit(*owner, Mode::IntentExclusive))
                        .or_insert_with(|| Queue::held_by(*owner, Mode::IntentExclusive));
                }
            }
        }
        self.lock_past_removals(transaction, resource, mode, timeout).map(drop)
    }

    /// From now on the transaction is the victim of each deadlock that it is in: it can ask again without losing anything. Ends with it.
    pub(crate) fn yield_in_deadlocks(&self, transaction: u64) {
        self.yielding.lock().insert(transaction);
        self.owner_shard(transaction).lock().entry(transaction).or_default().insert(Resource::Yields);
    }

    /// Takes a table for itself, if nobody else changes anything in it just now, in place of all the locks that a transaction has of its
    /// rows and of keys of its indexes: further ones are not even noted. Ends with the transaction. False when others are there, and then
    /// nothing has changed; only whole tables are asked for from now on.
    pub(crate) fn escalate(&self, transaction: u64, table: u32, indexes: &[u32]) -> bool {
        // No removal has a lock meanwhile, and the next one finds the table escalated.
        let turn = self.removal.lock();
        if self.lock_whole(transaction, table, Mode::Exclusive, Duration::ZERO).is_err() {
            return false;
        }
        {
            let mut escalated = self.escalated.lock();
            escalated.extend(indexes.iter().chain([&table]).map(|object| (*object, transaction)));
            self.escalations.store(escalated.len(), Ordering::Release);
        }
        drop(turn);
        let within = |resource: &Resource| match resource {
            Resource::Row(object, _) | Resource::Reference(object, _) => *object == table,
            Resource::Key(object, _) => indexes.contains(object),
            Resource::Object(_) | Resource::Within(_) | Resource::Wholes | Resource::Yields => false,
        };
        let mut owners = self.owner_shard(transaction).lock();
        let Some(held) = owners.get_mut(&transaction) else { return true };
        let given_up: Vec<Resource> = held.extract_if(within).collect();
        held.shrink_to_fit();
        drop(owners);
        given_up.into_iter().for_each(|resource| _ = self.give_up(transaction, resource, u32::MAX));
        true
    }

    /// Who has the table or index to himself instead of its rows or keys.
    fn escalated_by(&self, object: u32) -> Option<u64> {
        (self.escalations.load(Ordering::Acquire) > 0).then(|| self.escalated.lock().get(&object).copied())?
    }

    fn end_escalations(&self, transaction: u64) {
        if self.escalations.load(Ordering::Acquire) > 0 {
            let mut escalated = self.escalated.lock();
            escalated.retain(|_, by| *by != transaction);
            self.escalations.store(escalated.len(), Ordering::Release);
        }
    }

    /// Locks `resource` for a transaction, which may hold it already (then this is one request more, and perhaps a stronger mode). Waits up
    /// to `timeout` of real time, not at all when that is zero. `true` when the transaction did not hold the resource before.
    ///
    /// # Errors
    /// [`LockError`]; nothing has changed then.
    pub fn lock(&self, transaction: u64, resource: Resource, mode: Mode, timeout: Duration) -> Result<bool, LockError> {
        if let Resource::Row(object, _) | Resource::Key(object, _) | Resource::Reference(object, _) = resource
            && self.escalated_by(object) == Some(transaction)
        {
            return Ok(false);
        }
        let mut queues = self.shard(resource).lock();
        let waiter = match queues.entry(resource) {
            hash_map::Entry::Vacant(entry) => {
                entry.insert(Queue::held_by(transaction, mode));
                drop(queues);
                self.note_held(transaction, resource);
                return Ok(true);
            }
            hash_map::Entry::Occupied(mut entry) => match entry.get_mut().ask(transaction, mode, !timeout.is_zero()) {
                Asked::Again => return Ok(false),
                Asked::Granted => {
                    drop(queues);
                    self.note_held(transaction, resource);
                    return Ok(true);
                }
                Asked::Blocked(holder) if timeout.is_zero() => {
                    return Err(LockError::Timeout { waiter: transaction, resource, holder, waited: timeout });
                }
                Asked::Blocked(_) => entry.get_mut().enqueue(transaction, resource, mode),
            },
        };
        drop(queues);
        let outcome = spans::lock_wait(transaction, &resource).in_scope(|| self.wait(&waiter, timeout));
        self.graph.lock().remove(&transaction);
        outcome?;
        if !waiter.is_upgrade() {
            self.note_held(transaction, resource);
        }
        Ok(!waiter.is_upgrade())
    }

    /// Takes back one request. `true` when the transaction no longer holds the resource. Nothing happens when it does not hold it.
    pub fn release(&self, transaction: u64, resource: Resource) -> bool {
        self.release_requests(transaction, resource, 1)
    }

    /// Gives up a resource, however often it was asked for. Nothing happens when the transaction does not hold it.
    pub fn release_wholly(&self, transaction: u64, resource: Resource) {
        self.release_requests(transaction, resource, u32::MAX);
    }

    fn release_requests(&self, transaction: u64, resource: Resource, requests: u32) -> bool {
        if !self.give_up(transaction, resource, requests) {
            return false;
        }
        let mut owners = self.owner_shard(transaction).lock();
        if let Some(held) = owners.get_mut(&transaction) {
            step();
            held.remove(&resource);
            if held.is_empty() {
                owners.remove(&transaction);
            }
        }
        true
    }

    /// Gives up everything that the transaction holds.
    pub fn release_all(&self, transaction: u64) {
        self.end_escalations(transaction);
        let held = self.owner_shard(transaction).lock().remove(&transaction).unwrap_or_default();
        for resource in held {
            match resource {
                Resource::Within(_) => {}
                Resource::Yields => _ = self.yielding.lock().remove(&transaction),
                Resource::Wholes => _ = self.wholes.fetch_sub(1, Ordering::SeqCst),
                resource => _ = self.give_up(transaction, resource, u32::MAX),
            }
        }
        if self.watchers.load(Ordering::SeqCst) > 0 {
            drop(self.ends.lock());
            self.ended.notify_all();
        }
    }

    /// The transactions that have locked something within an object, or it as a whole. One that comes while the list is made may be missing: what it does after it has the lock comes later.
    pub(crate) fn users_of(&self, object: u32) -> Vec<u64> {
        let mut users = Vec::new();
        for shard in &self.owners {
            let owners = shard.0.lock();
            let uses = |held: &FastSet<Resource>| held.contains(&Resource::Within(object)) || held.contains(&Resource::Object(object));
            users.extend(owners.iter().filter(|(_, held)| uses(held)).map(|(owner, _)| *owner));
        }
        users
    }

    /// Waits until one of these transactions has given up what it holds, or for so long.
    pub(crate) fn wait_for_end(&self, transactions: &[u64], timeout: Duration) {
        let mut ends = self.ends.lock();
        // Who ends says so under this lock, after he is out of the list.
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let all_hold = transactions.iter().all(|transaction| self.owner_shard(*transaction).lock().contains_key(transaction));
        if all_hold {
            self.ended.wait_for(&mut ends, timeout);
        }
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Number of resources that the transaction holds.
    #[must_use]
    pub fn held(&self, transaction: u64) -> usize {
        self.owner_shard(transaction).lock().get(&transaction).map_or(0, FastSet::len)
    }

    /// Ends the wait of a transaction with an error. `false` when it does not wait (yet: a caller that must reach it sets its own mark
    /// first, which the transaction looks at before it waits, and calls again until one or the other has been noticed).
    pub fn cancel(&self, transaction: u64) -> bool {
        let graph = self.graph.lock();
        let Some(waiter) = graph.get(&transaction) else { return false };
        withdraw(&mut self.shard(waiter.resource).lock(), waiter, Some(Outcome::Cancelled))
    }

    /// Number of transactions that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.graph.lock().len() + self.behind_removal.load(Ordering::Relaxed)
    }

    /// Those that wait.
    pub(super) fn waiters(&self) -> Vec<Arc<Waiter>> {
        self.graph.lock().values().cloned().collect()
    }

    /// So many of the locks that there are, at most: the transaction, and what it holds.
    pub(super) fn all_held(&self, most: usize) -> Vec<(u64, Resource)> {
        let mut all = Vec::new();
        for shard in &self.owners {
            for (transaction, held) in shard.0.lock().iter() {
                all.extend(held.iter().take(most - all.len()).map(|resource| (*transaction, *resource)));
            }
        }
        all
    }

    /// Number of waits so far, and how often who waited was woken: once, or twice where somebody passed him.
    #[must_use]
    pub fn waits(&self) -> (u64, u64) {
        (self.waits.load(Ordering::Relaxed), self.wake_ups.load(Ordering::Relaxed))
    }

    /// Number of victims so far.
    #[must_use]
    pub fn deadlocks(&self) -> u64 {
        self.deadlocks.load(Ordering::Relaxed)
    }

    /// Whether nobody holds anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.0.lock().is_empty()) && self.owners.iter().all(|shard| shard.0.lock().is_empty())
    }

    #[cfg(test)]
    pub(super) fn is_waiting(&self, transaction: u64) -> bool {
        self.graph.lock().contains_key(&transaction)
    }

    fn wait(&self, waiter: &Arc<Waiter>, timeout: Duration) -> Result<(), LockError> {
        {
            let mut graph = self.graph.lock();
            graph.insert(waiter.transaction, Arc::clone(waiter));
            self.break_cycles(&graph, waiter);
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        let began = OsClock.monotonic();
        let mut left = timeout;
        loop {
            let mut outcome = waiter.outcome.lock();
            waiter.wake.wait_while_for(&mut outcome, |outcome| outcome.is_none(), left);
            let decided = outcome.take();
            self.wake_ups.fetch_add(u64::from(decided.is_some()), Ordering::Relaxed);
            // The shard comes before the outcome.
            drop(outcome);
            match decided {
                Some(Outcome::Granted) => return Ok(()),
                Some(Outcome::Deadlock(cycle)) => {
                    spans::deadlock(waiter.transaction, cycle.len());
                    return Err(LockError::Deadlock { victim: waiter.transaction, cycle });
                }
                Some(Outcome::Cancelled) => return Err(LockError::Cancelled { waiter: waiter.transaction, resource: waiter.resource }),
                Some(Outcome::Called) if self.come(waiter) => return Ok(()),
                Some(Outcome::Called) => {
                    self.spin(waiter);
                    left = timeout.saturating_sub(OsClock.monotonic().saturating_sub(began));
                }
                None => match self.give_up_waiting(waiter) {
                    GivenUp::Had => return Ok(()),
                    GivenUp::Left(holder) => {
                        return Err(LockError::Timeout { waiter: waiter.transaction, resource: waiter.resource, holder, waited: timeout });
                    }
                    GivenUp::Decided => left = Duration::ZERO,
                },
            }
        }
    }

    /// Who was called takes the resource, if it is still free.
    fn come(&self, waiter: &Arc<Waiter>) -> bool {
        self.shard(waiter.resource).lock().get_mut(&waiter.resource).is_some_and(|queue| queue.come(waiter))
    }

    /// Who has come in vain is awake and next: he looks for a moment whether he is handed the resource before he sleeps again.
    fn spin(&self, waiter: &Waiter) {
        for _ in 0..SPINS {
            if !waiter.is_queued() {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Leaves the queue, unless that was called or an outcome has been decided.
    fn give_up_waiting(&self, waiter: &Arc<Waiter>) -> GivenUp {
        let mut queues = self.shard(waiter.resource).lock();
        let Some(queue) = queues.get_mut(&waiter.resource) else { return GivenUp::Decided };
        if queue.come(waiter) {
            return GivenUp::Had;
        }
        let holder = queue.blockers(waiter).first().copied();
        if withdraw(&mut queues, waiter, None) { GivenUp::Left(holder.unwrap_or(0)) } else { GivenUp::Decided }
    }

    fn give_up(&self, transaction: u64, resource: Resource, requests: u32) -> bool {
        let mut queues = self.shard(resource).lock();
        let hash_map::Entry::Occupied(mut entry) = queues.entry(resource) else { return false };
        let released = entry.get_mut().release(transaction, requests) == Some(true);
        if entry.get().is_free() {
            entry.remove();
            if queues.capacity() > KEPT_CAPACITY && queues.len() < queues.capacity() / 8 {
                let kept = (queues.len() * 2).max(KEPT_CAPACITY / 2);
                queues.shrink_to(kept);
            }
        }
        released
    }

    fn note_held(&self, transaction: u64, resource: Resource) {
        self.owner_shard(transaction).lock().entry(transaction).or_default().insert(resource);
    }

    pub(super) fn shard(&self, resource: Resource) -> &Mutex<Queues> {
        &self.shards[shard_of(resource)].0
    }

    fn owner_shard(&self, transaction: u64) -> &Mutex<FastMap<u64, FastSet<Resource>>> {
        &self.owners[transaction as usize % OWNER_SHARDS].0
    }
}

/// Takes a waiter out of its queue, which goes if it was kept for him alone. `false` when its outcome is already decided.
pub(super) fn withdraw(queues: &mut Queues, waiter: &Arc<Waiter>, outcome: Option<Outcome>) -> bool {
    let hash_map::Entry::Occupied(mut entry) = queues.entry(waiter.resource) else { return false };
    let withdrawn = entry.get_mut().withdraw(waiter, outcome);
    if entry.get().is_free() {
        entry.remove();
    }
    withdrawn
}

pub(super) fn shard_of(resource: Resource) -> usize {
    let hash = match resource {
        Resource::Object(object) | Resource::Within(object) => hash::of_pair(object, 0),
        Resource::Wholes | Resource::Yields => 0,
        Resource::Row(object, rid) => hash::of_pair(object, rid.to_u64()),
        Resource::Key(object, key) => hash::of_pair(object, key),
        // Apart from rows, which have the same object.
        Resource::Reference(object, key) => hash::of_pair(object, !key),
    };
    // The maps use other bits of a different hash.
    (hash >> 32) as usize % SHARDS
}

//! Who holds one resource and who waits for it.
//!
//! Invariants:
//! - All holders' modes are compatible with each other. A transaction holds a resource once, in the strongest mode it asked for
//!   (IntentExclusive and Shared together make Exclusive), with a count of its requests.
//! - Waiters are served in their order; an upgrade of a mode that is held stands in front of all that hold nothing.
//! - A resource without holders has no waiters, but for one moment: the first one, who wants it alone and sleeps, is called, and takes it when it comes. Until then others may take it, one after
//!   the other ([`PASSES_MAX`]): a thread that runs gets more done than one that has to be woken. Who has come in vain is handed the resource when it is given up next.
//! - A waiter is in the queue if and only if its outcome is not decided. It says so itself, to who has the queue locked.

use super::lock_error::WaitFor;
use crate::steps::{step, stepping};
use pagefold_types::Rid;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Who waits first is passed by so many at most: short transactions of half a millisecond or so, about what it takes until a thread
/// comes where others use the processors. Where one is free, it comes after a few.
pub(super) const PASSES_MAX: u32 = 256;

/// Of a waiter: it is in the queue, and nobody has woken it.
const WAITS: u8 = 0;
/// It was woken to take the resource, and has not come yet.
const CALLED: u8 = 1;
/// It has come, and somebody had passed it.
const CAME: u8 = 2;
/// It is not in the queue any more.
const DECIDED: u8 = 3;

/// What can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// A table or index as a whole.
    Object(u32),
    /// The same, by who changes something within, while nobody asks for the whole: in its holder's set only.
    Within(u32),
    /// The right to ask for tables and indexes as a whole: in its holder's set only.
    Wholes,
    /// That it is made a victim before others: in its holder's set only.
    Yields,
    /// A row of a table.
    Row(u32, Rid),
    /// The keys of an index with this hash, whether they are there or not.
    Key(u32, u64),
    /// The right to refer to keys of a table with this hash (shared), or to take them away: no other change of a row needs it.
    Reference(u32, u64),
}

impl Resource {
    /// The number of the table or index that it is or belongs to.
    #[must_use]
    pub fn object(self) -> Option<u32> {
        match self {
            Resource::Object(object)
            | Resource::Within(object)
            | Resource::Row(object, _)
            | Resource::Key(object, _)
            | Resource::Reference(object, _) => Some(object),
            Resource::Wholes | Resource::Yields => None,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Object(object) => write!(f, "object {object}"),
            Resource::Within(object) => write!(f, "something in object {object}"),
            Resource::Wholes => write!(f, "whole objects"),
            Resource::Yields => write!(f, "nothing that others want"),
            Resource::Row(object, rid) => {
                write!(f, "row {}:{}:{} of object {object}", rid.partition(), rid.page(), rid.slot())
            }
            Resource::Key(object, hash) => write!(f, "a key (hash {hash:016x}) of object {object}"),
            Resource::Reference(object, hash) => write!(f, "references to a key (hash {hash:016x}) of object {object}"),
        }
    }
}

/// How a resource is locked. Rows and keys are locked `Exclusive`; changes of rows hold their table `IntentExclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Something within is read.
    IntentShared,
    /// Something within is changed.
    IntentExclusive,
    /// Read as a whole.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// Whether two transactions may hold these at once (Gray, Lorie, Putzolu, Traiger 1976).
    #[must_use]
    pub fn compatible(self, other: Mode) -> bool {
        use Mode::{Exclusive, IntentExclusive, IntentShared, Shared};
        match (self, other) {
            (Exclusive, _) | (_, Exclusive) | (Shared, IntentExclusive) | (IntentExclusive, Shared) => false,
            (IntentShared | IntentExclusive | Shared, IntentShared)
            | (IntentShared | IntentExclusive, IntentExclusive)
            | (IntentShared | Shared, Shared) => true,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::IntentShared => "intent shared",
            Mode::IntentExclusive => "intent exclusive",
            Mode::Shared => "shared",
            Mode::Exclusive => "exclusive",
        }
    }

    /// The weakest mode that allows what both allow.
    #[must_use]
    pub fn join(self, other: Mode) -> Mode {
        match (self, other) {
            (one, two) if one == two => one,
            (Mode::IntentShared, stronger) | (stronger, Mode::IntentShared) => stronger,
            _ => Mode::Exclusive,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    transaction: u64,
    mode: Mode,
    requests: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// Not an end: the resource is free, and whoever comes first has it.
    Called,
    Granted,
    Deadlock(Vec<WaitFor>),
    Cancelled,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) transaction: u64,
    pub(super) resource: Resource,
    /// Joined with what it holds.
    mode: Mode,
    upgrade: bool,
    /// Changed under the lock of the queue.
    stage: AtomicU8,
    pub(super) outcome: Mutex<Option<Outcome>>,
    pub(super) wake: Condvar,
}

impl Waiter {
    /// Whether the transaction holds the resource in a weaker mode.
    pub(super) fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// How it wants the resource.
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it is in the queue: a hint, to who has not locked that.
    pub(super) fn is_queued(&self) -> bool {
        self.stage() != DECIDED
    }

    fn stage(&self) -> u8 {
        self.stage.load(Ordering::Relaxed)
    }

    fn tell(&self, stage: u8, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.stage.store(stage, Ordering::Relaxed);
        self.wake.notify_one();
    }
}

pub(super) enum Asked {
    /// Newly held.
    Granted,
    /// Held before.
    Again,
    /// Not granted; this transaction is one of those in the way.
    Blocked(u64),
}

#[derive(Debug)]
pub(super) struct Queue {
    /// `None` only while the queue is about to be removed.
    first: Option<Holder>,
    /// Apart, since most resources have one holder and no waiter: 40 bytes for a lock in the table instead of 88.
    crowd: Option<Box<Crowd>>,
}

#[derive(Debug, Default)]
struct Crowd {
    others: Vec<Holder>,
    waiters: VecDeque<Arc<Waiter>>,
    /// How many have passed the first waiter.
    passes: u32,
}

impl Queue {
    /// One who was there before anybody asked for the resource as a whole.
    pub(super) fn admit(&mut self, transaction: u64, mode: Mode) {
        match self.holder_mut(transaction) {
            Some(holder) => holder.mode = holder.mode.join(mode),
            None => self.add(transaction, mode),
        }
    }

    pub(super) fn held_by(transaction: u64, mode: Mode) -> Queue {
        Queue { first: Some(Holder { transaction, mode, requests: 1 }), crowd: None }
    }

    fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.first.iter().chain(self.crowd.iter().flat_map(|crowd| &crowd.others))
    }

    /// How a transaction holds it.
    pub(super) fn mode_of(&self, transaction: u64) -> Option<Mode> {
        self.holders().find(|holder| holder.transaction == transaction).map(|holder| holder.mode)
    }

    fn waiters(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        self.crowd.iter().flat_map(|crowd| &crowd.waiters)
    }

    fn first_waiter(&self) -> Option<Arc<Waiter>> {
        self.waiters().next().cloned()
    }

    fn crowd(&mut self) -> &mut Crowd {
        self.crowd.get_or_insert_default()
    }

    fn holder_mut(&mut self, transaction: u64) -> Option<&mut Holder> {
        self.first
            .iter_mut()
            .chain(self.crowd.iter_mut().flat_map(|crowd| &mut crowd.others))
            .find(|holder| holder.transaction == transaction)
    }

    /// Another transaction that holds it in a mode which excludes `mode`.
    fn excluder(&self, transaction: u64, mode: Mode) -> Option<u64> {
        self.holders().find(|holder| holder.transaction != transaction && !holder.mode.compatible(mode)).map(|holder| holder.transaction)
    }

    /// `passes`: who asks may take what another one is called for.
    pub(super) fn ask(&mut self, transaction: u64, mode: Mode, passes: bool) -> Asked {
        let held = self.holder_mut(transaction).map(|holder| holder.mode);
        let wanted = held.map_or(mode, |held| held.join(mode));
        if held != Some(wanted)
            && let Some(excluder) = self.excluder(transaction, wanted)
        {
            return Asked::Blocked(excluder);
        }
        if let Some(holder) = self.holder_mut(transaction) {
            holder.mode = wanted;
            holder.requests += 1;
            return Asked::Again;
        }
        if let Some(crowd) = &mut self.crowd
            && let Some(last) = crowd.waiters.back()
        {
            if !passes || self.first.is_some() {
                return Asked::Blocked(last.transaction);
            }
            crowd.passes += 1;
        }
        self.add(transaction, wanted);
        Asked::Granted
    }

    fn add(&mut self, transaction: u64, mode: Mode) {
        let holder = Holder { transaction, mode, requests: 1 };
        if self.first.is_none() {
            self.first = Some(holder);
        } else {
            self.crowd().others.push(holder);
        }
    }

    /// A place in the queue for one whose request was blocked.
    pub(super) fn enqueue(&mut self, transaction: u64, resource: Resource, mode: Mode) -> Arc<Waiter> {
        let held = self.holder_mut(transaction).map(|holder| holder.mode);
        let mode = held.map_or(mode, |held| held.join(mode));
        let upgrade = held.is_some();
        let stage = AtomicU8::new(WAITS);
        let waiter = Arc::new(Waiter { transaction, resource, mode, upgrade, stage, outcome: Mutex::new(None), wake: Condvar::new() });
        let waiters = &mut self.crowd().waiters;
        let at = if upgrade { waiters.iter().take_while(|waiter| waiter.upgrade).count() } else { waiters.len() };
        waiters.insert(at, Arc::clone(&waiter));
        waiter
    }

    fn place(&self, waiter: &Arc<Waiter>) -> Option<usize> {
        self.waiters().map(stepping).position(|other| Arc::ptr_eq(other, waiter))
    }

    /// The transactions that must go on before this waiter can: holders that exclude it, then those in front of it. Empty when it no
    /// longer waits.
    pub(super) fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<u64> {
        let Some(place) = self.place(waiter) else { return Vec::new() };
        let holders = self.holders().filter(|holder| holder.transaction != waiter.transaction && !holder.mode.compatible(waiter.mode));
        let in_front = self.waiters().take(place).map(|other| other.transaction);
        holders.map(|holder| holder.transaction).chain(in_front).filter(|&other| other != waiter.transaction).collect()
    }

    /// As many of [these](Self::blockers) as a search for cycles needs. Those in front wait for this resource and nothing else, so beyond them are its holders: where all of these are in the way, they
    /// do. (If who looks for a cycle stands in front himself, the way by which he came to this queue was closed to a cycle before by one of the holders.)
    pub(super) fn leading_blockers(&self, waiter: &Arc<Waiter>) -> Vec<u64> {
        if !waiter.is_queued() {
            return Vec::new();
        }
        let others = || self.holders().filter(|holder| holder.transaction != waiter.transaction);
        if others().any(|holder| holder.mode.compatible(waiter.mode)) {
            return self.blockers(waiter);
        }
        others().map(|holder| holder.transaction).collect()
    }

    /// A waiter that was called takes the resource. `false` when it is not free any more, or an outcome was decided meanwhile.
    pub(super) fn come(&mut self, waiter: &Arc<Waiter>) -> bool {
        if waiter.stage() != CALLED {
            return false;
        }
        let is_first = self.waiters().next().is_some_and(|first| Arc::ptr_eq(first, waiter));
        if !is_first || self.excluder(waiter.transaction, waiter.mode).is_some() {
            waiter.stage.store(CAME, Ordering::Relaxed);
            return false;
        }
        waiter.stage.store(DECIDED, Ordering::Relaxed);
        self.admit_first(waiter);
        true
    }

    /// Takes a waiter out without the lock. `false` when its outcome is already decided.
    pub(super) fn withdraw(&mut self, waiter: &Arc<Waiter>, outcome: Option<Outcome>) -> bool {
        let Some(place) = self.place(waiter) else { return false };
        let crowd = self.crowd();
        crowd.waiters.remove(place);
        if place == 0 {
            crowd.passes = 0;
        }
        match outcome {
            Some(outcome) => waiter.tell(DECIDED, outcome),
            None => waiter.stage.store(DECIDED, Ordering::Relaxed),
        }
        self.grant();
        true
    }

    /// Gives up `requests` of a transaction's requests. `Some(true)` when it no longer holds the resource, `None` when it did not.
    pub(super) fn release(&mut self, transaction: u64, requests: u32) -> Option<bool> {
        let holder = self.holder_mut(transaction)?;
        holder.requests = holder.requests.saturating_sub(requests);
        if holder.requests > 0 {
            return Some(false);
        }
        if self.first.is_some_and(|first| first.transaction == transaction) {
            self.first = self.crowd.as_mut().and_then(|crowd| crowd.others.pop());
        } else {
            self.crowd().others.retain(|holder| holder.transaction != transaction);
        }
        self.grant();
        Some(true)
    }

    /// Nobody holds it, and nobody waits.
    pub(super) fn is_free(&self) -> bool {
        debug_assert!(self.first.is_some() || self.holders().next().is_none());
        self.first.is_none() && self.waiters().next().is_none()
    }

    /// Serves waiters from the front, as far as the modes go.
    fn grant(&mut self) {
        while let Some(waiter) = self.first_waiter() {
            if self.excluder(waiter.transaction, waiter.mode).is_some() {
                return;
            }
            step();
            let passes = self.crowd().passes;
            if self.first.is_none() && waiter.mode == Mode::Exclusive && waiter.stage() != CAME && passes < PASSES_MAX {
                if waiter.stage() == WAITS {
                    waiter.tell(CALLED, Outcome::Called);
                }
                return;
            }
            self.admit_first(&waiter);
            waiter.tell(DECIDED, Outcome::Granted);
        }
    }

    /// The first waiter becomes a holder.
    fn admit_first(&mut self, waiter: &Waiter) {
        let crowd = self.crowd();
        crowd.waiters.pop_front();
        crowd.passes = 0;
        if let Some(holder) = self.holder_mut(waiter.transaction) {
            holder.mode = waiter.mode;
            holder.requests += 1;
        } else {
            self.add(waiter.transaction, waiter.mode);
        }
    }
}

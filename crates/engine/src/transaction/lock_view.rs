//! Who has which locks just now, and who waits for whom, for whoever looks on.

use super::lock_queue::{Mode, Resource, Waiter};
use super::locks::{LockTable, REMOVER};
use std::sync::Arc;

/// A lock that a transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockHeld {
    /// The transaction.
    pub transaction: u64,
    /// What it has locked.
    pub resource: Resource,
    /// How.
    pub mode: Mode,
}

/// A wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The transaction that waits,
    pub waiter: u64,
    /// for this resource,
    pub resource: Resource,
    /// which it wants in this mode,
    pub mode: Mode,
    /// and which this transaction holds, or waits for in front of it.
    pub holder: u64,
}

impl LockTable {
    /// The waits for locks, so many at most: each with one of those that are waited for. They are looked at one after the other, so one may have ended by now.
    #[must_use]
    pub fn waits_now(&self, most: usize) -> Vec<LockWait> {
        let mut waiters: Vec<Arc<Waiter>> = self.waiters();
        waiters.sort_unstable_by_key(|waiter| waiter.transaction);
        let wait = |waiter: &Arc<Waiter>| {
            let queues = self.shard(waiter.resource).lock();
            let holder = queues.get(&waiter.resource)?.blockers(waiter).first().copied()?;
            Some(LockWait { waiter: waiter.transaction, resource: waiter.resource, mode: waiter.mode(), holder })
        };
        waiters.iter().filter_map(wait).take(most).collect()
    }

    /// The locks that transactions have, so many at most, the oldest transactions first. They are looked at one after the other, so some may have been given up by now.
    #[must_use]
    pub fn held_now(&self, most: usize) -> Vec<LockHeld> {
        let mut held = self.all_held(most);
        held.sort_unstable();
        let with_mode = |(transaction, resource): (u64, Resource)| {
            let mode = match resource {
                Resource::Wholes | Resource::Yields => return None,
                Resource::Within(_) => Mode::IntentExclusive,
                _ => self.shard(resource).lock().get(&resource)?.mode_of(transaction)?,
            };
            Some(LockHeld { transaction, resource, mode })
        };
        held.into_iter().filter(|(transaction, _)| *transaction != REMOVER).filter_map(with_mode).collect()
    }
}

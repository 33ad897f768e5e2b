//! Who waits for whom just now, for whoever looks on.

use super::lock_error::WaitFor;
use super::lock_queue::Waiter;
use super::locks::LockTable;
use std::sync::Arc;

impl LockTable {
    /// The waits for locks, so many at most: each with one of those that are waited for. They are looked at one after the other, so one may have ended by now.
    #[must_use]
    pub fn waits_now(&self, most: usize) -> Vec<WaitFor> {
        let mut waiters: Vec<Arc<Waiter>> = self.waiters();
        waiters.sort_unstable_by_key(|waiter| waiter.transaction);
        let blocker = |waiter: &Arc<Waiter>| {
            let queues = self.shard(waiter.resource).lock();
            let holder = queues.get(&waiter.resource)?.blockers(waiter).first().copied()?;
            Some(WaitFor { waiter: waiter.transaction, resource: waiter.resource, holder })
        };
        waiters.iter().filter_map(blocker).take(most).collect()
    }
}

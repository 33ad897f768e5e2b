//! The search for cycles among those who wait for locks.
//!
//! Invariants:
//! - A cycle counts only if all its edges hold at once, checked with its shards locked: a wait that has meanwhile timed out or been cancelled
//!   makes no victim.
//! - Who waits first is looked at when it begins to wait, and not when somebody passes it: who does that waits for nothing then, so there is no cycle before his next wait, whose search sees it.

use super::lock_error::WaitFor;
use super::lock_queue::{Outcome, Waiter};
use super::locks::{LockTable, Queues, shard_of, withdraw};
use crate::hash::FastMap;
use crate::steps::step;
use parking_lot::MutexGuard;
use std::collections::{VecDeque, hash_map};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl LockTable {
    /// Makes victims until `waiter` is on no cycle.
    pub(super) fn break_cycles(&self, graph: &FastMap<u64, Arc<Waiter>>, waiter: &Arc<Waiter>) {
        while let Some(cycle) = self.find_cycle(graph, waiter) {
            let mut shards: Vec<usize> = cycle.iter().map(|(waiter, _)| shard_of(waiter.resource)).collect();
            shards.sort_unstable();
            shards.dedup();
            let mut locked: Vec<(usize, MutexGuard<'_, Queues>)> = shards.iter().map(|&at| (at, self.shards[at].0.lock())).collect();
            let mut queues_of = |waiter: &Waiter, run: &mut dyn FnMut(&mut Queues) -> bool| {
                locked.iter_mut().find(|(at, _)| *at == shard_of(waiter.resource)).is_some_and(|(_, queues)| run(queues))
            };
            let holds = |queues: &Queues, waiter: &Arc<Waiter>, holder: u64| {
                queues.get(&waiter.resource).is_some_and(|queue| queue.blockers(waiter).contains(&holder))
            };
            if !cycle.iter().all(|(waiter, holder)| queues_of(waiter, &mut |queues| holds(queues, waiter, *holder))) {
                continue;
            }
            // Who loses nothing by it, else the youngest.
            let yielding = self.yielding.lock();
            let Some((victim, _)) = cycle.iter().max_by_key(|(w, _)| (yielding.contains(&w.transaction), w.transaction)) else { return };
            drop(yielding);
            let edges =
                cycle.iter().map(|(waiter, holder)| WaitFor { waiter: waiter.transaction, resource: waiter.resource, holder: *holder });
            let edges: Vec<WaitFor> = edges.collect();
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
            queues_of(victim, &mut |queues| withdraw(queues, victim, Some(Outcome::Deadlock(edges.clone()))));
        }
    }

    /// A shortest cycle through `start`, as waiters with the one that each of them waits for; edges are looked at one by one.
    fn find_cycle(&self, graph: &FastMap<u64, Arc<Waiter>>, start: &Arc<Waiter>) -> Option<Vec<(Arc<Waiter>, u64)>> {
        // Transaction -> the waiter from which the search came to it.
        let mut reached: FastMap<u64, Arc<Waiter>> = FastMap::default();
        let mut todo = VecDeque::from([Arc::clone(start)]);
        while let Some(waiter) = todo.pop_front() {
            let queues = self.shard(waiter.resource).lock();
            let blockers = queues.get(&waiter.resource).map(|queue| queue.leading_blockers(&waiter)).unwrap_or_default();
            drop(queues);
            for blocker in blockers {
                step();
                if blocker == start.transaction {
                    let mut cycle = vec![(Arc::clone(&waiter), blocker)];
                    let mut at = waiter.transaction;
                    while let Some(from) = reached.get(&at) {
                        cycle.push((Arc::clone(from), at));
                        at = from.transaction;
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if let hash_map::Entry::Vacant(entry) = reached.entry(blocker)
                    && let Some(next) = graph.get(&blocker)
                {
                    entry.insert(Arc::clone(&waiter));
                    todo.push_back(Arc::clone(next));
                }
            }
        }
        None
    }
}

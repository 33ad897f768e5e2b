//! Why a lock was not granted.

use super::lock_queue::Resource;
use std::time::Duration;

/// One edge of the wait-for graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitFor {
    /// The transaction that waits,
    pub waiter: u64,
    /// for this resource,
    pub resource: Resource,
    /// which this transaction holds, or waits for in front of it.
    pub holder: u64,
}

/// A lock that was not granted. The transaction keeps those that it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Transactions wait for each other in a circle; this one, the youngest of them, was chosen to give way.
    #[error("deadlock: {}; transaction {victim}, the youngest, gives way", describe(cycle))]
    Deadlock {
        /// The transaction that asked.
        victim: u64,
        /// Each holder is the next one's waiter, the last one's the first's.
        cycle: Vec<WaitFor>,
    },
    /// The time is over.
    #[error("transaction {waiter} waited {} ms for {resource}, which transaction {holder} holds", waited.as_millis())]
    Timeout {
        /// The transaction that asked.
        waiter: u64,
        /// What it asked for.
        resource: Resource,
        /// Who has it, or waits for it in front of this one.
        holder: u64,
        /// The time allowed.
        waited: Duration,
    },
    /// Somebody called [`cancel`](super::LockTable::cancel).
    #[error("transaction {waiter} was cancelled while it waited for {resource}")]
    Cancelled {
        /// The transaction that asked.
        waiter: u64,
        /// What it asked for.
        resource: Resource,
    },
}

fn describe(cycle: &[WaitFor]) -> String {
    let edges = cycle.iter().map(|edge| format!("transaction {} waits for {} held by {}", edge.waiter, edge.resource, edge.holder));
    edges.collect::<Vec<_>>().join(", ")
}

//! Between which commits a table or index is the one of its name.
//!
//! Invariant: an object counts for the snapshots from the commit of the change that made it on, up to but without that of the change that dropped it: so of the objects that have had a name at most one
//! counts for a snapshot.

use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Not yet, or not at all.
const NEVER: u64 = u64::MAX;

/// Between which commits an object is the one of its name.
#[derive(Debug)]
pub(crate) struct Lifetime {
    since: AtomicU64,
    until: AtomicU64,
    /// The transaction that makes it, and the oldest snapshot for which it may use it.
    maker: (u64, u64),
}

impl Default for Lifetime {
    /// Of what was there when the database was opened.
    fn default() -> Lifetime {
        Lifetime { since: AtomicU64::new(0), until: AtomicU64::new(NEVER), maker: (0, 0) }
    }
}

impl Lifetime {
    /// Of what a transaction is about to make, which it may use for snapshots of `from` on.
    pub(crate) fn staged(maker: u64, from: u64) -> Lifetime {
        Lifetime { since: AtomicU64::new(NEVER), until: AtomicU64::new(NEVER), maker: (maker, from) }
    }

    /// Is it about to be made?
    pub(crate) fn is_staged(&self) -> bool {
        self.since.load(Ordering::Acquire) == NEVER
    }

    /// It will not be made.
    pub(crate) fn withdraw(&self) {
        self.end(0);
    }

    /// The change that makes it is committed.
    pub(crate) fn begin(&self, timestamp: u64) {
        self.since.store(timestamp, Ordering::Release);
    }

    /// The change that drops or replaces it is committed.
    pub(crate) fn end(&self, timestamp: u64) {
        self.until.store(timestamp, Ordering::Release);
    }

    /// The commit that dropped or replaced it.
    pub(crate) fn until(&self) -> u64 {
        self.until.load(Ordering::Acquire)
    }

    /// Was it dropped or replaced?
    pub(crate) fn has_ended(&self) -> bool {
        self.until() != NEVER
    }

    /// Does it count for the snapshot of this timestamp?
    pub(crate) fn covers(&self, timestamp: u64) -> bool {
        self.since.load(Ordering::Acquire) <= timestamp && timestamp < self.until()
    }

    /// Refuses a transaction what does not count for its snapshot of this timestamp; without one, for those taken now.
    #[inline]
    pub(crate) fn check(&self, timestamp: Option<u64>, transaction: u64, object: impl FnOnce() -> String) -> Result<()> {
        const TOO_NEW: &str = "was made after the snapshot of this transaction";
        let since = self.since.load(Ordering::Acquire);
        if since == NEVER {
            let (maker, from) = self.maker;
            let why = match timestamp {
                _ if maker != transaction => "is not there before the transaction that makes it is committed",
                _ if self.has_ended() => "was taken back",
                Some(timestamp) if timestamp < from => TOO_NEW,
                _ => return Ok(()),
            };
            return Err(Error::Stale { object: object(), why });
        }
        match timestamp {
            Some(timestamp) if timestamp < since => Err(Error::Stale { object: object(), why: TOO_NEW }),
            Some(timestamp) if timestamp < self.until() => Ok(()),
            None if self.until() == NEVER => Ok(()),
            _ => Err(Error::Stale { object: object(), why: "was dropped or replaced: look it up again" }),
        }
    }
}

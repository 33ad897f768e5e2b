//! The versions of one page's rows.
//!
//! Invariants:
//! - Chains are in the order of their slots. Outside of a call there is a chain, or the page is somebody's addition.
//! - A page is somebody's addition when he was the first to put rows on it: before his commit there was none. One note does for all of its
//!   rows, however many he inserts, and he needs no entries for his further changes on it. Nobody else puts rows there before he has ended.
//!   So who sees another one's chain there sees the addition, too, save for a transaction that has changed a row itself.
//! - Chains are in memory or in the file, all of a page. What looks at chains or changes them is called when they are in memory.

use super::chain::{Chain, Seen};
use super::snapshot::{Horizon, Snapshot};
use super::spilled::Spilled;
use super::state::TransactionState;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct SlotChain {
    pub(super) slot: u16,
    pub(super) chain: Chain,
}

#[derive(Debug, Default)]
pub(super) struct PageVersions {
    pub(super) added_by: Option<Arc<TransactionState>>,
    pub(super) chains: Vec<SlotChain>,
    /// Where the chains are, when they are not in memory.
    pub(super) spilled: Option<Box<Spilled>>,
}

impl PageVersions {
    pub(super) fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.spilled.is_none() && self.added_by.is_none()
    }

    /// Of the list of chains, or of what says where they are.
    pub(super) fn heap_bytes(&self) -> usize {
        self.chains.capacity() * size_of::<SlotChain>() + self.spilled.as_ref().map_or(0, |spilled| spilled.heap_bytes())
    }

    /// With all chains.
    pub(super) fn bytes(&self) -> usize {
        self.heap_bytes() + self.chains.iter().map(|chain| chain.chain.bytes()).sum::<usize>()
    }

    pub(super) fn find(&self, slot: u16) -> Result<usize, usize> {
        debug_assert!(self.spilled.is_none(), "chains that are not in memory");
        self.chains.binary_search_by_key(&slot, |chain| chain.slot)
    }

    fn chain(&self, slot: u16) -> Option<&Chain> {
        self.find(slot).ok().map(|at| &self.chains[at].chain)
    }

    pub(super) fn is_addition_of(&self, transaction: u64) -> bool {
        self.added_by.as_ref().is_some_and(|by| by.id() == transaction)
    }

    /// Whether the snapshot sees all changes, as far as that is known without the file.
    pub(super) fn is_all_seen(&self, snapshot: &Snapshot) -> bool {
        self.added_by.is_none() && self.spilled.as_ref().is_some_and(|spilled| spilled.is_seen(snapshot))
    }

    /// Who added the page, if the snapshot does not see that.
    fn unseen_addition(&self, snapshot: &Snapshot) -> Option<&Arc<TransactionState>> {
        self.added_by.as_ref().filter(|by| !snapshot.sees(by))
    }

    pub(super) fn look(&self, slot: u16, snapshot: &Snapshot, unseen: impl FnOnce(&Arc<TransactionState>)) -> Seen {
        let chain = self.chain(slot);
        if let Some(by) = self.unseen_addition(snapshot)
            && !chain.is_some_and(|chain| is_own(chain, snapshot))
        {
            // The row may have been inserted later than the page was added.
            unseen(chain.and_then(Chain::inserted_by).unwrap_or(by));
            return Seen::Absent;
        }
        chain.map_or(Seen::Current, |chain| chain.look(snapshot, unseen))
    }

    /// What is seen of most rows, and in `rows` what is seen of the others.
    pub(super) fn look_at_all(
        &self,
        snapshot: &Snapshot,
        rows: &mut Vec<(u16, Seen)>,
        mut unseen: impl FnMut(Option<u16>, &Arc<TransactionState>),
    ) -> Seen {
        if let Some(by) = self.unseen_addition(snapshot) {
            unseen(None, by);
            for SlotChain { slot, chain } in &self.chains {
                if is_own(chain, snapshot) {
                    rows.push((*slot, Seen::Current));
                } else if let Some(by) = chain.inserted_by() {
                    unseen(Some(*slot), by);
                }
            }
            return Seen::Absent;
        }
        for SlotChain { slot, chain } in &self.chains {
            match chain.look(snapshot, |writer| unseen(Some(*slot), writer)) {
                Seen::Current => {}
                seen => rows.push((*slot, seen)),
            }
        }
        Seen::Current
    }

    pub(super) fn bodies(&self, slot: u16) -> Vec<Arc<[u8]>> {
        self.chain(slot).map_or_else(Vec::new, Chain::bodies)
    }

    pub(super) fn newest_by(&self, slot: u16) -> Option<&Arc<TransactionState>> {
        self.chain(slot).and_then(Chain::newest_by).or(self.added_by.as_ref())
    }

    pub(super) fn forget_addition(&mut self, oldest: u64) {
        if self.added_by.as_ref().is_some_and(|by| by.committed_by(oldest)) {
            self.added_by = None;
        }
    }

    /// Drops what no snapshot needs. Returns the heap bytes of chains that this frees, and those that transactions hold which have not
    /// ended; the list of chains is counted by the caller.
    pub(super) fn prune(&mut self, horizon: &Horizon) -> (usize, usize) {
        let mut freed = 0;
        let mut uncommitted = self.spilled.as_ref().map_or(0, |spilled| spilled.uncommitted_bytes());
        self.forget_addition(horizon.oldest());
        self.chains.retain_mut(|SlotChain { chain, .. }| {
            uncommitted += chain.uncommitted_bytes();
            let bytes_before = chain.bytes();
            let empty = chain.prune(horizon);
            freed += bytes_before - if empty { 0 } else { chain.bytes() };
            !empty
        });
        if self.chains.len() * 2 < self.chains.capacity() {
            self.chains.shrink_to_fit();
        }
        (freed, uncommitted)
    }
}

fn is_own(chain: &Chain, snapshot: &Snapshot) -> bool {
    chain.newest_by().is_some_and(|by| by.id() == snapshot.own())
}

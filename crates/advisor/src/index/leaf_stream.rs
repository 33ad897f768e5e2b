//! Leaves filled with the entries of a sample.
//!
//! The runs of a sample are packed one behind the other, so a leaf of 32 KB can be filled from leaves of 8 KB or short key ranges. What an entry costs is counted with its true neighbour
//! (the first entry of a run only is one), except as the first of a leaf: there it costs what a first entry costs. So the seams between runs are not seen.
//!
//! Invariant: for one run that is the whole index the leaves are those of `LeafPacker`, up to the first entry.

use crate::sample::Shares;
use pagefold_codec::index::cost::{Neighbour, count_cost, joint_cost, next_rid_cost};
use pagefold_codec::index::layout::{MAP_BYTES, RID_BYTES};
use pagefold_format::index::header::{FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LeafKind};

/// Fills leaves of one kind and size.
pub(super) struct LeafStream {
    kind: LeafKind,
    limits: (usize, usize),
    used: usize,
    folded: usize,
    entries: usize,
    list: usize,
    pub(super) pages: u64,
    /// Bytes of entries, in memory and folded, in complete leaves and in this one.
    full: (u64, u64),
    pub(super) shares: Shares,
}

impl LeafStream {
    pub(super) fn new(kind: LeafKind, page_bytes: usize, pctfree: u8) -> LeafStream {
        let fill = |bytes: usize| (bytes - LEAF_HEADER_BYTES) * usize::from(100 - pctfree.min(99)) / 100;
        LeafStream {
            kind,
            limits: (fill(page_bytes), fill(FOLDED_PAGE_BYTES)),
            used: 0,
            folded: 0,
            entries: 0,
            list: 0,
            pages: 0,
            full: (0, 0),
            shares: Shares::default(),
        }
    }

    /// Adds an entry or, when `key` is that of `before`, a RID to its list.
    pub(super) fn push(&mut self, before: Neighbour<'_>, key: &[u8], rid: u64) {
        let shape = self.kind.shape();
        let continues = !self.kind.single && before.key == key && self.entries > 0;
        let (used, folded) = if continues {
            let count = count_cost(shape, self.list + 1) - count_cost(shape, self.list);
            (RID_BYTES, if self.kind.fold { next_rid_cost(shape, before.last_rid, rid) + count } else { 0 })
        } else {
            let folded = if self.kind.fold { joint_cost(shape, before, key, rid) + count_cost(shape, 1) } else { 0 };
            (shape.entry_bytes(key.len(), 1) + MAP_BYTES, folded)
        };
        if self.entries > 0 && (self.used + used > self.limits.0 || self.folded + folded > self.limits.1) {
            self.full.0 += self.used as u64;
            self.full.1 += self.folded as u64;
            self.pages += 1;
            self.shares.close(1.0);
            (self.used, self.folded, self.entries, self.list) = (0, 0, 0, 0);
        }
        let (mut takes, mut takes_folded) = (used, folded);
        if self.entries == 0 {
            takes = shape.entry_bytes(key.len(), 1) + MAP_BYTES;
            if self.kind.fold {
                takes_folded = joint_cost(shape, Neighbour::NONE, key, rid) + count_cost(shape, 1);
            }
        }
        self.used += takes;
        self.folded += takes_folded;
        if continues && self.entries > 0 {
            self.list += 1;
        } else {
            self.entries += 1;
            self.list = 1;
        }
        // What is nearer to its limit fills leaves; the neighbour's cost is what a row takes wherever it lies.
        self.shares.row((used as f64 / self.limits.0 as f64).max(folded as f64 / self.limits.1 as f64));
    }

    /// Ends the sample: the leaf being filled counts as the part that it is of a leaf as full as the others.
    pub(super) fn end(&mut self) {
        let mean = |sum: u64, limit: usize| if self.pages == 0 { limit as f64 } else { sum as f64 / self.pages as f64 };
        let used = self.used as f64 / mean(self.full.0, self.limits.0).max(1.0);
        let folded = self.folded as f64 / mean(self.full.1, self.limits.1).max(1.0);
        // What fills the leaves is what fills this one.
        let by_fold = self.kind.fold && self.full.1 * self.limits.0 as u64 >= self.full.0 * self.limits.1 as u64;
        let part = match (self.pages, by_fold) {
            (0, _) => used.max(folded),
            (_, true) => folded,
            (_, false) => used,
        };
        self.shares.close(part.min(1.0));
        self.full.0 += self.used as u64;
        self.full.1 += self.folded as u64;
    }

    /// Bytes of all entries, in memory and folded.
    pub(super) fn entry_bytes(&self) -> (u64, u64) {
        self.full
    }
}

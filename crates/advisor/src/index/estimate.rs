//! What comes out for an index.

use super::candidate::{IndexCandidate, IndexKeys};
use crate::pages::data_set_pages;
use crate::sample::Interval;
use crate::table::Saving;
use pagefold_format::index::build::BuiltTree;
use pagefold_format::index::header::FOLDED_PAGE_BYTES;

/// The part of a buffer of `buffer_bytes` that a folded leaf leaves unused when folding takes `ratio` (compressed / uncompressed) of it: 1 - 4 KB / (ratio * buffer), when
/// positive. (`facts.md` section 3: the published formula.)
#[must_use]
pub fn buffer_unused(ratio: f64, buffer_bytes: usize) -> f64 {
    if ratio <= 0.0 { 0.0 } else { (1.0 - FOLDED_PAGE_BYTES as f64 / (ratio * buffer_bytes as f64)).max(0.0) }
}

/// An index in one format and page size. Counts of a sample are scaled to all entries.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEstimate {
    /// Format and page size.
    pub candidate: IndexCandidate,
    /// What is known of the keys.
    pub keys_known: IndexKeys,
    /// Length of a key that is too long for these pages; the other fields are then 0.
    pub key_too_long: Option<usize>,
    /// Distinct keys.
    pub keys: u64,
    /// RIDs.
    pub rids: u64,
    /// Bytes of the distinct keys alone.
    pub key_bytes: u64,
    /// Bytes of the entries in memory: keys, RIDs, lengths, key map; of prefix leaves blocks, their directory and shared bytes.
    pub entry_bytes: u64,
    /// Bytes of the entries on disk: the same unless they are folded.
    pub stored_bytes: u64,
    /// Leaf pages.
    pub leaf_pages: Interval,
    /// Non-leaf pages.
    pub non_leaf_pages: u64,
    /// Pages of each level, leaves first.
    pub levels: Vec<u64>,
    /// Pages of all kinds, with header and space map.
    pub pages: Interval,
}

impl IndexEstimate {
    pub(super) fn refused(candidate: IndexCandidate, keys_known: IndexKeys, rids: u64, length: usize) -> IndexEstimate {
        IndexEstimate {
            candidate,
            keys_known,
            key_too_long: Some(length),
            keys: 0,
            rids,
            key_bytes: 0,
            entry_bytes: 0,
            stored_bytes: 0,
            leaf_pages: Interval::default(),
            non_leaf_pages: 0,
            levels: Vec::new(),
            pages: Interval::default(),
        }
    }

    pub(super) fn exact(candidate: IndexCandidate, keys_known: IndexKeys, built: &BuiltTree) -> IndexEstimate {
        let leaves = built.levels.first().copied().unwrap_or_default();
        let content: u64 = built.levels.iter().map(|level| level.pages).sum();
        let header = leaves.pages * candidate.leaf_header_bytes() as u64;
        let entry_bytes = (leaves.pages * candidate.page_bytes as u64).saturating_sub(leaves.free_bytes + header);
        IndexEstimate {
            candidate,
            keys_known,
            key_too_long: None,
            keys: built.keys,
            rids: built.rids,
            key_bytes: built.key_bytes,
            entry_bytes,
            stored_bytes: if candidate.folds() { leaves.folded_bytes.saturating_sub(header) } else { entry_bytes },
            leaf_pages: Interval::exact(leaves.pages),
            non_leaf_pages: content - leaves.pages,
            levels: built.levels.iter().map(|level| level.pages).collect(),
            pages: Interval::exact(data_set_pages(content, candidate.disk_bytes())),
        }
    }

    /// Compressed / uncompressed; 1 unless it folds.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.entry_bytes == 0 { 1.0 } else { self.stored_bytes as f64 / self.entry_bytes as f64 }
    }

    /// Bytes of the leaf pages on disk.
    #[must_use]
    pub fn leaf_bytes(&self) -> u64 {
        self.leaf_pages.value * self.candidate.disk_bytes() as u64
    }

    /// Bytes of all pages.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.pages.value * self.candidate.disk_bytes() as u64
    }

    /// The part of `leaf_bytes_now` that is saved in leaf pages.
    #[must_use]
    pub fn space_reduction(&self, leaf_bytes_now: u64) -> f64 {
        if leaf_bytes_now == 0 { 0.0 } else { 1.0 - self.leaf_bytes() as f64 / leaf_bytes_now as f64 }
    }

    /// The part of a leaf's buffer that is left unused because 4 KB are full before it is; by the published formula.
    #[must_use]
    pub fn buffer_unused(&self) -> f64 {
        if self.candidate.folds() { buffer_unused(self.ratio(), self.candidate.page_bytes) } else { 0.0 }
    }

    /// The part of the leaves' buffers that really is free, for whatever reason.
    #[must_use]
    pub fn buffer_free(&self) -> f64 {
        let all = self.leaf_pages.value * (self.candidate.page_bytes - self.candidate.leaf_header_bytes()) as u64;
        if all == 0 { 0.0 } else { (1.0 - self.entry_bytes as f64 / all as f64).max(0.0) }
    }

    /// Where the saving against `before` comes from, whose entries now lie in `leaf_pages` leaves (of `pages` in all).
    #[must_use]
    pub fn saving(&self, before: &IndexEstimate, leaf_pages: u64, pages: u64) -> Saving {
        let disk = before.candidate.disk_bytes() as i64;
        let header_bytes = |e: &IndexEstimate| (e.leaf_pages.value * e.candidate.leaf_header_bytes() as u64) as i64;
        let free = |e: &IndexEstimate| e.leaf_bytes() as i64 - e.stored_bytes as i64 - header_bytes(e);
        let encoding_bytes = before.stored_bytes as i64 - self.stored_bytes as i64;
        let free_space_bytes = (leaf_pages as i64 - before.leaf_pages.value as i64) * (disk - before.candidate.leaf_header_bytes() as i64);
        let rounding_bytes = free(before) - free(self);
        let total = pages as i64 * disk - self.size_bytes() as i64;
        Saving { encoding_bytes, free_space_bytes, rounding_bytes, other_bytes: total - encoding_bytes - free_space_bytes - rounding_bytes }
    }
}

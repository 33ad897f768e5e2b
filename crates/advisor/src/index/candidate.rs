//! Formats and page sizes of an index.

use pagefold_codec::index::slot_bits_for;
use pagefold_format::index::header::{FOLDED_PAGE_BYTES, LeafKind};
use pagefold_types::key_bytes_max;

/// A format and page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexCandidate {
    /// Are leaves folded to 4 KB on disk?
    pub fold: bool,
    /// Size of leaves in memory.
    pub page_bytes: usize,
    /// Percent of each leaf left free.
    pub pctfree: u8,
}

impl IndexCandidate {
    /// Plain leaves.
    #[must_use]
    pub fn plain(page_bytes: usize) -> IndexCandidate {
        IndexCandidate { fold: false, page_bytes, pctfree: 0 }
    }

    /// Folded leaves of 8, 16 or 32 KB.
    #[must_use]
    pub fn folded(page_bytes: usize) -> IndexCandidate {
        IndexCandidate { fold: true, page_bytes, pctfree: 0 }
    }

    /// The format's name.
    #[must_use]
    pub fn format(&self) -> &'static str {
        if self.fold { "fold" } else { "plain" }
    }

    /// Page size on disk, and of non-leaf pages.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        if self.fold { FOLDED_PAGE_BYTES } else { self.page_bytes }
    }

    /// The longest key.
    #[must_use]
    pub fn key_bytes_max(&self) -> usize {
        key_bytes_max(self.disk_bytes())
    }

    /// How its leaves are laid out.
    #[must_use]
    pub fn leaf_kind(&self, keys: &IndexKeys) -> LeafKind {
        LeafKind {
            single: keys.unique,
            fold: self.fold,
            fixed_key_bytes: keys.fixed_key_bytes.map_or(0, |length| length as u16),
            slot_bits: if self.fold { slot_bits_for(keys.slot_max) } else { 12 },
        }
    }
}

/// Every format and page size worth a look: plain at the usual page sizes, and each folded one.
#[must_use]
pub fn index_candidates(pctfree: u8) -> Vec<IndexCandidate> {
    let plain = [2048, 4096, 8192, 16384, 32768].map(IndexCandidate::plain);
    let folded = [8192, 16384, 32768].map(IndexCandidate::folded);
    plain.into_iter().chain(folded).map(|c| IndexCandidate { pctfree, ..c }).collect()
}

/// What is known of an index's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexKeys {
    /// A unique index?
    pub unique: bool,
    /// Length of every key, when all have the same.
    pub fixed_key_bytes: Option<usize>,
    /// The largest slot of all RIDs.
    pub slot_max: u16,
}

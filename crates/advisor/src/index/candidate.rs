//! Formats and page sizes of an index.

use pagefold_codec::index::slot_bits_for;
use pagefold_format::index::header::{FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LeafKind};
use pagefold_format::index::leaf_view::LeafLayout;
use pagefold_format::index::prefix::PREFIX_HEADER_BYTES;
use pagefold_types::key_bytes_max;

/// A format of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeafFormat {
    /// As they are.
    Plain,
    /// Folded to 4 KB on disk.
    Fold,
    /// In compressed blocks, in memory as on disk.
    Prefix,
}

/// A format and page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexCandidate {
    /// Format of leaves.
    pub format: LeafFormat,
    /// Size of leaves in memory.
    pub page_bytes: usize,
    /// Percent of each leaf left free.
    pub pctfree: u8,
}

impl IndexCandidate {
    /// Plain leaves.
    #[must_use]
    pub fn plain(page_bytes: usize) -> IndexCandidate {
        IndexCandidate { format: LeafFormat::Plain, page_bytes, pctfree: 0 }
    }

    /// Folded leaves of 8, 16 or 32 KB.
    #[must_use]
    pub fn folded(page_bytes: usize) -> IndexCandidate {
        IndexCandidate { format: LeafFormat::Fold, page_bytes, pctfree: 0 }
    }

    /// Prefix leaves.
    #[must_use]
    pub fn prefix(page_bytes: usize) -> IndexCandidate {
        IndexCandidate { format: LeafFormat::Prefix, page_bytes, pctfree: 0 }
    }

    /// The format's name.
    #[must_use]
    pub fn format(&self) -> &'static str {
        match self.format {
            LeafFormat::Plain => "plain",
            LeafFormat::Fold => "fold",
            LeafFormat::Prefix => "prefix",
        }
    }

    /// Are leaves folded to 4 KB on disk?
    #[must_use]
    pub fn folds(&self) -> bool {
        self.format == LeafFormat::Fold
    }

    /// Bytes of a leaf before its entries or shared bytes.
    #[must_use]
    pub fn leaf_header_bytes(&self) -> usize {
        if self.format == LeafFormat::Prefix { PREFIX_HEADER_BYTES } else { LEAF_HEADER_BYTES }
    }

    /// Page size on disk, and of non-leaf pages.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        if self.folds() { FOLDED_PAGE_BYTES } else { self.page_bytes }
    }

    /// The longest key.
    #[must_use]
    pub fn key_bytes_max(&self) -> usize {
        key_bytes_max(self.disk_bytes())
    }

    /// How its leaves are laid out.
    #[must_use]
    pub fn leaf_layout(&self, keys: &IndexKeys) -> LeafLayout {
        let kind = self.leaf_kind(keys);
        match self.format {
            LeafFormat::Prefix => LeafLayout::Prefix { fixed_key_bytes: kind.fixed_key_bytes },
            LeafFormat::Plain | LeafFormat::Fold => LeafLayout::Plain(kind),
        }
    }

    /// The kind of leaves that are not prefix leaves.
    pub(super) fn leaf_kind(&self, keys: &IndexKeys) -> LeafKind {
        LeafKind {
            single: keys.unique,
            fold: self.folds(),
            fixed_key_bytes: keys.fixed_key_bytes.map_or(0, |length| length as u16),
            slot_bits: if self.folds() { slot_bits_for(keys.slot_max) } else { 12 },
        }
    }
}

/// Every format and page size worth a look: plain and prefix at the usual page sizes, and each folded one.
#[must_use]
pub fn index_candidates(pctfree: u8) -> Vec<IndexCandidate> {
    const PAGE_SIZES: [usize; 5] = [2048, 4096, 8192, 16384, 32768];
    let folded = [8192, 16384, 32768].map(IndexCandidate::folded);
    let all = PAGE_SIZES.map(IndexCandidate::plain).into_iter().chain(folded).chain(PAGE_SIZES.map(IndexCandidate::prefix));
    all.map(|c| IndexCandidate { pctfree, ..c }).collect()
}

/// Every format with this page size.
#[must_use]
pub fn index_candidates_of(page_bytes: usize, pctfree: u8) -> Vec<IndexCandidate> {
    let folds = [8192, 16384, 32768].contains(&page_bytes).then(|| IndexCandidate::folded(page_bytes));
    let all = [IndexCandidate::plain(page_bytes), IndexCandidate::prefix(page_bytes)].into_iter().chain(folds);
    all.map(|c| IndexCandidate { pctfree, ..c }).collect()
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

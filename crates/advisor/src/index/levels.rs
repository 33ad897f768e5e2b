//! Which page size saves a level of an index.
//!
//! A level less is a page less for each look-up, and all pages of the level. Larger pages cost memory: a leaf that is asked for by one key brings all others of it. So of the page sizes that save
//! a level the smallest is what to look at.

use super::candidate::{IndexCandidate, LeafFormat};
use super::estimate::IndexEstimate;
use pagefold_format::page::{PAGE_SIZE_MAX, PAGE_SIZE_STEP};

/// Of one format the smallest page size with fewer levels than what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSaved {
    /// Format and page size.
    pub candidate: IndexCandidate,
    /// Its levels.
    pub levels: usize,
    /// Levels of what it is compared with.
    pub levels_before: usize,
    /// Bytes of all its pages on disk, over those of what it is compared with.
    pub more_bytes: i64,
    /// Bytes that a look-up brings into memory where the leaf is not there, over what it was: the sizes of leaves.
    pub more_leaf_bytes: i64,
}

/// For each format of the estimates the smallest page size that has fewer levels than `before`.
#[must_use]
pub fn levels_saved(estimates: &[IndexEstimate], before: &IndexEstimate) -> Vec<LevelSaved> {
    let signed = |more: u64, than: u64| more as i64 - than as i64;
    let saved = |e: &&IndexEstimate| e.key_too_long.is_none() && !e.levels.is_empty() && e.levels.len() < before.levels.len();
    let of = |format: LeafFormat| {
        let smallest = estimates.iter().filter(|e| e.candidate.format == format).filter(saved).min_by_key(|e| e.candidate.page_bytes)?;
        Some(LevelSaved {
            candidate: smallest.candidate,
            levels: smallest.levels.len(),
            levels_before: before.levels.len(),
            more_bytes: signed(smallest.size_bytes(), before.size_bytes()),
            more_leaf_bytes: signed(smallest.candidate.page_bytes as u64, before.candidate.page_bytes as u64),
        })
    };
    [LeafFormat::Plain, LeafFormat::Fold, LeafFormat::Prefix].into_iter().filter_map(of).collect()
}

/// Page sizes between those of the estimates that may be smaller ones to save a level: all between the smallest estimated one that does and the next smaller one that does not. Folded leaves have
/// no sizes in between.
#[must_use]
pub fn sizes_between(estimates: &[IndexEstimate], before: &IndexEstimate) -> Vec<IndexCandidate> {
    let mut between = Vec::new();
    for saved in levels_saved(estimates, before).iter().filter(|saved| !saved.candidate.folds()) {
        let of_format = estimates.iter().map(|e| e.candidate).filter(|c| c.format == saved.candidate.format);
        let below = of_format.map(|c| c.page_bytes).filter(|bytes| *bytes < saved.candidate.page_bytes).max().unwrap_or(0);
        let sizes = (below + PAGE_SIZE_STEP..saved.candidate.page_bytes.min(PAGE_SIZE_MAX)).step_by(PAGE_SIZE_STEP);
        between.extend(sizes.map(|page_bytes| IndexCandidate { page_bytes, ..saved.candidate }));
    }
    between
}

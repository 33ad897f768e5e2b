//! A counting filter over pages: "no row of this page has a version" for the price of one load.
//!
//! Invariant: a counter is at least the number of pages with versions that fall on it. It is raised before the first version of a page is
//! entered and lowered after the last one is gone. Relaxed order is enough: whoever needs the answer holds the page's latch, and the
//! raise happened under the exclusive one.

use super::versions::page_of;
use crate::hash;
use pagefold_types::Rid;
use std::sync::atomic::{AtomicU32, Ordering};

const BITS: u32 = 16;

/// 256 KB of counters; with n pages entered, about n in 65,536 others are taken for entered.
#[derive(Debug)]
pub(crate) struct PageFilter(Box<[AtomicU32]>);

impl PageFilter {
    pub(crate) fn new() -> PageFilter {
        PageFilter((0..1 << BITS).map(|_| AtomicU32::new(0)).collect())
    }

    /// Whether a page with this [hash](hash::of_pair) may be entered.
    #[inline]
    pub(crate) fn may_have(&self, page_hash: u64) -> bool {
        self.counter(page_hash).load(Ordering::Relaxed) != 0
    }

    pub(crate) fn enter(&self, page_hash: u64) {
        self.counter(page_hash).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self, page_hash: u64) {
        let before = self.counter(page_hash).fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0);
    }

    #[inline]
    fn counter(&self, page_hash: u64) -> &AtomicU32 {
        &self.0[(page_hash >> (64 - BITS)) as usize]
    }
}

impl PageFilter {
    /// The filter's key of a page: its object, and the part of its rows' RIDs that they share.
    #[inline]
    pub(crate) fn hash(object: u32, page: u64) -> u64 {
        hash::of_pair(object, page)
    }

    /// The filter's key of the page of a row.
    #[inline]
    pub(crate) fn hash_of_row(object: u32, rid: Rid) -> u64 {
        PageFilter::hash(object, page_of(rid))
    }
}

//! Where given keys lie in indexes that are not built: on which leaf, and on which page of each level above.
//!
//! The builder says at which separator each page begins; a key is on the last page that begins at or before it, which is the page a descent for the key comes to.
//!
//! A sample of keys tells all that happens to a page only where it has all keys of the page: of pages that do not lie within one of the sampled spans of keys, nothing is said.
//!
//! Invariant: keys and spans ascend; each is looked at once for each level, so the time is that of the entries and the keys together.

use super::builds::Builds;
use super::candidate::{IndexCandidate, IndexKeys};
use super::estimate::IndexEstimate;
use crate::Result;
use pagefold_format::FormatError;
use pagefold_format::index::build::PageSink;
use pagefold_format::key_trace::KeySpan;
use pagefold_types::Rid;
use std::sync::Arc;

/// Does the span have all keys from `low` to `high`?
fn has_page(span: &KeySpan, low: &[u8], high: Option<&[u8]>) -> bool {
    let ends_within = match (&span.high, high) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(end), Some(high)) => high <= end.as_slice(),
    };
    span.low.as_slice() <= low && ends_within
}

/// The page of a key that no span has all keys of.
pub const NOT_SAMPLED: u32 = u32::MAX;

/// One level of an index, and where keys lie in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelPlaces {
    /// Pages.
    pub pages: u64,
    /// Pages within a span.
    pub pages_sampled: u64,
    /// By key, in their order: the number of its page in the level, from the left, or [`NOT_SAMPLED`].
    pub page_of: Vec<u32>,
}

#[derive(Debug, Default)]
struct Level {
    places: LevelPlaces,
    /// Where the page begins that is being filled.
    low: Vec<u8>,
    /// The first span that does not end before it.
    span: usize,
}

struct LocatingSink {
    keys: Arc<[Vec<u8>]>,
    spans: Arc<[KeySpan]>,
    pages: u32,
    levels: Vec<Level>,
}

impl LocatingSink {
    /// The page being filled ends at a separator, or with the level.
    fn end_page(&mut self, level: usize, high: Option<&[u8]>) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Level::default);
        }
        let level = &mut self.levels[level];
        while self.spans.get(level.span).is_some_and(|span| span.ends_before(&level.low)) {
            level.span += 1;
        }
        let sampled = self.spans.get(level.span).is_some_and(|span| has_page(span, &level.low, high));
        let places = &mut level.places;
        let page = if sampled { u32::try_from(places.pages).unwrap_or(NOT_SAMPLED) } else { NOT_SAMPLED };
        while let Some(key) = self.keys.get(places.page_of.len())
            && high.is_none_or(|high| key.as_slice() < high)
        {
            places.page_of.push(page);
        }
        places.pages += 1;
        places.pages_sampled += u64::from(sampled);
        level.low.clear();
        level.low.extend_from_slice(high.unwrap_or_default());
    }
}

impl PageSink for LocatingSink {
    type Error = FormatError;

    fn allocate(&mut self, _leaf: bool) -> std::result::Result<u32, FormatError> {
        self.pages = self.pages.checked_add(1).ok_or_else(|| FormatError::new("more pages than a data set can have"))?;
        Ok(self.pages)
    }

    fn wants_images(&self) -> bool {
        false
    }

    fn begins(&mut self, level: usize, separator: &[u8]) {
        self.end_page(level, Some(separator));
    }

    fn take(&mut self, _page_number: u32, _leaf: bool, _image: &[u8]) -> std::result::Result<(), FormatError> {
        Ok(())
    }
}

/// Locates keys in an index, from all its entries in order.
pub struct KeyLocator(Builds<LocatingSink>);

impl KeyLocator {
    /// For these candidates. `wanted` are the keys to locate, ascending; `spans` are where all keys that matter are known, ascending and apart. Every RID has a slot of at most `keys.slot_max`.
    #[must_use]
    pub fn new(keys: IndexKeys, candidates: &[IndexCandidate], wanted: Vec<Vec<u8>>, spans: Vec<KeySpan>) -> KeyLocator {
        let (wanted, spans): (Arc<[Vec<u8>]>, Arc<[KeySpan]>) = (wanted.into(), spans.into());
        let sink = || LocatingSink { keys: Arc::clone(&wanted), spans: Arc::clone(&spans), pages: 0, levels: Vec::new() };
        KeyLocator(Builds::new(keys, candidates, sink))
    }

    /// Adds an entry, in ascending order of (key, RID).
    ///
    /// # Errors
    /// When the order is wrong.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        self.0.push(key, rid)
    }

    /// By candidate what it takes, and where the keys lie on each level, leaves first; none where a key is too long.
    ///
    /// # Errors
    /// When there are more pages than a data set can have.
    pub fn finish(self) -> Result<Vec<(IndexEstimate, Vec<LevelPlaces>)>> {
        let places = |(estimate, sink): (IndexEstimate, Option<LocatingSink>)| {
            let mut levels = Vec::new();
            if let Some(mut sink) = sink {
                (0..estimate.levels.len()).for_each(|level| sink.end_page(level, None));
                levels = sink.levels.into_iter().map(|level| level.places).collect();
            }
            (estimate, levels)
        };
        Ok(self.0.finish()?.into_iter().map(places).collect())
    }
}

//! What to estimate.

use super::costs::Costs;
use pagefold_advisor::{IndexCandidate, index_candidates, index_candidates_of};
use pagefold_engine::table_space::Method;
use pagefold_io::Storage;
use pagefold_types::Direction;
use std::path::PathBuf;
use std::sync::Arc;

/// An index that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What the report calls it.
    pub name: String,
    /// Columns by name, and order.
    pub columns: Vec<(String, Direction)>,
    /// No two rows with the same key.
    pub unique: bool,
}

/// Where keys go that memory does not hold.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// The storage.
    pub storage: Arc<dyn Storage>,
    /// A directory that exists.
    pub directory: PathBuf,
}

/// Options of ESTIMATE.
#[derive(Clone, Debug)]
pub struct EstimateOptions {
    /// Page sizes to compare. The one that is used (of a table that exists) or `page_bytes` comes first in the report, in any case.
    pub page_sizes: Vec<usize>,
    /// For files: page size of the table to be.
    pub page_bytes: usize,
    /// For files: compression of the table to be; RIDs in proposed indexes are those of this method and page size.
    pub method: Method,
    /// For files: percent of each page left free.
    pub pctfree: u8,
    /// For files: the most rows on a page.
    pub maxrows: Option<u16>,
    /// For files: columns of the primary key by name. They become NOT NULL.
    pub primary_key: Vec<String>,
    /// For files: is the index of the primary key estimated, too?
    pub primary_key_index: bool,
    /// Indexes that do not exist yet.
    pub proposals: Vec<Proposal>,
    /// Percent of each index leaf left free, in proposed indexes.
    pub index_pctfree: u8,
    /// Only this page size, for all indexes.
    pub index_page_bytes: Option<usize>,
    /// For tables of a database: the page size that they are to have; by default the one they have.
    pub page_bytes_anew: Option<usize>,
    /// For tables and indexes of a database: the percent of each page that is to be left free; by default as it is.
    pub pctfree_anew: Option<u8>,
    /// What methods and formats cost.
    pub costs: Costs,
    /// Read only so many pages, or as many rows of a file as fill them; of fewer than [`SAMPLE_BYTES_MIN`] as many as that is.
    pub sample_pages: Option<u64>,
    /// Which sample.
    pub seed: u64,
    /// Memory for sorting keys, in bytes, of each proposed index.
    pub sort_bytes: usize,
}

/// A smaller sample is cheaper by nothing that anybody would notice, and says little: a dictionary trained on it knows all of it by heart, and what its few pages differ by is no measure of
/// what others do.
pub const SAMPLE_BYTES_MIN: u64 = 512 << 10;

impl Default for EstimateOptions {
    fn default() -> EstimateOptions {
        EstimateOptions {
            page_sizes: vec![2048, 4096, 8192, 16384, 32768],
            page_bytes: 8192,
            method: Method::Page,
            pctfree: 0,
            maxrows: None,
            primary_key: Vec::new(),
            primary_key_index: true,
            proposals: Vec::new(),
            index_pctfree: 0,
            index_page_bytes: None,
            page_bytes_anew: None,
            pctfree_anew: None,
            costs: Costs::Measured,
            sample_pages: None,
            seed: 1,
            sort_bytes: 64 << 20,
        }
    }
}

impl EstimateOptions {
    /// Pages to read, of this size each, where a sample is wanted and there are enough pages (`total`) that it is cheaper than all of them.
    pub(crate) fn sample_of(&self, total: u64, page_bytes: usize) -> Option<u64> {
        let pages = self.sample_pages?.max(SAMPLE_BYTES_MIN.div_ceil(page_bytes as u64));
        (pages.saturating_mul(2) < total).then_some(pages)
    }

    /// The formats and page sizes of an index.
    pub(super) fn index_candidates(&self, pctfree: u8) -> Vec<IndexCandidate> {
        self.index_page_bytes.map_or_else(|| index_candidates(pctfree), |page_bytes| index_candidates_of(page_bytes, pctfree))
    }

    /// All page sizes, `first` first.
    pub(super) fn page_sizes_with(&self, first: usize) -> Vec<usize> {
        let others = self.page_sizes.iter().copied().filter(|size| *size != first && pagefold_format::page::is_page_size(*size));
        std::iter::once(first).chain(others).collect()
    }
}

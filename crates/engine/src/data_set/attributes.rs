//! What a data set is, and what is known of it.

use pagefold_format::data_set_header::{DictionaryRoot, ObjectKind};

/// The sliding scale ends here.
const SLIDING_EXTENT_MAX: u64 = 64 << 20;

/// How a data set grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Bytes of the first extent.
    pub first_bytes: u64,
    /// Bytes of each further one; 0 for the sliding scale, on which the k-th extent is k times the first, at most 64 MB.
    pub second_bytes: u64,
}

impl Default for Extents {
    fn default() -> Extents {
        Extents { first_bytes: 64 * 1024, second_bytes: 0 }
    }
}

impl Extents {
    /// Bytes of the extent that follows `taken` others.
    pub(super) fn next(&self, taken: u64) -> u64 {
        if taken == 0 {
            self.first_bytes
        } else if self.second_bytes > 0 {
            self.second_bytes
        } else {
            (self.first_bytes * (taken + 1)).min(SLIDING_EXTENT_MAX.max(self.first_bytes))
        }
    }
}

/// What is fixed when a data set is created.
#[derive(Clone, Debug)]
pub struct DataSetAttributes {
    /// Its file id.
    pub file_id: u32,
    /// Table or index it belongs to.
    pub object_id: u32,
    /// What that is.
    pub kind: ObjectKind,
    /// Partition number.
    pub partition: u16,
    /// Page size on disk.
    pub page_bytes: usize,
    /// Size of leaf pages in memory; larger than `page_bytes` in folded indexes only.
    pub leaf_bytes: usize,
    /// How the file grows.
    pub extents: Extents,
    /// What errors call it: `table "lineitem"`.
    pub object: String,
}

/// A data set of an object, as a definition names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSetEntry {
    /// Its file id.
    pub file_id: u32,
    /// Partition of the object.
    pub partition: u16,
    /// Write counter of its header page; `None` while it has no file.
    pub header_writes: Option<u32>,
}

/// The counts and roots kept in the header page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataSetFacts {
    /// Pages with rows, or leaf pages.
    pub data_pages: u32,
    /// Rows, or RIDs.
    pub rows: u64,
    /// Root page of an index; 0 when empty.
    pub root_page: u32,
    /// Levels of an index; 0 when empty.
    pub levels: u16,
    /// Distinct keys of an index.
    pub keys: u64,
    /// Dictionaries.
    pub dictionaries: Vec<DictionaryRoot>,
}

/// How often a header page must have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderWrites {
    /// Just so often: nothing was written since.
    Exactly(u32),
    /// So often or more: a crash may have come later.
    AtLeast(u32),
}

//! Options of the utilities, with their defaults.

use pagefold_engine::Extents;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_interchange::OpenSource;
use std::num::NonZeroU64;

/// What LOAD does with a table that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadMode {
    /// Refuses.
    #[default]
    Create,
    /// Puts the new rows in the place of the old ones; indexes are built again.
    Replace,
    /// Adds the new rows in transactions, under the table's own dictionary.
    Append,
}

/// Options of LOAD.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// What to do with a table that exists.
    pub mode: LoadMode,
    /// Compression. With `Append` the table's own.
    pub method: Method,
    /// Page size of the table.
    pub page_bytes: usize,
    /// Names of the columns of the primary key; a unique index `<table>_pk` is built on them.
    pub primary_key: Vec<String>,
    /// Format of the primary key's index.
    pub key_format: IndexFormat,
    /// Page size of the primary key's index.
    pub key_page_bytes: usize,
    /// Percent of each page left free.
    pub pctfree: u8,
    /// The most rows on a page.
    pub maxrows: Option<u16>,
    /// How data sets grow.
    pub extents: Extents,
    /// Bytes of a partition.
    pub partition_bytes: Option<u64>,
    /// With `Append`: rows in a transaction; all in one when `None`.
    pub rows_per_transaction: Option<NonZeroU64>,
    /// With `Replace`: keep the dictionary instead of training another.
    pub keep_dictionary: bool,
    /// How to read the files.
    pub source: OpenSource,
    /// Memory for sorting keys, in bytes; beyond it sorted runs go to temporary files in the database directory.
    pub sort_bytes: usize,
    /// Threads that compress rows, beside the one that reads and the one that stores. 0: as many as there are processors, at most four. The table is the
    /// same with any number; each keeps up to two batches of rows (8,192 each from Parquet) in memory.
    pub encode_threads: usize,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions {
            mode: LoadMode::Create,
            method: Method::Fixed,
            page_bytes: 8192,
            primary_key: Vec::new(),
            key_format: IndexFormat::Plain,
            key_page_bytes: 8192,
            pctfree: 0,
            maxrows: None,
            extents: Extents::default(),
            partition_bytes: None,
            rows_per_transaction: None,
            keep_dictionary: false,
            source: OpenSource::default(),
            sort_bytes: 64 << 20,
            encode_threads: 0,
        }
    }
}

/// Options of CREATE INDEX.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// No two rows with the same key.
    pub unique: bool,
    /// How leaves are stored.
    pub format: IndexFormat,
    /// Page size: of leaves in memory.
    pub page_bytes: usize,
    /// Percent of each leaf left free.
    pub pctfree: u8,
    /// Memory for sorting keys, in bytes.
    pub sort_bytes: usize,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        IndexOptions { unique: false, format: IndexFormat::Plain, page_bytes: 8192, pctfree: 0, sort_bytes: 64 << 20 }
    }
}

/// Options of REORG. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReorgOptions {
    /// Compression of a table.
    pub method: Option<Method>,
    /// Format of an index.
    pub format: Option<IndexFormat>,
    /// Page size.
    pub page_bytes: Option<usize>,
    /// Percent of each page left free.
    pub pctfree: Option<u8>,
    /// Keep the dictionary instead of training another.
    pub keep_dictionary: bool,
}

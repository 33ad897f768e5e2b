//! Options of the utilities, with their defaults.

use crate::{Costs, Division, Incremental};
use pagefold_engine::Extents;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_interchange::OpenSource;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// A method or format: a given one, or the one that an estimate and the costs on this machine speak for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting<T> {
    /// `auto`
    Auto,
    /// This one.
    Given(T),
}

impl<T> Setting<T> {
    /// The one that is given.
    pub fn given(self) -> Option<T> {
        if let Setting::Given(given) = self { Some(given) } else { None }
    }
}

impl<T> From<T> for Setting<T> {
    fn from(given: T) -> Setting<T> {
        Setting::Given(given)
    }
}

impl<T: FromStr> FromStr for Setting<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Setting<T>, T::Err> {
        if text == "auto" { Ok(Setting::Auto) } else { text.parse().map(Setting::Given) }
    }
}

/// Page size of an index where none is given and none is chosen.
pub(crate) const INDEX_PAGE_BYTES: usize = 8192;

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
    pub method: Setting<Method>,
    /// Page size of the table.
    pub page_bytes: usize,
    /// Names of the columns of the primary key; a unique index `<table>_pk` is built on them.
    pub primary_key: Vec<String>,
    /// Format of the primary key's index.
    pub key_format: Setting<IndexFormat>,
    /// Page size of the primary key's index. When `None` it is chosen with the format, or 8 KB.
    pub key_page_bytes: Option<usize>,
    /// Percent of each page left free.
    pub pctfree: u8,
    /// The most rows on a page.
    pub maxrows: Option<u16>,
    /// How data sets grow.
    pub extents: Extents,
    /// Bytes of a partition.
    pub partition_bytes: Option<u64>,
    /// By which columns the table is to be divided, and where.
    pub division: Option<Division>,
    /// With `Append`: rows in a transaction; all in one when `None`.
    pub rows_per_transaction: Option<NonZeroU64>,
    /// With `Replace`: keep the dictionary instead of training another.
    pub keep_dictionary: bool,
    /// With `Replace` of a partitioned table: each partition keeps its method.
    pub keep_methods: bool,
    /// What methods and formats cost, where they are chosen.
    pub costs: Costs,
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
            method: Setting::Given(Method::Page),
            page_bytes: 8192,
            primary_key: Vec::new(),
            key_format: Setting::Given(IndexFormat::Prefix),
            key_page_bytes: None,
            pctfree: 0,
            maxrows: None,
            extents: Extents::default(),
            partition_bytes: None,
            division: None,
            rows_per_transaction: None,
            keep_dictionary: false,
            keep_methods: false,
            costs: Costs::default(),
            source: OpenSource::default(),
            sort_bytes: 64 << 20,
            encode_threads: 0,
        }
    }
}

/// How long a build of an index waits for transactions that have changed rows of its table.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);

/// Options of CREATE INDEX.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// No two rows with the same key.
    pub unique: bool,
    /// How leaves are stored.
    pub format: Setting<IndexFormat>,
    /// Page size: of leaves in memory. When `None` it is chosen with the format, or 8 KB.
    pub page_bytes: Option<usize>,
    /// Percent of each leaf left free.
    pub pctfree: u8,
    /// Memory for sorting keys, in bytes.
    pub sort_bytes: usize,
    /// What formats cost, where one is chosen.
    pub costs: Costs,
    /// How long transactions are waited for that had changed rows of the table before statements kept the index.
    pub patience: Duration,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        let format = Setting::Given(IndexFormat::Plain);
        let patience = PATIENCE;
        IndexOptions { unique: false, format, page_bytes: None, pctfree: 0, sort_bytes: 64 << 20, costs: Costs::default(), patience }
    }
}

/// In which order REORG puts the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// That of its primary key.
    PrimaryKey,
    /// That of the entries of this index of it; where the table, or what it is a partition of, is partitioned: the index of the whole.
    Index(String),
}

/// What stands for the primary key where the name of an index could.
const PRIMARY_KEY: &str = "primary-key";

impl FromStr for RowOrder {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<RowOrder, Self::Err> {
        Ok(if text == PRIMARY_KEY { RowOrder::PrimaryKey } else { RowOrder::Index(text.into()) })
    }
}

/// Options of REORG. What is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct ReorgOptions {
    /// The order of the rows of a table. Rows that are changed while they are written may lie elsewhere.
    pub order: Option<RowOrder>,
    /// Memory for sorting rows, and for sorting the keys of each index, in bytes: 64 MB if nothing is said. Beyond it sorted runs go to temporary
    /// files in the database directory.
    pub sort_bytes: Option<usize>,
    /// Compression of a table.
    pub method: Option<Setting<Method>>,
    /// Format of an index.
    pub format: Option<Setting<IndexFormat>>,
    /// Page size. Where the format of an index is chosen, it is so too.
    pub page_bytes: Option<usize>,
    /// Percent of each page left free.
    pub pctfree: Option<u8>,
    /// Keep the dictionary instead of training another.
    pub keep_dictionary: bool,
    /// What methods and formats cost, where one is chosen.
    pub costs: Costs,
    /// How long transactions are waited for that have changed something in the table and do not end, before it, or its index, is replaced.
    /// Others go on meanwhile, but for moments. The lock timeout of the database, if nothing is said.
    pub patience: Option<Duration>,
    /// The rows of a table stay where they lie but for those on thin pages, which are emptied a part at a time. Transactions that keep a snapshot from before are waited for before each part then, 10 s
    /// if nothing is said.
    pub incremental: Option<Incremental>,
}

//! What a user chooses for an index.

use crate::data_set::Extents;
use crate::names::check_name;
use crate::{Error, Result};
use pagefold_format::catalog::Notes;
use pagefold_format::page::is_page_size;
use pagefold_types::{Direction, KeyLayout, Schema, key_bytes_max};
use std::fmt;
use std::str::FromStr;

/// Page size on disk of folded leaves, and of all non-leaf pages of a folded index.
pub const FOLDED_DISK_BYTES: usize = 4096;

/// How leaves are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexFormat {
    /// On disk as in memory.
    Plain,
    /// Expanded in memory, 4 KB on disk.
    Fold,
    /// Compressed alike in memory and on disk.
    Prefix,
}

impl IndexFormat {
    /// Every format.
    pub const ALL: [IndexFormat; 3] = [IndexFormat::Plain, IndexFormat::Fold, IndexFormat::Prefix];

    /// Its name in commands and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexFormat::Plain => "plain",
            IndexFormat::Fold => "fold",
            IndexFormat::Prefix => "prefix",
        }
    }
}

impl fmt::Display for IndexFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IndexFormat {
    type Err = Error;
    fn from_str(name: &str) -> Result<IndexFormat> {
        IndexFormat::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let known: Vec<&str> = IndexFormat::ALL.iter().map(|f| f.name()).collect();
            Error::Parameter(format!("unknown index format \"{name}\"; there are: {}", known.join(", ")))
        })
    }
}

/// What a user chooses for an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAttributes {
    /// Its name.
    pub name: String,
    /// Columns by number in the table, and order.
    pub columns: Vec<(usize, Direction)>,
    /// No two rows with the same key? Keys with a NULL never count as the same.
    pub unique: bool,
    /// How leaves are stored.
    pub format: IndexFormat,
    /// Size of leaf pages in memory: 8, 16 or 32 KB when folded, else any page size.
    pub page_bytes: usize,
    /// Percent of each leaf that a build leaves free.
    pub pctfree: u8,
    /// How its data set grows.
    pub extents: Extents,
    /// Buffer pool of the leaves (and of the non-leaf pages, unless the index is folded).
    pub pool: String,
    /// What is said of it that the engine does not act on. Of an index that is there, [`Index::notes`](super::Index::notes) are the present ones.
    pub notes: Notes,
}

impl IndexAttributes {
    /// Defaults: plain, 8 KB, nothing left free.
    #[must_use]
    pub fn new(name: impl Into<String>, columns: Vec<(usize, Direction)>, unique: bool) -> IndexAttributes {
        IndexAttributes {
            name: name.into(),
            columns,
            unique,
            format: IndexFormat::Plain,
            page_bytes: 8192,
            pctfree: 0,
            extents: Extents::default(),
            pool: index_pool(8192),
            notes: Notes::default(),
        }
    }

    /// Is it unique, with the columns of this primary key in their order?
    #[must_use]
    pub fn is_of_key(&self, primary_key: &[usize]) -> bool {
        self.unique && !primary_key.is_empty() && self.columns.iter().map(|(column, _)| column).eq(primary_key)
    }

    /// The same with another format and page size, and the pool that goes with it.
    #[must_use]
    pub fn with_format(mut self, format: IndexFormat, page_bytes: usize) -> IndexAttributes {
        self.format = format;
        self.page_bytes = page_bytes;
        self.pool = index_pool(page_bytes);
        self
    }

    /// What keeps an index of these attributes from getting the others without that it is built anew; `None`: nothing.
    #[must_use]
    pub fn needs_other_pages(&self, other: &IndexAttributes) -> Option<&'static str> {
        let parts = [
            (self.columns != other.columns, "which columns it has"),
            (self.unique != other.unique, "whether it is unique"),
            (self.format != other.format, "its format"),
            (self.page_bytes != other.page_bytes, "its page size"),
            (self.extents != other.extents, "how its data set grows"),
        ];
        parts.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }

    /// Page size on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        match self.format {
            IndexFormat::Plain | IndexFormat::Prefix => self.page_bytes,
            IndexFormat::Fold => FOLDED_DISK_BYTES,
        }
    }

    /// Its keys, limited to what its pages can hold.
    #[must_use]
    pub fn key_layout(&self, schema: &Schema) -> KeyLayout {
        KeyLayout::new(schema, &self.columns).with_limit(&self.name, key_bytes_max(self.disk_bytes()))
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        let refuse = |what: String| Err(Error::Parameter(format!("index \"{}\": {what}", self.name)));
        check_name("an index", &self.name)?;
        if !is_page_size(self.page_bytes) {
            return refuse(format!("page size {} is not between 2 KB and 32 KB in steps of 2 KB", self.page_bytes));
        }
        if self.format == IndexFormat::Fold && ![8192, 16384, 32768].contains(&self.page_bytes) {
            return refuse(format!("a folded index has pages of 8, 16 or 32 KB, not {} bytes", self.page_bytes));
        }
        if self.columns.is_empty() || self.columns.len() > 64 {
            return refuse(format!("{} columns; there can be 1 to 64", self.columns.len()));
        }
        for (i, (column, _)) in self.columns.iter().enumerate() {
            if *column >= schema.len() || self.columns[..i].iter().any(|(c, _)| c == column) {
                return refuse(format!("column number {column} does not exist or comes twice"));
            }
        }
        if self.pctfree > 99 {
            return refuse(format!("PCTFREE {} is above 99", self.pctfree));
        }
        if let Some(length) = self.key_layout(schema).fixed_len()
            && length > key_bytes_max(self.disk_bytes())
        {
            return refuse(format!(
                "keys take {length} bytes; with pages of {} bytes they may take {}",
                self.disk_bytes(),
                key_bytes_max(self.disk_bytes())
            ));
        }
        Ok(())
    }
}

/// The pool an index of this page size is assigned to unless another is named.
#[must_use]
pub(crate) fn index_pool(page_bytes: usize) -> String {
    format!("I{}K", page_bytes / 1024)
}

//! What a user chooses for a table.

use super::layouts::{KnownLayouts, Layouts};
use super::range_of::RangeOf;
use crate::data_set::Extents;
use crate::names::check_name;
use crate::{Error, Result};
use pagefold_codec::row::DictionaryType;
use pagefold_format::catalog::Notes;
use pagefold_format::data::PageFill;
use pagefold_format::data::forms::RecordDecoder;
use pagefold_format::page::is_page_size;
use pagefold_types::{SLOT_MAX, Schema, SchemaError};
use parking_lot::RwLock;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Compression of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Records as they are.
    None,
    /// Each value in as few bytes as it needs.
    Row,
    /// The rows of a page column by column, once it fills.
    Page,
    /// 12-bit codes of a 4,096-entry dictionary per partition.
    Fixed,
    /// Codes of up to 16 bits, short for what is frequent, of such a dictionary.
    Huffman,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 5] = [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman];

    /// Its name in commands and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Row => "row",
            Method::Page => "page",
            Method::Fixed => "fixed",
            Method::Huffman => "huffman",
        }
    }

    /// The type of its dictionary; `None` when it has none.
    #[must_use]
    pub fn dictionary_type(self) -> Option<DictionaryType> {
        match self {
            Method::None | Method::Row => None,
            Method::Page | Method::Fixed => Some(DictionaryType::Fixed),
            Method::Huffman => Some(DictionaryType::Huffman),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;
    fn from_str(name: &str) -> Result<Method> {
        Method::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Method::ALL.iter().map(|m| m.name()).collect();
            Error::Parameter(format!("unknown compression \"{name}\"; there are: {}", known.join(", ")))
        })
    }
}

/// What a user chooses for a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAttributes {
    /// Its name.
    pub name: String,
    /// Its columns; one that was dropped is hidden in its place, and new rows have NULL there.
    pub schema: Schema,
    /// The layouts that its rows have had. A new table has none but that of its columns.
    pub layouts: Layouts,
    /// Compression.
    pub method: Method,
    /// Page size: 2 to 32 KB in steps of 2 KB.
    pub page_bytes: usize,
    /// Percent of each page that LOAD and REORG leave free, 0 to 99.
    pub pctfree: u8,
    /// The most rows on a page, 1 to 4,096.
    pub maxrows: u16,
    /// How its data sets grow.
    pub extents: Extents,
    /// Bytes of a partition; the next row after that opens another.
    pub partition_bytes: u64,
    /// Buffer pool.
    pub pool: String,
    /// Columns of the primary key, by number; empty when there is none.
    pub primary_key: Vec<usize>,
    /// The schema of the source, serialised by whoever loaded it, so that an export has the same types. The engine does not look into it.
    pub source_schema: Vec<u8>,
    /// Which range partition it is, if it is one.
    pub range: Option<RangeOf>,
    /// What is said of it that the engine does not act on. Of a table that is there, [`Table::notes`](super::Table::notes) are the present ones.
    pub notes: Notes,
}

impl TableAttributes {
    /// Defaults for this schema: 8 KB pages, no compression.
    #[must_use]
    pub fn new(name: impl Into<String>, schema: Schema) -> TableAttributes {
        let page_bytes = 8192;
        TableAttributes {
            name: name.into(),
            schema,
            layouts: Layouts::default(),
            method: Method::None,
            page_bytes,
            pctfree: 0,
            maxrows: SLOT_MAX + 1,
            extents: Extents::default(),
            partition_bytes: 64 << 30,
            pool: table_pool(page_bytes),
            primary_key: Vec::new(),
            source_schema: Vec::new(),
            range: None,
            notes: Notes::default(),
        }
    }

    /// The same with another page size and the pool that goes with it.
    #[must_use]
    pub fn with_page_bytes(mut self, page_bytes: usize) -> TableAttributes {
        self.page_bytes = page_bytes;
        self.pool = table_pool(page_bytes);
        self
    }

    /// The places of the columns that are not dropped.
    #[must_use]
    pub fn visible_columns(&self) -> Vec<usize> {
        (0..self.schema.len()).filter(|column| !self.layouts.is_dropped(*column)).collect()
    }

    /// What brings stored rows of all layouts to records of these columns.
    ///
    /// # Errors
    /// When a layout is none.
    pub fn decoder(&self) -> std::result::Result<RecordDecoder, SchemaError> {
        let known = Arc::new(RwLock::new(self.layouts.clone()));
        KnownLayouts::decoder(&known, self.layouts.number(), &self.schema, self.page_bytes)
    }

    /// What keeps a table of these attributes from getting the others as it is: only a table that is written anew has them. `None`: nothing.
    #[must_use]
    pub fn needs_other_pages(&self, other: &TableAttributes) -> Option<&'static str> {
        let parts = [
            (self.method != other.method, "its compression"),
            (self.page_bytes != other.page_bytes, "its page size"),
            (self.extents != other.extents, "how its data sets grow"),
            // A table may get one.
            (!self.primary_key.is_empty() && self.primary_key != other.primary_key, "its primary key"),
        ];
        parts.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }

    /// How full LOAD and REORG make its pages.
    #[must_use]
    pub fn page_fill(&self) -> PageFill {
        PageFill { page_bytes: self.page_bytes, pctfree: self.pctfree, maxrows: self.maxrows }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::Parameter(format!("table \"{}\": {what}", self.name)));
        check_name("a table", &self.name)?;
        if !is_page_size(self.page_bytes) {
            return refuse(format!("page size {} is not between 2 KB and 32 KB in steps of 2 KB", self.page_bytes));
        }
        if self.pctfree > 99 {
            return refuse(format!("PCTFREE {} is above 99", self.pctfree));
        }
        if self.maxrows == 0 || self.maxrows > SLOT_MAX + 1 {
            return refuse(format!("MAXROWS {} is not between 1 and {}", self.maxrows, SLOT_MAX + 1));
        }
        if !self.notes.ranges().1.is_empty() || !self.notes.ranges().0.is_empty() {
            return refuse("of which range it is a partition is no note".into());
        }
        if let Some(Err(reason)) = self.range.as_ref().map(|range| range.check(&self.schema)) {
            return refuse(reason);
        }
        let first = self.extents.first_bytes;
        if first == 0 || first > 1 << 40 || self.extents.second_bytes > 1 << 40 {
            return refuse("an extent is not between 1 byte and 1 TB".into());
        }
        if self.partition_bytes < 16 * self.page_bytes as u64 {
            return refuse(format!("a partition of {} bytes is smaller than 16 pages", self.partition_bytes));
        }
        Ok(())
    }
}

/// The pool a table of this page size is assigned to unless another is named.
#[must_use]
fn table_pool(page_bytes: usize) -> String {
    format!("T{}K", page_bytes / 1024)
}

//! The catalog's contents as values.

use crate::data_set::DataSetEntry;
use crate::index::IndexAttributes;
use crate::table_space::TableAttributes;
use pagefold_format::catalog::{DefinedKind, Notes};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntry {
    /// Object id.
    pub object_id: u32,
    /// What its user chose.
    pub attributes: TableAttributes,
    /// Its data sets, by partition.
    pub data_sets: Vec<DataSetEntry>,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// Object id.
    pub object_id: u32,
    /// Object id of its table.
    pub table_id: u32,
    /// What its user chose.
    pub attributes: IndexAttributes,
    /// Its data sets, by partition.
    pub data_sets: Vec<DataSetEntry>,
    /// It was found damaged, and rows have been changed without it since: why it could not be used then. Its data set is never read again.
    pub damaged: Option<String>,
}

/// Something that has a name and no pages: a view, a sequence, a schema, or what a later version has made.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherEntry {
    /// Object id.
    pub object_id: u32,
    /// What it is.
    pub kind: DefinedKind,
    /// Its name.
    pub name: String,
    /// Its definition, as it was read.
    pub definition: Box<[u8]>,
    /// What it says.
    pub notes: Notes,
}

/// Everything there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogEntries {
    /// Tables.
    pub tables: Vec<TableEntry>,
    /// Indexes.
    pub indexes: Vec<IndexEntry>,
    /// What has no pages.
    pub others: Vec<OtherEntry>,
}

//! The catalog's contents as values.

use crate::index::IndexAttributes;
use crate::table_space::TableAttributes;

/// A data set of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataSetEntry {
    pub(crate) file_id: u32,
    pub(crate) partition: u16,
    /// Write counter of its header page; `None` while it has no file.
    pub(crate) header_writes: Option<u32>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableEntry {
    pub(crate) object_id: u32,
    pub(crate) attributes: TableAttributes,
    pub(crate) data_sets: Vec<DataSetEntry>,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexEntry {
    pub(crate) object_id: u32,
    pub(crate) table_id: u32,
    pub(crate) attributes: IndexAttributes,
    pub(crate) data_sets: Vec<DataSetEntry>,
}

/// Everything there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CatalogEntries {
    pub(crate) tables: Vec<TableEntry>,
    pub(crate) indexes: Vec<IndexEntry>,
}

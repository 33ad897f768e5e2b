//! The catalog: what there is in a database, in tables of its own.

mod entries;
mod relations;

pub(crate) use entries::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry};
pub(crate) use relations::{catalog_attributes, read_catalog, write_catalog};

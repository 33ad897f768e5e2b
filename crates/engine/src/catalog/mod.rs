//! The catalog: what there is in a database, in tables of its own.

mod entries;
mod relations;
#[cfg(test)]
mod tests;

pub use entries::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry};
pub use relations::{CatalogParts, catalog_attributes};
pub(crate) use relations::{read_catalog, write_catalog};

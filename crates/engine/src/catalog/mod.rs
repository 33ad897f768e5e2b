//! The catalog: what there is in a database, in tables of its own.

mod entries;
mod relations;
#[cfg(test)]
mod tests;

pub use entries::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry};
pub use relations::{CatalogParts, Defined, catalog_attributes, read_definition};
pub(crate) use relations::{definition_data_sets, index_definition, read_catalog, table_definition, write_catalog};

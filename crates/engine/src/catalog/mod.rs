//! The catalog: what there is in a database, in a table of its own.
//!
//! * `entries`: tables and indexes as values
//! * `definition`: an object as bytes, which the catalog and the log have alike
//! * `rows`: definitions as rows of the catalog's table space

mod definition;
mod entries;
mod rows;
#[cfg(test)]
mod tests;

pub use definition::{Defined, read_definition};
pub(crate) use definition::{
    definition_damage, definition_data_sets, definition_notes, definition_range, in_place_of, index_definition, other_definition,
    table_definition, with_data_sets,
};
pub use entries::{CatalogEntries, IndexEntry, OtherEntry, TableEntry};
pub use rows::{CatalogParts, catalog_attributes};
pub(crate) use rows::{read_catalog, write_catalog};

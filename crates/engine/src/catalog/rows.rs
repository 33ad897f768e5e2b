//! Definitions as rows of the catalog.
//!
//! The catalog is a table space with one BYTEA column. Each row is a part of a definition; most have one part.
//!
//! Invariant: what is read is checked as if a stranger had written it; a row that makes no sense is an error, not a panic.

use super::definition::{Defined, damaged, read_definition};
use super::entries::CatalogEntries;
use crate::table_space::{BulkLoader, DataPages, Table, TableAttributes};
use crate::{Error, Result};
use pagefold_format::catalog::{DEFINITION_BYTES_MAX, DefinedKind, DefinitionView, RowPart, definition_rows};
use pagefold_types::{Column, DataType, Schema, ValueRef};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// Page size of the catalog's own table space.
const CATALOG_PAGE_BYTES: usize = 4096;

/// The attributes of the catalog's own table space.
///
/// # Errors
/// Never in practice: the schema is a constant.
pub fn catalog_attributes() -> Result<TableAttributes> {
    let schema = Schema::new(vec![Column::new("row", DataType::Bytea, false)]).map_err(|e| damaged(&e))?;
    Ok(TableAttributes { pool: "CATALOG".into(), ..TableAttributes::new("catalog", schema).with_page_bytes(CATALOG_PAGE_BYTES) })
}

/// Writes definitions into an empty catalog table space.
pub(crate) fn write_catalog<'a>(space: &Table, definitions: impl Iterator<Item = Result<(u32, Cow<'a, [u8]>)>>) -> Result<()> {
    let mut loader = BulkLoader::new(space)?;
    let mut record = Vec::new();
    for definition in definitions {
        let (object_id, definition) = definition?;
        definition_rows(object_id, &definition, |row| {
            record.clear();
            space.layout().encode(&[ValueRef::Bytes(row)], &mut record).map_err(|e| damaged(&e))?;
            loader.push(&record, |_, _| Ok::<_, Error>(()))
        })?;
    }
    loader.finish(|_, _| Ok(()))
}

/// A definition of several rows.
#[derive(Default)]
struct Split {
    parts: u16,
    bytes: usize,
    found: BTreeMap<u16, Box<[u8]>>,
}

/// An object's number, and its definition as bytes.
pub(super) type NumberedDefinition = (u32, Box<[u8]>);

/// The rows of a catalog, put together to definitions: by whoever opens the database, and by `check`, which reads the pages itself.
#[derive(Default)]
pub struct CatalogParts {
    whole: Vec<NumberedDefinition>,
    split: BTreeMap<u32, Split>,
}

impl CatalogParts {
    /// Takes one row of the catalog's table space (the value of its only column).
    ///
    /// # Errors
    /// When it is not a row of a known kind; it is then left out.
    pub fn add(&mut self, row: &[u8]) -> Result<()> {
        let RowPart { object_id, part, parts, bytes } = RowPart::parse(row).map_err(|e| damaged(&e))?;
        if parts == 1 {
            self.whole.push((object_id, bytes.into()));
            return Ok(());
        }
        let split = self.split.entry(object_id).or_insert_with(|| Split { parts, ..Split::default() });
        split.bytes += bytes.len();
        if split.parts != parts || split.bytes > DEFINITION_BYTES_MAX || split.found.insert(part, bytes.into()).is_some() {
            return Err(damaged(&format!("part {part} of object number {object_id} does not go with the others")));
        }
        Ok(())
    }

    /// A checkpoint says otherwise of an object than the rows: this is its definition; `None`: it is gone.
    pub fn replace(&mut self, object_id: u32, definition: Option<&[u8]>) {
        self.whole.retain(|(other, _)| *other != object_id);
        self.split.remove(&object_id);
        self.whole.extend(definition.map(|definition| (object_id, definition.into())));
    }

    /// All definitions that can be put together, with the numbers of their objects, and what is wrong with the others.
    #[must_use]
    pub fn definitions(self) -> (Vec<NumberedDefinition>, Vec<Error>) {
        let (mut definitions, mut errors) = (self.whole, Vec::new());
        for (object_id, split) in self.split {
            if split.found.len() == usize::from(split.parts) {
                definitions.push((object_id, split.found.into_values().collect::<Vec<_>>().concat().into()));
            } else {
                errors.push(damaged(&format!("a part of object number {object_id} is missing")));
            }
        }
        (definitions, errors)
    }

    /// All entries that can be made of the rows, and what is wrong with the others.
    #[must_use]
    pub fn finish(self) -> (CatalogEntries, Vec<Error>) {
        let (mut definitions, mut errors) = self.definitions();
        let mut entries = CatalogEntries::default();
        // Tables first: an index names the columns of its table.
        let is_index = |bytes: &[u8]| DefinitionView::new(bytes).is_ok_and(|view| view.kind == DefinedKind::Index);
        definitions.sort_by_key(|(object_id, bytes)| (is_index(bytes), *object_id));
        let mut schemas = HashMap::new();
        for (object_id, bytes) in definitions {
            match read_definition(object_id, &bytes, |id| schemas.get(&id).cloned()) {
                Ok(Defined::Table(table)) => {
                    schemas.entry(object_id).or_insert_with(|| table.attributes.schema.clone());
                    entries.tables.push(table);
                }
                Ok(Defined::Index(index)) if index.data_sets.is_empty() => {
                    errors.push(damaged(&format!("index \"{}\" has no data set", index.attributes.name)));
                }
                Ok(Defined::Index(index)) => entries.indexes.push(index),
                Ok(Defined::Other(other)) => entries.others.push(other),
                Err(error) => errors.push(error),
            }
        }
        (entries, errors)
    }
}

/// Reads all definitions, with the numbers of their objects.
pub(crate) fn read_catalog(space: &Table) -> Result<Vec<NumberedDefinition>> {
    let mut parts = CatalogParts::default();
    space.visit_newest(DataPages::of(space), |_, record| {
        let row = space.layout().bytes_at(record, 0).map_err(|e| damaged(&e))?;
        parts.add(row.ok_or_else(|| damaged(&"a row is NULL"))?)?;
        Ok::<_, Error>(())
    })?;
    let (definitions, errors) = parts.definitions();
    errors.into_iter().next().map_or(Ok(definitions), Err)
}

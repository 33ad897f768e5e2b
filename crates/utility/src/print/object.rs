//! What a name stands for: a data set and what the catalog knows of it.
//!
//! A damaged catalog hides names, but not files: these are found by their file id, page size and all from their own header page.

use super::DatabaseFiles;
use crate::check::{
    Context, DataSetFile, Expected, PageReader, catalog_entry, files_in_order, index_expected, is_in_order, known_log, read_control_slots,
    read_dictionaries, read_entries, read_header, table_expected,
};
use crate::{Error, Result, Silent};
use pagefold_codec::row::RowDictionary;
use pagefold_engine::catalog::{CatalogEntries, TableEntry};
use pagefold_engine::data_set_path;
use pagefold_format::control::ControlSlot;
use pagefold_format::data_set_header::ObjectKind;
use pagefold_format::page::PageIdentity;
use pagefold_io::{OpenOptions, Storage};
use pagefold_types::{KeyLayout, RowLayout};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// An object to print from.
pub(super) struct Object {
    /// What it is called.
    pub(super) name: String,
    pub(super) expected: Expected,
    /// Not known when no control slot is whole: then no checksum can be verified.
    pub(super) database_id: Option<u128>,
    pub(super) reader: PageReader,
    pub(super) table: Option<TableEntry>,
    pub(super) row_layout: Option<RowLayout>,
    pub(super) key_layout: Option<KeyLayout>,
    /// Those of its partition that can be read.
    pub(super) dictionaries: BTreeMap<u16, Arc<RowDictionary>>,
}

impl Object {
    /// What the checksum of a page is bound to, if that is known.
    pub(super) fn identity(&self, page_number: u32) -> Option<PageIdentity> {
        self.database_id.map(|database_id| PageIdentity { database_id, file_id: self.expected.file_id, page_number })
    }
}

/// The tables and indexes that there are. Where the database was not closed in order, that is what there is when the log is applied, to files of a reader's own.
fn entries(database: &DatabaseFiles<'_>, slot: &ControlSlot, name: &str) -> Result<CatalogEntries> {
    let DatabaseFiles { storage, clock, directory, settings } = *database;
    let mut context = Context::new(&Silent);
    let files = match is_in_order(storage.as_ref(), directory, slot) {
        Ok(false) => files_in_order(storage, clock, directory, name, settings)?.0,
        _ => Arc::clone(storage),
    };
    let Some(slot) = read_control_slots(files.as_ref(), directory, &mut context)?.current else { return Ok(CatalogEntries::default()) };
    let log = known_log(files.as_ref(), directory, &slot);
    Ok(read_entries(files.as_ref(), directory, &slot, &log, &mut context)?.0)
}

pub(super) fn find(database: &DatabaseFiles<'_>, name: &str, partition: u16) -> Result<Object> {
    let (storage, directory) = (database.storage.as_ref(), database.directory);
    let mut context = Context::new(&Silent);
    let slot = read_control_slots(storage, directory, &mut context)?.current;
    let mut tables = Vec::new();
    let mut indexes = Vec::new();
    if let Some(slot) = &slot {
        if name == "catalog" {
            tables.push(catalog_entry(slot)?);
        } else {
            CatalogEntries { tables, indexes, .. } = entries(database, slot, name)?;
        }
    }
    let by_id = file_id(name);
    let has_file = |data_sets: &[pagefold_engine::DataSetEntry]| by_id.is_some_and(|id| data_sets.iter().any(|d| d.file_id == id));
    let table = tables.iter().find(|t| t.attributes.name == name).or_else(|| tables.iter().find(|t| has_file(&t.data_sets)));
    let index = match table {
        Some(_) => None,
        None => indexes.iter().find(|i| i.attributes.name == name).or_else(|| indexes.iter().find(|i| has_file(&i.data_sets))),
    };
    let partition = match (table, by_id) {
        (Some(t), Some(id)) if t.attributes.name != name => t.data_sets.iter().position(|d| d.file_id == id).unwrap_or(0),
        _ => usize::from(partition),
    };
    let expected = match (table, index, by_id) {
        (Some(table), _, _) => table_expected(table, partition).ok_or_else(|| {
            Error::Usage(format!("table \"{name}\" has no file for partition {partition}; it has {} partitions", table.data_sets.len()))
        })?,
        (_, Some(index), _) => index_expected(index).ok_or_else(|| Error::Usage(format!("index \"{name}\" has no file yet")))?,
        (_, _, Some(id)) if storage.exists(&data_set_path(directory, id))? => from_file(storage, directory, id)?,
        _ => {
            let mut names: Vec<&str> = tables.iter().map(|t| t.attributes.name.as_str()).collect();
            names.extend(indexes.iter().map(|i| i.attributes.name.as_str()));
            names.extend(["catalog", "control"]);
            return Err(Error::Usage(format!(
                "nothing is called \"{name}\"; there are: {}, and file ids of 8 hexadecimal digits",
                names.join(", ")
            )));
        }
    };
    let dictionaries = slot
        .and_then(|slot| DataSetFile::open(storage, directory, slot.database_id, &expected, &mut context))
        .map(|mut set| read_dictionaries(&mut set, &mut context))
        .unwrap_or_default();
    let path = data_set_path(directory, expected.file_id);
    let file = storage.open(&path, &OpenOptions::read_only())?;
    let length = file.len()?;
    let of_index = index.and_then(|i| tables.iter().find(|t| t.object_id == i.table_id).map(|t| (i, t)));
    Ok(Object {
        name: expected.object.clone(),
        database_id: slot.map(|slot| slot.database_id),
        reader: PageReader::new(file, expected.page_bytes, length),
        row_layout: table.and_then(|t| RowLayout::new(&t.attributes.schema).ok()),
        key_layout: of_index.map(|(i, t)| i.attributes.key_layout(&t.attributes.schema)),
        table: table.cloned(),
        dictionaries,
        expected,
    })
}

fn file_id(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".pfd").unwrap_or(name);
    (digits.len() == 8).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// What the file's own header page says; of a damaged one a guess.
fn from_file(storage: &dyn Storage, directory: &Path, file_id: u32) -> Result<Expected> {
    let header = read_header(storage, directory, file_id)?;
    let object = format!("file {file_id:08x}");
    Ok(match header {
        Some((h, _)) => Expected {
            object,
            file_id,
            object_id: h.object_id,
            kind: h.kind,
            partition: h.partition,
            page_bytes: h.page_bytes as usize,
            leaf_bytes: h.leaf_bytes as usize,
            header_writes: 0,
        },
        None => Expected {
            object: format!("{object} (damaged header; pages of 4 KB assumed)"),
            file_id,
            object_id: 0,
            kind: ObjectKind::Table,
            partition: 0,
            page_bytes: 4096,
            leaf_bytes: 4096,
            header_writes: 0,
        },
    })
}

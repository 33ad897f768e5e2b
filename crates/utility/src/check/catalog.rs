//! The catalog, read from its pages.

use super::findings::Context;
use super::headers::take_from_files;
use super::log::{KnownLog, apply_checkpoint};
use super::partitions::check_partitions;
use super::table::{TableFiles, Visit, table_object};
use crate::Result;
use pagefold_engine::catalog::{CatalogEntries, CatalogParts, TableEntry, catalog_attributes};
use pagefold_engine::{DataSetEntry, Error};
use pagefold_format::control::ControlSlot;
use pagefold_io::Storage;
use std::collections::BTreeSet;
use std::path::Path;

/// The catalog as a table.
pub(crate) fn catalog_entry(slot: &ControlSlot) -> Result<TableEntry> {
    let data_set = DataSetEntry { file_id: slot.catalog_file_id, partition: 0, header_writes: Some(slot.catalog_writes) };
    Ok(TableEntry { object_id: 0, attributes: catalog_attributes()?, data_sets: vec![data_set] })
}

/// Checks the catalog's pages and reads its entries, as the checkpoint has them, or else, where the log cannot be read, as the files have them. True: all of it could be read.
///
/// # Errors
/// When the user wants to stop, or the directory cannot be listed.
pub(crate) fn read_entries(
    storage: &dyn Storage,
    directory: &Path,
    slot: &ControlSlot,
    log: &KnownLog,
    context: &mut Context<'_>,
) -> Result<(CatalogEntries, bool)> {
    let entry = catalog_entry(slot)?;
    let object = table_object(&entry);
    let errors_before = context.error_count();
    let mut parts = CatalogParts::default();
    if let Some(mut table) = TableFiles::open(storage, directory, slot.database_id, &entry, context) {
        let layout = table.layout.clone();
        table.check(context, &mut |context, what| {
            let Visit::Row { page, record, .. } = what else { return };
            let added = match layout.bytes_at(record, 0) {
                Ok(Some(row)) => parts.add(row).map_err(|e| reason(&e)),
                Ok(None) => Err("a row is NULL".into()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = added {
                context.error(&object, page, reason);
            }
        })?;
    }
    let pages_are_whole = context.error_count() == errors_before;
    for (object_id, definition) in log.checkpoint.iter().flat_map(|checkpoint| &checkpoint.committed) {
        parts.replace(*object_id, definition.as_deref());
    }
    let (mut entries, errors) = parts.finish();
    if let Some(checkpoint) = &log.checkpoint {
        apply_checkpoint(&mut entries, checkpoint);
    }
    if !log.says_all {
        take_from_files(storage, directory, slot, &mut entries)?;
    }
    for error in &errors {
        context.error(&object, 0, reason(error));
    }
    check_entries(&entries, slot, &object, context);
    check_partitions(&entries, &object, context);
    Ok((entries, pages_are_whole && errors.is_empty() && log.says_all))
}

fn reason(error: &Error) -> String {
    match error {
        Error::Damaged { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// Names, ids and files come once, and ids were given out.
fn check_entries(entries: &CatalogEntries, slot: &ControlSlot, object: &str, context: &mut Context<'_>) {
    let mut files = BTreeSet::from([slot.catalog_file_id]);
    let mut objects = BTreeSet::from([0]);
    let mut names = BTreeSet::new();
    let tables = entries.tables.iter().map(|t| ("table", &t.attributes.name, t.object_id, &t.data_sets));
    let indexes = entries.indexes.iter().map(|i| ("index", &i.attributes.name, i.object_id, &i.data_sets));
    let none = Vec::new();
    let others = entries.others.iter().map(|o| (o.kind.name(), &o.name, o.object_id, &none));
    for (kind, name, id, data_sets) in tables.chain(indexes).chain(others) {
        if !names.insert((kind, name)) {
            context.error(object, 0, format!("{kind} \"{name}\" comes twice"));
        }
        if !objects.insert(id) || id >= slot.next_object_id {
            context.error(object, 0, format!("{kind} \"{name}\" has object id {id}, which is another's or was never given out"));
        }
        for data_set in data_sets {
            if !files.insert(data_set.file_id) || data_set.file_id >= slot.next_file_id {
                let file = data_set.file_id;
                context.error(object, 0, format!("{kind} \"{name}\" has file {file:08x}, which is another's or was never given out"));
            }
        }
    }
}

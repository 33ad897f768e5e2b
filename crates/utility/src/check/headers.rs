//! What data sets say of themselves, where nothing else does: their header pages.
//!
//! The catalog and the last checkpoint say which data sets an object has and how often their headers were written. When the log is damaged the checkpoint is not known, and files may be
//! newer than the catalog: that is no damage of theirs.

use super::files::files_on_disk;
use crate::Result;
use pagefold_engine::catalog::CatalogEntries;
use pagefold_engine::{DataSetEntry, data_set_path};
use pagefold_format::control::ControlSlot;
use pagefold_format::data_set_header::{DataSetHeader, ObjectKind};
use pagefold_format::page::{self, PAGE_SIZE_MAX, PAGE_SIZE_STEP, PageIdentity};
use pagefold_io::{OpenOptions, Storage};
use std::collections::BTreeMap;
use std::path::Path;

/// The header page of a file, of whatever page size, and what it says; `None` when it cannot be made out.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn read_header(storage: &dyn Storage, directory: &Path, file_id: u32) -> Result<Option<(DataSetHeader, Vec<u8>)>> {
    let file = storage.open(&data_set_path(directory, file_id), &OpenOptions::read_only())?;
    let mut bytes = vec![0; PAGE_SIZE_MAX];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    let found = (1..=PAGE_SIZE_MAX / PAGE_SIZE_STEP).find_map(|k| {
        let header = DataSetHeader::parse(bytes.get(..k * PAGE_SIZE_STEP)?).ok()?;
        (header.page_bytes as usize == k * PAGE_SIZE_STEP).then_some(header)
    });
    Ok(found.map(|header| {
        bytes.truncate(header.page_bytes as usize);
        (header, bytes)
    }))
}

/// Brings what a catalog says of data sets to what their files say: those that are newer, and those that it does not know.
///
/// # Errors
/// When the directory cannot be listed. A file that cannot be read is met by who needs it.
pub(super) fn take_from_files(storage: &dyn Storage, directory: &Path, slot: &ControlSlot, entries: &mut CatalogEntries) -> Result<()> {
    let mut found: BTreeMap<(u32, u16), Vec<(DataSetHeader, u32)>> = BTreeMap::new();
    for file_id in files_on_disk(storage, directory)?.into_iter().filter_map(|(_, file_id)| file_id) {
        let Ok(Some((header, bytes))) = read_header(storage, directory, file_id) else { continue };
        let identity = PageIdentity { database_id: slot.database_id, file_id, page_number: 0 };
        if header.file_id == file_id && page::verify(&bytes, &identity).is_ok() {
            found.entry((header.object_id, header.partition)).or_default().push((header, page::write_counter(&bytes)));
        }
    }
    let bring = |kind: ObjectKind, object_id: u32, data_sets: &mut Vec<DataSetEntry>| {
        for data_set in data_sets.iter_mut() {
            let files = found.get(&(object_id, data_set.partition)).map_or(&[][..], Vec::as_slice);
            let own = files.iter().find(|(header, _)| header.file_id == data_set.file_id && header.kind == kind);
            data_set.header_writes = data_set.header_writes.max(own.map(|(_, writes)| *writes));
        }
        // Of two files nothing says which one it is: one may have been left by a command that did not finish.
        while let Ok(partition) = u16::try_from(data_sets.len())
            && let Some([(header, writes)]) = found.get(&(object_id, partition)).map(Vec::as_slice)
            && header.kind == kind
        {
            data_sets.push(DataSetEntry { file_id: header.file_id, partition, header_writes: Some(*writes) });
        }
    };
    entries.tables.iter_mut().for_each(|table| bring(ObjectKind::Table, table.object_id, &mut table.data_sets));
    entries.indexes.iter_mut().for_each(|index| bring(ObjectKind::Index, index.object_id, &mut index.data_sets));
    Ok(())
}

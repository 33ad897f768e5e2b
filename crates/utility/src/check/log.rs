//! What the log adds to the catalog: the state of data sets at the last checkpoint.
//!
//! Files say everything only when the database was closed in order: then nothing stands behind the last checkpoint.

use super::findings::Context;
use crate::{Result, Silent};
use pagefold_engine::catalog::CatalogEntries;
use pagefold_engine::database::read_checkpoint;
use pagefold_engine::log::LogReader;
use pagefold_engine::{DataSetEntry, Error, LOG_DIRECTORY};
use pagefold_format::control::ControlSlot;
use pagefold_format::log::{Checkpoint, DataSetState, RecordKind};
use pagefold_io::Storage;
use std::path::Path;

/// What is known from the log.
#[derive(Debug)]
pub(crate) struct KnownLog {
    /// The last checkpoint; `None` when there is none, or it cannot be read.
    pub(crate) checkpoint: Option<Checkpoint>,
    /// The checkpoint says everything: the files are as it says.
    pub(crate) says_all: bool,
}

/// Reads the log from the last checkpoint on. Damage is reported: then its checkpoint, if that can be read, says what there was.
///
/// # Errors
/// When the database was not closed in order, and when the log cannot be read.
pub(crate) fn read_log(storage: &dyn Storage, directory: &Path, slot: &ControlSlot, context: &mut Context<'_>) -> Result<KnownLog> {
    if slot.checkpoint == 0 {
        return Ok(KnownLog { checkpoint: None, says_all: true });
    }
    match last_checkpoint(storage, directory, slot) {
        // What commits have left the checkpoint names: that is no secret of the log.
        Ok((checkpoint, End::InOrder | End::WithLeftovers)) => Ok(KnownLog { checkpoint: Some(checkpoint), says_all: true }),
        Ok((_, End::Behind)) => {
            Err(crate::Error::Data(format!("{} was not closed in order: its files do not say everything", directory.display())))
        }
        Err(Error::Damaged { path, reason }) => {
            context.error("log", 0, format!("{path}: {reason}"));
            let checkpoint = read_checkpoint(storage, directory, slot.log_id, slot.checkpoint).ok().map(|(checkpoint, _)| checkpoint);
            Ok(KnownLog { checkpoint, says_all: false })
        }
        // Missing, or not to be opened.
        Err(error) if error.is_damage() || error.is_refusal() => {
            context.error("log", 0, error);
            Ok(KnownLog { checkpoint: None, says_all: false })
        }
        Err(error) => Err(error.into()),
    }
}

/// What the log adds to the catalog, as far as it is known: of a log that is not in order the last checkpoint still says what there was then. Damage is not reported.
pub(crate) fn known_log(storage: &dyn Storage, directory: &Path, slot: &ControlSlot) -> KnownLog {
    read_log(storage, directory, slot, &mut Context::new(&Silent)).unwrap_or_else(|_| {
        let checkpoint = read_checkpoint(storage, directory, slot.log_id, slot.checkpoint).ok().map(|(checkpoint, _)| checkpoint);
        KnownLog { checkpoint, says_all: false }
    })
}

/// Does the log end with a checkpoint that has left nothing to be done? So it does when it is damaged: its files say what they say.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn is_in_order(storage: &dyn Storage, directory: &Path, slot: &ControlSlot) -> Result<bool> {
    if slot.checkpoint == 0 {
        return Ok(true);
    }
    match last_checkpoint(storage, directory, slot) {
        Ok((_, end)) => Ok(end == End::InOrder),
        Err(error) if error.is_damage() || error.is_refusal() => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// How the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With its last checkpoint: files say everything.
    InOrder,
    /// Likewise, but commits have left something that could not be removed, as there was no room, or a page is damaged.
    WithLeftovers,
    /// Something follows the checkpoint, or transactions run.
    Behind,
}

/// The last checkpoint, and what comes after it.
fn last_checkpoint(storage: &dyn Storage, directory: &Path, slot: &ControlSlot) -> pagefold_engine::Result<(Checkpoint, End)> {
    let log = directory.join(LOG_DIRECTORY);
    if !storage.exists(&log)? {
        return Err(Error::Damaged { path: log.display().to_string(), reason: "it is missing".into() });
    }
    let (checkpoint, end) = read_checkpoint(storage, directory, slot.log_id, slot.checkpoint)?;
    let mut reader = LogReader::open(storage, &log, slot.log_id, checkpoint.redo, end)?;
    let mut in_order = checkpoint.transactions.is_empty() && checkpoint.definitions.is_empty();
    while in_order && let Some(record) = reader.next()? {
        in_order = RecordKind::from_u8(record.kind) == Some(RecordKind::Checkpoint);
    }
    let end = match (in_order, checkpoint.leftovers.is_empty()) {
        (true, true) => End::InOrder,
        (true, false) => End::WithLeftovers,
        (false, _) => End::Behind,
    };
    Ok((checkpoint, end))
}

/// Brings what the catalog says of data sets to the state of a checkpoint, which may know more partitions.
pub(super) fn apply_checkpoint(entries: &mut CatalogEntries, checkpoint: &Checkpoint) {
    let written = |state: &DataSetState| Some(state.header_writes).filter(|writes| *writes > 0);
    let update = |data_set: &mut DataSetEntry| {
        let found = checkpoint.data_sets.iter().find(|d| d.file_id == data_set.file_id);
        data_set.header_writes = data_set.header_writes.max(found.and_then(written));
    };
    for table in &mut entries.tables {
        let added = checkpoint.added_partitions(table.object_id, |file_id| table.data_sets.iter().any(|known| known.file_id == file_id));
        let entry =
            |state: &DataSetState| DataSetEntry { file_id: state.file_id, partition: state.partition, header_writes: written(state) };
        table.data_sets.extend(added.into_iter().map(entry));
    }
    entries.tables.iter_mut().flat_map(|t| &mut t.data_sets).for_each(update);
    entries.indexes.iter_mut().flat_map(|i| &mut i.data_sets).for_each(update);
}

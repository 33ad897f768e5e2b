//! Pages without rows are given back, and blocks of free pages go back to the file system, when a checkpoint is written (`table_space/empty_pages.rs`, `data_set/holes.rs`).
//!
//! Invariants:
//! - they go when neither of the two checkpoints that the control slots name needs what the pages were;
//! - none goes while a copy is being taken, which reads pages and the log from its own checkpoint on, or while a reader is there, which may have begun before that;
//! - the file of double writes has no image of such a page: the next opening would put it back, and ask for blocks that a full disk may not have;
//! - what keeps blocks from going is nobody's error: the next checkpoint tries again.

use super::log_hold::LogHold;
use super::open::DatabaseState;
use crate::Result;
use crate::data_set::DataSet;
use crate::gate::Passage;
use crate::log::Lsn;
use pagefold_format::data_set_header::ObjectKind;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So long a checkpoint gives blocks back.
const HOLES_TIME: Duration = Duration::from_millis(500);

impl DatabaseState {
    /// A checkpoint is about to be written: data pages without rows are given back.
    ///
    /// # Errors
    /// When the log cannot be written, or a page not be read.
    pub(super) fn give_empty_pages_back(&self, data_sets: &[Arc<DataSet>]) -> Result<()> {
        let of_tables = data_sets.iter().filter(|data_set| data_set.attributes.kind == ObjectKind::Table);
        let tables: BTreeSet<u32> = of_tables.map(|data_set| data_set.attributes.object_id).collect();
        for object_id in tables {
            let table = self.objects.read().tables.by_id(object_id).and_then(|place| place.opened());
            if let Some(table) = table.filter(|table| table.check_usable().is_ok()) {
                table.give_empty_pages_back()?;
            }
        }
        Ok(())
    }

    /// A checkpoint cuts the log here: what was given back of these data sets was before.
    pub(super) fn seal_free_pages(&self, data_sets: &[Arc<DataSet>], end: Lsn) {
        let mut resting = self.resting.lock();
        resting.extend(data_sets.iter().filter(|data_set| data_set.seal_free_pages(end)).map(|data_set| data_set.file_id()));
    }

    /// Gives blocks of pages back that rested when the log was here, from where on it is kept.
    ///
    /// # Errors
    /// When locks cannot be asked for, or files not be synced or changed.
    pub(super) fn give_blocks_back(&self, before: Lsn) -> Result<()> {
        let core = &self.core;
        let resting: Vec<Arc<DataSet>> = {
            let mut files = self.resting.lock();
            files.retain(|file_id| core.manager.data_set(*file_id).is_some());
            files.iter().filter_map(|file_id| core.manager.data_set(*file_id)).collect()
        };
        let rested: Vec<_> = resting.into_iter().filter(|data_set| data_set.may_give_blocks_back(before)).collect();
        if rested.is_empty() || core.check_writable().is_err() {
            return Ok(());
        }
        let Some(_hold) = LogHold::try_take(core.storage.as_ref(), &core.directory)? else { return Ok(()) };
        // No reader registers before it is dropped.
        let passage = core.pass()?;
        if passage.as_ref().map_or(Ok(false), Passage::meets_reader)? {
            return Ok(());
        }
        let may_go = |file_id, page| rested.iter().any(|data_set| data_set.file_id() == file_id && data_set.is_free(page));
        core.manager.retire_double_writes(&may_go)?;
        // Each hole is a call that may take the file system a while: where there are very many, the shortest are left to later checkpoints.
        let clock = core.manager.clock();
        let end = clock.monotonic() + HOLES_TIME;
        for data_set in &rested {
            if !data_set.is_poisoned() {
                let bytes = data_set.give_blocks_back(before, || clock.monotonic() < end)?;
                self.given_back_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// May free pages give blocks back some time?
    pub(super) fn has_resting_pages(&self) -> bool {
        !self.resting.lock().is_empty()
    }

    /// Bytes of free pages that went back to the file system since the database was opened.
    #[must_use]
    pub fn given_back_bytes(&self) -> u64 {
        self.given_back_bytes.load(Ordering::Relaxed)
    }
}

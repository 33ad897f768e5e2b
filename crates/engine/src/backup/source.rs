//! A database as its files have it, whoever writes it: one state of the control file with everything it names, not recovered.

use crate::Result;
use crate::core::Core;
use crate::data_set::DataSet;
use crate::database::{Objects, Settings, core_parts, open_objects, read_checkpoint, read_control};
use crate::log::Lsn;
use crate::pool::{BufferManager, PoolSettings};
use pagefold_format::control::ControlSlot;
use pagefold_format::log::Checkpoint;
use pagefold_io::{Clock, Storage};
use std::path::Path;
use std::sync::Arc;

/// Memory for the pages of the catalog.
const POOL_BYTES: usize = 8 << 20;

/// An open state.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) control: ControlSlot,
    /// `None`: the database has no log.
    pub(super) checkpoint: Option<Checkpoint>,
    objects: Objects,
}

impl Source {
    /// Opens the current state. While it is open, its files can be read, though somebody removes them.
    pub(super) fn open(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, directory: &Path) -> Result<Source> {
        let control = read_control(storage.as_ref(), directory)?.current;
        let checkpoint = match control.checkpoint {
            0 => None,
            at => Some(read_checkpoint(storage.as_ref(), directory, control.log_id, at)?.0),
        };
        let pools = PoolSettings { memory_bytes: POOL_BYTES, background_threads: 0, ..PoolSettings::default() };
        let manager = BufferManager::new(pools, Arc::clone(clock))?;
        let settings = Settings { pools, direct: false, ..Settings::default() };
        let core = Arc::new(Core::new(core_parts(storage, directory, control, &settings, &manager)));
        let (objects, _) = open_objects(&core, control, checkpoint.as_ref())?;
        Ok(Source { control, checkpoint, objects })
    }

    /// The data sets that have a file. Of the others the log has everything.
    pub(super) fn data_sets(&self) -> Vec<Arc<DataSet>> {
        let of_tables = self.objects.tables.values().flat_map(|table| table.partitions().cloned());
        let of_indexes = self.objects.indexes.values().map(|index| Arc::clone(&index.data_set));
        let all = std::iter::once(Arc::clone(&self.objects.catalog)).chain(of_tables).chain(of_indexes);
        all.filter(|data_set| data_set.is_defined()).collect()
    }

    /// From here on its log is needed: for redo, and for undo of what ran at the checkpoint.
    pub(super) fn log_start(&self) -> Option<Lsn> {
        let checkpoint = self.checkpoint.as_ref()?;
        checkpoint.transactions.iter().map(|transaction| transaction.first).chain([checkpoint.redo]).min()
    }
}

//! A database as its files have it, whoever writes it: one state of the control file with everything it names, not recovered.

use crate::core::Core;
use crate::data_set::DataSet;
use crate::database::{Settings, core_parts, read_checkpoint};
use crate::directory::read_control;
use crate::log::{LogReader, Lsn};
use crate::objects::{Broken, Objects, open_objects};
use crate::pool::{BufferManager, PoolSettings};
use crate::recovery::{Damaged, DataSets, Definitions};
use crate::{Error, Result};
use pagefold_format::FormatError;
use pagefold_format::control::ControlSlot;
use pagefold_format::log::{Action, Checkpoint, Commit, RecordKind};
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
    core: Arc<Core>,
    objects: Objects,
    broken: Vec<Broken>,
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
        // A file that is removed meanwhile can be read for as long as it is open.
        let settings = Settings { pools, direct: false, open_files_max: usize::MAX, ..Settings::default() };
        let core = Arc::new(Core::new(core_parts(storage, directory, control, &settings, &manager)));
        let objects = open_objects(&core, control, checkpoint.as_ref())?;
        let mut broken = Vec::new();
        objects.open_all(&core, &mut broken)?;
        if let (None, Some((_, error))) = (&checkpoint, broken.first()) {
            return Err(error.clone());
        }
        Ok(Source { control, checkpoint, core, objects, broken })
    }

    /// The data sets that have a file. Of the others the log has everything.
    pub(super) fn data_sets(&self) -> Vec<Arc<DataSet>> {
        let all = std::iter::once(Arc::clone(&self.objects.catalog)).chain(self.objects.open_data_sets());
        all.filter(|data_set| data_set.is_defined()).collect()
    }

    /// The data sets with files of what there is when the log from the checkpoint on has been followed to where it was found to end.
    ///
    /// # Errors
    /// When one of them cannot be opened, the log cannot be read, or what it defines makes no sense.
    pub(super) fn followed(&self, end: Lsn) -> Result<Vec<Arc<DataSet>>> {
        let Some(checkpoint) = &self.checkpoint else { return Ok(self.data_sets()) };
        let damaged = |at: Lsn, e: FormatError| Error::Damaged { path: "log".into(), reason: format!("the record at {at}: {e}") };
        let mut all: DataSets = self.objects.open_data_sets().map(|data_set| (data_set.file_id(), data_set)).collect();
        let (objects, broken) = (self.objects.clone(), self.broken.clone());
        let mut definitions = Definitions::new(&self.core, objects, broken, checkpoint, &mut all)?;
        let mut reader = LogReader::open(self.core.storage.as_ref(), &self.core.log_directory(), self.core.log_id, checkpoint.redo, 0)?;
        while reader.end() < end
            && let Some(record) = reader.next()?
        {
            match RecordKind::from_u8(record.kind) {
                Some(RecordKind::Action) => {
                    let action = Action::decode(record.body).map_err(|e| damaged(record.start, e))?;
                    definitions.follow(&action.role, &mut all)?;
                }
                Some(RecordKind::Commit) => {
                    let commit = Commit::decode(record.body).map_err(|e| damaged(record.start, e))?;
                    definitions.committed(commit.transaction, &mut all)?;
                }
                _ => {}
            }
        }
        // Those of running transactions, too: their commits may be in the part of the log that is copied.
        let defined = all.values().filter(|data_set| data_set.is_defined()).cloned().collect();
        definitions.finish(Damaged::Refuse, &mut all)?;
        Ok(defined)
    }

    /// Names of the indexes of which catalog and checkpoint say that they are damaged.
    pub(super) fn damaged_indexes(&self) -> Vec<String> {
        self.objects.damaged_index_names()
    }

    /// From here on its log is needed: for redo, and for undo of what ran at the checkpoint.
    pub(super) fn log_start(&self) -> Option<Lsn> {
        self.checkpoint.as_ref().map(Checkpoint::oldest)
    }
}

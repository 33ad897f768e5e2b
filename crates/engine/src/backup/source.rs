//! A database as its files have it, whoever writes it: one state of the control file with everything it names, not recovered.

use crate::catalog::definition_data_sets;
use crate::core::Core;
use crate::data_set::{DataSet, DataSetEntry};
use crate::database::{Settings, core_parts, read_checkpoint};
use crate::directory::read_control;
use crate::log::{LogReader, Lsn};
use crate::objects::{Broken, Objects, open_objects};
use crate::pool::{BufferManager, PoolSettings};
use crate::recovery::{Damaged, DataSets, Definitions};
use crate::{Error, Result};
use pagefold_format::FormatError;
use pagefold_format::control::ControlSlot;
use pagefold_format::copy::{is_asked, stands_for};
use pagefold_format::log::{Action, Checkpoint, Commit, RecordKind};
use pagefold_io::{Clock, Storage};
use std::path::Path;
use std::sync::Arc;

/// So many names are told to who asks for one that is not there.
const NAMES_SHOWN: usize = 20;
/// Memory for the pages of the catalog.
const POOL_BYTES: usize = 8 << 20;

/// What there is, as catalog and checkpoint describe it; nothing of it is opened.
#[derive(Debug, Default)]
pub(super) struct Described {
    /// `None`: the database has no log.
    pub(super) checkpoint: Option<Checkpoint>,
    /// By number.
    pub(super) tables: Vec<DescribedTable>,
    /// Numbers of everything else.
    pub(super) others: Vec<u32>,
}

/// A table as catalog and checkpoint describe it.
#[derive(Debug)]
pub(super) struct DescribedTable {
    pub(super) object_id: u32,
    pub(super) name: String,
    pub(super) data_sets: Vec<DataSetEntry>,
    /// Its own files and those of its indexes.
    pub(super) files: Vec<u32>,
}

impl Described {
    /// What a database has.
    pub(super) fn read(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, directory: &Path) -> Result<Described> {
        let (_, checkpoint, _, objects) = described(storage, clock, directory)?;
        let mut tables: Vec<DescribedTable> = Vec::with_capacity(objects.tables.len());
        for place in objects.tables.places() {
            let data_sets = place.look(definition_data_sets).transpose()?.unwrap_or_default();
            tables.push(DescribedTable { object_id: place.object_id, name: place.name.to_string(), data_sets, files: Vec::new() });
        }
        tables.sort_by_key(|table| table.object_id);
        for (entry, table) in objects.described_files()? {
            if let Ok(at) = tables.binary_search_by_key(&table, |table| table.object_id) {
                tables[at].files.push(entry.file_id);
            }
        }
        let indexes = objects.indexes.places().map(|place| place.object_id);
        let others = indexes.chain(objects.others.places().map(|place| place.object_id)).collect();
        Ok(Described { checkpoint, tables, others })
    }
}

/// The current state, and what it names, of which nothing is opened.
fn described(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
) -> Result<(ControlSlot, Option<Checkpoint>, Arc<Core>, Objects)> {
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
    Ok((control, checkpoint, core, objects))
}

/// An open state.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) control: ControlSlot,
    /// `None`: the database has no log.
    pub(super) checkpoint: Option<Checkpoint>,
    core: Arc<Core>,
    objects: Objects,
    broken: Vec<Broken>,
    /// Only these; none: all.
    asked: Vec<String>,
}

impl Source {
    /// Opens the current state, of all tables or of those that are `asked` for. While it is open, its files can be read, though somebody removes them.
    pub(super) fn open(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, directory: &Path, asked: &[String]) -> Result<Source> {
        let (control, checkpoint, core, objects) = described(storage, clock, directory)?;
        let mut broken = Vec::new();
        let numbers: Vec<u32> = objects.tables.places().filter(|place| is_asked(asked, &place.name)).map(|place| place.object_id).collect();
        for opening in numbers.into_iter().filter_map(|table| objects.opening(table)) {
            opening.open_to_redo(&core, &mut broken)?;
        }
        if let (None, Some((_, error))) = (&checkpoint, broken.first()) {
            return Err(error.clone());
        }
        Ok(Source { control, checkpoint, core, objects, broken, asked: asked.to_vec() })
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
        let Some(checkpoint) = &self.checkpoint else {
            let names: Vec<&str> = self.objects.tables.names().collect();
            self.check_there(&names)?;
            return Ok(self.data_sets());
        };
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
        let (names, numbers) = definitions.tables_called(&|name| is_asked(&self.asked, name));
        self.check_there(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        // Of a table that was called something else at the checkpoint nothing is open yet.
        for number in &numbers {
            definitions.table(*number, &mut all)?;
        }
        let is_wanted = |data_set: &DataSet| numbers.contains(&data_set.attributes.object_id);
        let defined = all.values().filter(|data_set| data_set.is_defined() && is_wanted(data_set)).cloned().collect();
        definitions.forget_broken(|data_set| !is_wanted(data_set));
        definitions.finish(Damaged::Refuse, &mut all)?;
        Ok(defined)
    }

    /// Refuses a table that is asked for and not among these.
    fn check_there(&self, names: &[&str]) -> Result<()> {
        match self.asked.iter().find(|asked| !names.iter().any(|name| stands_for(asked, name))) {
            None => Ok(()),
            Some(lacks) => {
                let hint = format!("; there are: {}", self.objects.tables.names().take(NAMES_SHOWN).collect::<Vec<_>>().join(", "));
                Err(Error::Unknown { kind: "table", name: lacks.clone(), hint })
            }
        }
    }

    /// Names of the indexes of which catalog and checkpoint say that they are damaged.
    pub(super) fn damaged_indexes(&self) -> Vec<String> {
        let mut names = self.objects.damaged_index_names();
        names.retain(|name| {
            let owner = self.objects.indexes.get(name).map(|place| place.owner);
            owner.and_then(|table| self.objects.tables.by_id(table)).is_some_and(|table| is_asked(&self.asked, &table.name))
        });
        names
    }

    /// From here on its log is needed: for redo, and for undo of what ran at the checkpoint.
    pub(super) fn log_start(&self) -> Option<Lsn> {
        self.checkpoint.as_ref().map(Checkpoint::oldest)
    }
}

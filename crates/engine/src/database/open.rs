//! Opening and creating a database.
//!
//! Invariants:
//! - one writing process: it holds the lock file for as long as the database is open;
//! - the writer removes, at open, every data set that the catalog does not name: what a crashed command left.

use super::change::Change;
use super::checkpoint::read_checkpoint;
use super::definitions::RunningDefinitions;
use super::former::Former;
use super::live::LiveThread;
use super::log_archive::read_archive;
use super::maintenance::MaintenanceThread;
use super::transaction::TransactionOptions;
use crate::catalog::{catalog_attributes, write_catalog};
use crate::core::{Core, CoreParts};
use crate::data_set::DataSet;
use crate::directory::{
    DATA_DIRECTORY, FIRST_CATALOG, check_nothing_is_lost, control_path, create_control, empty_slot, file_id_of, prepare_directory,
    read_control, sync_what_was_found, take_lock,
};
use crate::gate::Gate;
use crate::log::LogSettings;
use crate::objects::{CATALOG_OBJECT, Objects, catalog_data_set, open_objects};
use crate::pool::{BufferManager, PoolSettings};
use crate::readers::Snapshot;
use crate::recovery::{GiveUp, GivenUp, restore_double_writes};
use crate::table_space::Table;
use crate::{Error, Result};
use pagefold_format::control::ControlSlot;
use pagefold_io::{Clock, Lock, Storage};
use parking_lot::{Mutex, RwLock};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; any number of processes at once, beside one that writes. What was committed when it was opened is seen for as long as it is open.
    Read,
    /// For reading and writing; one process.
    Write,
    /// As `Write`, and make the database when the directory has none.
    Create,
}

/// Settings of an open database.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Buffer pools and background threads.
    pub pools: PoolSettings,
    /// Direct I/O, where the system and the file system allow it.
    pub direct: bool,
    /// The log.
    pub log: LogSettings,
    /// Bytes that old row versions may take in memory.
    pub version_bytes: u64,
    /// Bytes that those for which this is not enough may take in a file, which goes with the process; below 256 KB there is none.
    pub version_file_bytes: u64,
    /// A transaction that has locked so many rows and keys asks for the whole table, if nobody else changes it just now: then others wait until it has ended. A lock takes about 100 bytes.
    pub row_locks_max: usize,
    /// Bytes of a half of the double-write file; counts when that is made.
    pub double_write_bytes: u64,
    /// A checkpoint is written when the log has grown by so many bytes: as much at most is to be redone after a crash.
    pub checkpoint_bytes: u64,
    /// So many files of tables and indexes at most are open at once, beside those that somebody reads or writes just then.
    pub open_files_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            pools: PoolSettings::default(),
            direct: true,
            log: LogSettings::default(),
            version_bytes: 256 << 20,
            version_file_bytes: 16 << 30,
            row_locks_max: 500_000,
            double_write_bytes: 2 << 20,
            checkpoint_bytes: 256 << 20,
            open_files_max: 512,
        }
    }
}

/// A version of the definitions, and the names of tables and of those that they refer to.
type KnownReferences = (u64, Arc<[(String, String)]>);

/// What all threads of an open database work on, the one for maintenance too.
#[derive(Debug)]
pub struct DatabaseState {
    pub(crate) core: Arc<Core>,
    pub(super) objects: RwLock<Objects>,
    /// Tables and indexes that were dropped or replaced. Locked behind `objects`.
    pub(super) former: Former,
    /// Held for changing by who commits tables and indexes that come or go. Comes before `objects` and all that a commit locks.
    pub(super) defining: RwLock<()>,
    pub(super) definitions: RunningDefinitions,
    /// How often a commit has changed what there is.
    pub(super) changes: AtomicU64,
    /// Which table refers to which, at one of these.
    pub(super) references: Mutex<Option<KnownReferences>>,
    /// Where the log ended when the database was opened, if there was nothing to be done.
    pub(super) found_in_order: AtomicU64,
    /// The catalog that the other control slot names.
    pub(super) other_catalog: Mutex<Option<Arc<DataSet>>>,
    /// One checkpoint at a time.
    pub(super) checkpointing: Mutex<()>,
    /// How many were written.
    pub(super) checkpoints: AtomicU64,
    /// The oldest segment of the log that checkpoints did not give back when the device was full, and where the log ended. Held by who makes checkpoints for that.
    pub(super) room_sought: Mutex<Option<(u64, crate::log::Lsn)>>,
    /// Data sets with free pages whose blocks may go some time.
    pub(super) resting: Mutex<BTreeSet<u32>>,
    pub(super) given_back_bytes: AtomicU64,
}

/// An open database.
#[derive(Debug)]
pub struct Database {
    pub(super) state: Arc<DatabaseState>,
    /// The storage as others see it.
    outside: Arc<dyn Storage>,
    damaged_slot: Option<(usize, String)>,
    given_up: Vec<GivenUp>,
    pub(super) maintenance: Option<MaintenanceThread>,
    pub(super) renewal: Option<MaintenanceThread>,
    pub(super) live: Option<LiveThread>,
    /// It is in order, and nothing is left to do when it is dropped.
    pub(super) closed: bool,
    /// Held until the database is closed.
    _lock: Option<Box<dyn Lock>>,
}

impl Deref for Database {
    type Target = DatabaseState;
    fn deref(&self) -> &DatabaseState {
        &self.state
    }
}

/// An id that nothing else has: random by the hasher's keys, the time and the path.
pub(crate) fn new_id(clock: &dyn Clock, directory: &Path) -> u128 {
    let half = |salt: u64| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(salt);
        hasher.write_u128(clock.unix_time().as_nanos());
        hasher.write(directory.as_os_str().as_encoded_bytes());
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

/// What a state of the control file and settings say of an open database, one for reading.
pub(crate) fn core_parts(
    storage: &Arc<dyn Storage>,
    directory: &Path,
    control: ControlSlot,
    settings: &Settings,
    manager: &Arc<BufferManager>,
) -> CoreParts {
    CoreParts {
        storage: Arc::clone(storage),
        directory: directory.to_path_buf(),
        database_id: control.database_id,
        log_id: control.log_id,
        manager: Arc::clone(manager),
        direct: settings.direct,
        writable: false,
        private: false,
        next_file_id: control.next_file_id,
        next_object_id: control.next_object_id,
        log_settings: settings.log,
        checkpoint: control.checkpoint,
        version_bytes: settings.version_bytes,
        version_file_bytes: settings.version_file_bytes,
        row_locks_max: settings.row_locks_max,
        double_write_bytes: settings.double_write_bytes,
        checkpoint_bytes: settings.checkpoint_bytes,
        open_files_max: settings.open_files_max,
        archive: None,
    }
}

/// What a database has before its first state.
fn before_first_state(database_id: u128) -> ControlSlot {
    ControlSlot {
        sequence: 0,
        database_id,
        catalog_file_id: 0,
        catalog_writes: 0,
        next_file_id: FIRST_CATALOG,
        next_object_id: CATALOG_OBJECT + 1,
        checkpoint: 0,
        log_id: database_id,
    }
}

impl Database {
    /// Opens or creates the database in a directory.
    ///
    /// # Errors
    /// When there is none, it is damaged or of a newer format, somebody else writes it, or the directory cannot be used.
    pub fn open(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        directory: &Path,
        mode: OpenMode,
        settings: Settings,
    ) -> Result<Database> {
        let manager = BufferManager::new(settings.pools, Arc::clone(&clock))?;
        Database::open_with(storage, clock.as_ref(), directory, mode, settings, manager)
    }

    /// Opens a database for writing without tables for which the log has something, and which are too damaged to get it: these and their indexes are gone then, with
    /// all that is theirs ([`Self::given_up`]). Salvage them first. A table that recovery can do without stays; the caller drops it as any other.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_giving_up(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        directory: &Path,
        settings: Settings,
        without: GiveUp<'_>,
    ) -> Result<Database> {
        let manager = BufferManager::new(settings.pools, Arc::clone(&clock))?;
        Database::open_without(storage, clock.as_ref(), directory, OpenMode::Write, settings, manager, Some(without))
    }

    /// As [`Self::open`], with a buffer manager of the caller's.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(
        storage: Arc<dyn Storage>,
        clock: &dyn Clock,
        directory: &Path,
        mode: OpenMode,
        settings: Settings,
        manager: Arc<BufferManager>,
    ) -> Result<Database> {
        Database::open_without(storage, clock, directory, mode, settings, manager, None)
    }

    fn open_without(
        storage: Arc<dyn Storage>,
        clock: &dyn Clock,
        directory: &Path,
        mode: OpenMode,
        settings: Settings,
        manager: Arc<BufferManager>,
        without: Option<GiveUp<'_>>,
    ) -> Result<Database> {
        let outside = Arc::clone(&storage);
        let mut storage = storage;
        let exists = storage.exists(&control_path(directory))?;
        if !exists && mode != OpenMode::Create {
            return Err(Error::NotADatabase(directory.display().to_string()));
        }
        let mut lock = None;
        if mode == OpenMode::Read {
            storage = Snapshot::take(&storage, directory, settings.direct)?.storage();
        } else {
            if !exists {
                check_nothing_is_lost(storage.as_ref(), directory)?;
                prepare_directory(storage.as_ref(), directory)?;
            }
            lock = Some(take_lock(storage.as_ref(), directory)?);
        }
        let archive = if mode == OpenMode::Read { None } else { read_archive(storage.as_ref(), directory)? };
        let parts = |control: ControlSlot| CoreParts {
            writable: mode != OpenMode::Read,
            private: mode == OpenMode::Read,
            log_settings: LogSettings { sync: settings.log.sync && mode != OpenMode::Read, ..settings.log },
            archive: archive.clone(),
            ..core_parts(&storage, directory, control, &settings, &manager)
        };
        // Looked at again under the lock: somebody may have made it meanwhile.
        if mode == OpenMode::Create && !storage.exists(&control_path(directory))? {
            check_nothing_is_lost(storage.as_ref(), directory)?;
            let core = Arc::new(Core::new(parts(before_first_state(new_id(clock, directory)))));
            let stay = remove_all_but(storage.as_ref(), storage.list(&directory.join(DATA_DIRECTORY))?, |_| false)?;
            if let Some((_, error)) = stay.into_iter().next() {
                return Err(error);
            }
            create_first_state(&core)?;
        }
        let control = read_control(storage.as_ref(), directory)?;
        let slot = control.current;
        if mode != OpenMode::Read {
            // It may be in the system's cache only, and files that it does not name are about to be removed.
            sync_what_was_found(storage.as_ref(), directory)?;
        }
        let core = Arc::new(Core::new(parts(slot)));
        core.transactions.tick();
        let mut gate = None;
        if mode != OpenMode::Read {
            let gate = gate.insert(Arc::new(Gate::new(Arc::clone(&storage), directory, slot.database_id)?));
            manager.set_gate(Arc::clone(gate));
        }
        let passage = gate.as_ref().map(|gate| gate.pass()).transpose()?;
        let logged = match slot.checkpoint {
            0 => None,
            at => {
                let durable = match &passage {
                    Some(passage) => restore_double_writes(storage.as_ref(), directory, slot.database_id, &mut |image, file| {
                        passage.preserve(image.file_id, image.bytes.len(), &[image.page_number], file)
                    })?,
                    None => 0,
                };
                let (checkpoint, end) = read_checkpoint(storage.as_ref(), directory, slot.log_id, at)?;
                Some((checkpoint, end.max(durable)))
            }
        };
        let objects = open_objects(&core, slot, logged.as_ref().map(|(checkpoint, _)| checkpoint))?;
        let other_catalog = control.other.map(|other| unopened_catalog(&core, other.catalog_file_id)).transpose()?;
        let state = Arc::new(DatabaseState {
            core,
            objects: RwLock::new(objects),
            former: Former::default(),
            defining: RwLock::default(),
            definitions: RunningDefinitions::default(),
            changes: AtomicU64::new(0),
            references: Mutex::default(),
            found_in_order: AtomicU64::new(0),
            other_catalog: Mutex::new(other_catalog),
            checkpointing: Mutex::default(),
            checkpoints: AtomicU64::new(0),
            room_sought: Mutex::default(),
            resting: Mutex::default(),
            given_back_bytes: AtomicU64::new(0),
        });
        let mut database = Database {
            state,
            outside,
            damaged_slot: control.damaged,
            given_up: Vec::new(),
            maintenance: None,
            renewal: None,
            live: None,
            closed: false,
            _lock: lock,
        };
        if let Some((number, _)) = database.damaged_slot.as_ref().filter(|_| mode != OpenMode::Read) {
            empty_slot(storage.as_ref(), directory, *number)?;
        }
        drop(passage);
        match logged {
            Some((checkpoint, durable)) => {
                let other_has_no_log = control.other.is_some_and(|other| other.checkpoint == 0);
                database.given_up = match database.recover(&checkpoint, durable, other_has_no_log, without) {
                    Ok(given_up) => given_up,
                    Err(error) => {
                        // What is in memory is half of it: nothing of that must become a checkpoint.
                        database.closed = true;
                        return Err(error);
                    }
                };
            }
            None => database.settle_files()?,
        }
        if mode != OpenMode::Read && settings.pools.background_threads > 0 {
            database.maintenance = MaintenanceThread::start(&database.state);
            database.renewal = MaintenanceThread::start_renewal(&database.state);
            database.live = LiveThread::start(&database.state);
        }
        Ok(database)
    }

    /// Starts a change of what there is. It waits at most as long as a transaction does by default for those who change rows of the tables that it replaces, drops or builds indexes of.
    #[must_use]
    pub fn change(&self) -> Change<'_> {
        self.change_within(TransactionOptions::default().lock_timeout)
    }

    /// The same, with another time to wait for a lock.
    #[must_use]
    pub fn change_within(&self, lock_timeout: Duration) -> Change<'_> {
        Change::new(self, lock_timeout)
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.core.directory
    }

    /// The buffer manager.
    #[must_use]
    pub fn manager(&self) -> &Arc<BufferManager> {
        &self.core.manager
    }

    /// The storage as others see it: where files that have nothing to do with the database are read and written.
    #[must_use]
    pub fn outside(&self) -> &Arc<dyn Storage> {
        &self.outside
    }

    /// The storage of the database. That of a reader shows it one state of its files; what is written to it nobody else sees, and it goes with the reader.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.core.storage
    }

    /// Where utilities put temporary files (`*.tmp`); what a crash leaves there is removed when the database is next opened for writing.
    #[must_use]
    pub fn temporary_directory(&self) -> PathBuf {
        self.core.directory.join(DATA_DIRECTORY)
    }

    /// The tables that it was opened [without](Self::open_giving_up).
    #[must_use]
    pub fn given_up(&self) -> &[GivenUp] {
        &self.given_up
    }

    /// What is wrong with the control slot that is not in use.
    #[must_use]
    pub fn damaged_control_slot(&self) -> Option<(usize, &str)> {
        self.damaged_slot.as_ref().map(|(number, reason)| (*number, reason.as_str()))
    }
}

impl DatabaseState {
    /// Removes the data sets that nothing names. One whose name comes back after a crash is removed again, so nothing is synced. One that is missing is
    /// missed by whoever uses it: the others have nothing to do with that.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn settle_files(&self) -> Result<()> {
        let core = &self.core;
        let mut described = BTreeSet::new();
        let mut named: BTreeSet<u32> = {
            let objects = self.objects.read();
            for (entry, _) in objects.described_files()? {
                core.see_file_id(entry.file_id);
                // One that has no file at the checkpoint, and nothing in the log, must not have one.
                if entry.header_writes.is_some() {
                    described.insert(entry.file_id);
                }
            }
            objects.open_data_sets().map(|data_set| data_set.file_id()).chain([objects.catalog.file_id()]).collect()
        };
        named.extend(self.other_catalog.lock().as_ref().map(|catalog| catalog.file_id()));
        let data = core.directory.join(DATA_DIRECTORY);
        let files = core.storage.list(&data)?;
        if core.writable {
            let _passage = core.pass()?;
            let is_named = |file_id| named.contains(&file_id) || described.contains(&file_id);
            // Their numbers are not given again.
            remove_all_but(core.storage.as_ref(), files, is_named)?.iter().for_each(|(file_id, _)| core.see_file_id(*file_id));
        }
        Ok(())
    }
}

/// Removes those of the files that are data sets and not `named`, and temporary files. Data sets that the system does not let it remove stay: which these are, and why.
fn remove_all_but(storage: &dyn Storage, files: Vec<PathBuf>, named: impl Fn(u32) -> bool) -> Result<Vec<(u32, Error)>> {
    let mut stay = Vec::new();
    for path in files {
        let temporary = path.extension().is_some_and(|e| e == "tmp");
        if temporary || file_id_of(&path).is_some_and(|id| !named(id)) {
            match storage.remove(&path).map_err(Error::from) {
                Err(error) if error.is_refusal() => stay.extend(file_id_of(&path).map(|file_id| (file_id, error))),
                removed => removed?,
            }
        }
    }
    Ok(stay)
}

/// The data set of a catalog that is not read.
fn unopened_catalog(core: &Arc<Core>, file_id: u32) -> Result<Arc<DataSet>> {
    let space = Table::create(Arc::clone(core), CATALOG_OBJECT, catalog_attributes()?)?;
    core.data_set(catalog_data_set(&space, file_id), &space.attributes().pool)
}

fn create_first_state(core: &Arc<Core>) -> Result<()> {
    let catalog = write_catalog_data_set(core, std::iter::empty())?;
    core.storage.sync_directory(&core.directory.join(DATA_DIRECTORY))?;
    let state = control_state(core, 1, &catalog);
    create_control(core.storage.as_ref(), &core.directory, &state)?;
    core.manager.discard(&catalog);
    Ok(())
}

/// Writes a complete catalog as a fresh data set and syncs it.
pub(super) fn write_catalog_data_set<'a>(
    core: &Arc<Core>,
    definitions: impl Iterator<Item = Result<(u32, Cow<'a, [u8]>)>>,
) -> Result<Arc<DataSet>> {
    let space = Table::create(Arc::clone(core), CATALOG_OBJECT, catalog_attributes()?)?;
    let data_set = Arc::clone(space.add_partition()?);
    // An empty catalog has a file too.
    data_set.file()?;
    write_catalog(&space, definitions)?;
    core.manager.flush(&data_set)?;
    Ok(data_set)
}

pub(super) fn control_state(core: &Core, sequence: u64, catalog: &DataSet) -> ControlSlot {
    let (next_file_id, next_object_id) = core.next_ids();
    ControlSlot {
        sequence,
        database_id: core.database_id,
        catalog_file_id: catalog.file_id(),
        catalog_writes: catalog.header_writes(),
        next_file_id,
        next_object_id,
        checkpoint: core.checkpoint.load(Ordering::Relaxed),
        log_id: core.log_id,
    }
}

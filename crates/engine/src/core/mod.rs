//! What all objects of an open database share: storage, directory, ids, buffer pools.
//!
//! * `lifetime`: between which commits a table or index counts
//! * `leftovers`, `held`: what commits leave for older snapshots
//! * `reservations`: room for taking changes back
//! * `running`: utilities that run, for who looks on
//! * `maintenance`, `renewal_waits`: what threads in the background are asked for, and what waits for transactions

mod held;
mod leftovers;
mod lifetime;
mod maintenance;
mod renewal_waits;
mod reservations;
mod running;

pub(crate) use held::Waits;
pub(crate) use leftovers::{Due, Leftovers};
pub(crate) use lifetime::Lifetime;
pub(crate) use maintenance::{Maintenance, Work};
use renewal_waits::RenewalWaits;
use reservations::Reservations;
use running::RunningUtilities;
pub(crate) use running::RunningUtility;
pub use running::Watched;

use crate::changed_list::ChangedList;
use crate::data_set::{DataSet, DataSetAttributes, DataSetContext, HeaderWrites};
use crate::directory::{DOUBLE_WRITE_NAME, LOG_DIRECTORY, data_set_path, scratch_file};
use crate::gate::{Gate, Passage};
use crate::log::{Log, LogSettings};
use crate::open_files::OpenFiles;
use crate::pool::double_write::DoubleWrite;
use crate::pool::{BufferManager, LogSink, Protection};
use crate::transaction::{Births, LockTable, MarkLimits, Moves, OpenScratch, Serializable, TransactionState, Transactions, VersionStore};
use crate::{Error, Result, spans};
use pagefold_format::log::{Commit, Lsn, RecordKind};
use pagefold_io::Storage;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The pool for non-leaf pages of folded indexes.
const NON_LEAF_POOL: &str = "N4K";

/// Shared by all objects of an open database.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: PathBuf,
    pub(crate) database_id: u128,
    pub(crate) log_id: u128,
    pub(crate) manager: Arc<BufferManager>,
    pub(crate) direct: bool,
    pub(crate) writable: bool,
    /// The files are a reader's own: they may be changed although the database may not.
    pub(crate) private: bool,
    next_file_id: AtomicU32,
    next_object_id: AtomicU32,
    /// Data sets that were used since the last checkpoint looked.
    pub(crate) changed_list: Arc<ChangedList>,
    /// Files of data sets that are open.
    pub(crate) files: Arc<OpenFiles>,
    poison: OnceLock<String>,
    closed: AtomicBool,
    /// The log; not there before the first transaction that writes.
    pub(crate) log: OnceLock<Arc<Log>>,
    pub(crate) log_settings: LogSettings,
    double_write_bytes: u64,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) maintenance: Maintenance,
    /// What is to be done that takes long: dictionaries.
    pub(crate) renewal: Maintenance,
    pub(crate) renewal_waits: RenewalWaits,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) versions: VersionStore,
    pub(crate) locks: LockTable,
    /// A transaction with so many locks asks for a table instead of its rows.
    pub(crate) row_locks_max: usize,
    pub(crate) serializable: Serializable,
    pub(crate) leftovers: Leftovers,
    pub(crate) reservations: Reservations,
    pub(crate) births: Births,
    /// Where rows are that were put elsewhere.
    pub(crate) moves: Moves,
    /// Utilities that run.
    pub(crate) running: RunningUtilities,
    /// Start of the record of the last checkpoint; 0: none yet.
    pub(crate) checkpoint: AtomicU64,
    /// From here on the last checkpoint but one needs the log.
    pub(crate) keep_log: AtomicU64,
    /// Where log goes that recovery does not need any more.
    pub(crate) archive: Mutex<Option<PathBuf>>,
    /// The time in the last record of a commit. Held while the next one is logged: so times in the log never go back while the database is open.
    pub(crate) last_commit_ns: Mutex<u64>,
}

/// Everything a [`Core`] is made of.
pub(crate) struct CoreParts {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: PathBuf,
    pub(crate) database_id: u128,
    pub(crate) log_id: u128,
    pub(crate) manager: Arc<BufferManager>,
    pub(crate) direct: bool,
    pub(crate) writable: bool,
    /// The files are a reader's own: they may be changed although the database may not.
    pub(crate) private: bool,
    pub(crate) next_file_id: u32,
    pub(crate) next_object_id: u32,
    pub(crate) log_settings: LogSettings,
    pub(crate) checkpoint: u64,
    pub(crate) version_bytes: u64,
    pub(crate) version_file_bytes: u64,
    pub(crate) row_locks_max: usize,
    pub(crate) double_write_bytes: u64,
    pub(crate) archive: Option<PathBuf>,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) open_files_max: usize,
}

impl Core {
    pub(crate) fn new(parts: CoreParts) -> Core {
        let transactions = Arc::new(Transactions::new(Arc::clone(parts.manager.clock()), 1));
        let (storage, directory) = (Arc::clone(&parts.storage), parts.directory.clone());
        let version_file: OpenScratch = Box::new(move || scratch_file(storage.as_ref(), &directory, "versions"));
        Core {
            storage: parts.storage,
            directory: parts.directory,
            database_id: parts.database_id,
            log_id: parts.log_id,
            manager: parts.manager,
            direct: parts.direct,
            writable: parts.writable,
            private: parts.private,
            next_file_id: AtomicU32::new(parts.next_file_id),
            next_object_id: AtomicU32::new(parts.next_object_id),
            changed_list: Arc::default(),
            files: Arc::new(OpenFiles::new(parts.open_files_max)),
            poison: OnceLock::new(),
            closed: AtomicBool::new(false),
            log: OnceLock::new(),
            log_settings: parts.log_settings,
            double_write_bytes: parts.double_write_bytes,
            checkpoint_bytes: parts.checkpoint_bytes,
            maintenance: Maintenance::default(),
            renewal: Maintenance::default(),
            renewal_waits: RenewalWaits::default(),
            versions: VersionStore::new(Arc::clone(&transactions), parts.version_bytes).with_file(version_file, parts.version_file_bytes),
            locks: LockTable::new(),
            row_locks_max: parts.row_locks_max,
            serializable: Serializable::new(Arc::clone(&transactions), MarkLimits::default()),
            leftovers: Leftovers::default(),
            reservations: Reservations::default(),
            births: Births::default(),
            moves: Moves::default(),
            running: RunningUtilities::default(),
            transactions,
            checkpoint: AtomicU64::new(parts.checkpoint),
            keep_log: AtomicU64::new(0),
            archive: Mutex::new(parts.archive),
            last_commit_ns: Mutex::default(),
        }
    }

    /// A file id never used before.
    pub(crate) fn take_file_id(&self) -> u32 {
        self.next_file_id.fetch_add(1, Ordering::Relaxed)
    }

    /// An object id never used before.
    pub(crate) fn take_object_id(&self) -> u32 {
        self.next_object_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The ids that come next.
    pub(crate) fn next_ids(&self) -> (u32, u32) {
        (self.next_file_id.load(Ordering::Relaxed), self.next_object_id.load(Ordering::Relaxed))
    }

    /// Passes the gate, before a change of what a reader that registers needs.
    pub(crate) fn pass(&self) -> Result<Option<Passage<'_>>> {
        self.manager.gate().map(Gate::pass).transpose()
    }

    /// After this nothing is written until the database is opened again.
    pub(crate) fn poison(&self, reason: &impl ToString) {
        let reason = reason.to_string();
        spans::poisoned(&self.directory, &reason);
        let _ = self.poison.set(reason);
    }

    /// The database is closed: who still has something of it does nothing more with it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Refuses when the database is closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed(self.directory.display().to_string())),
            false => Ok(()),
        }
    }

    /// Refuses when the database is closed or open for reading only, or something failed that left its state in doubt.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if let Some(reason) = self.poison.get() {
            return Err(Error::Poisoned(reason.clone()));
        }
        self.check_open()?;
        if self.writable { Ok(()) } else { Err(Error::ReadOnly(self.directory.display().to_string())) }
    }

    fn context(&self, attributes: &DataSetAttributes, pool: &str) -> Result<DataSetContext> {
        let leaf_pool = self.manager.pool(pool, attributes.leaf_bytes)?;
        let other_pool = if attributes.leaf_bytes == attributes.page_bytes {
            Arc::clone(&leaf_pool)
        } else {
            self.manager.pool(NON_LEAF_POOL, attributes.page_bytes)?
        };
        Ok(DataSetContext {
            database_id: self.database_id,
            storage: Arc::clone(&self.storage),
            path: data_set_path(&self.directory, attributes.file_id),
            direct: self.direct,
            pools: [leaf_pool, other_pool],
            files: Arc::clone(&self.files),
            changed_list: Arc::clone(&self.changed_list),
        })
    }

    /// Redo has met a file id: new ones are higher.
    pub(crate) fn see_file_id(&self, file_id: u32) {
        self.next_file_id.fetch_max(file_id.saturating_add(1), Ordering::Relaxed);
    }

    /// Redo has met an object id: new ones are higher.
    pub(crate) fn see_object_id(&self, object_id: u32) {
        self.next_object_id.fetch_max(object_id.saturating_add(1), Ordering::Relaxed);
    }

    /// A fresh data set, without a file yet.
    pub(crate) fn create_data_set(&self, mut attributes: DataSetAttributes, pool: &str) -> Result<Arc<DataSet>> {
        self.check_writable()?;
        attributes.file_id = self.take_file_id();
        let context = self.context(&attributes, pool)?;
        let data_set = Arc::new(DataSet::new(attributes, context));
        self.manager.register(&data_set);
        data_set.set_unrecorded();
        Ok(data_set)
    }

    /// A data set that the log or the catalog names, unopened.
    pub(crate) fn data_set(&self, attributes: DataSetAttributes, pool: &str) -> Result<Arc<DataSet>> {
        let context = self.context(&attributes, pool)?;
        let data_set = Arc::new(DataSet::new(attributes, context));
        data_set.set_logged();
        Ok(data_set)
    }

    /// An existing data set, opened when it is known to have a file. One that has got a file since the last checkpoint gets it again from the log.
    pub(crate) fn open_data_set(
        &self,
        attributes: DataSetAttributes,
        pool: &str,
        header_writes: Option<HeaderWrites>,
    ) -> Result<Arc<DataSet>> {
        let data_set = self.data_set(attributes, pool)?;
        match header_writes {
            Some(writes) => {
                data_set.set_recovering(matches!(writes, HeaderWrites::AtLeast(_)));
                data_set.open(self.writable || self.private, writes)?;
            }
            None if self.writable || self.private => data_set.remove()?,
            None => {}
        }
        self.manager.register(&data_set);
        Ok(data_set)
    }

    /// The log, if there is one.
    pub(crate) fn log(&self) -> Option<&Arc<Log>> {
        self.log.get()
    }

    /// The file of double writes, made if there is none, or none that can be used: what recovery could take from it has been taken. `None` for a reader: what it writes is nobody's but its own,
    /// and gone with it.
    ///
    /// # Errors
    /// When it cannot be made, or is of a newer format.
    pub(crate) fn open_double_write(&self) -> Result<Option<DoubleWrite>> {
        if !self.writable {
            return Ok(None);
        }
        let (path, sync) = (self.double_write_path(), self.log_settings.sync);
        let open = || DoubleWrite::create_or_open(self.storage.as_ref(), &path, self.database_id, self.double_write_bytes, sync);
        match open() {
            Err(Error::Damaged { .. }) => {
                self.storage.remove(&path)?;
                open().map(Some)
            }
            opened => opened.map(Some),
        }
    }

    /// From now on changes of what the catalog names go to this log, and its pages are written twice.
    pub(crate) fn set_log(&self, log: Log, double_write: Option<DoubleWrite>) {
        let log = Arc::new(log);
        self.manager.set_protection(Protection { log: Arc::clone(&log) as Arc<dyn LogSink>, double_write });
        let _ = self.log.set(log);
    }

    /// Where pages are written before they are written in place.
    fn double_write_path(&self) -> PathBuf {
        self.directory.join(DOUBLE_WRITE_NAME)
    }

    /// Where the log lies.
    pub(crate) fn log_directory(&self) -> PathBuf {
        self.directory.join(LOG_DIRECTORY)
    }

    /// Puts the record of a transaction's commit into the log; where that ends. `None` when there is nothing to commit.
    pub(crate) fn log_commit(&self, state: &TransactionState) -> Result<Option<Lsn>> {
        let Some(log) = self.log().filter(|_| state.last_lsn() != 0) else { return Ok(None) };
        let mut body = Vec::new();
        let mut last_commit_ns = self.last_commit_ns.lock();
        let unix_time_ns = (self.manager.clock().unix_time().as_nanos() as u64).max(*last_commit_ns);
        *last_commit_ns = unix_time_ns;
        Commit { transaction: state.id(), unix_time_ns }.encode(&mut body);
        // A checkpoint behind this record must not call the transaction running: recovery would not see the record, and take everything back.
        let place = LogSink::append(log.as_ref(), RecordKind::Commit, &[&body], &mut |_| state.note_commit_logged())?;
        Ok(Some(place.end))
    }

    /// A transaction that is ended, and still has the locks of its rows, keeps no room any more for being taken back.
    pub(crate) fn release_undo_room(&self, state: &TransactionState) {
        self.reservations.release(state);
        let bytes = state.take_undo_bytes();
        if let Some(log) = self.log() {
            log.keep_for_undo(-(bytes as i64));
        }
    }

    /// Takes a data set out of memory and removes its file.
    pub(crate) fn drop_data_set(&self, data_set: &DataSet) -> Result<()> {
        self.manager.discard(data_set);
        data_set.remove()
    }
}

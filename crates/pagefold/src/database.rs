//! A database, and how it is opened.

use crate::transaction::Transaction;
use crate::{Error, Result};
use pagefold_engine::database::{self as engine, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::RecordOptions;
use pagefold_io::{Clock, MemoryStorage, OsClock, OsStorage, Storage};
#[cfg(feature = "arrow")]
use pagefold_utility::{FreshCounts, FreshOptions, FreshStatistics};
use std::path::Path;
use std::sync::Arc;

/// How often a transaction that others were in the way of is begun again.
const TRIES: u32 = 20;

/// An open database: a directory. A clone is the same one; the last of them, and of its transactions, closes it.
#[derive(Clone, Debug)]
pub struct Database {
    /// What keeps statistics fresh; before what it works on, so that it has ended when that is closed.
    #[cfg(feature = "arrow")]
    fresh: Option<Arc<FreshStatistics>>,
    inner: Arc<engine::Database>,
    /// What speaks SQL over it, from the first statement on.
    #[cfg(feature = "sql")]
    pub(crate) sql: Arc<crate::sql::Speaking>,
}

/// How a database is opened: [`Database::options`].
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "arrow"), derive(Default))]
pub struct Options {
    settings: Settings,
    #[cfg(feature = "arrow")]
    fresh: Option<FreshOptions>,
}

#[cfg(feature = "arrow")]
impl Default for Options {
    fn default() -> Options {
        Options { settings: Settings::default(), fresh: Some(FreshOptions::default()) }
    }
}

impl Options {
    /// Bytes that all buffer pools take together.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> Options {
        self.settings.pools.memory_bytes = bytes;
        self
    }

    /// Bytes that old versions of rows may take in memory.
    #[must_use]
    pub fn version_bytes(mut self, bytes: u64) -> Options {
        self.settings.version_bytes = bytes;
        self
    }

    /// Bytes that those for which this is not enough may take in a file, which goes with the process. Below 256 KB there is none: then a
    /// transaction that changes more rows than the memory takes is refused.
    #[must_use]
    pub fn version_file_bytes(mut self, bytes: u64) -> Options {
        self.settings.version_file_bytes = bytes;
        self
    }

    /// A transaction that has locked so many rows asks for the whole table, if nobody else changes it just now.
    #[must_use]
    pub fn row_locks_max(mut self, rows: usize) -> Options {
        self.settings.row_locks_max = rows;
        self
    }

    /// When and how statistics are gathered again in the background, of a sample; `None`: never. By default when 10 % of a table's rows
    /// have changed, and 1,000 at least ([`FreshOptions`]). A database that is open for reading has no such thread.
    #[cfg(feature = "arrow")]
    #[must_use]
    pub fn fresh_statistics(mut self, fresh: Option<FreshOptions>) -> Options {
        self.fresh = fresh;
        self
    }

    /// Opens the database in a directory, for reading and writing.
    ///
    /// # Errors
    /// When there is none, it is damaged or of a newer format, another process writes it, or the directory cannot be used.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Database> {
        self.at(Arc::new(OsStorage), directory.as_ref(), OpenMode::Write)
    }

    /// Opens the database in a directory, and makes it when there is none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn create(self, directory: impl AsRef<Path>) -> Result<Database> {
        self.at(Arc::new(OsStorage), directory.as_ref(), OpenMode::Create)
    }

    /// Opens the database in a directory for reading: what was committed when it was opened, beside a process that may write.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(self, directory: impl AsRef<Path>) -> Result<Database> {
        self.at(Arc::new(OsStorage), directory.as_ref(), OpenMode::Read)
    }

    /// A new database in memory, which goes with its last handle.
    ///
    /// # Errors
    /// When the settings do not fit each other.
    pub fn in_memory(self) -> Result<Database> {
        self.at(Arc::new(MemoryStorage::new()), Path::new("memory"), OpenMode::Create)
    }

    fn at(self, storage: Arc<dyn Storage>, directory: &Path, mode: OpenMode) -> Result<Database> {
        let clock: Arc<dyn Clock> = Arc::new(OsClock);
        let database = Database::from(engine::Database::open(storage, clock, directory, mode, self.settings)?);
        #[cfg(feature = "arrow")]
        let database = match self.fresh.filter(|_| mode != OpenMode::Read) {
            Some(fresh) => Database { fresh: FreshStatistics::start(&database.inner, fresh).map(Arc::new), ..database },
            None => database,
        };
        Ok(database)
    }
}

impl Database {
    /// Settings to open one with.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    /// Opens the database in a directory, for reading and writing: [`Options::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open(directory: impl AsRef<Path>) -> Result<Database> {
        Options::default().open(directory)
    }

    /// Opens the database in a directory, and makes it when there is none: [`Options::create`].
    ///
    /// # Errors
    /// As there.
    pub fn create(directory: impl AsRef<Path>) -> Result<Database> {
        Options::default().create(directory)
    }

    /// A new database in memory: [`Options::in_memory`].
    ///
    /// # Errors
    /// As there.
    pub fn in_memory() -> Result<Database> {
        Options::default().in_memory()
    }

    /// Begins a transaction: READ COMMITTED, durable.
    #[must_use]
    pub fn begin(&self) -> Transaction {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction that changes nothing and sees one state of the database for as long as it is open.
    #[must_use]
    pub fn begin_read(&self) -> Transaction {
        let isolation = engine::Isolation::RepeatableRead;
        self.begin_with(TransactionOptions { isolation, read_only: true, ..TransactionOptions::default() })
    }

    /// Begins a transaction.
    #[must_use]
    pub fn begin_with(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(self.inner.begin_owned(options))
    }

    /// Runs something in a transaction and commits it. When others were in the way (a deadlock, a conflict, no serial order) it is run again, from the beginning, up to twenty times.
    ///
    /// # Errors
    /// That of `work`, or of the commit; nothing has happened then.
    pub fn write<T, E: From<Error>>(&self, mut work: impl FnMut(&Transaction) -> std::result::Result<T, E>) -> std::result::Result<T, E> {
        let mut tries = 0;
        loop {
            tries += 1;
            let transaction = self.begin();
            let done = work(&transaction);
            // What only rollback is left of has failed, whatever `work` made of it.
            match (transaction.is_retryable(), done) {
                (true, _) if tries < TRIES => transaction.rollback()?,
                (_, Err(error)) => return Err(error),
                (_, Ok(value)) => match transaction.commit() {
                    Ok(()) => return Ok(value),
                    Err(error) if error.is_retryable() && tries < TRIES => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }

    /// What the database does, as text in the Prometheus format, for a program's own HTTP server: buffer pools, tables and indexes, transactions, locks and who waits for whom, the log, utilities with
    /// their progress. `pagefold top` shows the same from another process.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.inner.metrics()
    }

    /// From now on records which keys of an index are asked for, while it is used, until [`stop_recording_keys`](Self::stop_recording_keys): for `pagefold page-sizes --trace`. What is kept is bounded;
    /// when it has come to its limit, recording ends by itself. An index that is built anew in the meantime is another one: of it nothing is recorded.
    ///
    /// # Errors
    /// When there is no such index, its keys are being recorded already, or a page of it cannot be read.
    pub fn record_keys(&self, index: &str, options: &RecordOptions) -> Result<()> {
        self.inner.index(index)?.record_keys(options)
    }

    /// Ends recording, and gives the trace as the content of a file; `None` when nothing was recorded.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn stop_recording_keys(&self, index: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.inner.index(index)?.stop_recording_keys().map(|trace| trace.encode()))
    }

    /// Closes the database in order. Dropping the last handle does the same, but keeps errors to itself.
    ///
    /// # Errors
    /// [`Error::Busy`] when there are other handles or transactions. When something cannot be written: the next open then brings the database in order.
    pub fn close(self) -> Result<()> {
        #[cfg(feature = "sql")]
        drop(self.sql);
        #[cfg(feature = "arrow")]
        drop(self.fresh);
        match Arc::into_inner(self.inner) {
            Some(inner) => inner.close(),
            None => Err(Error::Busy("the database has other handles, or transactions; the last of them closes it".into())),
        }
    }

    /// What the thread that keeps statistics fresh has done; `None` when there is none.
    #[cfg(feature = "arrow")]
    #[must_use]
    pub fn fresh_statistics(&self) -> Option<FreshCounts> {
        self.fresh.as_ref().map(|fresh| fresh.counts())
    }

    /// The engine's own interface, for tools.
    #[must_use]
    pub fn engine(&self) -> &Arc<engine::Database> {
        &self.inner
    }
}

impl From<engine::Database> for Database {
    /// One that is open already.
    fn from(inner: engine::Database) -> Database {
        Database {
            #[cfg(feature = "arrow")]
            fresh: None,
            inner: Arc::new(inner),
            #[cfg(feature = "sql")]
            sql: Arc::default(),
        }
    }
}

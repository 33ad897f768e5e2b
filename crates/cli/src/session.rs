//! What all commands share: options, progress bars, clock, standard output, opening a database.

use crate::arguments::{DateOrderArgument, Global, HeaderArgument, TextArguments};
use crate::failure::{Failure, Result};
use crate::pattern;
use crate::progress::{self, Bars};
use crate::size::{ByteSize, size_text};
use pagefold::engine::{Database, GiveUp, OpenMode, PoolSettings, Settings};
use pagefold::interchange::{CsvOptions, DateOrder, Header, STANDARD_INPUT};
use pagefold::io::{Clock, OpenOptions, OsClock, OsStorage, Storage};
use pagefold::sql::Analytics;
use pagefold::utility::{Progress, Unit};
use serde_json::Value as Json;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The least memory that pools can work with.
const MEMORY_MIN: u64 = 4 << 20;
const MEMORY_MAX: u64 = 1 << 40;
const MEMORY_DEFAULT: u64 = 256 << 20;
/// Between two looks at whether another process still writes.
const WAIT_STEP: Duration = Duration::from_millis(20);
/// Keys are sorted in at most this.
const SORT_BYTES_MAX: u64 = 64 << 20;

/// A running command.
pub(crate) struct Session {
    pub(crate) global: Global,
    pub(crate) bars: Bars,
    /// Who runs large queries by batches.
    analytics: Option<Arc<dyn Analytics>>,
    start: Duration,
    start_cpu: Duration,
}

impl Session {
    pub(crate) fn new(global: Global, analytics: Option<Arc<dyn Analytics>>) -> Session {
        Session { global, bars: Bars::default(), analytics, start: OsClock.monotonic(), start_cpu: OsClock.process_cpu() }
    }

    /// A database that speaks SQL.
    pub(crate) fn speaking(&self, database: Database) -> pagefold::Database {
        let database = pagefold::Database::from(database);
        match &self.analytics {
            Some(analytics) => database.with_analytics(Arc::clone(analytics)),
            None => database,
        }
    }

    /// Seconds since the command began.
    pub(crate) fn elapsed_s(&self) -> f64 {
        (OsClock.monotonic() - self.start).as_secs_f64()
    }

    /// Processor seconds of all threads since the command began.
    pub(crate) fn cpu_s(&self) -> f64 {
        (OsClock.process_cpu() - self.start_cpu).as_secs_f64()
    }

    /// Memory of the buffer pools.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.global.memory.map_or(MEMORY_DEFAULT, |memory| memory.0)
    }

    /// Memory for sorting keys: that of the pools, within bounds.
    pub(crate) fn sort_bytes(&self) -> usize {
        self.memory_bytes().clamp(MEMORY_MIN, SORT_BYTES_MAX) as usize
    }

    /// Settings of databases.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let memory = self.memory_bytes();
        if !(MEMORY_MIN..=MEMORY_MAX).contains(&memory) {
            return Err(Failure::Usage(format!(
                "--memory {} is not between {} and {}",
                size_text(memory),
                size_text(MEMORY_MIN),
                size_text(MEMORY_MAX)
            )));
        }
        let ByteSize(io) = self.global.io_size;
        if !(32 << 10..=4 << 20).contains(&io) {
            return Err(Failure::Usage(format!("--io-size {} is not between 32 KB and 4 MB", self.global.io_size)));
        }
        let pools = PoolSettings {
            memory_bytes: memory as usize,
            background_threads: usize::from(self.global.io_threads),
            bytes_per_io: io as usize,
            ..PoolSettings::default()
        };
        Ok(Settings { pools, direct: !self.global.buffered, ..Settings::default() })
    }

    /// Opens a database that is there.
    pub(crate) fn open(&self, directory: &Path, mode: OpenMode) -> Result<Database> {
        Ok(self.try_to_open(directory, mode)??)
    }

    /// The same; what keeps it from being opened is inside.
    pub(crate) fn try_to_open(&self, directory: &Path, mode: OpenMode) -> Result<pagefold::Result<Database>> {
        if mode == OpenMode::Create {
            // A new database is one already.
            progress::begin_changes();
        }
        let until = self.global.wait.map(|wait| OsClock.monotonic() + wait);
        let mut is_told = false;
        loop {
            match pagefold::engine::open(directory, mode, self.settings()?) {
                Err(pagefold::Error::Locked(..)) if until.is_some_and(|until| OsClock.monotonic() < until) => {
                    if !std::mem::replace(&mut is_told, true) {
                        self.bars.start("waiting for another process that writes", None, Unit::Rows);
                    }
                    if progress::interrupted() {
                        return Err(Failure::Failed("interrupted; the database is as it was".into()));
                    }
                    OsClock.sleep(WAIT_STEP);
                }
                opened => {
                    self.bars.clear();
                    if mode != OpenMode::Read && opened.is_ok() {
                        // From here on something is to be taken back.
                        progress::begin_changes();
                    }
                    return Ok(opened);
                }
            }
        }
    }

    /// Opens a database that cannot be recovered because of damage to these tables, without them; `None` when that is not what keeps it.
    pub(crate) fn open_giving_up(&self, directory: &Path, tables: &[String]) -> Result<Option<Database>> {
        let without = GiveUp::Tables(tables);
        match Database::open_giving_up(Arc::new(OsStorage), Arc::new(OsClock), directory, self.settings()?, without) {
            // One that could be recovered meanwhile still has them.
            Ok(database) => Ok(Some(database).filter(|database| !database.given_up().is_empty())),
            Err(error) if error.is_damage() => {
                let then = "where several tables keep it from being opened, `pagefold drop` wants all of them at once";
                Err(Failure::Failed(format!("{error}; the database cannot be opened without {}: {then}", tables.join(", "))))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a database, or makes one where nothing is. True when it is new.
    pub(crate) fn open_or_create(&self, directory: &Path) -> Result<(Database, bool)> {
        let new = !OsStorage.exists(&directory.join("control"))?;
        Ok((self.open(directory, OpenMode::Create)?, new))
    }

    /// Prints a JSON document.
    pub(crate) fn print_json(&self, document: &Json) -> Result<()> {
        let mut out = stdout();
        serde_json::to_writer_pretty(&mut out, document).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Says what has been done, in one form or the other. What is done stays done when nobody can be told: then a line on standard error says so.
    pub(crate) fn told(&self, told: Result<()>) -> Result<()> {
        match told {
            Err(Failure::Failed(reason)) => {
                self.bars.clear();
                let _ = writeln!(std::io::stderr(), "pagefold: done, but what was done could not be printed: {reason}");
                Ok(())
            }
            told => told,
        }
    }

    /// Prints text; an end of line is added.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut out = stdout();
        writeln!(out, "{}", text.trim_end_matches('\n'))?;
        Ok(out.flush()?)
    }
}

/// Standard output, in large steps.
pub(crate) fn stdout() -> BufWriter<std::io::Stdout> {
    BufWriter::with_capacity(64 * 1024, std::io::stdout())
}

/// The files that these names and patterns stand for. Refuses those that are not there or cannot be read, before anything is made.
pub(crate) fn find_files(names: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        if name.as_os_str() == STANDARD_INPUT {
            files.push(name.clone());
            continue;
        }
        // A file of just this name comes first.
        if OsStorage.exists(name)? || !pattern::is_pattern(name) {
            OsStorage.open(name, &OpenOptions::read_only())?;
            files.push(name.clone());
            continue;
        }
        let found = pattern::find(&OsStorage, name)?;
        if found.is_empty() {
            return Err(Failure::Failed(format!("{}: no file has such a name", name.display())));
        }
        files.extend(found);
    }
    Ok(files)
}

/// Is it a copy, and not the directory of a database?
pub(crate) fn is_copy(path: &Path) -> bool {
    OsStorage.list(path).is_err_and(|error| error.kind() == ErrorKind::NotADirectory)
}

/// Removes a database that this command made and did not fill.
pub(crate) fn remove_new_database(directory: &Path) {
    // Whatever cannot be removed stays: a database without tables.
    for inside in [directory.join("data"), directory.join("readers"), directory.join("log"), directory.to_path_buf()] {
        for path in OsStorage.list(&inside).unwrap_or_default() {
            let _ = OsStorage.remove(&path);
        }
        let _ = OsStorage.remove_directory(&inside);
    }
}

/// Page sizes beyond what a machine word holds are refused like any other wrong one, by the engine.
pub(crate) fn page_bytes(size: ByteSize) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

fn character(option: &str, text: &str) -> Result<u8> {
    let text = if text == "\\t" { "\t" } else { text };
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Failure::Usage(format!("{option} \"{text}\" is not one ASCII character"))),
    }
}

impl TextArguments {
    /// As the reader and writer take them.
    pub(crate) fn options(&self) -> Result<CsvOptions> {
        let one = |option: &str, text: &Option<String>| text.as_deref().map(|text| character(option, text)).transpose();
        Ok(CsvOptions {
            header: match self.header {
                HeaderArgument::Auto => Header::Auto,
                HeaderArgument::Yes => Header::Yes,
                HeaderArgument::No => Header::No,
            },
            delimiter: one("--delimiter", &self.delimiter)?,
            quote: match self.quote.as_deref() {
                None => None,
                Some("none") => Some(None),
                Some(text) => Some(Some(character("--quote", text)?)),
            },
            escape: one("--escape", &self.escape)?,
            null: self.null.clone(),
            skip: self.skip,
            date_order: self.date_order.map(|order| match order {
                DateOrderArgument::Dmy => DateOrder::DayMonthYear,
                DateOrderArgument::Mdy => DateOrder::MonthDayYear,
            }),
            ..CsvOptions::default()
        })
    }
}

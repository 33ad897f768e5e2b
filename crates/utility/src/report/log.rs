//! The log, by its files.

use crate::Result;
use pagefold_engine::LOG_DIRECTORY;
use pagefold_engine::database::{Database, archive_state};
use pagefold_engine::directory::read_control;
use pagefold_io::OpenOptions;
use serde_json::{Value, json};

/// The log of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// Segments with records that may be needed.
    pub segments: u64,
    /// Segments that wait to be used again.
    pub spare_segments: u64,
    /// Segments that recovery does not need, and that wait to be archived.
    pub waiting_segments: u64,
    /// Why they wait, as far as that can be seen.
    pub archive_problem: Option<String>,
    /// Where in the stream of records the last checkpoint is.
    pub checkpoint_lsn: u64,
}

impl LogStatistics {
    /// Of a database; `None` when no transaction has written yet.
    pub(super) fn of(database: &Database) -> Result<Option<LogStatistics>> {
        let storage = database.outside().as_ref();
        let checkpoint_lsn = read_control(storage, database.directory())?.current.checkpoint;
        let directory = database.directory().join(LOG_DIRECTORY);
        if checkpoint_lsn == 0 || !storage.exists(&directory)? {
            return Ok(None);
        }
        let mut log = LogStatistics { checkpoint_lsn, ..LogStatistics::default() };
        for path in storage.list(&directory)? {
            // A writer may take it away meanwhile.
            let Ok(file) = storage.open(&path, &OpenOptions::read_only()) else { continue };
            log.size_bytes += file.len()?;
            match path.file_name().and_then(|name| name.to_str()) {
                Some(name) if name.starts_with("spare-") => log.spare_segments += 1,
                Some(name) if name.ends_with(".pfl") => log.segments += 1,
                _ => {}
            }
        }
        if let Some(archive) = archive_state(storage, database.directory())? {
            (log.waiting_segments, log.archive_problem) = (archive.waiting_segments, archive.problem);
        }
        Ok(Some(log))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "size_bytes": self.size_bytes,
            "segments": self.segments,
            "spare_segments": self.spare_segments,
            "checkpoint_lsn": self.checkpoint_lsn,
            "segments_to_archive": self.waiting_segments,
            "archive_problem": self.archive_problem,
        })
    }
}

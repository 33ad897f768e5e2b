//! What runs of sqllogictest corpora have in common: their files, and a session with a database of its own, in memory.

use crate::data::Outcome;
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files with an extension that a path is, or has below it.
///
/// # Errors
/// When a folder cannot be read.
pub fn files(path: &Path, extension: &str, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            files(&entry?.path(), extension, found)?;
        }
    } else if path.extension().is_some_and(|own| own == extension) {
        found.push(path.to_owned());
    }
    Ok(())
}

/// A session with a database of its own, in memory, whose statements end after so many seconds.
///
/// # Errors
/// When the database cannot be made.
pub fn session(timeout_s: u64) -> Outcome<Session> {
    let engine =
        Engine::open(Arc::new(MemoryStorage::new()), Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default())?;
    let mut session = Database::new(Arc::new(engine)).session();
    session.execute(&format!("SET statement_timeout = '{timeout_s}s'"), &[])?.tag()?;
    Ok(session)
}

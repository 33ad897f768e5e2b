//! Databases of pagefold that a program makes for itself.

use crate::data::Outcome;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_io::{OsClock, OsStorage};
use std::path::Path;
use std::sync::Arc;

/// A database in a folder, made if there is none, with so much memory for its pools.
pub fn create(folder: &Path, memory_bytes: usize) -> Outcome<Database> {
    let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
    Ok(Database::open(Arc::new(OsStorage), Arc::new(OsClock), folder, OpenMode::Create, settings)?)
}

//! The simulated disk keeps what it promises, and no more.

mod crashes;
mod faults;

use std::path::Path;
use std::sync::Arc;

use super::{FaultOptions, FaultStorage};
use crate::storage::{File, OpenOptions, Storage, read_exact_at};

fn disk(seed: u64, sector_bytes: u32) -> FaultStorage {
    FaultStorage::new(FaultOptions { seed, sector_bytes, ..FaultOptions::default() })
}

fn create(storage: &FaultStorage, path: &str, content: &[u8]) -> Arc<dyn File> {
    let file = storage.open(Path::new(path), &OpenOptions::create_new()).unwrap();
    file.write_at(content, 0).unwrap();
    file
}

fn sync_root(storage: &FaultStorage) {
    storage.sync_directory(Path::new("/")).unwrap();
}

/// The content of a file, `None` when it is not there.
fn content(storage: &FaultStorage, path: &str) -> Option<Vec<u8>> {
    let file = storage.open(Path::new(path), &OpenOptions::read_only()).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    Some(bytes)
}

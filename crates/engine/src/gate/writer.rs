//! The writer's side: nothing that a reader needs is changed while one registers, and no page before those that are registered have it.
//!
//! Invariant: an error of one reader's file is that reader's, not the writer's, as long as the reader can be told.

use super::is_preserved_pages;
use super::locks::{GateLock, share};
use super::preserved::{Registered, entry_at, put_entry};
use crate::directory::{make_directory, readers_directory};
use crate::{Error, Result};
use pagefold_io::{File, OpenOptions, Storage, error_on, read_exact_at};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// What the writing process passes before it changes what a reader needs.
#[derive(Debug)]
pub(crate) struct Gate {
    storage: Arc<dyn Storage>,
    readers: PathBuf,
    database_id: u128,
    /// The newest gate that was seen.
    newest: AtomicU32,
    /// The readers that were met; `None` for one that cannot be served.
    known: Mutex<BTreeMap<PathBuf, Option<Reader>>>,
}

/// A reader that is there.
#[derive(Debug)]
struct Reader {
    file: Arc<dyn File>,
    registered: Registered,
    /// Where the next entry goes.
    end: u64,
    /// Pages that it has, a bit each, by file id.
    has: BTreeMap<u32, Vec<u64>>,
}

impl Reader {
    fn needs(&self, file_id: u32, page: u32, page_bytes: usize) -> bool {
        let end = (u64::from(page) + 1) * page_bytes as u64;
        let was_there = self.registered.lengths.get(&file_id).is_some_and(|length| end <= *length);
        let has =
            || self.has.get(&file_id).and_then(|words| words.get(page as usize / 64)).is_some_and(|word| word >> (page % 64) & 1 == 1);
        was_there && !has()
    }

    fn note(&mut self, file_id: u32, page: u32) {
        let words = self.has.entry(file_id).or_default();
        let at = page as usize / 64;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words[at] |= 1 << (page % 64);
    }
}

/// The right to change what a reader needs, until it is dropped.
#[derive(Debug)]
pub(crate) struct Passage<'a> {
    gate: &'a Gate,
    /// Preserved-pages files.
    files: Vec<PathBuf>,
    _lock: GateLock,
}

impl Gate {
    /// The gate of a database that is about to be written.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(crate) fn new(storage: Arc<dyn Storage>, directory: &Path, database_id: u128) -> Result<Gate> {
        let readers = readers_directory(directory);
        make_directory(storage.as_ref(), &readers)?;
        Ok(Gate { storage, readers, database_id, newest: AtomicU32::new(0), known: Mutex::default() })
    }

    /// Passes, when no reader is registering; no reader registers before the passage is dropped. A reader that takes too long is overtaken.
    ///
    /// # Errors
    /// Those of the device; when somebody else has the lock, and keeps it.
    pub(crate) fn pass(&self) -> Result<Passage<'_>> {
        let (lock, listed) = share(self.storage.as_ref(), &self.readers, &self.newest)?;
        let files = listed.paths.into_iter().filter(|path| is_preserved_pages(path)).collect();
        Ok(Passage { gate: self, files, _lock: lock })
    }

    /// A reader by its file; `None` when it is dead, and its file has been removed.
    fn meet(&self, path: &Path) -> Result<Option<Reader>> {
        if self.is_dead(path)? {
            return Ok(None);
        }
        let file = self.storage.open(path, &OpenOptions::read_write())?;
        let (registered, mut end) = Registered::read(file.as_ref())?;
        if registered.database_id != self.database_id {
            return Err(Error::Damaged { path: path.display().to_string(), reason: "a reader of another database".into() });
        }
        let mut reader = Reader { file, registered, end, has: BTreeMap::new() };
        // What a writer before this one has appended.
        let length = reader.file.len()?;
        while let Some(entry) = entry_at(reader.file.as_ref(), end, length)? {
            if reader.needs(entry.file_id, entry.page, entry.page_bytes) {
                reader.note(entry.file_id, entry.page);
            }
            end = entry.end();
        }
        reader.end = end;
        Ok(Some(reader))
    }

    /// Is the reader of this file gone? Then the file is gone, too.
    fn is_dead(&self, path: &Path) -> Result<bool> {
        let lock = match self.storage.lock(path) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            taken => taken?,
        };
        self.storage.remove(path)?;
        drop(lock);
        Ok(true)
    }
}

impl Passage<'_> {
    /// Is there a reader?
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn meets_reader(&self) -> Result<bool> {
        for path in &self.files {
            if !self.gate.is_dead(path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Preserves pages of a data set that are about to be overwritten, for the readers that need them.
    ///
    /// # Errors
    /// When a reader cannot be served and cannot be told so either.
    pub(crate) fn preserve(&self, file_id: u32, page_bytes: usize, pages: &[u32], file: &dyn File) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let mut known = self.gate.known.lock();
        known.retain(|path, _| self.files.contains(path));
        for path in &self.files {
            if !known.contains_key(path) {
                let reader = match self.gate.meet(path) {
                    Ok(None) => continue,
                    Ok(Some(reader)) => Some(reader),
                    Err(_) => {
                        self.give_up(path)?;
                        None
                    }
                };
                known.insert(path.clone(), reader);
            }
            let Some(reader) = known.get_mut(path).and_then(Option::as_mut) else { continue };
            let needed: Vec<u32> = pages.iter().copied().filter(|page| reader.needs(file_id, *page, page_bytes)).collect();
            if needed.is_empty() {
                continue;
            }
            if self.gate.is_dead(path)? {
                known.remove(path);
            } else if append(reader, file_id, page_bytes, &needed, file).is_err() {
                self.give_up(path)?;
                known.insert(path.clone(), None);
            }
        }
        Ok(())
    }

    /// Tells a reader that its pages are no longer kept.
    fn give_up(&self, path: &Path) -> Result<()> {
        let told = self.gate.storage.open(path, &OpenOptions::read_write()).and_then(|file| file.set_len(0));
        match told {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error_on("tell a reader that its pages cannot be kept in", path, error).into())
            }
            _ => Ok(()),
        }
    }
}

/// Appends what is on disk of these pages.
fn append(reader: &mut Reader, file_id: u32, page_bytes: usize, pages: &[u32], file: &dyn File) -> Result<()> {
    let mut bytes = Vec::new();
    let mut images = Vec::new();
    for run in pages.chunk_by(|a, b| a + 1 == *b) {
        images.resize(run.len() * page_bytes, 0);
        read_exact_at(file, &mut images, u64::from(run[0]) * page_bytes as u64)?;
        for (page, image) in run.iter().zip(images.chunks_exact(page_bytes)) {
            put_entry(&mut bytes, reader.end, (file_id, *page), image);
        }
    }
    reader.file.write_at(&bytes, reader.end)?;
    reader.end += bytes.len() as u64;
    pages.iter().for_each(|page| reader.note(file_id, *page));
    Ok(())
}

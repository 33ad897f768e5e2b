//! A file that has its name when it is complete.
//!
//! Invariants:
//! - until [`NewFile::finish`] has made it durable it lies beside its name, as `NAME.partial`; what fails or is dropped leaves what was there before;
//! - no other file is written: where something has that name, a file or a link to anywhere, it is `NAME.partial1`, and so on.

use crate::storage::{File, OpenOptions, Storage};
use crate::stream::{FileWriter, directory_of};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names that are tried until one is free.
const PARTIAL_MAX: u32 = 1000;

/// A file that is written, and takes the place of one of its name when it is complete.
#[derive(Debug)]
pub struct NewFile {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Its name until it is complete.
    partial: PathBuf,
    file: Arc<dyn File>,
    is_complete: bool,
}

impl NewFile {
    /// Begins a file, empty. A link of this name is replaced by the file; where it leads to is left alone.
    ///
    /// # Errors
    /// `InvalidInput` for a path that ends without a name; those of [`Storage::open`]; `AlreadyExists` if a thousand names are taken.
    pub fn create(storage: Arc<dyn Storage>, path: &Path) -> io::Result<NewFile> {
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no name of a file"))?;
        let mut number = 0;
        loop {
            let mut partial = name.to_owned();
            partial.push(if number == 0 { ".partial".to_owned() } else { format!(".partial{number}") });
            let partial = path.with_file_name(partial);
            match storage.open(&partial, &OpenOptions::create_new()) {
                Ok(file) => return Ok(NewFile { storage, path: path.to_owned(), partial, file, is_complete: false }),
                // Somebody's own, or what a process has left that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < PARTIAL_MAX => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Its name when it is complete.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it from its first byte on, unbuffered.
    #[must_use]
    pub fn writer(&self) -> FileWriter {
        FileWriter::at(Arc::clone(&self.file), 0)
    }

    /// All is written: makes it durable, and gives it its name.
    ///
    /// # Errors
    /// Those of [`File::sync`], [`Storage::rename`] and [`Storage::sync_directory`]. After the last of them it has its name, perhaps not durably.
    pub fn finish(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.storage.rename(&self.partial, &self.path)?;
        self.is_complete = true;
        self.storage.sync_directory(directory_of(&self.path))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // What failed is told already.
            let _ = self.storage.remove(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStorage, OsStorage, read_file};
    use std::io::Write;

    #[test]
    fn a_file_appears_when_it_is_complete_and_leaves_what_was_there_when_not() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let path = Path::new("rows");
        for (text, finishes) in [("first", true), ("second", false), ("third", true)] {
            let before = storage.exists(path).unwrap().then(|| read_file(storage.as_ref(), path, 100).unwrap());
            let mut file = NewFile::create(Arc::clone(&storage), path).unwrap();
            file.writer().write_all(text.as_bytes()).unwrap();
            assert_eq!(storage.exists(path).unwrap().then(|| read_file(storage.as_ref(), path, 100).unwrap()), before);
            if finishes {
                file.finish().unwrap();
            }
            drop(file);
            let expected = if finishes { text.as_bytes().to_vec() } else { before.unwrap() };
            assert_eq!(read_file(storage.as_ref(), path, 100).unwrap(), expected);
            assert!(!storage.exists(Path::new("rows.partial")).unwrap());
        }
        assert!(NewFile::create(storage, Path::new("/")).is_err());
    }

    #[test]
    fn nothing_else_is_written_by_whatever_name_or_link() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("precious"), "precious").unwrap();
        std::fs::write(at("rows.partial"), "somebody's own").unwrap();
        std::os::unix::fs::symlink(at("precious"), at("rows.partial1")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("rows.partial2")).unwrap();
        std::os::unix::fs::symlink(at("precious"), at("rows")).unwrap();
        let mut file = NewFile::create(Arc::new(OsStorage), &at("rows")).unwrap();
        file.writer().write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(at("rows")).unwrap(), b"new");
        assert_eq!(std::fs::read(at("precious")).unwrap(), b"precious");
        assert_eq!(std::fs::read(at("rows.partial")).unwrap(), b"somebody's own");
        assert!(!at("nowhere").exists() && !at("rows.partial3").exists());
    }
}

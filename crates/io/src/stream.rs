//! Files as streams, for parsers and writers of other formats, and small helpers on top of the traits.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use crate::error::error_on;
use crate::storage::{File, OpenOptions, Storage, read_exact_at};

/// Reads a file from front to back, or from wherever it is sought. Unbuffered: wrap it in a [`std::io::BufReader`] for small reads.
#[derive(Debug, Clone)]
pub struct FileReader {
    file: Arc<dyn File>,
    position: u64,
}

impl FileReader {
    /// Starts at the beginning.
    #[must_use]
    pub fn new(file: Arc<dyn File>) -> Self {
        Self { file, position: 0 }
    }

    /// Starts at `position`, in bytes.
    #[must_use]
    pub fn at(file: Arc<dyn File>, position: u64) -> Self {
        Self { file, position }
    }

    /// The file it reads.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }
}

impl Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.file.len()?.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        let outside = || error_on("seek in", self.file.path(), io::ErrorKind::InvalidInput.into());
        self.position = target.ok_or_else(outside)?;
        Ok(self.position)
    }
}

/// Appends to a file, unbuffered: wrap it in a [`std::io::BufWriter`] for small writes. `flush` does not sync.
#[derive(Debug)]
pub struct FileWriter {
    file: Arc<dyn File>,
    position: u64,
}

impl FileWriter {
    /// Writes from `position` on, in bytes.
    #[must_use]
    pub fn at(file: Arc<dyn File>, position: u64) -> Self {
        Self { file, position }
    }

    /// Where the next write goes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The file it writes.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }
}

impl Write for FileWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write_at(buf, self.position)?;
        self.position += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The whole content of a file of at most `len_max` bytes.
///
/// # Errors
/// `FileTooLarge` when it is longer; those of opening and reading.
pub fn read_file(storage: &dyn Storage, path: &Path, len_max: usize) -> io::Result<Vec<u8>> {
    let file = storage.open(path, &OpenOptions::read_only())?;
    let len = file.len()?;
    let fitting = usize::try_from(len).ok().filter(|&len| len <= len_max);
    let Some(len) = fitting else {
        let cause = io::Error::new(io::ErrorKind::FileTooLarge, format!("{len} bytes, more than the {len_max} expected at most"));
        return Err(error_on("read", path, cause));
    };
    let mut content = vec![0; len];
    read_exact_at(&*file, &mut content, 0)?;
    Ok(content)
}

/// The directory that holds `path`: the empty path for a bare file name.
#[must_use]
pub fn parent_directory(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The same, as it can be opened: `.` for a bare file name.
#[must_use]
pub fn directory_of(path: &Path) -> &Path {
    let directory = parent_directory(path);
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

//! The Parquet reader on the I/O seam.

use bytes::Bytes;
use pagefold_io::{File, FileReader, read_exact_at};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of the seam for the Parquet reader; counts the bytes read.
#[derive(Debug, Clone)]
pub(super) struct SeamFile {
    file: Arc<dyn File>,
    len: u64,
    read: Arc<AtomicU64>,
}

impl SeamFile {
    pub(super) fn new(file: Arc<dyn File>, read: Arc<AtomicU64>) -> std::io::Result<SeamFile> {
        let len = file.len()?;
        Ok(SeamFile { file, len, read })
    }
}

impl Length for SeamFile {
    fn len(&self) -> u64 {
        self.len
    }
}

/// Reads on from an offset, in large steps.
pub(super) struct Counted {
    inner: BufReader<FileReader>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Page headers are small, and the page behind one is read with it.
const READ_BYTES: usize = 64 * 1024;

impl ChunkReader for SeamFile {
    type T = Counted;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Counted> {
        let inner = BufReader::with_capacity(READ_BYTES, FileReader::at(Arc::clone(&self.file), start));
        Ok(Counted { inner, read: Arc::clone(&self.read) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // A damaged file may name any place: nothing is reserved for what is not there.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} lie beyond the end of the file, {}", self.len)));
        }
        let mut buffer = vec![0; length];
        read_exact_at(&*self.file, &mut buffer, start).map_err(|e| ParquetError::External(Box::new(e)))?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(buffer.into())
    }
}

//! Files for what does not fit in memory: those that the engine gives to all statements. They have no name, lie with the database and go with their last handle.

use crate::failure::Failure;
use crate::run::Counters;
use bytes::Bytes;
use datafusion_common::Result;
use datafusion_execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use pagefold_io::File;
use pagefold_sql::analytics::Scratch;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Read at once.
const READ_BYTES: u64 = 128 << 10;

/// Makes them.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) scratch: Scratch,
    pub(crate) failure: Failure,
    pub(crate) counters: Arc<Counters>,
}

impl TempFileFactory for Files {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let file = self.failure.of(self.scratch.file())?;
        Ok(Arc::new(Spilled { file, bytes: Arc::default(), counters: Arc::clone(&self.counters) }))
    }
}

/// One of them, with how much was written.
struct Spilled {
    file: Arc<dyn File>,
    bytes: Arc<AtomicU64>,
    counters: Arc<Counters>,
}

impl SpillFile for Spilled {
    fn path(&self) -> Option<&Path> {
        None
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Acquire))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let (file, end) = (Arc::clone(&self.file), self.bytes.load(Ordering::Acquire));
        let mut at = 0;
        let next = move || -> Option<Result<Bytes>> {
            let length = usize::try_from(READ_BYTES.min(end - at)).ok().filter(|length| *length > 0)?;
            let mut bytes = vec![0; length];
            let read = pagefold_io::read_exact_at(&*file, &mut bytes, at);
            at = if read.is_ok() { at + length as u64 } else { end };
            Some(read.map(|()| Bytes::from(bytes)).map_err(Into::into))
        };
        Ok(Box::pin(futures::stream::iter(std::iter::from_fn(next))))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(Writer { file: Arc::clone(&self.file), bytes: Arc::clone(&self.bytes), counters: Arc::clone(&self.counters) }))
    }
}

struct Writer {
    file: Arc<dyn File>,
    bytes: Arc<AtomicU64>,
    counters: Arc<Counters>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.bytes.load(Ordering::Acquire))?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Release);
        self.counters.spilled.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

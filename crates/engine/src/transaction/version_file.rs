//! The scratch file of row versions that found no room in memory.
//!
//! The versions of many pages are written at once, one behind the other: a [`Block`]. Its space is free again when none of them is needed;
//! when no block is, the file gives all space back.
//!
//! Invariants:
//! - The file has no name as soon as it is open: nothing of it outlives the process, so nothing of it is ever synced.
//! - An extent is read by who has its only [`Extent`], which says what its bytes have to be: what has rotted is an error, never a version.
//! - Lock order: the list of blocks is last. Nothing is read or written while it is locked, except to give space back.

use pagefold_io::{File, read_exact_at};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Of one write, at most.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// Blocks begin at multiples of it.
const UNIT_BYTES: u64 = 4 << 10;

/// Opens the file, when something is to be written for the first time.
pub(crate) type OpenScratch = Box<dyn Fn() -> io::Result<Arc<dyn File>> + Send + Sync>;

/// Where the versions of a page lie in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Where its block begins.
    block: u64,
    /// From there.
    offset: u32,
    bytes: u32,
    checksum: u64,
}

impl Extent {
    pub(super) fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// What was written at once.
#[derive(Debug)]
struct Block {
    bytes: u64,
    /// Extents in use. None: it is being written.
    used: u32,
}

#[derive(Debug, Default)]
struct Blocks {
    file: Option<Arc<dyn File>>,
    /// By where they begin; what lies between them is free.
    blocks: BTreeMap<u64, Block>,
    /// Of all of them.
    bytes: u64,
}

/// The file.
pub(super) struct VersionFile {
    open: OpenScratch,
    bytes_max: u64,
    blocks: Mutex<Blocks>,
}

impl fmt::Debug for VersionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionFile").field("bytes_max", &self.bytes_max).field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

impl VersionFile {
    /// A file that is not there yet, of at most `limit` bytes.
    pub(super) fn new(open: OpenScratch, limit: u64) -> VersionFile {
        VersionFile { open, bytes_max: limit, blocks: Mutex::default() }
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.lock().bytes
    }

    /// Writes what several pages have, with the length of each, as one block; where each lies, in their order. `None` when the limit is reached.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn write(&self, bytes: &[u8], lengths: &[usize]) -> io::Result<Option<Vec<Extent>>> {
        debug_assert!(bytes.len() <= BLOCK_BYTES && lengths.iter().sum::<usize>() == bytes.len());
        let Some((file, block)) = self.take(bytes.len() as u64)? else { return Ok(None) };
        if let Err(error) = file.write_at(bytes, block) {
            self.blocks.lock().free(block);
            return Err(error);
        }
        let mut offset = 0;
        let extents = lengths.iter().map(|length| {
            let checksum = xxh3_64(&bytes[offset..offset + length]);
            let extent = Extent { block, offset: offset as u32, bytes: *length as u32, checksum };
            offset += length;
            extent
        });
        let extents: Vec<Extent> = extents.collect();
        if let Some(block) = self.blocks.lock().blocks.get_mut(&block) {
            block.used = extents.len() as u32;
        }
        Ok(Some(extents))
    }

    /// What was written there.
    ///
    /// # Errors
    /// The device's; `InvalidData` when it is something else.
    pub(super) fn read(&self, extent: &Extent) -> io::Result<Vec<u8>> {
        let file = self.blocks.lock().file.clone();
        let file = file.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "the file of row versions is not open"))?;
        let mut bytes = vec![0; extent.bytes()];
        read_exact_at(file.as_ref(), &mut bytes, extent.block + u64::from(extent.offset))?;
        match xxh3_64(&bytes) == extent.checksum {
            true => Ok(bytes),
            false => Err(damaged()),
        }
    }

    /// It is not needed any more.
    pub(super) fn release(&self, extent: Extent) {
        let mut blocks = self.blocks.lock();
        let Some(block) = blocks.blocks.get_mut(&extent.block) else { return };
        block.used -= 1;
        if block.used == 0 {
            blocks.free(extent.block);
        }
    }

    /// The first place where a block of so many bytes fits; `None` when none does below the limit.
    fn take(&self, bytes: u64) -> io::Result<Option<(Arc<dyn File>, u64)>> {
        let mut blocks = self.blocks.lock();
        let file = match &blocks.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(blocks.file.insert((self.open)()?)),
        };
        let bytes = bytes.next_multiple_of(UNIT_BYTES);
        let mut start = 0;
        for (next, block) in &blocks.blocks {
            if next - start >= bytes {
                break;
            }
            start = next + block.bytes;
        }
        if start + bytes > self.bytes_max {
            return Ok(None);
        }
        blocks.blocks.insert(start, Block { bytes, used: 0 });
        blocks.bytes += bytes;
        Ok(Some((file, start)))
    }
}

impl Blocks {
    fn free(&mut self, start: u64) {
        self.bytes -= self.blocks.remove(&start).map_or(0, |block| block.bytes);
        if self.blocks.is_empty() {
            // Else it takes the space until the database is closed.
            let _ = self.file.as_ref().map(|file| file.set_len(0));
        }
    }
}

/// What was read is not what was written.
pub(super) fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file of row versions is damaged")
}

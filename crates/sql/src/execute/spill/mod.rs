//! Rows that do not fit the memory of a statement: they go to a file, and come back.
//!
//! * `rows`: rows written one behind the other, read in the same order
//! * `partitions`: rows in files by the hash of a key
//! * `list`: rows that are collected and then read once
//!
//! A statement has one scratch file, in blocks of one size; each block belongs to one list of rows, and is used again when that has been read. The file has no name, so it
//! goes with the statement.
//!
//! Invariants:
//! - what is read back is checked by a hash that stayed in memory;
//! - an operator keeps a row, and a [`LEAST_SHARE`] of what the statement may take, even where nothing is left of that, so each pass over its rows gets on; beyond that, and its
//!   blocks, it keeps what the [`Budget`] gives.

mod list;
mod partitions;
mod rows;

pub(crate) use list::{ListRows, RowList};
pub(crate) use partitions::Partitions;
pub(crate) use rows::{RowWriter, Rows};

use super::Budget;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::Database;
use pagefold_io::{File, read_exact_at};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// What is written, and read, at once.
const BLOCK_BYTES: usize = 32 << 10;

/// What an operator may keep in any case, of what its statement may.
const LEAST_SHARE: usize = 32;

/// The scratch file of a statement: made when the first row goes to it.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    file: Mutex<Option<Arc<dyn File>>>,
    /// Blocks of the file.
    blocks: AtomicU32,
    free: Mutex<Vec<u32>>,
    /// Bytes that were written, all together.
    written: AtomicU64,
}

/// A block of the file, which is given back when this is gone.
#[derive(Debug)]
struct Block {
    spill: Arc<Spill>,
    number: u32,
    checksum: u64,
}

/// One thread at a time runs a statement: nobody waits here.
fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spill {
    /// Writes a block.
    fn write(self: &Arc<Spill>, engine: &Database, bytes: &[u8]) -> SqlResult<Block> {
        let known = locked(&self.file).clone();
        let file = match known {
            Some(file) => file,
            None => engine.scratch_file()?,
        };
        locked(&self.file).get_or_insert_with(|| Arc::clone(&file));
        let number = locked(&self.free).pop();
        let number = match number {
            Some(number) => number,
            None => {
                let number = self.blocks.load(Ordering::Relaxed);
                let too_many = || SqlError::new("54000", "a statement that writes more than 128 TB of rows to a scratch file");
                self.blocks.store(number.checked_add(1).ok_or_else(too_many)?, Ordering::Relaxed);
                number
            }
        };
        // From here on it is given back, whatever happens.
        let block = Block { spill: Arc::clone(self), number, checksum: xxh3_64(bytes) };
        file.write_at(bytes, block.offset()).map_err(pagefold_engine::Error::from)?;
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(block)
    }

    /// Bytes that were written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

impl Block {
    fn offset(&self) -> u64 {
        u64::from(self.number) * BLOCK_BYTES as u64
    }

    /// Reads it into a buffer as long as what was written.
    fn read(&self, bytes: &mut [u8]) -> SqlResult<()> {
        let file = locked(&self.spill.file).clone().ok_or_else(|| SqlError::new("XX000", "a block without a scratch file"))?;
        read_exact_at(&*file, bytes, self.offset()).map_err(pagefold_engine::Error::from)?;
        if xxh3_64(bytes) != self.checksum {
            let message = format!("block {} of the scratch file of a statement is not what was written", self.number);
            return Err(SqlError::new("58030", message));
        }
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        locked(&self.spill.free).push(self.number);
    }
}

/// What one operator keeps of the memory of its statement.
#[derive(Debug, Default)]
pub(crate) struct Share {
    taken: usize,
}

impl Share {
    /// May it keep so many bytes more? They are charged then.
    pub(crate) fn take(&mut self, budget: &Budget, bytes: usize) -> bool {
        if self.taken > 0 && self.taken + bytes > budget.most() / LEAST_SHARE && !budget.has_room(bytes) {
            return false;
        }
        self.force(budget, bytes);
        true
    }

    /// Bytes that it keeps.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Charges what it has to keep in any case.
    pub(crate) fn force(&mut self, budget: &Budget, bytes: usize) {
        budget.share(bytes);
        self.taken += bytes;
    }

    /// It keeps so many bytes less.
    pub(crate) fn give_back(&mut self, budget: &Budget, bytes: usize) {
        let bytes = bytes.min(self.taken);
        budget.give_share_back(bytes);
        self.taken -= bytes;
    }

    /// It keeps nothing any more.
    pub(crate) fn give_all_back(&mut self, budget: &Budget) {
        self.give_back(budget, self.taken);
    }
}

//! Large values: compressed, in chains of pages of their own.
//!
//! Layout: `docs/file-format.md`, "Large value". A value is cut into blocks of 64 KB; each is compressed by itself and stored behind its two lengths.
//!
//! Invariant: a reference names the length of the value and of what is stored; both are checked before memory is taken.

use super::chain::{read_chain, walk_chain, write_large};
use super::table::Table;
use crate::pool::{By, MiniTransaction};
use crate::{Error, Result};
use pagefold_codec::block;
use pagefold_format::FormatError;
use pagefold_format::page::PageType;
use pagefold_format::wire::Reader;
use pagefold_types::{LARGE_VALUE_BYTES_MAX, LargeValueRef};

const BLOCK_BYTES: usize = 64 * 1024;

/// What is stored of a value.
#[doc(hidden)]
#[must_use]
pub fn pack_large(value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(value.len() / 2);
    let mut compressed = Vec::new();
    for chunk in value.chunks(BLOCK_BYTES) {
        compressed.clear();
        block::compress(chunk, &mut compressed);
        stored.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        stored.extend_from_slice(&(compressed.len() as u32).to_le_bytes());
        stored.extend_from_slice(&compressed);
    }
    stored
}

/// The value of `raw_bytes` of which this is stored.
///
/// # Errors
/// When it is not exactly that. Any bytes at all are safe to hand in.
#[doc(hidden)]
pub fn unpack_large(stored: &[u8], raw_bytes: usize) -> std::result::Result<Vec<u8>, FormatError> {
    let mut reader = Reader::new(stored);
    let mut value = Vec::new();
    while !reader.is_empty() {
        let raw = reader.u32()? as usize;
        let length = reader.u32()? as usize;
        if raw > BLOCK_BYTES || value.len() + raw > raw_bytes {
            return Err(FormatError::new("a block is longer than the value"));
        }
        let bytes = reader.take(length)?;
        block::decompress(bytes, raw, &mut value).map_err(|e| FormatError::new(e.to_string()))?;
    }
    if value.len() != raw_bytes {
        return Err(FormatError::new(format!("{} bytes where {raw_bytes} are expected", value.len())));
    }
    Ok(value)
}

impl Table {
    /// Stores a value in pages of its own.
    ///
    /// # Errors
    /// When it is larger than 1 GB, or there is no room.
    pub fn write_large(&self, by: By<'_>, value: &[u8]) -> Result<LargeValueRef> {
        if value.len() > LARGE_VALUE_BYTES_MAX {
            return Err(Error::Value(format!(
                "{}: a value of {} bytes; the longest has {LARGE_VALUE_BYTES_MAX}",
                self.object(),
                value.len()
            )));
        }
        let (partition, data_set) = self.growing_partition()?;
        let stored = pack_large(value);
        let first_page = write_large(self, by, data_set, &stored)?;
        Ok(LargeValueRef { first_page, raw_bytes: value.len() as u32, stored_bytes: stored.len() as u32, partition: u32::from(partition) })
    }

    /// Reads a value back.
    ///
    /// # Errors
    /// When its pages are damaged.
    pub fn read_large(&self, reference: LargeValueRef) -> Result<Vec<u8>> {
        let data_set = self.large_data_set(reference)?;
        let length = self.large_stored_bytes(reference)?;
        let first = reference.first_page;
        let stored = read_chain(self, data_set, PageType::LargeValue, first, first, length)?;
        unpack_large(&stored, reference.raw_bytes as usize).map_err(|e| data_set.corrupt(first, format!("large value: {e}")))
    }

    /// Gives the pages of a value back.
    pub(crate) fn free_large(&self, reference: LargeValueRef) -> Result<()> {
        let data_set = self.large_data_set(reference)?;
        let length = self.large_stored_bytes(reference)?;
        let first = reference.first_page;
        let mut pages = Vec::new();
        walk_chain(self, data_set, PageType::LargeValue, first, first, length, |number, _| pages.push(number))?;
        let mut mtr = MiniTransaction::begin(self.manager());
        pages.into_iter().for_each(|number| mtr.free(data_set, number));
        mtr.commit().map(drop)
    }

    /// Visits the pages of a value, for `check`.
    ///
    /// # Errors
    /// When its pages are damaged.
    pub fn large_pages(&self, reference: LargeValueRef, mut visit: impl FnMut(u32)) -> Result<()> {
        let data_set = self.large_data_set(reference)?;
        let first = reference.first_page;
        let length = self.large_stored_bytes(reference)?;
        walk_chain(self, data_set, PageType::LargeValue, first, first, length, |number, _| visit(number))
    }

    pub(super) fn large_data_set(&self, reference: LargeValueRef) -> Result<&std::sync::Arc<crate::DataSet>> {
        let partition = u16::try_from(reference.partition).map_err(|_| {
            Error::corrupt(self.object(), reference.first_page, format!("a large value in partition {}", reference.partition))
        })?;
        self.partition(partition)
    }

    fn large_stored_bytes(&self, reference: LargeValueRef) -> Result<usize> {
        let blocks = (reference.raw_bytes as usize).div_ceil(BLOCK_BYTES);
        let most = reference.raw_bytes as usize + blocks * (8 + block::OVERHEAD);
        let stored = reference.stored_bytes as usize;
        if stored > most {
            return Err(Error::corrupt(
                self.object(),
                reference.first_page,
                format!("a large value of {} bytes stored in {stored}", reference.raw_bytes),
            ));
        }
        Ok(stored)
    }
}

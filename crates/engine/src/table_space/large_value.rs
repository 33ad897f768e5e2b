//! Large values: compressed, in chains of pages of their own.
//!
//! Layout: `docs/file-format.md`, "Large value"; what is stored of a value: `pagefold_codec::block`.
//!
//! Invariants:
//! - a reference names the length of the value, which bounds what is read and the memory taken for it;
//! - a reference has the tag of the value, and each page of the chain a part of it: pages that hold
//!   another value by now are an error, never that value.

use super::chain::{walk_chain, write_large};
use super::partition::Partition;
use super::table::Table;
use crate::pool::{By, MiniTransaction};
use crate::{Error, Result};
use pagefold_codec::block::{pack_value, stored_bytes_max, unpack_value, value_tag};
use pagefold_format::chain::owner_of_value;
use pagefold_format::page::PageType;
use pagefold_types::{LARGE_VALUE_BYTES_MAX, LargeValueRef};

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
        let stored = pack_value(value);
        // About as many as it takes: at most a few more than are free are taken at the end.
        let pages = stored.len().div_ceil(self.attributes.page_bytes - 64);
        let partition = self.growing_partition(pages as u32)?;
        let tag = value_tag(&stored);
        let first_page = write_large(self, by, partition, owner_of_value(tag), &stored)?;
        Ok(LargeValueRef { first_page, raw_bytes: value.len() as u32, partition: partition.number(), tag })
    }

    /// Reads a value back.
    ///
    /// # Errors
    /// When its pages are damaged.
    pub fn read_large(&self, reference: LargeValueRef) -> Result<Vec<u8>> {
        let (data_set, first) = (self.large_data_set(reference)?, reference.first_page);
        let mut stored = Vec::new();
        self.walk_large(reference, |_, part| stored.extend_from_slice(part))?;
        if value_tag(&stored) != reference.tag {
            return Err(data_set.corrupt(first, "the large value here is not the one that the row names"));
        }
        unpack_value(&stored, reference.raw_bytes as usize).map_err(|e| data_set.corrupt(first, format!("large value: {e}")))
    }

    /// Gives the pages of a value back.
    pub(crate) fn free_large(&self, reference: LargeValueRef) -> Result<()> {
        let data_set = self.large_data_set(reference)?;
        let mut pages = Vec::new();
        self.large_pages(reference, |number| pages.push(number))?;
        let mut mtr = MiniTransaction::begin(self.manager());
        pages.into_iter().for_each(|number| mtr.free(data_set, number));
        mtr.commit().map(drop)
    }

    /// Visits the pages of a value, for `check`.
    ///
    /// # Errors
    /// When its pages are damaged.
    pub fn large_pages(&self, reference: LargeValueRef, mut visit: impl FnMut(u32)) -> Result<()> {
        self.walk_large(reference, |number, _| visit(number))
    }

    fn walk_large(&self, reference: LargeValueRef, visit: impl FnMut(u32, &[u8])) -> Result<()> {
        let data_set = self.large_data_set(reference)?;
        let owner = owner_of_value(reference.tag);
        let lengths = 0..=stored_bytes_max(reference.raw_bytes as usize);
        walk_chain(self, data_set, PageType::LargeValue, reference.first_page, owner, lengths, visit)
    }

    pub(super) fn large_data_set(&self, reference: LargeValueRef) -> Result<&std::sync::Arc<crate::DataSet>> {
        self.partition(reference.partition).map(Partition::data_set)
    }
}

//! Data pages without rows are given back, when there are more than inserts soon need: others may take them then, for large values too, or their blocks go back to the file system.
//!
//! Invariants:
//! - a page is given back under its exclusive latch, when nothing is on it and nothing is kept there for who may take changes back. Nobody remembers a RID of it then who may change its row, or need
//!   what that was: ghosts would be there;
//! - the map says at once that it is none of rows. Who has found its number before, in the map, a list of pages, an index or a RID of old, finds that out when he has latched it, or cannot read it
//!   ([`Table::data_page`], [`DataSet::kept_of_rows`]).

use super::scan::ranges_of;
use super::table::Table;
use crate::Result;
use crate::pool::{MiniTransaction, Prefetch};
use pagefold_format::log::Counts;
use pagefold_format::space_map::CLASS_EMPTY;

/// So many are asked for together.
const PAGES_AHEAD: usize = 256;

impl Table {
    /// Gives pages without rows back, but for one in 16, which are left for rows to come: those with the highest numbers. How many.
    ///
    /// # Errors
    /// When the log cannot be written, or a page not be read.
    pub(crate) fn give_empty_pages_back(&self) -> Result<u64> {
        let mut given_back = 0;
        for partition in self.partitions() {
            let surplus = partition.surplus_empty_pages();
            let mut chunks = surplus.chunks(PAGES_AHEAD).peekable();
            while let Some(chunk) = chunks.next() {
                // They may have left memory since their rows went.
                if let Some(next) = chunks.peek() {
                    self.manager().prefetch(partition, Prefetch::List, ranges_of(next), None);
                }
                for number in chunk {
                    given_back += u64::from(self.give_page_back((partition.number(), *number))?);
                }
            }
        }
        Ok(given_back)
    }

    /// Gives a page back if it is without rows. False when it has some, or somebody else has it latched.
    ///
    /// # Errors
    /// When the log cannot be written, or the page not be read.
    pub(crate) fn give_page_back(&self, (partition, number): (u16, u32)) -> Result<bool> {
        self.core.manager.prepare_log()?;
        let partition = self.partition(partition)?;
        let data_set = partition.data_set();
        let Some(page) = self.latch_found(data_set, number)? else { return Ok(false) };
        let is_empty = !data_set.is_given_back(number) && !data_set.is_kept(number) && self.space_class(&page) == CLASS_EMPTY;
        if !is_empty {
            return Ok(false);
        }
        let mut mtr = MiniTransaction::begin(self.manager());
        mtr.adopt(page);
        mtr.free(data_set, number);
        mtr.count(data_set, Counts { data_pages: -1, ..Counts::default() });
        mtr.commit()?;
        partition.undo_pages.remove(number);
        Ok(true)
    }
}

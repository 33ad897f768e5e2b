//! Blocks of free pages go back to the file system, and are asked for again before such a page is taken. So a file takes less room on the device when rows or entries go, though it does not become shorter.
//!
//! Invariants:
//! - which pages these may be, `space_map/free_pages.rs` knows: nothing that recovery reads needs what they were;
//! - a page whose blocks go is clean, and in none of the lists of free pages meanwhile: nobody takes it, and nobody writes it;
//! - no other process needs it, and no image of it lies in the file of double writes: the caller has seen to that;
//! - blocks are there before a page is taken or reserved: a full disk is met there, not by who writes the page.

use super::DataSet;
use crate::Result;
use crate::space_map::SpaceMap;
use pagefold_format::log::Lsn;
use pagefold_format::page::PAGE_SIZE_STEP;
use std::cmp::Reverse;
use std::ops::Range;

/// What file systems give back, and direct I/O asks for, is a multiple of this.
const BLOCK_BYTES: u64 = 4096;
const _: () = assert!((2 * PAGE_SIZE_STEP as u64).is_multiple_of(BLOCK_BYTES));

impl DataSet {
    /// What was given back so far was before this place in the log. Is there anything whose blocks may go some time?
    pub(crate) fn seal_free_pages(&self, end: Lsn) -> bool {
        self.space.lock().seal_free_pages(end)
    }

    /// May blocks go that nobody needs who reads the log from this place on?
    pub(crate) fn may_give_blocks_back(&self, before: Lsn) -> bool {
        self.space.lock().may_have_rested(before)
    }

    /// Is a page free that was written before?
    pub(crate) fn is_free(&self, page: u32) -> bool {
        self.space.lock().may_be_hole(page)
    }

    /// Gives blocks back that nobody needs who reads the log from this place on, the longest runs of pages first, as long as `goes_on` says so. How many bytes.
    ///
    /// # Errors
    /// When the file cannot be changed; those pages then stay free as they are.
    pub(crate) fn give_blocks_back(&self, before: Lsn, mut goes_on: impl FnMut() -> bool) -> Result<u64> {
        let file = self.file()?;
        let mut space = self.space.lock();
        let rested = space.take_rested(before);
        let can_go = |page: &u32| space.may_be_hole(*page) && self.translation.get_or_make(*page).is_clean();
        let (clean, dirty): (Vec<u32>, Vec<u32>) = rested.into_iter().partition(can_go);
        drop(space);
        let (mut punched, mut stay, mut bytes) = (Vec::with_capacity(clean.len()), dirty, 0);
        let mut outcome = Ok(());
        let mut runs: Vec<&[u32]> = clean.chunk_by(|a, b| a + 1 == *b).collect();
        runs.sort_by_key(|run| Reverse(run.len()));
        for run in runs {
            let pages = self.whole_blocks(run);
            let (from, len) = (u64::from(run[pages.start]) * self.page_bytes() as u64, (pages.len() * self.page_bytes()) as u64);
            let mut gone = 0..0;
            if outcome.is_ok() && !pages.is_empty() && goes_on() {
                outcome = file.punch_hole(from, len);
                gone = if outcome.is_ok() { pages } else { gone };
            }
            bytes += (gone.len() * self.page_bytes()) as u64;
            stay.extend(run[..gone.start].iter().chain(&run[gone.end..]));
            punched.extend(&run[gone]);
        }
        let mut space = self.space.lock();
        space.punched(&punched);
        space.stay_free(&stay);
        Ok(outcome.map(|()| bytes)?)
    }

    /// Which pages of a run fill whole blocks together.
    fn whole_blocks(&self, run: &[u32]) -> Range<usize> {
        // Pages are multiples of 2 KB.
        let pages_a_block = if (self.page_bytes() as u64).is_multiple_of(BLOCK_BYTES) { 1 } else { 2 };
        let start = (run[0].next_multiple_of(pages_a_block) - run[0]) as usize;
        let end = run.len() - ((run[run.len() - 1] + 1) % pages_a_block) as usize;
        if start < end { start..end } else { 0..0 }
    }

    /// Asks for the blocks of free pages, so that beside the reserved ones `more` have theirs, if there are so many. Where there is no room the file may have some behind its last page: whoever
    /// needs a page looks for it there next, and meets the error.
    pub(super) fn fill_holes(&self, space: &mut SpaceMap, more: usize) {
        while let Some(page) = space.next_hole(more) {
            if self.fill_hole(page).is_err() {
                return;
            }
            space.filled_hole();
        }
    }

    /// Asks for the blocks of a page.
    pub(super) fn fill_hole(&self, page: u32) -> Result<()> {
        let page_bytes = self.page_bytes() as u64;
        Ok(self.file()?.allocate(u64::from(page) * page_bytes, page_bytes)?)
    }
}

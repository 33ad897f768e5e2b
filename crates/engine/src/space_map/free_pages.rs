//! Pages of a data set that were given back: which of them have blocks of the file system, and which blocks can be given back, too.
//!
//! Invariants:
//! - a free page is in one of two lists, or, while its blocks are being given back, in none. Those in `ready` have blocks for sure, so they can be taken and written on a full disk. Of those in `holes`
//!   the blocks were given back, or nothing is known (the data set was opened): blocks are asked for before one of them is ready;
//! - a page **rests** from when it is given back until it is taken. Its blocks go only when it has rested since before the place in the log from which recovery reads: what redo does to it is in no
//!   record from there on, so nobody needs what it was.

use crate::hash::FastMap;
use pagefold_format::log::Lsn;
use std::collections::{BTreeSet, VecDeque};

/// Since when a page rests, when that has no place in the log yet.
const UNSEALED: Lsn = Lsn::MAX;

/// The free pages of a data set.
#[derive(Debug, Default)]
pub(super) struct FreePages {
    ready: Vec<u32>,
    holes: Vec<u32>,
    /// Before which place in the log pages were given back.
    rests: FastMap<u32, Lsn>,
    /// Given back since the last [`Self::seal`]; some have been taken since, perhaps.
    unsealed: Vec<u32>,
    /// The same of earlier ones, oldest first.
    sealed: VecDeque<(Lsn, Vec<u32>)>,
}

impl FreePages {
    /// A free page that was found: whether it has blocks is not known.
    pub(super) fn push_unknown(&mut self, page: u32) {
        self.holes.push(page);
    }

    /// These, descending, are the free pages that redo has left. As nothing is known of their blocks, they rest from now on.
    pub(super) fn found(&mut self, pages: Vec<u32>) {
        self.ready.clear();
        self.rests = pages.iter().map(|page| (*page, UNSEALED)).collect();
        (self.unsealed, self.holes) = (pages.clone(), pages);
        self.sealed.clear();
    }

    /// A page is given back.
    pub(super) fn add(&mut self, page: u32) {
        self.ready.push(page);
        self.rest(page, UNSEALED);
    }

    fn rest(&mut self, page: u32, since: Lsn) {
        self.rests.insert(page, since);
        if since == UNSEALED {
            self.unsealed.push(page);
        }
    }

    /// Takes a page that has blocks.
    pub(super) fn take(&mut self) -> Option<u32> {
        let page = self.ready.pop()?;
        self.rests.remove(&page);
        Some(page)
    }

    /// How many have blocks for sure.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.ready.len() + self.holes.len()
    }

    /// The page whose blocks are to be asked for next.
    pub(super) fn next_hole(&self) -> Option<u32> {
        self.holes.last().copied()
    }

    /// That page has blocks.
    pub(super) fn filled_hole(&mut self) {
        self.ready.extend(self.holes.pop());
    }

    /// What was given back so far was before this place in the log. Is there any such page?
    pub(super) fn seal(&mut self, end: Lsn) -> bool {
        let mut pages = std::mem::take(&mut self.unsealed);
        // A page that was given back twice is there twice: the first one counts.
        pages.retain(|page| self.rests.get_mut(page).filter(|since| **since == UNSEALED).map(|since| *since = end).is_some());
        if !pages.is_empty() {
            self.sealed.push_back((end, pages));
        }
        !self.sealed.is_empty()
    }

    /// Has a page perhaps rested since before this place in the log?
    pub(super) fn may_have_rested(&self, before: Lsn) -> bool {
        self.sealed.front().is_some_and(|(since, _)| *since <= before)
    }

    /// Takes pages out that have rested since before this place in the log, those with the highest numbers first, so many that `keep` stay ready. Ascending. They come back by [`Self::punched`] or [`Self::stay`].
    pub(super) fn take_rested(&mut self, before: Lsn, keep: usize) -> Vec<u32> {
        let mut rested = Vec::new();
        while let Some((since, pages)) = self.sealed.pop_front_if(|(since, _)| *since <= before) {
            rested.extend(pages.into_iter().filter(|page| self.rests.get(page) == Some(&since)));
        }
        rested.sort_unstable();
        let ready: BTreeSet<u32> = self.ready.iter().copied().collect();
        let mut going = self.ready.len().saturating_sub(keep);
        let mut stay = Vec::new();
        let mut taken = BTreeSet::new();
        for page in rested.into_iter().rev() {
            if !ready.contains(&page) {
                taken.insert(page);
            } else if going > 0 {
                going -= 1;
                taken.insert(page);
            } else {
                stay.push(page);
            }
        }
        self.ready.retain(|page| !taken.contains(page));
        self.holes.retain(|page| !taken.contains(page));
        if !stay.is_empty() {
            stay.iter().for_each(|page| _ = self.rests.insert(*page, before));
            self.sealed.push_front((before, stay));
        }
        taken.into_iter().collect()
    }

    /// The blocks of these pages were given back.
    pub(super) fn punched(&mut self, pages: &[u32]) {
        pages.iter().for_each(|page| _ = self.rests.remove(page));
        self.holes.extend(pages.iter().rev());
    }

    /// These were not given back: they rest on.
    pub(super) fn stay(&mut self, pages: &[u32]) {
        // Some may have been holes: so of none anything is known.
        self.holes.extend(pages.iter().rev());
        pages.iter().for_each(|page| self.rest(*page, UNSEALED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn blocks_go_of_pages_that_have_rested_and_of_no_others() {
        let mut random = Random(5);
        let (mut given, mut refused) = (0, 0);
        for _ in 0..200 {
            let mut free = FreePages::default();
            // Pages that are free, and the place in the log when they were given back.
            let mut model: BTreeMap<u32, Lsn> = BTreeMap::new();
            let mut in_use: Vec<u32> = (0..40).collect();
            let mut end = 1;
            for _ in 0..300 {
                match random.below(6) {
                    0 | 1 if !in_use.is_empty() => {
                        let page = in_use.swap_remove(random.index(in_use.len()));
                        end += 1;
                        free.add(page);
                        model.insert(page, end);
                    }
                    2 | 3 => {
                        if free.ready() == 0 && free.next_hole().is_some() {
                            free.filled_hole();
                        }
                        if let Some(page) = free.take() {
                            assert!(model.remove(&page).is_some(), "a page that is not free");
                            in_use.push(page);
                        }
                    }
                    4 => _ = free.seal(end),
                    _ => {
                        let before = end - random.below(10).min(end - 1);
                        let keep = random.below(6) as usize;
                        let kept = free.ready();
                        let rested = free.take_rested(before, keep);
                        assert!(rested.is_sorted());
                        assert!(free.ready() >= keep.min(kept));
                        for page in &rested {
                            assert!(model[page] <= before, "given back at {}, wanted before {before}", model[page]);
                        }
                        given += rested.len();
                        refused += model.len() - rested.len();
                        if random.below(2) == 0 { free.punched(&rested) } else { free.stay(&rested) }
                    }
                }
                assert_eq!(free.count(), model.len());
            }
        }
        assert!(given > 1000 && refused > 1000, "{given} {refused}");
    }

    #[test]
    fn a_page_that_was_taken_in_between_rests_anew() {
        let mut free = FreePages::default();
        free.add(7);
        free.seal(100);
        assert_eq!(free.take(), Some(7));
        free.add(7);
        assert_eq!(free.take_rested(100, 0), [], "its second time has no place yet");
        free.seal(200);
        assert_eq!(free.take_rested(150, 0), []);
        assert_eq!(free.take_rested(200, 0), [7]);
        free.punched(&[7]);
        assert_eq!((free.ready(), free.count(), free.next_hole()), (0, 1, Some(7)));
        free.filled_hole();
        assert_eq!(free.take(), Some(7));
    }
}

//! A data set's space map in memory: one word a page, and a tree over the classes.
//!
//! Invariants:
//! - `words[0]` stands for the header page and says "no rows"; map pages have the class "no rows" too;
//! - node `i` of the tree is the larger of its two children, so the first page with enough room is found in O(log n);
//! - the tree has the classes, or what is expected of a rebuild of the page, less what is kept for running transactions: what it finds can be given to anybody;
//! - a map page whose words have changed is in `changed`.
//!
//! * `free_pages`: pages that were given back, and their blocks

mod free_pages;

use self::free_pages::FreePages;
use crate::hash::FastMap;
use crate::{Error, Result};
use pagefold_format::log::Lsn;
use pagefold_format::space_map::{self, CLASS_EMPTY, CLASS_FULL, CLASS_NO_ROWS, CLASS_UNALLOCATED, SpaceWord};
use std::collections::BTreeSet;

/// Of so many pages of a data set one may be free and keep its blocks: it is taken soon.
const FREE_PAGES_KEPT: u32 = 16;

/// Classes and write counters of all pages of a data set.
#[derive(Debug)]
pub(crate) struct SpaceMap {
    page_bytes: usize,
    words: Vec<SpaceWord>,
    /// Implicit binary tree over `capacity` leaves: node 1 is the root, node `capacity + p` is page p.
    tree: Vec<u8>,
    capacity: usize,
    free: FreePages,
    /// Pages taken by mini-transactions that are not committed yet: free on disk.
    unsettled: BTreeSet<u32>,
    changed: BTreeSet<u32>,
    /// Bytes of pages that are kept for running transactions, and for how many rows.
    kept: FastMap<u32, (usize, u32)>,
    /// Classes that pages may have when they are rebuilt, which are on disk instead of their own: who opens the data set finds what room there may be, and looks.
    expected: FastMap<u32, u8>,
    /// By how many bytes more than a rebuild gave the last time was expected of it, of pages that were not rebuilt for that; in memory only.
    overestimates: FastMap<u32, u16>,
    /// Bytes of pages yet to be taken that are reserved for taking changes back.
    reserved: u64,
}

impl SpaceMap {
    /// The map of a data set that has only its header page.
    pub(crate) fn new(page_bytes: usize) -> SpaceMap {
        let mut map = SpaceMap {
            page_bytes,
            words: Vec::new(),
            tree: vec![0; 2],
            capacity: 1,
            free: FreePages::default(),
            unsettled: BTreeSet::new(),
            changed: BTreeSet::new(),
            kept: FastMap::default(),
            expected: FastMap::default(),
            overestimates: FastMap::default(),
            reserved: 0,
        };
        map.push(SpaceWord::new(CLASS_NO_ROWS, 0));
        map
    }

    /// Appends the next page's word as it was read from a map page.
    pub(crate) fn push(&mut self, word: SpaceWord) {
        let page = self.words.len();
        self.words.push(word);
        if page >= self.capacity {
            self.grow();
        }
        if word.class() == CLASS_UNALLOCATED {
            self.free.push_unknown(page as u32);
        }
        self.update_tree(page, word.class());
    }

    fn grow(&mut self) {
        let capacity = (self.capacity * 2).max(16);
        let mut tree = vec![0; 2 * capacity];
        for (page, word) in self.words.iter().enumerate().take(self.capacity) {
            tree[capacity + page] = self.free_class(page, word.class());
        }
        for node in (1..capacity).rev() {
            tree[node] = tree[2 * node].max(tree[2 * node + 1]);
        }
        self.tree = tree;
        self.capacity = capacity;
    }

    /// The class of a page, or what is expected of a rebuild of it.
    fn class_with_expected(&self, page: u32, class: u8) -> u8 {
        match self.expected.get(&page) {
            Some(expected) if class >= CLASS_FULL => class.max(*expected),
            _ => class,
        }
    }

    /// The same, less what is kept there.
    fn free_class(&self, page: usize, class: u8) -> u8 {
        let class = self.class_with_expected(page as u32, class);
        match self.kept.get(&(page as u32)) {
            Some((bytes, _)) if class > CLASS_FULL && *bytes > 0 => {
                let parts = space_map::class_needed(*bytes, self.page_bytes) - CLASS_FULL;
                class.min(space_map::class_not_empty(self.page_bytes)).saturating_sub(parts).max(CLASS_FULL)
            }
            _ => class,
        }
    }

    /// Changes what is kept of a page: by so many bytes, for so many rows.
    pub(crate) fn keep(&mut self, page: u32, bytes: isize, rows: i32) {
        let kept = self.kept.entry(page).or_default();
        *kept = (kept.0.saturating_add_signed(bytes), kept.1.saturating_add_signed(rows));
        if kept.1 == 0 {
            self.kept.remove(&page);
        }
        let class = self.word(page).class();
        if bytes != 0 && class >= CLASS_FULL {
            self.update_tree(page as usize, class);
        }
    }

    /// The class of a page, less what is kept there; that of a page without rows beyond the end.
    pub(crate) fn free_class_of(&self, page: u32) -> u8 {
        self.free_class(page as usize, self.word(page).class())
    }

    /// The class that a page may have when it is rebuilt: a search for room goes by it. 0: none but its own.
    pub(crate) fn expect(&mut self, page: u32, class: u8) {
        let before = if class == 0 { self.expected.remove(&page).unwrap_or(0) } else { self.expected.insert(page, class).unwrap_or(0) };
        let own = self.word(page).class();
        if before != class && own >= CLASS_FULL {
            self.update_tree(page as usize, own);
            self.changed.insert(space_map::locate(page, self.page_bytes).0);
        }
    }

    /// A rebuild of a page would have given so many bytes less than was expected, or (0) as many.
    pub(crate) fn note_overestimate(&mut self, page: u32, bytes: usize) {
        match u16::try_from(bytes) {
            Ok(0) => _ = self.overestimates.remove(&page),
            bytes => _ = self.overestimates.insert(page, bytes.unwrap_or(u16::MAX)),
        }
    }

    /// What is to be taken off what is expected of a rebuild.
    pub(crate) fn overestimate(&self, page: u32) -> usize {
        self.overestimates.get(&page).copied().unwrap_or(0).into()
    }

    /// What is kept of a page: bytes, and for how many rows.
    pub(crate) fn kept(&self, page: u32) -> (usize, u32) {
        self.kept.get(&page).copied().unwrap_or_default()
    }

    fn update_tree(&mut self, page: usize, class: u8) {
        let class = self.free_class(page, class);
        let mut node = self.capacity + page;
        self.tree[node] = class;
        while node > 1 {
            node /= 2;
            let larger = self.tree[2 * node].max(self.tree[2 * node + 1]);
            if self.tree[node] == larger {
                break;
            }
            self.tree[node] = larger;
        }
    }

    /// Pages described: the data set's page count.
    pub(crate) fn page_count(&self) -> u32 {
        self.words.len() as u32
    }

    /// Reserves bytes of pages yet to be taken, or gives them free.
    pub(crate) fn reserve(&mut self, bytes: i64) {
        self.reserved = self.reserved.saturating_add_signed(bytes);
    }

    fn reserved_pages(&self) -> u32 {
        self.reserved.div_ceil(self.page_bytes as u64) as u32
    }

    /// The free page whose blocks are to be asked for, so that beside the reserved pages `more` of the free ones have theirs; `None` when they have, or there is none.
    pub(crate) fn next_hole(&self, more: usize) -> Option<u32> {
        if self.free.ready() < self.reserved_pages() as usize + more { self.free.next_hole() } else { None }
    }

    /// That page has blocks.
    pub(crate) fn filled_hole(&mut self) {
        self.free.filled_hole();
    }

    /// Pages that the file must have beside those there are, `taken` of the free ones less, so that all reserved ones can be taken.
    pub(crate) fn reserve_pages(&self, taken: usize) -> u32 {
        let more = self.reserved_pages().saturating_sub(self.free.ready().saturating_sub(taken) as u32);
        // With the map pages that become due on the way.
        if more == 0 { 0 } else { more + more / space_map::words_per_page(self.page_bytes) + 1 }
    }

    /// Pages there will be when one more is taken, from the free ones if it may be.
    pub(crate) fn page_count_with_next(&self, free_ones: bool) -> u32 {
        let count = self.page_count();
        match free_ones && self.free.ready() > 0 {
            true => count,
            false => count + 1 + u32::from(space_map::is_map_page(count, self.page_bytes)),
        }
    }

    /// Pages that can be taken before the data set grows, beside what is reserved.
    pub(crate) fn free_pages(&self) -> u32 {
        (self.free.count() as u32).saturating_sub(self.reserved_pages())
    }

    /// A page's word; unallocated beyond the end.
    pub(crate) fn word(&self, page: u32) -> SpaceWord {
        self.words.get(page as usize).copied().unwrap_or_default()
    }

    fn set(&mut self, page: u32, word: SpaceWord) {
        let index = page as usize;
        if self.words[index] == word {
            return;
        }
        if self.words[index].class() != word.class() {
            self.update_tree(index, word.class());
        }
        self.words[index] = word;
        if page > 0 {
            self.changed.insert(space_map::locate(page, self.page_bytes).0);
        }
    }

    /// Sets a page's class.
    pub(crate) fn set_class(&mut self, page: u32, class: u8) {
        let word = self.word(page);
        self.set(page, SpaceWord::new(class, word.write_counter()));
    }

    /// The write counter a page is to be written with next; the map holds it from now on.
    pub(crate) fn count_write(&mut self, page: u32) -> u32 {
        let word = self.word(page);
        let counter = (word.write_counter() + 1) & 0xFF_FFFF;
        self.set(page, SpaceWord::new(word.class(), counter));
        counter
    }

    /// Takes a free page, or a new one at the end, with this class. Map pages that become due on the way are made. An unsettled page is free on disk until [`Self::settle`].
    ///
    /// # Errors
    /// When there are as many pages as `pages_max`.
    pub(crate) fn allocate(&mut self, class: u8, pages_max: u32, unsettled: bool) -> Result<u32> {
        let page = match self.free.take() {
            Some(page) => {
                self.set_class(page, class);
                page
            }
            None => self.append(class, pages_max)?,
        };
        if unsettled {
            self.unsettled.insert(page);
        }
        Ok(page)
    }

    /// The log knows that a page is in use.
    pub(crate) fn settle(&mut self, page: u32) {
        if self.unsettled.remove(&page) {
            self.changed.insert(space_map::locate(page, self.page_bytes).0);
        }
    }

    /// Takes a new page at the end.
    ///
    /// # Errors
    /// As [`Self::allocate`].
    pub(crate) fn append(&mut self, class: u8, pages_max: u32) -> Result<u32> {
        loop {
            let page = self.page_count();
            if page >= pages_max {
                return Err(Error::Parameter(format!("the data set is full at {pages_max} pages")));
            }
            let map_page = space_map::is_map_page(page, self.page_bytes);
            self.push(SpaceWord::new(if map_page { CLASS_NO_ROWS } else { class }, 0));
            self.changed.insert(space_map::locate(page, self.page_bytes).0);
            if !map_page {
                return Ok(page);
            }
        }
    }

    /// Redo: the page exists and has this class. The list of free pages is made by [`Self::collect_unallocated`] afterwards.
    pub(crate) fn redo(&mut self, page: u32, class: u8) {
        while self.page_count() <= page {
            let next = self.page_count();
            let map_page = space_map::is_map_page(next, self.page_bytes);
            self.push(SpaceWord::new(if map_page { CLASS_NO_ROWS } else { CLASS_UNALLOCATED }, 0));
            self.changed.insert(space_map::locate(next, self.page_bytes).0);
        }
        self.set_class(page, class);
    }

    /// A page on disk has been written this often; the map may not know that after a crash.
    pub(crate) fn see_write(&mut self, page: u32, counter: u32) {
        let word = self.word(page);
        if page < self.page_count() && word.page_ahead(counter) > 0 {
            self.set(page, SpaceWord::new(word.class(), counter & 0xFF_FFFF));
        }
    }

    /// Makes the list of free pages from the classes.
    pub(crate) fn collect_unallocated(&mut self) {
        let is_free = |page: &u32| self.words[*page as usize].class() == CLASS_UNALLOCATED;
        let pages = (0..self.page_count()).rev().filter(is_free).collect();
        self.free.found(pages);
    }

    /// What was given back so far was before this place in the log. May blocks of free pages go some time?
    pub(crate) fn seal_free_pages(&mut self, end: Lsn) -> bool {
        self.free.seal(end)
    }

    /// May free pages have rested since before this place in the log?
    pub(crate) fn may_have_rested(&self, before: Lsn) -> bool {
        self.free.may_have_rested(before)
    }

    /// May the blocks of a page have been given back? Those of a free page that was never written stay.
    pub(crate) fn may_be_hole(&self, page: u32) -> bool {
        let word = self.word(page);
        word.class() == CLASS_UNALLOCATED && word.write_counter() > 0
    }

    /// Takes free pages out whose blocks nobody needs who reads the log from this place on; one of [`FREE_PAGES_KEPT`] pages keeps its blocks. Ascending; they come back by [`Self::punched`] or [`Self::stay_free`].
    pub(crate) fn take_rested(&mut self, before: Lsn) -> Vec<u32> {
        let keep = self.page_count() / FREE_PAGES_KEPT + self.reserved_pages();
        self.free.take_rested(before, keep as usize)
    }

    /// The blocks of these free pages were given back.
    pub(crate) fn punched(&mut self, pages: &[u32]) {
        self.free.punched(pages);
    }

    /// The blocks of these free pages were not given back.
    pub(crate) fn stay_free(&mut self, pages: &[u32]) {
        self.free.stay(pages);
    }

    /// Appends a word of this class for the next page, which is to be `number`; returns its number.
    pub(crate) fn push_copy(&mut self, class: u8, number: u32) -> u32 {
        let page = self.page_count();
        self.push(SpaceWord::new(class, 0));
        self.changed.insert(space_map::locate(number, self.page_bytes).0);
        page
    }

    /// Gives a page back. The caller has emptied it.
    pub(crate) fn free(&mut self, page: u32) {
        self.unsettled.remove(&page);
        self.expected.remove(&page);
        self.overestimates.remove(&page);
        if self.word(page).class() == CLASS_UNALLOCATED {
            return;
        }
        self.set_class(page, CLASS_UNALLOCATED);
        self.free.add(page);
    }

    /// The first page, from page `from` on, of at least this class.
    pub(crate) fn find_from(&self, class: u8, from: u32) -> Option<u32> {
        debug_assert!(class >= CLASS_FULL);
        if from as usize >= self.capacity {
            return None;
        }
        let mut node = self.capacity + from as usize;
        while self.tree[node] < class {
            // To the next subtree on the right.
            node >>= node.trailing_ones();
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.capacity {
            node *= 2;
            if self.tree[node] < class {
                node += 1;
            }
        }
        Some((node - self.capacity) as u32)
    }

    /// Takes the list of map pages to write.
    pub(crate) fn take_changed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// Are there map pages to write?
    pub(crate) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Puts map pages back on that list: they could not be written.
    pub(crate) fn put_back(&mut self, pages: &[u32]) {
        self.changed.extend(pages);
    }

    /// The words a map page is to hold on disk.
    pub(crate) fn words_of(&self, map_page: u32) -> Vec<SpaceWord> {
        let first = map_page as usize;
        let end = (first + space_map::words_per_page(self.page_bytes) as usize).min(self.words.len());
        let mut words = self.words[first..end].to_vec();
        if !self.expected.is_empty() {
            for (page, word) in (map_page..).zip(&mut words) {
                *word = SpaceWord::new(self.class_with_expected(page, word.class()), word.write_counter());
            }
        }
        for page in self.unsettled.range(map_page..end as u32) {
            let word = &mut words[*page as usize - first];
            *word = SpaceWord::new(CLASS_UNALLOCATED, word.write_counter());
        }
        words
    }

    /// Sum of the write counters of all map pages.
    pub(crate) fn map_writes(&self) -> u64 {
        let step = space_map::words_per_page(self.page_bytes) as usize;
        self.words.iter().skip(1).step_by(step).map(|word| u64::from(word.write_counter())).sum()
    }

    /// All map pages.
    #[cfg(test)]
    pub(crate) fn map_pages(&self) -> impl Iterator<Item = u32> + use<> {
        (1..self.page_count()).step_by(space_map::words_per_page(self.page_bytes) as usize)
    }

    /// Data pages without rows, ascending, but for one of [`FREE_PAGES_KEPT`] pages: those with the lowest numbers.
    pub(crate) fn surplus_empty_pages(&self) -> Vec<u32> {
        let is_empty = |(_, word): &(usize, &SpaceWord)| word.class() == CLASS_EMPTY;
        let kept = (self.page_count() / FREE_PAGES_KEPT) as usize;
        self.words.iter().enumerate().filter(is_empty).map(|(page, _)| page as u32).skip(kept).collect()
    }

    /// Data pages: those whose class says how much room they have.
    pub(crate) fn data_pages(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().filter(|(_, word)| word.class() >= CLASS_FULL).map(|(page, _)| page as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_page_with_room() {
        let mut map = SpaceMap::new(2048);
        let mut model: Vec<u8> = vec![CLASS_NO_ROWS];
        let mut seed = 1u64;
        for step in 0..20_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let class = CLASS_FULL + (seed >> 57) as u8;
            if step % 3 == 0 {
                let page = map.append(class, u32::MAX).unwrap();
                while model.len() < page as usize {
                    model.push(CLASS_NO_ROWS);
                }
                model.push(class);
            } else {
                let page = (seed >> 20) as usize % model.len();
                if model[page] >= CLASS_FULL {
                    map.set_class(page as u32, class);
                    model[page] = class;
                }
            }
            let wanted = CLASS_FULL + (seed >> 33) as u8 % 130;
            for from in [0, (seed >> 40) as usize % (model.len() + 2)] {
                let expected = (from..model.len()).find(|page| model[*page] >= wanted).map(|page| page as u32);
                assert_eq!(map.find_from(wanted, from as u32), expected);
            }
        }
        assert!(space_map::is_map_page(1, 2048) && map.word(1).class() == CLASS_NO_ROWS);
        assert_eq!(map.map_pages().next(), Some(1));
    }

    #[test]
    fn freed_pages_are_used_again() {
        let mut map = SpaceMap::new(4096);
        let pages: Vec<u32> = (0..10).map(|_| map.allocate(CLASS_NO_ROWS, 100, false).unwrap()).collect();
        map.free(pages[4]);
        assert_eq!(map.allocate(CLASS_FULL, 100, false).unwrap(), pages[4]);
        assert!(map.append(CLASS_FULL, map.page_count()).is_err());
        assert_eq!(map.count_write(pages[0]), 1);
        assert_eq!(map.count_write(pages[0]), 2);
        assert_eq!(map.map_writes(), 0);
        map.count_write(1);
        assert_eq!(map.map_writes(), 1);
        assert_eq!(map.take_changed(), vec![1]);
    }
}

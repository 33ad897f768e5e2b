//! Stack distances of all pages.
//!
//! Each page has the time of its last request. A tree of partial sums over times counts the pages whose last request is later than a given time (Bennett, Kruskal 1975; here a Fenwick tree). Times
//! are given out from 0; when they reach the tree's length, the pages that are there get the first times again, in their order.
//!
//! Invariant: the tree is at most four times as long as there are pages, or of the first length.

use std::collections::HashMap;

const LENGTH_FIRST: usize = 1024;

/// How many pages were asked for since a page was last, itself included: a pool of so many frames that forgets the least recently used page would still have it.
#[derive(Clone, Debug)]
pub struct StackDistances {
    last: HashMap<u64, usize>,
    /// Fenwick tree over times: 1 where a page was last asked for.
    sums: Vec<u32>,
    now: usize,
}

impl Default for StackDistances {
    fn default() -> StackDistances {
        StackDistances { last: HashMap::new(), sums: vec![0; LENGTH_FIRST], now: 0 }
    }
}

impl StackDistances {
    /// The page is asked for. Its distance; `None`: for the first time.
    pub fn request(&mut self, page: u64) -> Option<u64> {
        if self.now == self.sums.len() {
            self.renumber();
        }
        let before = self.last.insert(page, self.now);
        let distance = before.map(|time| {
            // Pages asked for up to that time, this one included, are not in between.
            let in_between = self.last.len() as u64 - self.pages_until(time);
            self.add(time, false);
            in_between + 1
        });
        self.add(self.now, true);
        self.now += 1;
        distance
    }

    /// Forgets a page.
    pub fn forget(&mut self, page: u64) {
        if let Some(time) = self.last.remove(&page) {
            self.add(time, false);
        }
    }

    /// Pages that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    fn add(&mut self, time: usize, more: bool) {
        let mut at = time;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = if more { *sum + 1 } else { *sum - 1 };
            at |= at + 1;
        }
    }

    /// Pages whose last request was at this time or before.
    fn pages_until(&self, time: usize) -> u64 {
        let (mut sum, mut end) = (0u64, time + 1);
        while end > 0 {
            sum += u64::from(self.sums[end - 1]);
            end &= end - 1;
        }
        sum
    }

    fn renumber(&mut self) {
        let mut pages: Vec<(usize, u64)> = self.last.iter().map(|(page, time)| (*time, *page)).collect();
        pages.sort_unstable();
        self.sums = vec![0; (pages.len() * 4).max(LENGTH_FIRST)];
        for (time, (_, page)) in pages.iter().enumerate() {
            self.last.insert(*page, time);
            self.add(time, true);
        }
        self.now = pages.len();
    }
}

//! Room on pages that running transactions may need to take their updates back, and which pages those are.
//!
//! An update that makes a row shorter frees bytes on its page. Until the transaction ends nobody gets them: so taking it back finds room where it was, and a full disk never fails a rollback. Deleted rows need no
//! such thing, as ghosts keep their bytes. Nothing of this is on disk: after a crash the room is still there, since nobody was given it.
//!
//! A page on which an update may have to be taken back is not rebuilt: a row that lies by itself then finds the room it had, and a row of the column part its encoding.
//!
//! Invariant: what is reserved on a page is entered under its exclusive latch, and looked at under it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A page: file id and number.
type Page = (u32, u32);

/// Everything reserved in a database.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// Transactions with reservations; 0: nobody has to look.
    transactions: AtomicUsize,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// Bytes, and how many entries there are.
    of_pages: HashMap<Page, (usize, usize)>,
    of_transactions: HashMap<u64, Vec<(Page, usize)>>,
}

impl Reservations {
    /// Keeps bytes of a page, which is latched for change, for a transaction.
    pub(crate) fn enter(&self, transaction: u64, page: Page, bytes: usize) {
        let mut lists = self.lists.lock();
        let reserved = lists.of_pages.entry(page).or_default();
        *reserved = (reserved.0 + bytes, reserved.1 + 1);
        lists.of_transactions.entry(transaction).or_default().push((page, bytes));
        self.transactions.store(lists.of_transactions.len(), Ordering::Release);
    }

    /// Bytes of a page that are not to be given away.
    pub(crate) fn of_page(&self, page: Page) -> usize {
        if self.transactions.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.lists.lock().of_pages.get(&page).map_or(0, |reserved| reserved.0)
    }

    /// Has this transaction something reserved on a page?
    pub(crate) fn keeps(&self, transaction: u64, page: Page) -> bool {
        self.has(page) && self.lists.lock().of_transactions.get(&transaction).is_some_and(|list| list.iter().any(|(kept, _)| *kept == page))
    }

    /// Might an update of the page's rows be taken back?
    pub(crate) fn has(&self, page: Page) -> bool {
        self.transactions.load(Ordering::Acquire) > 0 && self.lists.lock().of_pages.contains_key(&page)
    }

    /// Rows of a page may have come to another one: what is kept there is kept here, too. Both are latched for change.
    pub(crate) fn copy(&self, from: Page, to: Page) {
        let mut lists = self.lists.lock();
        let Lists { of_pages, of_transactions } = &mut *lists;
        for list in of_transactions.values_mut() {
            let bytes: usize = list.iter().filter(|(page, _)| *page == from).map(|(_, bytes)| bytes).sum();
            if list.iter().any(|(page, _)| *page == from) {
                list.push((to, bytes));
                let reserved = of_pages.entry(to).or_default();
                *reserved = (reserved.0 + bytes, reserved.1 + 1);
            }
        }
    }

    /// The transaction is ended.
    pub(crate) fn release(&self, transaction: u64) {
        if self.transactions.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut lists = self.lists.lock();
        for (page, bytes) in lists.of_transactions.remove(&transaction).unwrap_or_default() {
            if let Some(reserved) = lists.of_pages.get_mut(&page) {
                *reserved = (reserved.0 - bytes, reserved.1 - 1);
                if reserved.1 == 0 {
                    lists.of_pages.remove(&page);
                }
            }
        }
        self.transactions.store(lists.of_transactions.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back_at_the_end() {
        let all = Reservations::default();
        all.enter(1, (5, 6), 10);
        all.enter(2, (5, 6), 7);
        all.enter(1, (5, 6), 1);
        all.enter(1, (5, 9), 3);
        all.enter(1, (5, 8), 0);
        assert_eq!((all.of_page((5, 6)), all.of_page((5, 9)), all.of_page((6, 6))), (18, 3, 0));
        assert!(all.has((5, 8)) && all.has((5, 6)) && !all.has((6, 6)));
        assert!(all.keeps(1, (5, 9)) && !all.keeps(2, (5, 9)) && !all.keeps(3, (5, 6)));
        all.copy((5, 6), (7, 7));
        assert_eq!(all.of_page((7, 7)), 18);
        all.release(1);
        assert_eq!(all.of_page((7, 7)), 7);
        assert_eq!((all.of_page((5, 6)), all.of_page((5, 9))), (7, 0));
        assert!(!all.has((5, 8)) && all.has((5, 6)));
        all.release(2);
        assert_eq!(all.of_page((5, 6)), 0);
        assert_eq!(all.transactions.load(Ordering::Relaxed), 0);
    }
}

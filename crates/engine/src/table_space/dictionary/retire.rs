//! The end of the oldest version.
//!
//! Its rows are brought into the form of the newest page by page. That they are gone from all pages does not follow from having seen each without: a row may have been changed, and so have lost its old form, on a page not seen yet, and
//! the change be taken back to a page seen before. So whoever puts a row in the place of one with the version, or the other way round, is counted. The version is gone from pages and from what may be taken back when
//! - every transaction has ended that was there when the count was taken, so that none of them takes anything back, and
//! - after that, all pages that there are were seen, each without a row of the version or rewritten, and
//! - the count is still the same.
//!
//! Otherwise the round begins anew; in the next there is next to nothing to count.

use super::super::table::Table;
use super::rewrite::Rewritten;
use crate::Result;
use crate::data_set::DataSet;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Rows that lost the version that is to go, or got it again.
#[derive(Debug, Default)]
pub(in crate::table_space) struct Changed {
    /// The version; 0: none is to go.
    version: AtomicU16,
    rows: AtomicU64,
}

impl Changed {
    /// A row with a form of these dictionaries takes the place of another, or the other way round. Its page is latched.
    #[inline]
    pub(in crate::table_space) fn note(&self, before: Option<u16>, after: Option<u16>) {
        let version = self.version.load(Ordering::Relaxed);
        if version != 0 && (before == Some(version) || after == Some(version)) {
            self.rows.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A round through the pages of a table.
#[derive(Debug)]
pub(crate) struct Round {
    /// The version that goes; 0: rows of before the first dictionary get its form, and nothing has to be sure.
    version: u16,
    /// Transactions below this id have to end first.
    waits_for: u64,
    /// The count when it began.
    changed: u64,
    /// Partitions and numbers of the pages that are still to be seen; `None` before the transactions have ended that it waits for: until then they may add pages.
    pages: Option<VecDeque<(u16, u32)>>,
}

impl Table {
    /// The round that is going on, or one that begins: of the oldest version when there are as many as can be, or of rows without a dictionary. `None` when nothing is to go. `next_id` is that of the next transaction.
    pub(crate) fn begin_round(&self, next_id: u64) -> Result<Option<Round>> {
        if let Some(round) = self.round.lock().take() {
            return Ok(Some(round));
        }
        let Some(version) = self.version_to_retire()? else { return Ok(None) };
        // First the version: who does not see it changes a row before the count is taken, or before the round's transactions have ended.
        self.changed.version.store(version, Ordering::SeqCst);
        let changed = self.changed.rows.load(Ordering::SeqCst);
        Ok(Some(Round { version, waits_for: next_id, changed, pages: None }))
    }

    /// Is a round waiting to go on?
    pub(crate) fn is_in_round(&self) -> bool {
        self.round.lock().is_some()
    }

    /// The round goes on later.
    pub(crate) fn suspend(&self, round: Round) {
        *self.round.lock() = Some(round);
    }

    /// Ends a round of which all pages were seen: whether the version has gone. If not, another round is needed.
    pub(crate) fn end_round(&self, round: &Round) -> Result<bool> {
        if round.version == 0 {
            self.nothing_is_plain();
            return Ok(false);
        }
        if self.changed.rows.load(Ordering::SeqCst) != round.changed {
            return Ok(false);
        }
        self.drop_dictionary(round.version)?;
        self.nothing_retires();
        self.changed.version.store(0, Ordering::SeqCst);
        Ok(true)
    }
}

impl Round {
    /// Transactions below this id have to end before pages are seen.
    pub(crate) fn waits_for(&self) -> u64 {
        self.waits_for
    }

    /// The transactions that it waits for have ended: lists the pages that there are, if it has not yet. A transaction that began later has a newer dictionary for its rows.
    pub(crate) fn list_pages(&mut self, table: &Table) {
        self.pages.get_or_insert_with(|| {
            let partitions = table.all_partitions();
            let defined = partitions.iter().enumerate().filter(|(_, data_set)| data_set.is_defined());
            let numbers = |data_set: &DataSet| data_set.data_page_numbers();
            defined.flat_map(|(partition, data_set)| numbers(data_set).into_iter().map(move |number| (partition as u16, number))).collect()
        });
    }

    /// Pages that are still to be seen: all of the table before they are listed.
    pub(crate) fn pages_left(&self, table: &Table) -> usize {
        let all = || table.data_sets().filter(|data_set| data_set.is_defined()).map(|data_set| data_set.facts().data_pages as usize).sum();
        self.pages.as_ref().map_or_else(all, VecDeque::len)
    }

    /// Sees the next page. One that somebody may need as it is comes again.
    pub(crate) fn see_page(&mut self, table: &Table) -> Result<Rewritten> {
        let Some(pages) = &mut self.pages else { return Ok(Rewritten::Clean) };
        let Some((partition, number)) = pages.pop_front() else { return Ok(Rewritten::Clean) };
        let outcome = table.partition(partition).and_then(|data_set| table.rewrite_page(partition, data_set, number, self.version));
        if !matches!(outcome, Ok(Rewritten::Clean | Rewritten::Done)) {
            pages.push_back((partition, number));
        }
        outcome
    }

    /// The pages that are left were all busy: those who are running now have to end first.
    pub(crate) fn wait_for(&mut self, next_id: u64) {
        self.waits_for = next_id;
    }
}

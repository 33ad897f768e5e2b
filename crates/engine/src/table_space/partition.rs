//! Partitions of a table: each is a data set, and knows where in it rows find room.
//!
//! Invariants:
//! - partition p is the p-th of the list; partitions are only ever added at the end (partition-by-growth);
//! - a partition of a live table is in the log before it is in the list; while nobody holds [`Partitions::adding`], both agree.

use super::undo_pages::UndoPages;
use crate::data_set::DataSet;
use crate::doubling::{Doubling, segments_for};
use pagefold_types::PARTITION_MAX;
use parking_lot::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// One of them. It is used as its data set.
#[derive(Debug)]
pub struct Partition {
    data_set: Arc<DataSet>,
    /// The page where the last insert found room: the next one looks there first.
    pub(super) insert_hint: PageHint,
    /// The page that hosted rows of another one last.
    pub(super) host_hint: PageHint,
    /// Under the method `page`: the pages that rows move to while changes are taken back.
    pub(super) undo_pages: UndoPages,
}

impl Deref for Partition {
    type Target = Arc<DataSet>;

    fn deref(&self) -> &Arc<DataSet> {
        &self.data_set
    }
}

impl Partition {
    fn new(data_set: Arc<DataSet>) -> Partition {
        Partition { data_set, insert_hint: PageHint::default(), host_hint: PageHint::default(), undo_pages: UndoPages::default() }
    }

    /// Its data set.
    #[must_use]
    pub fn data_set(&self) -> &Arc<DataSet> {
        &self.data_set
    }

    /// Which one of its table it is.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.data_set.attributes.partition
    }

    /// Has it as many pages as go into `bytes`?
    pub(super) fn is_full(&self, bytes: u64) -> bool {
        u64::from(self.data_set.page_count() + 2) * self.data_set.page_bytes() as u64 > bytes
    }
}

/// The number of a page that is worth a look; who changes it does not wait for others.
#[derive(Debug, Default)]
pub(super) struct PageHint(AtomicU32);

impl PageHint {
    pub(super) fn get(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|page| *page != 0)
    }

    pub(super) fn set(&self, page: u32) {
        self.0.store(page, Ordering::Relaxed);
    }
}

/// All of a table.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    list: Doubling<OnceLock<Partition>, 0, { segments_for(0, PARTITION_MAX as u32) }>,
    /// How many there are.
    count: AtomicU16,
    /// The same, for who adds one.
    adding: Mutex<u16>,
    /// The one before the last one that had room, or free pages, when that was looked for.
    with_room: AtomicU16,
}

impl Partitions {
    /// Nobody else adds one meanwhile; how many there are.
    pub(super) fn adding(&self) -> MutexGuard<'_, u16> {
        self.adding.lock()
    }

    /// Adds the next one. `None` when there are all that can be.
    pub(super) fn push(&self, count: &mut u16, data_set: Arc<DataSet>) -> Option<&Partition> {
        if *count > PARTITION_MAX {
            return None;
        }
        let place = self.list.get_or_make(u32::from(*count)).get_or_init(|| Partition::new(data_set));
        *count += 1;
        self.count.store(*count, Ordering::Release);
        Some(place)
    }

    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<&Partition> {
        self.list.get(u32::from(number))?.get()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Partition> {
        (0..=PARTITION_MAX).map_while(|number| self.get(number))
    }

    pub(super) fn last(&self) -> Option<&Partition> {
        self.get(self.count.load(Ordering::Acquire).checked_sub(1)?)
    }

    /// Those before one; first where there was room or a page when it was looked for last.
    pub(super) fn before(&self, last: &Partition) -> impl Iterator<Item = &Partition> {
        let last = last.number();
        let first = self.with_room.load(Ordering::Relaxed).min(last);
        (first..last).chain(0..first).filter_map(|number| self.get(number))
    }

    /// This one had room, or free pages.
    pub(super) fn found_room_in(&self, partition: &Partition) {
        self.with_room.store(partition.number(), Ordering::Relaxed);
    }
}

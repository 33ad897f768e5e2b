//! Are the keys of an index unique over all partitions of a table? Looked at when the index comes, when a table takes the place of a partition, and when rows were loaded; from then on who gives a key to
//! a row looks by himself (`transaction/all_partitions.rs`).
//!
//! Invariant: shares are read in the order of their keys, all at once, each from its first leaf to its last: one page of each is held, however many rows there are.

use super::transaction::Share;
use crate::btree::{Cursor, Direction};
use crate::transaction::Snapshot;
use crate::{Error, Progress, Result, Unit};
use pagefold_types::Rid;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries between two looks at whether to stop.
const ENTRIES_PER_LOOK: u64 = 4096;

/// Refuses a key that rows of two partitions have, as a snapshot sees them.
///
/// # Errors
/// [`Error::DuplicateKey`]; [`Error::Interrupted`]; when a page is damaged.
pub(super) fn check_unique(shares: &[Share], snapshot: &Snapshot, progress: &dyn Progress) -> Result<()> {
    let Some(first) = shares.first() else { return Ok(()) };
    let name = crate::objects::split_partition_name(first.index.name()).map_or(first.index.name(), |(name, _)| name);
    progress.start(&format!("comparing keys of {name} in all partitions"), None, Unit::Rows);
    let mut cursors: Vec<Cursor<'_>> = shares.iter().map(|share| share.index.tree().all(Direction::Forward)).collect();
    let mut next = BinaryHeap::with_capacity(shares.len());
    for (at, cursor) in cursors.iter_mut().enumerate() {
        if let Some((key, rid)) = cursor.next()? {
            next.push(Reverse((key.to_vec(), at, rid)));
        }
    }
    // Entries of one key.
    let mut key = Vec::new();
    let mut same: Vec<(usize, Rid)> = Vec::new();
    let mut looked = 0;
    while let Some(mut least) = next.peek_mut() {
        let Reverse((own, at, rid)) = &mut *least;
        if *own != key {
            check_key(shares, snapshot, &key, &same)?;
            same.clear();
            key.clone_from(own);
        }
        same.push((*at, *rid));
        match cursors[*at].next()? {
            Some((following, of)) => {
                own.clear();
                own.extend_from_slice(following);
                *rid = of;
            }
            None => drop(std::collections::binary_heap::PeekMut::pop(least)),
        }
        looked += 1;
        if looked % ENTRIES_PER_LOOK == 0 {
            progress.advance(ENTRIES_PER_LOOK);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }
    check_key(shares, snapshot, &key, &same)?;
    progress.finish();
    Ok(())
}

/// Refuses a key that rows of two shares have, of those that its entries name.
fn check_key(shares: &[Share], snapshot: &Snapshot, key: &[u8], entries: &[(usize, Rid)]) -> Result<()> {
    let is_of_one = entries.windows(2).all(|pair| pair[0].0 == pair[1].0);
    if is_of_one || shares[0].index.has_null(key) {
        return Ok(());
    }
    let mut taker = None;
    for (at, rid) in entries {
        let share = &shares[*at];
        if share.row_has_key(*rid, key, snapshot)? && taker.replace(*at).is_some_and(|other| other != *at) {
            return Err(share.index.duplicate(key));
        }
    }
    Ok(())
}

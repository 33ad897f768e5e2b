//! After which commit the rows in the new slots of pages came, for as long as somebody may ask: so that
//! of rows that came and went while a transaction was idle nothing is kept for it.
//!
//! What is not known counts as having been there always.
//!
//! Invariants:
//! - a note (commit, slots) of a page says that no slot from `slots` on held a row when that commit was
//!   the last one, so whatever row is or was there since came later;
//! - the notes of a page ascend by commit; there are few.

use super::pins::Pins;
use crate::hash::{self, FastMap};
use parking_lot::Mutex;
use std::sync::Arc;

const SHARDS: usize = 16;
/// Notes of a page; when there are so many, those that no idle transaction needs go.
const NOTES_MAX: usize = 8;
/// Pages of a shard; when there are so many, the same is done for all of them.
const PAGES_MAX: usize = 4096;

/// File id and number.
type Page = (u32, u32);

#[derive(Clone, Copy, Debug)]
struct Note {
    commit: u64,
    slots: u16,
}

/// The notes of a database.
#[derive(Debug, Default)]
pub(crate) struct Births {
    shards: [Mutex<FastMap<Page, Vec<Note>>>; SHARDS],
}

impl Births {
    fn shard(&self, (file, page): Page) -> &Mutex<FastMap<Page, Vec<Note>>> {
        &self.shards[(hash::of_pair(file, page.into()) >> 60) as usize]
    }

    /// A row is about to come into the slot behind the last one of a page, which is latched and has so many slots. `last_commit` is the last commit, `last_end` the last one at the end of any
    /// statement that remembers rows.
    pub(crate) fn note(&self, page: Page, slots: u16, last_commit: u64, last_end: u64, pins: impl Fn() -> Arc<Pins>) {
        let mut pages = self.shard(page).lock();
        if pages.len() >= PAGES_MAX && !pages.contains_key(&page) {
            let pins = pins();
            pages.retain(|_, notes| {
                prune(notes, &pins);
                !notes.is_empty()
            });
            if pages.len() >= PAGES_MAX {
                return;
            }
        }
        let notes = pages.entry(page).or_default();
        if notes.last().is_some_and(|last| last.commit >= last_end) {
            return;
        }
        if notes.len() >= NOTES_MAX {
            prune(notes, &pins());
        }
        if notes.len() < NOTES_MAX {
            notes.push(Note { commit: last_commit, slots });
        }
    }

    /// The newest commit after which the row in a slot is known to have come; 0 when nothing is known.
    pub(crate) fn of(&self, page: Page, slot: u16) -> u64 {
        let pages = self.shard(page).lock();
        let notes = pages.get(&page).map_or(&[][..], Vec::as_slice);
        notes.iter().rev().find(|note| note.slots <= slot).map_or(0, |note| note.commit)
    }
}

/// Of the notes of a page only the first after what an idle transaction has seen is of use to it.
fn prune(notes: &mut Vec<Note>, pins: &Pins) {
    let mut before = 0;
    notes.retain(|note| {
        let needed = pins.is_idle_between(before, note.commit);
        before = note.commit;
        needed
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_note_below_the_slot_counts() {
        let births = Births::default();
        let none = || Arc::new(Pins::default());
        births.note((1, 7), 10, 100, 90, none);
        births.note((1, 7), 11, 105, 99, none);
        assert_eq!(births.of((1, 7), 10), 100, "the first note does for who has seen no more");
        births.note((1, 7), 12, 120, 110, none);
        assert_eq!([9, 10, 11, 12, 13].map(|slot| births.of((1, 7), slot)), [0, 100, 100, 120, 120]);
        assert_eq!(births.of((2, 7), 12), 0);
        for commit in 200..300 {
            births.note((1, 7), 20, commit, commit, none);
        }
        assert!(births.shard((1, 7)).lock()[&(1, 7)].len() <= NOTES_MAX);
    }
}

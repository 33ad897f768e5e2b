//! Rows that a committed transaction has put elsewhere as they were: where they are now, for who remembers their RIDs from before.
//!
//! Who reads what is committed at each moment, and locks a row by a RID that it has seen, is to find the row and not that it was deleted. Who keeps a snapshot meets the move as any other
//! change.
//!
//! Invariants:
//! - a move is noted by its commit, before anybody sees that commit and before the locks of the row are given up: so whoever has the row's lock, or a snapshot that sees the commit, finds it;
//! - a note lives as long as the ghost that the move has left in the old slot, and goes before that slot is free: nobody who remembers the RID is without it, and it never stands for another row
//!   that has come to lie in the slot;
//! - a note leads to where the row is at last, however often it was moved, and goes when that row is deleted and its slot is to be free.

use crate::hash::FastMap;
use pagefold_types::Rid;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A row: its table, and its RID.
type Row = (u32, Rid);

/// Where a row is that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) to: Rid,
    /// The last commit that moved it.
    pub(crate) commit: u64,
}

#[derive(Debug, Default)]
struct Notes {
    to: FastMap<Row, Moved>,
    /// The RIDs that lead to one.
    from: FastMap<Row, Vec<Rid>>,
}

/// All of a database.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// As long as there are none, nobody waits here.
    count: AtomicUsize,
    notes: Mutex<Notes>,
}

impl Moves {
    /// Where the row of a RID has gone; `None`: nowhere.
    #[inline]
    pub(crate) fn of(&self, object: u32, rid: Rid) -> Option<Moved> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.notes.lock().to.get(&(object, rid)).copied()
    }

    /// How many RIDs lead elsewhere.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// The commit of this timestamp, which nobody sees yet, has moved rows of a table from one RID to another.
    pub(crate) fn committed(&self, commit: u64, moves: impl Iterator<Item = (u32, Rid, Rid)>) {
        let mut notes = self.notes.lock();
        for (object, from, to) in moves {
            let mut sources = notes.from.remove(&(object, from)).unwrap_or_default();
            sources.push(from);
            for source in &sources {
                notes.to.insert((object, *source), Moved { to, commit });
            }
            notes.from.entry((object, to)).or_default().append(&mut sources);
        }
        self.count.store(notes.to.len(), Ordering::Release);
    }

    /// The ghost in a slot is about to go: nobody remembers its RID any more, and no row is there for those that lead to it.
    pub(crate) fn forget(&self, object: u32, rid: Rid) {
        if self.count() == 0 {
            return;
        }
        let mut notes = self.notes.lock();
        if let Some(moved) = notes.to.remove(&(object, rid)) {
            let target = (object, moved.to);
            if let Some(sources) = notes.from.get_mut(&target) {
                sources.retain(|source| *source != rid);
                if sources.is_empty() {
                    notes.from.remove(&target);
                }
            }
        }
        for source in notes.from.remove(&(object, rid)).unwrap_or_default() {
            notes.to.remove(&(object, source));
        }
        self.count.store(notes.to.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rid(page: u32) -> Rid {
        Rid::new(0, page, 1)
    }

    #[test]
    fn a_note_leads_to_where_the_row_is_at_last() {
        let moves = Moves::default();
        assert_eq!(moves.of(1, rid(9)), None);
        moves.committed(5, [(1, rid(9), rid(7)), (1, rid(8), rid(6))].into_iter());
        moves.committed(6, [(1, rid(7), rid(3))].into_iter());
        assert_eq!(moves.of(1, rid(9)), Some(Moved { to: rid(3), commit: 6 }));
        assert_eq!(moves.of(1, rid(7)), Some(Moved { to: rid(3), commit: 6 }));
        assert_eq!(moves.of(1, rid(8)), Some(Moved { to: rid(6), commit: 5 }));
        assert_eq!((moves.of(2, rid(9)), moves.of(1, rid(3)), moves.count()), (None, None, 3));
    }

    /// A slot that is free may hold any row next: nothing leads there, and nothing leads from there.
    #[test]
    fn a_slot_that_is_to_be_free_has_no_notes() {
        let moves = Moves::default();
        moves.committed(5, [(1, rid(9), rid(7)), (1, rid(8), rid(6))].into_iter());
        moves.committed(6, [(1, rid(7), rid(3))].into_iter());
        moves.forget(1, rid(7));
        assert_eq!((moves.of(1, rid(7)), moves.of(1, rid(9)).map(|moved| moved.to)), (None, Some(rid(3))));
        moves.forget(1, rid(3));
        assert_eq!((moves.of(1, rid(9)), moves.of(1, rid(8)).map(|moved| moved.to)), (None, Some(rid(6))));
        // Another row that comes there and goes on has notes of its own.
        moves.committed(8, [(1, rid(3), rid(2))].into_iter());
        assert_eq!((moves.of(1, rid(3)).map(|moved| moved.to), moves.of(1, rid(9))), (Some(rid(2)), None));
        [3, 8].into_iter().for_each(|page| moves.forget(1, rid(page)));
        let notes = moves.notes.lock();
        assert!(notes.to.is_empty() && notes.from.is_empty());
    }
}

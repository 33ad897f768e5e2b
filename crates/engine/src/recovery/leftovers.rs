//! What transactions have left, as the log has it so far.
//!
//! Invariants:
//! - what is found again costs the same, however much is left: ghosts are found by their home, large values by their first page, those of a transaction that has no end yet by its id;
//! - of one transaction the records come in the order of the log, so those that a compensation takes back are the last.

use crate::steps::step;
use pagefold_format::log::{CheckpointLeftover, Leftover, Lsn};
use pagefold_types::Rid;
use std::collections::{BTreeMap, HashMap};

/// Where something is that goes when the log says that its place is free: (table, partition, first page of a large value or page of a ghost, its slot).
type Place = (u32, u16, u32, Option<u16>);

fn place(left: &Leftover) -> Option<Place> {
    match left {
        Leftover::Entry { .. } => None,
        Leftover::LargeValue { object_id, value } => Some((*object_id, value.partition, value.first_page, None)),
        Leftover::Ghost { object_id, rid, .. } => Some((*object_id, rid.partition(), rid.page(), Some(rid.slot()))),
    }
}

/// Leftovers, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    all: BTreeMap<u64, CheckpointLeftover>,
    came: u64,
    by_place: HashMap<Place, Vec<u64>>,
    /// Of transactions that have no end.
    running: HashMap<u64, Vec<u64>>,
}

impl Leftovers {
    /// Those that a checkpoint has.
    pub(super) fn of(listed: &[CheckpointLeftover]) -> Leftovers {
        let mut leftovers = Leftovers::default();
        let mut listed: Vec<&CheckpointLeftover> = listed.iter().collect();
        listed.sort_by_key(|left| left.after);
        listed.into_iter().for_each(|left| leftovers.push(left.clone()));
        leftovers
    }

    pub(super) fn push(&mut self, left: CheckpointLeftover) {
        step();
        let number = self.came;
        self.came += 1;
        if let Some(place) = place(&left.left) {
            self.by_place.entry(place).or_default().push(number);
        }
        if left.transaction != 0 {
            self.running.entry(left.transaction).or_default().push(number);
        }
        self.all.insert(number, left);
    }

    /// A transaction has committed.
    pub(super) fn committed(&mut self, transaction: u64) {
        for number in self.running.remove(&transaction).into_iter().flatten() {
            step();
            if let Some(left) = self.all.get_mut(&number) {
                left.transaction = 0;
            }
        }
    }

    /// A transaction is taken back to its record at `next`: what its later ones leave is not left.
    pub(super) fn taken_back(&mut self, transaction: u64, next: Lsn) {
        let Some(numbers) = self.running.get_mut(&transaction) else { return };
        while let Some(number) = numbers.last().copied() {
            step();
            match self.all.get(&number) {
                Some(left) if left.after < next => return,
                // Forgotten since.
                None => _ = numbers.pop(),
                Some(left) => {
                    numbers.pop();
                    let gone = place(&left.left);
                    self.all.remove(&number);
                    if let Some(place) = gone {
                        self.by_place.entry(place).and_modify(|numbers| numbers.retain(|other| *other != number));
                    }
                }
            }
        }
    }

    /// A ghost is gone: its slot may hold another row, or another ghost, by now.
    pub(super) fn forget_ghost(&mut self, table: u32, home: Rid) {
        self.forget((table, home.partition(), home.page(), Some(home.slot())));
    }

    /// A page was given back: a large value that began there is gone, and is not to be removed again.
    pub(super) fn forget_large_value(&mut self, table: u32, partition: u16, first_page: u32) {
        self.forget((table, partition, first_page, None));
    }

    fn forget(&mut self, place: Place) {
        step();
        for number in self.by_place.remove(&place).into_iter().flatten() {
            step();
            self.all.remove(&number);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of transactions that have committed.
    pub(crate) fn of_committed(&self) -> impl Iterator<Item = &Leftover> {
        self.all.values().filter(|left| left.transaction == 0).map(|left| &left.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_types::Rid;

    fn ghost(transaction: u64, after: Lsn, slot: u16) -> CheckpointLeftover {
        CheckpointLeftover { transaction, after, left: Leftover::Ghost { object_id: 7, rid: Rid::new(0, 3, slot), kind: 0 } }
    }

    fn slots(leftovers: &Leftovers) -> Vec<u16> {
        let slot = |left: &Leftover| match left {
            Leftover::Ghost { rid, .. } => rid.slot(),
            other => panic!("{other:?}"),
        };
        leftovers.of_committed().map(slot).collect()
    }

    #[test]
    fn what_is_taken_back_or_gone_is_not_left() {
        let mut leftovers = Leftovers::of(&[ghost(0, 0, 0), ghost(5, 20, 2), ghost(5, 10, 1)]);
        leftovers.push(ghost(5, 30, 3));
        leftovers.push(ghost(6, 40, 4));
        assert_eq!(slots(&leftovers), [0]);
        leftovers.forget_ghost(7, Rid::new(0, 3, 3));
        leftovers.forget_ghost(8, Rid::new(0, 3, 0));
        leftovers.taken_back(5, 20);
        // The slot holds another ghost of the same transaction.
        leftovers.push(ghost(5, 50, 2));
        leftovers.committed(5);
        assert_eq!(slots(&leftovers), [0, 1, 2]);
        leftovers.taken_back(6, 0);
        leftovers.committed(6);
        assert_eq!(slots(&leftovers), [0, 1, 2]);
        for slot in 0..3 {
            leftovers.forget_ghost(7, Rid::new(0, 3, slot));
        }
        assert!(leftovers.is_empty());
    }
}

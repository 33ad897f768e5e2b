//! What could not be removed when its turn came, by what it waits for.
//!
//! Invariants:
//! - each element is filed once: under a snapshot or pin that may need it, or in the queue of those that are only to be tried again;
//! - what is filed under one that is there is not looked at: so a look costs as much as can go, or waits for somebody else now. It is filed under the newest that may need it, so it is looked at no later
//!   than when all of them have ended;
//! - an element stays filed while it is looked at: who stops in between has lost nothing.

use crate::steps::stepping;
use std::collections::{BTreeMap, BTreeSet};

/// What an element waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The end of the snapshots and pins of this timestamp.
    For(u64),
    /// Somebody who changes its row just now, or keeps it otherwise.
    Busy,
    /// Room.
    NoRoom,
}

/// Where an element is filed.
#[derive(Clone, Copy, Debug)]
enum Filed {
    For(u64),
    Busy(u64),
    NoRoom(u64),
}

/// Elements that are held, each with the timestamp of the last commit that left it.
#[derive(Debug)]
pub(crate) struct Held<T> {
    elements: BTreeMap<T, (u64, Filed)>,
    waiting: BTreeMap<u64, BTreeSet<T>>,
    busy: BTreeMap<u64, T>,
    no_room: BTreeMap<u64, T>,
    /// Number of what comes to a queue next.
    next: u64,
    /// The last commit when all snapshots were looked for.
    looked_at: u64,
}

/// All snapshots that elements wait for are looked for after one commit for so many of them; in between only the oldest.
const SNAPSHOTS_PER_COMMIT: usize = 16;

impl<T> Default for Held<T> {
    fn default() -> Held<T> {
        Held { elements: BTreeMap::new(), waiting: BTreeMap::new(), busy: BTreeMap::new(), no_room: BTreeMap::new(), next: 0, looked_at: 0 }
    }
}

impl<T: Ord + Clone> Held<T> {
    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.elements.keys()
    }

    /// Files an element, in the place of itself if it is there. True when it was.
    pub(crate) fn hold(&mut self, element: T, timestamp: u64, waits: Waits) -> bool {
        let again = self.release(&element);
        let filed = match waits {
            Waits::For(snapshot) => {
                self.waiting.entry(snapshot).or_default().insert(element.clone());
                Filed::For(snapshot)
            }
            Waits::Busy => {
                self.busy.insert(self.next, element.clone());
                Filed::Busy(self.next)
            }
            Waits::NoRoom => {
                self.no_room.insert(self.next, element.clone());
                Filed::NoRoom(self.next)
            }
        };
        self.next += 1;
        self.elements.insert(element, (timestamp, filed));
        again
    }

    /// An element is held no more. False when it was not.
    pub(crate) fn release(&mut self, element: &T) -> bool {
        let Some((_, filed)) = self.elements.remove(element) else { return false };
        match filed {
            Filed::For(snapshot) => {
                if let Some(waiting) = self.waiting.get_mut(&snapshot) {
                    waiting.remove(element);
                    if waiting.is_empty() {
                        self.waiting.remove(&snapshot);
                    }
                }
            }
            Filed::Busy(number) => _ = self.busy.remove(&number),
            Filed::NoRoom(number) => _ = self.no_room.remove(&number),
        }
        true
    }

    /// What waits for snapshots that are not there any more: with `all` of them, or when that is due.
    pub(crate) fn due(&mut self, all: bool, newest_commit: u64, is_there: impl Fn(u64) -> bool) -> Vec<(T, u64)> {
        let all = all || newest_commit.saturating_sub(self.looked_at) >= (self.waiting.len() / SNAPSHOTS_PER_COMMIT) as u64;
        if all {
            self.looked_at = newest_commit;
        }
        let looked_for = self.waiting.iter().take(if all { usize::MAX } else { 1 }).map(stepping);
        let ended = looked_for.filter(|(snapshot, _)| !is_there(**snapshot)).flat_map(|(_, elements)| elements);
        ended.map(stepping).filter_map(|element| Some((element.clone(), self.elements.get(element)?.0))).collect()
    }

    /// The number of the next to come to a queue.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// The first of a queue, if it came before `number`.
    pub(crate) fn first(&self, no_room: bool, number: u64) -> Option<(T, u64)> {
        let (_, element) = if no_room { &self.no_room } else { &self.busy }.range(..number).next().map(stepping)?;
        Some((element.clone(), self.elements.get(element)?.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::steps_of;

    #[test]
    fn an_element_is_filed_once() {
        let mut held = Held::default();
        assert!(!held.hold(1, 10, Waits::For(5)));
        assert!(held.hold(1, 11, Waits::Busy), "it was there");
        assert_eq!(held.due(true, 20, |_| false), []);
        assert_eq!(held.first(false, held.next_number()), Some((1, 11)));
        assert!(held.hold(1, 11, Waits::NoRoom));
        assert_eq!(held.first(false, held.next_number()), None);
        let number = held.next_number();
        assert!(held.hold(1, 11, Waits::NoRoom));
        assert_eq!(held.first(true, number), None, "it has been tried already");
        assert!(held.release(&1) && !held.release(&1) && held.is_empty());
    }

    /// What waits for a snapshot that is there is not walked.
    #[test]
    fn a_look_costs_what_is_due() {
        for others in [100, 400, 1600] {
            let mut held = Held::default();
            (0..others).for_each(|i| _ = held.hold(i, 100, Waits::For(7)));
            (0..3).for_each(|i| _ = held.hold(others + i, 200, Waits::For(9)));
            let (steps, due) = steps_of(|| held.due(true, 300, |snapshot| snapshot == 7));
            assert_eq!(due.len(), 3);
            assert_eq!(steps, 2 + 3, "{others} others");
        }
    }

    /// Beside ever more snapshots a commit looks for some of them only.
    #[test]
    fn a_commit_looks_for_few_snapshots() {
        for snapshots in [100, 400, 1600u64] {
            let mut held = Held::default();
            (0..snapshots).for_each(|i| _ = held.hold(i, 10_000, Waits::For(i)));
            let (steps, ()) = steps_of(|| (0..1000).for_each(|commit| assert!(held.due(false, 10_000 + commit, |_| true).is_empty())));
            assert!(steps <= 20_000, "{steps} steps of 1,000 commits, {snapshots} snapshots");
        }
    }
}

//! Ranges of keys with their owners: which of them have a key in them?
//!
//! An interval tree (Edelsbrunner 1980; as an augmented search tree: Cormen, Leiserson, Rivest, Stein) that is kept balanced as a treap (Seidel, Aragon 1996): n ranges have an expected depth of O(log n), whatever
//! the order in which they come and go.
//!
//! Invariants:
//! - nodes are in the order of (low, owner), and no two are equal in that;
//! - a node's priority is not below those of its children; `highest` is the greatest upper end of its subtree.

use crate::steps::step;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// A place between keys: the end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    /// Before all keys.
    Start,
    /// Before this key, or (true) just behind it.
    At(Arc<[u8]>, bool),
    /// Behind all keys.
    End,
}

impl Cut {
    pub(super) fn low(bound: Bound<&[u8]>) -> Cut {
        match bound {
            Bound::Included(key) => Cut::At(key.into(), false),
            Bound::Excluded(key) => Cut::At(key.into(), true),
            Bound::Unbounded => Cut::Start,
        }
    }

    pub(super) fn high(bound: Bound<&[u8]>) -> Cut {
        match bound {
            Bound::Included(key) => Cut::At(key.into(), true),
            Bound::Excluded(key) => Cut::At(key.into(), false),
            Bound::Unbounded => Cut::End,
        }
    }

    /// Is it behind this key?
    fn is_behind(&self, key: &[u8]) -> bool {
        match self {
            Cut::Start => false,
            Cut::At(at, behind) => match at.as_ref().cmp(key) {
                Ordering::Less => false,
                Ordering::Equal => *behind,
                Ordering::Greater => true,
            },
            Cut::End => true,
        }
    }
}

#[derive(Debug)]
struct Node {
    low: Cut,
    high: Cut,
    owner: u64,
    priority: u64,
    highest: Cut,
    left: Tree,
    right: Tree,
}

type Tree = Option<Box<Node>>;

/// All ranges.
#[derive(Debug, Default)]
pub(super) struct IntervalTree {
    root: Tree,
    /// How many have come.
    inserted: u64,
}

impl IntervalTree {
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Adds a range. Its owner has none that begins at the same place.
    pub(super) fn insert(&mut self, low: Cut, high: Cut, owner: u64) {
        self.inserted += 1;
        let priority = random(self.inserted);
        let node = Box::new(Node { highest: high.clone(), low, high, owner, priority, left: None, right: None });
        insert(&mut self.root, node);
    }

    /// Takes the range out that begins here, if the owner has one.
    pub(super) fn remove(&mut self, low: &Cut, owner: u64) {
        remove(&mut self.root, low, owner);
    }

    /// Calls `found` with the owner of each range that the key lies in.
    pub(super) fn containing(&self, key: &[u8], mut found: impl FnMut(u64)) {
        containing(&self.root, key, &mut found);
    }
}

/// Output of SplitMix64 (Steele, Lea, Flood 2014). What spreads numbers over a hash map is too regular here.
fn random(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

impl Node {
    fn order(&self, low: &Cut, owner: u64) -> Ordering {
        (low, owner).cmp(&(&self.low, self.owner))
    }

    fn update(&mut self) {
        let below = [&self.left, &self.right].into_iter().flatten().map(|node| &node.highest);
        let highest = below.chain([&self.high]).max();
        if let Some(highest) = highest.filter(|highest| **highest != self.highest) {
            self.highest = highest.clone();
        }
    }
}

fn insert(tree: &mut Tree, mut new: Box<Node>) {
    step();
    match tree {
        Some(node) if node.priority >= new.priority => {
            let side = if node.order(&new.low, new.owner) == Ordering::Less { &mut node.left } else { &mut node.right };
            insert(side, new);
            node.update();
        }
        _ => {
            (new.left, new.right) = split(tree.take(), &new.low, new.owner);
            new.update();
            *tree = Some(new);
        }
    }
}

/// What is before (low, owner), and the rest.
fn split(tree: Tree, low: &Cut, owner: u64) -> (Tree, Tree) {
    let Some(mut node) = tree else { return (None, None) };
    step();
    if node.order(low, owner) == Ordering::Greater {
        let (before, rest) = split(node.right.take(), low, owner);
        node.right = before;
        node.update();
        (Some(node), rest)
    } else {
        let (before, rest) = split(node.left.take(), low, owner);
        node.left = rest;
        node.update();
        (before, Some(node))
    }
}

fn remove(tree: &mut Tree, low: &Cut, owner: u64) {
    let Some(node) = tree else { return };
    step();
    match node.order(low, owner) {
        Ordering::Less => remove(&mut node.left, low, owner),
        Ordering::Greater => remove(&mut node.right, low, owner),
        Ordering::Equal => {
            let (left, right) = (node.left.take(), node.right.take());
            *tree = joined(left, right);
            return;
        }
    }
    node.update();
}

/// One of two, all of the first before all of the second.
fn joined(left: Tree, right: Tree) -> Tree {
    step();
    match (left, right) {
        (Some(mut left), Some(mut right)) => {
            let mut top = if left.priority >= right.priority {
                left.right = joined(left.right.take(), Some(right));
                left
            } else {
                right.left = joined(Some(left), right.left.take());
                right
            };
            top.update();
            Some(top)
        }
        (left, right) => left.or(right),
    }
}

fn containing(tree: &Tree, key: &[u8], found: &mut impl FnMut(u64)) {
    let Some(node) = tree else { return };
    step();
    if !node.highest.is_behind(key) {
        return;
    }
    containing(&node.left, key, found);
    if !node.low.is_behind(key) {
        if node.high.is_behind(key) {
            found(node.owner);
        }
        containing(&node.right, key, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::spread;
    use crate::steps::steps_of;
    use crate::test_random::Random;
    use std::collections::BTreeMap;
    use std::ops::Bound::{Excluded, Included, Unbounded};

    /// Depth; checks the order of the nodes, their priorities and highest ends.
    fn check(tree: &Tree, ranges: &mut Vec<(Cut, u64)>) -> usize {
        let Some(node) = tree else { return 0 };
        let left = check(&node.left, ranges);
        ranges.push((node.low.clone(), node.owner));
        let right = check(&node.right, ranges);
        let children = || [&node.left, &node.right].into_iter().flatten();
        assert!(children().all(|child| child.priority <= node.priority));
        assert_eq!(children().map(|child| &child.highest).chain([&node.high]).max(), Some(&node.highest));
        1 + left.max(right)
    }

    #[test]
    fn it_is_as_a_list_of_ranges() {
        for seed in 0..30 {
            let mut random = Random(seed);
            let mut tree = IntervalTree::default();
            let mut naive: BTreeMap<(Cut, u64), Cut> = BTreeMap::new();
            for _ in 0..400 {
                let (a, b) = ([random.below(200) as u8], [random.below(200) as u8]);
                let (a, b) = (a.min(b), a.max(b));
                let low = Cut::low([Included(&a[..]), Excluded(&a[..]), Unbounded][random.index(3)]);
                let high = Cut::high([Included(&b[..]), Excluded(&b[..]), Unbounded][random.index(3)]);
                let owner = random.below(5);
                if random.below(3) == 0 {
                    if let Some((low, owner)) = naive.keys().nth(random.index(naive.len().max(1))).cloned() {
                        tree.remove(&low, owner);
                        naive.remove(&(low, owner));
                    }
                } else if !naive.contains_key(&(low.clone(), owner)) {
                    tree.insert(low.clone(), high.clone(), owner);
                    naive.insert((low, owner), high);
                }
            }
            let mut ranges = Vec::new();
            check(&tree.root, &mut ranges);
            assert!(ranges.iter().eq(naive.keys()));
            for key in 0..=201u8 {
                let mut found = Vec::new();
                tree.containing(&[key], |owner| found.push(owner));
                let cut = Cut::At([key][..].into(), false);
                let expected = naive.iter().filter(|((low, _), high)| *low <= cut && cut < **high).map(|((_, owner), _)| *owner);
                assert_eq!(found, expected.collect::<Vec<u64>>(), "seed {seed}, key {key}");
            }
            naive.into_keys().for_each(|(low, owner)| tree.remove(&low, owner));
            assert!(tree.is_empty());
        }
    }

    #[test]
    fn it_is_balanced_and_a_search_is_short() {
        for ascending in [true, false] {
            let mut tree = IntervalTree::default();
            let place = |i: u64| if ascending { i } else { spread(i) };
            let ends = |i| (place(i).to_be_bytes(), place(i).to_be_bytes());
            for i in 0..20_000 {
                let (low, high) = ends(i);
                tree.insert(Cut::low(Included(&low)), Cut::high(Included(&high)), 7);
            }
            let depth = check(&tree.root, &mut Vec::new());
            assert!(depth < 45, "depth {depth}");
            let mut found = 0;
            let (steps, ()) = steps_of(|| (0..1000).for_each(|i| tree.containing(&place(i * 20).to_be_bytes(), |_| found += 1)));
            assert!(found == 1000 && steps < 45_000, "{found} found in {steps} steps");
        }
    }
}

//! Sets of integers: what a condition allows a column to be. Terms on one column become one set before any page is looked at.

use std::ops::RangeInclusive;

/// Integers, as ranges. Invariant: none is empty, they ascend, and there is a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntSet {
    ranges: Vec<RangeInclusive<i64>>,
}

impl IntSet {
    /// The integers of all these ranges.
    #[must_use]
    pub fn of(ranges: impl IntoIterator<Item = RangeInclusive<i64>>) -> IntSet {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_unstable_by_key(|range| *range.start());
        let mut set = IntSet::default();
        for range in sorted {
            match set.ranges.last_mut() {
                Some(last) if last.end().checked_add(1).is_none_or(|next| *range.start() <= next) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => set.ranges.push(range),
            }
        }
        set
    }

    /// The ranges.
    #[must_use]
    pub fn ranges(&self) -> &[RangeInclusive<i64>] {
        &self.ranges
    }

    /// Those in one of both.
    #[must_use]
    pub fn union(&self, other: &IntSet) -> IntSet {
        IntSet::of(self.ranges.iter().chain(&other.ranges).cloned())
    }

    /// Those in both.
    #[must_use]
    pub fn intersection(&self, other: &IntSet) -> IntSet {
        let (mut own, mut others) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut set = IntSet::default();
        while let (Some(a), Some(b)) = (own.peek(), others.peek()) {
            let both = *a.start().max(b.start())..=*a.end().min(b.end());
            let _ = if a.end() < b.end() { own.next() } else { others.next() };
            if !both.is_empty() {
                set.ranges.push(both);
            }
        }
        set
    }

    /// Those not in it.
    #[must_use]
    pub fn complement(&self) -> IntSet {
        let (mut set, mut next) = (IntSet::default(), Some(i64::MIN));
        for range in &self.ranges {
            if let Some((from, to)) = next.zip(range.start().checked_sub(1)).filter(|(from, to)| from <= to) {
                set.ranges.push(from..=to);
            }
            next = range.end().checked_add(1);
        }
        set.ranges.extend(next.map(|from| from..=i64::MAX));
        set
    }

    /// Is it one of them?
    #[must_use]
    pub fn contains(&self, value: i64) -> bool {
        let at = self.ranges.partition_point(|range| *range.end() < value);
        self.ranges.get(at).is_some_and(|range| *range.start() <= value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sets of few integers, at both ends of the type and in its middle.
    #[test]
    fn sets_are_what_they_contain() {
        const POINTS: [i64; 8] = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
        let set = |bits: u32| IntSet::of((0..8).rev().filter(|i| bits >> i & 1 == 1).map(|i| POINTS[i]..=POINTS[i]));
        let bits = |set: &IntSet| (0..8).fold(0u32, |bits, i| bits | u32::from(set.contains(POINTS[i])) << i);
        for a in 0..256 {
            let one = set(a);
            assert!(one.ranges.windows(2).all(|pair| pair[0].end().checked_add(1).is_some_and(|next| next < *pair[1].start())));
            assert_eq!((bits(&one), bits(&one.complement())), (a, !a & 255));
            assert_eq!(one.complement().complement(), one);
            for b in 0..256 {
                let other = set(b);
                assert_eq!((bits(&one.union(&other)), bits(&one.intersection(&other))), (a | b, a & b));
                assert_eq!(one.complement().union(&other.complement()).complement(), one.intersection(&other));
            }
        }
    }
}

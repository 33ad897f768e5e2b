//! Many integers, asked again and again whether one is among them: the keys of one side of a join, which rows of the other side are to have.
//!
//! Where they lie close together there is a bit for each number from the least to the greatest; else they lie in a table by hashes, of which at most half is taken (linear probing, Knuth, The Art of
//! Computer Programming 3, 6.4).

/// Bytes of bits that are taken, however few the numbers are.
const BITS_FREE: u64 = 64 << 10;
/// The most that bits take.
const BITS_MAX: u64 = 64 << 20;
/// Bytes of a table by hashes for each number, about.
const HASHED: u64 = 16;

/// A set of integers.
#[derive(Debug)]
pub struct IntMembers {
    least: i64,
    most: i64,
    count: usize,
    places: Places,
}

#[derive(Debug)]
enum Places {
    /// One for each number from `least` on.
    Bits(Vec<u64>),
    /// Numbers by their hashes; `empty`, which is none of them, where there is none.
    Hashed { slots: Vec<i64>, empty: i64 },
}

/// Where a number is looked for first. Multiplicative hashing by the golden ratio (Knuth, 6.4).
fn place(value: i64, slots: usize) -> usize {
    let hash = value.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> (64 - slots.trailing_zeros())) as usize
}

/// A number that none of these is, which ascend.
fn other_than(values: &[i64]) -> i64 {
    let gap = || values.windows(2).find_map(|pair| pair[0].checked_add(1).filter(|next| *next < pair[1]));
    let before = values.first().map_or(Some(0), |least| least.checked_sub(1));
    before.or_else(|| values.last().and_then(|most| most.checked_add(1))).or_else(gap).unwrap_or(0)
}

impl IntMembers {
    /// A set of these, in whatever order, each as often as it comes.
    #[must_use]
    pub fn of(mut values: Vec<i64>) -> IntMembers {
        let (Some(least), Some(most)) = (values.iter().min().copied(), values.iter().max().copied()) else {
            return IntMembers { least: 0, most: -1, count: 0, places: Places::Bits(Vec::new()) };
        };
        let bytes = most.abs_diff(least) / 8;
        if bytes <= (HASHED * values.len() as u64 + BITS_FREE).min(BITS_MAX) {
            let mut bits = vec![0_u64; (bytes / 8 + 1) as usize];
            for value in values {
                let at = value.abs_diff(least);
                bits[(at / 64) as usize] |= 1 << (at % 64);
            }
            let count = bits.iter().map(|word| word.count_ones() as usize).sum();
            return IntMembers { least, most, count, places: Places::Bits(bits) };
        }
        values.sort_unstable();
        values.dedup();
        let empty = other_than(&values);
        let mut slots = vec![empty; (2 * values.len()).next_power_of_two().max(2)];
        let mask = slots.len() - 1;
        for value in &values {
            let mut at = place(*value, slots.len());
            while slots[at] != empty {
                at = (at + 1) & mask;
            }
            slots[at] = *value;
        }
        IntMembers { least, most, count: values.len(), places: Places::Hashed { slots, empty } }
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The least and the greatest; of none, the first is greater.
    #[must_use]
    pub fn bounds(&self) -> (i64, i64) {
        (self.least, self.most)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * match &self.places {
            Places::Bits(bits) => bits.len(),
            Places::Hashed { slots, .. } => slots.len(),
        }
    }

    /// Is it one of them?
    #[inline]
    #[must_use]
    pub fn contains(&self, value: i64) -> bool {
        if value < self.least || value > self.most {
            return false;
        }
        match &self.places {
            Places::Bits(bits) => {
                let at = value.abs_diff(self.least);
                bits[(at / 64) as usize] >> (at % 64) & 1 == 1
            }
            Places::Hashed { slots, empty } => {
                let mut at = place(value, slots.len());
                while slots[at] != *empty {
                    if slots[at] == value {
                        return true;
                    }
                    at = (at + 1) & (slots.len() - 1);
                }
                false
            }
        }
    }

    /// All of them, ascending.
    #[must_use]
    pub fn to_vec(&self) -> Vec<i64> {
        match &self.places {
            Places::Bits(bits) => {
                let of_word = |(at, word): (usize, &u64)| {
                    let first = self.least.wrapping_add_unsigned(64 * at as u64);
                    let word = *word;
                    (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first.wrapping_add_unsigned(bit))
                };
                bits.iter().enumerate().flat_map(of_word).collect()
            }
            Places::Hashed { slots, empty } => {
                let mut values: Vec<i64> = slots.iter().copied().filter(|value| value != empty).collect();
                values.sort_unstable();
                values
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn check(values: &[i64]) -> IntMembers {
        let members = IntMembers::of(values.to_vec());
        let expected: BTreeSet<i64> = values.iter().copied().collect();
        assert_eq!(members.to_vec(), expected.iter().copied().collect::<Vec<i64>>());
        assert_eq!((members.len(), members.is_empty()), (expected.len(), expected.is_empty()));
        let near = |value: &i64| [-65, -64, -1, 0, 1, 63, 64, 65].map(|by| value.wrapping_add(by));
        for asked in values.iter().flat_map(near).chain([i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX]) {
            assert_eq!(members.contains(asked), expected.contains(&asked), "{asked} of {values:?}");
        }
        members
    }

    #[test]
    fn members_are_what_they_are_made_of() {
        for values in [&[][..], &[0], &[7, 7, 3], &[i64::MIN], &[i64::MAX], &[i64::MIN, i64::MAX], &[i64::MIN, i64::MIN + 1, 5, i64::MAX]] {
            check(values);
        }
        let dense: Vec<i64> = (0..10_000).map(|at| -5_000 + 3 * at).collect();
        assert!(matches!(check(&dense).places, Places::Bits(_)));
        let mut number = 1_u64;
        let mut random = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 8) as i64
        };
        let sparse: Vec<i64> = (0..5_000).map(|_| random()).collect();
        assert!(matches!(check(&sparse).places, Places::Hashed { .. }));
        // All that hash to the last places go on at the first ones.
        let wraps: Vec<i64> = (0..1_000_000_i64).map(|at| at << 32).filter(|value| place(*value, 256) > 250).take(100).collect();
        assert!(matches!(check(&wraps).places, Places::Hashed { .. }));
    }

    #[test]
    fn memory_is_bounded_by_the_number_of_members() {
        for spread in [1, 1 << 20, 1 << 40] {
            let members = IntMembers::of((0..1_000).map(|at| at * spread).collect());
            assert!(members.bytes() <= 32 * 1_000 + BITS_FREE as usize, "{spread}: {}", members.bytes());
        }
    }
}

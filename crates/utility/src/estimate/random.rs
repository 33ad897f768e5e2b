//! Which pages a sample takes: simple random sampling without replacement, by seed. RUNSTATS draws with the same numbers.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(pub(crate) u64);

/// A number whose bits depend on all bits of another one; different numbers give different ones.
#[inline]
pub(crate) fn mixed(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

impl SplitMix64 {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// Below `n`, which is not 0. The bias of the product is below n / 2^64.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Moves `count` random elements to the front, in random order; gives how many.
    pub(crate) fn choose<T>(&mut self, items: &mut [T], count: u64) -> usize {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(items.len());
        for i in 0..count {
            let other = i + self.below((items.len() - i) as u64) as usize;
            items.swap(i, other);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_chosen_as_often() {
        let mut random = SplitMix64(1);
        let mut seen = [0u32; 20];
        for _ in 0..20_000 {
            let mut items: Vec<usize> = (0..20).collect();
            assert_eq!(random.choose(&mut items, 5), 5);
            items[..5].iter().for_each(|i| seen[*i] += 1);
        }
        assert!(seen.iter().all(|n| (4_750..5_250).contains(n)), "{seen:?}");
        assert_eq!(random.choose(&mut [1, 2], 9), 2);
    }
}

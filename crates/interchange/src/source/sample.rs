//! Which rows a sample takes: clusters of neighbours, one in each of equally many equal strata of the rows.

/// Rows of one cluster: enough that a cluster's records fill pages, few enough that there are many clusters.
pub(crate) const CLUSTER_ROWS: u64 = 256;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // The bias of the product is below n / 2^64.
        ((u128::from(z) * u128::from(n)) >> 64) as u64
    }
}

/// First rows of clusters of [`CLUSTER_ROWS`] rows, ascending, not overlapping, `wanted` rows in all or a little more. `None`: all rows, as there are not many more.
pub(crate) fn clusters(total: u64, wanted: u64, seed: u64) -> Option<Vec<u64>> {
    let count = wanted.div_ceil(CLUSTER_ROWS).max(1);
    if count.saturating_mul(CLUSTER_ROWS) >= total {
        return None;
    }
    let mut rng = SplitMix64(seed);
    let stratum = |i: u64| ((u128::from(total) * u128::from(i)) / u128::from(count)) as u64;
    let starts = (0..count).map(|i| {
        let (first, behind) = (stratum(i), stratum(i + 1));
        // A stratum is at least one cluster wide, as all clusters together are below the total.
        first + rng.below((behind - first).saturating_sub(CLUSTER_ROWS) + 1)
    });
    Some(starts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_lie_apart_and_everywhere() {
        for (total, wanted) in [(1_000_000u64, 10_000u64), (513, 256), (600, 511), (10_000, 9_900), (6_001_215, 50_000)] {
            for seed in 0..50 {
                let starts = clusters(total, wanted, seed).unwrap();
                assert!(starts.windows(2).all(|pair| pair[0] + CLUSTER_ROWS <= pair[1]));
                assert!(starts.last().unwrap() + CLUSTER_ROWS <= total);
                let rows = starts.len() as u64 * CLUSTER_ROWS;
                assert!(rows >= wanted && rows < wanted + CLUSTER_ROWS);
            }
        }
        assert!(clusters(100, 100, 1).is_none() && clusters(512, 500, 1).is_none() && clusters(0, 10, 1).is_none());
        assert_ne!(clusters(1_000_000, 10_000, 1), clusters(1_000_000, 10_000, 2));
    }
}

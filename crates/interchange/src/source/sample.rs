//! Which rows a sample takes: clusters of neighbours, one in each of equally many equal strata of the rows.

use super::open::Batches;
use crate::InterchangeError;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;

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

/// First rows of clusters of 256 rows, ascending, not overlapping, `wanted` rows in all or a little more. `None`: all rows, as there are not many more.
pub fn clusters(total: u64, wanted: u64, seed: u64) -> Option<Vec<u64>> {
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

/// Of batches that have all rows in order, those of the clusters that begin with these rows: each a batch by itself.
pub fn of_clusters(schema: SchemaRef, mut batches: Batches<'_>, starts: Vec<u64>) -> Batches<'_> {
    let (mut first, mut held): (u64, Option<RecordBatch>) = (0, None);
    let mut starts = starts.into_iter();
    Box::new(std::iter::from_fn(move || {
        let start = starts.next()?;
        let mut parts = Vec::new();
        let mut from = start;
        while from < start + CLUSTER_ROWS {
            let behind = first + held.as_ref().map_or(0, |b| b.num_rows() as u64);
            if let Some(batch) = held.as_ref().filter(|_| from < behind) {
                let count = (behind - from).min(start + CLUSTER_ROWS - from);
                parts.push(batch.slice((from - first) as usize, count as usize));
                from += count;
                continue;
            }
            first = behind;
            match batches.next() {
                None => break,
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(batch)) => held = Some(batch),
            }
        }
        if parts.len() == 1 {
            return parts.pop().map(Ok);
        }
        Some(concat_batches(&schema, &parts).map_err(InterchangeError::from))
    }))
}

/// A part of a source that is decoded as a whole, or nearly so: its first row, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) rows: u64,
}

/// Parts of a sample, at least: with fewer the spread among them says too little.
const PARTS_MIN: u64 = 10;
/// One of so many parts, if these are more.
const PARTS_OF: u64 = 20;

/// As [`clusters`], but in a few random parts: the first rows, and how many of them, one behind the other, are of one draw. A part's chance is in proportion to its rows. `None` when
/// that would not save much, or the parts have too few rows.
pub(crate) fn clusters_of_parts(parts: &[Part], wanted: u64, seed: u64) -> Option<(Vec<u64>, usize)> {
    let total = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.rows));
    let count = wanted.div_ceil(CLUSTER_ROWS).max(1);
    let draws = PARTS_MIN.max(parts.len() as u64 / PARTS_OF);
    if count < 2 * draws || (parts.len() as u64) < 2 * draws || count.saturating_mul(CLUSTER_ROWS) >= total {
        return None;
    }
    let each = count.div_ceil(draws);
    let mut rng = SplitMix64(seed);
    let stratum = |i: u64| ((u128::from(total) * u128::from(i)) / u128::from(draws)) as u64;
    // How often each part is drawn: one row of each of equal strata of the rows says which.
    let mut drawn: Vec<(Part, u64)> = Vec::new();
    for i in 0..draws {
        let row = stratum(i) + rng.below(stratum(i + 1) - stratum(i));
        let part = parts.partition_point(|part| part.first.saturating_add(part.rows) <= row);
        let part = *parts.get(part)?;
        match drawn.last_mut() {
            Some((last, times)) if *last == part => *times += 1,
            _ => drawn.push((part, 1)),
        }
    }
    let mut starts = Vec::with_capacity((draws * each) as usize);
    for (part, times) in drawn {
        let within = clusters(part.rows, times * each * CLUSTER_ROWS, rng.below(u64::MAX))?;
        starts.extend(within.into_iter().map(|row| part.first + row));
    }
    Some((starts, each as usize))
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
    #[test]
    fn parts_are_drawn_by_their_rows() {
        let parts: Vec<Part> = (0..60).map(|i| Part { first: i * 20_000, rows: if i == 59 { 3_000 } else { 20_000 } }).collect();
        let mut often = vec![0u32; parts.len()];
        for seed in 0..4_000 {
            let (starts, each) = clusters_of_parts(&parts, 20_000, seed).unwrap();
            assert_eq!((starts.len(), each), (80, 8));
            assert!(starts.windows(2).all(|pair| pair[0] + CLUSTER_ROWS <= pair[1]));
            for draw in starts.chunks(each) {
                let part = (draw[0] / 20_000) as usize;
                assert!(
                    draw.iter().all(|start| *start >= parts[part].first && start + CLUSTER_ROWS <= parts[part].first + parts[part].rows)
                );
                often[part] += 1;
            }
        }
        let mean = 40_000.0 / 59.15;
        assert!(often[..59].iter().all(|n| (f64::from(*n) / mean - 1.0).abs() < 0.2), "{often:?}");
        assert!((f64::from(often[59]) / (mean * 0.15) - 1.0).abs() < 0.4, "{often:?}");
        assert!(clusters_of_parts(&parts[..19], 20_000, 1).is_none(), "most parts would be read anyway");
        assert!(clusters_of_parts(&parts, 2_000, 1).is_none(), "too few clusters");
    }
}

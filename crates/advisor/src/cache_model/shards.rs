//! Stack distances of a sample of pages: those whose name has a hash below a threshold.
//!
//! All requests for a sampled page are seen, and none for others, so a distance in the sample is that among all pages times the rate. The threshold begins at a rate that is given. Where the sample
//! may have so many pages only, the page of the greatest hash goes when another one comes, the threshold comes down to its hash, and what was counted is worth less by as much: so memory is bounded,
//! and the rate is what the trace allows.

use super::miss_ratio::{DistanceCounts, MissRatioCurve};
use super::stack_distance::StackDistances;
use std::collections::BTreeSet;

/// Thresholds are parts of this.
const WHOLE: u64 = 1 << 32;

/// Counts distances of a sample, in bounded memory.
#[derive(Clone, Debug)]
pub struct Shards {
    distances: StackDistances,
    counts: DistanceCounts,
    threshold: u64,
    pages_max: usize,
    /// Hash and page of the sample, where pages may have to go.
    by_hash: BTreeSet<(u64, u64)>,
    requests: u64,
}

impl Shards {
    /// For this part of the pages (0 to 1), and at most so many of them.
    #[must_use]
    pub fn new(rate: f64, pages_max: usize) -> Shards {
        Shards {
            distances: StackDistances::default(),
            counts: DistanceCounts::default(),
            threshold: ((rate.clamp(0.0, 1.0) * WHOLE as f64) as u64).max(1),
            pages_max: pages_max.max(1),
            by_hash: BTreeSet::new(),
            requests: 0,
        }
    }

    /// The page is asked for.
    pub fn request(&mut self, page: u64) {
        self.requests += 1;
        let hash = mix(page) % WHOLE;
        if hash >= self.threshold {
            return;
        }
        // A distance in the sample is that among all pages times the rate at the time; later ones are of a lower rate, and it is brought to that of the first so that they can be added up.
        let distance = self.distances.request(page);
        self.counts.add(distance.map(|distance| ((distance as f64 / self.rate()).round() as u64).max(1)));
        if distance.is_none() {
            self.by_hash.insert((hash, page));
            if self.by_hash.len() > self.pages_max {
                self.lower();
            }
        }
    }

    /// The page of the greatest hash goes, with others of the same.
    fn lower(&mut self) {
        let Some(greatest) = self.by_hash.last().map(|(hash, _)| *hash) else { return };
        while let Some((hash, page)) = self.by_hash.last().copied().filter(|(hash, _)| *hash == greatest) {
            self.by_hash.remove(&(hash, page));
            self.distances.forget(page);
        }
        let threshold = greatest.max(1);
        self.counts.scale(threshold as f64 / self.threshold as f64);
        self.threshold = threshold;
    }

    /// The part of the pages that is sampled now.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / WHOLE as f64
    }

    /// Pages in the sample.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.distances.len()
    }

    /// What pools of all sizes would hit.
    #[must_use]
    pub fn curve(&self) -> MissRatioCurve {
        self.counts.curve(self.requests as f64, self.rate()).of_all_pages()
    }
}

/// A hash of a number (SplitMix64: Steele, Lea, Flood 2014).
pub(super) fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

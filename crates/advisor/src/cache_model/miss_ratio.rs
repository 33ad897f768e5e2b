//! Hit ratios of pools of all sizes that forget the least recently used page.
//!
//! Distances are counted in classes: each up to 256 by itself, then 128 to a doubling. So the error of a distance is below 1 %, and there are some thousand classes at most.
//!
//! What a sample lacks of the requests that it should have, as the hottest pages are in it or not, is counted as requests at the least distance (SHARDS_adj: the paper, section 5.3): a page that
//! is asked for so often that it matters is a hit in any pool.

const EXACT: u64 = 256;
const CLASSES_PER_DOUBLING: u64 = 128;

fn class(distance: u64) -> usize {
    if distance < EXACT {
        return distance as usize;
    }
    let doublings = u64::from(distance.ilog2()) - 8;
    let within = (distance >> (doublings + 1)) - CLASSES_PER_DOUBLING;
    (EXACT + doublings * CLASSES_PER_DOUBLING + within) as usize
}

/// Requests by their distance.
#[derive(Clone, Debug, Default)]
pub struct DistanceCounts {
    counts: Vec<f64>,
    first: f64,
}

impl DistanceCounts {
    /// A request at this distance; `None`: the first one for its page.
    pub fn add(&mut self, distance: Option<u64>) {
        let Some(distance) = distance else {
            self.first += 1.0;
            return;
        };
        let class = class(distance);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0.0);
        }
        self.counts[class] += 1.0;
    }

    /// All counts so far are worth this part of what they were.
    pub(super) fn scale(&mut self, by: f64) {
        self.counts.iter_mut().for_each(|count| *count *= by);
        self.first *= by;
    }

    /// The curve, where what was counted is a sample of so many requests, of this part of the pages.
    #[must_use]
    pub fn curve(&self, requests: f64, rate: f64) -> MissRatioCurve {
        let sampled: f64 = self.counts.iter().sum::<f64>() + self.first;
        let expected = requests * rate;
        let mut hits = Vec::with_capacity(self.counts.len() + 1);
        let mut sum = if sampled > 0.0 { expected - sampled } else { 0.0 };
        for count in &self.counts {
            sum += count;
            hits.push(sum);
        }
        MissRatioCurve { hits, first: self.first, requests: if sampled > 0.0 { expected } else { 0.0 }, rate }
    }
}

/// What pools of all sizes would hit.
#[derive(Clone, Debug)]
pub struct MissRatioCurve {
    /// Requests up to each class of distances, of the sample.
    hits: Vec<f64>,
    first: f64,
    requests: f64,
    rate: f64,
}

impl MissRatioCurve {
    /// The same, where distances were counted among all pages, not among those of the sample.
    pub(super) fn of_all_pages(self) -> MissRatioCurve {
        MissRatioCurve { rate: 1.0, ..self }
    }

    /// The part of all requests that a pool of so many frames has the page of, from empty on.
    #[must_use]
    pub fn hit_ratio(&self, frames: u64) -> f64 {
        if self.requests <= 0.0 {
            return 0.0;
        }
        let distance = (frames as f64 * self.rate).floor() as u64;
        if distance == 0 {
            return 0.0;
        }
        let at = class(distance).min(self.hits.len().saturating_sub(1));
        (self.hits.get(at).copied().unwrap_or(0.0) / self.requests).clamp(0.0, 1.0)
    }

    /// The part of all requests that were the first for their page: no pool has those.
    #[must_use]
    pub fn first_ratio(&self) -> f64 {
        if self.requests <= 0.0 { 0.0 } else { (self.first / self.requests).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_without_gaps() {
        let mut before = 0;
        for distance in 0..200_000u64 {
            let class = class(distance);
            assert!(class == before || class == before + 1, "{distance}");
            before = class;
        }
        // Within 1 %.
        let mut start = 1u64;
        for distance in 1..100_000u64 {
            if class(distance) != class(start) {
                start = distance;
            }
            assert!((distance - start) * 100 <= distance, "{start} {distance}");
        }
        assert!(class(u64::MAX) < 10_000);
    }
}

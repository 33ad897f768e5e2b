//! What a sample of clusters says about the whole.
//!
//! A cluster is a page, a key range or a run of neighbouring rows; it has `x` rows and takes `y` pages. Pages per row are estimated by the ratio R = sum y / sum x, whose
//! variance is (1 - f) / (n mean(x)^2) * sum (y - R x)^2 / (n - 1), with f = n / M the part of all clusters that was looked at. (Cochran, Sampling Techniques, 3rd edition,
//! 1977, sections 2.11, 6.3 and 9A.) The interval is R -/+ t times the square root of that, t being the 97.5 % point of Student's distribution with n - 1 degrees
//! of freedom, as clusters may be few.
//!
//! What holds: of the samples that could have been drawn about 95 % give an interval with the truth in it, when clusters are drawn at random and no single cluster makes
//! up a large part of the sum. A cluster in a million that holds a gigabyte cannot be seen in a sample that does not hold it.

/// Part of a page that the end of a packed sample can be wrong by, beside what its clusters differ by.
pub(crate) const END_OF_SAMPLE: f64 = 0.1;

/// A number of pages, and the interval that has the truth in it for 95 % of all samples. Without a sample all three are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The estimate.
    pub value: u64,
    /// Not fewer.
    pub low: u64,
    /// Not more.
    pub high: u64,
}

impl Interval {
    /// A number that is known.
    #[must_use]
    pub fn exact(value: u64) -> Interval {
        Interval { value, low: value, high: value }
    }

    /// `value` pages, with a half-width relative to it.
    #[must_use]
    pub fn around(value: f64, relative: f64) -> Interval {
        // Counts are whole: outwards.
        Interval {
            value: value.round() as u64,
            low: (value * (1.0 - relative)).floor().max(0.0) as u64,
            high: (value * (1.0 + relative)).ceil() as u64,
        }
    }

    /// The interval moved up by a number that is known.
    #[must_use]
    pub fn plus(self, known: u64) -> Interval {
        Interval { value: self.value + known, low: self.low + known, high: self.high + known }
    }

    /// The smallest interval that has both, around its middle.
    #[must_use]
    pub fn or(self, other: Interval) -> Interval {
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        Interval { value: (self.value + other.value) / 2, low, high }
    }

    /// All three through a function that grows.
    #[must_use]
    pub fn map(self, f: impl Fn(u64) -> u64) -> Interval {
        Interval { value: f(self.value), low: f(self.low), high: f(self.high) }
    }

    /// Half the width, relative to the estimate.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) as f64 / 2.0 / (self.value.max(1)) as f64
    }

    /// Is a number in it?
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The ratio of two sums over clusters.
#[derive(Clone, Debug, Default)]
pub struct RatioEstimator {
    clusters: Vec<(f64, f64)>,
}

impl RatioEstimator {
    /// Adds a cluster of `x` rows that takes `y` pages.
    pub fn push(&mut self, x: f64, y: f64) {
        self.clusters.push((x, y));
    }

    /// Clusters so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clusters.len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// Sum y / sum x, and the half-width of its 95 % interval relative to it; for a sample out of `all` clusters. Without two clusters the half-width is 1: nothing is known.
    #[must_use]
    pub fn ratio(&self, all: f64) -> (f64, f64) {
        let n = self.clusters.len() as f64;
        let (x, y) = self.clusters.iter().fold((0.0, 0.0), |sum, c| (sum.0 + c.0, sum.1 + c.1));
        if x <= 0.0 || y <= 0.0 {
            return (0.0, 0.0);
        }
        let ratio = y / x;
        let left = (1.0 - n / all.max(n)).max(0.0);
        if left == 0.0 {
            return (ratio, 0.0);
        }
        if n < 2.0 {
            return (ratio, 1.0);
        }
        let squares: f64 = self.clusters.iter().map(|c| (c.1 - ratio * c.0).powi(2)).sum();
        let mean = x / n;
        let variance = left / (n * mean * mean) * squares / (n - 1.0);
        (ratio, t_quantile(self.clusters.len() - 1) * variance.sqrt() / ratio)
    }
}

/// The 97.5 % point of Student's distribution, by the first terms of its expansion about the normal one (Abramowitz and Stegun 26.7.5); exact to 1 % from 3 degrees
/// of freedom on, and taken from tables below.
#[must_use]
pub fn t_quantile(degrees: usize) -> f64 {
    const FEW: [f64; 3] = [12.706, 4.303, 3.182];
    if let Some(t) = degrees.checked_sub(1).and_then(|i| FEW.get(i)) {
        return *t;
    }
    let (z, n) = (1.959_964_f64, degrees.max(1) as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n.powi(3))
}

/// Shares pages out to the clusters whose rows are on them, by what the rows take of it. (By the number of rows alone, clusters on one page would all seem alike, and intervals would
/// come out too narrow.)
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// Rows and pages of each cluster.
    clusters: Vec<(f64, f64)>,
    /// Cluster and what its rows take, of the page being filled.
    page: Vec<(usize, f64)>,
}

impl Shares {
    /// What follows belongs to another cluster.
    pub fn begin(&mut self) {
        self.clusters.push((0.0, 0.0));
    }

    /// A row on the page being filled, and what it takes there, in any unit.
    #[inline]
    pub fn row(&mut self, takes: f64) {
        let Some(cluster) = self.clusters.len().checked_sub(1) else { return };
        match self.page.last_mut() {
            Some((last, taken)) if *last == cluster => *taken += takes,
            _ => self.page.push((cluster, takes)),
        }
        self.clusters[cluster].0 += 1.0;
    }

    /// Pages that belong to the last row alone.
    pub fn own(&mut self, pages: f64) {
        if let Some(last) = self.clusters.last_mut() {
            last.1 += pages;
        }
    }

    /// The page is complete, or filled to a part.
    pub fn close(&mut self, part: f64) {
        let all: f64 = self.page.iter().map(|(_, taken)| taken).sum();
        for (cluster, own) in self.page.drain(..) {
            self.clusters[cluster].1 += part * own / all;
        }
    }

    /// Rows and pages, by cluster; empty ones too.
    #[must_use]
    pub fn estimator(&self) -> RatioEstimator {
        RatioEstimator { clusters: self.clusters.clone() }
    }

    /// Clusters begun.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clusters.len()
    }

    /// None begun?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles() {
        for (degrees, t) in [(1, 12.706), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980), (100_000, 1.960)] {
            assert!((t_quantile(degrees) / t - 1.0).abs() < 0.01, "{degrees}: {}", t_quantile(degrees));
        }
        assert!(t_quantile(0) > 1.9);
    }

    #[test]
    fn shares_add_up() {
        let mut shares = Shares::default();
        shares.begin();
        (0..3).for_each(|_| shares.row(2.0));
        shares.begin();
        shares.row(2.0);
        shares.close(1.0);
        shares.row(1.0);
        shares.own(2.0);
        shares.close(0.5);
        let e = shares.estimator();
        assert_eq!(e.clusters, vec![(3.0, 0.75), (2.0, 2.75)]);
        assert_eq!(e.ratio(2.0), (0.7, 0.0), "all clusters: nothing is uncertain");
        assert!(e.ratio(100.0).1 > 0.5);
    }

    /// Clusters of skewed sizes out of a population: the truth lies in 95 % of the intervals.
    #[test]
    fn coverage() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
        };
        let population: Vec<(f64, f64)> = (0..2000)
            .map(|_| {
                let x = 20.0 + (60.0 * random()).floor();
                (x, x * (0.01 + 0.02 * random() * random()))
            })
            .collect();
        let truth = population.iter().map(|c| c.1).sum::<f64>() / population.iter().map(|c| c.0).sum::<f64>();
        let (mut inside, trials) = (0, 2000);
        for _ in 0..trials {
            let mut estimator = RatioEstimator::default();
            for _ in 0..60 {
                let c = population[(random() * population.len() as f64) as usize];
                estimator.push(c.0, c.1);
            }
            let (ratio, relative) = estimator.ratio(population.len() as f64);
            inside += usize::from((ratio - truth).abs() <= ratio * relative);
        }
        assert!((0.925..0.975).contains(&(f64::from(inside as u32) / f64::from(trials))), "{inside} of {trials}");
    }
}

//! Figures with their intervals, from sums over pages.
//!
//! A page is a cluster: its rows are alike, so what varies is taken from page to page, never from row to row. All intervals are of 95 %: they
//! are those of 99 % for sums that vary like normal ones, as sums over few pages, and of what is rare, do not.
//!
//! * Means are ratios of sums over clusters, with the variance of the linearised ratio, the part of the pages that was read, and Student's t (Cochran, Sampling Techniques, 3rd edition, 1977,
//!   sections 6.3 and 9A).
//! * Shares have the interval of Clopper and Pearson for as many independent rows as would have the same variance (Korn and Graubard, Survey Methodology 24, 1998): it does not end at 0 when nothing
//!   was found, and holds when little was. Where the sample shows no variance, a page counts for one row.

use pagefold_advisor::t_quantile;
use pagefold_format::catalog::Figure;

/// Half of what would be outside of an interval if all were normal.
const TAIL: f64 = 0.005;
/// The point of the normal distribution above which 2.5 % lie, as those of Student's are given.
const NORMAL: f64 = 1.959_964;
/// That above which [`TAIL`] lies, over it.
const WIDER: f64 = 2.575_829 / NORMAL;
/// Part of all samples that may have none of what is there.
const UNSEEN: f64 = 0.02;

/// Sums over clusters of `x` (rows, say) and `y` (something of them).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RatioSums {
    clusters: u64,
    /// As much of `x` as was looked at.
    looked: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl RatioSums {
    /// A cluster. One without anything counts, too.
    pub(super) fn push(&mut self, x: f64, y: f64) {
        self.push_part(x, y, x);
    }

    /// A cluster of which a part was looked at: what it would have of both, and of how much of `x` that is said.
    pub(super) fn push_part(&mut self, x: f64, y: f64, looked: f64) {
        self.clusters += 1;
        self.looked += looked;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    pub(super) fn clusters(&self) -> u64 {
        self.clusters
    }

    /// Sum of `x`.
    pub(super) fn x(&self) -> f64 {
        self.x
    }

    /// Sum of `y`.
    pub(super) fn y(&self) -> f64 {
        self.y
    }

    /// The ratio and its standard error; `left` is the part that was not looked at.
    fn ratio(&self, left: f64) -> (f64, f64) {
        if self.x <= 0.0 {
            return (0.0, 0.0);
        }
        let (n, ratio) = (self.clusters as f64, self.y / self.x);
        if left <= 0.0 || n < 2.0 {
            return (ratio, 0.0);
        }
        let squares = (self.yy - 2.0 * ratio * self.xy + ratio * ratio * self.xx).max(0.0);
        // What is left of numbers that cancel is no variance.
        let squares = if squares <= 1e-12 * (self.yy + ratio * ratio * self.xx) { 0.0 } else { squares };
        (ratio, (left * n / (n - 1.0) * squares).sqrt() / self.x)
    }

    /// Standard error of the ratio.
    pub(super) fn standard_error(&self, left: f64) -> f64 {
        self.ratio(left).1
    }

    /// As many standard errors as make half of an interval.
    pub(super) fn t(&self) -> f64 {
        WIDER * self.student()
    }

    /// The 97.5 % point of Student's distribution for so many clusters.
    fn student(&self) -> f64 {
        t_quantile((self.clusters.saturating_sub(1)).max(1) as usize)
    }

    /// The mean of `y` for each `x`. It is not below 0.
    pub(super) fn mean(&self, left: f64) -> Figure {
        let (ratio, error) = self.ratio(left);
        let half = self.t() * error;
        Figure::within(ratio, (ratio - half).max(0.0), ratio + half)
    }

    /// The share `y` has of `x`. `tail`: what may be outside on each side; several shares that are to hold together have less each.
    pub(super) fn share_of(&self, left: f64, tail: f64) -> Figure {
        let (share, error) = self.ratio(left);
        if left <= 0.0 || self.x <= 0.0 {
            return if self.x <= 0.0 && left > 0.0 { Figure::within(0.0, 0.0, 1.0) } else { Figure::exact(share) };
        }
        let share = share.clamp(0.0, 1.0);
        let narrower = NORMAL / self.student();
        // As many independent rows as would say as much; of none fewer than pages where pages are all alike, and never more than there were.
        let rows =
            if error > 0.0 { (share * (1.0 - share) / (error * error)).min(self.looked / left) } else { self.clusters as f64 / left };
        let rows = (rows * narrower * narrower).max(1.0);
        let found = share * rows;
        let low = if found <= 0.0 { 0.0 } else { beta_quantile(tail, found, rows - found + 1.0) };
        let high = if found >= rows { 1.0 } else { beta_quantile(1.0 - tail, found + 1.0, (rows - found).max(1e-9)) };
        Figure::within(share, low, high)
    }

    /// A share by itself.
    pub(super) fn share(&self, left: f64) -> Figure {
        self.share_of(left, TAIL)
    }

    /// The same for one of `count` shares that are to hold together (Bonferroni).
    pub(super) fn share_among(&self, left: f64, count: usize) -> Figure {
        self.share_of(left, TAIL / count.max(1) as f64)
    }
}

/// The largest part of all clusters that may have what none of a sample of so many has, with 95 %.
pub(super) fn unseen_part(clusters: u64, left: f64) -> f64 {
    if left <= 0.0 {
        0.0
    } else if clusters == 0 {
        1.0
    } else {
        1.0 - UNSEEN.powf(1.0 / clusters as f64)
    }
}

/// ln of the gamma function (Lanczos, g = 7, n = 9).
fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = C.iter().enumerate().skip(1).fold(C[0], |sum, (i, c)| sum + c / (x + i as f64));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// ln of the beta function.
fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
fn beta_share(x: f64, a: f64, b: f64, ln_beta: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_share(1.0 - x, b, a, ln_beta);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta).exp() / a;
    let tiny = 1e-300;
    let keep = |value: f64| if value.abs() < tiny { tiny } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..2_000 {
        let m = f64::from(m);
        for numerator in
            [m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)), -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))]
        {
            d = 1.0 / keep(1.0 + numerator * d);
            c = keep(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-10 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// The point of the beta distribution below which lies a part `p`: Newton's steps where they stay within what is known, halves where not.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let ln_beta = ln_beta(a, b);
    let (mut low, mut high, mut x) = (0.0, 1.0, a / (a + b));
    for _ in 0..60 {
        let share = beta_share(x, a, b, ln_beta);
        if share < p {
            low = x
        } else {
            high = x
        }
        let density = ((a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p() - ln_beta).exp();
        let step = x - (share - p) / density;
        let next = if step > low && step < high { step } else { 0.5 * (low + high) };
        if (next - x).abs() <= 1e-9 * x.min(1.0 - x).max(1e-12) {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::random::SplitMix64;

    #[test]
    fn quantiles_of_beta() {
        // From tables of exact binomial intervals: 0 of 10, 1 of 10, 5 of 10; 3 of 1,000.
        for (p, a, b, quantile) in [
            (0.975, 1.0, 10.0, 0.3085),
            (0.025, 1.0, 10.0, 0.0025),
            (0.975, 2.0, 9.0, 0.4450),
            (0.025, 5.0, 6.0, 0.1871),
            (0.975, 4.0, 997.0, 0.00874),
        ] {
            assert!((beta_quantile(p, a, b) - quantile).abs() < 6e-5, "{p} {a} {b}: {}", beta_quantile(p, a, b));
        }
        assert!((beta_share(0.3, 1e5, 2.4e5, ln_beta(1e5, 2.4e5)) - 1.0).abs() < 1e-6);
        assert!((ln_gamma(10.0) - 362_880f64.ln()).abs() < 1e-10);
    }

    #[test]
    fn what_is_read_whole_is_exact() {
        let mut sums = RatioSums::default();
        [(10.0, 1.0), (20.0, 9.0), (0.0, 0.0)].iter().for_each(|(x, y)| sums.push(*x, *y));
        assert_eq!((sums.mean(0.0), sums.share(0.0)), (Figure::exact(1.0 / 3.0), Figure::exact(1.0 / 3.0)));
        assert!(!sums.share(0.5).is_exact() && !sums.mean(0.5).is_exact());
        assert_eq!(RatioSums::default().share(0.0), Figure::exact(0.0));
        assert_eq!(RatioSums::default().share(0.5), Figure::within(0.0, 0.0, 1.0));
    }

    #[test]
    fn nothing_found_is_not_nothing_there() {
        let mut sums = RatioSums::default();
        (0..60).for_each(|_| sums.push(100.0, 0.0));
        let share = sums.share(0.99);
        assert!(share.value == 0.0 && share.low == 0.0 && (0.05..0.11).contains(&share.high), "{share:?}");
        let mut sums = RatioSums::default();
        (0..60).for_each(|_| sums.push(100.0, 100.0));
        let share = sums.share(0.99);
        assert!(share.value == 1.0 && share.high == 1.0 && (0.89..0.95).contains(&share.low), "{share:?}");
        assert_eq!(unseen_part(60, 0.0), 0.0);
        assert!((unseen_part(60, 0.9) - 0.0631).abs() < 1e-3);
    }

    /// Pages whose rows are alike: by rows the intervals would be far too narrow.
    #[test]
    fn shares_hold_for_pages_that_are_alike() {
        for rare in [0.5, 0.1, 0.01] {
            let mut random = SplitMix64(11);
            let pages: Vec<(f64, f64)> = (0..3_000)
                .map(|_| {
                    let rows = 20.0 + random.below(60) as f64;
                    let is_rich = random.below(1_000) as f64 <= rare * 1_000.0;
                    (rows, if is_rich { (rows * 0.9).floor() } else { 0.0 })
                })
                .collect();
            let truth = pages.iter().map(|page| page.1).sum::<f64>() / pages.iter().map(|page| page.0).sum::<f64>();
            let trials = 1_000;
            let inside = (0..trials).filter(|_| {
                let mut sums = RatioSums::default();
                for _ in 0..90 {
                    let (x, y) = pages[random.below(pages.len() as u64) as usize];
                    sums.push(x, y);
                }
                sums.share(0.97).contains(truth)
            });
            let inside = inside.count();
            assert!(inside >= trials * 93 / 100, "{rare}: {inside} of {trials}");
        }
    }
}

//! Numbers of which the small ones come most often, by Zipf's law: J. Gray, P. Sundaresan, S. Englert, K. Baclawski,
//! P. Weinberger, "Quickly generating billion-record synthetic databases", SIGMOD 1994; with YCSB's constant.

use pagefold_lab_engine::random::Random;

const THETA: f64 = 0.99;

/// Draws numbers below a count.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: i64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    pub(crate) fn new(count: i64) -> Zipf {
        let zeta_of = |count: i64| (1..=count).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let zeta = zeta_of(count);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - zeta_of(2) / zeta);
        Zipf { count, zeta, eta }
    }

    /// The most frequent is 0.
    pub(crate) fn draw(&self, random: &mut Random) -> i64 {
        let u = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(THETA) {
            return 1.min(self.count - 1);
        }
        let number = self.count as f64 * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (number as i64).clamp(0, self.count - 1)
    }

    /// The frequent ones lie anywhere.
    pub(crate) fn scrambled(&self, random: &mut Random) -> i64 {
        let hash = scramble(self.draw(random));
        hash % self.count
    }
}

/// FNV-1a of the number's bytes (Fowler, Noll, Vo), not negative.
pub(crate) fn scramble(number: i64) -> i64 {
    let hash =
        number.to_le_bytes().iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
    (hash >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_come_most_often() {
        let (zipf, mut random) = (Zipf::new(1000), Random::of(1, 1));
        let mut counts = vec![0u32; 1000];
        for _ in 0..200_000 {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        // 1 / i^0.99 over their sum, 7.73 for a thousand.
        let share = |number: usize| f64::from(counts[number]) / 200_000.0;
        assert!((share(0) - 0.1293).abs() < 0.005, "{}", share(0));
        assert!((share(1) - 0.0651).abs() < 0.005, "{}", share(1));
        let tail: u32 = counts[500..].iter().sum();
        assert!((f64::from(tail) / 200_000.0 - 0.0929).abs() < 0.02, "{tail}");
    }
}

//! How many different hashes there were, in little memory: exactly up to some thousands, then by HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) with the estimator of Ertl (New cardinality
//! estimation algorithms for HyperLogLog sketches, 2017, algorithm 6), which needs no tables and no special cases.
//!
//! Invariant: what comes out depends on the set of hashes alone, so sketches of parts, merged, are the sketch of the whole.

use pagefold_format::catalog::Figure;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Bits of a hash that choose the register.
const REGISTER_BITS: u32 = 14;
const REGISTERS: usize = 1 << REGISTER_BITS;
/// Bits of a hash that are left.
const RANK_BITS: u32 = 64 - REGISTER_BITS;
/// So many hashes are kept as they are: as much memory as the registers take, and a few times that.
const HASHES_MAX: usize = 8 * 1024;
/// Standard error relative to the truth: 1.04 over the square root of the registers; twice that, and a little, has 95 %.
const RELATIVE_ERROR: f64 = 2.1 * 1.04 / 128.0;
const _: () = assert!(REGISTERS == 128 * 128);

/// Hashes are hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Clone, Debug)]
enum State {
    Exact(HashSet<u64, BuildHasherDefault<AsItIs>>),
    Registers(Box<[u8]>),
}

/// A sketch of a set of hashes.
#[derive(Clone, Debug)]
pub(super) struct HyperLogLog(State);

impl Default for HyperLogLog {
    fn default() -> HyperLogLog {
        HyperLogLog(State::Exact(HashSet::default()))
    }
}

fn put(registers: &mut [u8], hash: u64) {
    let rank = ((hash << REGISTER_BITS).leading_zeros().min(RANK_BITS) + 1) as u8;
    let register = &mut registers[(hash >> RANK_BITS) as usize];
    *register = rank.max(*register);
}

impl HyperLogLog {
    /// Adds a hash. All bits must be about as good.
    #[inline]
    pub(super) fn push(&mut self, hash: u64) {
        match &mut self.0 {
            State::Registers(registers) => put(registers, hash),
            State::Exact(hashes) => {
                hashes.insert(hash);
                if hashes.len() > HASHES_MAX {
                    self.registers();
                }
            }
        }
    }

    fn registers(&mut self) -> &mut [u8] {
        if let State::Exact(hashes) = &self.0 {
            let mut registers = vec![0; REGISTERS].into_boxed_slice();
            hashes.iter().for_each(|hash| put(&mut registers, *hash));
            self.0 = State::Registers(registers);
        }
        match &mut self.0 {
            State::Registers(registers) => registers,
            State::Exact(_) => &mut [],
        }
    }

    /// Adds what another one has: threads may each have theirs.
    #[cfg_attr(not(test), expect(dead_code, reason = "one thread reads so far"))]
    pub(super) fn merge(&mut self, other: &HyperLogLog) {
        match &other.0 {
            State::Exact(hashes) => hashes.iter().for_each(|hash| self.push(*hash)),
            State::Registers(theirs) => {
                self.registers().iter_mut().zip(theirs).for_each(|(own, their)| *own = (*own).max(*their));
            }
        }
    }

    /// How many different hashes there were.
    pub(super) fn count(&self) -> Figure {
        let registers = match &self.0 {
            State::Exact(hashes) => return Figure::exact(hashes.len() as f64),
            State::Registers(registers) => registers,
        };
        let mut with_rank = [0u32; RANK_BITS as usize + 2];
        registers.iter().for_each(|rank| with_rank[usize::from(*rank)] += 1);
        let m = REGISTERS as f64;
        let mut z = m * tau(1.0 - f64::from(with_rank[RANK_BITS as usize + 1]) / m);
        for rank in (1..=RANK_BITS as usize).rev() {
            z = 0.5 * (z + f64::from(with_rank[rank]));
        }
        z += m * sigma(f64::from(with_rank[0]) / m);
        let value = m * m / (2.0 * std::f64::consts::LN_2 * z);
        Figure::within(value, value / (1.0 + RELATIVE_ERROR), value / (1.0 - RELATIVE_ERROR))
    }
}

fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z <= before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z >= before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::random::mixed;

    fn of(range: std::ops::Range<u64>) -> HyperLogLog {
        let mut sketch = HyperLogLog::default();
        range.for_each(|number| sketch.push(mixed(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
        sketch
    }

    #[test]
    fn counts_hold() {
        assert_eq!(of(0..0).count(), Figure::exact(0.0));
        assert_eq!(of(0..8_192).count(), Figure::exact(8_192.0));
        let (mut inside, mut all) = (0, 0);
        for start in 0..20u64 {
            for count in [9_000u64, 30_000, 100_000, 1_000_000] {
                let figure = of(start << 32..(start << 32) + count).count();
                assert!((figure.value / count as f64 - 1.0).abs() < 0.04, "{count}: {figure:?}");
                inside += u32::from(figure.contains(count as f64));
                all += 1;
            }
        }
        assert!(inside * 100 >= all * 93, "{inside} of {all}");
    }

    #[test]
    fn parts_make_the_whole() {
        for (parts, all) in [([0..100, 50..200], 0..200), ([0..50_000, 40_000..90_000], 0..90_000), ([0..100, 50..60_000], 0..60_000)] {
            let [first, second] = parts.map(of);
            for (mut sketch, other) in [(first.clone(), &second), (second.clone(), &first)] {
                sketch.merge(other);
                assert_eq!(sketch.count(), of(all.clone()).count());
            }
        }
    }
}

//! How a run of integers is packed: each less a base, in so many bits; the few that do not fit are exceptions (patched frame of reference: Zukowski, Heman,
//! Nes, Boncz 2006; the exceptions are kept apart, so that any number is found in constant time).
//!
//! All arithmetic wraps, here and in the reader, so whatever is subtracted comes back.

use super::bits::{bits_for, mask, pack, packed_len};
use super::layout::EXCEPTION_HEADER_BYTES;

/// Exceptions are looked for only where the middle of a sample takes so many bits less than all.
const GAIN_BITS: u32 = 2;
/// At most one number of so many is an exception.
const EXCEPTION_SHARE: usize = 8;
/// Values looked at before all are.
const SAMPLE: usize = 32;
/// Of the sorted sample, so many on each side may be outliers.
const SAMPLE_OUTLIERS: usize = 2;

/// Base and width of packed numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) base: i64,
    pub(super) width: u32,
    /// Numbers that do not fit.
    pub(super) exceptions: usize,
    /// Bytes of each of those, two's complement.
    pub(super) exception_bytes: usize,
}

impl Packing {
    /// All of these numbers in as few bits as they need.
    pub(super) fn plain(values: &[i64]) -> Self {
        let (least, most) = extremes(values);
        Self { base: least, width: bits_for(most.wrapping_sub(least) as u64), ..Self::default() }
    }

    /// In as few bytes as possible, exceptions allowed. `sorted` is room to work in.
    pub(super) fn smallest(values: &[i64], sorted: &mut Vec<i64>) -> Self {
        let plain = Self::plain(values);
        if values.len() < SAMPLE || sample_bits(values.len(), |row| values[row]) + GAIN_BITS > plain.width {
            return plain;
        }
        sorted.clear();
        sorted.extend_from_slice(values);
        let few = sorted.len() / EXCEPTION_SHARE;
        sort_outer(sorted, few);
        let mut best = plain;
        for width in (0..plain.width).rev() {
            let Some((start, end)) = widest_window(sorted, few, mask(width)) else { break };
            let exceptions = sorted.len() - (end - start);
            let base = sorted[start];
            // The outermost take the most bytes, unless one wraps: then others may take more than it.
            let exception_bytes = [sorted[0], sorted[sorted.len() - 1]].map(|v| v.checked_sub(base).map_or(size_of::<i64>(), signed_bytes));
            let patched = Self { base, width, exceptions, exception_bytes: exception_bytes[0].max(exception_bytes[1]) };
            if patched.len(values.len()) < best.len(values.len()) {
                best = patched;
            }
        }
        best
    }

    /// Bytes that `count` numbers take, exceptions included.
    pub(super) fn len(&self, count: usize) -> usize {
        let listed = if self.exceptions > 0 { EXCEPTION_HEADER_BYTES + self.exceptions * (2 + self.exception_bytes) } else { 0 };
        packed_len(count, self.width) + listed
    }

    /// Appends the packed numbers and the exceptions.
    pub(super) fn write(&self, values: impl Iterator<Item = i64> + Clone, out: &mut Vec<u8>) {
        let numbers = values.map(|value| value.wrapping_sub(self.base));
        let fits = |number: i64| number as u64 <= mask(self.width);
        pack(numbers.clone().map(|number| if fits(number) { number as u64 } else { 0 }), self.width, out);
        if self.exceptions == 0 {
            return;
        }
        out.extend_from_slice(&(self.exceptions as u16).to_le_bytes());
        out.push(self.exception_bytes as u8);
        let exceptions = numbers.enumerate().filter(|(_, number)| !fits(*number));
        exceptions.clone().for_each(|(row, _)| out.extend_from_slice(&(row as u16).to_le_bytes()));
        exceptions.for_each(|(_, number)| out.extend_from_slice(&number.to_le_bytes()[..self.exception_bytes]));
    }
}

/// The least and the greatest; zeros when there are none.
pub(super) fn extremes(values: &[i64]) -> (i64, i64) {
    let Some(first) = values.first() else { return (0, 0) };
    values.iter().fold((*first, *first), |(least, most), value| (least.min(*value), most.max(*value)))
}

/// Bits that the middle of a sample of the numbers takes: few only if few do for most of them.
pub(super) fn sample_bits(count: usize, value: impl Fn(usize) -> i64) -> u32 {
    if count < SAMPLE {
        return 0;
    }
    let mut sample = [0; SAMPLE];
    for (index, number) in sample.iter_mut().enumerate() {
        *number = value(index * (count - 1) / (SAMPLE - 1));
    }
    sample.sort_unstable();
    bits_for(sample[SAMPLE - 1 - SAMPLE_OUTLIERS].wrapping_sub(sample[SAMPLE_OUTLIERS]) as u64)
}

/// Sorts as far as it matters: the least and the greatest values are in their places, one more of each than `few`, which is less than half of all.
fn sort_outer(values: &mut [i64], few: usize) {
    values.select_nth_unstable(few);
    values[..few].sort_unstable();
    let (_, rest) = values.split_at_mut(few + 1);
    let middle = rest.len() - few - 1;
    rest.select_nth_unstable(middle);
    rest[middle + 1..].sort_unstable();
}

/// Start and end of the most consecutive values that are at most `reach` apart, if all but a few are: of values sorted by [`sort_outer`].
fn widest_window(sorted: &[i64], few: usize, reach: u64) -> Option<(usize, usize)> {
    let mut end = sorted.len() - few - 1;
    let mut best: Option<(usize, usize)> = None;
    for (start, least) in sorted.iter().enumerate().take(few + 1) {
        while sorted.get(end).is_some_and(|most| most.wrapping_sub(*least) as u64 <= reach) {
            end += 1;
        }
        let is_enough = end - start + few >= sorted.len();
        if is_enough && best.is_none_or(|(start_of_best, end_of_best)| end - start > end_of_best - start_of_best) {
            best = Some((start, end));
        }
    }
    best
}

/// Bytes of the two's complement of a number: 1 to 8.
fn signed_bytes(number: i64) -> usize {
    let bits = u64::BITS + 1 - (number ^ number >> 63).leading_zeros();
    bits.div_ceil(8).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::random;

    #[test]
    fn bytes_of_numbers() {
        for bytes in 1..8 {
            let edge = 1i64 << (8 * bytes - 1);
            assert_eq!([edge - 1, -edge, edge, -edge - 1].map(signed_bytes), [bytes, bytes, bytes + 1, bytes + 1]);
        }
        assert_eq!([0, i64::MAX, i64::MIN].map(signed_bytes), [1, 8, 8]);
    }

    #[test]
    fn windows_are_those_of_all_values_sorted() {
        let mut state = 3;
        let mut found = 0;
        for _ in 0..3000 {
            let count = 16 + random(&mut state) as usize % 100;
            let bits = 1 + random(&mut state) % 62;
            let mut values: Vec<i64> = (0..count).map(|_| (random(&mut state) >> 2 >> (62 - bits)) as i64).collect();
            for _ in 0..random(&mut state) % 12 {
                let at = random(&mut state) as usize % count;
                values[at] = random(&mut state) as i64 >> (random(&mut state) % 60);
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let few = count / EXCEPTION_SHARE;
            sort_outer(&mut values, few);
            assert_eq!((&values[..=few], &values[count - few - 1..]), (&sorted[..=few], &sorted[count - few - 1..]));
            for width in 0..64 {
                let reach = mask(width);
                // The first of the longest.
                let windows = (0..count).map(|start| {
                    let end = sorted.partition_point(|value| value.wrapping_sub(sorted[start]) as u64 <= reach || *value < sorted[start]);
                    (start, end)
                });
                let longest = windows.rev().max_by_key(|(start, end)| end - start).filter(|(start, end)| end - start + few >= count);
                assert_eq!(widest_window(&values, few, reach), longest);
                found += usize::from(longest.is_some_and(|window| window != (0, count)));
            }
        }
        assert!(found > 1000, "{found}");
    }

    #[test]
    fn outliers_on_both_sides() {
        let mut values: Vec<i64> = (0..1000).map(|i| 70_000 + i * 7 % 60).collect();
        (values[17], values[400], values[999]) = (-1, 1 << 40, 0);
        let packing = Packing::smallest(&values, &mut Vec::new());
        assert_eq!((packing.base, packing.width, packing.exceptions, packing.exception_bytes), (70_000, 6, 3, 6));
        let mut out = Vec::new();
        packing.write(values.iter().copied(), &mut out);
        assert_eq!(out.len(), packing.len(values.len()));
        assert_eq!(packing.len(values.len()), 750 + 3 + 3 * 8);
    }

    #[test]
    fn exceptions_that_wrap_do_not_hide_others() {
        // From the base the least value is a small number, as it wraps; the one above it needs all eight bytes.
        let base = i64::MAX - 1_000_000;
        let mut values: Vec<i64> = (0..100).map(|i| base + i % 50).collect();
        (values[40], values[41]) = (i64::MIN + 5000, 200);
        let packing = Packing::smallest(&values, &mut Vec::new());
        assert_eq!((packing.exceptions, packing.exception_bytes), (2, 8));
        let mut out = Vec::new();
        packing.write(values.iter().copied(), &mut out);
        assert_eq!(out.len(), packing.len(values.len()));
    }

    #[test]
    fn extremes_wrap() {
        let packing = Packing::smallest(&[i64::MIN, i64::MAX, 0], &mut Vec::new());
        assert_eq!((packing.base, packing.width, packing.exceptions), (i64::MIN, 64, 0));
    }
}

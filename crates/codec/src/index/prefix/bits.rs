//! Numbers of a fixed width, one behind the other, the lowest bits first.

/// The number of `width` bits (at most 56) at bit `at`; what lies behind `bytes` reads as 0.
#[inline]
#[must_use]
pub fn get(bytes: &[u8], at: usize, width: u32) -> u64 {
    (word(bytes, at >> 3) >> (at & 7)) & ((1 << width) - 1)
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => last_word(bytes, at),
    }
}

#[cold]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let mut chunk = [0; 8];
    let rest = bytes.get(at..).unwrap_or(&[]);
    chunk[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(chunk)
}

/// Calls `each` with `count` numbers from bit `at` on, several of a load where it has them.
#[inline]
pub(super) fn for_each(bytes: &[u8], at: usize, width: u32, count: usize, each: impl FnMut(u64)) {
    match width {
        0..=7 => for_each_by::<8>(bytes, at, width, count, each),
        8..=14 => for_each_by::<4>(bytes, at, width, count, each),
        15..=28 => for_each_by::<2>(bytes, at, width, count, each),
        _ => for_each_by::<1>(bytes, at, width, count, each),
    }
}

#[inline]
fn for_each_by<const N: u32>(bytes: &[u8], mut at: usize, width: u32, count: usize, mut each: impl FnMut(u64)) {
    let mask = (1 << width) - 1;
    for _ in 0..count / N as usize {
        let word = word(bytes, at >> 3) >> (at & 7);
        (0..N).for_each(|i| each((word >> (i * width)) & mask));
        at += (N * width) as usize;
    }
    for _ in 0..count % N as usize {
        each(get(bytes, at, width));
        at += width as usize;
    }
}

/// Adds up the 8, 4 or 2 numbers of a load: two and two beside each other, then all of them by one product, whose place for the last has the sum of all.
#[derive(Clone, Copy)]
struct Beside<const N: u32> {
    width: u32,
    /// The lower number of each two.
    lower: u64,
    /// The lower two of each four, where the place of two is too narrow for the sum of all; else 0.
    lower_two: u64,
    /// The lowest bit of each place.
    places: u64,
    /// Bits below the last place, and the bits of one.
    last: u32,
    place: u64,
}

impl<const N: u32> Beside<N> {
    /// For numbers of `width` bits, with `N * width` at most 56.
    #[inline(always)]
    fn new(width: u32) -> Beside<N> {
        let every = |numbers: u32| (0..N / numbers).fold(0, |bits, i| bits | 1u64 << (i * numbers * width));
        // The sum has at most three bits more than a number.
        let numbers = if N == 8 && width < 3 { 4 } else { 2 };
        let ones = |bits: u32| (1u64 << bits) - 1;
        Beside {
            width,
            lower: every(2) * ones(width),
            lower_two: if numbers == 4 { every(4) * ones(2 * width) } else { 0 },
            places: every(numbers),
            last: (N - numbers) * width,
            place: ones(numbers * width),
        }
    }

    #[inline(always)]
    fn sum(self, word: u64) -> u64 {
        let mut sums = (word & self.lower) + (word >> self.width & self.lower);
        if self.lower_two != 0 {
            sums = (sums & self.lower_two) + (sums >> (2 * self.width) & self.lower_two);
        }
        sums.wrapping_mul(self.places) >> self.last & self.place
    }
}

/// Sum of `count` numbers from bit `at` on.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8], at: usize, width: u32, count: usize) -> u64 {
    // As many at once as one load has for sure.
    match width {
        0 => 0,
        1..=7 => sum_by::<8>(bytes, at, width, count),
        8..=14 => sum_by::<4>(bytes, at, width, count),
        15..=28 => sum_by::<2>(bytes, at, width, count),
        _ => (0..count).map(|i| get(bytes, at + i * width as usize, width)).sum(),
    }
}

#[inline]
fn sum_by<const N: u32>(bytes: &[u8], at: usize, width: u32, count: usize) -> u64 {
    let beside = Beside::<N>::new(width);
    let (mut at, mut left, mut total) = (at, count, 0);
    while left >= N as usize {
        total += beside.sum(word(bytes, at >> 3) >> (at & 7));
        at += (N * width) as usize;
        left -= N as usize;
    }
    // Of the last load the numbers that count.
    if left > 0 {
        let last = word(bytes, at >> 3) >> (at & 7);
        total += beside.sum(last & ((1 << (left as u32 * width)) - 1));
    }
    total
}

/// Goes through the sums `value`, `value` + first number + `plus`, ... (`count` numbers) up to the first that is not less than `target`: its place, from 0 for `value` itself, and the sum.
/// When all are less the place is `count + 1`, and the sum is of no use.
#[inline]
#[must_use]
pub fn sums_lower_bound(bytes: &[u8], at: usize, width: u32, count: usize, plus: u64, value: u64, target: u64) -> (usize, u64) {
    if value >= target {
        return (0, value);
    }
    match width {
        0 => sums_of_nothing(count, plus, value, target),
        1..=7 => sums_lower_bound_by::<8>(bytes, at, width, count, plus, value, target),
        8..=14 => sums_lower_bound_by::<4>(bytes, at, width, count, plus, value, target),
        15..=28 => sums_lower_bound_by::<2>(bytes, at, width, count, plus, value, target),
        _ => {
            let (mut at, mut value) = (at, value);
            for i in 1..=count {
                value += get(bytes, at, width) + plus;
                at += width as usize;
                if value >= target {
                    return (i, value);
                }
            }
            (count + 1, value)
        }
    }
}

/// All numbers are 0.
fn sums_of_nothing(count: usize, plus: u64, value: u64, target: u64) -> (usize, u64) {
    let steps = if plus == 0 { count as u64 + 1 } else { (target - value).div_ceil(plus) };
    if steps > count as u64 { (count + 1, value + plus * count as u64) } else { (steps as usize, value + plus * steps) }
}

#[inline]
fn sums_lower_bound_by<const N: u32>(
    bytes: &[u8],
    at: usize,
    width: u32,
    count: usize,
    plus: u64,
    value: u64,
    target: u64,
) -> (usize, u64) {
    let beside = Beside::<N>::new(width);
    let (mut at, mut i, mut value) = (at, 0, value);
    let (step, load) = ((N * width) as usize, N as usize);
    // Four loads at a time: they do not wait for each other, and it is rarely guessed wrong which is the last.
    while i + 4 * load < count {
        let sums = (0..4).map(|j| at + j * step).map(|at| beside.sum(word(bytes, at >> 3) >> (at & 7)));
        let next = value + sums.sum::<u64>() + plus * u64::from(4 * N);
        if next >= target {
            break;
        }
        (value, at, i) = (next, at + 4 * step, i + 4 * load);
    }
    loop {
        let word = word(bytes, at >> 3) >> (at & 7);
        let next = value + beside.sum(word) + plus * u64::from(N);
        if next < target && i + load < count {
            (value, at, i) = (next, at + step, i + load);
            continue;
        }
        // Here it is, or nowhere: no step waits for a guess whether it is the last one.
        let mask = (1 << width) - 1;
        let (mut less, mut found) = (0, u64::MAX);
        for j in 0..N {
            value += (word >> (j * width) & mask) + plus;
            less += usize::from(value < target);
            found = found.min(if value < target { u64::MAX } else { value });
        }
        let place = i + less + 1;
        return if place > count || less == load { (count + 1, value) } else { (place, found) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::prefix::WIDTH_MAX;
    use crate::index::tests::Random;

    /// Puts a number of `width` bits at bit `at`, where zeros are.
    fn put(bytes: &mut [u8], at: usize, width: u32, value: u64) {
        assert!(value >> width == 0);
        let chunk = &mut bytes[at >> 3..(at >> 3) + 8];
        let old = u64::from_le_bytes(chunk.try_into().unwrap());
        chunk.copy_from_slice(&(old | value << (at & 7)).to_le_bytes());
    }

    #[test]
    fn what_is_put_is_found_at_every_width() {
        let mut random = Random(5);
        for width in 0..=WIDTH_MAX {
            let values: Vec<u64> = (0..100).map(|_| random.next() & ((1 << width) - 1)).collect();
            let start = random.below(20) as usize;
            let end = start + 100 * width as usize;
            let mut bytes = vec![0; end.div_ceil(8) + 8];
            for (i, v) in values.iter().enumerate() {
                put(&mut bytes, start + i * width as usize, width, *v);
            }
            assert!(bytes[end.div_ceil(8)..].iter().all(|b| *b == 0));
            bytes.truncate(end.div_ceil(8));
            for (i, v) in values.iter().enumerate() {
                assert_eq!(get(&bytes, start + i * width as usize, width), *v);
            }
            for count in [0, 1, 7, 8, 9, 99, 100] {
                let mut all = Vec::new();
                for_each(&bytes, start, width, count, |value| all.push(value));
                assert_eq!(all, values[..count]);
            }
            for plus in [0, 1] {
                let mut sums = vec![7];
                for v in &values {
                    sums.push(sums[sums.len() - 1] + v + plus);
                }
                for count in [0, 1, 7, 8, 9, 99, 100] {
                    assert_eq!(sum(&bytes, start, width, count) + 7 + plus * count as u64, sums[count]);
                    for target in [0, 7, 8, sums[count / 2], sums[count], sums[count] + 1, sums[count / 3] + 1] {
                        let (place, value) = sums_lower_bound(&bytes, start, width, count, plus, 7, target);
                        let expected = sums[..=count].iter().position(|s| *s >= target);
                        assert_eq!(place, expected.unwrap_or(count + 1));
                        assert!(place > count || value == sums[place]);
                    }
                }
            }
        }
        assert_eq!(get(&[1, 2], 300, 9), 0);
    }
}

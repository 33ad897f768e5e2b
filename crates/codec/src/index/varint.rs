//! Numbers of up to 56 bits in 1 to 8 bytes.
//!
//! Big-endian; as many leading one bits as bytes follow the first. So the first byte alone gives the length, and a number below 2^(7 n) takes n bytes.
//! Invariant: `len(a + b) <= len(a) + len(b)`; the size argument in [`super::cost`] needs it.

/// The largest number.
pub(crate) const MAX: u64 = (1 << 56) - 1;

/// Bytes that `value` takes: 1 to 8.
#[inline]
pub(crate) fn len(value: u64) -> usize {
    debug_assert!(value <= MAX);
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The value's bytes, left-aligned, and how many they are.
#[inline]
pub(crate) fn bytes(value: u64) -> ([u8; 8], usize) {
    let n = len(value);
    // n - 1 ones at the top of an n-byte number.
    let marker = !(u64::MAX >> (n - 1));
    ((marker | value << (64 - 8 * n)).to_be_bytes(), n)
}

/// The number at the front of `word` (read big-endian), and its length; a length of 9 means "not a number".
#[inline]
pub(crate) fn from_word(word: u64) -> (u64, usize) {
    let n = word.leading_ones() as usize + 1;
    if n > 8 {
        return (0, 9);
    }
    ((word << n) >> (64 - 7 * n), n)
}

/// Reads a number at `at`; `None` when it is cut off or none.
#[inline]
pub(crate) fn read(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let rest = bytes.get(at..)?;
    let word = match rest.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0u8; 8];
            chunk[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(chunk)
        }
    };
    let (value, n) = from_word(word);
    (n <= rest.len().min(8)).then_some((value, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips() {
        for shift in 0..56 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1, MAX >> (55 - shift)] {
                if value > MAX {
                    continue;
                }
                let (b, n) = bytes(value);
                assert_eq!(n, len(value), "{value}");
                assert_eq!(n, (1..=8).find(|n| value < 1 << (7 * n)).unwrap());
                assert_eq!(read(&b[..n], 0), Some((value, n)));
                assert_eq!(read(&b[..n - 1], 0), None, "cut off");
                let mut long = b.to_vec();
                long.extend([0xFF; 9]);
                assert_eq!(read(&long, 0), Some((value, n)));
            }
        }
        assert_eq!(read(&[0xFF; 9], 0), None);
        assert_eq!(read(&[], 0), None);
        assert_eq!(read(&[1], 2), None);
    }
}

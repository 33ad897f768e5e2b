//! Numbers of 0 to 64 bits one behind the other, in little-endian bit order: number i of width w has bits i w to (i + 1) w, and bit b is bit b % 8 of
//! byte b / 8.
//!
//! Reading never panics, whatever the offset: bytes behind the end read as zeros. So an area that was not checked gives wrong numbers, not panics.

use crate::row::CODE_BITS;

/// Numbers unpacked at once: a whole number of bytes, whatever the width, and a word of a bitmap.
pub(super) const BLOCK: usize = 64;

/// Widths from here on can lie in nine bytes: 57 bits lie in eight from any bit on.
const WIDE: u32 = 58;

/// Bits that hold every number up to `most`.
#[inline]
pub(super) const fn bits_for(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// The low `width` bits.
#[inline]
pub(super) const fn mask(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (u64::BITS - width) }
}

/// Bytes that `count` numbers take.
#[inline]
pub(super) const fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// The eight bytes at `at`; zeros behind the end.
#[inline(always)]
pub(super) fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => load_end(bytes, at),
    }
}

#[cold]
fn load_end(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// The two bytes at `at`; zeros behind the end.
#[inline(always)]
pub(super) fn load_u16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

/// Is bit `index` of the bitmap at `at` set?
#[inline(always)]
pub(super) fn bit(bytes: &[u8], at: usize, index: usize) -> bool {
    bytes.get(at + index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// Number `index` of those that start at byte `at`.
#[inline(always)]
pub(super) fn unpack(bytes: &[u8], at: usize, width: u32, index: usize) -> u64 {
    let first = index * width as usize;
    let (byte, shift) = (at + first / 8, (first % 8) as u32);
    let mut number = load(bytes, byte) >> shift;
    if width >= WIDE && shift > 0 {
        number |= load(bytes, byte + 8) << (u64::BITS - shift);
    }
    number & mask(width)
}

/// Appends numbers, each below 2^width.
pub(super) fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut waiting, mut bits) = (0u64, 0);
    for number in numbers {
        debug_assert!(number & !mask(width) == 0);
        waiting |= number << bits;
        bits += width;
        if bits >= u64::BITS {
            out.extend_from_slice(&waiting.to_le_bytes());
            bits -= u64::BITS;
            waiting = if bits == 0 { 0 } else { number >> (width - bits) };
        }
    }
    out.extend_from_slice(&waiting.to_le_bytes()[..(bits as usize).div_ceil(8)]);
}

/// As [`pack`], of string codes.
pub(super) fn pack_codes(codes: &[u16], out: &mut Vec<u8>) {
    const { assert!(CODE_BITS == 12, "four codes take six bytes") };
    out.reserve(packed_len(codes.len(), CODE_BITS));
    let (fours, rest) = codes.as_chunks::<4>();
    for four in fours {
        let word = (0..4).fold(0, |word, code| word | u64::from(four[code]) << (code as u32 * CODE_BITS));
        out.extend_from_slice(&word.to_le_bytes()[..6]);
    }
    pack(rest.iter().map(|code| u64::from(*code)), CODE_BITS, out);
}

/// The bytes in which number `index` lies, and what they are when it is `number`. `None` when they leave `bytes`.
pub(super) fn replaced(bytes: &[u8], at: usize, width: u32, index: usize, number: u64) -> Option<(std::ops::Range<usize>, [u8; 9])> {
    let first = index * width as usize;
    let (start, shift) = (at + first / 8, first % 8);
    let span = start..start + (shift + width as usize).div_ceil(8);
    let old = bytes.get(span.clone())?;
    let mut image = [0; 16];
    image[..old.len()].copy_from_slice(old);
    let kept = u128::from_le_bytes(image) & !(u128::from(mask(width)) << shift);
    let image = (kept | u128::from(number & mask(width)) << shift).to_le_bytes();
    let mut new = [0; 9];
    new.copy_from_slice(&image[..9]);
    Some((span, new))
}

/// Bytes behind the packed numbers of a block that unpacking may read.
pub(super) const SLACK: usize = 16;

/// Numbers 64 `block` to 64 `block` + 63 of those that start at byte `at`. Those behind the last one are undefined.
#[inline]
pub(super) fn unpack_block(bytes: &[u8], at: usize, width: u32, block: usize, out: &mut [u64; BLOCK]) {
    unpack_block_with(unpack_64, bytes, at, width, block, out);
}

#[inline(always)]
fn unpack_block_with(
    unpack_64: impl FnOnce(&[u8], u32, &mut [u64; BLOCK]),
    bytes: &[u8],
    at: usize,
    width: u32,
    block: usize,
    out: &mut [u64; BLOCK],
) {
    let len = 8 * width as usize;
    let start = at + block * len;
    if let Some(packed) = bytes.get(start..start + len + SLACK) {
        return unpack_64(packed, width, out);
    }
    let mut packed = [0; 8 * BLOCK + SLACK];
    let rest = bytes.get(start..).unwrap_or_default();
    let rest = &rest[..rest.len().min(len)];
    packed[..rest.len()].copy_from_slice(rest);
    unpack_64(&packed[..len + SLACK], width, out);
}

/// The first `count` numbers of those that start at byte `at`.
pub(super) fn unpack_all<T>(bytes: &[u8], at: usize, width: u32, count: usize, number: impl Fn(u64) -> T) -> Vec<T> {
    let mut out = Vec::with_capacity(count.next_multiple_of(BLOCK));
    let mut numbers = [0; BLOCK];
    for block in 0..count.div_ceil(BLOCK) {
        unpack_block(bytes, at, width, block, &mut numbers);
        out.extend(numbers.iter().map(|packed| number(*packed)));
    }
    out.truncate(count);
    out
}

/// As the processor can best.
#[inline]
pub(super) fn unpack_64(packed: &[u8], width: u32, out: &mut [u64; BLOCK]) {
    if !super::bits_avx2::unpack_64(packed, width, out) {
        unpack_64_portable(packed, width, out);
    }
}

/// One loop per width: all shifts and offsets are constants.
macro_rules! by_width {
    ($width:expr, $packed:expr, $out:expr, $($w:literal)*) => {
        match $width {
            $($w => unpack_groups::<$w>($packed, $out),)*
            width => {
                for (index, number) in $out.iter_mut().enumerate() {
                    *number = unpack($packed, 0, width, index);
                }
            }
        }
    };
}

pub(super) fn unpack_64_portable(packed: &[u8], width: u32, out: &mut [u64; BLOCK]) {
    by_width!(width, packed, out,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40);
}

/// Eight numbers take `W` bytes, so each group of eight starts with a byte.
fn unpack_groups<const W: usize>(packed: &[u8], out: &mut [u64; BLOCK]) {
    let packed = &packed[..8 * W + 8];
    for (group, numbers) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let bytes = &packed[group * W..][..W + 8];
        for (index, number) in numbers.iter_mut().enumerate() {
            let first = index * W;
            let Some(chunk) = bytes[first / 8..].first_chunk() else { unreachable!("8 bytes behind each group") };
            *number = u64::from_le_bytes(*chunk) >> (first % 8) & mask(W as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::random;

    #[test]
    fn every_width_comes_back() {
        let mut state = 1;
        for width in 0..=64 {
            for count in [0, 1, 7, 8, 63, 64, 65, 200] {
                let numbers: Vec<u64> = (0..count).map(|_| random(&mut state) & mask(width)).collect();
                for before in [0, 3] {
                    let mut bytes = vec![0xA5; before];
                    pack(numbers.iter().copied(), width, &mut bytes);
                    assert_eq!(bytes.len(), before + packed_len(count, width));
                    for after in [0, 1, 20] {
                        bytes.resize(before + packed_len(count, width) + after, 0xFF);
                        for (index, number) in numbers.iter().enumerate() {
                            assert_eq!(unpack(&bytes, before, width, index), *number);
                        }
                        for (block, expected) in numbers.chunks(BLOCK).enumerate() {
                            let mut out = [1; BLOCK];
                            unpack_block(&bytes, before, width, block, &mut out);
                            assert_eq!(out[..expected.len()], *expected, "width {width}, {count} numbers");
                            let mut portable = [1; BLOCK];
                            unpack_block_with(unpack_64_portable, &bytes, before, width, block, &mut portable);
                            assert_eq!(portable[..expected.len()], *expected, "width {width}, {count} numbers, portable");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn one_number_is_replaced() {
        let mut state = 2;
        for width in 0..=64 {
            let mut numbers: Vec<u64> = (0..40).map(|_| random(&mut state) & mask(width)).collect();
            let mut bytes = Vec::new();
            pack(numbers.iter().copied(), width, &mut bytes);
            for index in 0..numbers.len() {
                numbers[index] = random(&mut state) & mask(width);
                let (span, new) = replaced(&bytes, 0, width, index, numbers[index]).unwrap();
                let len = span.len();
                bytes[span].copy_from_slice(&new[..len]);
                assert!(numbers.iter().enumerate().all(|(i, number)| unpack(&bytes, 0, width, i) == *number));
            }
            assert!(width == 0 || replaced(&bytes, 0, width, 50, 0).is_none());
        }
    }

    #[test]
    fn codes_are_packed_as_numbers() {
        let codes: Vec<u16> = (0..203).map(|code| code * 20 % 4096).collect();
        for count in 0..codes.len() {
            let (mut expected, mut found) = (vec![1], vec![1]);
            pack(codes[..count].iter().map(|code| u64::from(*code)), CODE_BITS, &mut expected);
            pack_codes(&codes[..count], &mut found);
            assert_eq!(expected, found);
        }
    }

    #[test]
    fn bit_order() {
        let mut bytes = Vec::new();
        pack([5, 0, 7, 1].into_iter(), 3, &mut bytes);
        assert_eq!(bytes, [0b1100_0101, 0b0011]);
    }

    #[test]
    fn nothing_lies_behind_the_end() {
        let bytes = [0xFF; 10];
        assert_eq!((load(&bytes, 6), load(&bytes, 10), load(&bytes, 11), load(&bytes, 500)), (0xFFFF_FFFF, 0, 0, 0));
        assert_eq!((load_u16(&bytes, 9), bit(&bytes, 9, 7), bit(&bytes, 9, 8)), (0, true, false));
        let mut out = [9; BLOCK];
        unpack_block(&bytes, 400, 11, 3, &mut out);
        assert_eq!(out, [0; BLOCK]);
    }
}

//! Bits in bytes: the first bit of a row is the highest of its first byte. Behind the last code word the last byte is padded with ones.

use super::codes::CodeWord;

/// Reads bits from the front.
///
/// Invariants: `data` has eight bytes or more, all of them the row's unless the row is shorter; the low `64 - count` bits of `bits` are zero or what
/// comes there.
pub(super) struct BitReader<'a> {
    data: &'a [u8],
    /// Bytes of the row.
    len: usize,
    /// The byte to be read next; may lie up to seven behind the end.
    next: usize,
    /// The next bits, from the highest down. Behind the last bit of the row there are zeros.
    bits: u64,
    /// How many of them are accounted for.
    count: u32,
}

/// Room for a row too short to be loaded as one word.
pub(super) type ShortRow = [u8; 8];

impl<'a> BitReader<'a> {
    /// Bits that are ready after a refill.
    pub(super) const REFILLED_BITS: usize = 56;

    /// A reader of `data`, which is copied to `short` when it has fewer than eight bytes.
    #[inline(always)]
    pub(super) fn new(data: &'a [u8], short: &'a mut ShortRow) -> Self {
        let len = data.len();
        let data = if len < short.len() {
            *short = ShortRow::default();
            short[..len].copy_from_slice(data);
            short
        } else {
            data
        };
        Self { data, len, next: 0, bits: 0, count: 0 }
    }

    /// Makes bits ready. What is loaded, and from where, does not depend on the code words since the refill before, so that they need not wait for it
    /// (Giesen, "Reading bits in far too many ways", part 2, 2018, variant 4).
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        // The last word of the row at most, shifted by what has been read of it. Two shifts, as a shift by 64 is none.
        let byte = self.next.min(self.data.len() - size_of::<u64>());
        let read = ((self.next - byte) * 4) as u32 & 63;
        let word = self.data[byte..].first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
        self.bits |= word << read << read >> self.count;
        self.next += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    /// The bits that are ready, from the highest down.
    #[inline(always)]
    pub(super) fn bits(&self) -> u64 {
        self.bits
    }

    /// The bits that are ready, and ones behind the last of the row.
    #[inline(always)]
    pub(super) fn padded_bits(&self) -> u64 {
        self.bits | u64::MAX.checked_shr(self.remaining().max(0) as u32).unwrap_or(0)
    }

    /// Takes `len` bits, fewer than 64, of those that are ready. They may go beyond the last of the row, which [`remaining`](Self::remaining)
    /// tells.
    #[inline(always)]
    pub(super) fn take(&mut self, len: u32) {
        self.bits <<= len;
        self.count = self.count.wrapping_sub(len);
    }

    /// Bits not taken yet; negative when more have been taken than there are.
    #[inline(always)]
    pub(super) fn remaining(&self) -> isize {
        self.count as isize + 8 * (self.len as isize - self.next as isize)
    }

    /// Bits taken.
    #[inline(always)]
    pub(super) fn position(&self) -> usize {
        self.next * 8 - self.count as usize
    }
}

/// Appends bits to bytes.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits not yet in `out`, in the low bits.
    bits: u64,
    /// How many, fewer than eight between calls.
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, bits: 0, count: 0 }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, word: CodeWord) {
        self.push_bits(u64::from(word.bits), u32::from(word.len));
    }

    /// Appends the low `len` bits, at most 32; the others are zero.
    #[inline(always)]
    fn push_bits(&mut self, bits: u64, len: u32) {
        debug_assert!(len <= 32 && bits >> len == 0);
        self.bits = self.bits << len | bits;
        self.count += len;
        if self.count >= 32 {
            self.count -= 32;
            self.out.extend_from_slice(&((self.bits >> self.count) as u32).to_be_bytes());
        }
    }

    /// Appends the bits `from..to` of `data`.
    ///
    /// # Panics
    /// When it has fewer.
    pub(crate) fn push_range(&mut self, data: &[u8], from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let len = (to - at).min(32 - at % 8);
            let (start, end) = (at / 8, (at + len).div_ceil(8));
            let word = data[start..end].iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
            let bits = word >> (end * 8 - at - len) & ((1 << len) - 1);
            self.push_bits(bits, len as u32);
            at += len;
        }
    }

    /// Pads the last byte with ones.
    pub(crate) fn finish(mut self) {
        let padding = self.count.wrapping_neg() % 8;
        self.push_bits((1 << padding) - 1, padding);
        while self.count > 0 {
            self.count -= 8;
            self.out.push((self.bits >> self.count) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::random;

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn what_is_written_is_read() {
        let mut state = 3;
        for count in 0..60 {
            let words: Vec<CodeWord> = (0..count)
                .map(|_| {
                    let len = 1 + random(&mut state, 16) as u8;
                    CodeWord { bits: random(&mut state, 1 << len) as u16, len }
                })
                .collect();
            let written = |words: &[CodeWord]| {
                let mut out = vec![9];
                let mut writer = BitWriter::new(&mut out);
                words.iter().for_each(|&word| writer.push(word));
                writer.finish();
                out.split_off(1)
            };
            let bytes = written(&words);
            let total: usize = words.iter().map(|word| usize::from(word.len)).sum();
            assert_eq!(bytes.len(), total.div_ceil(8));
            let mut short = ShortRow::default();
            let mut reader = BitReader::new(&bytes, &mut short);
            let mut at = 0;
            for word in &words {
                reader.refill();
                assert_eq!(reader.position(), at);
                assert_eq!((reader.bits() >> (64 - word.len)) as u16, word.bits);
                assert_eq!((reader.padded_bits() >> (64 - word.len)) as u16, word.bits);
                reader.take(u32::from(word.len));
                at += usize::from(word.len);
                assert_eq!(reader.remaining(), bytes.len() as isize * 8 - at as isize);
            }
            reader.refill();
            assert_eq!(reader.padded_bits(), u64::MAX);
            reader.take(9);
            assert!(reader.remaining() < 0);
            // Any part of the bits, behind any other.
            for _ in 0..50 {
                let from = random(&mut state, words.len() + 1);
                let to = from + random(&mut state, words.len() - from + 1);
                let bits = |words: &[CodeWord]| words.iter().map(|word| usize::from(word.len)).sum::<usize>();
                let before = random(&mut state, words.len() + 1);
                let mut out = Vec::new();
                let mut writer = BitWriter::new(&mut out);
                words[..before].iter().for_each(|&word| writer.push(word));
                writer.push_range(&bytes, bits(&words[..from]), bits(&words[..to]));
                writer.finish();
                assert_eq!(out, written(&[&words[..before], &words[from..to]].concat()));
            }
        }
    }
}

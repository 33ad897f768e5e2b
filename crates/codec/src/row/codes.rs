//! 12-bit codes in bytes.
//!
//! Two codes take three bytes, the first code in the low bits (little-endian bit order):
//!
//! | byte | bits 0..=3 | bits 4..=7 |
//! |---|---|---|
//! | 0 | first code, bits 0..=3 | first code, bits 4..=7 |
//! | 1 | first code, bits 8..=11 | second code, bits 0..=3 |
//! | 2 | second code, bits 4..=7 | second code, bits 8..=11 |
//!
//! An odd last code takes two bytes; the upper four bits of the second are zero. So the number of bytes tells the number of codes.

/// Bits in a code.
pub const CODE_BITS: u32 = 12;

/// How many codes there are.
pub const CODE_COUNT: usize = 1 << CODE_BITS;

pub(crate) const CODE_MASK: u64 = CODE_COUNT as u64 - 1;

/// Bytes that `codes` codes take.
#[must_use]
pub const fn compressed_len(codes: usize) -> usize {
    // 12 bits a code, rounded up; written so that no count overflows.
    codes + codes.div_ceil(2)
}

/// Number of codes in `len` bytes, or `None` when no number of codes takes exactly `len` bytes.
#[must_use]
pub const fn code_count(len: usize) -> Option<usize> {
    // One branch, and that one foreseeable: the remainder of a row's length is not.
    if len % 3 == 1 { None } else { Some(len / 3 * 2 + len % 3 / 2) }
}

/// Code `index` of the codes in `bytes`, which has so many.
///
/// # Panics
/// When it has fewer.
#[inline(always)]
pub(crate) fn code_at(bytes: &[u8], index: usize) -> u16 {
    let at = index / 2 * 3 + index % 2;
    let word = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    if index.is_multiple_of(2) { word & CODE_MASK as u16 } else { word >> 4 }
}

/// Appends codes to bytes.
pub(crate) struct CodeWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The first code of a pair whose second has not come yet.
    pending: Option<u16>,
}

impl<'a> CodeWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: None }
    }

    #[inline]
    pub(crate) fn push(&mut self, code: u16) {
        debug_assert!(usize::from(code) < CODE_COUNT);
        match self.pending.take() {
            None => self.pending = Some(code),
            Some(first) => {
                let pair = (u32::from(first) | u32::from(code) << CODE_BITS).to_le_bytes();
                self.out.extend_from_slice(&pair[..3]);
            }
        }
    }

    /// Writes the odd last code, if there is one.
    pub(crate) fn finish(self) {
        if let Some(last) = self.pending {
            self.out.extend_from_slice(&last.to_le_bytes());
        }
    }

    /// Pushes the first `count` codes of `bytes`; nothing has been pushed before.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn push_first(&mut self, bytes: &[u8], count: usize) {
        debug_assert!(self.pending.is_none());
        self.out.extend_from_slice(&bytes[..count / 2 * 3]);
        self.pending = (count % 2 == 1).then(|| code_at(bytes, count - 1));
    }

    /// Pushes the codes of `bytes` from number `from` on, and finishes.
    ///
    /// # Panics
    /// When `bytes` has not the length of whole codes, or less than `from` of them.
    pub(crate) fn finish_with(self, bytes: &[u8], from: usize) {
        let count = code_count(bytes.len()).and_then(|count| count.checked_sub(from)).expect("codes from a number on");
        if count == 0 {
            return self.finish();
        }
        let tail = &bytes[from / 2 * 3..];
        match (self.pending, from % 2) {
            (None, 0) => self.out.extend_from_slice(tail),
            (Some(pending), 1) => {
                self.out.extend_from_slice(&[pending as u8, (pending >> 8) as u8 | tail[1] & 0xf0]);
                self.out.extend_from_slice(&tail[2..]);
            }
            (Some(pending), _) => {
                self.out.push(pending as u8);
                push_shifted(self.out, (pending >> 8) as u8, tail, 1 + 3 * count);
            }
            (None, _) => push_shifted(self.out, tail[1] >> 4, &tail[2..], 3 * count),
        }
    }
}

/// Appends `nibbles` nibbles: `first`, then those of `rest`, the lower one of each byte first.
fn push_shifted(out: &mut Vec<u8>, first: u8, rest: &[u8], nibbles: usize) {
    let end = out.len() + nibbles.div_ceil(2);
    let (words, bytes) = rest.as_chunks();
    let mut carry = u64::from(first);
    for word in words {
        let word = u64::from_le_bytes(*word);
        out.extend_from_slice(&(word << 4 | carry).to_le_bytes());
        carry = word >> 60;
    }
    let mut carry = carry as u8;
    for byte in bytes {
        out.push(byte << 4 | carry);
        carry = byte >> 4;
    }
    out.push(carry);
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_counts_are_inverse() {
        for codes in 0..1000 {
            let len = compressed_len(codes);
            assert_eq!(len, (codes * 12).div_ceil(8));
            assert_eq!(code_count(len), Some(codes));
        }
        for len in 0..1000 {
            assert_eq!(code_count(len).is_none(), len % 3 == 1);
        }
    }

    #[test]
    fn parts_of_codes_are_copied() {
        let written = |codes: &[u16]| {
            let mut out = Vec::new();
            let mut writer = CodeWriter::new(&mut out);
            codes.iter().for_each(|&code| writer.push(code));
            writer.finish();
            out
        };
        let codes: Vec<u16> = (0..50_u16).map(|number| number.wrapping_mul(0x9e3) & 0xfff).collect();
        for count in 0..codes.len() {
            let bytes = written(&codes[..count]);
            for (number, &code) in codes[..count].iter().enumerate() {
                assert_eq!(code_at(&bytes, number), code);
            }
            for first in 0..=count {
                for from in 0..=count {
                    for between in 0..3 {
                        let mut expected = codes[..first].to_vec();
                        expected.extend(std::iter::repeat_n(0xabc, between));
                        expected.extend(&codes[from..count]);
                        let mut out = Vec::new();
                        let mut writer = CodeWriter::new(&mut out);
                        writer.push_first(&bytes, first);
                        (0..between).for_each(|_| writer.push(0xabc));
                        writer.finish_with(&bytes, from);
                        assert_eq!(out, written(&expected), "{first}, {between}, {from} to {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn bit_order() {
        let mut out = Vec::new();
        let mut writer = CodeWriter::new(&mut out);
        for code in [0xabc, 0x123, 0xfed] {
            writer.push(code);
        }
        writer.finish();
        assert_eq!(out, [0xbc, 0x3a, 0x12, 0xed, 0x0f]);
    }
}

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

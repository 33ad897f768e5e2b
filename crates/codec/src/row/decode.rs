//! Rows from codes.

use super::codes::{CODE_COUNT, CODE_MASK, code_count};
use super::dictionary::Dictionary;
use super::table::{DECODE_SLACK, MAX_TOKEN_LEN};
use crate::CodecError;

const TOO_LONG: CodecError = CodecError::Row("longer than a row can be");

impl Dictionary {
    /// Appends the row that `compressed` holds to `out`; returns its length. The row may have `cap` bytes at most: the longest row the
    /// table can have, so that hostile bytes cannot ask for more memory.
    ///
    /// # Errors
    /// When `compressed` is not a compressed row, or its row is longer than `cap`. `out` is then as it was.
    #[inline]
    pub fn decode(&self, compressed: &[u8], out: &mut Vec<u8>, cap: usize) -> Result<usize, CodecError> {
        let codes = self.check(compressed)?;
        self.table.append(compressed, out, cap.min(codes * MAX_TOKEN_LEN)).ok_or(TOO_LONG)
    }

    /// Decodes the row that `compressed` holds to the front of `out`; returns its length. What lies behind it in `out` is undefined
    /// afterwards. The row may have `cap` bytes at most, and no more than `out.len() - DECODE_SLACK`.
    ///
    /// # Errors
    /// When `compressed` is not a compressed row, or its row is longer than permitted.
    #[inline]
    pub fn decode_into(&self, compressed: &[u8], out: &mut [u8], cap: usize) -> Result<usize, CodecError> {
        self.decode_prefix(compressed, out, cap, usize::MAX)
    }

    /// As [`decode_into`](Self::decode_into), but stops as soon as the first `need` bytes of the row are decoded; returns how many bytes
    /// are: at least `need`, unless the row is shorter. For reading the leading columns alone.
    ///
    /// # Errors
    /// As `decode_into`, as far as it has looked.
    #[inline]
    pub fn decode_prefix(&self, compressed: &[u8], out: &mut [u8], cap: usize, need: usize) -> Result<usize, CodecError> {
        self.check(compressed)?;
        let room = out.len().checked_sub(DECODE_SLACK).ok_or(CodecError::Row("no room to decode into"))?;
        self.table.fill(compressed, out, cap.min(room), need).ok_or(TOO_LONG)
    }

    /// Number of codes in `compressed`, when it is a sequence of codes that all have tokens.
    #[inline]
    fn check(&self, compressed: &[u8]) -> Result<usize, CodecError> {
        let codes = code_count(compressed.len()).ok_or(CodecError::Row("length is not that of whole codes"))?;
        // Without a branch on the number of codes being odd, which no processor can foresee.
        let padding = compressed.last().map_or(0, |last| last >> 4);
        if padding & (codes as u8 & 1).wrapping_neg() != 0 {
            return Err(CodecError::Row("padding is not zero"));
        }
        // Only a small table has fewer tokens than there are codes.
        if self.token_count() < CODE_COUNT && unpack(compressed).any(|code| usize::from(code) >= self.token_count()) {
            return Err(CodecError::Row("code without a token"));
        }
        Ok(codes)
    }
}

/// The codes in `compressed`, which must have the length of whole codes.
pub(super) fn unpack(compressed: &[u8]) -> impl Iterator<Item = u16> {
    compressed.chunks(3).flat_map(|pair| {
        let codes = pair.iter().rev().fold(0, |codes, &byte| codes << 8 | u64::from(byte));
        [Some((codes & CODE_MASK) as u16), (pair.len() == 3).then_some((codes >> 12) as u16)].into_iter().flatten()
    })
}

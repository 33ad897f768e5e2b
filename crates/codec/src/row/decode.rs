//! Rows from codes.
//!
//! A token is copied as 16 bytes whatever its length, and the next one is written over the excess. So decoding needs room behind the
//! row: [`DECODE_SLACK`] bytes that are written but mean nothing.

use super::codes::{CODE_COUNT, CODE_MASK, code_count};
use super::dictionary::{Dictionary, MAX_TOKEN_LEN};
use crate::CodecError;

/// Codes decoded between two looks at the room left.
const GROUP: usize = 4;
const GROUP_BYTES: usize = 6;

/// Bytes behind the longest permitted row that [`Dictionary::decode_into`] may overwrite.
pub const DECODE_SLACK: usize = GROUP * MAX_TOKEN_LEN;

impl Dictionary {
    /// Appends the row that `compressed` holds to `out`; returns its length. The row may have `cap` bytes at most: the longest row the
    /// table can have, so that hostile bytes cannot ask for more memory.
    ///
    /// # Errors
    /// When `compressed` is not a compressed row, or its row is longer than `cap`. `out` is then as it was.
    pub fn decode(&self, compressed: &[u8], out: &mut Vec<u8>, cap: usize) -> Result<usize, CodecError> {
        let start = out.len();
        let room = code_count(compressed.len()).map_or(0, |codes| cap.min(codes * MAX_TOKEN_LEN));
        out.resize(start + room + DECODE_SLACK, 0);
        let result = self.decode_into(compressed, &mut out[start..], cap);
        out.truncate(start + *result.as_ref().unwrap_or(&0));
        result
    }

    /// Decodes the row that `compressed` holds to the front of `out`; returns its length. What lies behind it in `out` is undefined
    /// afterwards. The row may have `cap` bytes at most, and no more than `out.len() - DECODE_SLACK`.
    ///
    /// # Errors
    /// When `compressed` is not a compressed row, or its row is longer than permitted.
    pub fn decode_into(&self, compressed: &[u8], out: &mut [u8], cap: usize) -> Result<usize, CodecError> {
        self.decode_prefix(compressed, out, cap, usize::MAX)
    }

    /// As [`decode_into`](Self::decode_into), but may stop as soon as the first `need` bytes of the row are decoded; returns how many bytes
    /// are: at least `need`, unless the row is shorter. For reading the leading columns alone.
    ///
    /// # Errors
    /// As `decode_into`, as far as it has looked.
    pub fn decode_prefix(&self, compressed: &[u8], out: &mut [u8], cap: usize, need: usize) -> Result<usize, CodecError> {
        if code_count(compressed.len()).is_none() {
            return Err(CodecError::Row("length is not that of whole codes"));
        }
        // A group is begun at `limit` at the latest: then it ends inside `out`.
        let limit = out.len().checked_sub(DECODE_SLACK).ok_or(CodecError::Row("no room to decode into"))?.min(cap);
        let stop = need.min(limit + 1);
        let mut at = 0;
        let mut absent = 0;
        let mut rest = compressed;
        while let Some((group, after)) = rest.split_first_chunk::<GROUP_BYTES>() {
            if at >= stop {
                break;
            }
            rest = after;
            let [a, b, c, d, e, f] = *group;
            let codes = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
            for index in 0..GROUP as u32 {
                absent |= self.copy_token(codes >> (12 * index), out, &mut at);
            }
        }
        if rest.len() < GROUP_BYTES && at < stop {
            let mut tail = [0; 8];
            tail[..rest.len()].copy_from_slice(rest);
            let mut codes = u64::from_le_bytes(tail);
            for _ in 0..code_count(rest.len()).unwrap_or(0) {
                absent |= self.copy_token(codes, out, &mut at);
                codes >>= 12;
            }
            // Only an odd last code leaves bits over.
            if codes != 0 {
                return Err(CodecError::Row("padding is not zero"));
            }
        }
        if absent != 0 {
            return Err(CodecError::Row("code without a token"));
        }
        if at > limit { Err(CodecError::Row("longer than a row can be")) } else { Ok(at) }
    }

    /// Copies the token of the low 12 bits to `out[*at..]` and moves `at` behind it. Returns a number with its top bit set when there is no such token.
    #[inline(always)]
    fn copy_token(&self, code: u64, out: &mut [u8], at: &mut usize) -> usize {
        let code = (code & CODE_MASK) as usize;
        debug_assert!(code < CODE_COUNT);
        if let Some(place) = out.get_mut(*at..*at + MAX_TOKEN_LEN) {
            place.copy_from_slice(&self.entries[code]);
        }
        let len = usize::from(self.lens[code]);
        *at += len;
        len.wrapping_sub(1) & (1 << (usize::BITS - 1))
    }
}

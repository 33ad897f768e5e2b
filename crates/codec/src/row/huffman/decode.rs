//! Rows from Huffman codes.

use super::dictionary::HuffmanDictionary;
use super::table::Decoded;
use crate::CodecError;
use crate::row::table::{DECODE_SLACK, MAX_TOKEN_LEN};

/// Rows that [`HuffmanDictionary::decode_many`] decodes side by side.
pub const DECODE_LANES: usize = 3;

const TOO_LONG: CodecError = CodecError::Row("longer than a row can be");
const DAMAGED: CodecError = CodecError::Row("not whole codes padded with ones");

impl Decoded {
    #[inline(always)]
    fn within(self, limit: usize) -> Result<usize, CodecError> {
        match self {
            Self::Bytes(len) if len <= limit => Ok(len),
            Self::Bytes(_) => Err(TOO_LONG),
            Self::Damaged => Err(DAMAGED),
        }
    }
}

/// Bytes that the row in `compressed` can have: a code word has at least one bit.
fn len_max(compressed: &[u8]) -> usize {
    compressed.len().saturating_mul(8 * MAX_TOKEN_LEN)
}

impl HuffmanDictionary {
    /// Appends the row that `compressed` holds to `out`; returns its length. The row may have `cap` bytes at most: the longest row the
    /// table can have, so that hostile bytes cannot ask for more memory.
    ///
    /// # Errors
    /// When `compressed` is not a compressed row, or its row is longer than `cap`. `out` is then as it was.
    #[inline]
    pub fn decode(&self, compressed: &[u8], out: &mut Vec<u8>, cap: usize) -> Result<usize, CodecError> {
        let limit = cap.min(len_max(compressed));
        self.table.append(compressed, out, limit).within(limit)
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
        let room = out.len().checked_sub(DECODE_SLACK).ok_or(CodecError::Row("no room to decode into"))?;
        let limit = cap.min(room);
        self.table.fill(compressed, out, limit, need).within(limit)
    }

    /// Decodes rows one behind the other to the front of `out`; `ends` are then the offsets behind each, as many as rows. Faster than one by one, as
    /// some are decoded side by side: the next code word of one need not wait for those of the others. `out` grows where it is too short, by what
    /// [`DECODE_LANES`] rows of `cap` bytes take; what lies behind the last row is undefined afterwards. So keep it for the next rows.
    ///
    /// # Errors
    /// When one is not a compressed row, or longer than `cap` bytes; `ends` are then those of some of the rows before it.
    pub fn decode_many(&self, rows: &[&[u8]], out: &mut Vec<u8>, ends: &mut Vec<usize>, cap: usize) -> Result<(), CodecError> {
        ends.clear();
        ends.reserve(rows.len());
        let mut end = 0;
        let (groups, rest) = rows.as_chunks::<DECODE_LANES>();
        for rows in groups {
            let longest = rows.iter().map(|row| len_max(row)).max().unwrap_or(0);
            end = self.decode_group(rows, out, end, ends, cap.min(longest))?;
        }
        for row in rest {
            end = self.decode_group(&[row], out, end, ends, cap.min(len_max(row)))?;
        }
        Ok(())
    }

    /// Decodes rows to `out` from `start` on; returns where the last one ends.
    #[inline(always)]
    fn decode_group<const LANES: usize>(
        &self,
        rows: &[&[u8]; LANES],
        out: &mut Vec<u8>,
        start: usize,
        ends: &mut Vec<usize>,
        limit: usize,
    ) -> Result<usize, CodecError> {
        let stride = limit + DECODE_SLACK;
        let room = start.saturating_add(stride.saturating_mul(LANES));
        if out.len() < room {
            out.resize(room, 0);
        }
        let decoded = self.table.fill_side_by_side(*rows, &mut out[start..room], limit);
        let mut end = start;
        for (lane, decoded) in decoded.into_iter().enumerate() {
            let len = decoded.within(limit)?;
            let from = start + lane * stride;
            if lane > 0 {
                move_down(out, from, end, len);
            }
            end += len;
            ends.push(end);
        }
        Ok(end)
    }
}

/// Moves `len` bytes at `from` to `to`, which lies before it; in pieces of 32 bytes, so that it may overwrite as much behind the last.
///
/// Both places are followed by that many bytes, and what is overwritten has been moved already or is undefined.
#[inline(always)]
fn move_down(bytes: &mut [u8], from: usize, to: usize, len: usize) {
    debug_assert!(to <= from);
    for at in (0..len).step_by(MAX_TOKEN_LEN) {
        bytes.copy_within(from + at..from + at + MAX_TOKEN_LEN, to + at);
    }
}

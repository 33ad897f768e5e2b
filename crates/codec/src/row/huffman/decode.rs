//! Rows from Huffman codes.

use super::dictionary::HuffmanDictionary;
use super::table::Decoded;
use crate::CodecError;
use crate::row::table::{DECODE_SLACK, MAX_TOKEN_LEN};

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

    /// Decodes rows one behind the other to the front of `out`; `ends` are then the offsets behind each, as many as rows. `out` grows where it is
    /// too short, by what a row of `cap` bytes takes; what lies behind the last row is undefined afterwards. So keep it for the next rows.
    ///
    /// # Errors
    /// When one is not a compressed row, or longer than `cap` bytes; `ends` are then those of the rows before it.
    pub fn decode_many(&self, rows: &[&[u8]], out: &mut Vec<u8>, ends: &mut Vec<usize>, cap: usize) -> Result<(), CodecError> {
        ends.clear();
        let mut end = 0;
        for row in rows {
            let limit = cap.min(len_max(row));
            let room = end + limit + DECODE_SLACK;
            if out.len() < room {
                out.resize(room, 0);
            }
            end += self.table.fill(row, &mut out[end..room], limit, usize::MAX).within(limit)?;
            ends.push(end);
        }
        Ok(())
    }
}

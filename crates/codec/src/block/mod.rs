//! Large values, chunk by chunk.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 1 | flag: 0 raw, 1 LZ4 |
//! | 1 | | the chunk as it is, or one LZ4 block |
//!
//! A chunk that LZ4 does not shrink is raw, so a stored chunk is at most one byte longer than the chunk. Its expanded length is kept by
//! whoever stores it.

mod value;

pub use value::{
    BLOCK_HEADER_BYTES, StoredBlock, TagOfParts, VALUE_BLOCK_BYTES, next_block, pack_value, stored_bytes_max, unpack_value, value_tag,
};

use crate::CodecError;

/// Bytes that a stored chunk may be longer than the chunk.
pub const OVERHEAD: usize = 1;

/// No LZ4 block expands to more than this many times its length.
const LZ4_EXPANSION_MAX: usize = 255;

const RAW: u8 = 0;
const LZ4: u8 = 1;

/// Appends the stored form of `chunk` to `out` and returns its length, at most `chunk.len() + OVERHEAD`.
pub fn compress(chunk: &[u8], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    let bound = lz4_flex::block::get_maximum_output_size(chunk.len());
    out.resize(start + OVERHEAD + bound, 0);
    out[start] = LZ4;
    match lz4_flex::block::compress_into(chunk, &mut out[start + OVERHEAD..]) {
        Ok(len) if len < chunk.len() => out.truncate(start + OVERHEAD + len),
        _ => {
            out.truncate(start);
            out.push(RAW);
            out.extend_from_slice(chunk);
        }
    }
    out.len() - start
}

/// Appends the chunk that `stored` holds to `out`. `expected_len` is the chunk's length, known from elsewhere; a chunk of any other length is an error.
///
/// # Errors
/// When `stored` is not a stored chunk of `expected_len` bytes. `out` is then as it was.
pub fn decompress(stored: &[u8], expected_len: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let wrong_len = CodecError::Block("length is not the one expected");
    match stored.split_first() {
        Some((&RAW, chunk)) if chunk.len() == expected_len => out.extend_from_slice(chunk),
        Some((&RAW, _)) => return Err(wrong_len),
        Some((&LZ4, block)) => {
            if expected_len > block.len().saturating_mul(LZ4_EXPANSION_MAX) {
                return Err(wrong_len);
            }
            let start = out.len();
            out.resize(start + expected_len, 0);
            let result = lz4_flex::block::decompress_into(block, &mut out[start..]);
            if !matches!(result, Ok(len) if len == expected_len) {
                out.truncate(start);
                return Err(result.map_or(CodecError::Block("not an LZ4 block"), |_| wrong_len));
            }
        }
        _ => return Err(CodecError::Block("unknown flag")),
    }
    Ok(())
}

#[cfg(test)]
mod tests;

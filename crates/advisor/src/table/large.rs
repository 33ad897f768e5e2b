//! What a large value takes in its pages.
//!
//! Layout: `docs/file-format.md`, "Large value": blocks of 64 KB, each behind its two lengths.

use pagefold_codec::block;

const BLOCK_BYTES: usize = 64 * 1024;
const BLOCK_HEADER_BYTES: usize = 8;

/// Bytes that the chain of a value holds.
pub(super) fn stored_bytes(value: &[u8]) -> usize {
    let mut compressed = Vec::new();
    let blocks = value.chunks(BLOCK_BYTES).map(|chunk| {
        compressed.clear();
        BLOCK_HEADER_BYTES + block::compress(chunk, &mut compressed)
    });
    blocks.sum()
}

//! What is stored of a whole large value, and the tag by which it is known.
//!
//! A value is cut into blocks of 64 KB. Each lies behind two lengths:
//!
//! | Offset | Size | Field (little-endian) |
//! |---|---|---|
//! | 0 | 4 | bytes of the block |
//! | 4 | 4 | bytes stored |
//! | 8 | | the stored block |
//!
//! The tag is taken from all that is stored. Whoever refers to a value keeps its tag: so the bytes
//! of another value, however they came to its place, are never taken for it.

use super::{OVERHEAD, compress, decompress};
use crate::CodecError;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// A value is cut into blocks of so many bytes.
pub const VALUE_BLOCK_BYTES: usize = 64 * 1024;
/// Bytes before a stored block: its two lengths.
pub const BLOCK_HEADER_BYTES: usize = 8;
/// Bits of a tag.
const TAG_BITS: u32 = 52;

/// What is stored of a value.
#[must_use]
pub fn pack_value(value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(value.len() / 2);
    for block in value.chunks(VALUE_BLOCK_BYTES) {
        let start = stored.len();
        stored.extend_from_slice(&(block.len() as u32).to_le_bytes());
        stored.extend_from_slice(&[0; 4]);
        let length = compress(block, &mut stored);
        stored[start + 4..start + BLOCK_HEADER_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    }
    stored
}

/// The most that is stored of a value of so many bytes.
#[must_use]
pub fn stored_bytes_max(raw_bytes: usize) -> usize {
    raw_bytes + raw_bytes.div_ceil(VALUE_BLOCK_BYTES) * (BLOCK_HEADER_BYTES + OVERHEAD)
}

/// The value of `raw_bytes` of which this is stored.
///
/// # Errors
/// When it is not exactly that. Any bytes at all are safe to hand in.
pub fn unpack_value(mut stored: &[u8], raw_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let mut value = Vec::new();
    while !stored.is_empty() {
        let (block, rest) = next_block(stored)?.ok_or(CodecError::Block("cut off"))?;
        if value.len() + block.raw_bytes > raw_bytes {
            return Err(CodecError::Block("longer than the value"));
        }
        decompress(block.stored, block.raw_bytes, &mut value)?;
        stored = rest;
    }
    if value.len() == raw_bytes { Ok(value) } else { Err(CodecError::Block("shorter than the value")) }
}

/// A stored block.
#[derive(Clone, Copy, Debug)]
pub struct StoredBlock<'a> {
    /// Bytes of the block.
    pub raw_bytes: usize,
    /// What is stored of it.
    pub stored: &'a [u8],
}

/// The first block, and what follows it; `None` when the bytes end before it does.
///
/// # Errors
/// When its lengths are out of range.
pub fn next_block(stored: &[u8]) -> Result<Option<(StoredBlock<'_>, &[u8])>, CodecError> {
    let Some((header, rest)) = stored.split_at_checked(BLOCK_HEADER_BYTES) else { return Ok(None) };
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
    let (raw_bytes, length) = (word(0), word(4));
    if raw_bytes > VALUE_BLOCK_BYTES || length > raw_bytes + OVERHEAD {
        return Err(CodecError::Block("lengths out of range"));
    }
    Ok(rest.split_at_checked(length).map(|(stored, rest)| (StoredBlock { raw_bytes, stored }, rest)))
}

/// The tag of what is stored of a value: 52 bits.
#[must_use]
pub fn value_tag(stored: &[u8]) -> u64 {
    xxh3_64(stored) >> (u64::BITS - TAG_BITS)
}

/// The tag of a value that comes in parts.
#[derive(Default)]
pub struct TagOfParts(Xxh3Default);

impl TagOfParts {
    /// Adds the next part.
    pub fn update(&mut self, stored: &[u8]) {
        self.0.update(stored);
    }

    /// The tag of all parts.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.digest() >> (u64::BITS - TAG_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        for length in [0, 1, 5000, VALUE_BLOCK_BYTES, VALUE_BLOCK_BYTES + 1, 3 * VALUE_BLOCK_BYTES] {
            let value: Vec<u8> = (0..length).map(|i| ((i * i) >> 7) as u8).collect();
            let stored = pack_value(&value);
            assert!(stored.len() <= stored_bytes_max(length));
            assert_eq!(unpack_value(&stored, length).unwrap(), value);
            assert!(unpack_value(&stored, length + 1).is_err());
            assert!(length == 0 || unpack_value(&stored, length - 1).is_err());
            assert!(length == 0 || unpack_value(&stored[..stored.len() - 1], length).is_err());
            let mut parts = TagOfParts::default();
            stored.chunks(777).for_each(|part| parts.update(part));
            assert_eq!(parts.finish(), value_tag(&stored));
            assert!(value_tag(&stored) < 1 << TAG_BITS);
        }
    }
}

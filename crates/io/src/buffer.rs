//! Heap memory at a given alignment, for direct I/O.
//!
//! The bytes are a window into a vector that is longer by the alignment: no unsafe code, and moving the buffer does not move the bytes.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes on the heap whose address is a multiple of the alignment. Zeroed at first; its length is fixed.
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
    alignment: usize,
}

impl AlignedBuffer {
    /// `len` zeros at a multiple of `alignment`.
    ///
    /// # Panics
    /// When `alignment` is not a power of two or is above 1 MB, and when there is no memory.
    #[must_use]
    pub fn new(len: usize, alignment: usize) -> Self {
        assert!(alignment.is_power_of_two() && alignment <= 1 << 20, "alignment {alignment}");
        let bytes = vec![0; len.checked_add(alignment - 1).expect("length of an aligned buffer")];
        let start = bytes.as_ptr().addr().wrapping_neg() & (alignment - 1);
        Self { bytes, start, len, alignment }
    }

    /// A copy of `content` at a multiple of `alignment`.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn from_slice(content: &[u8], alignment: usize) -> Self {
        let mut buffer = Self::new(content.len(), alignment);
        buffer.copy_from_slice(content);
        buffer
    }

    /// What the address is a multiple of.
    #[must_use]
    pub fn alignment(&self) -> usize {
        self.alignment
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

impl Clone for AlignedBuffer {
    fn clone(&self) -> Self {
        Self::from_slice(self, self.alignment)
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer").field("len", &self.len).field("alignment", &self.alignment).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_aligned_also_after_moves() {
        for alignment in [1, 2, 64, 512, 4096, 1 << 20] {
            for len in [0, 1, 511, 4096, 70_000] {
                let buffer = AlignedBuffer::new(len, alignment);
                assert_eq!((buffer.len(), buffer.as_ptr().addr() % alignment), (len, 0));
                assert!(buffer.iter().all(|&byte| byte == 0));
                let moved = Box::new(buffer);
                assert_eq!(moved.as_ptr().addr() % alignment, 0);
                assert_eq!(moved.clone().as_ptr().addr() % alignment, 0);
            }
        }
    }

    #[test]
    fn content_is_kept_by_clone() {
        let mut buffer = AlignedBuffer::from_slice(b"abc", 512);
        let copy = buffer.clone();
        buffer[1] = b'x';
        assert_eq!((&*buffer, &*copy), (&b"axc"[..], &b"abc"[..]));
    }

    #[test]
    #[should_panic(expected = "alignment 3")]
    fn alignment_must_be_a_power_of_two() {
        let _ = AlignedBuffer::new(1, 3);
    }
}

//! How the bytes of an input are cut into parts.
//!
//! An input that has ended reads as zeros, so that no input is too short for a target.

use pagefold_format::page::{PAGE_SIZE_MAX, PAGE_SIZE_MIN, PAGE_SIZE_STEP};

/// A cursor over an input.
#[derive(Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// A little-endian number of two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from(self.byte()) | u16::from(self.byte()) << 8
    }

    /// A little-endian number of four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// The next bytes: as many as are left of `n`.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(n.min(self.0.len()));
        self.0 = tail;
        head
    }

    /// Bytes behind their length (u16).
    pub fn chunk(&mut self) -> &'a [u8] {
        let n = self.u16();
        self.take(usize::from(n))
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Nothing left?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The longest page at the front, copied; `None` when the input is shorter than any page. What is left is for ops.
    pub fn page(&mut self) -> Option<Vec<u8>> {
        let bytes = (self.0.len() / PAGE_SIZE_STEP * PAGE_SIZE_STEP).min(PAGE_SIZE_MAX);
        (bytes >= PAGE_SIZE_MIN).then(|| self.take(bytes).to_vec())
    }
}

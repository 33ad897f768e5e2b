//! Pseudo-random numbers.

/// Xorshift (Marsaglia 2003). The seed is not 0.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

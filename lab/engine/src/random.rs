//! Pseudo-random numbers.

/// Xorshift (Marsaglia 2003). The seed is not 0.
pub struct Random(pub u64);

impl Random {
    /// Seeds and streams that are near each other draw far apart.
    #[must_use]
    pub fn of(seed: u64, stream: u64) -> Random {
        let mixed = (seed ^ stream.rotate_left(32)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mut random = Random((mixed ^ (mixed >> 29)) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    /// A number from `low` to `high`.
    ///
    /// # Panics
    /// When `high` is less than `low`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let count = usize::try_from(high - low + 1).expect("a range");
        low + i64::try_from(self.below(count)).expect("within it")
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

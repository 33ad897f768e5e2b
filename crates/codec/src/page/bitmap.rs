//! A bit per row, in words: which rows are selected, or valid.

use super::bits::load;

/// Bits, the first in the lowest bit of the first word: as words of little-endian machines, what Arrow takes as a validity buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` bits that are all `value`.
    #[must_use]
    pub fn new(len: usize, value: bool) -> Self {
        let mut bitmap = Self::default();
        bitmap.append(len, value);
        bitmap
    }

    /// No bits, with memory for so many.
    #[must_use]
    pub fn with_capacity(bits: usize) -> Self {
        Self { words: Vec::with_capacity(bits.div_ceil(64)), len: 0 }
    }

    /// No bits; keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Keeps the first `len` bits, if there are more.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.words.truncate(len.div_ceil(64));
            if let Some(last) = self.words.last_mut() {
                *last &= u64::MAX >> (64 * len.div_ceil(64) - len);
            }
            self.len = len;
        }
    }

    /// How many bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// No bits?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words; bits behind the last one are zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words, given away.
    #[must_use]
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// Bit `index`.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets bit `index`.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub fn set(&mut self, index: usize, value: bool) {
        assert!(index < self.len);
        let mask = 1 << (index % 64);
        let word = &mut self.words[index / 64];
        *word = if value { *word | mask } else { *word & !mask };
    }

    /// Keeps what the other has, too.
    ///
    /// # Panics
    /// When the other has another length.
    pub fn intersect(&mut self, other: &Bitmap) {
        assert_eq!(self.len, other.len);
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Adds what the other has.
    ///
    /// # Panics
    /// When the other has another length.
    pub fn unite(&mut self, other: &Bitmap) {
        assert_eq!(self.len, other.len);
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Takes out what the other has.
    ///
    /// # Panics
    /// When the other has another length.
    pub fn subtract(&mut self, other: &Bitmap) {
        assert_eq!(self.len, other.len);
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// Is no bit set?
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many bits are set.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Positions of the bits that are set, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(number, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                word &= word.wrapping_sub(1);
                (bit < 64).then_some(64 * number + bit)
            })
        })
    }

    /// Appends `count` bits that are all `value`.
    pub fn append(&mut self, count: usize, value: bool) {
        let mut left = count;
        while left > 0 {
            let bits = left.min(64 - self.len % 64);
            self.append_word(if value { u64::MAX } else { 0 }, bits);
            left -= bits;
        }
    }

    /// Appends the low `bits` bits of a word.
    ///
    /// # Panics
    /// When `bits` is not 1 to 64.
    pub fn append_word(&mut self, word: u64, bits: usize) {
        assert!((1..=64).contains(&bits));
        let word = word & u64::MAX >> (64 - bits);
        let shift = self.len % 64;
        if shift == 0 {
            self.words.push(word);
        } else {
            let last = self.words.len() - 1;
            self.words[last] |= word << shift;
            if shift + bits > 64 {
                self.words.push(word >> (64 - shift));
            }
        }
        self.len += bits;
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

/// Bits `first` to `first + 63` of the bitmap at `at`; zeros behind the end.
pub(super) fn bits_at(bytes: &[u8], at: usize, first: usize) -> u64 {
    let (byte, shift) = (at + first / 8, first % 8);
    let low = load(bytes, byte) >> shift;
    if shift == 0 { low } else { low | load(bytes, byte + 8) << (64 - shift) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bits() {
        for step in [1, 3, 64, 65, 100] {
            let (mut bitmap, mut expected) = (Bitmap::default(), Vec::new());
            for round in 0..20 {
                bitmap.append(step, round % 3 == 0);
                expected.extend(std::iter::repeat_n(round % 3 == 0, step));
            }
            assert_eq!(bitmap.len(), expected.len());
            assert!(expected.iter().enumerate().all(|(i, bit)| bitmap.get(i) == *bit));
            assert!(bitmap.ones().eq((0..expected.len()).filter(|i| expected[*i])));
            assert_eq!(bitmap.count_ones(), bitmap.ones().count());
            bitmap.set(17, true);
            bitmap.set(18, false);
            assert!(bitmap.get(17) && !bitmap.get(18));
        }
    }

    #[test]
    fn the_first_bits() {
        for len in [0, 1, 63, 64, 65, 128, 130] {
            let mut bitmap = Bitmap::new(129, true);
            bitmap.truncate(len);
            assert_eq!(bitmap, Bitmap::new(len.min(129), true));
        }
    }

    #[test]
    fn bits_from_anywhere() {
        let bytes: Vec<u8> = (0..30u8).map(|i| i.wrapping_mul(37)).collect();
        for first in 0..300 {
            let word = bits_at(&bytes, 2, first);
            assert!((0..64).all(|i| (word >> i & 1 == 1) == crate::page::bits::bit(&bytes, 2, first + i)));
        }
    }
}

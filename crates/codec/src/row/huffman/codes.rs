//! The code words of the tokens: canonical, of 1 to 16 bits, all of it told by their lengths.
//!
//! Invariants of [`HuffmanCodes`], checked wherever one is made:
//! - one length of 1 to 16 bits for each of the 256 to 4,096 tokens;
//! - the code is complete: each sequence of 16 bits begins with exactly one code word (the Kraft sum is exactly 1).
//!
//! Canonical: code words of the same length are consecutive numbers in the order of the tokens, and as fractions shorter ones come first. So the last code
//! word is all ones and the longest.
//!
//! **Padding.** A row's bits are padded with ones to whole bytes. With 256 tokens or more the longest code word has at least 8 bits, as there are only
//! 128 words of 7; and it is the only one that is all ones. So up to seven ones are no code word and no sequence of them: the number of bytes
//! tells where a row ends.
//!
//! ## Serial form
//!
//! Two lengths a byte in the order of the tokens, the first in the low four bits: length less one. An odd last one has zeros above it.

use super::package_merge::length_limited;
use crate::CodecError;
use crate::row::codes::CODE_COUNT;
use crate::row::dictionary::SINGLE_BYTES;

/// Bits in the longest code word at most.
pub const CODE_WORD_BITS_MAX: u32 = 16;

/// Bits of padding at most.
pub(super) const PADDING_BITS_MAX: u32 = 7;

const _: () = assert!(1 << PADDING_BITS_MAX < SINGLE_BYTES, "seven ones cannot be a code word");
const _: () = assert!(CODE_COUNT <= 1 << CODE_WORD_BITS_MAX, "every token gets a code word");
const _: () = assert!(CODE_WORD_BITS_MAX <= 16, "a length less one fits in four bits");

/// Lengths of the tokens' code words.
#[derive(Clone, PartialEq, Eq)]
pub struct HuffmanCodes {
    /// In bits, by token.
    lens: Box<[u8]>,
}

/// A code word: its bits, and how many.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct CodeWord {
    pub(super) bits: u16,
    pub(super) len: u8,
}

impl HuffmanCodes {
    /// The codes of least total length for tokens that occur so often; one is added to each count, so that every token gets a code word.
    ///
    /// # Panics
    /// When there are not 256 to 4,096 counts.
    #[must_use]
    pub fn from_counts(counts: &[u32]) -> Self {
        assert!((SINGLE_BYTES..=CODE_COUNT).contains(&counts.len()));
        let weights: Vec<u64> = counts.iter().map(|&count| u64::from(count) + 1).collect();
        match Self::from_lens(&length_limited(&weights, CODE_WORD_BITS_MAX)) {
            Ok(codes) => codes,
            Err(error) => unreachable!("package-merge makes complete codes: {error}"),
        }
    }

    /// The codes of these lengths.
    ///
    /// # Errors
    /// When there are not 256 to 4,096 of 1 to 16 bits, or the code is not complete.
    pub fn from_lens(lens: &[u8]) -> Result<Self, CodecError> {
        if !(SINGLE_BYTES..=CODE_COUNT).contains(&lens.len()) {
            return Err(CodecError::Dictionary("number of code lengths is not 256 to 4,096"));
        }
        if !lens.iter().all(|&len| (1..=CODE_WORD_BITS_MAX).contains(&u32::from(len))) {
            return Err(CodecError::Dictionary("length of a code is not 1 to 16"));
        }
        let kraft: u32 = lens.iter().map(|&len| 1 << (CODE_WORD_BITS_MAX - u32::from(len))).sum();
        if kraft != 1 << CODE_WORD_BITS_MAX {
            return Err(CodecError::Dictionary("code lengths do not make a complete code"));
        }
        assert!(lens.iter().any(|&len| u32::from(len) > PADDING_BITS_MAX));
        Ok(Self { lens: lens.into() })
    }

    /// Length of each token's code word in bits.
    #[must_use]
    pub fn lens(&self) -> &[u8] {
        &self.lens
    }

    /// How many code words have 0, 1, ... 16 bits.
    #[must_use]
    pub fn histogram(&self) -> [u16; CODE_WORD_BITS_MAX as usize + 1] {
        let mut histogram = [0; CODE_WORD_BITS_MAX as usize + 1];
        self.lens.iter().for_each(|&len| histogram[usize::from(len)] += 1);
        histogram
    }

    /// The tokens in the order of their code words.
    pub(super) fn by_rank(&self) -> Vec<u16> {
        let mut tokens: Vec<u16> = (0..self.lens.len() as u16).collect();
        tokens.sort_by_key(|&token| self.lens[usize::from(token)]);
        tokens
    }

    /// First code word of each length as a number of that many bits, and the rank of its token; of lengths that do not occur, where they would be.
    pub(super) fn first_of_lens(&self) -> [(u32, u32); CODE_WORD_BITS_MAX as usize + 1] {
        let histogram = self.histogram();
        let mut first = [(0, 0); CODE_WORD_BITS_MAX as usize + 1];
        for len in 1..first.len() {
            let (word, rank) = first[len - 1];
            let count = u32::from(histogram[len - 1]);
            first[len] = ((word + count) << 1, rank + count);
        }
        first
    }

    /// The code words by token; none behind the last token.
    pub(super) fn words(&self) -> Box<[CodeWord; CODE_COUNT]> {
        let first = self.first_of_lens();
        let mut words = Box::new([CodeWord::default(); CODE_COUNT]);
        for (token, rank) in self.by_rank().into_iter().zip(0..) {
            let len = self.lens[usize::from(token)];
            let (word, first_rank) = first[usize::from(len)];
            words[usize::from(token)] = CodeWord { bits: (word + (rank - first_rank)) as u16, len };
        }
        words
    }

    /// Bytes of the serial form for so many tokens.
    #[must_use]
    pub const fn serial_len(tokens: usize) -> usize {
        tokens.div_ceil(2)
    }

    /// Appends the serial form.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.lens.chunks(2).map(|pair| (pair[0] - 1) | pair.get(1).map_or(0, |len| (len - 1) << 4)));
    }

    /// Reads the serial form of codes for so many tokens.
    pub(super) fn from_bytes(bytes: &[u8], tokens: usize) -> Result<Self, CodecError> {
        if bytes.len() != Self::serial_len(tokens) {
            return Err(CodecError::Dictionary("length of the code lengths"));
        }
        if tokens % 2 == 1 && bytes.last().is_some_and(|last| last >> 4 != 0) {
            return Err(CodecError::Dictionary("padding of the code lengths is not zero"));
        }
        let mut lens: Vec<u8> = bytes.iter().flat_map(|&pair| [(pair & 15) + 1, (pair >> 4) + 1]).collect();
        lens.truncate(tokens);
        Self::from_lens(&lens)
    }
}

impl std::fmt::Debug for HuffmanCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HuffmanCodes").field("histogram", &self.histogram()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::huffman::tests::random_codes;

    #[test]
    fn words_are_free_of_prefixes_and_the_last_is_all_ones() {
        let mut state = 7;
        for (count, skew) in [(256, 1), (257, 20), (1000, 12), (4095, 24), (4096, 1), (4096, 24)] {
            let codes = random_codes(count, skew, &mut state);
            let words = codes.words();
            // As fractions of 2^16, each word begins where the one before ends.
            let mut at = 0;
            for token in codes.by_rank() {
                let CodeWord { bits, len } = words[usize::from(token)];
                assert_eq!(u32::from(bits) << (16 - len), at);
                at += 1 << (16 - len);
            }
            assert_eq!(at, 1 << 16);
            let longest = words.iter().map(|word| word.len).max().unwrap();
            let ones: Vec<u8> =
                words[..count].iter().filter(|word| u32::from(word.bits) + 1 == 1 << word.len).map(|word| word.len).collect();
            assert_eq!(ones, [longest]);
            assert!(u32::from(longest) > PADDING_BITS_MAX);
        }
    }

    #[test]
    fn frequent_tokens_get_short_words() {
        let mut counts = vec![0; 4096];
        counts[77] = 1 << 30;
        counts[5] = 1 << 20;
        let codes = HuffmanCodes::from_counts(&counts);
        assert_eq!(codes.lens()[77], 1);
        assert_eq!(codes.lens()[5], 2);
        assert!(codes.lens().iter().all(|&len| len <= 16));
        assert_eq!(codes.histogram()[1..3], [1, 1]);
        assert_eq!(codes.histogram().iter().sum::<u16>(), 4096);
    }

    #[test]
    fn serial_forms_come_back_and_are_checked() {
        let mut state = 9;
        for (count, skew) in [(256, 9), (257, 20), (4095, 24), (4096, 12)] {
            let codes = random_codes(count, skew, &mut state);
            let mut bytes = Vec::new();
            codes.write(&mut bytes);
            assert_eq!(bytes.len(), HuffmanCodes::serial_len(count));
            assert_eq!(HuffmanCodes::from_bytes(&bytes, count).unwrap(), codes);
            assert!(HuffmanCodes::from_bytes(&bytes[1..], count).is_err());
            if count % 2 == 1 {
                bytes[count / 2] |= 0x10;
                assert!(HuffmanCodes::from_bytes(&bytes, count).is_err());
                bytes[count / 2] &= 0xf;
            }
            // Any other length of one code makes the sum another one, too great or too small.
            for token in (0..count).step_by(7) {
                for other in (1..=16).filter(|&len| len != codes.lens()[token]) {
                    let mut lens = codes.lens().to_vec();
                    lens[token] = other;
                    assert!(HuffmanCodes::from_lens(&lens).is_err());
                }
            }
        }
        assert!(HuffmanCodes::from_lens(&[8; 255]).is_err());
        assert!(HuffmanCodes::from_lens(&[12; 4097]).is_err());
        assert!(HuffmanCodes::from_lens(&[8; 256]).is_ok());
        let mut lens = vec![8; 256];
        lens[0] = 0;
        assert!(HuffmanCodes::from_lens(&lens).is_err());
        lens[0] = 17;
        assert!(HuffmanCodes::from_lens(&lens).is_err());
    }
}

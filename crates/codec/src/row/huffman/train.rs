//! Training: tokens as for codes of 12 bits, then code words by how often the sample's rows take each token.
//!
//! Which tokens a row takes depends on the code words, and those on which tokens rows take. So: counts of the parse of fewest codes, code words by
//! them, counts of the parse of fewest bits, and so on for a few rounds, each of which takes fewer bits than the one before or is the last.

use super::codes::HuffmanCodes;
use super::dictionary::{HuffmanDictionary, RowDictionary};
use super::encode::HuffmanEncoder;
use super::parse::parse;
use crate::row::codes::CODE_COUNT;
use crate::row::dictionary::Dictionary;
use crate::row::encode::Encoder;
use crate::row::sample::RowSample;
use crate::row::train::{TrainOptions, part, train};

/// Which type of dictionary to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DictionaryChoice {
    /// H when the sample's rows together with the code lengths get smaller, else F.
    #[default]
    Smaller,
    /// F.
    Fixed,
    /// H.
    Huffman,
}

/// Rounds of counting with the code words of the round before.
const ROUNDS: usize = 2;

/// Trains a dictionary of either type. The same sample, options and choice give the same dictionary.
#[must_use]
pub fn train_row_dictionary(sample: &RowSample<'_>, options: &TrainOptions, choice: DictionaryChoice) -> RowDictionary {
    RowDictionary::of_tokens(train(sample, options), sample, options, choice)
}

impl RowDictionary {
    /// A dictionary of tokens that are there already.
    #[must_use]
    pub fn of_tokens(tokens: Dictionary, sample: &RowSample<'_>, options: &TrainOptions, choice: DictionaryChoice) -> RowDictionary {
        if choice == DictionaryChoice::Fixed {
            return RowDictionary::Fixed(tokens);
        }
        let huffman = HuffmanDictionary::train(tokens.clone(), sample, options);
        if choice == DictionaryChoice::Huffman || saves(&huffman, sample, options) {
            RowDictionary::Huffman(huffman)
        } else {
            RowDictionary::Fixed(tokens)
        }
    }
}

/// Do the sample's rows, each stored as is best for it, together with the code lengths take fewer bytes than with 12-bit codes?
fn saves(dictionary: &HuffmanDictionary, sample: &RowSample<'_>, options: &TrainOptions) -> bool {
    let encoder = HuffmanEncoder::new(dictionary);
    let (mut fixed, mut huffman, mut bytes) = (0, 0, 0);
    for row in part(sample, options.refine_bytes) {
        let lens = encoder.encoded_lens(row);
        fixed += lens.fixed;
        huffman += lens.huffman.min(lens.fixed);
        bytes += row.len();
    }
    // What a part of the sample saves, the whole saves in proportion.
    let saved = (fixed - huffman) as u128 * sample.byte_len() as u128 / bytes.max(1) as u128;
    saved > HuffmanCodes::serial_len(dictionary.tokens().token_count()) as u128
}

impl HuffmanDictionary {
    /// The dictionary of these tokens, with code words for the rows of `sample`.
    #[must_use]
    pub fn train(tokens: Dictionary, sample: &RowSample<'_>, options: &TrainOptions) -> Self {
        let encoder = Encoder::new(&tokens);
        let count = tokens.token_count();
        let mut counts = vec![0; count];
        part(sample, options.refine_bytes).for_each(|row| encoder.codes(row, |code| counts[usize::from(code)] += 1));
        let mut codes = HuffmanCodes::from_counts(&counts);
        let mut fewest = u64::MAX;
        for _ in 0..ROUNDS {
            let words = codes.words();
            counts.fill(0);
            let mut bits = 0;
            for row in part(sample, options.refine_bytes) {
                parse(&encoder.matcher, &words, row, |token| {
                    counts[usize::from(token)] += 1;
                    bits += u64::from(words[usize::from(token)].len);
                });
            }
            debug_assert!(count <= CODE_COUNT);
            if bits >= fewest {
                break;
            }
            fewest = bits;
            codes = HuffmanCodes::from_counts(&counts);
        }
        match Self::new(tokens, codes) {
            Ok(dictionary) => dictionary,
            Err(error) => unreachable!("a code for each token: {error}"),
        }
    }
}

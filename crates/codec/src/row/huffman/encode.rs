//! Huffman codes from rows.

use super::bits::BitWriter;
use super::codes::CodeWord;
use super::dictionary::HuffmanDictionary;
use super::parse::parse;
use super::table::DecodeTable;
use crate::row::codes::CODE_COUNT;
use crate::row::encode::Encoder;

/// What it takes to encode rows with a dictionary of type H: about half a megabyte that readers do not need.
pub struct HuffmanEncoder {
    pub(super) fixed: Encoder,
    /// By token.
    pub(super) words: Box<[CodeWord; CODE_COUNT]>,
    /// To read the codes of a row that changes.
    pub(super) table: DecodeTable,
}

/// Bytes that a row takes, for each way to store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodedLens {
    /// As it is.
    pub plain: usize,
    /// With codes of 12 bits, as [`Encoder::encode`] would write it; that of the row when it would not.
    pub fixed: usize,
    /// With Huffman codes, whether that is smaller or not.
    pub huffman: usize,
}

impl HuffmanEncoder {
    /// The encoder of `dictionary`.
    #[must_use]
    pub fn new(dictionary: &HuffmanDictionary) -> Self {
        Self { fixed: Encoder::new(dictionary.tokens()), words: dictionary.codes().words(), table: dictionary.table.clone() }
    }

    /// The encoder of the same tokens with codes of 12 bits.
    #[must_use]
    pub fn fixed(&self) -> &Encoder {
        &self.fixed
    }

    /// Appends `row` in compressed form to `out` and returns the length of that; or leaves `out` as it was and returns `None` when the
    /// compressed form would not be smaller than the row. Codes of 12 bits may do better: [`encoded_lens`](Self::encoded_lens).
    pub fn encode(&self, row: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        self.write(row, out);
        let len = out.len() - start;
        if len < row.len() {
            Some(len)
        } else {
            out.truncate(start);
            None
        }
    }

    /// Appends the code words of the row, whatever their length; returns a number of tokens that no way to cut the row falls below.
    pub(in crate::row) fn write(&self, row: &[u8], out: &mut Vec<u8>) -> usize {
        let mut writer = BitWriter::new(out);
        let tokens = self.codes(row, |token| writer.push(self.words[usize::from(token)]));
        writer.finish();
        tokens
    }

    /// Bytes that `row` takes as [`encode`](Self::encode) would write it; `None` when that would leave it as it is.
    #[must_use]
    pub fn encoded_len(&self, row: &[u8]) -> Option<usize> {
        Some(self.huffman_len(row)).filter(|&len| len < row.len())
    }

    /// Bytes that `row` takes in each form, exactly.
    #[must_use]
    pub fn encoded_lens(&self, row: &[u8]) -> EncodedLens {
        EncodedLens { plain: row.len(), fixed: self.fixed.encoded_len(row).unwrap_or(row.len()), huffman: self.huffman_len(row) }
    }

    fn huffman_len(&self, row: &[u8]) -> usize {
        self.cost(row).0
    }

    /// Bytes of the row's code words, and the number that [`write`](Self::write) returns.
    pub(in crate::row) fn cost(&self, row: &[u8]) -> (usize, usize) {
        let mut bits = 0;
        let tokens = self.codes(row, |token| bits += usize::from(self.words[usize::from(token)].len));
        (bits.div_ceil(8), tokens)
    }

    /// Calls `emit` with each token of `row` in order; see [`parse`].
    #[inline]
    pub(super) fn codes(&self, row: &[u8], emit: impl FnMut(u16)) -> usize {
        parse(&self.fixed.matcher, &self.words, row, emit)
    }
}

impl std::fmt::Debug for HuffmanEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HuffmanEncoder").finish_non_exhaustive()
    }
}

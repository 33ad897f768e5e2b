//! Rows and the dictionary of a partition, of either type.
//!
//! Under a dictionary with Huffman codes a row of rare tokens can be smaller with the 12-bit codes of the same tokens. It is stored so when that saves more than
//! the tag that says it, so no row is larger than under `fixed` by more than that tag.

use super::codes::compressed_len;
use super::encode::Encoder;
use super::huffman::{HuffmanEncoder, RowDictionary};
use crate::CodecError;

/// Which codes a compressed row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Those of the dictionary's type.
    Own,
    /// Codes of 12 bits, though the dictionary is of type H.
    Short,
}

/// What it takes to compress rows with a dictionary.
#[derive(Debug)]
pub enum RowEncoder {
    /// For type F.
    Fixed(Encoder),
    /// For type H.
    Huffman(HuffmanEncoder),
}

impl RowEncoder {
    /// The encoder of a dictionary.
    #[must_use]
    pub fn new(dictionary: &RowDictionary) -> RowEncoder {
        match dictionary {
            RowDictionary::Fixed(dictionary) => RowEncoder::Fixed(Encoder::new(dictionary)),
            RowDictionary::Huffman(dictionary) => RowEncoder::Huffman(HuffmanEncoder::new(dictionary)),
        }
    }

    /// Appends `row` in its smallest compressed form to `out`; its length and form. `None`, and nothing appended, when none is smaller than the row. `tag` is what [`Coding::Short`] takes more.
    pub fn encode(&self, row: &[u8], tag: usize, out: &mut Vec<u8>) -> Option<(usize, Coding)> {
        match self {
            RowEncoder::Fixed(encoder) => encoder.encode(row, out).map(|len| (len, Coding::Own)),
            RowEncoder::Huffman(encoder) => {
                let start = out.len();
                let tokens = encoder.write(row, out);
                let len = out.len() - start;
                if short_len(encoder, (len, tokens), row, tag).is_some() {
                    out.truncate(start);
                    return encoder.fixed().encode(row, out).map(|len| (len, Coding::Short));
                }
                if len >= row.len() {
                    out.truncate(start);
                }
                (len < row.len()).then_some((len, Coding::Own))
            }
        }
    }

    /// What [`encode`](Self::encode) would append.
    #[must_use]
    pub fn encoded_len(&self, row: &[u8], tag: usize) -> Option<(usize, Coding)> {
        match self {
            RowEncoder::Fixed(encoder) => encoder.encoded_len(row).map(|len| (len, Coding::Own)),
            RowEncoder::Huffman(encoder) => {
                let cost = encoder.cost(row);
                match short_len(encoder, cost, row, tag) {
                    Some(len) => Some((len, Coding::Short)),
                    None => Some((cost.0, Coding::Own)).filter(|(len, _)| *len < row.len()),
                }
            }
        }
    }

    /// As [`encode`](Self::encode), given a row `before` and its `codes` of that form, for a row that differs little.
    pub fn reencode(
        &self,
        (before, codes, coding): (&[u8], &[u8], Coding),
        row: &[u8],
        tag: usize,
        out: &mut Vec<u8>,
    ) -> Option<(usize, Coding)> {
        match (self, coding) {
            (RowEncoder::Fixed(encoder), Coding::Own) => encoder.reencode(before, codes, row, out).map(|len| (len, Coding::Own)),
            (RowEncoder::Huffman(encoder), Coding::Own) => encoder.reencode(before, codes, row, out).map(|len| (len, Coding::Own)),
            (_, Coding::Short) => self.encode(row, tag, out),
        }
    }
}

/// Bytes of the row with codes of 12 bits, when that is the smallest form. `len` is what its Huffman codes take; it has at least so many tokens, which spares most rows the second parse.
fn short_len(encoder: &HuffmanEncoder, (len, tokens): (usize, usize), row: &[u8], tag: usize) -> Option<usize> {
    let best = len.min(row.len());
    if compressed_len(tokens) + tag >= best {
        return None;
    }
    encoder.fixed().encoded_len(row).filter(|&short| short + tag < best)
}

impl RowDictionary {
    /// Decodes a compressed row to the front of `out`; returns its length. What lies behind it in `out` is undefined afterwards. The row may have `cap` bytes at most, and no more than
    /// `out.len() - DECODE_SLACK`.
    ///
    /// # Errors
    /// When `compressed` is not a compressed row of that form, or its row is longer than permitted.
    #[inline]
    pub fn decode_into(&self, coding: Coding, compressed: &[u8], out: &mut [u8], cap: usize) -> Result<usize, CodecError> {
        self.decode_prefix(coding, compressed, out, cap, usize::MAX)
    }

    /// As [`decode_into`](Self::decode_into), but stops as soon as the first `need` bytes are decoded; returns how many are: at least `need`, unless the row is shorter.
    ///
    /// # Errors
    /// As `decode_into`, as far as it has looked.
    #[inline]
    pub fn decode_prefix(&self, coding: Coding, compressed: &[u8], out: &mut [u8], cap: usize, need: usize) -> Result<usize, CodecError> {
        match (self, coding) {
            (RowDictionary::Fixed(dictionary), Coding::Own) => dictionary.decode_prefix(compressed, out, cap, need),
            (RowDictionary::Huffman(dictionary), Coding::Own) => dictionary.decode_prefix(compressed, out, cap, need),
            (RowDictionary::Huffman(dictionary), Coding::Short) => dictionary.tokens().decode_prefix(compressed, out, cap, need),
            (RowDictionary::Fixed(_), Coding::Short) => Err(CodecError::Row("of codes that its dictionary has as its own")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::{random, random_dictionary};
    use crate::row::{DECODE_SLACK, HuffmanCodes, HuffmanDictionary};

    const TAG: usize = 3;

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn the_smallest_form_comes_back() {
        let mut state = 11;
        let tokens = random_dictionary(900, 5, 4, &mut state);
        // Few tokens are frequent, so that many rows are better off with 12 bits a token.
        let counts: Vec<u32> = (0..tokens.token_count()).map(|token| if token % 64 == 0 { 1 << 20 } else { 1 }).collect();
        let huffman = HuffmanDictionary::new(tokens.clone(), HuffmanCodes::from_counts(&counts)).unwrap();
        for dictionary in [RowDictionary::Fixed(tokens), RowDictionary::Huffman(huffman)] {
            let encoder = RowEncoder::new(&dictionary);
            let mut shorts = 0;
            let mut before: Option<(Vec<u8>, Vec<u8>, Coding)> = None;
            for _ in 0..3000 {
                let row: Vec<u8> = (0..random(&mut state, 90)).map(|_| random(&mut state, 4) as u8).collect();
                let mut codes = Vec::new();
                let found = encoder.encode(&row, TAG, &mut codes);
                assert_eq!(found, encoder.encoded_len(&row, TAG));
                assert_eq!(found.map_or(0, |(len, _)| len), codes.len());
                let Some((len, coding)) = found else { continue };
                let decode = |codes: &[u8], coding, row: &[u8]| {
                    let mut out = vec![0; 100 + DECODE_SLACK];
                    let len = dictionary.decode_into(coding, codes, &mut out, 100).unwrap();
                    assert_eq!(&out[..len], row);
                };
                decode(&codes, coding, &row);
                shorts += usize::from(coding == Coding::Short);
                if let RowEncoder::Huffman(huffman) = &encoder {
                    let lens = huffman.encoded_lens(&row);
                    assert!(len + if coding == Coding::Short { TAG } else { 0 } <= lens.fixed + TAG);
                    assert!(coding == Coding::Own || len + TAG < lens.huffman);
                }
                if let Some((before, codes, coding)) = &before {
                    let mut out = Vec::new();
                    if let Some((_, coding)) = encoder.reencode((before, codes, *coding), &row, TAG, &mut out) {
                        decode(&out, coding, &row);
                    }
                }
                before = Some((row, codes, coding));
            }
            assert_eq!(shorts > 100, matches!(dictionary, RowDictionary::Huffman(_)), "{shorts} rows");
        }
    }
}

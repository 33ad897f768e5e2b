//! Where the bits of a row go: codes a row, and how near code words come to the entropy of the codes.

use pagefold_codec::row::{Encoder, HuffmanEncoder, RowDictionary};
use pagefold_engine::table_space::{SampledRecords, Table};
use pagefold_lab::lz_tree::{Growth, LzTree};

/// Averages over the sample that the dictionary was trained on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// Codes of a row, cut into the fewest.
    pub(crate) codes: f64,
    /// Entropy of those codes, each by itself, in bits a code.
    pub(crate) entropy_bits: f64,
    /// Bits of their code words, a code.
    pub(crate) word_bits: f64,
    /// Bits of a row that is cut for the fewest bits, as it is stored, padding included.
    pub(crate) row_bits: f64,
    /// Codes of a row by the reference, and their entropy in bits a code.
    pub(crate) lz_tree_codes: f64,
    pub(crate) lz_tree_entropy_bits: f64,
}

/// Bits a code that no code of one word for each can fall below.
fn entropy_bits(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| *count as f64).map(|count| count / total * (total / count).log2()).sum()
}

/// Of a table under `huffman`; `None` where its dictionary has no Huffman codes, or it has none.
pub(crate) fn profile(table: &Table, sample: &SampledRecords) -> Option<Profile> {
    let compressor = table.dictionary()?;
    let RowDictionary::Huffman(dictionary) = compressor.dictionary() else { return None };
    let (encoder, huffman) = (Encoder::new(dictionary.tokens()), HuffmanEncoder::new(dictionary));
    let lens = dictionary.codes().lens();
    let rows: Vec<&[u8]> = sample.iter().collect();
    let tree = LzTree::train(&rows, Growth::Pruned);
    let (mut counts, mut lz_counts) = (vec![0_u64; dictionary.tokens().token_count()], vec![0_u64; tree.len()]);
    let mut bytes = 0;
    for row in &rows {
        encoder.codes(row, |code| counts[usize::from(code)] += 1);
        tree.parse(row, |code| lz_counts[usize::from(code)] += 1);
        bytes += huffman.encoded_lens(row).huffman;
    }
    let (codes, lz_codes) = (counts.iter().sum::<u64>() as f64, lz_counts.iter().sum::<u64>() as f64);
    let word_bits: f64 = counts.iter().zip(lens).map(|(count, len)| *count as f64 * f64::from(*len)).sum();
    Some(Profile {
        codes: codes / rows.len() as f64,
        entropy_bits: entropy_bits(&counts),
        word_bits: word_bits / codes,
        row_bits: bytes as f64 * 8.0 / rows.len() as f64,
        lz_tree_codes: lz_codes / rows.len() as f64,
        lz_tree_entropy_bits: entropy_bits(&lz_counts),
    })
}

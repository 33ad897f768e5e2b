//! Method `huffman`: the tokens of a [`Dictionary`](super::Dictionary), and canonical Huffman codes of up to 16 bits for them.
//!
//! A compressed row is the code words of its tokens one behind the other, the first bit the highest of the first byte; the last byte is padded with
//! ones. Why that tells where the row ends: [`codes`]. A row that is smaller with the 12-bit codes of the same dictionary can be stored so
//! under another tag.

mod bits;
mod codes;
mod decode;
mod dictionary;
mod encode;
mod package_merge;
mod parse;
mod reencode;
mod table;
mod train;

pub(crate) use bits::BitWriter;
pub use codes::{CODE_WORD_BITS_MAX, HuffmanCodes};
pub use dictionary::{HuffmanDictionary, RowDictionary};
pub use encode::{EncodedLens, HuffmanEncoder};
pub use train::{DictionaryChoice, train_row_dictionary};

#[cfg(test)]
mod tests;

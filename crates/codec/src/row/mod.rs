//! Rows, one by one: a dictionary of 4,096 byte strings per partition, and codes for them, of 12 bits (method `fixed`) or of as many as their
//! frequency asks for (method `huffman`).

mod coder;
mod codes;
mod decode;
mod dictionary;
mod encode;
mod huffman;
mod matcher;
mod merge;
mod reencode;
mod sample;
mod table;
mod train;

pub use coder::{Coding, RowEncoder};
pub use codes::{CODE_BITS, CODE_COUNT, code_count, compressed_len};
pub(crate) use codes::{CodeWriter, code_at};
pub use dictionary::{Dictionary, DictionaryType};
pub use encode::Encoder;
pub(crate) use huffman::BitWriter;
pub use huffman::*;
pub use sample::RowSample;
pub use table::{DECODE_SLACK, MAX_TOKEN_LEN};
pub use train::{TrainOptions, train};

#[cfg(test)]
pub(crate) mod tests;

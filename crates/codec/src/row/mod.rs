//! Rows, one by one: a dictionary of 4,096 byte strings per partition, and 12-bit codes for them (method `fixed`).

mod codes;
mod decode;
mod dictionary;
mod encode;
mod sample;
mod train;
mod trie;

pub use codes::{CODE_BITS, CODE_COUNT, code_count, compressed_len};
pub use decode::DECODE_SLACK;
pub use dictionary::{Dictionary, MAX_TOKEN_LEN};
pub use encode::Encoder;
pub use sample::RowSample;
pub use train::{TrainOptions, train};

#[cfg(test)]
mod tests;

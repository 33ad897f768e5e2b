//! Rows, one by one: a dictionary of 4,096 byte strings per partition, and 12-bit codes for them (method `fixed`).

mod codes;
mod decode;
mod dictionary;
mod encode;
mod matcher;
mod merge;
mod reencode;
mod sample;
mod table;
mod train;

pub use codes::{CODE_BITS, CODE_COUNT, code_count, compressed_len};
pub(crate) use codes::{CodeWriter, code_at};
pub use dictionary::Dictionary;
pub use encode::Encoder;
pub use sample::RowSample;
pub use table::{DECODE_SLACK, MAX_TOKEN_LEN};
pub use train::{TrainOptions, train};

#[cfg(test)]
mod tests;

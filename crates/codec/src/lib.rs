//! Compression codecs: pure functions on the caller's buffers. No I/O, no page numbers.

pub mod block;
pub mod bytes;
mod error;
pub mod index;
pub mod page;
pub mod row;
pub mod splice;

pub use error::CodecError;

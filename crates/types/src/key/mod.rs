//! Order-preserving, prefix-free index keys.

mod decode;
mod encode;
mod layout;
mod scalar;

pub use layout::{Direction, KeyLayout, key_bytes_max, prefix_end};

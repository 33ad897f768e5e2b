//! Index leaves: the expanded body that is searched, and the folded body that is stored.
//!
//! * [`layout`]: the expanded body (entries and key map)
//! * [`cost`]: what an entry takes when folded; depends on the entry and its left neighbour alone
//! * [`encode`]: expanded entries to a folded body
//! * [`expand`]: a folded body back to entries and key map
//! * [`prefix`]: blocks of a leaf that is searched compressed
//!
//! The bytes are described in `docs/file-format.md`, "Folded leaf".

pub mod cost;
pub mod encode;
mod error;
pub mod expand;
mod fast;
pub mod layout;
pub mod prefix;
mod rid_code;
mod varint;

#[cfg(test)]
mod tests;

pub use error::FoldError;
pub use rid_code::{linear_limit, linear_rid, slot_bits_for};

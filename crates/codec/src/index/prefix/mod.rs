//! Blocks of a `prefix` leaf: up to 128 (key, RID) pairs in order, compressed, searched as they are.
//!
//! All pairs of a block share the bytes that all keys of the leaf share, and its directory entry has the 4 bytes after those of the first key (its head); a block holds what is behind.
//! **Entries** are keys with their RIDs; in a block where few keys have several RIDs, each pair may be an entry of its own, whichever is shorter.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 1 | pairs - 1 (7 bits); top bit: RIDs ascend through the block |
//! | 1 | 1 | entries - 1 (7 bits); top bit 0 |
//! | 2 | 1 | key form (2 bits), width of a count (3), bytes of the RID base (3) |
//! | 3 | 2 | slots - 1 (12 bits), window bytes - 1 (4 bits; 0 but for bit-packed keys) |
//! | 5 | 1 | width of a first RID |
//! | 6 | 1 | width of a RID gap |
//! | 7 | 2 | length of the first key; absent when all keys of the index have one length |
//! | | | first key behind the shared bytes and the head |
//! | | 2 + window | bit-packed keys only: width of a code, bytes behind the window, mask (big-endian) |
//! | | 0 to 7 | RID base, little-endian |
//! | | | bits, the lowest of each byte first: codes, counts, first RIDs, gaps; then zero bits to the next byte |
//! | | | key form 3: tokens and suffixes |
//!
//! | Key form | Keys |
//! |---|---|
//! | 0 | one entry |
//! | 1 | of the bits that differ within the block: each entry's, less those of the first |
//! | 2 | the same, less those of the entry before |
//! | 3 | what the key does not share with the one before |
//!
//! **Bit-packed keys** (forms 1, 2) all have one length and differ in a window of at most 16 bytes only. The mask has the bits of the window in which any two differ, at most 56; a key's code is those bits of it, one
//! behind the other. Bits that are the same in all keys do not change order, so codes order like keys: this is frame of reference, or delta coding, of whatever integers the key is made of, for several
//! columns at once and without the bits that generators of sparse keys leave out.
//!
//! **Tokens** (form 3), keys of one length: bytes added (255: the number follows in 2 bytes). Else: bytes dropped from the end of the key before (high nibble), bytes added (low nibble); for each nibble of 15 the
//! number follows in 2 bytes.
//!
//! **RIDs** are made linear: (partition and page) * slots + slot, where slots is one more than the greatest slot in the block. Where they ascend through the block there are pairs - 1 gaps behind the base, each one less
//! than the difference. Else the base is the smallest of the entries' first RIDs; each entry has its first RID less the base, and gaps for its further RIDs. A count is an entry's RIDs - 1; there are none when the
//! width is 0.
//!
//! Which of the forms a block has follows from its pairs: the smallest. Frame of reference and bit-packed gaps: Goldstein, Ramakrishnan, Shaft 1998; Zukowski et al. 2006.

mod append;
pub mod bits;
mod encode;
mod entries;
mod gather;
mod insert;
mod plan;
mod search;
pub mod view;

#[cfg(test)]
mod tests;

pub use entries::Entries;
pub use insert::Inserted;
pub use plan::Plan;
pub use view::{Block, Frame};

/// Pairs of a block at most.
pub const PAIRS_MAX: usize = 128;
/// Bytes of a key head.
pub const HEAD_BYTES: usize = 4;

/// Bytes before the key length.
const HEADER_BYTES: usize = 7;
/// Bytes of a window at most.
const WINDOW_MAX: usize = 16;
/// Widths are at most this, so that one load of 8 bytes has a number wherever its bits begin.
const WIDTH_MAX: u32 = 56;
const _: () = assert!(WIDTH_MAX + 7 < 64);
/// Linear RIDs are below this.
const LINEAR_BITS: u32 = 56;

/// How the keys of a block are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KeyForm {
    #[default]
    One,
    Frame,
    Delta,
    Text,
}

impl KeyForm {
    fn from_bits(bits: u8) -> KeyForm {
        match bits & 3 {
            0 => KeyForm::One,
            1 => KeyForm::Frame,
            2 => KeyForm::Delta,
            _ => KeyForm::Text,
        }
    }

    fn is_packed(self) -> bool {
        matches!(self, KeyForm::Frame | KeyForm::Delta)
    }
}

/// Why bytes are not a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index block: {0}")]
pub struct BlockError(pub &'static str);

/// What `key` has behind `prefix`; `None` when it does not begin with it. Without a call for the few bytes that leaves mostly share.
#[inline]
#[must_use]
pub fn own_part<'k>(key: &'k [u8], prefix: &[u8]) -> Option<&'k [u8]> {
    let (start, own) = key.split_at_checked(prefix.len())?;
    let same = if prefix.len() <= WINDOW_MAX { plan::window(start) == plan::window(prefix) } else { start == prefix };
    same.then_some(own)
}

/// A packed RID as a number without gaps between pages of `slots` slots.
#[inline]
fn to_linear(packed: u64, slots: u64) -> u64 {
    (packed >> 12) * slots + (packed & 0xFFF)
}

/// Back; numbers too large (a damaged block) lose their upper bits.
#[inline]
fn from_linear(linear: u64, slots: u64) -> u64 {
    (((linear / slots) << 12) | (linear % slots)) & ((1 << 56) - 1)
}

/// Bits that `value` needs.
#[inline]
fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

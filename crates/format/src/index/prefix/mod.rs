//! Leaves of the index format `prefix`: compressed alike on disk and in memory, searched and changed as they are.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 32 | 2 | 0 |
//! | 34 | 2 | length of every key of the index; 0: lengths differ |
//! | 36 | 2 | shared: bytes that all keys of the leaf share |
//! | 38 | 2 | bytes of the page |
//! | 40 | 4 | page after in key order; 0: none |
//! | 44 | 4 | RIDs of all keys |
//! | 48 | shared | the shared bytes |
//! | | | blocks in order of (key, RID), without gaps; then zeros |
//! | end - 6 (i + 1) | 6 | directory entry of block i: offset (2), head of its first key (4) |
//!
//! In the common header, count is the number of blocks, low end the end of the blocks, garbage 0. Blocks: `pagefold_codec::index::prefix`.
//!
//! * [`view`]: search; [`reader`]: pairs one after the other
//! * `change`: what an insert or a removal turns a block into, and its size; `edit`: the changes themselves
//! * `image`: a leaf written anew from blocks
//! * [`check`]: structure (once after a read) and everything
//! * [`builder`]: packing leaves in order
//!
//! Invariants: a change touches one block (a removal perhaps its neighbour), and its size is exact before a byte of the page changes. Changes are deterministic, so redo repeats them; but two leaves with
//! the same pairs may have them in other blocks. The shared bytes are shared, not always the longest such: an insert shortens them, cutting the leaf makes them longest again.

pub mod builder;
mod change;
pub mod check;
mod edit;
mod header;
mod image;
pub mod reader;
pub mod view;

#[cfg(test)]
mod shapes_tests;
#[cfg(test)]
mod tests;

pub use change::Change;
pub(super) use edit::{append, insert, keep_first, keep_from, prepend, remove};
pub(super) use header::format_leaf;
pub use header::{DIRECTORY_BYTES, PREFIX_HEADER_BYTES, PREFIX_LEAF_VERSION, block_bytes_max};
pub use view::PrefixLeaf;

//! Index spaces: what an index is. The tree in its pages is `crate::btree`.

mod attributes;
mod space;

pub use attributes::{FOLDED_DISK_BYTES, IndexAttributes, IndexFormat};
pub use space::Index;

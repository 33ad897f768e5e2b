//! Index spaces: what an index is, and building it in order. The tree in its pages is `crate::btree`.

mod attributes;
mod build;
mod entry_queue;
mod kept_filter;
mod key_bounds;
mod key_filter;
mod key_recorder;
mod known_keys;
mod space;

pub use attributes::{FOLDED_DISK_BYTES, IndexAttributes, IndexFormat};
pub use build::IndexBuilder;
pub(crate) use entry_queue::{Entries, EntryQueue};
pub(crate) use kept_filter::Pieces;
pub use key_recorder::RecordOptions;
pub(crate) use key_recorder::Spans;
pub use pagefold_format::key_trace::{KeySpan, KeyTrace};
pub use space::Index;

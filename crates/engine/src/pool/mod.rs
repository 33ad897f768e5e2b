//! Buffer pools: frames, latches, getpage, prefetch, deferred write, mini-transactions.

mod background;
mod bulk_write;
mod deferred_write;
pub mod double_write;
mod filter_memory;
mod guard;
#[cfg(test)]
mod latch_tests;
mod leaf_io;
#[cfg(test)]
mod little_memory_tests;
mod manager;
mod mini_transaction;
mod registry;
mod replacement;
mod reserve;
#[cfg(test)]
mod tests;
mod work_area;

pub use background::Prefetch;
pub use bulk_write::{BULK_WRITE_BYTES, BulkWriter};
pub(crate) use deferred_write::Protection;
pub(crate) use filter_memory::FilterMemory;
pub use guard::{ExclusivePage, SharedPage};
pub use manager::{Access, BufferManager, PoolSettings};
pub(crate) use mini_transaction::keep_for_undo;
pub use mini_transaction::{By, Frees, LogSink, MiniTransaction, PageHandle};
pub(crate) use reserve::Turn;

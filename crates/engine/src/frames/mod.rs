//! Frames: the memory that pages are in, how much of it each pool may take, and the word that says of a page where it is and who has it latched.
//!
//! * `arena`: the memory
//! * `pool`: a buffer pool, as a limit on it
//! * `word`: page words
//! * `counters`: what is counted of pages

mod arena;
mod counters;
mod pool;
mod word;

pub(crate) use arena::{Arena, CHUNK_BYTES, RESERVE_BYTES, UNIT_BYTES};
pub use counters::CounterValues;
pub(crate) use counters::{Counters, add};
pub use pool::Pool;
#[cfg(test)]
pub(crate) use word::PASSES_MAX;
pub(crate) use word::{Evict, Eviction, ExclusiveWait, Latch, Order, PageWord};

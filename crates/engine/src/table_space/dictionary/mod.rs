//! The life of a table's dictionaries.
//!
//! A table whose method has a dictionary gets its first one from LOAD or REORG, or in the background, when there are rows enough for it to pay; rows that were there before are then
//! brought into its form. From then on what is inserted is watched: when a fresh dictionary makes newer rows smaller by more than a little, it becomes the next version, and new and changed rows have its form. There are two versions at rest and
//! [`LIVE_MAX`] at most: the rows of one of the others are brought into the form of the newest, and it goes.
//!
//! * `set`: the versions in memory
//! * `store`: the versions in the partitions; adding and dropping one
//! * `sample`: rows to train on
//! * `sampler`: every k-th of the rows that come
//! * `saving`: how many pages a dictionary saves
//! * `watch`: rows that came lately, and when they are to be looked at
//! * `renew`: whether there is a better dictionary
//! * `rewrite`: bringing the rows of a page into the form of the newest
//! * `retire`: doing that for all pages, and when nothing is left of a version
//!
//! Invariants:
//! - a version is in every partition, and in the log, before a row has its form;
//! - a version goes when no page has anything of it, and nobody can put something of it back: neither who was about to store a row, nor who takes a change back (see `retire`);
//! - in memory a version stays until the table is closed: so whoever reads a row, however old, finds its dictionary.

mod renew;
mod retire;
mod rewrite;
mod sample;
mod sampler;
mod saving;
mod set;
mod store;
mod watch;

pub(super) use renew::Standing;
pub(super) use retire::Changed;
pub(crate) use retire::Round;
pub(crate) use rewrite::Rewritten;
pub use sample::{SAMPLE_BYTES, SAMPLE_ROWS, SampledRecords};
pub use sampler::Sampler;
pub use saving::Saving;
pub use set::Compressor;
pub(crate) use set::DictionarySet;
pub(super) use watch::Watch;

/// There are never more versions.
pub const LIVE_MAX: usize = 3;

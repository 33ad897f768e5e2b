//! The B+tree: entries (key, RID) in order, in the pages of one data set. Filling it at once is `crate::index::IndexBuilder`.
//!
//! * `tree`: descents; what latches are taken in which order
//! * `search`: look-ups; [`Cursor`]: ranges both ways
//! * `insert`, `level`, `split`; `delete`, `delete_run`, `merge`, `shrink`; `neighbours`: the leaves that level and merge
//! * `record`: which spans of keys are recorded
//! * `inspect`: levels, and the check of the whole tree

mod cursor;
mod delete;
mod delete_run;
#[cfg(test)]
mod delete_run_tests;
mod insert;
mod insert_run;
mod inspect;
mod level;
mod merge;
#[cfg(test)]
mod merge_tests;
mod moves;
mod neighbours;
mod record;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod scan_tests;
mod search;
mod shrink;
mod split;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use cursor::Position;
pub use cursor::{Cursor, Direction, Run};
pub(crate) use delete::Removed;
pub(crate) use insert::Unless;
pub use inspect::{TreeFault, TreeLevel};
pub use tree::BTree;

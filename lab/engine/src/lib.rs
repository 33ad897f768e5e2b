//! What the programs of this package share: LINEITEM, as a file and as records; databases for it; tables of other kinds; SQL sessions, and threads that drive them.

pub mod corpus;
pub mod data;
pub mod database;
pub mod inputs;
pub mod random;
#[cfg(feature = "rocksdb")]
pub mod rocks;
pub mod sessions;
pub mod terminals;

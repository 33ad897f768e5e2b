//! What the programs of this package share: LINEITEM, as a file and as records; databases for it.

pub mod data;
pub mod database;
pub mod random;

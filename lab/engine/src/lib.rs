//! What the programs of this package share: LINEITEM, as a file and as records.

pub mod data;
pub mod random;

//! What the programs of this package share: LINEITEM, as a file and as records; a device that is slower than this one.

pub mod data;
pub mod slow;

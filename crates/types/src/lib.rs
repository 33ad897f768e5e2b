//! SQL types, values, the packed row, order-preserving index keys.

mod rid;

pub use rid::{PARTITION_MAX, RID_BYTES, Rid, SLOT_MAX};

//! Tests of the transaction parts, against naive models.

mod locks;
mod locks_stress;
mod marks;
mod serializable;
mod snapshots;
mod versions;

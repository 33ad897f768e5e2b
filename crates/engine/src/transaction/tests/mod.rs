//! Tests of the transaction parts, against naive models.

mod locks;
mod locks_stress;
mod marks;
mod passing;
mod rings;
mod scaling;
mod serializable;
mod snapshots;
mod threads;
mod versions;

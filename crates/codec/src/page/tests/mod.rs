//! Areas against the rows they were made of.

mod data;
mod lineitem;
mod round_trip;

pub(super) use data::random;

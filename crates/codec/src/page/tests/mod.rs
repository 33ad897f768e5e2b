//! Areas against the rows they were made of.

mod batches;
mod carry;
mod data;
mod hostile;
mod lineitem;
mod patches;
mod round_trip;
mod selections;

pub(super) use data::random;

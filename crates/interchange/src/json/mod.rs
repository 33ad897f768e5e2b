//! JSON lines: one object a line, as export writes them.
//!
//! A member is a column, wherever it stands; one that is missing is NULL, and none comes twice. Numbers keep all their digits. Text is never taken for a number, but may be a date, time, timestamp or UUID, as
//! these are written as text. Objects and arrays within are kept as their JSON text.

mod members;
mod source;

pub use source::JsonSource;

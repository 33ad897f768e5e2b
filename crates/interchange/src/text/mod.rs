//! Rows of text, of whatever file format: types from values, values from text, batches, rows that did not fit.

mod decided;
mod guess;
mod index;
mod moment;
mod reject;
mod rows;
mod value;

pub use decided::{ColumnDecided, Decided, FileDecided};
pub(crate) use guess::{Guess, Kind};
pub(crate) use index::{Checkpoint, RowIndex};
pub use moment::DateOrder;
pub use reject::Rejects;
pub(crate) use rows::{BatchReader, RowFormat, RowReader, check_rows, index_rows};
pub(crate) use value::ValueFormat;

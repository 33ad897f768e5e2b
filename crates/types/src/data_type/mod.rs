//! SQL data types: what they are, their SQL text, their bytes in the catalog.

mod bytes;
mod kind;
mod sql_text;
mod widen;

pub use kind::{CHAR_LENGTH_MAX, DECIMAL_PRECISION_MAX, DataType, Physical, TimeUnit, VARCHAR_LENGTH_MAX, decimal_limit, decimal_width};

//! CSV, TSV and `.tbl`: text files of rows.
//!
//! A field without quotes that is the null text (by default: empty) is NULL; in quotes it is that text. So an empty text is written `""`, and what was read
//! is written back as the same rows. Lines end with LF or CR LF; a field in quotes may hold line ends; a line without anything is skipped, unless there is one column.

mod dialect;
mod infer;
mod source;
mod split;
mod write;

pub use dialect::{CsvOptions, Header};
pub use source::CsvSource;
pub use write::CsvSink;

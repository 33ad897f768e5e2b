//! CSV, TSV and `.tbl`: text files of rows. `docs/csv.md` has the rules by which they are read.
//!
//! A field without quotes that is the null text (by default: empty) is NULL; in quotes it is that text. So an empty text is written `""`, and what was read
//! is written back as the same rows. A field in quotes may hold line ends; a line without anything is skipped, unless there is one column.

mod dialect;
mod header;
mod sniff;
mod source;
mod split;
mod write;

pub(crate) use dialect::Dialect;
pub use dialect::{CsvOptions, Header};
pub use source::CsvSource;
pub(crate) use source::given_types;
pub(crate) use split::Splitter;
pub use write::CsvSink;

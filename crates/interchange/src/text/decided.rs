//! What was decided about files, for those who want to see it.

use super::moment::DateOrder;
use pagefold_types::DataType;
use std::path::PathBuf;

/// What was decided about the files of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decided {
    /// By file.
    pub files: Vec<FileDecided>,
    /// By column, in the order of the table.
    pub columns: Vec<ColumnDecided>,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileDecided {
    /// Its name, or what stands for standard input.
    pub path: PathBuf,
    /// `csv`, `json`, `parquet`, `arrow`.
    pub format: &'static str,
    /// `gzip` or `zstd`, if it is compressed as a whole.
    pub compression: Option<&'static str>,
    /// Of text: between fields.
    pub delimiter: Option<char>,
    /// Of text: around fields; `None` in both: there are none.
    pub quote: Option<char>,
    /// Of text: before a character that is to be taken as it is.
    pub escape: Option<char>,
    /// Of text: `LF`, `CR LF` or `CR`.
    pub line_end: Option<&'static str>,
    /// Of text: is the first line names?
    pub header: Option<bool>,
    /// Of text: why it is, or is not.
    pub header_reason: &'static str,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDecided {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Can it be NULL?
    pub nullable: bool,
    /// The order of its dates, if that is not year, month, day.
    pub order: Option<DateOrder>,
    /// What else is to be known, for instance that values will not be written as they are in the file.
    pub note: Option<&'static str>,
}

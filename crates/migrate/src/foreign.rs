//! What a database of another kind gives.

use pagefold_interchange::{InterchangeError, Source};
use pagefold_types::{DataType, Direction, Value};
use std::path::Path;

/// A database of another kind, as it was when it was opened.
pub trait Foreign: Send + Sync {
    /// What it is called, for messages.
    fn path(&self) -> &Path;

    /// Its kind, as in "SQLite".
    fn kind(&self) -> &'static str;

    /// Bytes of all of it.
    fn bytes(&self) -> u64;

    /// Its tables, by name.
    fn tables(&self) -> &[ForeignTable];

    /// What of it is in no table, and is not brought over: views, triggers and the like, each with a word on why.
    fn left_out(&self) -> &[String];

    /// The rows of one of the tables, in an order that is always the same.
    ///
    /// # Errors
    /// When its values fit no types, or it cannot be read.
    fn source(&self, table: &ForeignTable) -> Result<Box<dyn Source + '_>, InterchangeError>;

    /// Calls `visit` for each row in the order of [`Self::source`], with values that compare with those of a table whose columns have
    /// these types. Stops where `visit` says so.
    ///
    /// # Errors
    /// When it cannot be read, or a value has no such form.
    fn visit_rows(&self, table: &ForeignTable, types: &[DataType], visit: &mut dyn FnMut(&[Value]) -> bool)
    -> Result<(), InterchangeError>;
}

/// A table of it.
#[derive(Clone, Debug)]
pub struct ForeignTable {
    /// Its name there.
    pub name: String,
    /// The name that it is to have here.
    pub here: String,
    /// Its columns.
    pub columns: Vec<ForeignColumn>,
    /// Columns of the primary key, by number.
    pub primary_key: Vec<usize>,
    /// Its indexes, without that of the primary key.
    pub indexes: Vec<ForeignIndex>,
    /// Rows.
    pub rows: u64,
    /// Bytes of the table, where that is known.
    pub bytes: Option<u64>,
    /// Bytes of its indexes, where that is known.
    pub index_bytes: Option<u64>,
    /// What is not brought over of it, each with a word on why.
    pub left_out: Vec<String>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct ForeignColumn {
    /// Its name.
    pub name: String,
    /// Its type, as it was declared.
    pub declared: String,
    /// Can it be NULL?
    pub nullable: bool,
}

/// An index.
#[derive(Clone, Debug)]
pub struct ForeignIndex {
    /// The name that it is to have here.
    pub name: String,
    /// Its columns, by number.
    pub columns: Vec<(usize, Direction)>,
    /// Is each key there once?
    pub unique: bool,
}

impl ForeignTable {
    /// The names of these columns.
    #[must_use]
    pub fn names_of(&self, columns: &[usize]) -> Vec<String> {
        columns.iter().map(|column| self.columns[*column].name.clone()).collect()
    }
}

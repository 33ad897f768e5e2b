//! Files of columns that have names and types: Parquet and Arrow.
//!
//! How they are read and written is not part of this crate: who opens the database gives it [`ColumnFiles`], with its [`Utilities`](crate::Utilities).
//!
//! Invariant: rows go through one at a time; a reader or writer keeps no more than some of them.

use crate::{SqlError, SqlResult};
use pagefold_io::Storage;
use pagefold_types::{DataType, Value};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A format whose columns have names and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnFormat {
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow's IPC format, as a file or a stream.
    Arrow,
}

impl ColumnFormat {
    /// As COPY names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ColumnFormat::Parquet => "parquet",
            ColumnFormat::Arrow => "arrow",
        }
    }

    /// The format of this name.
    pub(crate) fn of_name(name: &str) -> Option<ColumnFormat> {
        [ColumnFormat::Parquet, ColumnFormat::Arrow].into_iter().find(|format| format.name() == name)
    }

    /// The format that a file's name asks for, where COPY does not say it.
    pub(crate) fn of_file(name: &str) -> Option<ColumnFormat> {
        let extension = Path::new(name).extension()?.to_str()?;
        ColumnFormat::of_name(&extension.to_ascii_lowercase())
    }
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileColumn {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
}

/// Who takes the rows of a file.
pub trait RowTaker {
    /// The columns, before the first row.
    ///
    /// # Errors
    /// When they are not those that are wanted: nothing more is read.
    fn columns(&mut self, columns: &[FileColumn]) -> SqlResult<()>;

    /// A row: a value for each column.
    ///
    /// # Errors
    /// Nothing more is read.
    fn row(&mut self, values: Vec<Value>) -> SqlResult<()>;
}

/// Reads and writes files of columns for COPY.
pub trait ColumnFiles: Send + Sync + std::fmt::Debug {
    /// Reads a file.
    ///
    /// # Errors
    /// Those of `rows`; whatever is wrong with the file, with a SQLSTATE.
    fn read(&self, storage: &Arc<dyn Storage>, path: &Path, format: ColumnFormat, rows: &mut dyn RowTaker) -> SqlResult<()>;

    /// Writes the rows that `next` gives, until it gives `None`.
    ///
    /// # Errors
    /// Those of `next`; whatever is wrong with the output, with a SQLSTATE.
    fn write(
        &self,
        output: &mut (dyn Write + Send),
        format: ColumnFormat,
        columns: &[FileColumn],
        next: &mut dyn FnMut() -> SqlResult<Option<Vec<Value>>>,
    ) -> SqlResult<()>;
}

/// Of a build that does not have them.
pub(crate) fn not_here(format: ColumnFormat) -> SqlError {
    let error = SqlError::new("0A000", format!("COPY in format \"{}\" is not part of this build", format.name()));
    error.with_hint("The crate pagefold has it with its feature \"arrow\".")
}

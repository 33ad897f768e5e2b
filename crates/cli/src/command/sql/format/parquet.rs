//! Rows into a Parquet file, which appears when the result is complete.

use super::json::distinct_names;
use super::{OutputColumn, RowWriter};
use crate::failure::{Failure, Result};
use pagefold::Value;
use pagefold::interchange::{RowSink, Sink, TableSchema};
use pagefold::types::{Column, Schema};
use std::io::Write;

/// The columns as a table has them.
pub(in super::super) fn table_schema(columns: &[OutputColumn]) -> Result<TableSchema> {
    let names = distinct_names(columns);
    let columns = names.into_iter().zip(columns).map(|(name, column)| Column::new(name, column.data_type, true));
    let schema = Schema::new(columns.collect()).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(TableSchema::from_schema(schema))
}

/// Until its end, which takes the sink.
pub(in super::super) struct ParquetRows<S>(Option<RowSink<S>>);

impl<S: Sink> ParquetRows<S> {
    /// Rows of a result into what `open` makes for its columns.
    pub(in super::super) fn new(columns: &[OutputColumn], open: impl FnOnce(&TableSchema) -> Result<S>) -> Result<ParquetRows<S>> {
        let schema = table_schema(columns)?;
        Ok(ParquetRows(Some(RowSink::new(open(&schema)?, &schema)?)))
    }
}

impl<S: Sink> RowWriter for ParquetRows<S> {
    fn row(&mut self, row: &[Value], _out: &mut dyn Write) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |rows| Ok(rows.push(row.to_vec())?))
    }

    /// A sink that is dropped before its end leaves no file.
    fn end(&mut self, is_complete: bool, _out: &mut dyn Write) -> Result<()> {
        match self.0.take().filter(|_| is_complete) {
            Some(rows) => Ok(rows.finish()?),
            None => Ok(()),
        }
    }
}

//! Rows into a Parquet file, which appears when the result is complete.

use super::json::distinct_names;
use super::{OutputColumn, RowWriter};
use crate::failure::{Failure, Result};
use pagefold::Value;
use pagefold::interchange::{BatchBuilder, Sink, TableSchema};
use pagefold::types::{Column, RowLayout, Schema};
use std::io::Write;

/// Rows of a batch, at most.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 16 << 20;

/// The columns as a table has them.
pub(in super::super) fn table_schema(columns: &[OutputColumn]) -> Result<TableSchema> {
    let names = distinct_names(columns);
    let columns = names.into_iter().zip(columns).map(|(name, column)| Column::new(name, column.data_type, true));
    let schema = Schema::new(columns.collect()).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(TableSchema::from_schema(schema))
}

pub(in super::super) struct ParquetRows<S> {
    sink: S,
    schema: TableSchema,
    layout: RowLayout,
    waiting: Vec<Vec<Value>>,
    waiting_bytes: usize,
}

impl<S: Sink> ParquetRows<S> {
    /// Rows of a result into what `open` makes for its columns.
    pub(in super::super) fn new(columns: &[OutputColumn], open: impl FnOnce(&TableSchema) -> Result<S>) -> Result<ParquetRows<S>> {
        let schema = table_schema(columns)?;
        let layout = RowLayout::new(schema.schema()).map_err(|error| Failure::Failed(error.to_string()))?;
        let sink = open(&schema)?;
        Ok(ParquetRows { sink, schema, layout, waiting: Vec::new(), waiting_bytes: 0 })
    }

    fn write(&mut self) -> Result<()> {
        let columns: Vec<usize> = (0..self.schema.schema().len()).collect();
        let mut builder = BatchBuilder::new(&self.schema, &self.layout, &columns, BATCH_ROWS)?;
        for row in self.waiting.drain(..) {
            builder.push_row(&row)?;
        }
        self.waiting_bytes = 0;
        Ok(self.sink.write(&builder.finish()?)?)
    }
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 16,
    }
}

impl<S: Sink> RowWriter for ParquetRows<S> {
    fn row(&mut self, row: &[Value], _out: &mut dyn Write) -> Result<()> {
        self.waiting_bytes += row.iter().map(bytes).sum::<usize>();
        self.waiting.push(row.to_vec());
        if self.waiting.len() == BATCH_ROWS || self.waiting_bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// A sink that is dropped before its end leaves no file.
    fn end(&mut self, is_complete: bool, _out: &mut dyn Write) -> Result<()> {
        if is_complete {
            if !self.waiting.is_empty() {
                self.write()?;
            }
            self.sink.finish()?;
        }
        Ok(())
    }
}

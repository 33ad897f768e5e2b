//! Rows one by one into a sink, in batches.

use super::Sink;
use crate::arrow::{BatchBuilder, TableSchema};
use crate::error::InterchangeError;
use pagefold_types::{RowLayout, Value};

/// Rows of a batch, at most.
const BATCH_ROWS: usize = 8192;
/// A batch is written when its values take this much.
const BATCH_BYTES: usize = 16 << 20;

/// Takes rows, and gives them to a sink in batches. Of one that is dropped before [`Self::finish`] the sink has no end.
#[derive(Debug)]
pub struct RowSink<S> {
    sink: S,
    schema: TableSchema,
    layout: RowLayout,
    waiting: Vec<Vec<Value>>,
    waiting_bytes: usize,
}

impl<S: Sink> RowSink<S> {
    /// Rows of these columns into a sink that was made for them.
    ///
    /// # Errors
    /// When there are more columns than a row can have.
    pub fn new(sink: S, schema: &TableSchema) -> Result<RowSink<S>, InterchangeError> {
        let layout = RowLayout::new(schema.schema())?;
        Ok(RowSink { sink, schema: schema.clone(), layout, waiting: Vec::new(), waiting_bytes: 0 })
    }

    /// One more row, with a value for each column.
    ///
    /// # Errors
    /// When a value is not of its column's kind; the sink's errors.
    pub fn push(&mut self, row: Vec<Value>) -> Result<(), InterchangeError> {
        self.waiting_bytes += row.iter().map(value_bytes).sum::<usize>();
        self.waiting.push(row);
        if self.waiting.len() == BATCH_ROWS || self.waiting_bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), InterchangeError> {
        let columns: Vec<usize> = (0..self.schema.schema().len()).collect();
        let mut builder = BatchBuilder::new(&self.schema, &self.layout, &columns, BATCH_ROWS)?;
        for row in self.waiting.drain(..) {
            builder.push_row(&row)?;
        }
        self.waiting_bytes = 0;
        self.sink.write(&builder.finish()?)
    }

    /// Writes what is left, and the end of the sink.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(mut self) -> Result<(), InterchangeError> {
        if !self.waiting.is_empty() {
            self.write()?;
        }
        self.sink.finish()
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 16,
    }
}

//! Batches to Arrow IPC, as a file.

use super::Sink;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use std::io::Write;
use std::sync::Arc;

/// Writes an Arrow file.
pub struct ArrowSink<W: Write> {
    writer: FileWriter<W>,
    table: TableSchema,
}

impl<W: Write> ArrowSink<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The output's.
    pub fn new(out: W, table: &TableSchema) -> Result<ArrowSink<W>, InterchangeError> {
        Ok(ArrowSink { writer: FileWriter::try_new(out, table.arrow())?, table: table.clone() })
    }
}

impl<W: Write + Send> Sink for ArrowSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        // The catalog's fields may differ from the batch's in metadata.
        let batch = RecordBatch::try_new(Arc::clone(self.table.arrow()), batch.columns().to_vec())?;
        Ok(self.writer.write(&batch)?)
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        self.writer.finish()?;
        Ok(self.writer.get_mut().flush()?)
    }
}

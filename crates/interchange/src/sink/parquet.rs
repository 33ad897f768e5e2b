//! Batches to Parquet.

use super::Sink;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::sync::Arc;

/// How to write Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParquetOptions {
    /// zstd level, 1 to 22; `None` for no compression
    pub zstd_level: Option<i32>,
    /// Rows of a row group
    pub row_group_rows: usize,
}

impl Default for ParquetOptions {
    /// zstd at level 3, row groups of 122,880 rows.
    fn default() -> ParquetOptions {
        ParquetOptions { zstd_level: Some(3), row_group_rows: 122_880 }
    }
}

/// A row group is closed at this size in memory, however few rows it has: wide rows stay bounded.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Writes a Parquet file.
pub struct ParquetSink<W: Write + Send> {
    writer: ArrowWriter<W>,
    table: TableSchema,
}

/// The output's own error, where that is the cause.
fn parquet_error(error: ParquetError) -> InterchangeError {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(io) => InterchangeError::Io(*io),
            Err(other) => InterchangeError::Mismatch(format!("Parquet: {other}")),
        },
        other => InterchangeError::Mismatch(format!("Parquet: {other}")),
    }
}

impl<W: Write + Send> ParquetSink<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// A zstd level that does not exist; the output's errors.
    pub fn new(out: W, table: &TableSchema, options: &ParquetOptions) -> Result<ParquetSink<W>, InterchangeError> {
        let compression = match options.zstd_level {
            Some(level) => Compression::ZSTD(ZstdLevel::try_new(level).map_err(parquet_error)?),
            None => Compression::UNCOMPRESSED,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_row_count(Some(options.row_group_rows.max(1)))
            .build();
        let writer = ArrowWriter::try_new(out, Arc::clone(table.arrow()), Some(properties)).map_err(parquet_error)?;
        Ok(ParquetSink { writer, table: table.clone() })
    }
}

impl<W: Write + Send> Sink for ParquetSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        // The catalog's fields may differ from the batch's in metadata, which the writer would refuse.
        let batch = RecordBatch::try_new(Arc::clone(self.table.arrow()), batch.columns().to_vec())?;
        self.writer.write(&batch).map_err(parquet_error)?;
        if self.writer.in_progress_size() >= ROW_GROUP_BYTES {
            self.writer.flush().map_err(parquet_error)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        self.writer.finish().map_err(parquet_error)?;
        Ok(self.writer.inner_mut().flush()?)
    }
}

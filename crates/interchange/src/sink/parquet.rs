//! Batches to Parquet.
//!
//! Parquet has no seconds and no date of 64 bits: other programs would read such columns as integers. So seconds are written as milliseconds, with a note in the field's metadata that gives
//! `TIMESTAMP(0)` and `TIME(0)` back to whoever loads the file here, and dates of 64 bits, which may have a time of day, as timestamps.

use super::Sink;
use crate::arrow::{SQL_TYPE, cast_to};
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use arrow_schema::{DataType as Arrow, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};
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
    /// The columns as the file has them
    schema: SchemaRef,
}

/// The columns as Parquet can say them.
fn file_schema(table: &TableSchema) -> SchemaRef {
    let field = |(field, column): (&Arc<Field>, &pagefold_types::Column)| {
        let to = match field.data_type() {
            Arrow::Timestamp(TimeUnit::Second, zone) => Arrow::Timestamp(TimeUnit::Millisecond, zone.clone()),
            Arrow::Time32(TimeUnit::Second) => Arrow::Time32(TimeUnit::Millisecond),
            Arrow::Date64 => Arrow::Timestamp(TimeUnit::Millisecond, None),
            _ => return Arc::clone(field),
        };
        let mut metadata = field.metadata().clone();
        if *field.data_type() != Arrow::Date64 {
            metadata.insert(SQL_TYPE.to_owned(), column.data_type.to_string());
        }
        Arc::new(field.as_ref().clone().with_data_type(to).with_metadata(metadata))
    };
    let arrow = table.arrow();
    let fields: Vec<_> = arrow.fields().iter().zip(table.schema().columns()).map(field).collect();
    Arc::new(ArrowSchema::new_with_metadata(fields, arrow.metadata().clone()))
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
        let schema = file_schema(table);
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(parquet_error)?;
        Ok(ParquetSink { writer, schema })
    }
}

impl<W: Write + Send> Sink for ParquetSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        // The catalog's fields may differ from the batch's in metadata, which the writer would refuse.
        let columns =
            batch.columns().iter().zip(self.schema.fields()).map(|(array, field)| cast_to(array, field.data_type(), field.name()));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, _>>()?)?;
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

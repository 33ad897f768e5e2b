//! What every sink does, and a file that appears only when it is complete.

use super::{ArrowSink, JsonLinesSink, ParquetOptions, ParquetSink, TableSink};
use crate::csv::{CsvOptions, CsvSink};
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use pagefold_io::{NewFile, Storage};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Takes batches of one schema.
pub trait Sink: Send {
    /// Takes a batch.
    ///
    /// # Errors
    /// What cannot be written in this format, and the output's errors.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError>;

    /// Writes what is left. Nothing is complete before; nothing may be written behind it.
    ///
    /// # Errors
    /// The output's errors.
    fn finish(&mut self) -> Result<(), InterchangeError>;
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        (**self).write(batch)
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        (**self).finish()
    }
}

/// A format to write.
#[derive(Clone, Debug)]
pub enum FileFormat {
    /// Parquet
    Parquet(ParquetOptions),
    /// CSV, TSV, `.tbl`
    Csv(CsvOptions),
    /// Arrow IPC, as a file
    Arrow,
    /// One JSON object a line
    JsonLines,
    /// Aligned columns for people
    Table,
}

impl FileFormat {
    /// The format that a file name asks for: `.parquet`, `.arrow`, `.csv`, `.tsv`, `.tbl`, `.json`, `.jsonl`.
    #[must_use]
    pub fn of(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_string_lossy().to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Some(FileFormat::Parquet(ParquetOptions::default())),
            "arrow" | "feather" | "ipc" => Some(FileFormat::Arrow),
            "csv" | "tsv" | "tbl" | "txt" => Some(FileFormat::Csv(CsvOptions::default())),
            "json" | "jsonl" | "ndjson" => Some(FileFormat::JsonLines),
            _ => None,
        }
    }

    /// A sink on any output; `path` is only looked at for its extension.
    ///
    /// # Errors
    /// Options that contradict each other, a schema the format cannot hold, the output's errors.
    pub fn sink<'w>(
        &self,
        out: impl Write + Send + 'w,
        table: &TableSchema,
        path: Option<&Path>,
    ) -> Result<Box<dyn Sink + 'w>, InterchangeError> {
        Ok(match self {
            FileFormat::Parquet(options) => Box::new(ParquetSink::new(out, table, options)?),
            FileFormat::Csv(options) => Box::new(CsvSink::new(out, table, options, path)?),
            FileFormat::Arrow => Box::new(ArrowSink::new(out, table)?),
            FileFormat::JsonLines => Box::new(JsonLinesSink::new(out, table)),
            FileFormat::Table => Box::new(TableSink::new(out, table)),
        })
    }
}

/// Writes a file that has its name when it is complete: a failure leaves what was there before.
pub struct FileSink {
    file: NewFile,
    /// `None` once finished
    sink: Option<Box<dyn Sink>>,
}

const BUFFER_BYTES: usize = 1 << 20;

impl FileSink {
    /// Begins the file.
    ///
    /// # Errors
    /// As [`FileFormat::sink`] and [`NewFile::create`].
    pub fn create(storage: Arc<dyn Storage>, path: &Path, format: &FileFormat, table: &TableSchema) -> Result<FileSink, InterchangeError> {
        let file = NewFile::create(storage, path)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, file.writer());
        Ok(FileSink { sink: Some(format.sink(out, table, Some(path))?), file })
    }
}

impl Sink for FileSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        match &mut self.sink {
            Some(sink) => sink.write(batch),
            None => Err(InterchangeError::file(self.file.path(), "the file is already complete")),
        }
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        let Some(mut sink) = self.sink.take() else { return Ok(()) };
        sink.finish()?;
        drop(sink);
        Ok(self.file.finish()?)
    }
}

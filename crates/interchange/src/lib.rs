//! Arrow, Parquet, CSV and `.tbl` to typed rows and back.
//!
//! Not in the storage path: the engine knows records, never Arrow. All files are read and written through the I/O seam.

mod arrow;
mod csv;
mod error;
mod sink;
mod source;

pub use arrow::{BatchBuilder, ColumnSlice, ColumnValues, ColumnView, Packer, TableSchema, arrow_schema_from_bytes, arrow_schema_to_bytes};
pub use csv::{CsvOptions, CsvSink, CsvSource, Header};
pub use error::InterchangeError;
pub use sink::{FileFormat, FileSink, JsonLinesSink, ParquetOptions, ParquetSink, Sink, TableSink};
pub use source::{Batches, OpenSource, ParquetSource, Source, open_source};

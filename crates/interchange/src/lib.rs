//! Arrow, Parquet, CSV, `.tbl` and JSON lines to typed rows and back.
//!
//! Not in the storage path: the engine knows records, never Arrow. All files are read and written through the I/O seam.

mod arrow;
mod csv;
mod error;
mod json;
mod sink;
mod source;
mod text;

pub use arrow::{BatchBuilder, ColumnSlice, ColumnValues, ColumnView, Packer, TableSchema, arrow_schema_from_bytes, arrow_schema_to_bytes};
pub use csv::{CsvOptions, CsvSink, CsvSource, Header};
pub use error::InterchangeError;
pub use json::JsonSource;
pub use sink::{ArrowSink, FileFormat, FileSink, JsonLinesSink, ParquetOptions, ParquetSink, RowSink, Sink, TableSink};
pub use source::{
    ArrowSource, Batches, Inputs, OpenSource, ParquetSource, STANDARD_INPUT, Source, is_decoding, of_clusters, open_source, sample_clusters,
};
pub use text::{ColumnDecided, DateOrder, Decided, FileDecided, Rejects};

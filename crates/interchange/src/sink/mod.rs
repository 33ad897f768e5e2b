//! Batches to files and streams.

mod arrow;
mod file;
mod json;
mod parquet;
mod rows;
mod table;

pub use self::arrow::ArrowSink;
pub use self::parquet::{ParquetOptions, ParquetSink};
pub use file::{FileFormat, FileSink, Sink};
pub use json::JsonLinesSink;
pub use rows::RowSink;
pub use table::TableSink;

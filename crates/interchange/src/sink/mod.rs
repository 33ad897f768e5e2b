//! Batches to files and streams.

mod file;
mod json;
mod parquet;
mod table;

pub use file::{FileFormat, FileSink, Sink};
pub use json::JsonLinesSink;
pub use parquet::{ParquetOptions, ParquetSink};
pub use table::TableSink;

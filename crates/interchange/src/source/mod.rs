//! Files as sources of batches.

mod open;
mod parquet;
mod sample;
mod seam;

pub use open::{Batches, OpenSource, Source, open_source};
pub use parquet::ParquetSource;
pub(crate) use sample::{CLUSTER_ROWS, clusters};

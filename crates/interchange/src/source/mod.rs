//! Files as sources of batches.

mod arrow;
mod arrow_lengths;
mod input;
mod open;
mod parquet;
mod sample;
mod seam;

pub use self::arrow::ArrowSource;
pub use self::parquet::ParquetSource;
pub use self::parquet::is_decoding;
pub(crate) use input::Input;
pub use input::STANDARD_INPUT;
pub use open::{Batches, Inputs, OpenSource, Source, open_source};
pub(crate) use sample::{CLUSTER_ROWS, clusters};
pub use sample::{clusters as sample_clusters, of_clusters};

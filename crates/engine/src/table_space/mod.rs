//! Table spaces: rows in slotted pages, addressed by RID.

mod attributes;
mod batch;
mod batch_values;
mod bring_home;
mod bulk_load;
mod chain;
mod columns;
#[cfg(test)]
mod columns_tests;
pub(crate) mod dictionary;
mod empty_pages;
mod filter;
#[cfg(test)]
mod filter_tests;
mod forward_range;
mod large_value;
mod layouts;
mod page_copy;
mod page_filler;
mod page_search;
mod partition;
mod pass_on;
mod range_of;
mod read;
mod replace;
mod rounds;
pub(crate) mod row_gate;
mod row_image;
mod scan;
mod table;
mod thin_pages;
mod undo;
mod undo_pages;
mod update_in_place;
mod visible;
mod visiting;
mod write;
mod writers;

#[cfg(test)]
mod tests;

pub use attributes::{Method, TableAttributes};
pub(crate) use batch::BatchSizes;
pub use batch::{BatchColumn, BatchValues, ColumnBatch};
pub use bulk_load::{BulkLoader, LoadEncoder};
pub use dictionary::{Compressor, LIVE_MAX, SAMPLE_BYTES, SAMPLE_ROWS, SampledRecords, Sampler, Saving};
pub(crate) use filter::Filter;
pub use layouts::{ColumnHistory, Layouts};
pub(crate) use page_copy::{CopiedRow, PageCopy};
pub(crate) use page_filler::{Filled, Filling, PageFiller, RecordList};
pub use pagefold_codec::page::IntMembers;
pub use partition::Partition;
pub use range_of::{RangeOf, range_key_layout};
pub use read::RowBuffer;
pub(crate) use scan::{Copying, DataPages, Gathering, Records, RowSink, buffer_for};
pub use table::Table;
pub(crate) use thin_pages::{Plan, Targets};
pub(crate) use visible::Looks;
pub(crate) use visiting::is_visiting;
pub(crate) use writers::Writers;

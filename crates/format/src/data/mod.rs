//! Data pages: slotted rows. Layout: `docs/file-format.md`, "Data page".

mod column_build;
mod column_pack;
mod column_part;
#[cfg(test)]
mod column_tests;
pub mod forms;
#[cfg(test)]
mod golden_tests;
mod ops;
mod pack;
mod page;
mod place;
#[cfg(test)]
mod range_tests;
mod ranges;
mod slot_reader;
mod stored;

pub use column_build::{ColumnBuilder, OwnPage, PlacedRow, SingleRow};
pub use column_pack::{ColumnPacker, PackedPage, area_encoder, column_rows_max, string_codes};
pub use column_part::{
    COLUMN_HEADER_BYTES, COLUMN_PAGE_VERSION, COLUMN_ROWS_START, ColumnPart, ENTRY_BYTES, Entry, MOVED_SPACE, State, state_bytes,
};
pub use ops::DataOp;
pub use pack::{PageFill, PagePacker};
pub use page::{DATA_HEADER_BYTES, DATA_PAGE_VERSION, DataPage, SLOT_BYTES, StoredKind, StoredRow, largest_row, row_space};
pub use place::ColumnImage;
pub use ranges::{RANGE_BYTES, SlotRange, SlotRanges, put_ranges};
pub use stored::{AWAY_OVERHEAD, Body, OTHER_OVERHEAD, STORED_BYTES_MIN, Stored};

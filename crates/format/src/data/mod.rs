//! Data pages: slotted rows. Layout: `docs/file-format.md`, "Data page".

pub mod forms;
mod ops;
mod pack;
mod page;
mod stored;

pub use ops::DataOp;
pub use pack::PagePacker;
pub use page::{DATA_HEADER_BYTES, DATA_PAGE_VERSION, DataPage, SLOT_BYTES, StoredKind, StoredRow, largest_row, row_space};
pub use stored::{AWAY_OVERHEAD, Body, STORED_BYTES_MIN, Stored};

//! Data pages: slotted rows. Layout: `docs/file-format.md`, "Data page".

mod ops;
mod page;

pub use ops::DataOp;
pub use page::{DATA_HEADER_BYTES, DATA_PAGE_VERSION, DataPage, SLOT_BYTES, StoredKind, StoredRow, largest_row, row_space};

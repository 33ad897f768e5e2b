//! The packed record, and the compact one.

mod batch;
mod compact;
mod conversion;
mod encode;
mod large;
mod layout;
mod read;
mod validate;

pub use batch::{BatchWriter, PackedRow, PackedRows};
pub use compact::{CompactColumns, CompactLayout};
pub use conversion::{ColumnSource, RowConversion, record_value, value_record};
pub use large::{ColumnValue, LARGE_VALUE_BYTES_MAX, LARGE_VALUE_REF_BYTES, LargeValueRef};
pub use layout::{RECORD_BYTES_MAX, RowLayout};
pub use read::ColumnReader;

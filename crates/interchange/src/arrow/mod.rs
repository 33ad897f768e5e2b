//! Arrow arrays and packed records.

mod column;
mod mapping;
mod pack;
mod stored;
mod unpack;

pub use column::ColumnView;
pub(crate) use column::cast_to;
pub(crate) use mapping::SQL_TYPE;
pub use mapping::TableSchema;
pub use pack::Packer;
pub use stored::{arrow_schema_from_bytes, arrow_schema_to_bytes};
pub(crate) use unpack::ColumnBuilder;
pub use unpack::{BatchBuilder, ColumnSlice, ColumnValues};

//! SQL types, values, the packed row, order-preserving index keys, text forms of values,
//! conditions on rows.

mod bytes;
mod data_type;
mod error;
mod interval;
mod key;
mod predicate;
mod rid;
mod row;
mod schema;
pub mod text;
mod value;

pub use data_type::{
    CHAR_LENGTH_MAX, DECIMAL_PRECISION_MAX, DataType, Physical, TimeUnit, VARCHAR_LENGTH_MAX, decimal_limit, decimal_width,
};
pub use error::{KeyError, RecordError, SchemaError, ValueError};
pub use interval::{Interval, IntervalError, IntervalField, parse_interval};
pub use key::{Direction, KeyLayout, key_bytes_max, prefix_end};
pub use predicate::{
    ColumnName, ColumnTest, Comparison, Condition, KeyRange, LikePattern, Operand, Parts, Predicate, PredicateError, Term, column, not,
};
pub use rid::{PARTITION_MAX, RID_BYTES, Rid, SLOT_MAX};
pub use row::{
    BatchWriter, ColumnReader, ColumnSource, ColumnValue, CompactColumns, CompactLayout, LARGE_VALUE_BYTES_MAX, LARGE_VALUE_REF_BYTES,
    LargeValueRef, PackedRow, PackedRows, RECORD_BYTES_MAX, RowConversion, RowLayout, record_value, value_record,
};
pub use schema::{COLUMN_NAME_BYTES_MAX, COLUMNS_MAX, Column, Schema};
pub use value::{Value, ValueRef, excerpt, push_value};

//! Errors of this crate, one type per operation. Each names the column, type or place it is about; the caller adds file, table and row.

use crate::DataType;

/// Why a schema, a type text or a stored schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// No column has this name.
    #[error("unknown column \"{name}\"; there are {known}")]
    UnknownColumn {
        /// The name asked for.
        name: String,
        /// The names there are, shortened.
        known: String,
    },
    /// Two columns have the same name.
    #[error("column name \"{name}\" occurs twice (columns {first} and {second})")]
    DuplicateColumn {
        /// The name.
        name: String,
        /// Position of the first, from 1.
        first: usize,
        /// Position of the second, from 1.
        second: usize,
    },
    /// No columns, or too many.
    #[error("a table has 1 to {max} columns, not {count}")]
    ColumnCount {
        /// How many were given.
        count: usize,
        /// [`crate::COLUMNS_MAX`].
        max: usize,
    },
    /// A column name is empty or too long.
    #[error("column {position} has a name of {bytes} bytes; 1 to {max} are possible")]
    ColumnName {
        /// Position, from 1.
        position: usize,
        /// Bytes of the name.
        bytes: usize,
        /// [`crate::COLUMN_NAME_BYTES_MAX`].
        max: usize,
    },
    /// The fixed-width part of a row is wider than any record.
    #[error("the fixed part of a row takes {bytes} bytes, more than the {max} of the widest record")]
    RowTooWide {
        /// Bytes of NULL bitmap, fixed-width columns and end offsets.
        bytes: usize,
        /// [`crate::RECORD_BYTES_MAX`].
        max: usize,
    },
    /// Not the text of a type.
    #[error("\"{text}\" is not a type: {reason}")]
    TypeText {
        /// The text.
        text: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Stored bytes of a type or schema are damaged.
    #[error("stored schema is damaged: {0}")]
    Bytes(&'static str),
}

/// Why a value cannot become part of a record or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// NULL for a column that is NOT NULL.
    #[error("column \"{column}\" is NOT NULL, but the value is NULL")]
    Null {
        /// The column.
        column: String,
    },
    /// A value of another kind.
    #[error("column \"{column}\" is {data_type}, but the value is {found}")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// Kind of the value.
        found: &'static str,
    },
    /// Outside the type's range, or too long.
    #[error("column \"{column}\": {value} does not fit {data_type}")]
    Range {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// The value, shortened.
        value: String,
    },
    /// Another number of values than of columns.
    #[error("{found} values for {expected} columns")]
    Count {
        /// Columns.
        expected: usize,
        /// Values.
        found: usize,
    },
    /// The record would be wider than any page.
    #[error("row of {bytes} bytes is wider than {max}")]
    TooWide {
        /// Bytes the record would take.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A large-value reference for a column of fixed width.
    #[error("column \"{column}\" is {data_type} and cannot be a large value")]
    NotLarge {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
}

/// Why the bytes of a record are not a record of their layout. Cheap to copy: it is part of every access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Shorter than the fixed part, or longer than any record.
    #[error("record of {bytes} bytes; its layout asks for {least} to {most}")]
    Length {
        /// Bytes of the record.
        bytes: usize,
        /// The fewest possible.
        least: usize,
        /// The most possible.
        most: usize,
    },
    /// End offset before its start or behind the record.
    #[error("end offset of column {column} (from 0) is out of place")]
    EndOffset {
        /// The column, from 0.
        column: usize,
    },
    /// The lengths of a compact record's columns, or the sums of them, are not those of its bytes.
    #[error("lengths of the columns are damaged")]
    Lengths,
    /// The last end offset is not the end of the record.
    #[error("{bytes} bytes behind the last column")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// Text that is not UTF-8.
    #[error("column {column} (from 0) is not UTF-8")]
    Utf8 {
        /// The column, from 0.
        column: usize,
    },
    /// Bytes that no value of the type has.
    #[error("column {column} (from 0) holds bytes that are no value of its type")]
    Value {
        /// The column, from 0.
        column: usize,
    },
    /// A NULL with bytes, or a NULL bit of no column.
    #[error("NULL bitmap is damaged")]
    NullBitmap,
    /// The value lies in large-value pages: the caller has to fetch it.
    #[error("column {column} (from 0) is a large value, which lies outside the record")]
    Large {
        /// The column, from 0.
        column: usize,
    },
    /// The layout has no such column, or it is of another kind than the accessor's.
    #[error("no column {column} (from 0) of that kind in this layout")]
    NoSuchColumn {
        /// The column, from 0.
        column: usize,
    },
}

/// Why a key cannot be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Longer than the index takes.
    #[error(
        "key of {bytes} bytes is longer than the {max} that {index} takes (its longest column is \"{column}\" with {column_bytes} bytes)"
    )]
    TooLong {
        /// The index, or what else the layout was named.
        index: String,
        /// The column that takes most of it.
        column: String,
        /// Bytes of that column in the key.
        column_bytes: usize,
        /// Bytes of the key.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A value does not fit its column.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A value of a key column is so long that it lies in pages of its own.
    #[error("a value of column \"{column}\" is so long that it is kept outside its row; an index takes none of those")]
    Large {
        /// The column.
        column: String,
    },
    /// The record is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Key bytes that no values give.
    #[error("key bytes are damaged at offset {offset}")]
    Bytes {
        /// Offset in the key.
        offset: usize,
    },
}

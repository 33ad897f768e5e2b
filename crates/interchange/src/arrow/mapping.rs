//! Arrow types and SQL types.
//!
//! | Arrow | SQL | natural Arrow type |
//! |---|---|---|
//! | Boolean | BOOLEAN | Boolean |
//! | Int8, Int16, UInt8 | SMALLINT | Int16 |
//! | Int32, UInt16 | INTEGER | Int32 |
//! | Int64, UInt32 | BIGINT | Int64 |
//! | UInt64 | DECIMAL(20,0) | Decimal128(20,0) |
//! | Float16, Float32 | REAL | Float32 |
//! | Float64 | DOUBLE | Float64 |
//! | Decimal32, 64, 128, 256 with at most 38 digits | DECIMAL(p,s) | Decimal128(p,s) |
//! | Date32 | DATE | Date32 |
//! | Date64 (it may hold a time of day) | TIMESTAMP(3) | Timestamp(ms) |
//! | Time32, Time64 | TIME of the same unit | the same |
//! | Timestamp | TIMESTAMP of the same unit, WITH TIME ZONE when it has a zone | the same, zone UTC |
//! | Utf8, LargeUtf8, Utf8View, Null | VARCHAR | Utf8 |
//! | Binary, LargeBinary, BinaryView, FixedSizeBinary | BYTEA | Binary |
//! | FixedSizeBinary(16) as `arrow.uuid` | UUID | FixedSizeBinary(16) |
//! | Utf8, LargeUtf8, Utf8View with the note that they are intervals | INTERVAL | Utf8 |
//! | Dictionary | what its values are | |
//! | Timestamp(ms), Time32(ms) with the note that they are seconds, as our Parquet files have it | TIMESTAMP(0), TIME(0) | the same in seconds |
//!
//! Every other type is refused, naming the column. Invariant: a column of the Arrow type, cast to the natural one and back, is the same.

use crate::InterchangeError;
use arrow_schema::{DataType as Arrow, Field, Schema as ArrowSchema, SchemaRef, TimeUnit as ArrowUnit};
use pagefold_types::{Column, DataType, Schema, TimeUnit};
use std::collections::HashMap;
use std::sync::Arc;

const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_UUID: &str = "arrow.uuid";

/// In the metadata of a field: the SQL type, where a file format has no Arrow type for it.
pub(crate) const SQL_TYPE: &str = "pagefold:type";

fn unit(unit: ArrowUnit) -> TimeUnit {
    match unit {
        ArrowUnit::Second => TimeUnit::Second,
        ArrowUnit::Millisecond => TimeUnit::Milli,
        ArrowUnit::Microsecond => TimeUnit::Micro,
        ArrowUnit::Nanosecond => TimeUnit::Nano,
    }
}

fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Second => ArrowUnit::Second,
        TimeUnit::Milli => ArrowUnit::Millisecond,
        TimeUnit::Micro => ArrowUnit::Microsecond,
        TimeUnit::Nano => ArrowUnit::Nanosecond,
    }
}

/// The SQL type that a note says.
fn noted(field: &Field) -> Option<DataType> {
    field.metadata().get(SQL_TYPE).and_then(|text| text.parse().ok())
}

/// The unit of a time: that of the array, or seconds where a note says that milliseconds are such.
fn noted_unit(field: &Field, of_array: ArrowUnit) -> TimeUnit {
    match noted(field) {
        Some(DataType::Time { unit: TimeUnit::Second } | DataType::Timestamp { unit: TimeUnit::Second, .. })
            if of_array == ArrowUnit::Millisecond =>
        {
            TimeUnit::Second
        }
        _ => unit(of_array),
    }
}

/// The SQL type of an Arrow field.
fn sql_type(field: &Field) -> Result<DataType, InterchangeError> {
    let refuse = |reason| Err(InterchangeError::Unsupported { column: field.name().clone(), arrow: field.data_type().to_string(), reason });
    Ok(match field.data_type() {
        Arrow::Boolean => DataType::Boolean,
        Arrow::Int8 | Arrow::Int16 | Arrow::UInt8 => DataType::SmallInt,
        Arrow::Int32 | Arrow::UInt16 => DataType::Integer,
        Arrow::Int64 | Arrow::UInt32 => DataType::BigInt,
        Arrow::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        Arrow::Float16 | Arrow::Float32 => DataType::Real,
        Arrow::Float64 => DataType::Double,
        Arrow::Decimal32(precision, scale)
        | Arrow::Decimal64(precision, scale)
        | Arrow::Decimal128(precision, scale)
        | Arrow::Decimal256(precision, scale) => {
            let data_type = DataType::Decimal { precision: *precision, scale: *scale };
            if !data_type.is_valid() {
                return refuse("decimal numbers have at most 38 digits, and no more of them behind the point");
            }
            data_type
        }
        Arrow::Date32 => DataType::Date,
        Arrow::Date64 => DataType::Timestamp { unit: TimeUnit::Milli, with_zone: false },
        Arrow::Time32(u) | Arrow::Time64(u) => DataType::Time { unit: noted_unit(field, *u) },
        Arrow::Timestamp(u, zone) => DataType::Timestamp { unit: noted_unit(field, *u), with_zone: zone.is_some() },
        // Arrow has intervals of nanoseconds, in which ours have no room, and Parquet those of milliseconds.
        Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View if noted(field) == Some(DataType::Interval) => DataType::Interval,
        Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View | Arrow::Null => DataType::Varchar(None),
        Arrow::FixedSizeBinary(16) if field.metadata().get(EXTENSION_NAME).is_some_and(|n| n == EXTENSION_UUID) => DataType::Uuid,
        Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView | Arrow::FixedSizeBinary(_) => DataType::Bytea,
        Arrow::Dictionary(_, values) => {
            return sql_type(&Field::new(field.name(), values.as_ref().clone(), true).with_metadata(field.metadata().clone()));
        }
        Arrow::Struct(_)
        | Arrow::List(_)
        | Arrow::LargeList(_)
        | Arrow::ListView(_)
        | Arrow::LargeListView(_)
        | Arrow::FixedSizeList(..)
        | Arrow::Map(..)
        | Arrow::Union(..) => {
            return refuse("it is nested");
        }
        Arrow::Interval(_) | Arrow::Duration(_) => return refuse("intervals have no counterpart here"),
        Arrow::RunEndEncoded(..) => return refuse("run-end encoding has no counterpart here"),
    })
}

/// The Arrow type that records are turned from and into directly.
pub(crate) fn natural_type(data_type: &DataType) -> Arrow {
    match *data_type {
        DataType::Boolean => Arrow::Boolean,
        DataType::SmallInt => Arrow::Int16,
        DataType::Integer => Arrow::Int32,
        DataType::BigInt => Arrow::Int64,
        DataType::Real => Arrow::Float32,
        DataType::Double => Arrow::Float64,
        DataType::Decimal { precision, scale } => Arrow::Decimal128(precision, scale),
        DataType::Date => Arrow::Date32,
        DataType::Time { unit: unit @ (TimeUnit::Second | TimeUnit::Milli) } => Arrow::Time32(arrow_unit(unit)),
        DataType::Time { unit } => Arrow::Time64(arrow_unit(unit)),
        DataType::Timestamp { unit, with_zone } => Arrow::Timestamp(arrow_unit(unit), with_zone.then(|| "UTC".into())),
        DataType::Char(_) | DataType::Varchar(_) | DataType::Interval => Arrow::Utf8,
        DataType::Bytea => Arrow::Binary,
        DataType::Uuid => Arrow::FixedSizeBinary(16),
    }
}

/// A table's columns twice: as the source has them in Arrow, and in SQL. The catalog keeps both, so that export gives the same types back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    arrow: SchemaRef,
    schema: Schema,
    /// Places of columns that no source has: they are NULL.
    absent: Vec<usize>,
}

/// What [`TableSchema::match_source`] says of a column that no source has.
pub(crate) const ABSENT: usize = usize::MAX;

impl TableSchema {
    /// The SQL columns of an Arrow schema.
    ///
    /// # Errors
    /// [`InterchangeError::Unsupported`], naming the column; [`InterchangeError::Schema`] for bad or repeated names.
    pub fn from_arrow(arrow: SchemaRef) -> Result<TableSchema, InterchangeError> {
        let columns =
            arrow.fields().iter().map(|f| Ok(Column::new(f.name(), sql_type(f)?, f.is_nullable() || *f.data_type() == Arrow::Null)));
        let schema = Schema::new(columns.collect::<Result<_, InterchangeError>>()?)?;
        Ok(TableSchema { arrow, schema, absent: Vec::new() })
    }

    /// SQL columns, with the natural Arrow type of each.
    #[must_use]
    pub fn from_schema(schema: Schema) -> TableSchema {
        let field = |c: &Column| {
            let field = Field::new(&c.name, natural_type(&c.data_type), c.nullable);
            let note = match c.data_type {
                DataType::Uuid => (EXTENSION_NAME.to_owned(), EXTENSION_UUID.to_owned()),
                DataType::Interval => (SQL_TYPE.to_owned(), c.data_type.to_string()),
                _ => return field,
            };
            field.with_metadata(HashMap::from([note]))
        };
        let arrow = Arc::new(ArrowSchema::new(schema.columns().iter().map(field).collect::<Vec<_>>()));
        TableSchema { arrow, schema, absent: Vec::new() }
    }

    /// The same of a table that has columns at these places which are dropped: no source has them.
    #[must_use]
    pub fn with_dropped(mut self, columns: Vec<usize>) -> TableSchema {
        self.absent = columns;
        self
    }

    /// The columns that sources have.
    ///
    /// # Errors
    /// [`InterchangeError::Schema`] when there are none.
    pub fn given(&self) -> Result<Schema, InterchangeError> {
        let columns = self.schema.columns().iter().enumerate().filter(|(at, _)| !self.absent.contains(at));
        Ok(Schema::new(columns.map(|(_, column)| column.clone()).collect())?)
    }

    /// Both, as a catalog has kept them.
    ///
    /// # Errors
    /// [`InterchangeError::Mismatch`] when they do not describe the same columns.
    pub fn from_parts(arrow: SchemaRef, schema: Schema) -> Result<TableSchema, InterchangeError> {
        let fits = |(field, column): (&Arc<Field>, &Column)| {
            field.name() == &column.name
                && sql_type(field).is_ok_and(|t| t == column.data_type || (t.is_text() && column.data_type.is_text()))
        };
        if arrow.fields().len() != schema.len() || !arrow.fields().iter().zip(schema.columns()).all(fits) {
            return Err(InterchangeError::Mismatch("the stored Arrow schema is not that of the table".to_owned()));
        }
        Ok(TableSchema { arrow, schema, absent: Vec::new() })
    }

    /// As the source has it.
    #[must_use]
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// In SQL.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Only these columns (positions), in this order.
    ///
    /// # Errors
    /// [`InterchangeError::Schema`] when a column occurs twice or there are none.
    ///
    /// # Panics
    /// When a position is not in the schema.
    pub fn project(&self, columns: &[usize]) -> Result<TableSchema, InterchangeError> {
        let fields: Vec<Arc<Field>> = columns.iter().map(|i| Arc::clone(&self.arrow.fields()[*i])).collect();
        let schema = Schema::new(columns.iter().map(|i| self.schema.columns()[*i].clone()).collect())?;
        let arrow = Arc::new(ArrowSchema::new_with_metadata(fields, self.arrow.metadata().clone()));
        Ok(TableSchema { arrow, schema, absent: Vec::new() })
    }

    /// These columns with the types that those of the same names have in a table that is replaced: kept where they have all values of the source's type, widened where they have not. What can
    /// be NULL there can be so still.
    ///
    /// # Errors
    /// [`InterchangeError::Schema`] for columns that cannot be.
    pub fn with_types_of(&self, base: &TableSchema) -> Result<TableSchema, InterchangeError> {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (field, column) in self.arrow.fields().iter().zip(self.schema.columns()) {
            let Some(before) = base.schema.index_of(&column.name).ok() else {
                fields.push(Arc::clone(field));
                columns.push(column.clone());
                continue;
            };
            let kept = &base.schema.columns()[before];
            let nullable = column.nullable || kept.nullable;
            let both_text = column.data_type.is_text() && kept.data_type.is_text() && column.data_type == DataType::Varchar(None);
            let data_type = if both_text { Some(kept.data_type) } else { kept.data_type.widened_with(&column.data_type) };
            let data_type = data_type.unwrap_or(column.data_type);
            columns.push(Column::new(&kept.name, data_type, nullable));
            fields.push(if data_type == kept.data_type {
                Arc::new(base.arrow.fields()[before].as_ref().clone().with_nullable(nullable))
            } else if data_type == column.data_type {
                Arc::new(field.as_ref().clone().with_name(&kept.name).with_nullable(nullable))
            } else {
                let schema = Schema::new(vec![Column::new(&kept.name, data_type, nullable)])?;
                Arc::clone(&TableSchema::from_schema(schema).arrow.fields()[0])
            });
        }
        let arrow = Arc::new(ArrowSchema::new_with_metadata(fields, self.arrow.metadata().clone()));
        Ok(TableSchema { arrow, schema: Schema::new(columns)?, absent: Vec::new() })
    }

    /// For each column of this table, the position of the source's column that fills it. By name (in any order); when the source's columns have names of
    /// no meaning (`by_position`), by position.
    ///
    /// # Errors
    /// [`InterchangeError::Mismatch`], naming the columns: missing, too many, or of a type whose values do not all fit. Text goes into CHAR and VARCHAR of any length.
    pub fn match_source(&self, source: &TableSchema, by_position: bool) -> Result<Vec<usize>, InterchangeError> {
        let mismatch = |message: String| Err(InterchangeError::Mismatch(message));
        let given = self.schema.len() - self.absent.len();
        if source.schema.len() != given {
            return mismatch(format!("the source has {} columns, the table has {given}", source.schema.len()));
        }
        let mut positions = Vec::with_capacity(self.schema.len());
        let mut before = 0;
        for (i, column) in self.schema.columns().iter().enumerate() {
            if self.absent.contains(&i) {
                before += 1;
                positions.push(ABSENT);
                continue;
            }
            let position = if by_position {
                i - before
            } else {
                source
                    .schema
                    .index_of(&column.name)
                    .map_err(|e| InterchangeError::Mismatch(format!("the source lacks a column of the table: {e}")))?
            };
            let found = source.schema.columns()[position].data_type;
            let fits = column.data_type.takes_all_of(&found) || (found.is_text() && column.data_type.is_text());
            if !fits {
                return mismatch(format!("column \"{}\" is {} in the table, but {found} in the source", column.name, column.data_type));
            }
            positions.push(position);
        }
        Ok(positions)
    }
}

//! Values as Arrow arrays, and back.
//!
//! | Kind | Array |
//! |---|---|
//! | Boolean | Boolean |
//! | Int | Int64 |
//! | Decimal | Decimal128(38, 0): the unscaled number |
//! | Real, Double | Float32, Float64 |
//! | Text, Bytes | Utf8, Binary |
//! | Uuid | FixedSizeBinary(16) |

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Decimal128Builder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int64Builder,
    StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DataFusionError, Result};
use pagefold_sql::analytics::Kind;
use pagefold_types::{Value, ValueRef};
use std::sync::Arc;

/// The type of arrays of a kind.
pub(crate) fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Boolean => DataType::Boolean,
        Kind::Int => DataType::Int64,
        Kind::Decimal => DataType::Decimal128(38, 0),
        Kind::Real => DataType::Float32,
        Kind::Double => DataType::Float64,
        Kind::Text => DataType::Utf8,
        Kind::Bytes => DataType::Binary,
        Kind::Uuid => DataType::FixedSizeBinary(16),
    }
}

/// Columns of these kinds, each of which may be NULL. They have numbers for names.
pub(crate) fn schema(kinds: &[Kind]) -> SchemaRef {
    let field = |(at, kind): (usize, &Kind)| Field::new(format!("c{at}"), data_type(*kind), true);
    Arc::new(Schema::new(kinds.iter().enumerate().map(field).collect::<Vec<Field>>()))
}

fn damaged() -> DataFusionError {
    DataFusionError::Internal("a value of another kind than its column".into())
}

/// An array that grows by values.
pub(crate) enum Builder {
    Boolean(BooleanBuilder),
    Int(Int64Builder),
    Decimal(Decimal128Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
}

impl Builder {
    pub(crate) fn new(kind: Kind, rows: usize) -> Builder {
        match kind {
            Kind::Boolean => Builder::Boolean(BooleanBuilder::with_capacity(rows)),
            Kind::Int => Builder::Int(Int64Builder::with_capacity(rows)),
            Kind::Decimal => Builder::Decimal(Decimal128Builder::with_capacity(rows).with_data_type(data_type(Kind::Decimal))),
            Kind::Real => Builder::Real(Float32Builder::with_capacity(rows)),
            Kind::Double => Builder::Double(Float64Builder::with_capacity(rows)),
            Kind::Text => Builder::Text(StringBuilder::with_capacity(rows, 0)),
            Kind::Bytes => Builder::Bytes(BinaryBuilder::with_capacity(rows, 0)),
            Kind::Uuid => Builder::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
        }
    }

    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (self, value) {
            (Builder::Boolean(to), ValueRef::Boolean(value)) => to.append_value(value),
            (Builder::Int(to), ValueRef::Int(value)) => to.append_value(value),
            (Builder::Decimal(to), ValueRef::Decimal(value)) => to.append_value(value),
            (Builder::Real(to), ValueRef::Real(value)) => to.append_value(value),
            (Builder::Double(to), ValueRef::Double(value)) => to.append_value(value),
            (Builder::Text(to), ValueRef::Text(value)) => to.append_value(value),
            (Builder::Bytes(to), ValueRef::Bytes(value)) => to.append_value(value),
            (Builder::Uuid(to), ValueRef::Uuid(value)) => to.append_value(value)?,
            (to, ValueRef::Null) => to.push_null(),
            _ => return Err(damaged()),
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Builder::Boolean(to) => to.append_null(),
            Builder::Int(to) => to.append_null(),
            Builder::Decimal(to) => to.append_null(),
            Builder::Real(to) => to.append_null(),
            Builder::Double(to) => to.append_null(),
            Builder::Text(to) => to.append_null(),
            Builder::Bytes(to) => to.append_null(),
            Builder::Uuid(to) => to.append_null(),
        }
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            Builder::Boolean(to) => to,
            Builder::Int(to) => to,
            Builder::Decimal(to) => to,
            Builder::Real(to) => to,
            Builder::Double(to) => to,
            Builder::Text(to) => to,
            Builder::Bytes(to) => to,
            Builder::Uuid(to) => to,
        };
        builder.finish()
    }
}

/// So many times the same value.
pub(crate) fn repeated(value: &Value, kind: Kind, rows: usize) -> Result<ArrayRef> {
    let mut builder = Builder::new(kind, rows);
    for _ in 0..rows {
        builder.push(value.as_ref())?;
    }
    Ok(builder.finish())
}

/// Values of an array, by row.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    array: &'a dyn Array,
    kind: Kind,
}

impl<'a> View<'a> {
    pub(crate) fn new(array: &'a dyn Array, kind: Kind) -> Result<View<'a>> {
        if *array.data_type() == data_type(kind) { Ok(View { array, kind }) } else { Err(damaged()) }
    }

    pub(crate) fn value(&self, row: usize) -> ValueRef<'a> {
        if self.array.is_null(row) {
            return ValueRef::Null;
        }
        match self.kind {
            Kind::Boolean => ValueRef::Boolean(self.array.as_boolean().value(row)),
            Kind::Int => ValueRef::Int(self.array.as_primitive::<Int64Type>().value(row)),
            Kind::Decimal => ValueRef::Decimal(self.array.as_primitive::<Decimal128Type>().value(row)),
            Kind::Real => ValueRef::Real(self.array.as_primitive::<Float32Type>().value(row)),
            Kind::Double => ValueRef::Double(self.array.as_primitive::<Float64Type>().value(row)),
            Kind::Text => ValueRef::Text(self.array.as_string::<i32>().value(row)),
            Kind::Bytes => ValueRef::Bytes(self.array.as_binary::<i32>().value(row)),
            Kind::Uuid => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(self.array.as_fixed_size_binary().value(row));
                ValueRef::Uuid(bytes)
            }
        }
    }
}

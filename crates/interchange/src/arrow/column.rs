//! One column of a batch, its kind resolved once.

use super::mapping::natural_type;
use crate::InterchangeError;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    StringViewType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType as Arrow, TimeUnit as ArrowUnit};
use pagefold_types::{Column, DataType, Interval, TimeUnit, Value, ValueRef, text};
use std::sync::Arc;

/// One column of a batch as SQL values.
#[derive(Debug, Clone)]
pub struct ColumnView {
    pub(super) data: ColumnData,
}

/// The array, by how it is read. Integers of every width that need no more than widening are read as they are.
#[derive(Debug, Clone)]
pub(super) enum ColumnData {
    Boolean(BooleanArray),
    Int8(PrimitiveArray<Int8Type>),
    Int16(PrimitiveArray<Int16Type>),
    Int32(PrimitiveArray<Int32Type>),
    Int64(PrimitiveArray<Int64Type>),
    UInt8(PrimitiveArray<UInt8Type>),
    UInt16(PrimitiveArray<UInt16Type>),
    UInt32(PrimitiveArray<UInt32Type>),
    Float32(Float32Array),
    Float64(Float64Array),
    Decimal(PrimitiveArray<Decimal128Type>),
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
    Uuid(FixedSizeBinaryArray),
    Interval(Intervals),
}

/// Intervals as texts, and what was read from them: nothing of NULL.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    texts: StringArray,
    all: Arc<[Interval]>,
}

impl Intervals {
    pub(super) fn null_count(&self) -> usize {
        self.texts.null_count()
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.texts.is_null(row)
    }

    pub(super) fn value(&self, row: usize) -> Interval {
        self.all[row]
    }
}

/// Reads texts as intervals.
fn intervals(texts: StringArray, column: &str) -> Result<ColumnData, InterchangeError> {
    let read = |text: Option<&str>| match text.map(|text| text::parse(text, &DataType::Interval)) {
        None => Ok(Interval::ZERO),
        Some(Ok(Value::Interval(interval))) => Ok(interval),
        Some(Ok(_)) => Err(InterchangeError::Column { column: column.to_owned(), reason: "not an interval".to_owned() }),
        Some(Err(error)) => Err(InterchangeError::Column { column: column.to_owned(), reason: error.to_string() }),
    };
    let all = texts.iter().map(read).collect::<Result<Vec<Interval>, InterchangeError>>()?;
    Ok(ColumnData::Interval(Intervals { texts, all: all.into() }))
}

fn int32<T: arrow_array::ArrowPrimitiveType<Native = i32>>(array: &dyn Array) -> ColumnData {
    ColumnData::Int32(array.as_primitive::<T>().reinterpret_cast())
}

fn int64<T: arrow_array::ArrowPrimitiveType<Native = i64>>(array: &dyn Array) -> ColumnData {
    ColumnData::Int64(array.as_primitive::<T>().reinterpret_cast())
}

/// An array in the natural type of the SQL type; a null array of any type for the Arrow type Null.
fn natural_array(array: &ArrayRef, data_type: &DataType, column: &str) -> Result<ArrayRef, InterchangeError> {
    cast_to(array, &natural_type(data_type), column)
}

/// An exact cast: what would lose something is an error.
pub(crate) fn cast_to(array: &ArrayRef, to: &Arrow, column: &str) -> Result<ArrayRef, InterchangeError> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    if *array.data_type() == Arrow::Null || *to == Arrow::Null {
        if *to == Arrow::Null && array.null_count() < array.len() {
            return Err(InterchangeError::Column {
                column: column.to_owned(),
                reason: "the source's type has no values but NULL".to_owned(),
            });
        }
        return Ok(new_null_array(to, array.len()));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |array: &ArrayRef, to: &Arrow| {
        cast_with_options(array, to, &options).map_err(|e| InterchangeError::Column { column: column.to_owned(), reason: e.to_string() })
    };
    let done = cast(array, to)?;
    // Units of time are divided without a word about the rest.
    if matches!(
        (array.data_type(), to),
        (Arrow::Timestamp(..) | Arrow::Time32(_) | Arrow::Time64(_), Arrow::Timestamp(..) | Arrow::Time32(_))
    ) && cast(&done, array.data_type())?.as_ref() != array.as_ref()
    {
        return Err(InterchangeError::Column {
            column: column.to_owned(),
            reason: format!("a value has parts of a second that {to} has not"),
        });
    }
    Ok(done)
}

impl ColumnView {
    /// Views the columns of a batch, in order.
    ///
    /// # Errors
    /// As [`ColumnView::new`].
    pub fn of_batch(batch: &RecordBatch, columns: &[Column]) -> Result<Vec<ColumnView>, InterchangeError> {
        batch.columns().iter().zip(columns).map(|(array, c)| ColumnView::new(array, &c.data_type, &c.name)).collect()
    }

    /// Views an array whose Arrow type stands for this SQL type.
    ///
    /// # Errors
    /// [`InterchangeError::Column`] when it does not, or a value has no counterpart.
    pub fn new(array: &ArrayRef, data_type: &DataType, column: &str) -> Result<ColumnView, InterchangeError> {
        if let Some(data) = ColumnView::direct(array, data_type) {
            return Ok(ColumnView { data });
        }
        let array = natural_array(array, data_type, column)?;
        if let (DataType::Interval, Some(texts)) = (data_type, array.as_string_opt::<i32>()) {
            return Ok(ColumnView { data: intervals(texts.clone(), column)? });
        }
        let data = ColumnView::direct(&array, data_type).ok_or_else(|| InterchangeError::Column {
            column: column.to_owned(),
            reason: format!("{} does not stand for {data_type}", array.data_type()),
        })?;
        Ok(ColumnView { data })
    }

    /// Without a cast, where the array is read as it is.
    fn direct(array: &ArrayRef, data_type: &DataType) -> Option<ColumnData> {
        let array = array.as_ref();
        Some(match (array.data_type(), data_type) {
            (Arrow::Boolean, DataType::Boolean) => ColumnData::Boolean(array.as_boolean().clone()),
            (Arrow::Int8, DataType::SmallInt) => ColumnData::Int8(array.as_primitive().clone()),
            (Arrow::UInt8, DataType::SmallInt) => ColumnData::UInt8(array.as_primitive().clone()),
            (Arrow::Int16, DataType::SmallInt) => ColumnData::Int16(array.as_primitive().clone()),
            (Arrow::UInt16, DataType::Integer) => ColumnData::UInt16(array.as_primitive().clone()),
            (Arrow::Int32, DataType::Integer) => ColumnData::Int32(array.as_primitive().clone()),
            (Arrow::UInt32, DataType::BigInt) => ColumnData::UInt32(array.as_primitive().clone()),
            (Arrow::Int64, DataType::BigInt) => ColumnData::Int64(array.as_primitive().clone()),
            (Arrow::Date32, DataType::Date) => int32::<Date32Type>(array),
            (Arrow::Time32(ArrowUnit::Second), DataType::Time { unit: TimeUnit::Second }) => int32::<Time32SecondType>(array),
            (Arrow::Time32(ArrowUnit::Millisecond), DataType::Time { unit: TimeUnit::Milli }) => int32::<Time32MillisecondType>(array),
            (Arrow::Time64(ArrowUnit::Microsecond), DataType::Time { unit: TimeUnit::Micro }) => int64::<Time64MicrosecondType>(array),
            (Arrow::Time64(ArrowUnit::Nanosecond), DataType::Time { unit: TimeUnit::Nano }) => int64::<Time64NanosecondType>(array),
            (Arrow::Timestamp(ArrowUnit::Second, _), DataType::Timestamp { unit: TimeUnit::Second, .. }) => {
                int64::<TimestampSecondType>(array)
            }
            (Arrow::Timestamp(ArrowUnit::Millisecond, _), DataType::Timestamp { unit: TimeUnit::Milli, .. }) => {
                int64::<TimestampMillisecondType>(array)
            }
            (Arrow::Timestamp(ArrowUnit::Microsecond, _), DataType::Timestamp { unit: TimeUnit::Micro, .. }) => {
                int64::<TimestampMicrosecondType>(array)
            }
            (Arrow::Timestamp(ArrowUnit::Nanosecond, _), DataType::Timestamp { unit: TimeUnit::Nano, .. }) => {
                int64::<TimestampNanosecondType>(array)
            }
            (Arrow::Float32, DataType::Real) => ColumnData::Float32(array.as_primitive::<Float32Type>().clone()),
            (Arrow::Float64, DataType::Double) => ColumnData::Float64(array.as_primitive::<Float64Type>().clone()),
            (Arrow::Decimal128(_, from), DataType::Decimal { scale, .. }) if from == scale => {
                ColumnData::Decimal(array.as_primitive().clone())
            }
            (Arrow::Utf8, DataType::Char(_) | DataType::Varchar(_)) => ColumnData::Utf8(array.as_bytes::<Utf8Type>().clone()),
            (Arrow::LargeUtf8, DataType::Char(_) | DataType::Varchar(_)) => ColumnData::LargeUtf8(array.as_string::<i64>().clone()),
            (Arrow::Utf8View, DataType::Char(_) | DataType::Varchar(_)) => {
                ColumnData::Utf8View(array.as_byte_view::<StringViewType>().clone())
            }
            (Arrow::Binary, DataType::Bytea) => ColumnData::Binary(array.as_bytes::<BinaryType>().clone()),
            (Arrow::LargeBinary, DataType::Bytea) => ColumnData::LargeBinary(array.as_binary::<i64>().clone()),
            (Arrow::BinaryView, DataType::Bytea) => ColumnData::BinaryView(array.as_byte_view::<BinaryViewType>().clone()),
            (Arrow::FixedSizeBinary(_), DataType::Bytea) => ColumnData::Fixed(array.as_fixed_size_binary().clone()),
            (Arrow::FixedSizeBinary(16), DataType::Uuid) => ColumnData::Uuid(array.as_fixed_size_binary().clone()),
            _ => return None,
        })
    }

    fn array(&self) -> &dyn Array {
        match &self.data {
            ColumnData::Boolean(a) => a,
            ColumnData::Int8(a) => a,
            ColumnData::Int16(a) => a,
            ColumnData::Int32(a) => a,
            ColumnData::Int64(a) => a,
            ColumnData::UInt8(a) => a,
            ColumnData::UInt16(a) => a,
            ColumnData::UInt32(a) => a,
            ColumnData::Float32(a) => a,
            ColumnData::Float64(a) => a,
            ColumnData::Decimal(a) => a,
            ColumnData::Utf8(a) => a,
            ColumnData::LargeUtf8(a) => a,
            ColumnData::Utf8View(a) => a,
            ColumnData::Binary(a) => a,
            ColumnData::LargeBinary(a) => a,
            ColumnData::BinaryView(a) => a,
            ColumnData::Fixed(a) | ColumnData::Uuid(a) => a,
            ColumnData::Interval(a) => &a.texts,
        }
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.array().len()
    }

    /// No rows?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn value(&self, row: usize) -> ValueRef<'_> {
        if self.array().is_null(row) {
            return ValueRef::Null;
        }
        match &self.data {
            ColumnData::Boolean(a) => ValueRef::Boolean(a.value(row)),
            ColumnData::Int8(a) => ValueRef::Int(i64::from(a.value(row))),
            ColumnData::Int16(a) => ValueRef::Int(i64::from(a.value(row))),
            ColumnData::Int32(a) => ValueRef::Int(i64::from(a.value(row))),
            ColumnData::Int64(a) => ValueRef::Int(a.value(row)),
            ColumnData::UInt8(a) => ValueRef::Int(i64::from(a.value(row))),
            ColumnData::UInt16(a) => ValueRef::Int(i64::from(a.value(row))),
            ColumnData::UInt32(a) => ValueRef::Int(i64::from(a.value(row))),
            ColumnData::Float32(a) => ValueRef::Real(a.value(row)),
            ColumnData::Float64(a) => ValueRef::Double(a.value(row)),
            ColumnData::Decimal(a) => ValueRef::Decimal(a.value(row)),
            ColumnData::Utf8(a) => ValueRef::Text(a.value(row)),
            ColumnData::LargeUtf8(a) => ValueRef::Text(a.value(row)),
            ColumnData::Utf8View(a) => ValueRef::Text(a.value(row)),
            ColumnData::Binary(a) => ValueRef::Bytes(a.value(row)),
            ColumnData::LargeBinary(a) => ValueRef::Bytes(a.value(row)),
            ColumnData::BinaryView(a) => ValueRef::Bytes(a.value(row)),
            ColumnData::Fixed(a) => ValueRef::Bytes(a.value(row)),
            // The array is one of 16 bytes a value.
            ColumnData::Uuid(a) => ValueRef::Uuid(a.value(row).try_into().unwrap_or_default()),
            ColumnData::Interval(a) => ValueRef::Interval(a.value(row)),
        }
    }
}

//! Arithmetic on whole columns.
//!
//! Invariant: no result wraps. What is out of range is told by the operation on the single values, as the row executor does it; what stands where a value is NULL is never looked at.

use crate::arrays::{Builder, View, data_type};
use crate::compute::{Running, Values};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::NullBuffer;
use datafusion_common::Result;
use pagefold_sql::SqlError;
use pagefold_sql::analytics::{Arithmetic, Direct, Kind};
use pagefold_types::{DECIMAL_PRECISION_MAX, Value, ValueRef};
use std::sync::Arc;

/// What every decimal number is below.
const LIMIT: u128 = 10_u128.pow(DECIMAL_PRECISION_MAX as u32);

/// The results for all rows.
pub(crate) fn apply(arithmetic: &Arithmetic, left: &Values, right: &Values, rows: usize, running: &Running) -> Result<ArrayRef> {
    let one_null = |values: &Values| matches!(values, Values::Same(one) if one.is_null(0));
    if one_null(left) || one_null(right) {
        return crate::arrays::repeated(&Value::Null, arithmetic.kind(), rows);
    }
    let exact = |error: &dyn Fn() -> pagefold_sql::SqlResult<Value>| match error() {
        Err(error) => running.failure.keep(error),
        Ok(_) => running.failure.keep(SqlError::new("XX000", "a result that was out of range is in it")),
    };
    let fits = |number: i128| (number.unsigned_abs() < LIMIT).then_some(number);
    let ints_failed = |a: i64, b: i64| exact(&|| arithmetic.apply(ValueRef::Int(a), ValueRef::Int(b)));
    let in_bits =
        |bits: u32, number: Option<i64>| number.filter(|number| bits == 64 || *number >> (bits - 1) == 0 || *number >> (bits - 1) == -1);
    let decimals_failed = |a: i128, b: i128| exact(&|| arithmetic.apply(ValueRef::Decimal(a), ValueRef::Decimal(b)));
    match arithmetic.direct() {
        Some(Direct::AddInts(bits)) => each::<Int64Type>(left, right, rows, |a, b| in_bits(bits, a.checked_add(b)), ints_failed),
        Some(Direct::SubtractInts(bits)) => each::<Int64Type>(left, right, rows, |a, b| in_bits(bits, a.checked_sub(b)), ints_failed),
        Some(Direct::MultiplyInts(bits)) => each::<Int64Type>(left, right, rows, |a, b| in_bits(bits, a.checked_mul(b)), ints_failed),
        Some(Direct::AddDecimals(by_left, by_right)) => {
            let operation = |a: i128, b: i128| times(a, by_left)?.checked_add(times(b, by_right)?).and_then(fits);
            each::<Decimal128Type>(left, right, rows, operation, decimals_failed)
        }
        Some(Direct::SubtractDecimals(by_left, by_right)) => {
            let operation = |a: i128, b: i128| times(a, by_left)?.checked_sub(times(b, by_right)?).and_then(fits);
            each::<Decimal128Type>(left, right, rows, operation, decimals_failed)
        }
        Some(Direct::MultiplyDecimals) => each::<Decimal128Type>(left, right, rows, product, decimals_failed),
        None => one_by_one(arithmetic, left, right, rows, running),
    }
}

/// The product, of at most 38 digits. That of two numbers of 64 bits has no more.
#[inline]
fn product(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(i128::from(a) * i128::from(b)),
        _ => a.checked_mul(b).filter(|product| product.unsigned_abs() < LIMIT),
    }
}

/// The product; of numbers of 64 bits, as nearly all are, without a look for an overflow.
#[inline]
fn times(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(i128::from(a) * i128::from(b)),
        _ => a.checked_mul(b),
    }
}

fn nulls_of(values: &Values) -> Option<&NullBuffer> {
    if let Values::Array(array) = values { array.nulls() } else { None }
}

fn each<T: ArrowPrimitiveType>(
    left: &Values,
    right: &Values,
    rows: usize,
    operation: impl Fn(T::Native, T::Native) -> Option<T::Native>,
    failed: impl Fn(T::Native, T::Native) -> datafusion_common::DataFusionError,
) -> Result<ArrayRef> {
    let nulls = NullBuffer::union(nulls_of(left), nulls_of(right)).filter(|nulls| nulls.null_count() > 0);
    let is_there = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let mut made: Vec<T::Native> = Vec::with_capacity(rows);
    // First all of them: which one failed is looked for where one did.
    let mut has_failed = false;
    let mut one = |a: T::Native, b: T::Native| {
        operation(a, b).unwrap_or_else(|| {
            has_failed = true;
            T::Native::default()
        })
    };
    match (left, right) {
        (Values::Array(a), Values::Array(b)) => {
            let (a, b) = (a.as_primitive::<T>().values(), b.as_primitive::<T>().values());
            made.extend(a.iter().zip(b.iter()).map(|(a, b)| one(*a, *b)));
        }
        (Values::Array(a), Values::Same(b)) => {
            let (a, b) = (a.as_primitive::<T>().values(), b.as_primitive::<T>().value(0));
            made.extend(a.iter().map(|a| one(*a, b)));
        }
        (Values::Same(a), Values::Array(b)) => {
            let (a, b) = (a.as_primitive::<T>().value(0), b.as_primitive::<T>().values());
            made.extend(b.iter().map(|b| one(a, *b)));
        }
        (Values::Same(a), Values::Same(b)) => {
            let (a, b) = (a.as_primitive::<T>().value(0), b.as_primitive::<T>().value(0));
            made.resize(rows, one(a, b));
        }
    }
    if has_failed {
        let at = |values: &Values, row: usize| match values {
            Values::Array(array) => array.as_primitive::<T>().value(row),
            Values::Same(array) => array.as_primitive::<T>().value(0),
        };
        for row in (0..rows).filter(|row| is_there(*row)) {
            let (a, b) = (at(left, row), at(right, row));
            if operation(a, b).is_none() {
                return Err(failed(a, b));
            }
        }
    }
    let to = if T::DATA_TYPE == arrow_schema::DataType::Int64 { data_type(Kind::Int) } else { data_type(Kind::Decimal) };
    Ok(Arc::new(PrimitiveArray::<T>::new(made.into(), nulls).with_data_type(to)))
}

/// Value by value.
fn one_by_one(arithmetic: &Arithmetic, left: &Values, right: &Values, rows: usize, running: &Running) -> Result<ArrayRef> {
    let kind_of = |values: &Values| {
        let data_type = values.with_datum(|datum| datum.get().0.data_type().clone());
        [Kind::Int, Kind::Decimal, Kind::Real, Kind::Double].into_iter().find(|kind| crate::arrays::data_type(*kind) == data_type)
    };
    let (Some(left_kind), Some(right_kind)) = (kind_of(left), kind_of(right)) else {
        return Err(running.failure.keep(SqlError::new("XX000", "arithmetic on what is no number")));
    };
    let mut builder = Builder::new(arithmetic.kind(), rows);
    let array = |values: &Values| match values {
        Values::Array(array) | Values::Same(array) => Arc::clone(array),
    };
    let (a, b) = (array(left), array(right));
    let (a, b) = (View::new(&a, left_kind)?, View::new(&b, right_kind)?);
    let at = |values: &Values, row: usize| if let Values::Same(_) = values { 0 } else { row };
    for row in 0..rows {
        let (a, b) = (a.value(at(left, row)), b.value(at(right, row)));
        if a.is_null() || b.is_null() {
            builder.push(ValueRef::Null)?;
        } else {
            builder.push(running.failure.of(arithmetic.apply(a, b))?.as_ref())?;
        }
    }
    Ok(builder.finish())
}

//! A value of one type as a value of another, as an explicit cast makes it.

use super::datum::Datum;
use super::{calendar, decimal, interval, read, types};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Interval, TimeUnit, Value, ValueRef};

fn float_to_integer(value: f64, to: &DataType) -> SqlResult<i64> {
    let rounded = value.round_ties_even();
    // 2^63 itself is no i64; every double below it is.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded);
    if !fits {
        return Err(SqlError::out_of_range(types::name(to)));
    }
    read::fit_integer(rounded as i128, to)
}

/// A double as a REAL that is neither more nor less than it by its range.
pub(super) fn to_real(value: f64) -> SqlResult<f32> {
    let made = value as f32;
    if made.is_infinite() && !value.is_infinite() {
        return Err(SqlError::new("22003", "value out of range: overflow"));
    }
    if made == 0.0 && value != 0.0 {
        return Err(SqlError::new("22003", "value out of range: underflow"));
    }
    Ok(made)
}

fn from_number(value: ValueRef<'_>, from: &DataType, to: &DataType) -> SqlResult<Option<Value>> {
    let scale = if let DataType::Decimal { scale, .. } = from { *scale } else { 0 };
    // What integers and decimals are, and what the others are.
    let (whole, double) = match value {
        ValueRef::Int(value) => (Some(i128::from(value)), 0.0),
        ValueRef::Decimal(value) => (Some(value), 0.0),
        ValueRef::Real(value) => (None, f64::from(value)),
        ValueRef::Double(value) => (None, value),
        _ => return Ok(None),
    };
    Ok(Some(match (to, whole) {
        (DataType::SmallInt | DataType::Integer | DataType::BigInt, Some(whole)) => Value::Int(read::decimal_to_integer(whole, scale, to)?),
        (DataType::SmallInt | DataType::Integer | DataType::BigInt, None) => Value::Int(float_to_integer(double, to)?),
        (DataType::Decimal { precision, scale: to }, Some(whole)) => {
            let made = decimal::rescale(whole, scale, *to).map_err(|_| decimal::overflow(*precision, *to))?;
            Value::Decimal(decimal::fit(made, *precision, *to)?)
        }
        (DataType::Decimal { precision, scale: to }, None) => {
            let significant = if matches!(value, ValueRef::Real(_)) { 6 } else { 15 };
            Value::Decimal(decimal::from_double(double, significant, *precision, *to)?)
        }
        (DataType::Real, Some(whole)) if scale == 0 => Value::Real(whole as f32),
        (DataType::Real, Some(whole)) => Value::Real(to_real(decimal::to_double(whole, scale))?),
        (DataType::Real, None) => Value::Real(to_real(double)?),
        (DataType::Double, Some(whole)) => Value::Double(decimal::to_double(whole, scale)),
        (DataType::Double, None) => Value::Double(double),
        (DataType::Boolean, Some(whole)) => Value::Boolean(whole != 0),
        _ => return Ok(None),
    }))
}

fn from_time(value: i64, from: &DataType, to: &DataType) -> Option<i64> {
    match (from, to) {
        (DataType::Date, DataType::Timestamp { unit, .. }) => value.checked_mul(unit.per_day()),
        (DataType::Timestamp { unit, .. }, DataType::Date) => Some(value.div_euclid(unit.per_day())),
        (DataType::Timestamp { unit: from, .. }, DataType::Timestamp { unit: to, .. })
        | (DataType::Time { unit: from }, DataType::Time { unit: to }) => calendar::rescale(value, *from, *to),
        (DataType::Timestamp { unit: from, .. }, DataType::Time { unit: to }) => {
            calendar::rescale(value.rem_euclid(from.per_day()), *from, *to)
        }
        _ => None,
    }
}

fn unit_of(time: &DataType) -> TimeUnit {
    if let DataType::Time { unit } = time { *unit } else { TimeUnit::Micro }
}

/// The value as one of `to`; NULL stays NULL.
pub(super) fn cast<'a>(datum: Datum<'a>, from: &DataType, to: &DataType) -> SqlResult<Datum<'a>> {
    if datum.is_null() || types::same_values(from, to) {
        return Ok(datum);
    }
    if from.is_text() && to.is_text() {
        return Ok(text_to_text(datum, from, to));
    }
    let value = datum.as_ref();
    let made = match value {
        ValueRef::Text(text) => {
            let text = if matches!(from, DataType::Char(_)) { text.trim_end_matches(' ') } else { text };
            read::read(text, to)?
        }
        _ if to.is_text() => Value::Text(read::fit_text(read::write(value, from), to)),
        ValueRef::Boolean(truth) if matches!(to, DataType::Integer) => Value::Int(truth.into()),
        ValueRef::Int(time) if matches!((from, to), (DataType::Time { .. }, DataType::Interval)) => {
            let micros = calendar::rescale(time, unit_of(from), TimeUnit::Micro).ok_or_else(interval::out_of_range)?;
            Value::Interval(Interval { micros, ..Interval::ZERO })
        }
        ValueRef::Interval(of) if matches!(to, DataType::Time { .. }) => {
            let time = calendar::rescale(of.micros.rem_euclid(interval::DAY), TimeUnit::Micro, unit_of(to));
            Value::Int(time.ok_or_else(|| calendar::out_of_range(to))?)
        }
        ValueRef::Int(value) if !types::is_integer(from) => {
            let made = from_time(value, from, to).filter(|made| to.int_range().is_some_and(|(least, most)| (least..=most).contains(made)));
            Value::Int(made.ok_or_else(|| calendar::out_of_range(to))?)
        }
        _ => from_number(value, from, to)?.ok_or_else(|| no_cast(from, to))?,
    };
    Ok(Datum::Own(made))
}

pub(super) fn no_cast(from: &DataType, to: &DataType) -> SqlError {
    SqlError::new("42846", format!("cannot cast type {} to {}", types::name(from), types::name(to)))
}

fn text_to_text<'a>(datum: Datum<'a>, from: &DataType, to: &DataType) -> Datum<'a> {
    let datum = if matches!(from, DataType::Char(_)) { datum.without_padding() } else { datum };
    match *to {
        DataType::Varchar(Some(n)) => match datum.text().char_indices().nth(n as usize) {
            Some((end, _)) => datum.cut(0..end),
            None => datum,
        },
        DataType::Char(_) => match datum.into_value() {
            Value::Text(text) => Datum::from_text(read::fit_text(text, to)),
            other => Datum::Own(other),
        },
        _ => datum,
    }
}

/// A value as PostgreSQL's output functions write it. A cast to text writes booleans otherwise.
pub(crate) fn written(value: ValueRef<'_>, data_type: &DataType) -> String {
    match value {
        ValueRef::Boolean(truth) => if truth { "t" } else { "f" }.to_owned(),
        _ => read::write(value, data_type),
    }
}

/// A value as a column of this type has it, cut and padded as it takes it.
pub(crate) fn for_column(value: &Value, to: &DataType) -> SqlResult<Value> {
    Ok(fit_column(value.into(), to)?.into_value())
}

/// A text that a column takes: only blanks are cut off.
pub(super) fn fit_column<'a>(datum: Datum<'a>, to: &DataType) -> SqlResult<Datum<'a>> {
    if datum.is_null() {
        return Ok(datum);
    }
    let (most, name) = match *to {
        DataType::Char(n) => (n, "character"),
        DataType::Varchar(Some(n)) => (n, "character varying"),
        _ => return Ok(datum),
    };
    let over = datum.text().char_indices().nth(most as usize);
    if over.is_some_and(|(end, _)| datum.text().get(end..).unwrap_or_default().bytes().any(|b| b != b' ')) {
        return Err(SqlError::new("22001", format!("value too long for type {name}({most})")));
    }
    let end = over.map(|(end, _)| end);
    let datum = if let Some(end) = end { datum.cut(0..end) } else { datum };
    Ok(text_to_text(datum, &DataType::Varchar(None), to))
}

//! Arithmetic, of numbers, times and intervals, and `||`.

use super::compare::no_operator;
use super::convert::as_decimal;
use super::{cast, coerce, settle};
use crate::expression::arithmetic::{Operands, Operation};
use crate::expression::types::{self, TEXT};
use crate::expression::{Expr, ParamTypes, Typed, decimal, function, read};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, TimeUnit, Value};

fn made(operation: Operation, on: Operands, left: Typed, right: Typed, data_type: DataType) -> Typed {
    let expr = Expr::Arithmetic { operation, on, left: Box::new(left.expr), right: Box::new(right.expr) };
    Typed::of(expr.folded(), data_type)
}

/// What has no type, beside this one.
fn beside(of: Typed, other: &DataType, operation: Operation, params: &ParamTypes) -> SqlResult<Typed> {
    if matches!((other, of.data_type), (DataType::Decimal { .. }, None)) {
        params.choose_scale(&of.expr);
    }
    let to = match (other, operation, of.literal()) {
        (DataType::Decimal { .. }, _, Some(Value::Text(text))) => read::number_type(text).unwrap_or(*other),
        // A parameter may have other digits than what it meets.
        (DataType::Decimal { scale, .. }, _, _) => decimal_for_parameter(*scale),
        (DataType::Date, Operation::Add, _) => DataType::Integer,
        // A moment and a moment have no sum.
        (DataType::Timestamp { .. } | DataType::Time { .. }, Operation::Add, _) => DataType::Interval,
        (DataType::Interval, Operation::Multiply | Operation::Divide, _) => DataType::Double,
        (_, Operation::ShiftLeft | Operation::ShiftRight, _) => DataType::Integer,
        _ => *other,
    };
    coerce(of, &to, params)
}

fn decimal_for_parameter(scale: i8) -> DataType {
    DataType::Decimal { precision: 38, scale: scale.max(decimal::QUOTIENT_SCALE.cast_signed()) }
}

/// An operator of numbers or dates. 42883 names the types that it does not take.
pub(crate) fn arithmetic(operation: Operation, left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let (left, right) = (left.known(params), right.known(params));
    let (left, right) = match (left.data_type, right.data_type) {
        (None, None) => {
            let message = format!("operator is not unique: unknown {} unknown", operation.symbol());
            return Err(SqlError::new("42725", message)
                .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts."));
        }
        (Some(known), None) => (left, beside(right, &known, operation, params)?),
        (None, Some(known)) => (beside(left, &known, operation, params)?, right),
        _ => (left, right),
    };
    let (Some(a), Some(b)) = (left.data_type, right.data_type) else {
        return Err(no_operator(left.data_type.as_ref(), operation.symbol(), right.data_type.as_ref()));
    };
    if types::is_number(&a) && types::is_number(&b) {
        return of_numbers(operation, left, right, (a, b), params);
    }
    let time_unit = |data_type: &DataType| if let DataType::Time { unit } = data_type { Some(*unit) } else { None };
    match (operation, a, b) {
        (Operation::Add | Operation::Subtract, DataType::Date, DataType::SmallInt | DataType::Integer) => {
            Ok(made(operation, Operands::DateAndDays, left, right, DataType::Date))
        }
        (Operation::Add, DataType::SmallInt | DataType::Integer, DataType::Date) => {
            Ok(made(operation, Operands::DateAndDays, right, left, DataType::Date))
        }
        (Operation::Subtract, DataType::Date, DataType::Date) => Ok(made(operation, Operands::Dates, left, right, DataType::Integer)),
        (Operation::Add, DataType::Date, b) if let Some(unit) = time_unit(&b) => {
            Ok(made(operation, Operands::DateAndTime(unit), left, right, DataType::Timestamp { unit, with_zone: false }))
        }
        (Operation::Add, a, DataType::Date) if let Some(unit) = time_unit(&a) => {
            Ok(made(operation, Operands::DateAndTime(unit), right, left, DataType::Timestamp { unit, with_zone: false }))
        }
        _ => of_intervals(operation, left, right, params).unwrap_or_else(|| Err(no_operator(Some(&a), operation.symbol(), Some(&b)))),
    }
}

fn of_numbers(operation: Operation, left: Typed, right: Typed, (a, b): (DataType, DataType), params: &ParamTypes) -> SqlResult<Typed> {
    let refused = || Err(no_operator(Some(&a), operation.symbol(), Some(&b)));
    let integers = types::is_integer(&a) && types::is_integer(&b);
    let common = types::common(&a, &b);
    match operation {
        Operation::ShiftLeft | Operation::ShiftRight if integers && !matches!(b, DataType::BigInt) => {
            return Ok(made(operation, Operands::Integers(a), left, right, a));
        }
        Operation::BitAnd | Operation::BitOr | Operation::BitXor if integers => {}
        Operation::BitAnd | Operation::BitOr | Operation::BitXor | Operation::ShiftLeft | Operation::ShiftRight => return refused(),
        Operation::Power => return of_doubles(operation, left, right, params),
        _ => {}
    }
    match common {
        Some(common) if integers => {
            let (left, right) = (cast(left, common, params)?, cast(right, common, params)?);
            Ok(made(operation, Operands::Integers(common), left, right, common))
        }
        Some(DataType::Decimal { .. }) => of_decimals(operation, as_decimal(left, params)?, as_decimal(right, params)?),
        Some(_) if operation == Operation::Remainder => refused(),
        Some(DataType::Real) if matches!((a, b), (DataType::Real, DataType::Real)) => {
            Ok(made(operation, Operands::Reals, left, right, DataType::Real))
        }
        Some(_) => of_doubles(operation, left, right, params),
        None => refused(),
    }
}

fn of_doubles(operation: Operation, left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let (left, right) = (cast(left, DataType::Double, params)?, cast(right, DataType::Double, params)?);
    Ok(made(operation, Operands::Doubles, left, right, DataType::Double))
}

fn of_decimals(operation: Operation, left: Typed, right: Typed) -> SqlResult<Typed> {
    let (Some(a), Some(b)) = (left.data_type, right.data_type) else { return Err(decimal::too_large()) };
    let data_type = match operation {
        Operation::Multiply => decimal::product_type(&a, &b),
        Operation::Divide => decimal::quotient_type(&a, &b),
        Operation::Remainder => decimal::remainder_type(&a, &b),
        _ => decimal::sum_type(&a, &b),
    };
    let scale = |data_type: &DataType| types::as_decimal(data_type).map_or(0, |(_, scale)| scale);
    let on = Operands::Decimals { left: scale(&a), right: scale(&b), scale: scale(&data_type) };
    Ok(made(operation, on, left, right, data_type))
}

/// `-x`
pub(crate) fn negate(of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let of = if of.data_type.is_some() { of } else { coerce(of, &DataType::Double, params)? };
    match of.data_type {
        Some(data_type) if types::is_number(&data_type) || data_type == DataType::Interval => {
            Ok(Typed::of(Expr::Negate { of: Box::new(of.expr), data_type }.folded(), data_type))
        }
        other => Err(SqlError::new("42883", format!("operator does not exist: - {}", types::name_of(other.as_ref())))
            .with_hint("No operator matches the given name and argument type. You might need to add an explicit type cast.")),
    }
}

/// A date or time and an interval. DATE gives TIMESTAMP, as in PostgreSQL.
fn with_interval(operation: Operation, of: Typed, by: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    // Whole seconds need no finer unit than there is.
    let divides = |unit: TimeUnit| match by.literal() {
        Some(Value::Interval(by)) => by.micros % (1_000_000 / unit.per_second()) == 0,
        _ => false,
    };
    let unit_for = |unit: TimeUnit| if unit.digits() >= 6 || divides(unit) { unit } else { TimeUnit::Micro };
    let to = match of.data_type {
        Some(DataType::Timestamp { unit, with_zone }) => DataType::Timestamp { unit: unit_for(unit), with_zone },
        Some(DataType::Time { unit }) => DataType::Time { unit: unit_for(unit) },
        _ => DataType::Timestamp { unit: TimeUnit::Micro, with_zone: false },
    };
    Ok(made(operation, Operands::MomentAndInterval(to), cast(of, to, params)?, by, to))
}

/// The time between two moments; a DATE is the beginning of its day.
fn between(left: Typed, right: Typed, (a, b): (DataType, DataType), params: &ParamTypes) -> SqlResult<Typed> {
    let Some(common) = types::common(&a, &b) else { return Err(no_operator(Some(&a), "-", Some(&b))) };
    let on = match common {
        DataType::Time { unit } => Operands::Times(unit),
        DataType::Timestamp { unit, .. } => Operands::Timestamps(unit),
        _ => return Err(no_operator(Some(&a), "-", Some(&b))),
    };
    let (left, right) = (cast(left, common, params)?, cast(right, common, params)?);
    Ok(made(Operation::Subtract, on, left, right, DataType::Interval))
}

/// What an operator with an INTERVAL, or one that gives one, does; `None` where it is none of these.
fn of_intervals(operation: Operation, left: Typed, right: Typed, params: &ParamTypes) -> Option<SqlResult<Typed>> {
    use DataType::{Date, Interval, Time, Timestamp};
    let (a, b) = (left.data_type?, right.data_type?);
    let is_number = |data_type: &DataType| types::is_number(data_type);
    let by_number = |of: Typed, number: Typed| {
        let number = cast(number, DataType::Double, params)?;
        Ok(made(operation, Operands::IntervalAndNumber, of, number, Interval))
    };
    Some(match (operation, a, b) {
        (Operation::Add | Operation::Subtract, Interval, Interval) => Ok(made(operation, Operands::Intervals, left, right, Interval)),
        (Operation::Add | Operation::Subtract, Date | Time { .. } | Timestamp { .. }, Interval) => {
            with_interval(operation, left, right, params)
        }
        (Operation::Add, Interval, Date | Time { .. } | Timestamp { .. }) => with_interval(operation, right, left, params),
        // A time is an interval, too.
        (Operation::Subtract, Interval, Time { .. }) => {
            cast(right, Interval, params).map(|right| made(operation, Operands::Intervals, left, right, Interval))
        }
        (Operation::Add | Operation::Subtract, Timestamp { .. }, Time { .. }) => {
            cast(right, Interval, params).and_then(|right| with_interval(operation, left, right, params))
        }
        (Operation::Add, Time { .. }, Timestamp { .. }) => {
            cast(left, Interval, params).and_then(|left| with_interval(operation, right, left, params))
        }
        (Operation::Subtract, Date, Time { .. }) => {
            cast(right, Interval, params).and_then(|right| with_interval(operation, left, right, params))
        }
        (Operation::Subtract, Timestamp { .. } | Date, Timestamp { .. })
        | (Operation::Subtract, Timestamp { .. }, Date)
        | (Operation::Subtract, Time { .. }, Time { .. }) => between(left, right, (a, b), params),
        (Operation::Multiply | Operation::Divide, Interval, b) if is_number(&b) => by_number(left, right),
        (Operation::Multiply, a, Interval) if is_number(&a) => by_number(right, left),
        _ => return None,
    })
}

/// `||`: texts, or bytes. One of both may be of another type, of which the text is taken.
pub(crate) fn concat(left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let (left, right) = (left.known(params), right.known(params));
    if matches!((left.data_type, right.data_type), (Some(DataType::Bytea), Some(DataType::Bytea) | None) | (None, Some(DataType::Bytea))) {
        let (left, right) = (coerce(left, &DataType::Bytea, params)?, coerce(right, &DataType::Bytea, params)?);
        return Ok(function::concat(left.expr, right.expr, DataType::Bytea));
    }
    let is_text = |typed: &Typed| typed.data_type.is_none_or(|data_type| data_type.is_text());
    if !is_text(&left) && !is_text(&right) {
        return Err(no_operator(left.data_type.as_ref(), "||", right.data_type.as_ref()));
    }
    let text = |typed: Typed| cast(settle(typed, params)?, TEXT, params);
    Ok(function::concat(text(left)?.expr, text(right)?.expr, TEXT))
}

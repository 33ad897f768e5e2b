//! Casts.

use super::moments::moment;
use crate::expression::interval::{self, Fields};
use crate::expression::types::{self, Context, TEXT};
use crate::expression::{Expr, ParamTypes, Typed, cast as values, decimal, function, read};
use crate::{SqlError, SqlResult};
use pagefold_types::{DECIMAL_PRECISION_MAX, DataType, Value};

/// An expression of a known type, as it is said to be cast.
fn converted(expr: Expr, from: DataType, to: DataType) -> Typed {
    if types::same_values(&from, &to) {
        return Typed::of(expr, to);
    }
    Typed::of(Expr::Cast { of: Box::new(expr), from, to }.folded(), to)
}

/// Gives what has no type this one. A literal is read as such a value, and what it cannot be is said at once.
fn given(of: Typed, to: DataType, params: &ParamTypes) -> SqlResult<Typed> {
    match of.expr {
        Expr::Literal(Value::Text(text)) => match moment(&text, &to, params)? {
            Some(moment) => Ok(moment),
            None => Ok(Typed::of(Expr::Literal(read::read(&text, &to)?), to)),
        },
        Expr::Param(number) => {
            // A text may be longer than what it is compared with.
            let said = if matches!(to, DataType::Varchar(_)) { TEXT } else { to };
            params.set(number, said);
            Ok(converted(Expr::Param(number), said, to))
        }
        expr => Ok(Typed::of(expr, to)),
    }
}

/// An explicit cast.
pub(crate) fn cast(of: Typed, to: DataType, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    match of.data_type {
        None => given(of, to, params),
        Some(from) if types::castable(&from, &to, Context::Explicit) => Ok(converted(of.expr, from, to)),
        Some(from) => Err(values::no_cast(&from, &to)),
    }
}

/// A cast to NUMERIC without precision: what has a number of digits keeps them, other numbers have 16 behind the point.
pub(crate) fn cast_to_number(of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let digits = match (&of.expr, of.data_type) {
        (Expr::Literal(Value::Text(text)), _) => read::number_type(text),
        (_, Some(data_type)) if types::as_decimal(&data_type).is_some() => return as_decimal(of, params),
        _ => None,
    };
    if of.data_type.is_none() {
        params.choose_scale(&of.expr);
    }
    let any = DataType::Decimal { precision: DECIMAL_PRECISION_MAX, scale: decimal::QUOTIENT_SCALE.cast_signed() };
    cast(of, digits.unwrap_or(any), params)
}

/// A cast to INTERVAL with units, or digits of a second.
pub(crate) fn cast_to_interval(of: Typed, fields: Fields, digits: Option<u8>, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    if let (Expr::Literal(Value::Text(text)), true) = (&of.expr, of.data_type.is_none_or(|data_type| data_type.is_text())) {
        // The units say what a number without one is.
        let read = interval::limited(interval::read(text, fields)?, fields, digits)?;
        return Ok(Typed::of(Expr::Literal(Value::Interval(read)), DataType::Interval));
    }
    let of = cast(of, DataType::Interval, params)?;
    Ok(if fields.is_none() && digits.is_none() { of } else { function::limited(of.expr, fields, digits) })
}

/// The value of a column: what does not fit it is an error, blanks at the end of a text apart.
pub(crate) fn assign(of: Typed, to: &DataType, column: &str, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let Some(from) = of.data_type else {
        let bounded = matches!(to, DataType::Char(_) | DataType::Varchar(Some(_)));
        let of = given(of, if bounded { TEXT } else { *to }, params)?;
        return if bounded { function::fit_column(of.expr, *to) } else { Ok(of) };
    };
    if !types::castable(&from, to, Context::Assignment) {
        let message = format!("column \"{column}\" is of type {} but expression is of type {}", types::name(to), types::name(&from));
        return Err(SqlError::types(message).with_hint("You will need to rewrite or cast the expression."));
    }
    let fits = match (&from, to) {
        (from, to) if from == to => true,
        (DataType::Varchar(Some(from)), DataType::Varchar(Some(to))) => from <= to,
        (_, to) => !matches!(to, DataType::Char(_) | DataType::Varchar(Some(_))),
    };
    if fits {
        return Ok(converted(of.expr, from, *to));
    }
    // The blanks at the end of a CHAR are none of its value; those of other texts may be cut off.
    function::fit_column(converted(of.expr, from, TEXT).expr, *to)
}

/// What EXECUTE gives a parameter of this type. A number keeps its digits: where the type has not so many, or nothing says how many it has, the parameter gets another one.
pub(crate) fn argument(of: Typed, to: &mut DataType, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let of = if of.data_type.is_none() { like_other(of, to, params)? } else { of };
    let Some(from) = of.data_type else { return Ok(of) };
    if !types::castable(&from, to, Context::Assignment) {
        let message = format!("parameter of type {} cannot be given {}", types::name(to), types::name(&from));
        return Err(SqlError::types(message).with_hint("You will need to rewrite or cast the expression."));
    }
    if let (DataType::Decimal { precision, scale }, Some(_)) = (*to, types::as_decimal(&from)) {
        let number = as_decimal(of, params)?;
        let Some(DataType::Decimal { precision: digits, scale: behind }) = number.data_type else { return Err(decimal::too_large()) };
        let says_nothing = precision == DECIMAL_PRECISION_MAX;
        if says_nothing || behind > scale || i32::from(digits) - i32::from(behind) > i32::from(precision) - i32::from(scale) {
            *to = DataType::Decimal { precision: digits, scale: behind };
        }
        return cast(number, *to, params);
    }
    // Only a column says how many characters there may be.
    if let (DataType::Char(_), DataType::Char(_)) = (from, *to) {
        *to = from;
    }
    let to = if matches!(to, DataType::Varchar(_)) { TEXT } else { *to };
    Ok(converted(of.expr, from, to))
}

/// What may become this type without being asked to; 42804 if it may not.
pub(crate) fn coerce(of: Typed, to: &DataType, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    match of.data_type {
        None => given(of, *to, params),
        Some(from) if types::castable(&from, to, Context::Implicit) => Ok(converted(of.expr, from, *to)),
        Some(from) => Err(SqlError::types(format!("{} where {} is needed", types::name(&from), types::name(to)))),
    }
}

/// With a type: what has none becomes text.
pub(crate) fn settle(of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    if of.data_type.is_some() { Ok(of) } else { given(of, TEXT, params) }
}

/// What has no type gets the type that makes it comparable with `other`: numbers and texts keep all their digits and characters.
pub(super) fn like_other(of: Typed, other: &DataType, params: &ParamTypes) -> SqlResult<Typed> {
    let Expr::Literal(Value::Text(text)) = &of.expr else {
        return given(of, if matches!(other, DataType::Varchar(_)) { TEXT } else { *other }, params);
    };
    let to = match other {
        DataType::Decimal { .. } => read::number_type(text).unwrap_or(*other),
        DataType::Varchar(_) => TEXT,
        DataType::Char(n) => {
            let needed = u32::try_from(text.trim_end_matches(' ').chars().count()).unwrap_or(u32::MAX).max(*n);
            let char = DataType::Char(needed);
            if char.is_valid() { char } else { TEXT }
        }
        DataType::Time { .. } => DataType::Time { unit: pagefold_types::TimeUnit::Nano },
        DataType::Timestamp { .. } if moment(text, other, params)?.is_some() => *other,
        DataType::Timestamp { with_zone, unit } => return timestamp_like(text, *unit, *with_zone),
        same => *same,
    };
    given(of, to, params)
}

/// The type that a literal in quotes gets beside values of another one.
pub(crate) fn type_beside(text: &str, other: &DataType, params: &ParamTypes) -> SqlResult<DataType> {
    let typed = like_other(Typed::unknown_text(text.to_owned()), other, params)?;
    Ok(typed.data_type.unwrap_or(*other))
}

/// With more digits than the unit only if the text has them.
fn timestamp_like(text: &str, unit: pagefold_types::TimeUnit, with_zone: bool) -> SqlResult<Typed> {
    let fine = DataType::Timestamp { unit: pagefold_types::TimeUnit::Micro, with_zone };
    let coarse = DataType::Timestamp { unit, with_zone };
    if unit.digits() < 6
        && let Value::Int(micros) = read::read(text, &fine)?
        && micros % (1_000_000 / unit.per_second()) != 0
    {
        return Ok(Typed::of(Expr::Literal(Value::Int(micros)), fine));
    }
    Ok(Typed::of(Expr::Literal(read::read(text, &coarse)?), coarse))
}

/// The literal as one of another type, if that loses nothing.
pub(super) fn exactly(of: &Typed, to: &DataType) -> Option<Typed> {
    let (Some(value), Some(from)) = (of.literal(), of.data_type) else { return None };
    let comparable = (types::is_number(&from) && types::is_number(to))
        || matches!(
            (&from, to),
            (DataType::Timestamp { .. } | DataType::Date, DataType::Timestamp { .. } | DataType::Date)
                | (DataType::Time { .. }, DataType::Time { .. })
        );
    // What is compared as floating-point numbers is rounded to such first: a column, too.
    let is_float = |data_type: &DataType| matches!(data_type, DataType::Real | DataType::Double);
    if !comparable || (is_float(&from) && !is_float(to)) {
        return None;
    }
    let common = types::comparable(&from, to)?;
    let there = values::cast(value.into(), &from, to).ok()?.into_value();
    let back = values::cast((&there).into(), to, &common).ok()?.into_value();
    let direct = values::cast(value.into(), &from, &common).ok()?.into_value();
    (back == direct).then(|| Typed::of(Expr::Literal(there), *to))
}

/// An integer or DECIMAL as a DECIMAL of the fewest digits.
pub(super) fn as_decimal(of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let narrow = match of.literal() {
        Some(Value::Int(value)) => read::number_type(&value.to_string()),
        _ => None,
    };
    let to = narrow.or_else(|| {
        let (precision, scale) = types::as_decimal(of.data_type.as_ref()?)?;
        Some(DataType::Decimal { precision, scale: scale.cast_signed() })
    });
    match to {
        Some(to) => cast(of, to, params),
        None => Err(decimal::too_large()),
    }
}

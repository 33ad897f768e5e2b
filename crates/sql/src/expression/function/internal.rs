//! Functions without a name: what operators are made of that are no expressions of their own.

use super::{Apply, Function, decimal_of, double, hidden, immutable, int, take};
use crate::SqlResult;
use crate::expression::datum::Datum;
use crate::expression::{Env, Expr, Typed, cast, decimal, regression};
use pagefold_types::{DataType, Value, ValueRef};
use std::cmp::Ordering;

/// The texts that one value may have together, so that no expression takes all memory.
pub(super) const TEXT_BYTES_MAX: usize = 256 << 20;

pub(super) fn too_long() -> crate::SqlError {
    crate::SqlError::new("54000", "requested length too large")
}

/// A text that a column of this type takes; more than blanks too many are an error.
pub(in crate::expression) fn fit_column(of: Expr, to: DataType) -> SqlResult<Typed> {
    if let Expr::Literal(value) = &of {
        // What can be said now is: no row would be taken.
        let fitted = cast::fit_column(value.into(), &to)?.into_value();
        return Ok(Typed::of(Expr::Literal(fitted), to));
    }
    Ok(immutable("assignment", Apply::Strict(fit_value), vec![of], to))
}

fn fit_value<'a>(function: &Function, arguments: &mut [Datum<'a>]) -> SqlResult<Datum<'a>> {
    cast::fit_column(take(arguments, 0), &function.data_type)
}

/// Two doubles as one value, for aggregates of two variables; NULL where one is.
pub(in crate::expression) fn pair(y: Expr, x: Expr) -> Expr {
    immutable("pair", Apply::Strict(pack), vec![y, x], DataType::Bytea).expr
}

fn pack<'a>(_: &Function, arguments: &mut [Datum<'a>]) -> SqlResult<Datum<'a>> {
    Ok(regression::packed(double(arguments, 0), double(arguments, 1)))
}

/// Compares DECIMALs of two scales; the result is compared with 0.
pub(in crate::expression) fn compare_decimals(left: Expr, left_scale: i8, right: Expr, right_scale: i8) -> Expr {
    let arguments = vec![left, right, hidden(left_scale), hidden(right_scale)];
    immutable("comparison", Apply::Strict(compare_scaled), arguments, DataType::Integer).expr
}

fn compare_scaled<'a>(_: &Function, arguments: &mut [Datum<'a>]) -> SqlResult<Datum<'a>> {
    let (a, b) = (decimal_of(arguments, 0), decimal_of(arguments, 1));
    let more = int(arguments, 2) - int(arguments, 3);
    // One of both gets zeros; where there is no room for them, it is the larger one by far.
    let scaled = |value: i128, zeros: i64| {
        let zeros = i8::try_from(zeros).unwrap_or(i8::MAX);
        decimal::rescale(value, 0, zeros).map_err(|_| value.cmp(&0))
    };
    let ordering = if more >= 0 {
        scaled(b, more).map_or_else(Ordering::reverse, |b| a.cmp(&b))
    } else {
        scaled(a, -more).map_or_else(|sign| sign, |a| a.cmp(&b))
    };
    Ok(Datum::from_int(ordering as i64))
}

const ROWS: &str = "row comparison";

/// Compares two rows, value by value, of which each pair has one type; the result is compared with 0. What comes behind the first pair that is unequal or unknown is not evaluated.
pub(in crate::expression) fn compare_rows(pairs: impl Iterator<Item = (Expr, Expr)>) -> Expr {
    let arguments = pairs.flat_map(|(left, right)| [left, right]).collect();
    immutable(ROWS, Apply::Lazy(compare_pairs), arguments, DataType::Integer).expr
}

fn compare_pairs<'a>(_: &Function, arguments: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    for pair in arguments.chunks_exact(2) {
        let (left, right) = (pair[0].evaluate_ref(env)?, pair[1].evaluate_ref(env)?);
        if left.is_null() || right.is_null() {
            return Ok(Datum::NULL);
        }
        match left.as_ref().cmp(&right.as_ref()) {
            Ordering::Equal => {}
            unequal => return Ok(Datum::from_int(unequal as i64)),
        }
    }
    Ok(Datum::from_int(0))
}

/// The pairs of a comparison of rows, one behind the other, if an expression is that.
pub(crate) fn compared_rows(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Call { function, arguments } if function.name == ROWS => Some(arguments),
        _ => None,
    }
}

/// Two texts, or bytes, as one.
pub(in crate::expression) fn concat(left: Expr, right: Expr, data_type: DataType) -> Typed {
    immutable("concatenation", Apply::Strict(joined), vec![left, right], data_type)
}

fn joined<'a>(_: &Function, arguments: &mut [Datum<'a>]) -> SqlResult<Datum<'a>> {
    let right = take(arguments, 1);
    let made = match (take(arguments, 0).into_value(), right.as_ref()) {
        (Value::Text(mut left), ValueRef::Text(right)) => {
            check_length(left.len() + right.len())?;
            left.push_str(right);
            Value::Text(left)
        }
        (Value::Bytes(mut left), ValueRef::Bytes(right)) => {
            check_length(left.len() + right.len())?;
            left.extend_from_slice(right);
            Value::Bytes(left)
        }
        _ => Value::Null,
    };
    Ok(Datum::Own(made))
}

pub(super) fn check_length(bytes: usize) -> SqlResult<()> {
    if bytes > TEXT_BYTES_MAX { Err(too_long()) } else { Ok(()) }
}

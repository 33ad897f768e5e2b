//! Comparisons.

use super::convert::{exactly, like_other};
use super::{and, cast, coerce, not, or, settle};
use crate::expression::types::{self, TEXT};
use crate::expression::{Comparison, Expr, ParamTypes, Typed, function};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};

pub(super) fn no_operator(left: Option<&DataType>, operator: &str, right: Option<&DataType>) -> SqlError {
    let message = format!("operator does not exist: {} {operator} {}", types::name_of(left), types::name_of(right));
    SqlError::new("42883", message)
        .with_hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

/// A value and those of a column, by itself each, as values of one type. Decimal numbers for which no type has all digits have those behind the point in it: a value with too many before is an error.
pub(crate) fn alike_by_column(of: Typed, column: Typed, params: &ParamTypes) -> SqlResult<(Expr, Expr)> {
    let (of, column) = (of.known(params), column.known(params));
    if let (Some(a @ DataType::Decimal { .. }), Some(b @ DataType::Decimal { .. })) = (of.data_type, column.data_type)
        && a.widened_with(&b).is_none()
        && let Some(common) = types::comparable(&a, &b)
    {
        return Ok((cast(of, common, params)?.expr, cast(column, common, params)?.expr));
    }
    alike(of, "=", column, params)
}

/// Both as values of one type.
fn alike(left: Typed, operator: &str, right: Typed, params: &ParamTypes) -> SqlResult<(Expr, Expr)> {
    let (left, right) = (left.known(params), right.known(params));
    let (left, right) = match (left.data_type, right.data_type) {
        (None, None) => (settle(left, params)?, settle(right, params)?),
        (Some(known), None) => (left, like_other(right, &known, params)?),
        (None, Some(known)) => (like_other(left, &known, params)?, right),
        _ => (left, right),
    };
    let (Some(of_left), Some(of_right)) = (left.data_type, right.data_type) else {
        return Err(no_operator(left.data_type.as_ref(), operator, right.data_type.as_ref()));
    };
    if of_left == of_right {
        return Ok((left.expr, right.expr));
    }
    let constant = (left.literal().is_some(), right.literal().is_some());
    if constant == (false, true)
        && let Some(right) = exactly(&right, &of_left)
    {
        return Ok((left.expr, right.expr));
    }
    if constant == (true, false)
        && let Some(left) = exactly(&left, &of_right)
    {
        return Ok((left.expr, right.expr));
    }
    if let (DataType::Decimal { scale: a, .. }, DataType::Decimal { scale: b, .. }) = (of_left, of_right)
        && of_left.widened_with(&of_right).is_none()
    {
        // No type has the values of both: they are compared as they are, and the outcome with 0.
        return Ok((function::compare_decimals(left.expr, a, right.expr, b), Expr::Literal(Value::Int(0))));
    }
    let Some(common) = types::comparable(&of_left, &of_right) else {
        return Err(no_operator(Some(&of_left), operator, Some(&of_right)));
    };
    Ok((cast(left, common, params)?.expr, cast(right, common, params)?.expr))
}

pub(crate) fn compare(comparison: Comparison, left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let (left, right) = alike(left, &comparison.to_string(), right, params)?;
    let expr = Expr::Compare { comparison, left: Box::new(left), right: Box::new(right) };
    Ok(Typed::of(expr.folded(), DataType::Boolean))
}

/// Compares two rows by the order of their values, the first ones first.
pub(crate) fn compare_rows(comparison: Comparison, left: Vec<Typed>, right: Vec<Typed>, params: &ParamTypes) -> SqlResult<Typed> {
    let operator = comparison.to_string();
    let pairs = left.into_iter().zip(right).map(|(left, right)| alike(left, &operator, right, params));
    let mut pairs = pairs.collect::<SqlResult<Vec<_>>>()?;
    let (left, right) = match pairs.len() {
        1 => pairs.remove(0),
        _ => (function::compare_rows(pairs.into_iter()), Expr::Literal(Value::Int(0))),
    };
    let expr = Expr::Compare { comparison, left: Box::new(left), right: Box::new(right) };
    Ok(Typed::of(expr.folded(), DataType::Boolean))
}

/// IS [NOT] DISTINCT FROM
pub(crate) fn is_distinct(left: Typed, right: Typed, negated: bool, params: &ParamTypes) -> SqlResult<Typed> {
    let (left, right) = alike(left, "=", right, params)?;
    let both = Expr::IsDistinct { left: Box::new(left), right: Box::new(right), negated };
    Ok(Typed::of(both.folded(), DataType::Boolean))
}

pub(crate) fn between(of: Typed, low: Typed, high: Typed, negated: bool, symmetric: bool, params: &ParamTypes) -> SqlResult<Typed> {
    let within = |low: Typed, high: Typed, of: Typed| {
        let least = compare(Comparison::GreaterOrEqual, of.clone(), low, params)?;
        let most = compare(Comparison::LessOrEqual, of, high, params)?;
        and(least, most, params)
    };
    let all = if symmetric {
        let one = within(low.clone(), high.clone(), of.clone())?;
        let other = within(high, low, of)?;
        or(one, other, params)?
    } else {
        within(low, high, of)?
    };
    if negated { not(all, params) } else { Ok(all) }
}

/// IN. What fits none but a wider type is compared apart from the rest, so that the others are found by an index.
pub(crate) fn in_list(of: Typed, list: Vec<Typed>, negated: bool, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let of = match of.data_type {
        Some(_) => of,
        None => {
            let types = list.iter().map(|typed| typed.clone().known(params).data_type);
            match types::common_type(types, "IN")? {
                Some(known) => like_other(of, &known, params)?,
                None => settle(of, params)?,
            }
        }
    };
    let Some(known) = of.data_type else { return Err(no_operator(None, "=", None)) };
    let mut same = Vec::with_capacity(list.len());
    let mut other = Vec::new();
    for typed in list {
        let typed = typed.known(params);
        let typed = if typed.data_type.is_some() { typed } else { like_other(typed, &known, params)? };
        match exactly(&typed, &known) {
            Some(exact) => same.push(exact.expr),
            None if typed.data_type.is_some_and(|found| types::same_values(&found, &known) || types::same_values(&known, &found)) => {
                same.push(typed.expr);
            }
            None => other.push(typed),
        }
    }
    let mut any: Option<Typed> = None;
    if !same.is_empty() {
        let mut literals: Vec<Value> =
            same.iter().filter_map(|expr| if let Expr::Literal(value) = expr { Some(value.clone()) } else { None }).collect();
        let sorted = literals.len() == same.len();
        if sorted {
            literals.sort_unstable();
            literals.dedup();
            same = literals.into_iter().map(Expr::Literal).collect();
        }
        let expr = Expr::In { of: Box::new(of.expr.clone()), list: same, negated: false, sorted };
        any = Some(Typed::of(expr.folded(), DataType::Boolean));
    }
    for typed in other {
        let equal = compare(Comparison::Equal, of.clone(), typed, params)?;
        any = Some(match any {
            None => equal,
            Some(before) => or(before, equal, params)?,
        });
    }
    let any = any.ok_or_else(|| SqlError::syntax("IN needs a value"))?;
    match any.expr {
        // As it is written, for those who look for it.
        Expr::In { of, list, negated: false, sorted } => Ok(Typed::of(Expr::In { of, list, negated, sorted }, DataType::Boolean)),
        expr if negated => not(Typed::of(expr, DataType::Boolean), params),
        expr => Ok(Typed::of(expr, DataType::Boolean)),
    }
}

/// Operands of an operator that takes texts.
pub(crate) fn two_texts(left: Typed, right: Typed, operator: &str, params: &ParamTypes) -> SqlResult<[Typed; 2]> {
    let (left, right) = (left.known(params), right.known(params));
    let is_text = |typed: &Typed| typed.data_type.is_none_or(|t| t.is_text());
    match is_text(&left) && is_text(&right) {
        true => Ok([left, right]),
        false => Err(no_operator(left.data_type.as_ref(), operator, right.data_type.as_ref())),
    }
}

/// [NOT] LIKE and ILIKE. `escape`: `None` without one, which is a backslash, `Some(None)` for an empty one.
pub(crate) fn like(
    of: Typed,
    pattern: Typed,
    escape: Option<Option<char>>,
    ignores_case: bool,
    negated: bool,
    params: &ParamTypes,
) -> SqlResult<Typed> {
    let operator = match (ignores_case, negated) {
        (false, false) => "~~",
        (false, true) => "!~~",
        (true, false) => "~~*",
        (true, true) => "!~~*",
    };
    let [of, pattern] = two_texts(of, pattern, operator, params)?;
    // CHAR is matched with the blanks at its end, as in PostgreSQL; a pattern has none that were not written.
    let of = settle(of, params)?;
    let pattern = coerce(pattern, &TEXT, params)?;
    let expr = Expr::Like { of: Box::new(of.expr), pattern: Box::new(pattern.expr), escape, ignores_case, negated };
    Ok(Typed::of(expr.folded(), DataType::Boolean))
}

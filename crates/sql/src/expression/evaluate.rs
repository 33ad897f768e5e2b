//! An expression on a row.

use super::datum::Datum;
use super::{Comparison, Env, Expr, SubqueryKind, arithmetic, cast, like};
use crate::sequences::{SequenceCall, SequenceRef};
use crate::{SqlError, SqlResult};
use pagefold_types::{Value, ValueRef};

/// Three-valued.
fn compared(comparison: Comparison, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<bool> {
    (!left.is_null() && !right.is_null()).then(|| comparison.holds(left.cmp(&right)))
}

fn of_row<'a>(values: &'a [Value], at: usize, what: &str) -> SqlResult<Datum<'a>> {
    values.get(at).map(Datum::from).ok_or_else(|| SqlError::new("XX000", format!("{what} {at} is missing")))
}

impl Expr {
    pub(crate) fn evaluate(&self, env: &Env<'_>) -> SqlResult<Value> {
        Ok(self.evaluate_ref(env)?.into_value())
    }

    /// Is the condition true? Neither false nor unknown.
    pub(crate) fn is_true(&self, env: &Env<'_>) -> SqlResult<bool> {
        Ok(self.truth(env)? == Some(true))
    }

    /// `None` is unknown.
    fn truth(&self, env: &Env<'_>) -> SqlResult<Option<bool>> {
        Ok(match self {
            Expr::Not(of) => of.truth(env)?.map(|truth| !truth),
            Expr::And(all) => among(all, false, env)?,
            Expr::Or(all) => among(all, true, env)?,
            Expr::IsNull { of, negated } => Some(of.evaluate_ref(env)?.is_null() != *negated),
            Expr::IsTruth { of, truth, negated } => Some((of.truth(env)? == *truth) != *negated),
            Expr::Compare { comparison, left, right } => {
                let left = left.evaluate_ref(env)?;
                if left.is_null() {
                    return Ok(None);
                }
                compared(*comparison, left.as_ref(), right.evaluate_ref(env)?.as_ref())
            }
            Expr::IsDistinct { left, right, negated } => {
                let (left, right) = (left.evaluate_ref(env)?, right.evaluate_ref(env)?);
                Some((left.as_ref() != right.as_ref()) != *negated)
            }
            Expr::In { of, list, negated, sorted: false } => in_list(of, list, env)?.map(|found| found != *negated),
            Expr::In { of, list, negated, sorted: true } => in_sorted(of, list, env)?.map(|found| found != *negated),
            Expr::Like { of, pattern, escape, ignores_case, negated } => {
                let (of, pattern) = (of.evaluate_ref(env)?, pattern.evaluate_ref(env)?);
                match (of.as_ref(), pattern.as_ref()) {
                    (ValueRef::Text(text), ValueRef::Text(pattern)) => {
                        Some(like::matches(text, pattern, escape.unwrap_or(Some('\\')), *ignores_case)? != *negated)
                    }
                    _ => None,
                }
            }
            Expr::Subquery { number, kind: SubqueryKind::Exists, outer } => {
                let mut exists = false;
                env.subqueries.run(*number, &outer_row(outer, env)?, &mut |_| {
                    exists = true;
                    Ok(false)
                })?;
                Some(exists)
            }
            Expr::Subquery { number, kind: SubqueryKind::In { of, negated }, outer } => {
                in_subquery((*number, outer), of, env)?.map(|found| found != *negated)
            }
            Expr::Subquery { number, kind: kind @ SubqueryKind::Quantified { of, comparison, all }, outer } => {
                if outer.is_empty() && kind.is_membership() {
                    is_among(*number, std::slice::from_ref(of), env)?.map(|found| found != *all)
                } else {
                    compared_with_subquery((*number, outer), of, (*comparison, *all), env)?
                }
            }
            other => other.evaluate_ref(env)?.truth(),
        })
    }

    /// Borrowed from row, parameters or the expression itself where it can be.
    pub(crate) fn evaluate_ref<'a>(&'a self, env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
        match self {
            Expr::Literal(value) => Ok(value.into()),
            Expr::Slot(at) => of_row(env.row, *at, "value of the row"),
            Expr::Outer(at) => of_row(env.outer, *at, "value of the outer row"),
            Expr::Param(at) => of_row(env.params, *at, "parameter"),
            Expr::Column { .. } => Err(SqlError::new("XX000", "a column has no place in a row yet")),
            Expr::Not(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::IsNull { .. }
            | Expr::IsTruth { .. }
            | Expr::Compare { .. }
            | Expr::IsDistinct { .. }
            | Expr::In { .. }
            | Expr::Like { .. }
            | Expr::Subquery { kind: SubqueryKind::Exists | SubqueryKind::In { .. } | SubqueryKind::Quantified { .. }, .. } => {
                Ok(Datum::boolean(self.truth(env)?))
            }
            Expr::Case { branches, otherwise } => {
                for (when, then) in branches {
                    if when.is_true(env)? {
                        return then.evaluate_ref(env);
                    }
                }
                otherwise.as_ref().map_or(Ok(Datum::NULL), |otherwise| otherwise.evaluate_ref(env))
            }
            Expr::Cast { of, from, to } => cast::cast(of.evaluate_ref(env)?, from, to),
            Expr::Negate { of, data_type } => {
                let of = of.evaluate_ref(env)?;
                if of.is_null() { Ok(Datum::NULL) } else { Ok(Datum::Own(arithmetic::negate(of.as_ref(), data_type)?)) }
            }
            Expr::Arithmetic { operation, on, left, right } => {
                let (left, right) = (left.evaluate_ref(env)?, right.evaluate_ref(env)?);
                if left.is_null() || right.is_null() {
                    return Ok(Datum::NULL);
                }
                arithmetic::apply(*operation, on, left.as_ref(), right.as_ref())
            }
            Expr::Call { function, arguments } => function.evaluate(arguments, env),
            Expr::Sequence { call: SequenceCall::Set(sequence), arguments } => set_number(sequence, arguments, env),
            Expr::Sequence { call, .. } => Ok(Datum::Own(Value::Int(env.subqueries.number(call)?))),
            Expr::Subquery { number, kind: SubqueryKind::Scalar, outer } => {
                let mut found: Option<Value> = None;
                env.subqueries.run(*number, &outer_row(outer, env)?, &mut |value| {
                    if found.is_some() {
                        return Err(SqlError::new("21000", "more than one row returned by a subquery used as an expression"));
                    }
                    found = Some(value);
                    Ok(true)
                })?;
                Ok(Datum::Own(found.unwrap_or(Value::Null)))
            }
        }
    }
}

/// IN a subquery. This and what follows stand by themselves, as what recurses is to have few variables.
#[inline(never)]
fn in_subquery((number, outer): (usize, &[Expr]), of: &[Expr], env: &Env<'_>) -> SqlResult<Option<bool>> {
    match of {
        of if outer.is_empty() => is_among(number, of, env),
        [of] => compared_with_subquery((number, outer), of, (Comparison::Equal, false), env),
        _ => Err(SqlError::new("XX000", "a row of several values and a subquery that needs the row")),
    }
}

#[inline(never)]
fn compared_with_subquery(
    (number, outer): (usize, &[Expr]),
    of: &Expr,
    (comparison, all): (Comparison, bool),
    env: &Env<'_>,
) -> SqlResult<Option<bool>> {
    let of = of.evaluate_ref(env)?;
    quantified((number, &outer_row(outer, env)?), of.as_ref(), comparison, all, env)
}

/// Is a row of values among those of a subquery that needs nothing of the row around it?
#[inline(never)]
fn is_among(number: usize, of: &[Expr], env: &Env<'_>) -> SqlResult<Option<bool>> {
    let of = of.iter().map(|of| of.evaluate_ref(env)).collect::<SqlResult<Vec<_>>>()?;
    let of: Vec<ValueRef<'_>> = of.iter().map(Datum::as_ref).collect();
    env.subqueries.is_among(number, &of)
}

/// SETVAL
#[inline(never)]
fn set_number<'a>(sequence: &SequenceRef, arguments: &[Expr], env: &Env<'_>) -> SqlResult<Datum<'a>> {
    let values = arguments.iter().map(|argument| argument.evaluate(env)).collect::<SqlResult<Vec<_>>>()?;
    match values.as_slice() {
        [Value::Int(number), is_given @ ..] if !is_given.contains(&Value::Null) => {
            env.subqueries.set_number(sequence, *number, is_given != [Value::Boolean(false)])?;
            Ok(Datum::Own(Value::Int(*number)))
        }
        _ => Ok(Datum::NULL),
    }
}

/// AND ends with what is false, OR with what is true; with neither, what is unknown makes all unknown.
fn among(all: &[Expr], ends: bool, env: &Env<'_>) -> SqlResult<Option<bool>> {
    let mut unknown = false;
    for expr in all {
        match expr.truth(env)? {
            Some(truth) if truth == ends => return Ok(Some(ends)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(!ends) })
}

/// The outer row of a subquery.
fn outer_row(outer: &[Expr], env: &Env<'_>) -> SqlResult<Vec<Value>> {
    outer.iter().map(|expr| expr.evaluate(env)).collect()
}

fn in_list(of: &Expr, list: &[Expr], env: &Env<'_>) -> SqlResult<Option<bool>> {
    let of = of.evaluate_ref(env)?;
    if of.is_null() {
        return Ok(None);
    }
    let mut unknown = false;
    for expr in list {
        let value = expr.evaluate_ref(env)?;
        if value.is_null() {
            unknown = true;
        } else if value.as_ref() == of.as_ref() {
            return Ok(Some(true));
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

/// Among literals that are in order; NULL is the last of them.
fn in_sorted(of: &Expr, list: &[Expr], env: &Env<'_>) -> SqlResult<Option<bool>> {
    let of = of.evaluate_ref(env)?;
    if of.is_null() {
        return Ok(None);
    }
    if list.binary_search_by(|expr| literal(expr).cmp(&of.as_ref())).is_ok() {
        return Ok(Some(true));
    }
    Ok(if list.last().is_some_and(|last| literal(last).is_null()) { None } else { Some(false) })
}

/// The value of a literal.
fn literal(expr: &Expr) -> ValueRef<'_> {
    if let Expr::Literal(value) = expr { value.as_ref() } else { ValueRef::Null }
}

/// Does the comparison hold with one of the values of the subquery, or with all? Without values: with none, and with all.
fn quantified(
    (number, outer): (usize, &[Value]),
    of: ValueRef<'_>,
    comparison: Comparison,
    all: bool,
    env: &Env<'_>,
) -> SqlResult<Option<bool>> {
    let mut unknown = false;
    let mut decided = false;
    env.subqueries.run(number, outer, &mut |value| {
        match compared(comparison, of, value.as_ref()) {
            Some(holds) if holds != all => decided = true,
            Some(_) => {}
            None => unknown = true,
        }
        Ok(!decided)
    })?;
    Ok(match (decided, unknown) {
        (true, _) => Some(!all),
        (false, true) => None,
        (false, false) => Some(all),
    })
}

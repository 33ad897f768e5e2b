//! Truth values, and branches.

use super::{coerce, compare, settle};
use crate::expression::types::{self, common_type};
use crate::expression::{Comparison, Expr, ParamTypes, Typed};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};

/// As a condition, of WHERE or of an operator; 42804 naming whose argument it is.
pub(crate) fn condition(of: Typed, what: &str, params: &ParamTypes) -> SqlResult<Expr> {
    let of = of.known(params);
    match of.data_type {
        None | Some(DataType::Boolean) => Ok(coerce(of, &DataType::Boolean, params)?.expr),
        Some(other) => Err(SqlError::types(format!("argument of {what} must be type boolean, not type {}", types::name(&other)))),
    }
}

pub(crate) fn not(of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let expr = match condition(of, "NOT", params)? {
        Expr::Not(of) => *of,
        Expr::IsNull { of, negated } => Expr::IsNull { of, negated: !negated },
        Expr::IsTruth { of, truth, negated } => Expr::IsTruth { of, truth, negated: !negated },
        Expr::IsDistinct { left, right, negated } => Expr::IsDistinct { left, right, negated: !negated },
        Expr::In { of, list, negated, sorted } => Expr::In { of, list, negated: !negated, sorted },
        Expr::Like { of, pattern, escape, ignores_case, negated } => Expr::Like { of, pattern, escape, ignores_case, negated: !negated },
        other => Expr::Not(Box::new(other)),
    };
    Ok(Typed::of(expr.folded(), DataType::Boolean))
}

/// AND or OR of what may be such already; `ends` is what decides it.
fn several(left: Expr, right: Expr, ends: bool) -> Typed {
    // Of many, made one by one, what is there already stays where it is.
    let (mut all, left) = match (left, ends) {
        (Expr::And(parts), false) | (Expr::Or(parts), true) => (parts, None),
        (left, _) => (Vec::new(), Some(left)),
    };
    for expr in left.into_iter().chain([right]) {
        match (expr, ends) {
            (Expr::And(parts), false) | (Expr::Or(parts), true) => all.extend(parts),
            // TRUE AND x is x, and FALSE AND x is FALSE, whatever x is.
            (Expr::Literal(Value::Boolean(truth)), _) if truth == ends => return Typed::boolean(ends),
            (Expr::Literal(Value::Boolean(_)), _) => {}
            (expr, _) => all.push(expr),
        }
    }
    let expr = if all.len() > 1 {
        if ends { Expr::Or(all) } else { Expr::And(all) }
    } else {
        all.pop().unwrap_or(Expr::Literal(Value::Boolean(!ends)))
    };
    Typed::of(expr.folded(), DataType::Boolean)
}

pub(crate) fn and(left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    Ok(several(condition(left, "AND", params)?, condition(right, "AND", params)?, false))
}

pub(crate) fn or(left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    Ok(several(condition(left, "OR", params)?, condition(right, "OR", params)?, true))
}

pub(crate) fn is_null(of: Typed, negated: bool, params: &ParamTypes) -> SqlResult<Typed> {
    let expr = Expr::IsNull { of: Box::new(settle(of, params)?.expr), negated };
    Ok(Typed::of(expr.folded(), DataType::Boolean))
}

/// IS [NOT] TRUE, FALSE, UNKNOWN (`None`).
pub(crate) fn is_truth(of: Typed, truth_value: Option<bool>, negated: bool, params: &ParamTypes) -> SqlResult<Typed> {
    let name = match truth_value {
        Some(true) => "TRUE",
        Some(false) => "FALSE",
        None => "UNKNOWN",
    };
    let of = condition(of, &format!("IS {}{name}", if negated { "NOT " } else { "" }), params)?;
    let expr = Expr::IsTruth { of: Box::new(of), truth: truth_value, negated };
    Ok(Typed::of(expr.folded(), DataType::Boolean))
}

/// The common type of values; `None` when none has one. Those that have none keep all their digits and characters in it, whatever columns beside them say of theirs.
pub(crate) fn common_of(all: &[Typed], what: &str, params: &ParamTypes) -> SqlResult<Option<DataType>> {
    let Some(common) = common_type(all.iter().map(|typed| typed.data_type), what)? else { return Ok(None) };
    let untyped = all.iter().filter(|typed| typed.data_type.is_none()).map(|typed| match typed.literal() {
        Some(Value::Text(text)) => super::type_beside(text, &common, params),
        Some(_) => Ok(common),
        None => Ok(if matches!(common, DataType::Varchar(_)) { types::TEXT } else { common }),
    });
    let wider: Vec<DataType> = untyped.collect::<SqlResult<_>>()?;
    common_type(std::iter::once(common).chain(wider).map(Some), what)
}

/// All as values of their common type; text if none has one.
pub(crate) fn unify(all: Vec<Typed>, what: &str, params: &ParamTypes) -> SqlResult<(Vec<Expr>, DataType)> {
    let all: Vec<Typed> = all.into_iter().map(|typed| typed.known(params)).collect();
    let common = common_of(&all, what, params)?;
    let to = common.unwrap_or(types::TEXT);
    let all: SqlResult<Vec<Expr>> = all.into_iter().map(|typed| Ok(super::cast(typed, to, params)?.expr)).collect();
    Ok((all?, to))
}

/// CASE, with an operand that is compared with each WHEN, or conditions.
pub(crate) fn case(
    operand: Option<Typed>,
    branches: Vec<(Typed, Typed)>,
    otherwise: Option<Typed>,
    params: &ParamTypes,
) -> SqlResult<Typed> {
    let mut whens = Vec::with_capacity(branches.len());
    let mut results = Vec::with_capacity(branches.len() + 1);
    for (when, then) in branches {
        whens.push(match &operand {
            Some(operand) => compare(Comparison::Equal, operand.clone(), when, params)?.expr,
            None => condition(when, "CASE/WHEN", params)?,
        });
        results.push(then);
    }
    let has_otherwise = otherwise.is_some();
    results.extend(otherwise);
    let (mut results, data_type) = unify(results, "CASE", params)?;
    let otherwise = if has_otherwise { results.pop() } else { None };
    let mut kept: Vec<(Expr, Expr)> = Vec::with_capacity(whens.len());
    let mut rest = otherwise;
    for (when, then) in whens.into_iter().zip(results) {
        match when {
            // What is never true is no branch, and nothing comes after what always is.
            Expr::Literal(Value::Boolean(true)) => {
                rest = Some(then);
                break;
            }
            Expr::Literal(_) => {}
            when => kept.push((when, then)),
        }
    }
    if kept.is_empty() {
        return Ok(Typed::of(rest.unwrap_or(Expr::Literal(Value::Null)), data_type));
    }
    Ok(Typed::of(Expr::Case { branches: kept, otherwise: rest.map(Box::new) }, data_type))
}

//! What the engine is asked: tests of columns with the values of the moment, as a condition.

use super::Context;
use crate::expression::Comparison;
use crate::plan::ScanPlan;
use crate::plan::access::{Test, TestKind};
use crate::{SqlError, SqlResult};
use pagefold_types::{Condition, DataType, Operand, Predicate, Value, column, not};
use std::cmp::Ordering;

/// The tests of a scan as a condition, `None` where there are no tests; and the parts of the table that may have rows for which it is true: none when something is compared with NULL. `row`: the one
/// before, in a join.
pub(crate) fn ask(plan: &ScanPlan, context: &Context<'_>, row: &[Value]) -> SqlResult<(Option<Predicate>, Vec<usize>)> {
    ask_tests(plan, plan.tests.iter(), context, row)
}

/// As [`ask`], of some of the tests.
pub(super) fn ask_tests<'t>(
    plan: &ScanPlan,
    tests: impl Iterator<Item = &'t Test>,
    context: &Context<'_>,
    row: &[Value],
) -> SqlResult<(Option<Predicate>, Vec<usize>)> {
    let mut conditions = Vec::with_capacity(plan.tests.len() + 1);
    for test in tests {
        match condition(plan, test, context, row)? {
            Some(condition) => conditions.push(condition),
            None => return Ok((None, Vec::new())),
        }
    }
    if let Some(keys) = &plan.keys {
        let alternatives = keys.iter().filter_map(|key| all_of(plan, key, context, row).transpose()).collect::<SqlResult<Vec<_>>>()?;
        if alternatives.is_empty() {
            return Ok((None, Vec::new()));
        }
        conditions.push(Condition::any(alternatives));
    }
    let asked = match conditions.is_empty() {
        true => None,
        false => {
            let bound = Condition::all(conditions).bind(&plan.table.schema);
            Some(bound.map_err(|e| SqlError::new("XX000", format!("table \"{}\": {e}", plan.table.name)))?)
        }
    };
    let parts = plan.table.parts_for(asked.as_ref())?;
    Ok((asked, parts))
}

/// All of these tests together; `None`: true of no row.
fn all_of(plan: &ScanPlan, tests: &[Test], context: &Context<'_>, row: &[Value]) -> SqlResult<Option<Condition>> {
    let conditions = tests.iter().map(|test| condition(plan, test, context, row)).collect::<SqlResult<Option<Vec<_>>>>()?;
    Ok(conditions.map(Condition::all))
}

/// `None`: true of no row.
fn condition(plan: &ScanPlan, test: &Test, context: &Context<'_>, row: &[Value]) -> SqlResult<Option<Condition>> {
    let own = &plan.table.schema.columns()[test.column];
    let name = || column(own.name.clone());
    Ok(Some(match &test.kind {
        TestKind::Compare { comparison, value, data_type } => {
            let value = context.evaluate(value, row)?;
            if value == Value::Null {
                return Ok(None);
            }
            let (comparison, value, data_type) = match as_column(*comparison, &value, data_type, &own.data_type) {
                Asked::Same => (*comparison, value, *data_type),
                Asked::Other(comparison, value) => (comparison, value, own.data_type),
                Asked::Always => return Ok(Some(name().is_not_null())),
                Asked::Never => return Ok(None),
            };
            name().compared(comparison, Operand::of(value.as_ref(), &data_type))
        }
        TestKind::In { values, data_type, negated } => {
            let mut operands = Vec::with_capacity(values.len());
            for value in values {
                let value = context.evaluate(value, row)?;
                // What no value of the column can be is none of them.
                if beyond(&value, &own.data_type).is_none() {
                    operands.push(Operand::of(value.as_ref(), data_type));
                }
            }
            if operands.is_empty() && !values.is_empty() {
                return Ok(negated.then(|| name().is_not_null()));
            }
            let among = name().in_list(operands);
            if *negated { not(among) } else { among }
        }
        TestKind::Null { negated: false } => name().is_null(),
        TestKind::Null { negated: true } => name().is_not_null(),
        TestKind::Like { pattern, escape, negated } => {
            let Value::Text(pattern) = context.evaluate(pattern, row)? else { return Ok(None) };
            let like = match escape.flatten() {
                Some(escape) => name().like_escaped(pattern, escape),
                None => name().like(pattern),
            };
            if *negated { not(like) } else { like }
        }
        TestKind::Truth { negated } => {
            if *negated {
                not(name().is_true())
            } else {
                name().is_true()
            }
        }
    }))
}

/// How a column is compared with a value that lies between two of its type: a DATE with a moment, a REAL with a DOUBLE.
enum Asked {
    /// It is no such value.
    Same,
    Other(Comparison, Value),
    Always,
    Never,
}

/// Is a value beyond all numbers that the column can have, and on which side? NaN is above all.
fn beyond(value: &Value, column: &DataType) -> Option<Ordering> {
    let number = match value {
        Value::Double(number) => *number,
        Value::Real(number) => f64::from(*number),
        _ => return None,
    };
    let is_exact = matches!(column, DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Decimal { .. });
    (is_exact && !number.is_finite()).then_some(if number == f64::NEG_INFINITY { Ordering::Less } else { Ordering::Greater })
}

/// A comparison with a value of a wider type, as one with a value of the column's.
fn as_column(comparison: Comparison, value: &Value, data_type: &DataType, column: &DataType) -> Asked {
    if let Some(side) = beyond(value, column) {
        return if comparison.holds(side.reverse()) { Asked::Always } else { Asked::Never };
    }
    // The greatest value of the column's type that is not greater, and whether it is the same.
    let (below, is_same) = match (column, data_type, value) {
        (DataType::Date, DataType::Timestamp { unit, .. }, Value::Int(moment)) => {
            (Value::Int(moment.div_euclid(unit.per_day())), moment.rem_euclid(unit.per_day()) == 0)
        }
        (DataType::Real, DataType::Double, Value::Double(wide)) => {
            let near = *wide as f32;
            let is_same = f64::from(near) == *wide || wide.is_nan();
            (Value::Real(if is_same || f64::from(near) < *wide { near } else { near.next_down() }), is_same)
        }
        _ => return Asked::Same,
    };
    if is_same {
        return Asked::Other(comparison, below);
    }
    match comparison {
        Comparison::Equal => Asked::Never,
        Comparison::NotEqual => Asked::Always,
        Comparison::Less | Comparison::LessOrEqual => Asked::Other(Comparison::LessOrEqual, below),
        Comparison::Greater | Comparison::GreaterOrEqual => Asked::Other(Comparison::Greater, below),
    }
}

/// A value as a column of another type has it, if it has just this value and the two are of one kind. `None`: who compares goes another way.
pub(crate) fn column_value<'v>(value: &'v Value, data_type: &DataType, column: &DataType) -> Option<&'v Value> {
    use DataType::{BigInt, Char, Decimal, Integer, SmallInt, Varchar};
    let is_same = match (data_type, column) {
        (SmallInt | Integer | BigInt, SmallInt | Integer | BigInt) => true,
        (Decimal { scale: a, .. }, Decimal { scale: b, .. }) => a == b,
        (Varchar(_), Varchar(_)) => true,
        (Char(a), Char(b)) => a == b,
        (a, b) => a == b,
    };
    (is_same && value.as_ref().check(column, "").is_ok()).then_some(value)
}

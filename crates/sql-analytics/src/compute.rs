//! Expressions over batches.
//!
//! Invariants:
//! - what an expression gives for a row is what the row executor gives for it, or an error with the same SQLSTATE;
//! - what stands behind AND, OR and CASE, and may fail, is evaluated only for rows for which it counts.

use crate::arithmetic;
use crate::arrays::{Builder, View, repeated};
use crate::failure::Failure;
use crate::run::Counters;
use arrow_arith::boolean::{and_kleene, is_not_null, is_null, not, or_kleene};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, RecordBatch, Scalar as One, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_ord::cmp;
use arrow_select::filter::filter;
use arrow_select::take::take;
use arrow_select::zip::zip;
use datafusion_common::{DataFusionError, Result};
use pagefold_sql::analytics::{Interrupt, Kind, RowExpr, Scalar};
use pagefold_types::{Comparison, Value, ValueRef};
use std::sync::Arc;

/// What expressions are evaluated with.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) failure: Failure,
    pub(crate) interrupt: Interrupt,
    pub(crate) counters: Arc<Counters>,
}

impl Running {
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.of(self.interrupt.check())
    }
}

/// Columns of some rows; those that are not needed may be missing.
pub(crate) struct Frame {
    columns: Vec<Option<ArrayRef>>,
    rows: usize,
}

/// The values of an expression.
pub(crate) enum Values {
    Array(ArrayRef),
    /// The same for all rows: an array of one.
    Same(ArrayRef),
}

impl Values {
    pub(crate) fn into_array(self, rows: usize) -> Result<ArrayRef> {
        match self {
            Values::Array(array) => Ok(array),
            Values::Same(one) => Ok(take(&one, &UInt32Array::from(vec![0; rows]), None)?),
        }
    }

    fn into_boolean(self, rows: usize) -> Result<BooleanArray> {
        Ok(self.into_array(rows)?.as_boolean().clone())
    }

    /// As kernels take it.
    pub(crate) fn with_datum<R>(&self, run: impl FnOnce(&dyn Datum) -> R) -> R {
        match self {
            Values::Array(array) => run(array),
            Values::Same(one) => run(&One::new(Arc::clone(one))),
        }
    }
}

impl Frame {
    pub(crate) fn of(batch: &RecordBatch) -> Frame {
        Frame { columns: batch.columns().iter().cloned().map(Some).collect(), rows: batch.num_rows() }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, at: usize) -> Result<&ArrayRef> {
        let column = self.columns.get(at).and_then(Option::as_ref);
        column.ok_or_else(|| DataFusionError::Internal(format!("column {at} of a batch is missing")))
    }

    /// Some of its rows, with the columns that an expression needs.
    fn selected(&self, rows: &BooleanArray, of: &Scalar) -> Result<Frame> {
        let mut columns = vec![None; self.columns.len()];
        let mut needed = Vec::new();
        of.clone().columns_mut(&mut |column| needed.push(*column));
        for column in needed {
            if let Some(to @ None) = columns.get_mut(column) {
                *to = Some(filter(self.column(column)?, rows)?);
            }
        }
        Ok(Frame { columns, rows: rows.true_count() })
    }
}

/// Evaluates an expression on all rows.
pub(crate) fn evaluate(scalar: &Scalar, frame: &Frame, running: &Running) -> Result<Values> {
    let rows = frame.rows();
    Ok(Values::Array(match scalar {
        Scalar::Column(column, _) => Arc::clone(frame.column(*column)?),
        Scalar::Literal(value, kind) => return Ok(Values::Same(repeated(value, *kind, 1)?)),
        Scalar::Not(of) => Arc::new(not(&evaluate(of, frame, running)?.into_boolean(rows)?)?),
        Scalar::And(all) => return among(all, false, frame, running),
        Scalar::Or(all) => return among(all, true, frame, running),
        Scalar::IsNull { of, negated } => {
            let of = evaluate(of, frame, running)?.into_array(rows)?;
            Arc::new(if *negated { is_not_null(&of)? } else { is_null(&of)? })
        }
        Scalar::Compare { comparison, left, right } => {
            let left = evaluate(left, frame, running)?;
            let right = match right.can_fail() {
                false => evaluate(right, frame, running)?,
                true => {
                    // Not where the left one is NULL.
                    let there = left.with_datum(|left| is_not_null(left.get().0))?;
                    let there = if let Values::Same(_) = left { repeated_truth(there.value(0), rows) } else { there };
                    evaluate_where(right, frame, &there, running)?
                }
            };
            // Two values of all rows are compared as columns, so that there is a result for each row.
            let left = if let (Values::Same(_), Values::Same(_)) = (&left, &right) { Values::Array(left.into_array(rows)?) } else { left };
            Arc::new(compared(*comparison, &left, &right)?)
        }
        Scalar::In { of, values, has_null, negated } => {
            let array = evaluate(of, frame, running)?.into_array(rows)?;
            let view = View::new(&array, of.kind())?;
            let one = |row| {
                let value = view.value(row);
                if value.is_null() {
                    return None;
                }
                let found = values.binary_search_by(|own| own.as_ref().cmp(&value)).is_ok();
                if !found && *has_null { None } else { Some(found != *negated) }
            };
            Arc::new((0..rows).map(one).collect::<BooleanArray>())
        }
        Scalar::Like { of, pattern, negated } => {
            let array = evaluate(of, frame, running)?.into_array(rows)?;
            let texts = array.as_string::<i32>();
            let mut found = BooleanArray::builder(rows);
            for text in texts {
                match text {
                    Some(text) => found.append_value(running.failure.of(pattern.matches(text))? != *negated),
                    None => found.append_null(),
                }
            }
            Arc::new(found.finish())
        }
        Scalar::Case { branches, otherwise, kind } => return case(branches, otherwise.as_deref(), *kind, frame, running),
        Scalar::Arithmetic { arithmetic, left, right } => {
            let (left, right) = (evaluate(left, frame, running)?, evaluate(right, frame, running)?);
            arithmetic::apply(arithmetic, &left, &right, rows, running)?
        }
        Scalar::Row(row) => by_row(row, frame, running)?,
    }))
}

fn repeated_truth(truth: bool, rows: usize) -> BooleanArray {
    BooleanArray::new(if truth { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) }, None)
}

/// Is it true, and not unknown?
pub(crate) fn truths(of: &BooleanArray) -> BooleanBuffer {
    match of.nulls() {
        Some(nulls) if nulls.null_count() > 0 => of.values() & nulls.inner(),
        _ => of.values().clone(),
    }
}

/// The values for these rows; of all others NULL.
fn evaluate_where(scalar: &Scalar, frame: &Frame, rows: &BooleanArray, running: &Running) -> Result<Values> {
    let count = rows.true_count();
    if count == frame.rows() {
        return evaluate(scalar, frame, running);
    }
    if count == 0 {
        return Ok(Values::Same(repeated(&Value::Null, scalar.kind(), 1)?));
    }
    let of_some = evaluate(scalar, &frame.selected(rows, scalar)?, running)?.into_array(count)?;
    let mut next = 0;
    let place = |is_there: bool| {
        is_there.then(|| {
            next += 1;
            next - 1
        })
    };
    let places: UInt32Array = rows.values().iter().map(place).collect();
    Ok(Values::Array(take(&of_some, &places, None)?))
}

/// AND ends with what is false, OR with what is true.
fn among(all: &[Scalar], ends: bool, frame: &Frame, running: &Running) -> Result<Values> {
    let rows = frame.rows();
    let mut so_far: Option<BooleanArray> = None;
    for scalar in all {
        let Some(before) = so_far else {
            so_far = Some(evaluate(scalar, frame, running)?.into_boolean(rows)?);
            continue;
        };
        let next = match scalar.can_fail() {
            false => evaluate(scalar, frame, running)?,
            true => {
                let decided = if ends { truths(&before) } else { truths(&not(&before)?) };
                evaluate_where(scalar, frame, &BooleanArray::new(!&decided, None), running)?
            }
        };
        let next = next.into_boolean(rows)?;
        so_far = Some(if ends { or_kleene(&before, &next)? } else { and_kleene(&before, &next)? });
    }
    Ok(Values::Array(Arc::new(so_far.unwrap_or_else(|| repeated_truth(!ends, rows)))))
}

fn case(branches: &[(Scalar, Scalar)], otherwise: Option<&Scalar>, kind: Kind, frame: &Frame, running: &Running) -> Result<Values> {
    let rows = frame.rows();
    let mut left = BooleanBuffer::new_set(rows);
    let mut result = Values::Same(repeated(&Value::Null, kind, 1)?);
    let put = |result: &Values, chosen: &BooleanArray, value: &Values| -> Result<Values> {
        Ok(Values::Array(value.with_datum(|value| result.with_datum(|result| zip(chosen, value, result)))?))
    };
    let value_for = |scalar: &Scalar, chosen: &BooleanArray| match scalar.can_fail() {
        true => evaluate_where(scalar, frame, chosen, running),
        false => evaluate(scalar, frame, running),
    };
    for (when, then) in branches {
        let when = value_for(when, &BooleanArray::new(left.clone(), None))?.into_boolean(rows)?;
        let chosen = &truths(&when) & &left;
        left = &left & &!&chosen;
        let chosen = BooleanArray::new(chosen, None);
        if chosen.true_count() > 0 {
            result = put(&result, &chosen, &value_for(then, &chosen)?)?;
        }
    }
    if let Some(otherwise) = otherwise {
        let chosen = BooleanArray::new(left, None);
        if chosen.true_count() > 0 {
            result = put(&result, &chosen, &value_for(otherwise, &chosen)?)?;
        }
    }
    Ok(result)
}

fn compared(comparison: Comparison, left: &Values, right: &Values) -> Result<BooleanArray> {
    let kernel = match comparison {
        Comparison::Equal => cmp::eq,
        Comparison::NotEqual => cmp::neq,
        Comparison::Less => cmp::lt,
        Comparison::LessOrEqual => cmp::lt_eq,
        Comparison::Greater => cmp::gt,
        Comparison::GreaterOrEqual => cmp::gt_eq,
    };
    Ok(left.with_datum(|left| right.with_datum(|right| kernel(left, right)))?)
}

/// Row by row, as the row executor does.
fn by_row(expr: &RowExpr, frame: &Frame, running: &Running) -> Result<ArrayRef> {
    let columns = expr.columns().iter().map(|column| frame.column(*column)).collect::<Result<Vec<_>>>()?;
    let views = columns.iter().map(|array| View::new(array, kind_of(array)?)).collect::<Result<Vec<_>>>()?;
    let mut builder = Builder::new(expr.kind(), frame.rows());
    let mut row: Vec<Value> = Vec::with_capacity(views.len());
    for at in 0..frame.rows() {
        row.clear();
        row.extend(views.iter().map(|view| ValueRef::to_owned(&view.value(at))));
        builder.push(running.failure.of(expr.evaluate(&row))?.as_ref())?;
    }
    Ok(builder.finish())
}

fn kind_of(array: &ArrayRef) -> Result<Kind> {
    const KINDS: [Kind; 8] = [Kind::Boolean, Kind::Int, Kind::Decimal, Kind::Real, Kind::Double, Kind::Text, Kind::Bytes, Kind::Uuid];
    let found = KINDS.into_iter().find(|kind| crate::arrays::data_type(*kind) == *array.data_type());
    found.ok_or_else(|| DataFusionError::Internal(format!("an array of {}", array.data_type())))
}

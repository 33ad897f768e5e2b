//! Frames of windows: which rows around the current one a function looks at.
//!
//! Invariants: offsets have no columns; a frame of RANGE with an offset has what its one key is compared with as an expression of the row, made as `key - offset` is.

use super::Binder;
use crate::exclusion::Exclusion;
use crate::expression::arithmetic::Operation;
use crate::expression::{Comparison, Expr, Typed, make, type_name};
use crate::parse::At;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Interval, Value};
use sqlparser::ast::{self, WindowFrameBound, WindowFrameUnits};
use sqlparser::tokenizer::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameUnit {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) unit: FrameUnit,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    pub(crate) exclusion: Exclusion,
}

/// Where a frame starts or ends. Without an offset: at the first or last row of the partition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    Preceding(Option<Offset>),
    CurrentRow,
    Following(Option<Offset>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Offset {
    /// Rows or groups.
    Count(Expr),
    /// Of RANGE: the key, what it is compared with, and whether the offset is negative.
    Range { key: Expr, limit: Expr, is_negative: Expr },
}

impl Default for Frame {
    fn default() -> Frame {
        Frame { unit: FrameUnit::Range, start: Bound::Preceding(None), end: Bound::CurrentRow, exclusion: Exclusion::NoOthers }
    }
}

pub(super) fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new("42P20", message)
}

impl Frame {
    /// Shows the expressions of rows in it.
    pub(crate) fn exprs_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        for bound in [&mut self.start, &mut self.end] {
            if let Bound::Preceding(Some(offset)) | Bound::Following(Some(offset)) = bound {
                match offset {
                    Offset::Count(count) => each(count),
                    Offset::Range { key, limit, is_negative } => [key, limit, is_negative].into_iter().for_each(&mut *each),
                }
            }
        }
    }
}

/// Refuses frames that end before they start, whatever the rows are.
fn check(start: &WindowFrameBound, end: &WindowFrameBound) -> SqlResult<()> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    match (start, end) {
        (Following(None), _) => Err(wrong("frame start cannot be UNBOUNDED FOLLOWING")),
        (_, Preceding(None)) => Err(wrong("frame end cannot be UNBOUNDED PRECEDING")),
        (CurrentRow, Preceding(_)) => Err(wrong("frame starting from current row cannot have preceding rows")),
        (Following(_), Preceding(_)) => Err(wrong("frame starting from following row cannot have preceding rows")),
        (Following(_), CurrentRow) => Err(wrong("frame starting from following row cannot end with current row")),
        _ => Ok(()),
    }
}

impl Binder<'_> {
    pub(super) fn frame(&mut self, frame: &ast::WindowFrame, order: &[ast::OrderByExpr], exclusion: Exclusion) -> SqlResult<Frame> {
        let end = frame.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        check(&frame.start_bound, end)?;
        let unit = match frame.units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Range => FrameUnit::Range,
            WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        if unit == FrameUnit::Groups && order.is_empty() {
            return Err(wrong("GROUPS mode requires an ORDER BY clause"));
        }
        let (start, end) = (self.bound(&frame.start_bound, unit, order)?, self.bound(end, unit, order)?);
        Ok(Frame { unit, start, end, exclusion })
    }

    fn bound(&mut self, bound: &WindowFrameBound, unit: FrameUnit, order: &[ast::OrderByExpr]) -> SqlResult<Bound> {
        let mut offset = |offset: &Option<Box<ast::Expr>>, preceding: bool| {
            let Some(offset) = offset else { return Ok(None) };
            if unit == FrameUnit::Range {
                return self.range_offset(offset, preceding, order).map(Some);
            }
            let typed = self.constant_offset(offset, unit)?;
            Ok(Some(Offset::Count(make::coerce(typed, &DataType::BigInt, self.params)?.expr)))
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => Bound::CurrentRow,
            WindowFrameBound::Preceding(by) => Bound::Preceding(offset(by, true)?),
            WindowFrameBound::Following(by) => Bound::Following(offset(by, false)?),
        })
    }

    /// An offset, which is the same for all rows.
    fn constant_offset(&mut self, offset: &ast::Expr, unit: FrameUnit) -> SqlResult<Typed> {
        let typed = self.without_aggregates("window frames", |binder| binder.expression(offset))?;
        if typed.expr.any(|part| matches!(part, Expr::Column { .. })) {
            let unit = format!("{unit:?}").to_uppercase();
            return Err(SqlError::new("42P10", format!("argument of {unit} must not contain variables")));
        }
        Ok(typed)
    }

    fn range_offset(&mut self, offset: &ast::Expr, preceding: bool, order: &[ast::OrderByExpr]) -> SqlResult<Offset> {
        let [by] = order else { return Err(wrong("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")) };
        let key = self.expression(&by.expr)?;
        let (_, key_type) = self.settled(key.clone())?;
        let unsupported = |of: String| {
            let message = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {of}");
            SqlError::new("0A000", message)
        };
        let descending = by.options.asc == Some(false);
        let typed = self.constant_offset(offset, FrameUnit::Range)?;
        // What has no type beside a moment is an interval.
        let is_moment = matches!(key_type, DataType::Date | DataType::Time { .. } | DataType::Timestamp { .. } | DataType::Interval);
        let typed = if typed.data_type.is_none() && is_moment { make::cast(typed, DataType::Interval, self.params)? } else { typed };
        let (_, of) = self.settled(typed.clone())?;
        let is_integer = |of: &DataType| matches!(of, DataType::SmallInt | DataType::Integer | DataType::BigInt);
        // A day is no number of anything: DATE has intervals.
        if is_integer(&key_type) && !is_integer(&of) || is_moment && of != DataType::Interval {
            return Err(unsupported(format!("{} and offset type {}", type_name(&key_type), type_name(&of))));
        }
        let operation = if preceding == descending { Operation::Add } else { Operation::Subtract };
        let limit = make::arithmetic(operation, key.clone(), typed.clone(), self.params)
            .map_err(|_| unsupported(type_name(&key_type).to_string()).at_span(Span::empty()))?;
        let zero = match of {
            DataType::Interval => Typed::of(Expr::Literal(Value::Interval(Interval::ZERO)), of),
            _ => Typed::of(Expr::Literal(Value::Int(0)), DataType::Integer),
        };
        let is_negative = make::compare(Comparison::Less, typed, zero, self.params)?.expr;
        if is_negative == Expr::Literal(Value::Boolean(true)) && of == DataType::Interval {
            return Err(negative_size());
        }
        let (key, limit) = make::alike_by_column(key, limit, self.params)?;
        Ok(Offset::Range { key, limit, is_negative })
    }
}

pub(crate) fn negative_size() -> SqlError {
    SqlError::new("22013", "invalid preceding or following size in window function")
}

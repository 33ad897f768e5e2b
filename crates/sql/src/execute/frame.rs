//! Frames: the rows of a partition that a window function looks at for one of them.
//!
//! Invariant: rows of a frame are those of up to three ranges, in order, which do not overlap; without exclusion it is one.

use super::{Context, Tuple};
use crate::bind::{Bound, Frame, FrameUnit, Offset, WindowOrder};
use crate::exclusion::Exclusion;
use crate::expression::Expr;
use crate::{SqlError, SqlResult};
use pagefold_types::Value;
use std::ops::Range;

/// Rows with the same values of PARTITION BY, in order.
pub(super) struct Partition<'p> {
    pub(super) rows: &'p [Tuple],
    /// Where rows with other values of ORDER BY begin, and the number of rows.
    pub(super) starts: Vec<usize>,
    /// For each row, the number of the group of those that are equal by ORDER BY.
    pub(super) groups: Vec<usize>,
}

impl Partition<'_> {
    /// The rows that are equal to a row by ORDER BY, with itself.
    pub(super) fn peers(&self, row: usize) -> Range<usize> {
        let group = self.groups[row];
        self.starts[group]..self.starts[group + 1]
    }
}

/// Frames of all rows of a partition.
pub(super) struct Frames<'f> {
    partition: &'f Partition<'f>,
    unit: FrameUnit,
    start: Edge<'f>,
    end: Edge<'f>,
    exclusion: Exclusion,
}

/// A bound, with what is the same for all rows computed.
enum Edge<'f> {
    First,
    Last,
    CurrentRow,
    /// Rows or groups.
    Count {
        preceding: bool,
        by: usize,
    },
    Range {
        preceding: bool,
        limit: &'f Expr,
        descending: bool,
        keys: Vec<Value>,
        known: Range<usize>,
    },
}

impl<'f> Frames<'f> {
    pub(super) fn new(
        frame: &'f Frame,
        order: &[WindowOrder],
        partition: &'f Partition<'f>,
        context: &Context<'_>,
    ) -> SqlResult<Frames<'f>> {
        let edge = |bound: &'f Bound, name: &str| {
            let (preceding, offset) = match bound {
                Bound::Preceding(None) => return Ok(Edge::First),
                Bound::Following(None) => return Ok(Edge::Last),
                Bound::CurrentRow => return Ok(Edge::CurrentRow),
                Bound::Preceding(Some(offset)) => (true, offset),
                Bound::Following(Some(offset)) => (false, offset),
            };
            let null = || SqlError::new("22004", format!("frame {name} offset must not be null"));
            match offset {
                Offset::Count(count) => match context.evaluate(count, &[])? {
                    Value::Int(by) => {
                        let negative = |_| SqlError::new("22013", format!("frame {name} offset must not be negative"));
                        Ok(Edge::Count { preceding, by: usize::try_from(by).map_err(negative)? })
                    }
                    _ => Err(null()),
                },
                Offset::Range { key, limit, is_negative } => {
                    match context.evaluate(is_negative, &[])? {
                        Value::Boolean(false) => {}
                        Value::Boolean(true) => return Err(crate::bind::negative_size()),
                        _ => return Err(null()),
                    }
                    let keys = partition.rows.iter().map(|row| context.evaluate(key, row)).collect::<SqlResult<Vec<Value>>>()?;
                    // NULLs are together, first or last.
                    let first = keys.iter().position(|key| *key != Value::Null).unwrap_or(keys.len());
                    let behind = keys.iter().rposition(|key| *key != Value::Null).map_or(first, |last| last + 1);
                    let descending = order.first().is_some_and(|order| order.descending);
                    Ok(Edge::Range { preceding, limit, descending, keys, known: first..behind })
                }
            }
        };
        let (start, end) = (edge(&frame.start, "starting")?, edge(&frame.end, "ending")?);
        Ok(Frames { partition, unit: frame.unit, start, end, exclusion: frame.exclusion })
    }

    /// Bytes that it keeps for each row.
    pub(super) fn bytes_per_row(frame: &Frame) -> usize {
        let keeps =
            |bound: &Bound| matches!(bound, Bound::Preceding(Some(Offset::Range { .. })) | Bound::Following(Some(Offset::Range { .. })));
        size_of::<Value>() * (usize::from(keeps(&frame.start)) + usize::from(keeps(&frame.end)))
    }

    /// From where to where the frame of a row goes, before anything is excluded.
    pub(super) fn whole(&self, row: usize, context: &Context<'_>) -> SqlResult<Range<usize>> {
        let (start, end) = (self.edge(&self.start, row, true, context)?, self.edge(&self.end, row, false, context)?);
        Ok(start..end.max(start))
    }

    /// The first row of the frame, or the one behind its last one.
    fn edge(&self, edge: &Edge<'_>, row: usize, is_start: bool, context: &Context<'_>) -> SqlResult<usize> {
        let all = self.partition.rows.len();
        let at = |range: Range<usize>| if is_start { range.start } else { range.end };
        Ok(match edge {
            Edge::First => 0,
            Edge::Last => all,
            Edge::CurrentRow if self.unit == FrameUnit::Rows => at(row..row + 1),
            Edge::CurrentRow => at(self.partition.peers(row)),
            Edge::Count { preceding, by } => {
                let is_rows = self.unit == FrameUnit::Rows;
                let (own, count) = if is_rows { (row, all) } else { (self.partition.groups[row], self.partition.starts.len() - 1) };
                let own = own + usize::from(!is_start);
                let moved = if *preceding { own.saturating_sub(*by) } else { own.saturating_add(*by).min(count) };
                if is_rows { moved } else { self.partition.starts[moved] }
            }
            Edge::Range { preceding, limit, descending, keys, known } => {
                if keys[row] == Value::Null {
                    return Ok(at(self.partition.peers(row)));
                }
                let limit = match context.evaluate(limit, &self.partition.rows[row]) {
                    // Beyond all that the type has.
                    Err(error) if matches!(error.sqlstate(), "22003" | "22008") => None,
                    limit => Some(limit?),
                };
                let is_no_number = |value: &Value| match value {
                    Value::Double(value) => value.is_nan(),
                    Value::Real(value) => value.is_nan(),
                    _ => false,
                };
                let limit = limit.filter(|limit| is_no_number(&keys[row]) || !is_no_number(limit));
                let Some(limit) = limit else { return Ok(if *preceding { known.start } else { known.end }) };
                let is_before = |key: &Value| {
                    let order = if *descending { limit.cmp(key) } else { key.cmp(&limit) };
                    order.is_lt() || (!is_start && order.is_eq())
                };
                known.start + keys[known.clone()].partition_point(is_before)
            }
        })
    }

    /// Rows of the frame of a row, given from where to where it goes.
    pub(super) fn visible(&self, row: usize, whole: &Range<usize>) -> [Range<usize>; 3] {
        let within = |range: Range<usize>| {
            let start = range.start.clamp(whole.start, whole.end);
            start..range.end.clamp(start, whole.end)
        };
        let peers = self.partition.peers(row);
        let (gone, own) = match self.exclusion {
            Exclusion::NoOthers => return [whole.clone(), whole.end..whole.end, whole.end..whole.end],
            Exclusion::CurrentRow => (row..row + 1, row..row),
            Exclusion::Group => (peers, row..row),
            Exclusion::Ties => (peers, row..row + 1),
        };
        [within(0..gone.start), within(own), within(gone.end..usize::MAX)]
    }

    /// The rows of the frame that the exclusion leaves out.
    pub(super) fn excluded(&self, row: usize, whole: &Range<usize>) -> [Range<usize>; 2] {
        let [before, own, behind] = self.visible(row, whole);
        if self.exclusion == Exclusion::NoOthers {
            return [0..0, 0..0];
        }
        let from = before.end.max(whole.start);
        let until = behind.start.max(from);
        if own.is_empty() { [from..until, 0..0] } else { [from..own.start, own.end..until] }
    }
}

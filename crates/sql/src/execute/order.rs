//! Sorting, and limits.
//!
//! Rows that do not fit the memory of the statement are sorted in runs, which are written and merged: up to [`FAN_IN`] at once (Knuth, The Art of Computer Programming 3, 5.4.1).

use super::spill::{RowWriter, Rows, Share};
use super::{Context, Operator, Tuple, bytes_of, given, open};
use crate::bind::{Limit, SortKey};
use crate::plan::{LimitPlan, SortPlan};
use crate::{SqlError, SqlResult};
use pagefold_types::Value;
use std::sync::Arc;

/// Runs that are merged at once; each has a block in memory.
const FAN_IN: usize = 32;

/// LIMIT and OFFSET of the moment: rows to leave out, and rows to give.
pub(crate) fn bounds(limit: &Limit, context: &Context<'_>) -> SqlResult<(u64, u64)> {
    let number = |expr: &Option<crate::expression::Expr>, name: &str, sqlstate| match expr {
        None => Ok(None),
        Some(expr) => match context.evaluate(expr, &[])? {
            Value::Int(rows) => match u64::try_from(rows) {
                Ok(rows) => Ok(Some(rows)),
                Err(_) => Err(SqlError::new(sqlstate, format!("{name} must not be negative"))),
            },
            _ => Ok(None),
        },
    };
    let offset = number(&limit.offset, "OFFSET", "2201X")?.unwrap_or(0);
    let rows = number(&limit.limit, "LIMIT", "2201W")?.unwrap_or(u64::MAX);
    Ok((offset, rows))
}

pub(crate) struct LimitRows {
    input: Box<dyn Operator>,
    plan: Arc<LimitPlan>,
    skip: u64,
    left: u64,
    /// The last row that is counted, where those equal to it come, too.
    last: Option<Tuple>,
}

impl LimitRows {
    pub(crate) fn open(plan: &Arc<LimitPlan>, context: &Context<'_>) -> SqlResult<LimitRows> {
        let (skip, left) = bounds(&plan.limit, context)?;
        Ok(LimitRows { input: super::open_for_few(&plan.input, context)?, plan: Arc::clone(plan), skip, left, last: None })
    }
}

impl Operator for LimitRows {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        let ties = &self.plan.limit.ties;
        if self.left == 0 {
            let Some(last) = &self.last else { return Ok(false) };
            if self.input.fill(context, row)? && SortKey::compare(last, row, ties).is_eq() {
                return Ok(true);
            }
            self.last = None;
            return Ok(false);
        }
        while self.skip > 0 {
            self.skip -= 1;
            if !self.input.fill(context, row)? {
                self.left = 0;
                return Ok(false);
            }
        }
        self.left -= 1;
        let is_there = self.input.fill(context, row)?;
        if self.left == 0 && is_there && !ties.is_empty() {
            self.last = Some(row.clone());
        }
        Ok(is_there)
    }
}

/// Rows in order. Rows that are equal stay as they came.
pub(crate) enum Sort {
    Rows { rows: std::vec::IntoIter<Tuple>, share: Share },
    Runs { merge: Merge, left: usize },
}

impl Sort {
    pub(crate) fn open(plan: &Arc<SortPlan>, context: &Context<'_>) -> SqlResult<Sort> {
        let (offset, limit) = bounds(&plan.limit, context)?;
        let wanted = usize::try_from(offset.saturating_add(limit)).unwrap_or(usize::MAX);
        Sort::of(open(&plan.input, context)?, &plan.keys, wanted, context)
    }

    /// Sorts what comes, of which the first so many rows are wanted.
    pub(crate) fn of(mut input: Box<dyn Operator>, keys: &[SortKey], wanted: usize, context: &Context<'_>) -> SqlResult<Sort> {
        let (execution, budget) = (context.execution, &context.execution.budget);
        let (mut rows, mut share): (Vec<Tuple>, Share) = (Vec::new(), Share::default());
        let mut runs = Vec::new();
        while let Some(row) = input.next(context)? {
            execution.look()?;
            let bytes = bytes_of(&row);
            if !share.take(budget, bytes) {
                runs.push(written(context, &mut rows, keys, wanted)?);
                share.give_all_back(budget);
                share.force(budget, bytes);
            }
            rows.push(row);
            // Twice as many as are wanted are sorted, and the half goes.
            if rows.len() >= wanted.saturating_mul(2).max(1024) && rows.len() > wanted {
                rows.sort_by(|a, b| SortKey::compare(a, b, keys));
                let gone: usize = rows.drain(wanted..).map(|row| bytes_of(&row)).sum();
                share.give_back(budget, gone);
            }
        }
        drop(input);
        if runs.is_empty() {
            rows.sort_by(|a, b| SortKey::compare(a, b, keys));
            rows.truncate(wanted);
            return Ok(Sort::Rows { rows: rows.into_iter(), share });
        }
        runs.push(written(context, &mut rows, keys, wanted)?);
        share.give_all_back(budget);
        // Runs that follow each other become one: so equal rows stay in their order.
        while runs.len() > FAN_IN {
            let mut merged = Vec::with_capacity(runs.len().div_ceil(FAN_IN));
            let mut rest = runs.into_iter();
            loop {
                let some: Vec<Rows> = rest.by_ref().take(FAN_IN).collect();
                if some.is_empty() {
                    break;
                }
                let mut merge = Merge::of(some, keys)?;
                let (mut writer, mut row, mut count) = (RowWriter::new(execution), Tuple::new(), 0);
                while count < wanted && merge.fill(&mut row)? {
                    execution.look()?;
                    writer.push(execution, &row)?;
                    count += 1;
                }
                merged.push(writer.finish(execution)?);
            }
            runs = merged;
        }
        Ok(Sort::Runs { merge: Merge::of(runs, keys)?, left: wanted })
    }
}

/// Sorts rows and writes those that are wanted, as a run.
fn written(context: &Context<'_>, rows: &mut Vec<Tuple>, keys: &[SortKey], wanted: usize) -> SqlResult<Rows> {
    rows.sort_by(|a, b| SortKey::compare(a, b, keys));
    let mut writer = RowWriter::new(context.execution);
    for row in rows.drain(..).take(wanted) {
        context.execution.look()?;
        writer.push(context.execution, &row)?;
    }
    writer.finish(context.execution)
}

impl Operator for Sort {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        match self {
            Sort::Rows { rows, share } => {
                let next = rows.next();
                if let Some(next) = &next {
                    share.give_back(&context.execution.budget, bytes_of(next));
                }
                Ok(given(next, row))
            }
            Sort::Runs { left: 0, .. } => Ok(false),
            Sort::Runs { merge, left } => {
                *left -= 1;
                merge.fill(row)
            }
        }
    }
}

/// Sorted runs as one.
pub(crate) struct Merge {
    /// Each with its next row.
    runs: Vec<(Rows, Tuple)>,
    /// Numbers of runs that have a row, the one that comes next at the end.
    order: Vec<usize>,
    keys: Vec<SortKey>,
}

impl Merge {
    fn of(runs: Vec<Rows>, keys: &[SortKey]) -> SqlResult<Merge> {
        let runs = runs.into_iter().map(|run| (run, Tuple::new())).collect();
        let mut merge = Merge { runs, order: Vec::new(), keys: keys.to_vec() };
        (0..merge.runs.len()).try_for_each(|number| merge.next_of(number))?;
        Ok(merge)
    }

    /// Reads the next row of a run, and puts the run in its place.
    fn next_of(&mut self, number: usize) -> SqlResult<()> {
        let (run, row) = &mut self.runs[number];
        if run.read(row)? {
            let row = &self.runs[number].1;
            // Of equal rows those of earlier runs come first.
            let is_later = |other: &usize| SortKey::compare(&self.runs[*other].1, row, &self.keys).then(other.cmp(&number)).is_gt();
            let at = self.order.partition_point(is_later);
            self.order.insert(at, number);
        }
        Ok(())
    }

    fn fill(&mut self, row: &mut Tuple) -> SqlResult<bool> {
        let Some(number) = self.order.pop() else { return Ok(false) };
        std::mem::swap(&mut self.runs[number].1, row);
        self.next_of(number)?;
        Ok(true)
    }
}

//! Window functions.
//!
//! Invariants:
//! - rows come in the order of their window, those of one partition together; those that are equal stay as they came;
//! - values are computed for one partition at a time, and rows and values that are kept are charged;
//! - an aggregate whose frame only grows takes each row in once; one whose frame moves takes out what leaves, where that is exact, and begins again where it is not.

use super::frame::{Frames, Partition};
use super::order::compare;
use super::{Context, Operator, Tuple, bytes_of, open};
use crate::bind::{SortKey, WindowCall, WindowFunction};
use crate::expression::aggregate::Aggregate;
use crate::expression::{Accumulator, Expr};
use crate::plan::WindowPlan;
use crate::{SqlError, SqlResult};
use pagefold_types::{Value, ValueRef};
use std::ops::Range;
use std::sync::Arc;

/// Rows with the values of window functions behind them.
pub(super) struct Windows {
    plan: Arc<WindowPlan>,
    /// Behind the columns of the input: what rows are sorted by, as far as it is no column.
    rows: Vec<Tuple>,
    partition: Vec<SortKey>,
    order: Vec<SortKey>,
    /// The row that comes next, and the end of the partition whose values are computed.
    next: usize,
    end: usize,
    /// Of the rows of the partition that are left, for each call.
    values: Vec<std::vec::IntoIter<Value>>,
    /// What those are charged with.
    bytes: usize,
}

impl Windows {
    pub(super) fn open<'p>(plan: &'p Arc<WindowPlan>, context: &Context<'_>) -> SqlResult<Windows> {
        let mut computed: Vec<&Expr> = Vec::new();
        let mut key = |expr: &'p Expr, descending, nulls_first| {
            let slot = if let Expr::Slot(slot) = expr {
                *slot
            } else {
                computed.push(expr);
                plan.width + computed.len() - 1
            };
            SortKey { slot, descending, nulls_first }
        };
        let partition: Vec<SortKey> = plan.partition.iter().map(|expr| key(expr, false, false)).collect();
        let order: Vec<SortKey> = plan.order.iter().map(|order| key(&order.expr, order.descending, order.nulls_first)).collect();
        let mut input = open(&plan.input, context)?;
        let mut rows = Vec::new();
        while let Some(mut row) = input.next(context)? {
            context.execution.look()?;
            let more = computed.iter().map(|expr| context.evaluate(expr, &row)).collect::<SqlResult<Tuple>>()?;
            row.extend(more);
            context.execution.budget.take(bytes_of(&row))?;
            rows.push(row);
        }
        let keys = [partition.as_slice(), order.as_slice()].concat();
        rows.sort_by(|a, b| compare(a, b, &keys));
        Ok(Windows { plan: Arc::clone(plan), rows, partition, order, next: 0, end: 0, values: Vec::new(), bytes: 0 })
    }

    /// Computes the values of the next partition. False: there is none.
    fn compute(&mut self, context: &Context<'_>) -> SqlResult<bool> {
        context.execution.budget.give_back(std::mem::take(&mut self.bytes));
        let Some(first) = self.rows.get(self.next) else { return Ok(false) };
        let rest = &self.rows[self.next..];
        let count = rest.partition_point(|row| compare(first, row, &self.partition).is_eq());
        let rows = &rest[..count];
        let mut charge = Charge { context, bytes: 0 };
        charge.take(count.saturating_mul(2 * size_of::<usize>()))?;
        let (mut starts, mut groups) = (vec![0], Vec::with_capacity(count));
        for row in 0..count {
            if row > 0 && compare(&rows[row - 1], &rows[row], &self.order).is_ne() {
                starts.push(row);
            }
            groups.push(starts.len() - 1);
        }
        starts.push(count);
        let partition = Partition { rows, starts, groups };
        let mut values = Vec::with_capacity(self.plan.calls.len());
        for call in &self.plan.calls {
            values.push(Computing { call, plan: &self.plan, partition: &partition, context }.values(&mut charge)?.into_iter());
        }
        self.bytes = charge.bytes;
        (self.values, self.end) = (values, self.next + count);
        Ok(true)
    }
}

impl Operator for Windows {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if self.next == self.end && !self.compute(context)? {
            return Ok(false);
        }
        *row = std::mem::take(&mut self.rows[self.next]);
        self.next += 1;
        row.truncate(self.plan.width);
        row.extend(self.values.iter_mut().filter_map(Iterator::next));
        Ok(true)
    }
}

/// Memory that is taken until the values of a partition are out.
struct Charge<'c> {
    context: &'c Context<'c>,
    bytes: usize,
}

impl Charge<'_> {
    fn take(&mut self, bytes: usize) -> SqlResult<()> {
        self.context.execution.budget.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

/// A call, on the rows of a partition.
struct Computing<'c> {
    call: &'c WindowCall,
    plan: &'c WindowPlan,
    partition: &'c Partition<'c>,
    context: &'c Context<'c>,
}

impl Computing<'_> {
    /// Its value for each row.
    fn values(&self, charge: &mut Charge<'_>) -> SqlResult<Vec<Value>> {
        use WindowFunction as F;
        let rows = self.partition.rows.len();
        let int = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let peers = |row: usize| self.partition.peers(row);
        match &self.call.function {
            F::RowNumber => self.each(charge, |row| Ok(int(row + 1))),
            F::Rank => self.each(charge, |row| Ok(int(peers(row).start + 1))),
            F::DenseRank => self.each(charge, |row| Ok(int(self.partition.groups[row] + 1))),
            F::PercentRank => self.each(charge, |row| Ok(Value::Double(peers(row).start as f64 / (rows - 1).max(1) as f64))),
            F::CumeDist => self.each(charge, |row| Ok(Value::Double(peers(row).end as f64 / rows as f64))),
            F::Ntile => {
                let Value::Int(tiles) = self.argument(0, 0)? else { return self.each(charge, |_| Ok(Value::Null)) };
                let tiles = usize::try_from(tiles).ok().filter(|tiles| *tiles > 0);
                let tiles = tiles.ok_or_else(|| SqlError::new("22014", "argument of ntile must be greater than zero"))?;
                // The first tiles have one row more than the others, where it does not come out even.
                let (size, larger) = (rows / tiles, rows % tiles);
                self.each(charge, |row| {
                    let of_larger = larger * (size + 1);
                    Ok(int(if row < of_larger { row / (size + 1) } else { larger + (row - of_larger) / size } + 1))
                })
            }
            F::Lag => self.each(charge, |row| self.shifted(row, -1)),
            F::Lead => self.each(charge, |row| self.shifted(row, 1)),
            F::FirstValue | F::LastValue | F::NthValue => self.of_frames(charge),
            F::Aggregate(aggregate) => self.aggregates(aggregate, charge),
        }
    }

    fn each(&self, charge: &mut Charge<'_>, value: impl Fn(usize) -> SqlResult<Value>) -> SqlResult<Vec<Value>> {
        let mut values = Vec::new();
        for row in 0..self.partition.rows.len() {
            self.context.execution.look()?;
            let value = value(row)?;
            charge.take(bytes_of(std::slice::from_ref(&value)))?;
            values.push(value);
        }
        Ok(values)
    }

    fn argument(&self, number: usize, row: usize) -> SqlResult<Value> {
        self.call.arguments.get(number).map_or(Ok(Value::Null), |argument| self.context.evaluate(argument, &self.partition.rows[row]))
    }

    /// LAG and LEAD.
    fn shifted(&self, row: usize, sign: i64) -> SqlResult<Value> {
        let by = match self.call.arguments.get(1) {
            None => 1,
            Some(_) => match self.argument(1, row)? {
                Value::Int(by) => by,
                _ => return Ok(Value::Null),
            },
        };
        let target = i64::try_from(row).ok().and_then(|row| row.checked_add(by.checked_mul(sign)?));
        match target.and_then(|target| usize::try_from(target).ok()).filter(|target| *target < self.partition.rows.len()) {
            Some(target) => self.argument(0, target),
            None => self.argument(2, row),
        }
    }

    fn frames(&self, charge: &mut Charge<'_>) -> SqlResult<Frames<'_>> {
        let frame = &self.call.window.frame;
        charge.take(self.partition.rows.len().saturating_mul(Frames::bytes_per_row(frame)))?;
        Frames::new(frame, &self.plan.order, self.partition, self.context)
    }

    /// FIRST_VALUE, LAST_VALUE, NTH_VALUE.
    fn of_frames(&self, charge: &mut Charge<'_>) -> SqlResult<Vec<Value>> {
        let frames = self.frames(charge)?;
        self.each(charge, |row| {
            let whole = frames.whole(row, self.context)?;
            let visible = frames.visible(row, &whole);
            let mut left = match self.call.function {
                WindowFunction::NthValue => {
                    let Value::Int(number) = self.argument(1, row)? else { return Ok(Value::Null) };
                    let number = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                    number.ok_or_else(|| SqlError::new("22016", "argument of nth_value must be greater than zero"))?
                }
                _ => 0,
            };
            let found = if self.call.function == WindowFunction::LastValue {
                visible.iter().rev().find(|range| !range.is_empty()).map(|range| range.end - 1)
            } else {
                visible.iter().find_map(|range| {
                    let found = (left < range.len()).then(|| range.start + left);
                    left = left.saturating_sub(range.len());
                    found
                })
            };
            found.map_or(Ok(Value::Null), |found| self.argument(0, found))
        })
    }

    fn aggregates(&self, aggregate: &Aggregate, charge: &mut Charge<'_>) -> SqlResult<Vec<Value>> {
        let frames = self.frames(charge)?;
        let input = self.each(charge, |row| {
            let counts = match &self.call.filter {
                Some(filter) => self.context.is_true(filter, &self.partition.rows[row])?,
                None => true,
            };
            match (counts, self.call.arguments.is_empty()) {
                // What is NULL counts nowhere.
                (false, _) => Ok(Value::Null),
                (true, true) => Ok(Value::Boolean(true)),
                (true, false) => self.argument(0, row),
            }
        })?;
        let mut running = Running { aggregate, input: &input, state: Accumulator::new(aggregate), rows: 0..0, context: self.context };
        let mut values: Vec<Value> = Vec::new();
        let mut last: Option<[Range<usize>; 3]> = None;
        for row in 0..input.len() {
            self.context.execution.look()?;
            let whole = frames.whole(row, self.context)?;
            let visible = frames.visible(row, &whole);
            let value = match (&last, values.last()) {
                (Some(last), Some(value)) if *last == visible => value.clone(),
                _ => running.value(&whole, &visible, &frames.excluded(row, &whole))?,
            };
            charge.take(bytes_of(std::slice::from_ref(&value)))?;
            values.push(value);
            last = Some(visible);
        }
        Ok(values)
    }
}

/// An aggregate that goes with a frame.
struct Running<'r> {
    aggregate: &'r Aggregate,
    input: &'r [Value],
    state: Accumulator,
    /// Rows that have been taken in.
    rows: Range<usize>,
    context: &'r Context<'r>,
}

impl Running<'_> {
    /// The value of the rows of these ranges: of a frame without those that are excluded.
    fn value(&mut self, whole: &Range<usize>, visible: &[Range<usize>], excluded: &[Range<usize>]) -> SqlResult<Value> {
        let is_exact = self.state.is_exact();
        let count = |ranges: &[Range<usize>]| ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
        if count(excluded) > 0 && (!is_exact || count(visible) < count(excluded)) {
            let mut state = Accumulator::new(self.aggregate);
            for range in visible {
                self.take_in(&mut state, range.clone())?;
            }
            return state.finish();
        }
        let goes_on = whole.start >= self.rows.start && whole.end >= self.rows.end && whole.start < self.rows.end;
        if !goes_on || (whole.start > self.rows.start && !is_exact) {
            self.state = Accumulator::new(self.aggregate);
            self.rows = whole.start..whole.start;
        }
        let mut state = std::mem::replace(&mut self.state, Accumulator::new(self.aggregate));
        self.take_out(&mut state, self.rows.start..whole.start)?;
        self.take_in(&mut state, self.rows.end..whole.end)?;
        self.rows = whole.clone();
        for range in excluded {
            self.take_out(&mut state, range.clone())?;
        }
        let value = state.value()?;
        for range in excluded {
            self.take_in(&mut state, range.clone())?;
        }
        self.state = state;
        Ok(value)
    }

    fn take_in(&self, state: &mut Accumulator, rows: Range<usize>) -> SqlResult<()> {
        for row in rows {
            self.context.execution.look()?;
            state.add(self.input[row].as_ref())?;
        }
        Ok(())
    }

    fn take_out(&self, state: &mut Accumulator, rows: Range<usize>) -> SqlResult<()> {
        for row in rows {
            self.context.execution.look()?;
            let value: ValueRef<'_> = self.input[row].as_ref();
            state.remove(value)?;
        }
        Ok(())
    }
}

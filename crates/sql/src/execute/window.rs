//! Window functions.
//!
//! Invariants:
//! - rows come in the order of their window, those of one partition together; those that are equal stay as they came;
//! - rows are sorted as ORDER BY sorts them, in runs on a file where they do not fit; values are computed for one partition at a time, or where all calls only look back (`running`) for the rows
//!   that are equal in order; rows and values that are kept meanwhile are charged;
//! - an aggregate whose frame only grows takes each row in once; one whose frame moves takes out what leaves, where that is exact, and begins again where it is not.

use super::frame::{Frames, Partition};
use super::order::Sort;
use super::running::Running;
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
    /// Rows in their order, behind whose columns is what they are sorted by, as far as it is no column.
    sorted: Sort,
    partition: Vec<SortKey>,
    order: Vec<SortKey>,
    /// The first row of the partition, or of the peers, that comes next.
    ahead: Option<Tuple>,
    /// Rows whose values are computed.
    rows: std::vec::IntoIter<Tuple>,
    /// Of these rows, for each call.
    values: Vec<std::vec::IntoIter<Value>>,
    /// What both are charged with.
    bytes: usize,
    /// Where all calls only look back: what they know of the rows before.
    running: Option<Running>,
}

/// Rows with what they are sorted by.
struct WithKeys {
    plan: Arc<WindowPlan>,
    input: Box<dyn Operator>,
    /// Numbers of the expressions of PARTITION BY, and behind them ORDER BY, that are no columns.
    computed: Vec<usize>,
}

impl WithKeys {
    fn key(plan: &WindowPlan, number: usize) -> Option<&Expr> {
        plan.partition.get(number).or_else(|| plan.order.get(number - plan.partition.len()).map(|order| &order.expr))
    }
}

impl Operator for WithKeys {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if !self.input.fill(context, row)? {
            return Ok(false);
        }
        for number in &self.computed {
            let Some(expr) = WithKeys::key(&self.plan, *number) else { continue };
            let value = context.evaluate(expr, row)?;
            row.push(value);
        }
        Ok(true)
    }
}

impl Windows {
    pub(super) fn open(plan: &Arc<WindowPlan>, context: &Context<'_>) -> SqlResult<Windows> {
        let mut computed: Vec<usize> = Vec::new();
        let mut slot = |number: usize, expr: &Expr| match expr {
            Expr::Slot(slot) => *slot,
            _ => {
                computed.push(number);
                plan.width + computed.len() - 1
            }
        };
        let mut partition = Vec::with_capacity(plan.partition.len());
        for (number, expr) in plan.partition.iter().enumerate() {
            partition.push(SortKey { slot: slot(number, expr), descending: false, nulls_first: false });
        }
        let mut order = Vec::with_capacity(plan.order.len());
        for (number, own) in plan.order.iter().enumerate() {
            let slot = slot(partition.len() + number, &own.expr);
            order.push(SortKey { slot, descending: own.descending, nulls_first: own.nulls_first });
        }
        let keys = [partition.as_slice(), order.as_slice()].concat();
        let input = Box::new(WithKeys { plan: Arc::clone(plan), input: open(&plan.input, context)?, computed });
        let mut sorted = Sort::of(input, &keys, usize::MAX, context)?;
        let ahead = sorted.next(context)?;
        let running = Running::new(plan);
        Ok(Windows {
            plan: Arc::clone(plan),
            sorted,
            partition,
            order,
            ahead,
            rows: Vec::new().into_iter(),
            values: Vec::new(),
            bytes: 0,
            running,
        })
    }

    /// The next rows: those that are equal by some keys to the one that comes next.
    fn gather(&mut self, first: Tuple, by_order: bool, charge: &mut Charge<'_>) -> SqlResult<Vec<Tuple>> {
        charge.take(bytes_of(&first))?;
        let mut rows = vec![first];
        while let Some(row) = self.sorted.next(charge.context)? {
            let first = &rows[0];
            if SortKey::compare(first, &row, &self.partition).is_ne() || (by_order && SortKey::compare(first, &row, &self.order).is_ne()) {
                self.ahead = Some(row);
                break;
            }
            charge.context.execution.look()?;
            charge.take(bytes_of(&row))?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Computes the values of the rows that come next. False: there are none.
    fn compute(&mut self, context: &Context<'_>) -> SqlResult<bool> {
        context.execution.budget.give_back(std::mem::take(&mut self.bytes));
        let Some(first) = self.ahead.take() else { return Ok(false) };
        let mut charge = Charge { context, bytes: 0 };
        let (rows, values) = match self.running.take() {
            Some(mut running) => {
                running.begin(&first, &self.partition, &self.plan);
                // Peers are told from each other by no call that goes row by row.
                let rows = if running.by_rows {
                    charge.take(bytes_of(&first)).map(|()| vec![first])?
                } else {
                    self.gather(first, true, &mut charge)?
                };
                if running.by_rows {
                    self.ahead = self.sorted.next(context)?;
                }
                let values = running.values(&rows, &self.order, &self.plan, &mut charge)?;
                self.running = Some(running);
                (rows, values)
            }
            None => {
                let rows = self.gather(first, false, &mut charge)?;
                let values = self.values_of_partition(&rows, &mut charge)?;
                (rows, values)
            }
        };
        self.bytes = charge.bytes;
        self.values = values.into_iter().map(Vec::into_iter).collect();
        self.rows = rows.into_iter();
        Ok(true)
    }

    /// The values of all calls for the rows of a partition.
    fn values_of_partition(&self, rows: &[Tuple], charge: &mut Charge<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let (count, context) = (rows.len(), charge.context);
        charge.take(count.saturating_mul(2 * size_of::<usize>()))?;
        let (mut starts, mut groups) = (vec![0], Vec::with_capacity(count));
        for row in 0..count {
            if row > 0 && SortKey::compare(&rows[row - 1], &rows[row], &self.order).is_ne() {
                starts.push(row);
            }
            groups.push(starts.len() - 1);
        }
        starts.push(count);
        let partition = Partition { rows, starts, groups };
        let computing = |call| Computing { call, plan: &self.plan, partition: &partition, context };
        self.plan.calls.iter().map(|call| computing(call).values(charge)).collect()
    }
}

impl Operator for Windows {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        loop {
            if let Some(next) = self.rows.next() {
                *row = next;
                row.truncate(self.plan.width);
                row.extend(self.values.iter_mut().filter_map(Iterator::next));
                return Ok(true);
            }
            if !self.compute(context)? {
                return Ok(false);
            }
        }
    }
}

/// Memory that is taken until the values of a partition are out.
pub(super) struct Charge<'c> {
    context: &'c Context<'c>,
    bytes: usize,
}

impl<'c> Charge<'c> {
    pub(super) fn context(&self) -> &'c Context<'c> {
        self.context
    }

    pub(super) fn take(&mut self, bytes: usize) -> SqlResult<()> {
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
        let mut running = Moving { aggregate, input: &input, state: Accumulator::new(aggregate), rows: 0..0, context: self.context };
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
struct Moving<'r> {
    aggregate: &'r Aggregate,
    input: &'r [Value],
    state: Accumulator,
    /// Rows that have been taken in.
    rows: Range<usize>,
    context: &'r Context<'r>,
}

impl Moving<'_> {
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

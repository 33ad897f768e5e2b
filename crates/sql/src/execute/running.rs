//! Window functions that only look back: numbers and ranks of rows, and aggregates of all rows up to the current one. Of a partition of whatever size they need what they have counted, and the rows
//! that are equal in order to the current one.
//!
//! Invariant: the values are those that the whole partition gives (`window`).

use super::window::Charge;
use super::{Tuple, bytes_of};
use crate::SqlResult;
use crate::bind::{Bound, Frame, FrameUnit, SortKey, WindowCall, WindowFunction};
use crate::exclusion::Exclusion;
use crate::expression::Accumulator;
use crate::plan::WindowPlan;
use pagefold_types::Value;

/// What calls know of the rows of a partition that came before.
pub(super) struct Running {
    /// No call needs the rows that are equal in order.
    pub(super) by_rows: bool,
    /// What the rows of the partition have in its keys.
    of: Option<Vec<Value>>,
    rows: usize,
    groups: usize,
    /// The first row of those that are equal to the last one.
    peers: usize,
    /// What the last row has in the keys of the order, by which new groups are told.
    last: Option<Vec<Value>>,
    /// For each call that is an aggregate.
    states: Vec<Option<Accumulator>>,
}

fn key_of(row: &[Value], keys: &[SortKey]) -> Vec<Value> {
    keys.iter().map(|key| row[key.slot].clone()).collect()
}

fn is_of(known: &[Value], row: &[Value], keys: &[SortKey]) -> bool {
    known.iter().zip(keys).all(|(value, key)| value.cmp(&row[key.slot]).is_eq())
}

/// Does its frame have all rows up to the current one, or up to those that are equal to it?
fn looks_back(frame: &Frame) -> bool {
    frame.start == Bound::Preceding(None) && frame.end == Bound::CurrentRow && frame.exclusion == Exclusion::NoOthers
}

fn is_running(call: &WindowCall) -> bool {
    match &call.function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => true,
        // What gathers all values would be gone through for each row.
        WindowFunction::Aggregate(aggregate) => looks_back(&call.window.frame) && !Accumulator::new(aggregate).gathers(),
        _ => false,
    }
}

fn is_by_rows(call: &WindowCall) -> bool {
    !matches!(call.function, WindowFunction::Aggregate(_)) || call.window.frame.unit == FrameUnit::Rows
}

impl Running {
    /// Nothing where a call needs more of a partition.
    pub(super) fn new(plan: &WindowPlan) -> Option<Running> {
        plan.calls.iter().all(is_running).then(|| Running {
            by_rows: plan.calls.iter().all(is_by_rows),
            of: None,
            rows: 0,
            groups: 0,
            peers: 0,
            last: None,
            states: Vec::new(),
        })
    }

    /// Rows come, of which this is the first: perhaps of another partition.
    pub(super) fn begin(&mut self, first: &Tuple, partition: &[SortKey], plan: &WindowPlan) {
        if self.of.as_ref().is_some_and(|of| is_of(of, first, partition)) {
            return;
        }
        let state = |call: &WindowCall| match &call.function {
            WindowFunction::Aggregate(aggregate) => Some(Accumulator::new(aggregate)),
            _ => None,
        };
        self.of = Some(key_of(first, partition));
        (self.rows, self.groups, self.peers, self.last) = (0, 0, 0, None);
        self.states = plan.calls.iter().map(state).collect();
    }

    /// The values of all calls for rows that are equal in order, or for one row.
    pub(super) fn values(
        &mut self,
        rows: &[Tuple],
        order: &[SortKey],
        plan: &WindowPlan,
        charge: &mut Charge<'_>,
    ) -> SqlResult<Vec<Vec<Value>>> {
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        if self.last.as_ref().is_none_or(|last| !is_of(last, first, order)) {
            (self.groups, self.peers) = (self.groups + 1, self.rows);
            self.last = Some(key_of(first, order));
        }
        let int = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let mut all = Vec::with_capacity(plan.calls.len());
        for (call, state) in plan.calls.iter().zip(&mut self.states) {
            let mut values = Vec::with_capacity(rows.len());
            match (&call.function, state) {
                (WindowFunction::RowNumber, _) => values.extend((0..rows.len()).map(|row| int(self.rows + row + 1))),
                (WindowFunction::Rank, _) => values.resize(rows.len(), int(self.peers + 1)),
                (WindowFunction::DenseRank, _) => values.resize(rows.len(), int(self.groups)),
                (_, Some(state)) if call.window.frame.unit == FrameUnit::Rows => {
                    for row in rows {
                        take_in(state, call, row, charge)?;
                        values.push(state.value()?);
                    }
                }
                (_, Some(state)) => {
                    rows.iter().try_for_each(|row| take_in(state, call, row, charge))?;
                    values.resize(rows.len(), state.value()?);
                }
                (_, None) => values.resize(rows.len(), Value::Null),
            }
            charge.take(bytes_of(&values))?;
            all.push(values);
        }
        self.rows += rows.len();
        Ok(all)
    }
}

fn take_in(state: &mut Accumulator, call: &WindowCall, row: &Tuple, charge: &Charge<'_>) -> SqlResult<()> {
    let context = charge.context();
    context.execution.look()?;
    if let Some(filter) = &call.filter
        && !context.is_true(filter, row)?
    {
        return Ok(());
    }
    match call.arguments.first() {
        Some(argument) => state.add(context.evaluate(argument, row)?.as_ref()),
        None => state.add(Value::Boolean(true).as_ref()),
    }
}

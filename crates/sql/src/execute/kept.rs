//! Rows of queries of WITH that are kept: what a statement of WITH has returned that changes rows, and rows of a query that would give others each time.
//!
//! Invariant: they are charged to the statement, which keeps them until it ends.

use super::{Context, Execution, Operator, Tuple, bytes_of, open};
use crate::plan::SharedPlan;
use crate::{SqlError, SqlResult};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows by the number of their query.
#[derive(Default)]
pub(super) struct KeptRows(RefCell<HashMap<usize, Arc<Vec<Tuple>>>>);

impl Execution {
    /// Keeps rows that are charged already.
    pub(crate) fn keep(&self, number: usize, rows: Vec<Tuple>) {
        self.kept.0.borrow_mut().insert(number, Arc::new(rows));
    }
}

/// Rows that are kept, one after the other.
pub(super) struct Again {
    rows: Arc<Vec<Tuple>>,
    at: usize,
}

impl Again {
    pub(super) fn of(rows: Arc<Vec<Tuple>>) -> Again {
        Again { rows, at: 0 }
    }

    pub(super) fn open(number: usize, context: &Context<'_>) -> SqlResult<Again> {
        let rows = context.execution.kept.0.borrow().get(&number).cloned();
        let rows = rows.ok_or_else(|| SqlError::new("XX000", "rows of WITH are read before they are there"))?;
        Ok(Again::of(rows))
    }
}

impl Operator for Again {
    fn fill(&mut self, _: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        let Some(next) = self.rows.get(self.at) else { return Ok(false) };
        self.at += 1;
        row.clone_from(next);
        Ok(true)
    }
}

/// Opens a query whose rows are the same each time.
pub(super) fn open_shared(plan: &SharedPlan, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    if !plan.repeats.load(Ordering::Relaxed) {
        return open(&plan.input, context);
    }
    let execution = context.execution;
    if !execution.kept.0.borrow().contains_key(&plan.number) {
        let mut input = open(&plan.input, context)?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = input.next(context)? {
            execution.look()?;
            let more = bytes_of(&row);
            execution.budget.take(more)?;
            bytes += more;
            rows.push(row);
        }
        execution.known.charge(bytes);
        execution.keep(plan.number, rows);
    }
    Ok(Box::new(Again::open(plan.number, context)?))
}

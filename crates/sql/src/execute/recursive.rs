//! Recursive queries: semi-naive evaluation (Bancilhon, Naive Evaluation of Recursively Defined Relations, 1985): each step sees the new rows of the step before, and no others.
//!
//! Invariant: rows of a step are read once, by the one [`Step`] that is open.

use super::set::whole_key;
use super::spill::{ListRows, RowList};
use super::{Context, Operator, Tuple, open};
use crate::plan::RecursivePlan;
use crate::{SqlError, SqlResult};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Rows of steps that are to be read, by the number of their query.
#[derive(Debug, Default)]
pub(crate) struct Steps(RefCell<BTreeMap<usize, ListRows>>);

pub(crate) struct Recursive {
    plan: Arc<RecursivePlan>,
    /// The first part, or the step that runs.
    running: Box<dyn Operator>,
    /// Its rows, for the step after it.
    new: RowList,
    count: u64,
    /// All rows that came, unless each is new.
    seen: HashSet<Box<[u8]>>,
    key: Vec<u8>,
}

impl Recursive {
    pub(crate) fn open(plan: &Arc<RecursivePlan>, context: &Context<'_>) -> SqlResult<Recursive> {
        let running = open(&plan.first, context)?;
        let (seen, key) = (HashSet::new(), Vec::new());
        Ok(Recursive { plan: Arc::clone(plan), running, new: RowList::default(), count: 0, seen, key })
    }

    fn is_new(&mut self, row: &Tuple, context: &Context<'_>) -> SqlResult<bool> {
        if self.plan.all {
            return Ok(true);
        }
        whole_key(row, &mut self.key);
        if self.seen.contains(self.key.as_slice()) {
            return Ok(false);
        }
        // A later step may give it again, so nothing of this can wait in a file.
        context.execution.budget.take(self.key.len() + 32)?;
        self.seen.insert(self.key.as_slice().into());
        Ok(true)
    }
}

impl Operator for Recursive {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        loop {
            while self.running.fill(context, row)? {
                context.execution.look()?;
                if self.is_new(row, context)? {
                    self.new.push(context.execution, row.clone())?;
                    self.count += 1;
                    return Ok(true);
                }
            }
            if self.count == 0 {
                return Ok(false);
            }
            self.count = 0;
            // What ran before gives back what it has.
            self.running = Box::new(super::Kept { rows: Vec::new().into_iter() });
            let rows = std::mem::take(&mut self.new).finish(context.execution)?;
            context.execution.steps.0.borrow_mut().insert(self.plan.number, rows);
            self.running = open(&self.plan.step, context)?;
        }
    }
}

/// The new rows of the step before.
pub(crate) struct Step {
    rows: ListRows,
}

impl Step {
    pub(crate) fn open(number: usize, context: &Context<'_>) -> SqlResult<Step> {
        let rows = context.execution.steps.0.borrow_mut().remove(&number);
        let rows = rows.ok_or_else(|| SqlError::new("XX000", "rows of a step of a recursive query are read twice"))?;
        Ok(Step { rows })
    }
}

impl Operator for Step {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        self.rows.fill(context, row)
    }
}

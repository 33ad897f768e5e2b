//! Rows of a query that is run by batches, where the row executor wants them.
//!
//! Invariant: a query that needs more memory than it has before it gave a row is run by the row executor, which writes to a file what does not fit.

use super::{AnalyticsRows, Chooser, Interrupt, Mode, Resources, Scratch};
use crate::SqlResult;
use crate::execute::{Context, Operator, Tuple, open_by_rows};
use crate::plan::Plan;
use std::sync::Arc;

/// A plan that is run by batches.
struct Batches {
    rows: Box<dyn AnalyticsRows>,
    /// Until the first row: how else it is run.
    otherwise: Option<Plan>,
    /// How it is run since then.
    instead: Option<Box<dyn Operator>>,
}

/// Opens a plan that is to be run by batches; `None`: it is not.
#[inline(never)]
pub(crate) fn open(plan: &Plan, context: &Context<'_>) -> SqlResult<Option<Box<dyn Operator>>> {
    let execution = context.execution;
    let Some((analytics, when)) = execution.analytics() else { return Ok(None) };
    let chooser = Chooser::new(&execution.subplans, when, Mode::Run(execution));
    if !chooser.is_chosen(plan) {
        return Ok(None);
    }
    let Some(node) = chooser.node(plan) else { return Ok(None) };
    let resources = Resources {
        memory_bytes: execution.budget.most(),
        scratch: Scratch(Arc::clone(execution.database.engine())),
        interrupt: Interrupt(execution.limits.clone()),
    };
    let Some(rows) = analytics.run(node, &resources)? else { return Ok(None) };
    execution.count_analytics();
    Ok(Some(Box::new(Batches { rows, otherwise: Some(plan.clone()), instead: None })))
}

impl Operator for Batches {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if let Some(instead) = &mut self.instead {
            return instead.fill(context, row);
        }
        match self.rows.fill(row) {
            Err(error) if error.sqlstate() == "53200" => {
                let Some(plan) = self.otherwise.take() else { return Err(error) };
                self.rows = Box::new(Ended);
                self.instead.insert(open_by_rows(&plan, context)?).fill(context, row)
            }
            filled => {
                self.otherwise = None;
                filled
            }
        }
    }
}

/// No rows.
struct Ended;

impl AnalyticsRows for Ended {
    fn fill(&mut self, _: &mut Tuple) -> SqlResult<bool> {
        Ok(false)
    }
}

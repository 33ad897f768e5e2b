//! LATERAL: for each row of the first side a query is run that needs it.
//!
//! Invariants:
//! - the rows of the query are pulled: it gives no more than is asked for;
//! - what it has charged to the statement is given back when it ends, so it can be run for any number of rows.

use super::look_up::with_nulls;
use super::{Context, Operator, Tuple, given, open};
use crate::SqlResult;
use crate::plan::{JoinKind, LateralPlan};
use pagefold_types::Value;
use std::sync::Arc;

pub(crate) struct Lateral {
    plan: Arc<LateralPlan>,
    first: Box<dyn Operator>,
    now: Option<Now>,
    partner: Tuple,
}

/// The row that is looked at.
struct Now {
    row: Tuple,
    /// What the query needs of it.
    outer: Vec<Value>,
    partners: Box<dyn Operator>,
    had_one: bool,
    /// Bytes that the query has charged, and not given back.
    kept: usize,
}

impl Lateral {
    pub(crate) fn open(plan: &Arc<LateralPlan>, context: &Context<'_>) -> SqlResult<Lateral> {
        Ok(Lateral { plan: Arc::clone(plan), first: open(&plan.first, context)?, now: None, partner: Tuple::new() })
    }
}

/// Runs a part of the query, and adds what it charges to `kept`; what is known from now on stays charged.
fn charged<R>(kept: &mut usize, context: &Context<'_>, run: impl FnOnce() -> SqlResult<R>) -> SqlResult<R> {
    let execution = context.execution;
    let before = execution.budget.kept() - execution.known.bytes();
    let done = run();
    let after = execution.budget.kept() - execution.known.bytes();
    *kept = (*kept + after).saturating_sub(before);
    done
}

impl Operator for Lateral {
    fn fill(&mut self, context: &Context<'_>, both: &mut Tuple) -> SqlResult<bool> {
        let plan = Arc::clone(&self.plan);
        loop {
            let Some(now) = &mut self.now else {
                let Some(row) = self.first.next(context)? else { return Ok(false) };
                context.execution.look()?;
                let outer = plan.outer.iter().map(|expr| context.evaluate(expr, &row)).collect::<SqlResult<Vec<Value>>>()?;
                let mut kept = 0;
                let inner = Context { execution: context.execution, outer: &outer };
                let partners = charged(&mut kept, context, || open(&plan.second, &inner))?;
                self.now = Some(Now { row, outer, partners, had_one: false, kept });
                continue;
            };
            let inner = Context { execution: context.execution, outer: &now.outer };
            let (partners, partner) = (&mut now.partners, &mut self.partner);
            if !charged(&mut now.kept, context, || partners.fill(&inner, partner))? {
                let Some(Now { row, had_one, kept, .. }) = self.now.take() else { continue };
                context.execution.budget.give_back(kept);
                if plan.kind == JoinKind::Left && !had_one {
                    return Ok(given(Some(with_nulls(row, plan.widths.1)), both));
                }
                continue;
            }
            both.clear();
            both.extend(now.row.iter().cloned());
            both.append(&mut self.partner);
            context.execution.look()?;
            if let Some(condition) = &plan.condition
                && !context.is_true(condition, both)?
            {
                continue;
            }
            now.had_one = true;
            return Ok(true);
        }
    }
}

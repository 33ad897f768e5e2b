//! Look-ups: joins by an index.

use super::scan::Scan;
use super::{Context, Operator, Tuple, given, open};
use crate::SqlResult;
use crate::plan::{JoinKind, LookUpPlan};
use pagefold_types::Value;
use std::sync::Arc;

/// For each row of the first side, the rows of a table that an index finds.
pub(crate) struct LookUp {
    plan: Arc<LookUpPlan>,
    first: Box<dyn Operator>,
    /// The row of the first side, its partners, and whether it has had one.
    now: Option<(Tuple, Scan, bool)>,
    partner: Tuple,
}

impl LookUp {
    pub(crate) fn open(plan: &Arc<LookUpPlan>, context: &Context<'_>) -> SqlResult<LookUp> {
        Ok(LookUp { plan: Arc::clone(plan), first: open(&plan.first, context)?, now: None, partner: Tuple::new() })
    }
}

impl Operator for LookUp {
    fn fill(&mut self, context: &Context<'_>, both: &mut Tuple) -> SqlResult<bool> {
        let plan = Arc::clone(&self.plan);
        loop {
            let Some((row, partners, had_one)) = &mut self.now else {
                let Some(row) = self.first.next(context)? else { return Ok(false) };
                let scan = Scan::open(&plan.second, context, &row)?;
                context.execution.saw(&plan.second, 0, true);
                self.now = Some((row, scan, false));
                continue;
            };
            if !partners.fill(context, &mut self.partner)? {
                let had_one = *had_one;
                let row = self.now.take().map(|(row, ..)| row).unwrap_or_default();
                match plan.kind {
                    JoinKind::Left if !had_one => return Ok(given(Some(with_nulls(row, plan.second.columns.len())), both)),
                    JoinKind::Anti if !had_one => return Ok(given(Some(row), both)),
                    _ => continue,
                }
            }
            context.execution.saw(&plan.second, 1, false);
            both.clear();
            both.extend(row.iter().cloned());
            both.append(&mut self.partner);
            if let Some(condition) = &plan.condition
                && !context.is_true(condition, both)?
            {
                continue;
            }
            *had_one = true;
            match plan.kind {
                JoinKind::Semi => return Ok(given(self.now.take().map(|(row, ..)| row), both)),
                // It has a partner: that is all that counts.
                JoinKind::Anti => self.now = None,
                _ => return Ok(true),
            }
        }
    }
}

pub(super) fn with_nulls(mut row: Tuple, count: usize) -> Tuple {
    row.extend(std::iter::repeat_n(Value::Null, count));
    row
}

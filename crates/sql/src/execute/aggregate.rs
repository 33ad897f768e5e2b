//! Groups.

use super::{Context, Kept, Operator, Tuple, bytes_of, column_aggregate, open};
use crate::SqlResult;
use crate::expression::Accumulator;
use crate::plan::AggregatePlan;
use pagefold_types::{Value, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;

/// Reads all rows.
#[inline(never)]
pub(super) fn open_aggregate(plan: &Arc<AggregatePlan>, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    Ok(match column_aggregate::compute(plan, context)? {
        Some(row) => Box::new(Kept { rows: vec![row].into_iter() }),
        None => Box::new(Groups::open(plan, context)?),
    })
}

/// Rows of groups, in the order in which the groups were met.
struct Groups {
    keys: std::vec::IntoIter<Value>,
    accumulators: std::vec::IntoIter<Accumulator>,
    /// Keys and aggregates of a group.
    widths: (usize, usize),
    left: usize,
}

impl Groups {
    fn open(plan: &Arc<AggregatePlan>, context: &Context<'_>) -> SqlResult<Groups> {
        let widths = (plan.keys.len(), plan.aggregates.len());
        let mut input = open(&plan.input, context)?;
        // Of all groups, one behind the other.
        let (mut all_keys, mut accumulators): (Vec<Value>, Vec<Accumulator>) = (Vec::new(), Vec::new());
        let mut by_key: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut count = 0;
        let new = || plan.aggregates.iter().map(|noted| Accumulator::new(&noted.aggregate));
        if plan.keys.is_empty() {
            accumulators.extend(new());
            count = 1;
        }
        let mut key = Vec::new();
        let (mut row, mut keys) = (Tuple::new(), Tuple::new());
        while input.fill(context, &mut row)? {
            context.execution.look()?;
            let env = context.env(&row);
            let mut at = 0;
            if !plan.keys.is_empty() {
                super::evaluate_all(&plan.keys, &env, &mut keys)?;
                super::order::whole_key(&keys, &mut key);
                at = match by_key.get(key.as_slice()) {
                    Some(at) => *at,
                    None => {
                        let bytes = bytes_of(&keys) + key.len() + 64 + plan.aggregates.len() * size_of::<Accumulator>();
                        context.execution.budget.take(bytes)?;
                        all_keys.append(&mut keys);
                        accumulators.extend(new());
                        by_key.insert(key.as_slice().into(), count);
                        count += 1;
                        count - 1
                    }
                };
            }
            for (noted, accumulator) in plan.aggregates.iter().zip(&mut accumulators[at * widths.1..]) {
                if let Some(filter) = &noted.filter
                    && !filter.is_true(&env)?
                {
                    continue;
                }
                let before = accumulator.grown_bytes();
                match &noted.aggregate.argument {
                    None => accumulator.add(ValueRef::Boolean(true))?,
                    Some(argument) => accumulator.add(argument.evaluate_ref(&env)?.as_ref())?,
                }
                context.execution.budget.take(accumulator.grown_bytes().saturating_sub(before))?;
            }
        }
        Ok(Groups { keys: all_keys.into_iter(), accumulators: accumulators.into_iter(), widths, left: count })
    }
}

impl Operator for Groups {
    fn fill(&mut self, _: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        row.clear();
        row.extend(self.keys.by_ref().take(self.widths.0));
        for accumulator in self.accumulators.by_ref().take(self.widths.1) {
            row.push(accumulator.finish()?);
        }
        Ok(true)
    }
}

//! Groups.

use super::{Context, Operator, Tuple, bytes_of, encode_key, open};
use crate::SqlResult;
use crate::expression::Accumulator;
use crate::plan::AggregatePlan;
use pagefold_types::{Value, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;

/// Rows of groups, in the order in which the groups were met.
pub(crate) struct Groups {
    rows: std::vec::IntoIter<Tuple>,
}

struct Group {
    keys: Tuple,
    accumulators: Vec<Accumulator>,
}

impl Groups {
    /// Reads all rows.
    pub(crate) fn open(plan: &Arc<AggregatePlan>, context: &Context<'_>) -> SqlResult<Groups> {
        if let Some(row) = super::column_aggregate::compute(plan, context)? {
            return Ok(Groups { rows: super::column_aggregate::one_row(row) });
        }
        let mut input = open(&plan.input, context)?;
        let mut groups: Vec<Group> = Vec::new();
        let mut by_key: HashMap<Box<[u8]>, usize> = HashMap::new();
        let new =
            |keys: Tuple| Group { keys, accumulators: plan.aggregates.iter().map(|noted| Accumulator::new(&noted.aggregate)).collect() };
        if plan.keys.is_empty() {
            groups.push(new(Vec::new()));
        }
        let mut key = Vec::new();
        // What grows within groups (DISTINCT, string_agg) is looked at from time to time.
        let (mut grown, mut rows) = (0_usize, 0_u32);
        while let Some(row) = input.next(context)? {
            context.execution.look()?;
            let env = context.env(&row);
            let at = if plan.keys.is_empty() {
                0
            } else {
                key.clear();
                let mut keys = Vec::with_capacity(plan.keys.len());
                for expr in &plan.keys {
                    let value = expr.evaluate(&env)?;
                    encode_key(&value, &mut key);
                    keys.push(value);
                }
                match by_key.get(key.as_slice()) {
                    Some(at) => *at,
                    None => {
                        let bytes = bytes_of(&keys) + key.len() + 64 + plan.aggregates.len() * size_of::<Accumulator>();
                        context.execution.budget.take(bytes)?;
                        groups.push(new(keys));
                        by_key.insert(key.as_slice().into(), groups.len() - 1);
                        groups.len() - 1
                    }
                }
            };
            for (noted, accumulator) in plan.aggregates.iter().zip(&mut groups[at].accumulators) {
                if let Some(filter) = &noted.filter
                    && !filter.is_true(&env)?
                {
                    continue;
                }
                match &noted.aggregate.argument {
                    None => accumulator.add(ValueRef::Boolean(true))?,
                    Some(argument) => accumulator.add(argument.evaluate_ref(&env)?.as_ref())?,
                }
            }
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(4096) {
                let bytes: usize = groups.iter().flat_map(|group| &group.accumulators).map(Accumulator::bytes).sum();
                context.execution.budget.take(bytes.saturating_sub(grown))?;
                grown = grown.max(bytes);
            }
        }
        let finish = |group: Group| -> SqlResult<Tuple> {
            let Group { mut keys, accumulators } = group;
            for accumulator in accumulators {
                keys.push(accumulator.finish()?);
            }
            Ok(keys)
        };
        let rows: Vec<Tuple> = groups.into_iter().map(finish).collect::<SqlResult<_>>()?;
        Ok(Groups { rows: rows.into_iter() })
    }
}

impl Operator for Groups {
    fn next(&mut self, _: &Context<'_>) -> SqlResult<Option<Vec<Value>>> {
        Ok(self.rows.next())
    }
}

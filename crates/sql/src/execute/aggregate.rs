//! Groups.
//!
//! Where the statement has no memory for more groups, rows of others go to lists by the hash of their keys; when the groups in memory are given, the lists are worked off one by one
//! (Graefe, Query Evaluation Techniques for Large Databases, ACM Computing Surveys 25(2), 1993: hybrid hashing).

use super::spill::{Partitions, Rows, Share};
use super::{Context, Kept, Operator, Tuple, bytes_of, column_aggregate, open};
use crate::SqlResult;
use crate::expression::Accumulator;
use crate::plan::{AggregatePlan, ExpandPlan};
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

/// Rows of groups, in the order in which the groups were met, as long as they fit in memory.
struct Groups {
    plan: Arc<AggregatePlan>,
    keys: std::vec::IntoIter<Value>,
    accumulators: std::vec::IntoIter<Accumulator>,
    left: usize,
    share: Share,
    /// Bytes that groups have gathered.
    gathered: usize,
    /// Rows of groups that are to come, each list with its level.
    lists: Vec<(u32, Rows)>,
}

impl Groups {
    fn open(plan: &Arc<AggregatePlan>, context: &Context<'_>) -> SqlResult<Groups> {
        let (keys, accumulators, share) = (Vec::new().into_iter(), Vec::new().into_iter(), Share::default());
        let mut groups = Groups { plan: Arc::clone(plan), keys, accumulators, left: 0, share, gathered: 0, lists: Vec::new() };
        groups.gather(&mut *open(&plan.input, context)?, 0, context)?;
        if groups.left == 0 && !plan.totals.is_empty() {
            groups.keys = plan.totals.concat().into_iter();
            let new = plan.totals.iter().flat_map(|_| plan.aggregates.iter().map(|noted| Accumulator::new(&noted.aggregate)));
            groups.accumulators = new.collect::<Vec<_>>().into_iter();
            groups.left = plan.totals.len();
        }
        Ok(groups)
    }

    /// Takes in the rows of an input.
    fn gather(&mut self, input: &mut dyn Operator, level: u32, context: &Context<'_>) -> SqlResult<()> {
        let (plan, execution) = (Arc::clone(&self.plan), context.execution);
        let width = plan.aggregates.len();
        // Of all groups, one behind the other.
        let (mut all_keys, mut accumulators): (Vec<Value>, Vec<Accumulator>) = (Vec::new(), Vec::new());
        let mut by_key: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut count = 0;
        let mut later: Option<Partitions> = None;
        let new = || plan.aggregates.iter().map(|noted| Accumulator::new(&noted.aggregate));
        if plan.keys.is_empty() {
            accumulators.extend(new());
            count = 1;
        }
        let mut key = Vec::new();
        let (mut row, mut keys) = (Tuple::new(), Tuple::new());
        while input.fill(context, &mut row)? {
            execution.look()?;
            let env = context.env(&row);
            let mut at = 0;
            if !plan.keys.is_empty() {
                super::evaluate_all(&plan.keys, &env, &mut keys)?;
                super::set::whole_key(&keys, &mut key);
                at = match by_key.get(key.as_slice()) {
                    Some(at) => *at,
                    None => {
                        let bytes = bytes_of(&keys) + key.len() + 64 + width * size_of::<Accumulator>();
                        if later.is_some() || !self.share.take(&execution.budget, bytes) {
                            later.get_or_insert_with(|| Partitions::new(execution, level)).push(execution, &key, &row)?;
                            continue;
                        }
                        all_keys.append(&mut keys);
                        accumulators.extend(new());
                        by_key.insert(key.as_slice().into(), count);
                        count += 1;
                        count - 1
                    }
                };
            }
            for (noted, accumulator) in plan.aggregates.iter().zip(&mut accumulators[at * width..]) {
                if let Some(filter) = &noted.filter
                    && !filter.is_true(&env)?
                {
                    continue;
                }
                let before = accumulator.grown_bytes();
                match &noted.aggregate.argument {
                    Some(argument) if !noted.aggregate.order.is_empty() => {
                        let by = noted.aggregate.order.iter().map(|expr| expr.evaluate(&env)).collect::<SqlResult<Tuple>>()?;
                        accumulator.add_in_order(argument.evaluate_ref(&env)?.as_ref(), by)?;
                    }
                    None => accumulator.add(ValueRef::Boolean(true))?,
                    Some(argument) => accumulator.add(argument.evaluate_ref(&env)?.as_ref())?,
                }
                let grown = accumulator.grown_bytes().saturating_sub(before);
                // What one group gathers cannot be divided.
                if accumulator.gathers() {
                    execution.budget.take(grown)?;
                    self.gathered += grown;
                } else if grown > 0 {
                    self.share.force(&execution.budget, grown);
                }
            }
        }
        if let Some(later) = later {
            let lists = later.finish(execution)?;
            self.lists.extend(lists.into_iter().filter(|list| list.len() > 0).map(|list| (level + 1, list)));
        }
        (self.keys, self.accumulators, self.left) = (all_keys.into_iter(), accumulators.into_iter(), count);
        Ok(())
    }
}

impl Operator for Groups {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        while self.left == 0 {
            let Some((level, mut list)) = self.lists.pop() else { return Ok(false) };
            self.share.give_all_back(&context.execution.budget);
            context.execution.budget.give_back(std::mem::take(&mut self.gathered));
            self.gather(&mut list, level, context)?;
        }
        self.left -= 1;
        row.clear();
        row.extend(self.keys.by_ref().take(self.plan.keys.len()));
        for accumulator in self.accumulators.by_ref().take(self.plan.aggregates.len()) {
            row.push(accumulator.finish()?);
        }
        Ok(true)
    }
}

/// Each row once for each set of keys.
pub(super) struct Expand {
    plan: Arc<ExpandPlan>,
    input: Box<dyn Operator>,
    /// The row of the input, its keys, and the set that comes next.
    from: Tuple,
    keys: Tuple,
    next: usize,
}

impl Expand {
    pub(super) fn open(plan: &Arc<ExpandPlan>, context: &Context<'_>) -> SqlResult<Expand> {
        let (from, keys, next) = (Tuple::new(), Tuple::new(), plan.sets.len());
        Ok(Expand { plan: Arc::clone(plan), input: open(&plan.input, context)?, from, keys, next })
    }
}

impl Operator for Expand {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if self.next == self.plan.sets.len() {
            if !self.input.fill(context, &mut self.from)? {
                return Ok(false);
            }
            super::evaluate_all(&self.plan.keys, &context.env(&self.from), &mut self.keys)?;
            self.next = 0;
        }
        let (number, set) = (self.next, &self.plan.sets[self.next]);
        self.next += 1;
        row.clear();
        row.extend_from_slice(&self.from);
        row.extend(self.keys.iter().zip(&set.members).map(|(key, is_in)| if *is_in { key.clone() } else { Value::Null }));
        row.extend_from_slice(&set.calls);
        row.push(Value::Int(number as i64));
        Ok(true)
    }
}

//! Sorting, distinct rows, set operations, limits.

use super::{Context, Operator, Tuple, bytes_of, encode_key, given, open};
use crate::bind::{Limit, SetOperation, SortKey};
use crate::plan::{LimitPlan, Plan, SetPlan, SortPlan};
use crate::{SqlError, SqlResult};
use pagefold_types::Value;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// LIMIT and OFFSET of the moment: rows to leave out, and rows to give.
pub(crate) fn bounds(limit: &Limit, context: &Context<'_>) -> SqlResult<(u64, u64)> {
    let number = |expr: &Option<crate::expression::Expr>, name: &str, sqlstate| match expr {
        None => Ok(None),
        Some(expr) => match context.evaluate(expr, &[])? {
            Value::Int(rows) => match u64::try_from(rows) {
                Ok(rows) => Ok(Some(rows)),
                Err(_) => Err(SqlError::new(sqlstate, format!("{name} must not be negative"))),
            },
            _ => Ok(None),
        },
    };
    let offset = number(&limit.offset, "OFFSET", "2201X")?.unwrap_or(0);
    let rows = number(&limit.limit, "LIMIT", "2201W")?.unwrap_or(u64::MAX);
    Ok((offset, rows))
}

pub(crate) struct LimitRows {
    input: Box<dyn Operator>,
    skip: u64,
    left: u64,
}

impl LimitRows {
    pub(crate) fn open(plan: &Arc<LimitPlan>, context: &Context<'_>) -> SqlResult<LimitRows> {
        let (skip, left) = bounds(&plan.limit, context)?;
        Ok(LimitRows { input: open(&plan.input, context)?, skip, left })
    }
}

impl Operator for LimitRows {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        while self.skip > 0 {
            self.skip -= 1;
            if !self.input.fill(context, row)? {
                self.left = 0;
                return Ok(false);
            }
        }
        self.left -= 1;
        self.input.fill(context, row)
    }
}

/// Order of two rows.
pub(crate) fn compare(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
    for SortKey { slot, descending, nulls_first } in keys {
        let (x, y) = (&a[*slot], &b[*slot]);
        let order = match (x, y) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => {
                if *nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (_, Value::Null) => {
                if *nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (x, y) => {
                if *descending {
                    y.cmp(x)
                } else {
                    x.cmp(y)
                }
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Rows in order. Rows that are equal stay as they came.
pub(crate) struct Sort {
    rows: std::vec::IntoIter<Tuple>,
}

impl Sort {
    pub(crate) fn open(plan: &Arc<SortPlan>, context: &Context<'_>) -> SqlResult<Sort> {
        let (offset, limit) = bounds(&plan.limit, context)?;
        let wanted = usize::try_from(offset.saturating_add(limit)).unwrap_or(usize::MAX);
        let mut input = open(&plan.input, context)?;
        let mut rows: Vec<Tuple> = Vec::new();
        while let Some(row) = input.next(context)? {
            context.execution.look()?;
            context.execution.budget.take(bytes_of(&row))?;
            rows.push(row);
            // Twice as many as are wanted are sorted, and the half goes.
            if rows.len() >= wanted.saturating_mul(2).max(1024) && rows.len() > wanted {
                rows.sort_by(|a, b| compare(a, b, &plan.keys));
                let gone: usize = rows.drain(wanted..).map(|row| bytes_of(&row)).sum();
                context.execution.budget.give_back(gone);
            }
        }
        rows.sort_by(|a, b| compare(a, b, &plan.keys));
        rows.truncate(wanted);
        Ok(Sort { rows: rows.into_iter() })
    }
}

impl Operator for Sort {
    fn fill(&mut self, _: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        Ok(given(self.rows.next(), row))
    }
}

pub(super) fn whole_key(row: &[Value], key: &mut Vec<u8>) {
    key.clear();
    row.iter().for_each(|value| encode_key(value.as_ref(), key));
}

/// Each row once.
pub(crate) struct Distinct {
    input: Box<dyn Operator>,
    seen: HashSet<Box<[u8]>>,
    key: Vec<u8>,
}

impl Distinct {
    pub(crate) fn open(input: &Plan, context: &Context<'_>) -> SqlResult<Distinct> {
        Ok(Distinct::of(open(input, context)?))
    }

    fn of(input: Box<dyn Operator>) -> Distinct {
        Distinct { input, seen: HashSet::new(), key: Vec::new() }
    }
}

impl Operator for Distinct {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        while self.input.fill(context, row)? {
            context.execution.look()?;
            whole_key(row, &mut self.key);
            if !self.seen.contains(self.key.as_slice()) {
                context.execution.budget.take(self.key.len() + 32)?;
                self.seen.insert(self.key.as_slice().into());
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One after the other.
struct Chain {
    first: Option<Box<dyn Operator>>,
    second: Box<dyn Operator>,
}

impl Operator for Chain {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if let Some(first) = &mut self.first {
            if first.fill(context, row)? {
                return Ok(true);
            }
            self.first = None;
        }
        self.second.fill(context, row)
    }
}

/// INTERSECT and EXCEPT, ALL or not.
struct Difference {
    first: Box<dyn Operator>,
    /// How often rows are on the second side, as far as they are not used up.
    second: HashMap<Box<[u8]>, u64>,
    is_intersect: bool,
    all: bool,
    key: Vec<u8>,
}

impl Operator for Difference {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        while self.first.fill(context, row)? {
            context.execution.look()?;
            whole_key(row, &mut self.key);
            let count = self.second.get_mut(self.key.as_slice());
            let is_there = count.as_ref().is_some_and(|count| **count > 0);
            if self.all
                && let Some(count) = count
            {
                // Each row of the second side stands for one.
                *count = count.saturating_sub(1);
            }
            if is_there == self.is_intersect {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(crate) fn open_set(plan: &Arc<SetPlan>, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    let first = open(&plan.first, context)?;
    let mut second = open(&plan.second, context)?;
    if plan.operation == SetOperation::Union {
        let chain = Box::new(Chain { first: Some(first), second });
        return Ok(if plan.all { chain } else { Box::new(Distinct::of(chain)) });
    }
    let (mut counts, mut key) = (HashMap::<Box<[u8]>, u64>::new(), Vec::new());
    let mut row = Tuple::new();
    while second.fill(context, &mut row)? {
        context.execution.look()?;
        whole_key(&row, &mut key);
        match counts.get_mut(key.as_slice()) {
            Some(count) => *count += 1,
            None => {
                context.execution.budget.take(key.len() + 48)?;
                counts.insert(key.as_slice().into(), 1);
            }
        }
    }
    let is_intersect = plan.operation == SetOperation::Intersect;
    let difference = Difference { first, second: counts, is_intersect, all: plan.all, key };
    Ok(if plan.all { Box::new(difference) } else { Box::new(Distinct::of(Box::new(difference))) })
}

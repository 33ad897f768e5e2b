//! Distinct rows, set operations.
//!
//! What does not fit the memory of the statement goes to lists by the hash of the row, which are worked off one by one: equal rows come to the same list.

use super::spill::{Partitions, Rows, Share};
use super::{Context, Operator, Tuple, encode_key, open};
use crate::SqlResult;
use crate::bind::SetOperation;
use crate::plan::{FirstOfEachPlan, Plan, SetPlan};
use pagefold_types::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(super) fn whole_key(row: &[Value], key: &mut Vec<u8>) {
    key.clear();
    row.iter().for_each(|value| encode_key(value.as_ref(), key));
}

/// Each row once.
pub(crate) struct Distinct {
    input: Box<dyn Operator>,
    seen: HashSet<Box<[u8]>>,
    share: Share,
    key: Vec<u8>,
    /// 0 of the input itself.
    level: u32,
    /// Rows that may be new, and had no place in `seen`.
    later: Option<Partitions>,
    /// Lists of such rows, each with its level.
    lists: Vec<(u32, Rows)>,
}

impl Distinct {
    pub(crate) fn open(input: &Plan, context: &Context<'_>) -> SqlResult<Distinct> {
        Ok(Distinct::of(open(input, context)?))
    }

    fn of(input: Box<dyn Operator>) -> Distinct {
        let (seen, share, key) = (HashSet::new(), Share::default(), Vec::new());
        Distinct { input, seen, share, key, level: 0, later: None, lists: Vec::new() }
    }

    /// Goes on with rows that were put off; false when there are none.
    fn go_on(&mut self, context: &Context<'_>) -> SqlResult<bool> {
        self.seen = HashSet::new();
        self.share.give_all_back(&context.execution.budget);
        if let Some(later) = self.later.take() {
            let lists = later.finish(context.execution)?;
            self.lists.extend(lists.into_iter().filter(|list| list.len() > 0).map(|list| (self.level + 1, list)));
        }
        let Some((level, list)) = self.lists.pop() else { return Ok(false) };
        (self.level, self.input) = (level, Box::new(list));
        Ok(true)
    }
}

impl Operator for Distinct {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        loop {
            while self.input.fill(context, row)? {
                context.execution.look()?;
                whole_key(row, &mut self.key);
                if self.seen.contains(self.key.as_slice()) {
                    continue;
                }
                if self.later.is_none() && self.share.take(&context.execution.budget, self.key.len() + 32) {
                    self.seen.insert(self.key.as_slice().into());
                    return Ok(true);
                }
                let later = self.later.get_or_insert_with(|| Partitions::new(context.execution, self.level));
                later.push(context.execution, &self.key, row)?;
            }
            if !self.go_on(context)? {
                return Ok(false);
            }
        }
    }
}

/// The first of rows that follow each other and are equal in some columns.
pub(crate) struct FirstOfEach {
    plan: Arc<FirstOfEachPlan>,
    input: Box<dyn Operator>,
    /// The columns of the row before, as bytes. None has these: each column takes at least one.
    before: Vec<u8>,
    key: Vec<u8>,
}

impl FirstOfEach {
    pub(crate) fn open(plan: &Arc<FirstOfEachPlan>, context: &Context<'_>) -> SqlResult<FirstOfEach> {
        let input = open(&plan.input, context)?;
        Ok(FirstOfEach { plan: Arc::clone(plan), input, before: Vec::new(), key: Vec::new() })
    }
}

impl Operator for FirstOfEach {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        while self.input.fill(context, row)? {
            context.execution.look()?;
            self.key.clear();
            self.plan.slots.iter().for_each(|slot| encode_key(row[*slot].as_ref(), &mut self.key));
            if self.key != self.before {
                std::mem::swap(&mut self.key, &mut self.before);
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
    share: Share,
    is_intersect: bool,
    all: bool,
    key: Vec<u8>,
    /// 0 of the inputs themselves.
    level: u32,
    /// Rows of both sides that are not decided by `second`: those of the second side had no place in it.
    later: Option<(Partitions, Partitions)>,
    /// Lists of such rows, each with its level.
    lists: Vec<(u32, Rows, Rows)>,
}

impl Difference {
    /// Counts the rows of the second side.
    fn count(&mut self, mut second: Box<dyn Operator>, context: &Context<'_>) -> SqlResult<()> {
        let execution = context.execution;
        let mut row = Tuple::new();
        while second.fill(context, &mut row)? {
            execution.look()?;
            whole_key(&row, &mut self.key);
            if let Some(count) = self.second.get_mut(self.key.as_slice()) {
                *count += 1;
            } else if self.later.is_none() && self.share.take(&execution.budget, self.key.len() + 48) {
                self.second.insert(self.key.as_slice().into(), 1);
            } else {
                let new = || (Partitions::new(execution, self.level), Partitions::new(execution, self.level));
                self.later.get_or_insert_with(new).1.push(execution, &self.key, &row)?;
            }
        }
        Ok(())
    }

    /// Goes on with rows that were put off; false when there are none.
    fn go_on(&mut self, context: &Context<'_>) -> SqlResult<bool> {
        self.second = HashMap::new();
        self.share.give_all_back(&context.execution.budget);
        if let Some((first, second)) = self.later.take() {
            let pairs = first.finish(context.execution)?.into_iter().zip(second.finish(context.execution)?);
            self.lists.extend(pairs.filter(|(first, _)| first.len() > 0).map(|(first, second)| (self.level + 1, first, second)));
        }
        let Some((level, first, second)) = self.lists.pop() else { return Ok(false) };
        (self.level, self.first) = (level, Box::new(first));
        self.count(Box::new(second), context)?;
        Ok(true)
    }
}

impl Operator for Difference {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        loop {
            while self.first.fill(context, row)? {
                context.execution.look()?;
                whole_key(row, &mut self.key);
                let count = self.second.get_mut(self.key.as_slice());
                if let (None, Some((later, _))) = (&count, &mut self.later) {
                    later.push(context.execution, &self.key, row)?;
                    continue;
                }
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
            if !self.go_on(context)? {
                return Ok(false);
            }
        }
    }
}

pub(crate) fn open_set(plan: &Arc<SetPlan>, context: &Context<'_>) -> SqlResult<Box<dyn Operator>> {
    let first = open(&plan.first, context)?;
    let second = open(&plan.second, context)?;
    if plan.operation == SetOperation::Union {
        let chain = Box::new(Chain { first: Some(first), second });
        return Ok(if plan.all { chain } else { Box::new(Distinct::of(chain)) });
    }
    let mut difference = Difference {
        first,
        second: HashMap::new(),
        share: Share::default(),
        is_intersect: plan.operation == SetOperation::Intersect,
        all: plan.all,
        key: Vec::new(),
        level: 0,
        later: None,
        lists: Vec::new(),
    };
    difference.count(second, context)?;
    Ok(if plan.all { Box::new(difference) } else { Box::new(Distinct::of(Box::new(difference))) })
}

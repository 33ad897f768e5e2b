//! Joins: look-ups by an index, hashes, all pairs.

use super::scan::Scan;
use super::{Context, Operator, Tuple, bytes_of, encode_key, given, open};
use crate::SqlResult;
use crate::expression::Expr;
use crate::plan::{HashPlan, JoinKind, LookUpPlan};
use pagefold_types::Value;
use std::collections::HashMap;
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

fn with_nulls(mut row: Tuple, count: usize) -> Tuple {
    row.extend(std::iter::repeat_n(Value::Null, count));
    row
}

/// The key of a row; false when one of its values is NULL.
fn key_of(exprs: &[Expr], context: &Context<'_>, row: &[Value], key: &mut Vec<u8>) -> SqlResult<bool> {
    key.clear();
    let env = context.env(row);
    for expr in exprs {
        let value = expr.evaluate_ref(&env)?;
        if value.is_null() {
            return Ok(false);
        }
        encode_key(value.as_ref(), key);
    }
    Ok(true)
}

/// No row behind the last one of a chain.
const END: u32 = u32::MAX;

/// Rows whose keys are equal; where there are no keys, those of all rows are.
pub(crate) struct Hash {
    plan: Arc<HashPlan>,
    first: Box<dyn Operator>,
    second: Vec<Tuple>,
    /// For each row of the second side, the next one with its key, or [`END`].
    next_equal: Vec<u32>,
    /// For each key without a NULL, the first and the last row of the second side.
    chains: HashMap<Box<[u8]>, (u32, u32)>,
    /// A row of the second side has NULL as its key.
    has_null: bool,
    /// Of a full join: rows of the second side that have had a partner.
    had_partner: Vec<bool>,
    /// The row of the first side, its next partner or [`END`], and whether it has had one.
    now: Option<(Tuple, u32, bool)>,
    key: Vec<u8>,
    /// Of a full join, at the end: rows of the second side.
    left_over: Option<usize>,
}

impl Hash {
    pub(crate) fn open(plan: &Arc<HashPlan>, context: &Context<'_>) -> SqlResult<Hash> {
        let mut hash = Hash {
            plan: Arc::clone(plan),
            first: open(&plan.first, context)?,
            second: Vec::new(),
            next_equal: Vec::new(),
            chains: HashMap::new(),
            has_null: false,
            had_partner: Vec::new(),
            now: None,
            key: Vec::new(),
            left_over: None,
        };
        let mut second = open(&plan.second, context)?;
        while let Some(row) = second.next(context)? {
            context.execution.look()?;
            let is_key = key_of(&plan.second_keys, context, &row, &mut hash.key)?;
            if !is_key {
                hash.has_null = true;
                if plan.kind != JoinKind::Full {
                    continue;
                }
            }
            let too_many = || crate::SqlError::new("54000", "a join of more than 4 billion rows");
            let number = u32::try_from(hash.second.len()).ok().filter(|number| *number != END).ok_or_else(too_many)?;
            context.execution.budget.take(bytes_of(&row) + hash.key.len() + 48)?;
            hash.second.push(row);
            hash.next_equal.push(END);
            if is_key {
                match hash.chains.get_mut(hash.key.as_slice()) {
                    Some((_, last)) => hash.next_equal[std::mem::replace(last, number) as usize] = number,
                    None => _ = hash.chains.insert(hash.key.as_slice().into(), (number, number)),
                }
            }
        }
        if plan.kind == JoinKind::Full {
            hash.had_partner = vec![false; hash.second.len()];
        }
        Ok(hash)
    }

    /// The first row that may be a partner of a row, or [`END`].
    fn first_partner(&mut self, context: &Context<'_>, row: &[Value]) -> SqlResult<u32> {
        let is_key = key_of(&self.plan.first_keys, context, row, &mut self.key)?;
        let chain = is_key.then(|| self.chains.get(self.key.as_slice())).flatten();
        Ok(chain.map_or(END, |(first, _)| *first))
    }

    fn next_left_over(&mut self) -> Option<Tuple> {
        let at = self.left_over.as_mut()?;
        while *at < self.second.len() {
            *at += 1;
            if !self.had_partner[*at - 1] {
                let mut row: Tuple = std::iter::repeat_n(Value::Null, self.plan.widths.0).collect();
                row.append(&mut self.second[*at - 1]);
                return Some(row);
            }
        }
        None
    }

    /// NOT IN: is a row without an equal one still none that comes, because of a NULL?
    fn is_unknown(&self, context: &Context<'_>, row: &[Value]) -> SqlResult<bool> {
        if !self.plan.nulls_match || (self.second.is_empty() && !self.has_null) {
            return Ok(false);
        }
        let mut key = Vec::new();
        Ok(self.has_null || !key_of(&self.plan.first_keys, context, row, &mut key)?)
    }
}

impl Operator for Hash {
    fn fill(&mut self, context: &Context<'_>, both: &mut Tuple) -> SqlResult<bool> {
        let plan = Arc::clone(&self.plan);
        loop {
            context.execution.look()?;
            if self.left_over.is_some() {
                return Ok(given(self.next_left_over(), both));
            }
            let Some((row, partner, had_one)) = &mut self.now else {
                let Some(row) = self.first.next(context)? else {
                    if plan.kind != JoinKind::Full {
                        return Ok(false);
                    }
                    self.left_over = Some(0);
                    continue;
                };
                let partner = self.first_partner(context, &row)?;
                self.now = Some((row, partner, false));
                continue;
            };
            if *partner == END {
                let had_one = *had_one;
                let row = self.now.take().map(|(row, ..)| row).unwrap_or_default();
                match plan.kind {
                    JoinKind::Left | JoinKind::Full if !had_one => return Ok(given(Some(with_nulls(row, plan.widths.1)), both)),
                    JoinKind::Anti if !had_one && !self.is_unknown(context, &row)? => return Ok(given(Some(row), both)),
                    _ => continue,
                }
            }
            let number = *partner as usize;
            *partner = self.next_equal[number];
            let is_one_side = matches!(plan.kind, JoinKind::Semi | JoinKind::Anti);
            if !is_one_side || plan.condition.is_some() {
                both.clear();
                both.extend(row.iter().cloned());
                both.extend(self.second[number].iter().cloned());
                if let Some(condition) = &plan.condition
                    && !context.is_true(condition, both)?
                {
                    continue;
                }
                *had_one = true;
                if !is_one_side {
                    if let Some(mark) = self.had_partner.get_mut(number) {
                        *mark = true;
                    }
                    return Ok(true);
                }
            }
            let row = self.now.take().map(|(row, ..)| row);
            if plan.kind == JoinKind::Semi {
                return Ok(given(row, both));
            }
        }
    }
}

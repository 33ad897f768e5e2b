//! Joins: look-ups by an index, hashes, all pairs.

use super::scan::Scan;
use super::{Context, Operator, Tuple, bytes_of, encode_key, open};
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
}

impl LookUp {
    pub(crate) fn open(plan: &Arc<LookUpPlan>, context: &Context<'_>) -> SqlResult<LookUp> {
        Ok(LookUp { plan: Arc::clone(plan), first: open(&plan.first, context)?, now: None })
    }
}

impl Operator for LookUp {
    fn next(&mut self, context: &Context<'_>) -> SqlResult<Option<Tuple>> {
        let plan = Arc::clone(&self.plan);
        loop {
            let Some((row, partners, had_one)) = &mut self.now else {
                let Some(row) = self.first.next(context)? else { return Ok(None) };
                let scan = Scan::open(&plan.second, context, &row)?;
                self.now = Some((row, scan, false));
                continue;
            };
            let Some(partner) = partners.next(context)? else {
                let had_one = *had_one;
                let row = self.now.take().map(|(row, ..)| row).unwrap_or_default();
                match plan.kind {
                    JoinKind::Left if !had_one => return Ok(Some(with_nulls(row, plan.second.columns.len()))),
                    JoinKind::Anti if !had_one => return Ok(Some(row)),
                    _ => continue,
                }
            };
            let mut both = row.clone();
            both.extend(partner);
            if let Some(condition) = &plan.condition
                && !context.is_true(condition, &both)?
            {
                continue;
            }
            *had_one = true;
            match plan.kind {
                JoinKind::Semi => return Ok(self.now.take().map(|(row, ..)| row)),
                // It has a partner: that is all that counts.
                JoinKind::Anti => self.now = None,
                _ => return Ok(Some(both)),
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
        let value = expr.evaluate(&env)?;
        if value == Value::Null {
            return Ok(false);
        }
        encode_key(&value, key);
    }
    Ok(true)
}

/// Rows whose keys are equal.
pub(crate) struct Hash {
    plan: Arc<HashPlan>,
    first: Box<dyn Operator>,
    second: Vec<Tuple>,
    by_key: HashMap<Box<[u8]>, Vec<u32>>,
    /// Rows of the second side without a NULL in their keys: partners of all where there are no keys.
    all: Vec<u32>,
    /// A row of the second side has NULL as its key.
    has_null: bool,
    /// Of a full join: rows of the second side that have had a partner.
    had_partner: Vec<bool>,
    /// The row of the first side, its partners that are left, and whether it has had one.
    now: Option<(Tuple, Partners, bool)>,
    key: Vec<u8>,
    /// Of a full join, at the end: rows of the second side.
    left_over: Option<usize>,
}

struct Partners {
    rows: Vec<u32>,
    at: usize,
}

impl Hash {
    pub(crate) fn open(plan: &Arc<HashPlan>, context: &Context<'_>) -> SqlResult<Hash> {
        let mut hash = Hash {
            plan: Arc::clone(plan),
            first: open(&plan.first, context)?,
            second: Vec::new(),
            by_key: HashMap::new(),
            all: Vec::new(),
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
            let number =
                u32::try_from(hash.second.len()).map_err(|_| crate::SqlError::new("54000", "a join of more than 4 billion rows"))?;
            context.execution.budget.take(bytes_of(&row) + hash.key.len() + 48)?;
            hash.second.push(row);
            if is_key {
                if plan.second_keys.is_empty() {
                    hash.all.push(number);
                } else {
                    hash.by_key.entry(hash.key.as_slice().into()).or_default().push(number);
                }
            }
        }
        if plan.kind == JoinKind::Full {
            hash.had_partner = vec![false; hash.second.len()];
        }
        Ok(hash)
    }

    /// Numbers of the rows that may be partners of a row.
    fn partners(&mut self, context: &Context<'_>, row: &[Value]) -> SqlResult<Partners> {
        let rows = if self.plan.first_keys.is_empty() {
            self.all.clone()
        } else if key_of(&self.plan.first_keys, context, row, &mut self.key)? {
            self.by_key.get(self.key.as_slice()).cloned().unwrap_or_default()
        } else {
            Vec::new()
        };
        Ok(Partners { rows, at: 0 })
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
    fn next(&mut self, context: &Context<'_>) -> SqlResult<Option<Tuple>> {
        let plan = Arc::clone(&self.plan);
        loop {
            context.execution.look()?;
            if self.left_over.is_some() {
                return Ok(self.next_left_over());
            }
            let Some((row, partners, had_one)) = &mut self.now else {
                let Some(row) = self.first.next(context)? else {
                    if plan.kind != JoinKind::Full {
                        return Ok(None);
                    }
                    self.left_over = Some(0);
                    continue;
                };
                let partners = self.partners(context, &row)?;
                self.now = Some((row, partners, false));
                continue;
            };
            let Some(number) = partners.rows.get(partners.at).copied() else {
                let had_one = *had_one;
                let row = self.now.take().map(|(row, ..)| row).unwrap_or_default();
                match plan.kind {
                    JoinKind::Left | JoinKind::Full if !had_one => return Ok(Some(with_nulls(row, plan.widths.1))),
                    JoinKind::Anti if !had_one && !self.is_unknown(context, &row)? => return Ok(Some(row)),
                    _ => continue,
                }
            };
            partners.at += 1;
            let number = number as usize;
            let is_one_side = matches!(plan.kind, JoinKind::Semi | JoinKind::Anti);
            if !is_one_side || plan.condition.is_some() {
                let mut both = Vec::with_capacity(plan.widths.0 + plan.widths.1);
                both.extend(row.iter().cloned());
                both.extend(self.second[number].iter().cloned());
                if let Some(condition) = &plan.condition
                    && !context.is_true(condition, &both)?
                {
                    continue;
                }
                *had_one = true;
                if !is_one_side {
                    if let Some(mark) = self.had_partner.get_mut(number) {
                        *mark = true;
                    }
                    return Ok(Some(both));
                }
            }
            let row = self.now.take().map(|(row, ..)| row);
            if plan.kind == JoinKind::Semi {
                return Ok(row);
            }
        }
    }
}

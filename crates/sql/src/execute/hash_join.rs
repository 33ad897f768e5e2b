//! Joins by hashes, and of all pairs.
//!
//! The second side is in memory. Where the statement has no memory for it, both sides are divided by the hash of their keys, and the parts are joined one by one: the Grace hash join
//! (Kitsuregawa, Tanaka, Moto-oka, Application of Hash to Data Base Machine and Its Architecture, New Generation Computing 1, 1983).
//!
//! What no division makes small enough, as it has one key or none, is joined in chunks: as much of the second side as fits, with all rows of the first side; then the next.
//!
//! In a subquery that needs the row around it, a second side that does not is kept for all such rows (`repeated`).
//!
//! Invariant: a row of the first side goes to the next chunk with a mark that says whether it has had a partner, or not at all when that is all that counts.

use super::look_up::with_nulls;
use super::spill::{Partitions, RowWriter, Rows, Share};
use super::{Context, Operator, Tuple, bytes_of, encode_key, given, open, repeated};
use crate::SqlResult;
use crate::expression::Expr;
use crate::plan::{HashPlan, JoinKind};
use pagefold_types::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Parts are divided again so often: what does not fit then has one key.
const LEVELS_MAX: u32 = 6;

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

/// The second side, in memory.
#[derive(Default)]
pub(super) struct Built {
    rows: Vec<Tuple>,
    /// For each row, the next one with its key, or [`END`].
    next_equal: Vec<u32>,
    /// For each key without a NULL, the first and the last row.
    chains: HashMap<Box<[u8]>, (u32, u32)>,
    /// It has a row, here or in another part.
    has_rows: bool,
    /// A row has NULL as its key.
    has_null: bool,
}

impl Built {
    fn add(&mut self, row: Tuple, key: Option<&[u8]>) -> SqlResult<()> {
        let too_many = || crate::SqlError::new("54000", "a join of more than 4 billion rows");
        let number = u32::try_from(self.rows.len()).ok().filter(|number| *number != END).ok_or_else(too_many)?;
        self.rows.push(row);
        self.next_equal.push(END);
        if let Some(key) = key {
            match self.chains.get_mut(key) {
                Some((_, last)) => self.next_equal[std::mem::replace(last, number) as usize] = number,
                None => _ = self.chains.insert(key.into(), (number, number)),
            }
        }
        Ok(())
    }
}

/// Rows whose keys are equal; where there are no keys, those of all rows are.
pub(crate) struct Hash {
    plan: Arc<HashPlan>,
    first: Box<dyn Operator>,
    second: Arc<Built>,
    share: Share,
    /// Of a full join: rows of the second side that have had a partner.
    had_partner: Vec<bool>,
    /// The row of the first side, its next partner or [`END`], and whether it has had one.
    now: Option<(Tuple, u32, bool)>,
    key: Vec<u8>,
    /// Of a full join, at the end: rows of the second side.
    left_over: Option<usize>,
    /// Parts of both sides that are to come, each with its level.
    parts: Vec<(u32, Rows, Rows)>,
    /// Chunks of the second side that are to come, and the rows of the first side for them.
    chunks: Option<(Rows, RowWriter)>,
    /// Rows of the first side have a mark behind them.
    has_marks: bool,
}

impl Hash {
    pub(crate) fn open(plan: &Arc<HashPlan>, context: &Context<'_>) -> SqlResult<Hash> {
        let mut hash = Hash {
            plan: Arc::clone(plan),
            first: open(&plan.first, context)?,
            second: Arc::default(),
            share: Share::default(),
            had_partner: Vec::new(),
            now: None,
            key: Vec::new(),
            left_over: None,
            parts: Vec::new(),
            chunks: None,
            has_marks: false,
        };
        // In a subquery of the row the other side may be the same for all rows.
        let (built, is_kept) = match context.outer.is_empty() || plan.kind == JoinKind::Full {
            true => (None, false),
            false => repeated::built(plan, context),
        };
        if let Some(built) = built {
            hash.second = built;
            return Ok(hash);
        }
        hash.build(open(&plan.second, context)?, 0, context)?;
        if is_kept && hash.parts.is_empty() && hash.chunks.is_none() {
            let bytes = hash.share.taken();
            hash.share.give_all_back(&context.execution.budget);
            if !repeated::keep_built(plan, context, &hash.second, bytes) {
                hash.share.force(&context.execution.budget, bytes);
            }
        }
        Ok(hash)
    }

    /// Takes in the second side. Where it does not fit, both sides are divided, and nothing is left of them but parts.
    fn build(&mut self, mut second: Box<dyn Operator>, level: u32, context: &Context<'_>) -> SqlResult<()> {
        let (plan, execution) = (Arc::clone(&self.plan), context.execution);
        let (mut divided, mut rest): (Option<Partitions>, Option<RowWriter>) = (None, None);
        let mut built = Built { has_rows: self.second.has_rows, has_null: self.second.has_null, ..Built::default() };
        while let Some(row) = second.next(context)? {
            execution.look()?;
            let is_key = key_of(&plan.second_keys, context, &row, &mut self.key)?;
            built.has_rows = true;
            if !is_key {
                built.has_null = true;
                if plan.kind != JoinKind::Full {
                    continue;
                }
                // Without a partner: any part will do.
                self.key.clear();
            }
            if let Some(divided) = &mut divided {
                divided.push(execution, &self.key, &row)?;
            } else if let Some(rest) = &mut rest {
                rest.push(execution, &row)?;
            } else if self.share.take(&execution.budget, bytes_of(&row) + self.key.len() + 48) {
                built.add(row, is_key.then_some(&self.key))?;
            } else if plan.second_keys.is_empty() || level >= LEVELS_MAX {
                rest.insert(RowWriter::new(execution)).push(execution, &row)?;
            } else {
                let divided = divided.insert(self.divide(std::mem::take(&mut built.rows), level, context)?);
                (built.next_equal, built.chains) = (Vec::new(), HashMap::new());
                key_of(&plan.second_keys, context, &row, &mut self.key)?;
                divided.push(execution, &self.key, &row)?;
            }
        }
        drop(second);
        self.second = Arc::new(built);
        let Some(seconds) = divided else {
            if plan.kind == JoinKind::Full {
                self.had_partner = vec![false; self.second.rows.len()];
            }
            if let Some(rest) = rest {
                self.chunks = Some((rest.finish(execution)?, RowWriter::new(execution)));
            }
            return Ok(());
        };
        let mut firsts = Partitions::new(execution, level);
        let mut row = Tuple::new();
        while self.first.fill(context, &mut row)? {
            execution.look()?;
            key_of(&plan.first_keys, context, &row, &mut self.key)?;
            firsts.push(execution, &self.key, &row)?;
        }
        self.first = Box::new(super::Kept { rows: Vec::new().into_iter() });
        let parts = firsts.finish(execution)?.into_iter().zip(seconds.finish(execution)?);
        self.parts.extend(parts.filter(|(first, second)| first.len() + second.len() > 0).map(|(first, second)| (level + 1, first, second)));
        Ok(())
    }

    /// Puts the rows of the second side into parts.
    fn divide(&mut self, rows: Vec<Tuple>, level: u32, context: &Context<'_>) -> SqlResult<Partitions> {
        let mut divided = Partitions::new(context.execution, level);
        for row in rows {
            context.execution.look()?;
            key_of(&self.plan.second_keys, context, &row, &mut self.key)?;
            divided.push(context.execution, &self.key, &row)?;
        }
        self.forget(context);
        Ok(divided)
    }

    /// Nothing of the second side is in memory any more.
    fn forget(&mut self, context: &Context<'_>) {
        let Built { has_rows, has_null, .. } = *self.second;
        (self.second, self.had_partner) = (Arc::new(Built { has_rows, has_null, ..Built::default() }), Vec::new());
        self.share.give_all_back(&context.execution.budget);
    }

    /// Goes on with the next chunk or part; false when there is none.
    fn go_on(&mut self, context: &Context<'_>) -> SqlResult<bool> {
        let (level, first, second) = if let Some((second, first)) = self.chunks.take() {
            self.has_marks = true;
            (LEVELS_MAX, first.finish(context.execution)?, second)
        } else if let Some(part) = self.parts.pop() {
            self.has_marks = false;
            part
        } else {
            return Ok(false);
        };
        self.forget(context);
        self.left_over = None;
        self.first = Box::new(first);
        self.build(Box::new(second), level, context)?;
        Ok(true)
    }

    /// The first row that may be a partner of a row, or [`END`].
    fn first_partner(&mut self, context: &Context<'_>, row: &[Value]) -> SqlResult<u32> {
        let is_key = key_of(&self.plan.first_keys, context, row, &mut self.key)?;
        let chain = is_key.then(|| self.second.chains.get(self.key.as_slice())).flatten();
        Ok(chain.map_or(END, |(first, _)| *first))
    }

    fn next_left_over(&mut self) -> Option<Tuple> {
        let at = self.left_over.as_mut()?;
        while *at < self.second.rows.len() {
            *at += 1;
            if !self.had_partner[*at - 1] {
                let mut row: Tuple = std::iter::repeat_n(Value::Null, self.plan.widths.0).collect();
                row.extend_from_slice(&self.second.rows[*at - 1]);
                return Some(row);
            }
        }
        None
    }

    /// NOT IN: is a row without an equal one still none that comes, because of a NULL?
    fn is_unknown(&self, context: &Context<'_>, row: &[Value]) -> SqlResult<bool> {
        if !self.plan.nulls_match || !self.second.has_rows {
            return Ok(false);
        }
        let mut key = Vec::new();
        Ok(self.second.has_null || !key_of(&self.plan.first_keys, context, row, &mut key)?)
    }
}

impl Operator for Hash {
    fn fill(&mut self, context: &Context<'_>, both: &mut Tuple) -> SqlResult<bool> {
        let plan = Arc::clone(&self.plan);
        loop {
            context.execution.look()?;
            if self.left_over.is_some() {
                match self.next_left_over() {
                    None if self.go_on(context)? => continue,
                    left_over => return Ok(given(left_over, both)),
                }
            }
            let Some((row, partner, had_one)) = &mut self.now else {
                let Some(mut row) = self.first.next(context)? else {
                    if plan.kind == JoinKind::Full {
                        self.left_over = Some(0);
                    } else if !self.go_on(context)? {
                        return Ok(false);
                    }
                    continue;
                };
                let had_one = self.has_marks && row.pop() == Some(Value::Boolean(true));
                let partner = self.first_partner(context, &row)?;
                self.now = Some((row, partner, had_one));
                continue;
            };
            if *partner == END {
                let had_one = *had_one;
                let mut row = self.now.take().map(|(row, ..)| row).unwrap_or_default();
                if let Some((_, again)) = &mut self.chunks {
                    row.push(Value::Boolean(had_one));
                    again.push(context.execution, &row)?;
                    continue;
                }
                match plan.kind {
                    JoinKind::Left | JoinKind::Full if !had_one => return Ok(given(Some(with_nulls(row, plan.widths.1)), both)),
                    JoinKind::Anti if !had_one && !self.is_unknown(context, &row)? => return Ok(given(Some(row), both)),
                    _ => continue,
                }
            }
            let number = *partner as usize;
            *partner = self.second.next_equal[number];
            let is_one_side = matches!(plan.kind, JoinKind::Semi | JoinKind::Anti);
            if !is_one_side || plan.condition.is_some() {
                both.clear();
                both.extend(row.iter().cloned());
                both.extend(self.second.rows[number].iter().cloned());
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

//! Rows of a table.

use super::gathered::{self, Begun, FoundRows};
use super::tests::{ask, column_value};
use super::{Context, Operator, Tuple, given};
use crate::expression::Env;
use crate::plan::access::TestKind;
use crate::plan::{Access, ScanPlan};
use crate::planned::PointPlan;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::{ReadView, RowScan, ScanRequest, Transaction};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::{ColumnBatch, RowBuffer};
use pagefold_types::{KeyRange, Predicate, Rid, Value, ValueRef};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows of a table, part by part.
pub(crate) struct Scan {
    plan: Arc<ScanPlan>,
    asked: Option<Predicate>,
    /// Parts that are left, the next one last.
    parts: Vec<usize>,
    /// The one that is open.
    part: usize,
    /// Columns of the table; part and RID are not among them.
    columns: Vec<usize>,
    rows: RowsOf,
    /// Somebody wants to know when it has come to its end.
    is_watched: bool,
    /// A key of an index.
    key: Tuple,
}

enum RowsOf {
    None,
    /// At most one, which was found.
    One(Option<Tuple>),
    /// Those that were gathered.
    Gathered(Box<FoundRows>),
    /// Column by column; row `at` of the batch is the next one.
    Batches {
        scan: Box<pagefold_engine::database::Scan>,
        batch: Option<ColumnBatch>,
        at: usize,
    },
    /// Keys of an index, range by range; ranges that are left, the next one last.
    Keys {
        scan: Option<Box<RowScan>>,
        index: usize,
        ranges: Vec<KeyRange>,
        /// What is still to be asked of a key within a range.
        condition: Option<Predicate>,
    },
}

impl RowsOf {
    fn batches(scan: pagefold_engine::database::Scan) -> RowsOf {
        RowsOf::Batches { scan: Box::new(scan), batch: None, at: 0 }
    }
}

impl Scan {
    /// `row`: the one before, in a join.
    pub(crate) fn open(plan: &Arc<ScanPlan>, context: &Context<'_>, row: &[Value]) -> SqlResult<Scan> {
        let plan = Arc::clone(plan);
        let found = |plan, rows| Scan {
            plan,
            asked: None,
            parts: Vec::new(),
            part: 0,
            columns: Vec::new(),
            rows,
            is_watched: false,
            key: Tuple::new(),
        };
        if let Access::Unique { index, tests } = &plan.access
            && !plan.table.is_divided()
            && tests.len() == plan.tests.len()
            && let Some(one) = one_row(&plan, *index, tests, context, row)?
        {
            return Ok(found(plan, RowsOf::One(one)));
        }
        let is_watched = match gathered::begin(&plan, context, row)? {
            Begun::Reads => false,
            Begun::Watched => true,
            Begun::Found(None) => return Ok(found(plan, RowsOf::None)),
            Begun::Found(Some(rows)) => return Ok(found(plan, RowsOf::Gathered(rows))),
        };
        let (asked, mut parts) = ask(&plan, context, row)?;
        parts.reverse();
        let columns = own_columns(&plan);
        Ok(Scan { plan, asked, parts, part: 0, columns, rows: RowsOf::None, is_watched, key: Tuple::new() })
    }

    /// Opens the next part. False without one.
    fn open_part(&mut self, context: &Context<'_>) -> SqlResult<bool> {
        let Some(at) = self.parts.pop() else { return Ok(false) };
        (self.part, self.rows) = (at, RowsOf::None);
        let part = &self.plan.table.parts[at];
        let view = &context.execution.view;
        let rids = self.columns.len() < self.plan.columns.len();
        let request = |condition| ScanRequest { columns: Some(self.columns.clone()), condition, limit: None, rids };
        self.rows = match &self.plan.access {
            Access::Pages => RowsOf::batches(view.scan(&part.table, &request(self.asked.clone()))?),
            Access::Index { index, direction, keys_only } => {
                let of = &part.indexes[*index];
                let (mut ranges, condition) = ranges(self.asked.as_ref(), of);
                if self.has_none(view, of, &ranges)? {
                    return Ok(true);
                }
                // The last keys first, in the other direction.
                if *direction == pagefold_engine::btree::Direction::Backward {
                    ranges.reverse();
                }
                if *keys_only {
                    ranges.reverse();
                    RowsOf::Keys { scan: None, index: *index, ranges, condition }
                } else {
                    RowsOf::batches(view.ranges(&part.table, of, ranges, *direction, &request(condition))?)
                }
            }
            Access::Unique { index, .. } => {
                let of = &part.indexes[*index];
                let (ranges, condition) = ranges(self.asked.as_ref(), of);
                if self.has_none(view, of, &ranges)? {
                    return Ok(true);
                }
                let forward = pagefold_engine::btree::Direction::Forward;
                RowsOf::batches(view.ranges(&part.table, of, ranges, forward, &request(condition))?)
            }
        };
        Ok(true)
    }

    /// Of many parts few have a key: is it known that the one which is opened has none of these?
    fn has_none(&self, view: &ReadView, index: &Index, ranges: &[KeyRange]) -> SqlResult<bool> {
        Ok(self.plan.table.is_divided() && !view.may_have(index, ranges)?)
    }

    fn next_of_part(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        match &mut self.rows {
            RowsOf::None => Ok(false),
            RowsOf::One(found) => Ok(given(found.take(), row)),
            RowsOf::Gathered(rows) => rows.next(context, row),
            RowsOf::Batches { scan, batch, at } => loop {
                let table = &self.plan.table.parts[self.part].table;
                if let Some(rows) = batch.as_ref().filter(|batch| *at < batch.len()) {
                    row.clear();
                    rows.values_into(table, *at, row)?;
                    if let Some(rids) = rows.rids() {
                        put_place(&self.plan, (self.part, rids[*at]), row);
                    }
                    *at += 1;
                    return Ok(true);
                }
                context.execution.limits.check()?;
                // Who wants few rows has them from the first page, or the first entries.
                let next = scan.next_step(batch.take())?;
                if next.is_none() {
                    return Ok(false);
                }
                (*batch, *at) = (next, 0);
            },
            RowsOf::Keys { scan, index, ranges, condition } => loop {
                let Access::Index { direction, .. } = &self.plan.access else { return Ok(false) };
                let part = self.plan.table.first();
                let columns = self.plan.table.index_columns(*index);
                let keys = match scan {
                    Some(keys) => keys,
                    None => {
                        let Some(range) = ranges.pop() else { return Ok(false) };
                        scan.insert(Box::new(context.execution.view.keys(&part.table, &part.indexes[*index], range, *direction)?))
                    }
                };
                let Some(rid) = keys.next_values(&mut self.key)? else {
                    *scan = None;
                    continue;
                };
                let place = |column: usize| columns.iter().position(|(own, _)| *own == column);
                let key = &mut self.key;
                if let Some(condition) = condition {
                    let value = |column: usize| place(column).map_or(ValueRef::Null, |at| key[at].as_ref());
                    if condition.eval(|column| Ok::<_, SqlError>(value(column)))? != Some(true) {
                        context.execution.look()?;
                        continue;
                    }
                }
                row.clear();
                row.extend(self.columns.iter().map(|column| place(*column).map_or(Value::Null, |at| key[at].clone())));
                put_place(&self.plan, (self.part, rid), row);
                return Ok(true);
            },
        }
    }
}

impl Operator for Scan {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        loop {
            context.execution.look()?;
            if !self.next_of_part(context, row)? {
                if !self.open_part(context)? {
                    if self.is_watched {
                        gathered::read_all(&self.plan, context);
                    }
                    return Ok(false);
                }
                continue;
            }
            match &self.plan.residual {
                Some(condition) if !context.is_true(condition, row)? => {}
                _ => return Ok(true),
            }
        }
    }
}

/// Columns that the table itself has.
fn own_columns(plan: &ScanPlan) -> Vec<usize> {
    let width = plan.table.schema.len();
    plan.columns.iter().copied().filter(|column| *column < width).collect()
}

/// Part and RID, where they are wanted: they are the last columns.
fn put_place(plan: &ScanPlan, (part, rid): (usize, Rid), row: &mut Tuple) {
    let width = plan.table.schema.len();
    for column in plan.columns.iter().filter(|column| **column >= width) {
        let number = if *column == width { part as u64 } else { rid.to_u64() };
        row.push(Value::Int(number.cast_signed()));
    }
}

/// Ranges of an index where rows are for which a condition may be true, and the condition, where these do not say all of it.
fn ranges(asked: Option<&Predicate>, index: &Index) -> (Vec<KeyRange>, Option<Predicate>) {
    match asked.map(|condition| (condition, condition.key_ranges_and_exactness(index.key_layout()))) {
        Some((_, (ranges, true))) => (ranges, None),
        Some((condition, (ranges, false))) => (ranges, Some(condition.clone())),
        None => (vec![KeyRange { start: Vec::new(), end: None }], None),
    }
}

/// The key of a row, as its columns have it.
enum Key {
    Of(Vec<Value>),
    /// Something is NULL: there is no row.
    None,
    /// A value is not as the column has it: who looks goes by a condition.
    Other,
}

fn key_of(plan: &ScanPlan, tests: &[usize], env: &Env<'_>) -> SqlResult<Key> {
    let schema = plan.table.schema.columns();
    let mut key = Vec::with_capacity(tests.len());
    for at in tests {
        let TestKind::Compare { value, data_type, .. } = &plan.tests[*at].kind else { return Ok(Key::Other) };
        let value = value.evaluate(env)?;
        if value == Value::Null {
            return Ok(Key::None);
        }
        if column_value(&value, data_type, &schema[plan.tests[*at].column].data_type).is_none() {
            return Ok(Key::Other);
        }
        key.push(value);
    }
    Ok(Key::Of(key))
}

/// The row of a point plan: at most one. `None`: who looks goes by the plan itself.
pub(crate) fn point(plan: &PointPlan, transaction: &mut Transaction<'static>, env: &Env<'_>) -> SqlResult<Option<Option<Tuple>>> {
    let scan = &plan.scan;
    let key = match key_of(scan, &plan.tests, env)? {
        Key::Of(key) => key,
        Key::None => return Ok(Some(None)),
        Key::Other => return Ok(None),
    };
    let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
    let part = scan.table.first();
    let mut buffer = RowBuffer::for_columns(&part.table, &scan.columns);
    let found = transaction
        .get_with(&part.table, &part.indexes[plan.index], &key, &mut buffer, |_, record| part.table.values_of(record, &scan.columns))?;
    let Some(row) = found.transpose()? else { return Ok(Some(None)) };
    let env = Env { row: &row, ..*env };
    if let Some(condition) = &scan.residual
        && !condition.is_true(&env)?
    {
        return Ok(Some(None));
    }
    match &plan.exprs {
        Some(exprs) => Ok(Some(Some(exprs.iter().map(|expr| expr.evaluate(&env)).collect::<SqlResult<Tuple>>()?))),
        None => Ok(Some(Some(row))),
    }
}

/// The one row of a unique key; `None` when a value is not as the column has it.
fn one_row(plan: &ScanPlan, index: usize, tests: &[usize], context: &Context<'_>, row: &[Value]) -> SqlResult<Option<Option<Tuple>>> {
    let part = plan.table.first();
    let key = match key_of(plan, tests, &context.env(row))? {
        Key::Of(key) => key,
        Key::None => return Ok(Some(None)),
        Key::Other => return Ok(None),
    };
    let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
    let mut found = None;
    let columns = own_columns(plan);
    let mut buffer = RowBuffer::for_columns(&part.table, &columns);
    context.execution.view.find(&part.table, &part.indexes[index], &key, &mut buffer, |rid, record| {
        let values = part.table.values_of(record, &columns);
        found = Some(values.map(|mut row| {
            put_place(plan, (0, rid), &mut row);
            row
        }));
        ControlFlow::Break(())
    })?;
    Ok(Some(found.transpose()?))
}

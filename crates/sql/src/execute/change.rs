//! Rows that are inserted, changed, deleted.
//!
//! Invariants:
//! - rows that change are known before the first of them changes;
//! - foreign keys are looked at when all rows have changed (`foreign_key`);
//! - whoever calls takes the statement back when it fails: nothing here does;
//! - under READ COMMITTED a row that others changed since the statement saw it makes the statement begin again ([`Outcome::Again`]), with what
//!   is committed now; rows that it has locked stay locked, so it comes to an end.

use super::foreign_key::Keeper;
use super::spill::RowList;
use super::{Context, Execution, Operator, Tuple, bytes_of, open};
use crate::bind::change::{ChangePlan, Returning};
use crate::bind::insert::{Conflict, InsertPlan};
use crate::bind::rules::RowRules;
use crate::catalog::TableRef;
use crate::expression::Env;
use crate::planned::LockingPlan;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{Insertion, LockWait, Locked, RowLock, Transaction};
use pagefold_types::{Rid, Value, ValueRef};
use std::collections::HashSet;
use std::sync::Arc;

/// What a statement has done.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) rows: u64,
    pub(crate) returned: Vec<Tuple>,
    /// Bytes that were written to a scratch file.
    pub(crate) spilled: u64,
}

pub(crate) enum Outcome {
    Done(Changed),
    Again,
}

/// What is kept of a row that a statement has met.
const MET_BYTES: usize = 32;

/// Rows that are given together where nothing has to be known of each.
const ROWS_TOGETHER: usize = 64;

/// Runs an INSERT.
pub(crate) fn insert(plan: &InsertPlan, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Outcome> {
    let context = execution.context();
    execution.know(&plan.beforehand)?;
    let mut source = open(&plan.source, &context)?;
    let mut changed = Changed::default();
    if plan.reads_own {
        let mut rows = RowList::default();
        while let Some(row) = source.next(&context)? {
            execution.look()?;
            rows.push(execution, row)?;
        }
        source = Box::new(rows.finish(execution)?);
    }
    let mut next = |context: &Context<'_>| -> SqlResult<Option<Tuple>> {
        let Some(row) = source.next(context)? else { return Ok(None) };
        execution.look()?;
        new_row(plan, context, &row).map(Some)
    };
    let mut keeper = Keeper::new(&plan.references);
    let is_plain = plan.conflict.is_none() && plan.returning.is_none() && !plan.table.is_divided();
    if is_plain && !keeper.is_idle() {
        let mut rows = Vec::with_capacity(ROWS_TOGETHER);
        loop {
            while rows.len() < ROWS_TOGETHER
                && let Some(row) = next(&context)?
            {
                rows.push(row);
            }
            insert_all(&plan.table, transaction, &rows)?;
            for row in &rows {
                keeper.came(transaction, execution, 0, None, row)?;
            }
            changed.rows += rows.len() as u64;
            if rows.len() < ROWS_TOGETHER {
                keeper.finish(transaction, execution)?;
                return Ok(Outcome::Done(changed));
            }
            rows.clear();
        }
    }
    if is_plain {
        // One alone is inserted by itself; of more, as many as fit pages come together.
        let Some(first) = next(&context)? else { return Ok(Outcome::Done(changed)) };
        let Some(second) = next(&context)? else {
            insert_one(&plan.table, transaction, &first)?;
            return Ok(Outcome::Done(Changed { rows: 1, ..changed }));
        };
        let table = &plan.table.first().table;
        let mut failed = None;
        let mut waiting = vec![first, second];
        let inserted = transaction.insert_rows(table, |rows| {
            loop {
                for row in waiting.drain(..) {
                    let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                    rows.push(&values)?;
                    changed.rows += 1;
                }
                while waiting.len() < ROWS_TOGETHER {
                    match next(&context) {
                        Ok(Some(row)) => waiting.push(row),
                        Ok(None) => break,
                        Err(error) => {
                            failed = Some(error);
                            return Err(Error::Cancelled);
                        }
                    }
                }
                if waiting.is_empty() {
                    return Ok(());
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        inserted.map_err(|error| of_key(error, &plan.table))?;
        return Ok(Outcome::Done(changed));
    }
    let mut touched = HashSet::new();
    while let Some(row) = next(&context)? {
        let (is_changed, row) = match &plan.conflict {
            None => {
                insert_one(&plan.table, transaction, &row)?;
                keeper.came(transaction, execution, 0, None, &row)?;
                (true, row)
            }
            Some(conflict) => match insert_or((plan, conflict), transaction, &context, &mut keeper, &mut touched, row)? {
                Some(done) => done,
                None => return Ok(Outcome::Again),
            },
        };
        if is_changed {
            changed.rows += 1;
            changed.give(plan.returning.as_ref(), &context, &row)?;
        }
    }
    keeper.finish(transaction, execution)?;
    Ok(Outcome::Done(changed))
}

/// Inserts a few rows into a table that is not divided.
pub(super) fn insert_all(table: &TableRef, transaction: &mut Transaction<'static>, rows: &[Tuple]) -> SqlResult<()> {
    match rows {
        [] => Ok(()),
        [row] => insert_one(table, transaction, row),
        rows => {
            let inserted = transaction.insert_rows(&table.first().table, |to_come| {
                for row in rows {
                    let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                    to_come.push(&values)?;
                }
                Ok(())
            });
            inserted.map(drop).map_err(|error| of_key(error, table))
        }
    }
}

impl Changed {
    /// RETURNING of a row.
    pub(super) fn give(&mut self, returning: Option<&Returning>, context: &Context<'_>, row: &[Value]) -> SqlResult<()> {
        let Some(returning) = returning else { return Ok(()) };
        let env = context.env(row);
        let row = returning.exprs.iter().map(|expr| expr.evaluate(&env)).collect::<SqlResult<Tuple>>()?;
        context.execution.budget.take(bytes_of(&row))?;
        self.returned.push(row);
        Ok(())
    }
}

/// A row for all columns of the table, which meets all rules.
fn new_row(plan: &InsertPlan, context: &Context<'_>, source: &[Value]) -> SqlResult<Tuple> {
    let mut row = given_row(plan, context, source)?;
    complete(&plan.table, &plan.rules, context, &mut row)?;
    let env = context.env(&row);
    meets_constraints(&plan.table, &plan.rules, &env)?;
    // With ON CONFLICT it may be that it does not come: views are asked of rows that do.
    if plan.conflict.is_none() {
        is_let_in(&plan.table, &plan.rules, &env)?;
    }
    Ok(row)
}

/// A row for all columns of the table as it is given, defaults among it.
pub(super) fn given_row(plan: &InsertPlan, context: &Context<'_>, source: &[Value]) -> SqlResult<Tuple> {
    let env = context.env(source);
    plan.exprs.iter().map(|expr| expr.evaluate(&env)).collect()
}

/// Computes generated columns, and refuses a row that does not meet a rule.
pub(crate) fn follow(table: &TableRef, rules: &RowRules, context: &Context<'_>, row: &mut Tuple) -> SqlResult<()> {
    complete(table, rules, context, row)?;
    meets_checks(table, rules, &context.env(row))
}

/// Computes generated columns, and refuses NULL where it may not be.
fn complete(table: &TableRef, rules: &RowRules, context: &Context<'_>, row: &mut Tuple) -> SqlResult<()> {
    for (column, expr) in &rules.generated {
        row[*column] = context.evaluate(expr, row)?;
    }
    not_null(table, row.iter().map(Value::as_ref).enumerate())
}

/// Refuses a row, that of `env`, which does not meet a CHECK, or which a view does not let in.
pub(super) fn meets_checks(table: &TableRef, rules: &RowRules, env: &Env<'_>) -> SqlResult<()> {
    meets_constraints(table, rules, env)?;
    is_let_in(table, rules, env)
}

fn meets_constraints(table: &TableRef, rules: &RowRules, env: &Env<'_>) -> SqlResult<()> {
    for (name, condition) in &rules.checks {
        if condition.evaluate(env)? == Value::Boolean(false) {
            let message = format!("new row for relation \"{}\" violates check constraint \"{name}\"", table.name);
            return Err(SqlError::new("23514", message).with_detail(failing_row(table, env.row)).of_constraint(name, &table.name));
        }
    }
    Ok(())
}

/// Refuses a row that a view WITH CHECK OPTION would not show.
fn is_let_in(table: &TableRef, rules: &RowRules, env: &Env<'_>) -> SqlResult<()> {
    for (view, condition) in &rules.views {
        if condition.evaluate(env)? != Value::Boolean(true) {
            let message = format!("new row violates check option for view \"{view}\"");
            return Err(SqlError::new("44000", message).with_detail(failing_row(table, env.row)));
        }
    }
    Ok(())
}

/// Refuses NULL where a column has to have a value.
pub(super) fn not_null<'v>(table: &TableRef, values: impl Iterator<Item = (usize, ValueRef<'v>)>) -> SqlResult<()> {
    for (column, value) in values {
        let own = &table.schema.columns()[column];
        if value.is_null() && !own.nullable {
            let message = format!("null value in column \"{}\" of relation \"{}\" violates not-null constraint", own.name, table.name);
            return Err(SqlError::new("23502", message).of_column(&table.name, &own.name));
        }
    }
    Ok(())
}

pub(crate) fn failing_row(table: &TableRef, row: &[Value]) -> String {
    let text = |(value, column): (&Value, &pagefold_types::Column)| match value {
        Value::Null => "null".to_owned(),
        value => pagefold_types::excerpt(value.as_ref(), &column.data_type),
    };
    let values: Vec<String> = row.iter().zip(table.schema.columns()).map(text).collect();
    format!("Failing row contains ({}).", values.join(", "))
}

/// Names the constraint that a duplicate key violates.
pub(crate) fn of_key(error: Error, table: &TableRef) -> SqlError {
    match &error {
        Error::DuplicateKey { index, .. } => {
            let index = pagefold_engine::database::split_partition_name(index).map_or(index.as_str(), |(name, _)| name).to_owned();
            SqlError::from(error).of_constraint(&index, &table.name)
        }
        _ => error.into(),
    }
}

pub(super) fn insert_one(table: &TableRef, transaction: &mut Transaction<'static>, row: &[Value]) -> SqlResult<()> {
    let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
    insert_values(table, transaction, &values)
}

pub(super) fn insert_values(table: &TableRef, transaction: &mut Transaction<'static>, values: &[ValueRef<'_>]) -> SqlResult<()> {
    let part = &table.parts[table.part_of(values)?];
    transaction.insert(&part.table, values).map(drop).map_err(|error| of_key(error, table))
}

/// Inserts a row, or does what ON CONFLICT says. Whether a row has changed, and how it is now; `None`: begin again.
fn insert_or(
    (plan, conflict): (&InsertPlan, &Conflict),
    transaction: &mut Transaction<'static>,
    context: &Context<'_>,
    keeper: &mut Keeper<'_>,
    touched: &mut HashSet<(usize, u64)>,
    row: Tuple,
) -> SqlResult<Option<(bool, Tuple)>> {
    let table = &plan.table;
    let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
    let place = table.part_of(&values)?;
    // The index that was named is asked first: rows of others count only where it has none.
    let named = match conflict.index {
        None => None,
        Some(own) => {
            let columns = table.index_columns(own);
            let key: Vec<ValueRef<'_>> = columns.iter().map(|(column, _)| values[*column]).collect();
            match key.iter().any(ValueRef::is_null) {
                true => None,
                false => row_with_key(table, transaction, (own, place), &key)?,
            }
        }
    };
    let (number, rid) = match named {
        Some((number, rid)) if transaction.lock(&table.parts[number].table, rid)? => (number, rid),
        // It has gone meanwhile.
        Some(_) => return Ok(None),
        None => {
            let part = &table.parts[place];
            let taken = transaction.insert_unless_taken(&part.table, &values).map_err(|error| of_key(error, table))?;
            match taken {
                Insertion::Inserted(rid) => {
                    is_let_in(table, &plan.rules, &context.env(&row))?;
                    touched.insert((place, rid.to_u64()));
                    keeper.came(transaction, context.execution, 0, None, &row)?;
                    return Ok(Some((true, row)));
                }
                // Another index than the one that was named is an error as ever.
                Insertion::Taken { index, .. } if conflict.index.is_some_and(|own| part.indexes[own].name() != index.name()) => {
                    insert_one(table, transaction, &row)?;
                    is_let_in(table, &plan.rules, &context.env(&row))?;
                    keeper.came(transaction, context.execution, 0, None, &row)?;
                    return Ok(Some((true, row)));
                }
                Insertion::Taken { rid, elsewhere: None, .. } => (place, rid),
                Insertion::Taken { rid, elsewhere: Some(other), .. } => {
                    match table.parts.iter().position(|part| part.is_usable() && Arc::ptr_eq(&part.table, &other)) {
                        Some(number) => (number, rid),
                        None if !table.is_divided() && conflict.update.is_none() => return Ok(Some((false, row))),
                        // The statement names one partition, and the row is in another.
                        None if !table.is_divided() => {
                            let message =
                                format!("ON CONFLICT DO UPDATE of a row of \"{}\", where \"{}\" is named", other.name(), table.name);
                            return Err(SqlError::unsupported(message));
                        }
                        // It came, or was written anew, since the statement found its table.
                        None => return Err(Error::Conflict { object: other.name().into(), rid }.into()),
                    }
                }
            }
        }
    };
    let part = &table.parts[number];
    if conflict.update.is_some() && touched.contains(&(number, rid.to_u64())) {
        let error = SqlError::new("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time");
        return Err(
            error.with_hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
        );
    }
    let Some(update) = &conflict.update else { return Ok(Some((false, row))) };
    let Some(old) = transaction.row(&part.table, rid)? else {
        // Of a snapshot: there is a row that it does not see.
        if transaction.isolation() != pagefold_engine::database::Isolation::ReadCommitted {
            return Err(Error::Conflict { object: part.table.name().into(), rid }.into());
        }
        return Ok(None);
    };
    let mut both = old.clone();
    both.extend(row);
    if let Some((view, conditions)) = &update.shown {
        for condition in conditions {
            if !context.is_true(condition, &both)? {
                return Err(SqlError::new("55000", format!("conflicting row is not visible through view \"{view}\"")));
            }
        }
    }
    if let Some(condition) = &update.condition
        && !context.is_true(condition, &both)?
    {
        return Ok(Some((false, old)));
    }
    let env = context.env(&both);
    let mut new = old.clone();
    for (column, expr) in &update.assignments {
        new[*column] = expr.evaluate(&env)?;
    }
    follow(table, &plan.rules, context, &mut new)?;
    let columns: Vec<usize> = update.assignments.iter().map(|(column, _)| *column).collect();
    let changes: Vec<(usize, ValueRef<'_>)> =
        changes_of(&columns, &plan.rules).into_iter().map(|column| (column, new[column].as_ref())).collect();
    keeper.claim(transaction, 0, &old, &|column| old[column] != new[column])?;
    let Some((now, moved)) = put(table, transaction, (number, rid), &changes, Some(&new))? else { return Ok(None) };
    touched.insert((now, moved.to_u64()));
    let moves = table.range_columns().iter().any(|column| old[*column] != new[*column]);
    keeper.came(transaction, context.execution, 0, (!moves).then_some(&old[..]), &new)?;
    keeper.went(context.execution, 0, &old, Some(&new))?;
    Ok(Some((true, new)))
}

/// The row with a key of a unique index, and the part that has it. `place`: where a new row with this key belongs.
fn row_with_key(
    table: &TableRef,
    transaction: &mut Transaction<'static>,
    (index, place): (usize, usize),
    key: &[ValueRef<'_>],
) -> SqlResult<Option<(usize, Rid)>> {
    let is_of_one = table.range_columns().iter().all(|column| table.index_columns(index).iter().any(|(own, _)| own == column));
    let others = (0..table.parts.len()).filter(|at| *at != place && !is_of_one);
    for at in std::iter::once(place).chain(others) {
        let part = table.part(at)?;
        if let Some(rid) = transaction.get(&part.table, &part.indexes[index], key, |rid, _| rid)? {
            return Ok(Some((at, rid)));
        }
    }
    Ok(None)
}

/// Columns that change: those that are assigned, and generated ones.
fn changes_of(assigned: &[usize], rules: &RowRules) -> Vec<usize> {
    let mut columns = assigned.to_vec();
    columns.extend(rules.generated.iter().map(|(column, _)| *column));
    columns
}

/// Gives a row other values; into another part, if it belongs there. Where it is now: nowhere when it is gone.
pub(super) fn put(
    table: &TableRef,
    transaction: &mut Transaction<'static>,
    (part, rid): (usize, Rid),
    changes: &[(usize, ValueRef<'_>)],
    whole: Option<&[Value]>,
) -> SqlResult<Option<(usize, Rid)>> {
    let own = &table.parts[part];
    if let Some(whole) = whole
        && changes.iter().any(|(column, _)| table.range_columns().contains(column))
    {
        let values: Vec<ValueRef<'_>> = whole.iter().map(Value::as_ref).collect();
        let to = table.part_of(&values)?;
        if to != part {
            return match transaction.delete(&own.table, rid)? {
                true => {
                    let moved = transaction.insert(&table.parts[to].table, &values).map_err(|error| of_key(error, table))?;
                    Ok(Some((to, moved)))
                }
                false => Ok(None),
            };
        }
    }
    let found = transaction.update(&own.table, rid, changes).map_err(|error| of_key(error, table))?;
    Ok(found.then_some((part, rid)))
}

/// Runs an UPDATE or DELETE.
pub(crate) fn change(plan: &ChangePlan, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Outcome> {
    let context = execution.context();
    execution.know(&plan.beforehand)?;
    let mut source = open(&plan.source, &context)?;
    let mut rows = RowList::default();
    let mut met = RowsMet::default();
    let may_repeat = !plan.source.gives_rows_once();
    while let Some(row) = source.next(&context)? {
        execution.look()?;
        // Of several partners that a join has for a row, the first counts, as in PostgreSQL.
        if may_repeat && !met.is_first(execution, place_of(&row)?)? {
            continue;
        }
        rows.push(execution, row)?;
    }
    drop(source);
    met.forget(execution);
    let mut rows = rows.finish(execution)?;
    let mut row = Tuple::new();
    let mut changed = Changed::default();
    let mut changer = Changer { table: &plan.table, rules: &plan.rules, has_all: plan.has_all, keeper: Keeper::new(&plan.references) };
    while rows.fill(&context, &mut row)? {
        execution.look()?;
        let (assigned, old) = row[2..].split_at(plan.columns.len());
        let (old, beside) = old.split_at(if plan.has_all { plan.table.schema.len() } else { 0 });
        let to = if plan.is_delete { ChangeTo::Nothing } else { ChangeTo::Values { columns: &plan.columns, assigned } };
        match changer.change(transaction, &context, place_of(&row)?, old, to)? {
            RowChange::Again => return Ok(Outcome::Again),
            RowChange::Gone => {}
            RowChange::Done(new) => {
                changed.rows += 1;
                let now = new.as_deref().unwrap_or(old);
                match beside {
                    [] => changed.give(plan.returning.as_ref(), &context, now)?,
                    beside => changed.give(plan.returning.as_ref(), &context, &[now, beside].concat())?,
                }
            }
        }
    }
    changer.keeper.finish(transaction, execution)?;
    Ok(Outcome::Done(changed))
}

/// Which rows of a table a statement has met.
#[derive(Default)]
pub(super) struct RowsMet {
    places: HashSet<(usize, u64)>,
}

impl RowsMet {
    /// Notes a row: is it met for the first time?
    pub(super) fn is_first(&mut self, execution: &Execution, (part, rid): (usize, Rid)) -> SqlResult<bool> {
        if !self.places.insert((part, rid.to_u64())) {
            return Ok(false);
        }
        execution.budget.take(MET_BYTES)?;
        Ok(true)
    }

    pub(super) fn forget(self, execution: &Execution) {
        execution.budget.give_back(self.places.len() * MET_BYTES);
    }
}

/// What becomes of a row.
#[derive(Clone, Copy)]
pub(super) enum ChangeTo<'r> {
    /// It goes.
    Nothing,
    /// Columns get other values.
    Values { columns: &'r [usize], assigned: &'r [Value] },
}

/// What became of it.
pub(super) enum RowChange {
    /// Others have changed it since the statement began.
    Again,
    /// It was not there any more.
    Gone,
    /// It has changed: all columns as they are now, where they are known and it is there.
    Done(Option<Tuple>),
}

/// Changes rows of a table one by one.
pub(super) struct Changer<'c> {
    pub(super) table: &'c TableRef,
    pub(super) rules: &'c RowRules,
    /// All old values of a row are known.
    pub(super) has_all: bool,
    pub(super) keeper: Keeper<'c>,
}

impl Changer<'_> {
    /// Changes a row that the statement has seen; `old` is all its columns, if they are known.
    pub(super) fn change(
        &mut self,
        transaction: &mut Transaction<'static>,
        context: &Context<'_>,
        (part, rid): (usize, Rid),
        old: &[Value],
        to: ChangeTo<'_>,
    ) -> SqlResult<RowChange> {
        let (table, keeper, execution) = (self.table, &mut self.keeper, context.execution);
        let own = &table.parts[part];
        if !keeper.is_idle() {
            let may_change = |column: usize| match to {
                ChangeTo::Nothing => true,
                ChangeTo::Values { columns, assigned } => match columns.iter().position(|own| *own == column) {
                    Some(at) => assigned[at] != old[column],
                    None => table.rules.generated[column].is_some(),
                },
            };
            keeper.claim(transaction, 0, old, &may_change)?;
        }
        let rid = match transaction.lock_seen(&execution.view, &own.table, rid, RowLock::Exclusive, LockWait::Wait)? {
            Locked::Unchanged => rid,
            Locked::Moved(now) => now,
            // By this statement: something that it did to another row has taken this one along.
            Locked::Gone | Locked::Changed | Locked::Skipped => return Ok(RowChange::Again),
        };
        let ChangeTo::Values { columns, assigned } = to else {
            if !transaction.delete(&own.table, rid)? {
                return Ok(RowChange::Gone);
            }
            if !keeper.is_idle() {
                keeper.went(execution, 0, old, None)?;
            }
            return Ok(RowChange::Done(None));
        };
        let new = if self.has_all {
            let mut new = old.to_vec();
            for (column, value) in columns.iter().zip(assigned) {
                new[*column] = value.clone();
            }
            follow(table, self.rules, context, &mut new)?;
            Some(new)
        } else {
            not_null(table, columns.iter().copied().zip(assigned.iter().map(Value::as_ref)))?;
            None
        };
        let changes: Vec<(usize, ValueRef<'_>)> = match &new {
            Some(new) => changes_of(columns, self.rules).into_iter().map(|column| (column, new[column].as_ref())).collect(),
            None => columns.iter().zip(assigned).map(|(column, value)| (*column, value.as_ref())).collect(),
        };
        if put(table, transaction, (part, rid), &changes, new.as_deref())?.is_none() {
            return Ok(RowChange::Gone);
        }
        if let Some(new) = &new
            && !keeper.is_idle()
        {
            let moves = table.range_columns().iter().any(|column| old[*column] != new[*column]);
            keeper.came(transaction, execution, 0, (!moves).then_some(old), new)?;
            keeper.went(execution, 0, old, Some(new))?;
        }
        Ok(RowChange::Done(new))
    }
}

/// Part and RID of a row: its first two values.
pub(super) fn place_of(row: &[Value]) -> SqlResult<(usize, Rid)> {
    let found = match row {
        [Value::Int(part), Value::Int(rid), ..] => usize::try_from(*part).ok().zip(Rid::from_u64(rid.cast_unsigned())),
        _ => None,
    };
    found.ok_or_else(|| SqlError::new("XX000", "a row that is to change without its place"))
}

/// Runs SELECT ... FOR UPDATE or FOR SHARE: rows are locked one by one, and given when all are.
pub(crate) fn lock_rows(plan: &LockingPlan, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Outcome> {
    let context = execution.context();
    let (mut skip, limit) = super::order::bounds(&plan.limit, &context)?;
    let mut source = open(&plan.source, &context)?;
    let mut changed = Changed::default();
    while (changed.returned.len() as u64) < limit
        && let Some(mut row) = source.next(&context)?
    {
        execution.look()?;
        let (part, rid) = place_of(&row[plan.columns..])?;
        match transaction.lock_seen(&execution.view, &plan.table.parts[part].table, rid, plan.lock, plan.wait)? {
            Locked::Unchanged | Locked::Moved(_) => {}
            Locked::Skipped => continue,
            Locked::Gone | Locked::Changed => return Ok(Outcome::Again),
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        row.truncate(plan.columns);
        execution.budget.take(bytes_of(&row))?;
        changed.returned.push(row);
    }
    changed.rows = changed.returned.len() as u64;
    Ok(Outcome::Done(changed))
}

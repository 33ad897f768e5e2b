//! Foreign keys while a statement runs: keys of rows that come are looked for, rows that refer to keys that go are found, and changed as the keys say.
//!
//! Invariants:
//! - whoever takes a key away has locked it before the row, and looks for rows that refer to it when all rows of the statement have changed;
//! - keys that went wait in a list, those that actions make go behind them: nothing here calls itself, however long a chain of actions is;
//! - what is looked at is committed now, or of the own transaction, whatever its snapshot.

use super::change::{follow, put};
use super::{Execution, Tuple, bytes_of};
use crate::bind::foreign_key::{Action, ForeignKey, References};
use crate::catalog::TableRef;
use crate::expression::{for_column, type_name};
use crate::parse::short_name;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::btree;
use pagefold_engine::database::{Isolation, LockWait, Locked, ReadView, RowLock, RowScan, ScanRequest, Transaction};
use pagefold_types::{Condition, DataType, Operand, Predicate, Rid, Value, ValueRef, column, text};
use std::collections::{HashSet, VecDeque};

/// Keys that were found, and are not looked for again.
const KNOWN_MAX: usize = 1024;

/// What a statement has done to keys, and what is to be looked at when it ends.
pub(super) struct Keeper<'k> {
    references: &'k References,
    gone: VecDeque<Gone>,
    /// Keys, by number, of rows that came before the row that they refer to, if that comes.
    missing: Vec<(usize, Tuple)>,
    /// Keys, by number, that went and to which rows refer: NO ACTION.
    left: Vec<(usize, Tuple)>,
    /// Of a table that the statement does not change: told when it ends, behind other errors.
    failed: Option<SqlError>,
    known: HashSet<(usize, Vec<u8>)>,
}

/// A key that a row had. A foreign key by number, and what the row has instead.
struct Gone {
    key: usize,
    old: Tuple,
    new: Option<Tuple>,
}

fn pick(row: &[Value], columns: &[usize]) -> Tuple {
    columns.iter().map(|column| row[*column].clone()).collect()
}

fn has_null(key: &[Value]) -> bool {
    key.contains(&Value::Null)
}

impl<'k> Keeper<'k> {
    pub(super) fn new(references: &'k References) -> Keeper<'k> {
        let (gone, missing, left) = (VecDeque::new(), Vec::new(), Vec::new());
        Keeper { references, gone, missing, left, failed: None, known: HashSet::new() }
    }

    /// Is there nothing to look at?
    pub(super) fn is_idle(&self) -> bool {
        self.references.is_empty()
    }

    /// A row has come to a table, or has changed from `old`; without that, all its keys are new there.
    pub(super) fn came(
        &mut self,
        transaction: &mut Transaction<'static>,
        execution: &Execution,
        table: usize,
        old: Option<&[Value]>,
        row: &[Value],
    ) -> SqlResult<()> {
        let references = self.references;
        let Some(node) = references.tables.get(table) else { return Ok(()) };
        for number in node.outgoing.iter().copied() {
            let key = &references.keys[number];
            if old.is_some_and(|old| key.columns.iter().all(|column| old[*column] == row[*column])) {
                continue;
            }
            let values = pick(row, &key.columns);
            if has_null(&values) {
                if key.full && values.iter().any(|value| *value != Value::Null) {
                    let error = self.not_there(key);
                    return Err(error.with_detail("MATCH FULL does not allow mixing of null and nonnull key values."));
                }
                continue;
            }
            if self.is_there(transaction, number, &values)? {
                continue;
            }
            if references.tables[key.parent].reach.is_none() {
                if self.failed.is_none() {
                    self.failed = Some(self.not_there_of(key, &values));
                }
            } else {
                execution.budget.take(bytes_of(&values))?;
                self.missing.push((number, values));
            }
        }
        Ok(())
    }

    /// Locks the keys that a row is about to lose, before the row itself.
    pub(super) fn claim(
        &mut self,
        transaction: &mut Transaction<'static>,
        table: usize,
        old: &[Value],
        may_change: &dyn Fn(usize) -> bool,
    ) -> SqlResult<()> {
        let references = self.references;
        let Some(node) = references.tables.get(table) else { return Ok(()) };
        for key in node.incoming.iter().map(|key| &references.keys[*key]) {
            let values = pick(old, &key.referred);
            if !has_null(&values) && key.referred.iter().any(|column| may_change(*column)) {
                self.known.clear();
                look(references, transaction, key, &values, RowLock::Exclusive)?;
            }
        }
        Ok(())
    }

    /// A row has gone, or is another one now.
    pub(super) fn went(&mut self, execution: &Execution, table: usize, old: &[Value], new: Option<&[Value]>) -> SqlResult<()> {
        let Some(node) = self.references.tables.get(table) else { return Ok(()) };
        for number in node.incoming.iter().copied() {
            let key = &self.references.keys[number];
            let (old, new) = (pick(old, &key.referred), new.map(|new| pick(new, &key.referred)));
            if !has_null(&old) && new.as_ref() != Some(&old) {
                execution.budget.take(bytes_of(&old) + new.as_deref().map_or(0, bytes_of))?;
                self.gone.push_back(Gone { key: number, old, new });
            }
        }
        Ok(())
    }

    /// All rows of the statement have changed: does what is to be done, and refuses what does not hold.
    pub(super) fn finish(mut self, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while let Some(gone) = self.gone.pop_front() {
            execution.limits.check()?;
            execution.budget.give_back(bytes_of(&gone.old) + gone.new.as_deref().map_or(0, bytes_of));
            self.resolve(transaction, execution, &gone)?;
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        for (number, values) in std::mem::take(&mut self.missing) {
            execution.look()?;
            let key = &self.references.keys[number];
            // The row that had it may have gone, too.
            if !look(self.references, transaction, key, &values, RowLock::Shared)? && self.first_child(transaction, key, &values)? {
                return Err(self.not_there_of(key, &values));
            }
        }
        for (number, values) in std::mem::take(&mut self.left) {
            execution.look()?;
            let key = &self.references.keys[number];
            if !look(self.references, transaction, key, &values, RowLock::Exclusive)? && self.first_child(transaction, key, &values)? {
                return Err(self.still_referred(key, &values));
            }
        }
        Ok(())
    }

    fn resolve(&mut self, transaction: &mut Transaction<'static>, execution: &Execution, gone: &Gone) -> SqlResult<()> {
        let references = self.references;
        let key = &references.keys[gone.key];
        let action = if gone.new.is_none() { key.on_delete } else { key.on_update };
        match action {
            Action::Restrict if self.first_child(transaction, key, &gone.old)? => Err(self.still_referred(key, &gone.old)),
            Action::Nothing if self.first_child(transaction, key, &gone.old)? => {
                execution.budget.take(bytes_of(&gone.old))?;
                self.left.push((gone.key, gone.old.clone()));
                Ok(())
            }
            Action::Restrict | Action::Nothing => Ok(()),
            Action::Cascade | Action::SetNull | Action::SetDefault => {
                while !self.change_children(transaction, execution, key, action, gone)? {
                    execution.limits.check()?;
                }
                Ok(())
            }
        }
    }

    /// Changes the rows that refer to a key. False when others have changed one meanwhile: what it has locked stays locked, so that ends.
    fn change_children(
        &mut self,
        transaction: &mut Transaction<'static>,
        execution: &Execution,
        key: &ForeignKey,
        action: Action,
        gone: &Gone,
    ) -> SqlResult<bool> {
        let view = transaction.newest_view()?;
        let mut found: Vec<(usize, Rid)> = Vec::new();
        visit_children(self.references, &view, key, &gone.old, None, |part, rid| {
            execution.look()?;
            execution.budget.take(size_of::<(usize, Rid)>())?;
            found.push((part, rid));
            Ok(())
        })?;
        execution.budget.give_back(found.len() * size_of::<(usize, Rid)>());
        for (part, rid) in found {
            execution.look()?;
            if !self.change_child(transaction, execution, (&view, part, rid), key, action, gone)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn change_child(
        &mut self,
        transaction: &mut Transaction<'static>,
        execution: &Execution,
        (view, part, rid): (&ReadView, usize, Rid),
        key: &ForeignKey,
        action: Action,
        gone: &Gone,
    ) -> SqlResult<bool> {
        let node = &self.references.tables[key.child];
        let own = &node.table.parts[part];
        // This statement may have taken it along before.
        let Some(values) = fitting_all(&node.table, &key.columns, &gone.old) else { return Ok(true) };
        let Some(old) = view.row(&own.table, rid)?.filter(|row| pick(row, &key.columns) == values) else { return Ok(true) };
        let context = execution.context();
        let deletes = action == Action::Cascade && gone.new.is_none();
        let mut new = old.clone();
        for (at, column) in key.columns.iter().copied().enumerate() {
            new[column] = match (action, &gone.new) {
                (Action::Cascade, Some(values)) => fitting(&values[at], &node.table.schema.columns()[column].data_type)?,
                (Action::SetDefault, _) => match node.defaults.iter().find(|(own, _)| *own == column) {
                    Some((_, default)) => context.evaluate(default, &[])?,
                    None => Value::Null,
                },
                _ => Value::Null,
            };
        }
        let is_generated = |column: usize| node.rules.generated.iter().any(|(own, _)| *own == column);
        self.claim(transaction, key.child, &old, &|column| deletes || is_generated(column) || old[column] != new[column])?;
        let rid = match transaction.lock_seen(view, &own.table, rid, RowLock::Exclusive, LockWait::Wait)? {
            Locked::Unchanged => rid,
            Locked::Moved(now) => now,
            Locked::Gone | Locked::Changed | Locked::Skipped => return Ok(false),
        };
        let is_done = if deletes {
            transaction.delete(&own.table, rid)?
        } else {
            follow(&node.table, &node.rules, &context, &mut new)?;
            let columns = key.columns.iter().copied().chain(node.rules.generated.iter().map(|(column, _)| *column));
            let changes: Vec<(usize, ValueRef<'_>)> = columns.map(|column| (column, new[column].as_ref())).collect();
            put(&node.table, transaction, (part, rid), &changes, Some(&new))?.is_some()
        };
        if !is_done {
            // It has come since the snapshot of the transaction, which cannot change it.
            return Err(Error::Conflict { object: own.table.name().into(), rid }.into());
        }
        if !deletes {
            let moves = node.table.range_columns().iter().any(|column| old[*column] != new[*column]);
            // A default that is what the row had before is looked for all the same: it is what has gone.
            let is_new = moves || action == Action::SetDefault;
            self.came(transaction, execution, key.child, (!is_new).then_some(&old[..]), &new)?;
        }
        self.went(execution, key.child, &old, (!deletes).then_some(&new[..]))?;
        Ok(true)
    }

    /// Is there a row that refers to a key? Nobody else takes it away before the transaction ends.
    fn first_child(&self, transaction: &mut Transaction<'static>, key: &ForeignKey, values: &[Value]) -> SqlResult<bool> {
        let table = &self.references.tables[key.child].table;
        loop {
            let view = transaction.newest_view()?;
            let mut first = None;
            visit_children(self.references, &view, key, values, Some(1), |part, rid| {
                first.get_or_insert((part, rid));
                Ok(())
            })?;
            let Some((part, rid)) = first else { return Ok(false) };
            let own = &table.parts[part].table;
            if transaction.isolation() == Isolation::Serializable && !transaction.has_seen(own, rid)? {
                return Err(Error::Conflict { object: own.name().into(), rid }.into());
            }
            let locked = transaction.lock_seen(&view, own, rid, RowLock::Shared, LockWait::Wait)?;
            if matches!(locked, Locked::Unchanged | Locked::Moved(_)) {
                return Ok(true);
            }
        }
    }

    /// Is there the row that a key refers to? It stays there until the transaction ends.
    fn is_there(&mut self, transaction: &mut Transaction<'static>, number: usize, values: &[Value]) -> SqlResult<bool> {
        let key = &self.references.keys[number];
        let Some(name) = name_of(self.references, key, values)? else { return Ok(false) };
        let known = (number, name);
        if self.known.contains(&known) {
            return Ok(true);
        }
        let is_there = look(self.references, transaction, key, values, RowLock::Shared)?;
        if is_there {
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(known);
        }
        Ok(is_there)
    }

    fn not_there(&self, key: &ForeignKey) -> SqlError {
        let child = &self.references.tables[key.child].table;
        let message = format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", short_name(&child.name), key.name);
        SqlError::new("23503", message).of_constraint(&key.name, &child.name)
    }

    fn not_there_of(&self, key: &ForeignKey, values: &[Value]) -> SqlError {
        let tables = &self.references.tables;
        let key_text = key_text(&tables[key.child].table, &key.columns, values);
        self.not_there(key).with_detail(format!("{key_text} is not present in table \"{}\".", short_name(&tables[key.parent].table.name)))
    }

    fn still_referred(&self, key: &ForeignKey, values: &[Value]) -> SqlError {
        let (child, parent) = (&self.references.tables[key.child].table, &self.references.tables[key.parent].table);
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            short_name(&parent.name),
            key.name,
            short_name(&child.name)
        );
        let detail = format!("{} is still referenced from table \"{}\".", key_text(parent, &key.referred, values), short_name(&child.name));
        SqlError::new("23503", message).with_detail(detail).of_constraint(&key.name, &child.name)
    }
}

/// A value of the parent as one of the child's column, which may be narrower, or a CHAR of another length.
fn fitting(value: &Value, data_type: &DataType) -> SqlResult<Value> {
    if matches!(data_type, DataType::Char(_)) {
        return for_column(value, data_type);
    }
    match value.as_ref().check(data_type, "") {
        Ok(()) => Ok(value.clone()),
        Err(_) if *value == Value::Null => Ok(Value::Null),
        Err(_) if data_type.is_text() => Err(SqlError::new("22001", format!("value too long for type {data_type}"))),
        Err(_) => Err(SqlError::out_of_range(type_name(data_type))),
    }
}

/// Values of the parent as those of the child's columns; `None` when one of them fits none, so that no row has it.
fn fitting_all(child: &TableRef, columns: &[usize], values: &[Value]) -> Option<Tuple> {
    let own = child.schema.columns();
    columns.iter().zip(values).map(|(column, value)| fitting(value, &own[*column].data_type).ok()).collect()
}

/// `Key (a, b)=(1, 2)`
pub(crate) fn key_text(table: &TableRef, columns: &[usize], values: &[Value]) -> String {
    let of = |column: &usize| &table.schema.columns()[*column];
    let names: Vec<&str> = columns.iter().map(|column| of(column).name.as_str()).collect();
    let values: Vec<String> =
        columns.iter().zip(values).map(|(column, value)| text::to_text(value.as_ref(), &of(column).data_type)).collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

/// What a key is called when it is locked; `None` when the parent cannot have it, as a value does not fit its column.
fn name_of(references: &References, key: &ForeignKey, values: &[Value]) -> SqlResult<Option<Vec<u8>>> {
    let schema = &references.tables[key.parent].table.schema;
    let fits = |(column, value): (&usize, &Value)| value.as_ref().check(&schema.columns()[*column].data_type, "").is_ok();
    if !key.referred.iter().zip(values).all(fits) {
        return Ok(None);
    }
    let mut name = Vec::with_capacity(32);
    let (layout, order) = &key.locked;
    name.extend(order.iter().flat_map(|at| key.referred[*at].to_le_bytes()));
    let ordered: Vec<ValueRef<'_>> = order.iter().map(|at| values[*at].as_ref()).collect();
    layout.encode(&ordered, &mut name).map_err(|e| Error::Value(e.to_string()))?;
    Ok(Some(name))
}

/// Locks a key, and says whether a row of the parent has it now.
fn look(
    references: &References,
    transaction: &mut Transaction<'static>,
    key: &ForeignKey,
    values: &[Value],
    lock: RowLock,
) -> SqlResult<bool> {
    let parent = &references.tables[key.parent].table;
    let Some(name) = name_of(references, key, values)? else { return Ok(false) };
    let mut row = vec![ValueRef::Null; parent.schema.len()];
    for (column, value) in key.referred.iter().zip(values) {
        row[*column] = value.as_ref();
    }
    let (index, order) = &key.unique;
    let ordered: Vec<ValueRef<'_>> = order.iter().map(|at| values[*at].as_ref()).collect();
    // Else the key does not say which partition has it.
    let says = parent.range_columns().iter().all(|column| key.referred.contains(column));
    let places: Vec<usize> = if says { vec![parent.part_of(&row)?] } else { (0..parent.parts.len()).collect() };
    let place = |at: &usize| parent.part(*at).map(|part| (&*part.table, &*part.indexes[*index]));
    let places: Vec<_> = places.iter().map(place).collect::<SqlResult<_>>()?;
    Ok(transaction.lock_reference(&places, &ordered, &name, lock)?)
}

/// Shows the rows that refer to a key: part and RID.
fn visit_children(
    references: &References,
    view: &ReadView,
    key: &ForeignKey,
    values: &[Value],
    limit: Option<u64>,
    mut visit: impl FnMut(usize, Rid) -> SqlResult<()>,
) -> SqlResult<()> {
    let table = &references.tables[key.child].table;
    let columns = table.schema.columns();
    let Some(values) = fitting_all(table, &key.columns, values) else { return Ok(()) };
    let equal = key
        .columns
        .iter()
        .zip(&values)
        .map(|(own, value)| column(columns[*own].name.clone()).equal_to(Operand::of(value.as_ref(), &columns[*own].data_type)));
    let condition: Predicate = Condition::all(equal).bind(&table.schema).map_err(|e| SqlError::new("XX000", e.to_string()))?;
    for at in table.parts_for(Some(&condition))? {
        let part = &table.parts[at];
        let request = ScanRequest { columns: Some(key.columns.clone()), condition: Some(condition.clone()), limit, rids: true };
        let rows: RowScan = match &key.found_by {
            Some((index, _)) => {
                let ranges = condition.key_ranges(part.indexes[*index].key_layout());
                view.ranges(&part.table, &part.indexes[*index], ranges, btree::Direction::Forward, &request)?.into_rows()
            }
            None => view.scan(&part.table, &request)?.into_rows(),
        };
        for row in rows {
            let (rid, _) = row?;
            visit(at, rid)?;
        }
    }
    Ok(())
}

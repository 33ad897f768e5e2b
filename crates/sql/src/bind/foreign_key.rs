//! Foreign keys: which tables a statement has to look at beside its own, and which of them its changes may reach.
//!
//! Invariants:
//! - tables are as they are now, whatever the snapshot of the transaction: so are their rows when they are looked at;
//! - all tables of a statement's foreign keys are in its [`References`], and it keeps their definitions before it runs;
//! - which keys and tables are reached is settled here once, so that a chain of actions is no recursion when it runs.

use super::Binder;
use super::rules::RowRules;
use crate::catalog::TableRef;
use crate::expression::Expr;
use crate::{SqlError, SqlResult};
use pagefold_format::catalog::{Constraint, Reference};
use pagefold_types::{Direction, KeyLayout};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What happens to rows that refer to one that goes, or changes its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl Action {
    /// By number as the catalog has it.
    pub(crate) fn of(number: u8) -> Action {
        match number {
            1 => Action::Restrict,
            2 => Action::Cascade,
            3 => Action::SetNull,
            4 => Action::SetDefault,
            _ => Action::Nothing,
        }
    }

    /// Does it change rows?
    fn changes(self) -> bool {
        matches!(self, Action::Cascade | Action::SetNull | Action::SetDefault)
    }
}

/// The tables of a statement's foreign keys; the first is its own. Empty when there are none.
#[derive(Debug, Default)]
pub(crate) struct References {
    pub(crate) tables: Vec<Node>,
    pub(crate) keys: Vec<ForeignKey>,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) table: Arc<TableRef>,
    /// Of rows that an action changes.
    pub(crate) rules: RowRules,
    /// Columns that SET DEFAULT sets.
    pub(crate) defaults: Vec<(usize, Expr)>,
    /// Keys of its rows that are looked for, by number.
    pub(crate) outgoing: Vec<usize>,
    /// Keys of others that may refer to its rows, by number.
    pub(crate) incoming: Vec<usize>,
    /// What may become of its rows.
    pub(crate) reach: Reach,
}

/// What a statement may do with rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) inserts: bool,
    pub(crate) deletes: bool,
    /// Columns that may change.
    pub(crate) updates: BTreeSet<usize>,
}

impl Reach {
    /// Is no row touched?
    pub(crate) fn is_none(&self) -> bool {
        *self == Reach::default()
    }

    fn touches(&self, columns: &[usize]) -> bool {
        columns.iter().any(|column| self.updates.contains(column))
    }
}

/// A foreign key.
#[derive(Debug)]
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    pub(crate) child: usize,
    pub(crate) columns: Vec<usize>,
    pub(crate) parent: usize,
    /// Columns of the parent, in the order of `columns`.
    pub(crate) referred: Vec<usize>,
    /// MATCH FULL.
    pub(crate) full: bool,
    pub(crate) on_delete: Action,
    pub(crate) on_update: Action,
    /// The unique index of the parent, and which of the columns stands at each of its places.
    pub(crate) unique: (usize, Vec<usize>),
    /// What the key is called when it is locked: of the parent's columns as they lie, whichever index has them.
    pub(crate) locked: (KeyLayout, Vec<usize>),
    /// An index of the child by which rows are found, and which of the columns stands at each of its first places.
    pub(crate) found_by: Option<(usize, Vec<usize>)>,
}

/// For each of these columns its place among others.
fn places<'c>(columns: impl Iterator<Item = &'c usize>, among: &[usize]) -> Vec<usize> {
    columns.filter_map(|column| among.iter().position(|other| other == column)).collect()
}

/// Columns as the catalog has them, checked: the definition may have come from elsewhere.
pub(crate) fn columns_of(table: &TableRef, columns: &[u32]) -> Option<Vec<usize>> {
    let found: Vec<usize> = columns.iter().map(|column| *column as usize).collect();
    let is_there = |column: &usize| table.visible.get(*column) == Some(&true);
    let is_once = |at: usize| !found[..at].contains(&found[at]);
    (!found.is_empty() && found.iter().all(is_there) && (0..found.len()).all(is_once)).then_some(found)
}

impl Binder<'_> {
    /// What a statement that does this with rows of a table has to look at.
    pub(crate) fn references(&mut self, table: &Arc<TableRef>, reach: Reach) -> SqlResult<References> {
        let mut made = References::default();
        let referring = match reach.deletes || !reach.updates.is_empty() {
            true => self.transaction.references()?,
            false => Arc::new([]),
        };
        self.refuse_of_partition(table, &reach, &referring)?;
        let is_referred = referring.iter().any(|(_, parent)| *parent == table.name);
        if !is_referred && table.rules.foreign_keys().next().is_none() {
            return Ok(made);
        }
        made.tables.push(Node::new(Arc::clone(table), reach));
        let mut todo = vec![0];
        while let Some(at) = todo.pop() {
            self.reach_outgoing(&mut made, at)?;
            let (reach, name) = (made.tables[at].reach.clone(), made.tables[at].table.name.clone());
            if !reach.deletes && reach.updates.is_empty() {
                continue;
            }
            for (child, _) in referring.iter().filter(|(_, parent)| *parent == name) {
                let Some(child) = self.node(&mut made, child)? else { continue };
                let before = made.tables[child].reach.clone();
                self.reach_incoming(&mut made, at, child, &reach)?;
                if made.tables[child].reach != before {
                    todo.push(child);
                }
            }
        }
        // What the statement itself does with rows of its table has its rules from elsewhere; but actions may come back to it.
        let comes_back = made.keys.iter().any(|key| key.child == 0 && (key.on_delete.changes() || key.on_update.changes()));
        for at in usize::from(!comes_back)..made.tables.len() {
            let (table, reach) = (Arc::clone(&made.tables[at].table), made.tables[at].reach.clone());
            if !reach.updates.is_empty() {
                made.tables[at].rules = self.row_rules(&table)?;
            }
        }
        self.bind_defaults(&mut made)?;
        if made.keys.is_empty() {
            made.tables.clear();
        }
        Ok(made)
    }

    /// Refuses to take keys away in a partition by its own name, to which rows refer by the name of the whole: what follows from that is said of the whole.
    fn refuse_of_partition(&mut self, table: &TableRef, reach: &Reach, referring: &[(String, String)]) -> SqlResult<()> {
        let Some(whole) = table.whole_name() else { return Ok(()) };
        for (child, _) in referring.iter().filter(|(_, parent)| parent == whole) {
            let Some(child) = TableRef::find_now(self.transaction, child)? else { continue };
            for (constraint, reference) in child.rules.foreign_keys().filter(|(_, reference)| reference.name == whole) {
                let referred: Vec<usize> = reference.columns.iter().map(|column| *column as usize).collect();
                if reach.deletes || reach.touches(&referred) {
                    let error = SqlError::unsupported(format!("taking keys away in the partition \"{}\" alone", table.name));
                    let detail = format!("Constraint \"{}\" of table \"{}\" refers to \"{whole}\".", constraint.name, child.name);
                    return Err(error.with_detail(detail).with_hint(format!("Change rows of \"{whole}\".")));
                }
            }
        }
        Ok(())
    }

    /// Keys of rows of a table that come or change.
    fn reach_outgoing(&mut self, made: &mut References, at: usize) -> SqlResult<()> {
        let (table, reach) = (Arc::clone(&made.tables[at].table), made.tables[at].reach.clone());
        // A row that goes to another partition is a new one there.
        let moves = reach.inserts || reach.touches(table.range_columns());
        for (constraint, reference) in table.rules.foreign_keys() {
            let columns: Vec<usize> = constraint.columns.iter().map(|column| *column as usize).collect();
            if moves || reach.touches(&columns) {
                let key = self.foreign_key(made, at, constraint, reference)?;
                if !made.tables[at].outgoing.contains(&key) {
                    made.tables[at].outgoing.push(key);
                }
            }
        }
        Ok(())
    }

    /// Keys of a table that may refer to rows of another which go or change, and what that makes of its own rows.
    fn reach_incoming(&mut self, made: &mut References, parent: usize, child: usize, reach: &Reach) -> SqlResult<()> {
        let (table, name) = (Arc::clone(&made.tables[child].table), made.tables[parent].table.name.clone());
        for (constraint, reference) in table.rules.foreign_keys().filter(|(_, reference)| reference.name == name) {
            let referred: Vec<usize> = reference.columns.iter().map(|column| *column as usize).collect();
            let updates = reach.touches(&referred);
            if !reach.deletes && !updates {
                continue;
            }
            let key = self.foreign_key(made, child, constraint, reference)?;
            if !made.tables[parent].incoming.contains(&key) {
                made.tables[parent].incoming.push(key);
            }
            let (on_delete, on_update) = (made.keys[key].on_delete, made.keys[key].on_update);
            let own = &mut made.tables[child].reach;
            own.deletes |= reach.deletes && on_delete == Action::Cascade;
            if (updates && on_update.changes()) || (reach.deletes && on_delete.changes() && on_delete != Action::Cascade) {
                own.updates.extend(&made.keys[key].columns);
                own.updates.extend((0..table.schema.len()).filter(|column| table.rules.generated[*column].is_some()));
            }
        }
        Ok(())
    }

    fn bind_defaults(&mut self, made: &mut References) -> SqlResult<()> {
        for key in 0..made.keys.len() {
            let own = &made.keys[key];
            if own.on_delete != Action::SetDefault && own.on_update != Action::SetDefault {
                continue;
            }
            let (child, columns) = (own.child, own.columns.clone());
            let table = Arc::clone(&made.tables[child].table);
            for column in columns {
                if !made.tables[child].defaults.iter().any(|(known, _)| *known == column) {
                    let default = self.default_of(&table, column)?;
                    made.tables[child].defaults.push((column, default));
                }
            }
        }
        Ok(())
    }

    /// The place of a table; `None` when it is there no more.
    fn node(&mut self, made: &mut References, name: &str) -> SqlResult<Option<usize>> {
        if let Some(known) = made.tables.iter().position(|node| node.table.name == name) {
            return Ok(Some(known));
        }
        let Some(table) = TableRef::find_now(self.transaction, name)? else { return Ok(None) };
        made.tables.push(Node::new(table, Reach::default()));
        Ok(Some(made.tables.len() - 1))
    }

    /// The number of a foreign key.
    fn foreign_key(&mut self, made: &mut References, child: usize, constraint: &Constraint, reference: &Reference) -> SqlResult<usize> {
        if let Some(known) = made.keys.iter().position(|key| key.child == child && key.name == constraint.name) {
            return Ok(known);
        }
        let Some(parent) = self.node(made, &reference.name)? else {
            let message = format!("relation \"{}\" does not exist, to which constraint \"{}\" refers", reference.name, constraint.name);
            return Err(SqlError::new("42P01", message).of_constraint(&constraint.name, &made.tables[child].table.name));
        };
        let (own, other) = (&made.tables[child].table, &made.tables[parent].table);
        let found = columns_of(own, &constraint.columns).zip(columns_of(other, &reference.columns));
        let unique = found.and_then(|(columns, referred)| Some((columns, other.unique_index_of(&referred)?, referred)));
        let Some((columns, index, referred)) = unique.filter(|(columns, _, referred)| columns.len() == referred.len()) else {
            let message = format!(
                "constraint \"{}\" of relation \"{}\" refers to columns of \"{}\" that have no unique index which can be used",
                constraint.name, own.name, other.name
            );
            return Err(SqlError::new("55000", message).of_constraint(&constraint.name, &own.name));
        };
        let mut sorted = referred.clone();
        sorted.sort_unstable();
        let ascending: Vec<(usize, Direction)> = sorted.iter().map(|column| (*column, Direction::Ascending)).collect();
        let found_by = own.index_beginning_with(&columns).map(|at| {
            let first = own.index_columns(at).iter().take(columns.len()).map(|(column, _)| column);
            (at, places(first, &columns))
        });
        let key = ForeignKey {
            name: constraint.name.clone(),
            child,
            parent,
            full: reference.full,
            on_delete: Action::of(reference.actions[0]),
            on_update: Action::of(reference.actions[1]),
            unique: (index, places(other.index_columns(index).iter().map(|(column, _)| column), &referred)),
            locked: (KeyLayout::new(&other.schema, &ascending), places(sorted.iter(), &referred)),
            found_by,
            columns,
            referred,
        };
        made.keys.push(key);
        Ok(made.keys.len() - 1)
    }
}

impl Node {
    fn new(table: Arc<TableRef>, reach: Reach) -> Node {
        Node { table, rules: RowRules::default(), defaults: Vec::new(), outgoing: Vec::new(), incoming: Vec::new(), reach }
    }
}

impl References {
    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What EXPLAIN says.
    pub(crate) fn explain(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for node in &self.tables {
            for key in node.outgoing.iter().map(|key| &self.keys[*key]) {
                let parent = &self.tables[key.parent].table;
                lines.push(format!("Foreign key {} of {}: look-up by {}", key.name, node.table.name, parent.index_name(key.unique.0)));
            }
            for key in node.incoming.iter().map(|key| &self.keys[*key]) {
                let child = &self.tables[key.child].table;
                let how = match &key.found_by {
                    Some((index, _)) => format!("rows found by {}", child.index_name(*index)),
                    None => "rows found by reading the whole table for each key".to_owned(),
                };
                lines.push(format!("Foreign key {} of {} to {}: {how}", key.name, child.name, node.table.name));
            }
        }
        lines
    }
}

//! Foreign keys as they are written, and what keeps other objects from going because of them.
//!
//! Invariant: whoever makes a foreign key, or takes away what one relies on, has both tables as a whole before he looks who refers to whom: nobody else changes rows or definitions of them then.

use super::constraint::{first_free, refuse_characteristics};
use super::dependents::{Dependent, Dependents};
use super::{Defining, too_much};
use crate::bind::foreign_key::{Action, columns_of};
use crate::catalog::{Found, TableRef, find};
use crate::execute::Execution;
use crate::execute::foreign_key::key_text;
use crate::expression::type_name;
use crate::parse::{At, identifier, object_name, short_name};
use crate::{SqlError, SqlResult};
use pagefold_format::catalog::{Constraint, ConstraintKind, Reference};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, ConstraintReferenceMatchKind, ReferentialAction};
use std::sync::Arc;

/// A foreign key of another table.
#[derive(Debug)]
pub(super) struct Referring {
    pub(super) child: Arc<TableRef>,
    pub(super) constraint: Constraint,
    pub(super) reference: Reference,
}

impl Referring {
    /// Foreign keys that go with something they rely on.
    pub(super) fn dependents(referring: Vec<Referring>, relied_on: &str) -> Dependents {
        let line =
            |own: &Referring| format!("constraint {} on table {} depends on {relied_on}", own.constraint.name, short_name(&own.child.name));
        referring.into_iter().map(|own| (line(&own), own)).map(|(line, own)| (Dependent::Key(Box::new(own)), line)).collect()
    }
}

fn number(action: Option<ReferentialAction>) -> u8 {
    match action {
        None | Some(ReferentialAction::NoAction) => 0,
        Some(ReferentialAction::Restrict) => 1,
        Some(ReferentialAction::Cascade) => 2,
        Some(ReferentialAction::SetNull) => 3,
        Some(ReferentialAction::SetDefault) => 4,
    }
}

/// Are values of these types the same just when their keys are?
fn comparable(a: &DataType, b: &DataType) -> bool {
    let is_integer = |data_type: &DataType| matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt);
    match (a, b) {
        (DataType::Varchar(_), DataType::Varchar(_)) | (DataType::Char(_), DataType::Char(_)) => true,
        (DataType::Decimal { scale: a, .. }, DataType::Decimal { scale: b, .. }) => a == b,
        (a, b) => a == b || (is_integer(a) && is_integer(b)),
    }
}

fn places(columns: &[usize]) -> Vec<u32> {
    columns.iter().map(|column| u32::try_from(*column).unwrap_or(u32::MAX)).collect()
}

impl Defining<'_> {
    /// Adds a foreign key to a table that is there; `rows`: it may have some, which are looked at.
    pub(super) fn add_foreign_key(&mut self, child: &str, key: &ast::ForeignKeyConstraint, rows: bool) -> SqlResult<()> {
        refuse_characteristics(key.characteristics)?;
        if key.match_kind == Some(ConstraintReferenceMatchKind::Partial) {
            return Err(SqlError::unsupported("MATCH PARTIAL"));
        }
        let child = TableRef::find(self.transaction, child)?;
        let columns = named(&child, &key.columns)?;
        let wanted = object_name(&key.foreign_table)?;
        let parent = match find(self.transaction, &wanted)? {
            Found::Table(table) => table,
            Found::View(_) => return Err(SqlError::new("42809", format!("referenced relation \"{wanted}\" is not a table"))),
        };
        parent.refuse_partition("a foreign key to a row")?;
        let is_temporary = crate::temporary::is_temporary(&child.name);
        if is_temporary != crate::temporary::is_temporary(&parent.name) {
            let kind = if is_temporary { "temporary" } else { "permanent" };
            return Err(SqlError::new("42P16", format!("constraints on {kind} tables may reference only {kind} tables")));
        }
        // Nobody else changes rows of either from here on, and statements that were planned before are planned again.
        self.say(&child, |_| Ok(()))?;
        if parent.name != child.name {
            self.say(&parent, |_| Ok(()))?;
        }
        let referred = match key.referred_columns.as_slice() {
            [] if parent.primary_key.is_empty() => {
                return Err(SqlError::new(
                    "42704",
                    format!("there is no primary key for referenced table \"{}\"", short_name(&parent.name)),
                ));
            }
            [] => parent.primary_key.clone(),
            names => named(&parent, names)?,
        };
        if columns.len() != referred.len() {
            return Err(SqlError::new("42830", "number of referencing and referenced columns for foreign key disagree"));
        }
        if parent.unique_index_of(&referred).is_none() {
            let message =
                format!("there is no unique constraint matching given keys for referenced table \"{}\"", short_name(&parent.name));
            return Err(SqlError::new("42830", message));
        }
        let name = self.foreign_key_name(&child, key, &columns)?;
        for (own, other) in columns.iter().zip(&referred) {
            let (own, other) = (&child.schema.columns()[*own], &parent.schema.columns()[*other]);
            if !comparable(&own.data_type, &other.data_type) {
                let error = SqlError::types(format!("foreign key constraint \"{name}\" cannot be implemented"));
                return Err(error.with_detail(format!(
                    "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    own.name,
                    other.name,
                    type_name(&own.data_type),
                    type_name(&other.data_type)
                )));
            }
        }
        let actions = [number(key.on_delete), number(key.on_update)];
        if columns.iter().any(|column| child.rules.generated[*column].is_some()) {
            let sets = |action: u8| matches!(Action::of(action), Action::SetNull | Action::SetDefault);
            for (is_wrong, when) in
                [(sets(actions[0]), "DELETE"), (sets(actions[1]) || Action::of(actions[1]) == Action::Cascade, "UPDATE")]
            {
                if is_wrong {
                    let message = format!("invalid ON {when} action for foreign key constraint containing generated column");
                    return Err(SqlError::syntax(message));
                }
            }
        }
        let full = key.match_kind == Some(ConstraintReferenceMatchKind::Full);
        let reference = Reference { table: 0, name: parent.name.clone(), columns: places(&referred), actions, full };
        if rows {
            self.look_at_rows(&child, &parent, &name, (&columns, &referred), full)?;
        }
        let mut made = Constraint::new(ConstraintKind::ForeignKey, name);
        (made.columns, made.reference) = (places(&columns), Some(reference));
        self.say(&child, |notes| {
            let mut all = notes.constraints();
            all.push(made.clone());
            notes.set_constraints(&all).map_err(too_much)
        })
    }

    fn foreign_key_name(&mut self, child: &TableRef, key: &ast::ForeignKeyConstraint, columns: &[usize]) -> SqlResult<String> {
        let is_taken =
            |name: &String| child.rules.has_constraint(name) || (0..child.index_count()).any(|index| child.index_name(index) == *name);
        match &key.name {
            Some(name) if is_taken(&identifier(name)) => {
                let name = identifier(name);
                Err(SqlError::new("42710", format!("constraint \"{name}\" for relation \"{}\" already exists", short_name(&child.name))))
            }
            Some(name) => Ok(identifier(name)),
            None => {
                let names: Vec<&str> = columns.iter().map(|column| child.schema.columns()[*column].name.as_str()).collect();
                Ok(first_free(format!("{}_{}_fkey", short_name(&child.name), names.join("_")), is_taken))
            }
        }
    }

    /// Refuses a foreign key that a row does not meet.
    fn look_at_rows(
        &mut self,
        child: &TableRef,
        parent: &TableRef,
        name: &str,
        (columns, referred): (&[usize], &[usize]),
        full: bool,
    ) -> SqlResult<()> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let whole = |name: &str| name.split('.').map(quoted).collect::<Vec<_>>().join(".");
        let of = |alias: &str, table: &TableRef, column: usize| format!("{alias}.{}", quoted(&table.schema.columns()[column].name));
        let own: Vec<String> = columns.iter().map(|column| of("c", child, *column)).collect();
        let others: Vec<String> = referred.iter().map(|column| of("p", parent, *column)).collect();
        let equal: Vec<String> = own.iter().zip(&others).map(|(own, other)| format!("{own} = {other}")).collect();
        let all = |what: &str, with: &str| own.iter().map(|own| format!("{own} {what}")).collect::<Vec<_>>().join(with);
        let error = || {
            let message = format!("insert or update on table \"{}\" violates foreign key constraint \"{name}\"", short_name(&child.name));
            SqlError::new("23503", message).of_constraint(name, &child.name)
        };
        let from = format!("SELECT {} FROM {} AS c", own.join(", "), whole(&child.name));
        if full {
            let mixed = format!("{from} WHERE ({}) AND NOT ({}) LIMIT 1", all("IS NULL", " OR "), all("IS NULL", " AND "));
            if self.first_row(&mixed)?.is_some() {
                return Err(error().with_detail("MATCH FULL does not allow mixing of null and nonnull key values."));
            }
        }
        let query = format!(
            "{from} LEFT JOIN {} AS p ON {} WHERE {} AND {} IS NULL LIMIT 1",
            whole(&parent.name),
            equal.join(" AND "),
            all("IS NOT NULL", " AND "),
            others[0]
        );
        match self.first_row(&query)? {
            None => Ok(()),
            Some(row) => Err(error().with_detail(format!(
                "{} is not present in table \"{}\".",
                key_text(child, columns, &row),
                short_name(&parent.name)
            ))),
        }
    }

    /// The first row of a query, as rows are now.
    fn first_row(&mut self, query: &str) -> SqlResult<Option<Vec<Value>>> {
        let query = crate::parse::parse_query(query)?;
        let (plan, subplans) = self.bind(|binder| {
            let planned = binder.query(&query)?;
            Ok((planned.plan, std::mem::take(&mut binder.subplans)))
        })?;
        let view = self.transaction.newest_view()?;
        let execution = Execution::new(&self.run, view, Vec::new(), subplans.into());
        let context = execution.context();
        crate::execute::open(&plan, &context)?.next(&context)
    }

    /// Foreign keys of other tables, and of the table itself, that refer to a table.
    pub(super) fn referring_to(&mut self, parent: &str) -> SqlResult<Vec<Referring>> {
        let mut found = Vec::new();
        for (child, _) in self.transaction.references()?.iter().filter(|(_, own)| own == parent) {
            let Some(child) = TableRef::find_now(self.transaction, child)? else { continue };
            for (constraint, reference) in child.rules.foreign_keys().filter(|(_, reference)| reference.name == parent) {
                let (constraint, reference) = (constraint.clone(), reference.clone());
                found.push(Referring { child: Arc::clone(&child), constraint, reference });
            }
        }
        Ok(found)
    }

    /// Drops foreign keys that rely on a unique index, which goes with `what`, or refuses that, unless another one has its columns.
    pub(super) fn drop_referring_to_index(&mut self, what: &str, table: &TableRef, index: usize, cascade: bool) -> SqlResult<()> {
        if !table.is_unique(index) {
            return Ok(());
        }
        let columns: Vec<usize> = table.index_columns(index).iter().map(|(column, _)| *column).collect();
        let is_same = |other: &[usize]| other.len() == columns.len() && other.iter().all(|column| columns.contains(column));
        let is_another = |other: usize| {
            let own: Vec<usize> = table.index_columns(other).iter().map(|(column, _)| *column).collect();
            other != index && table.is_unique(other) && is_same(&own)
        };
        if (0..table.index_count()).any(is_another) || self.referring_to(&table.name)?.is_empty() {
            return Ok(());
        }
        self.say(table, |_| Ok(()))?;
        let mut referring = self.referring_to(&table.name)?;
        referring.retain(|own| columns_of(table, &own.reference.columns).is_none_or(|referred| is_same(&referred)));
        let dependents = Referring::dependents(referring, &format!("index {}", table.index_name(index)));
        self.drop_dependents(Some(what), dependents, cascade)
    }

    /// Refuses a type of a column that its foreign keys, or those of others to it, could not be compared with.
    pub(super) fn refuse_type_of_key(&mut self, table: &TableRef, column: usize, data_type: &DataType) -> SqlResult<()> {
        let is_column = |other: &u32| *other as usize == column;
        let mut partners: Vec<(String, DataType)> = Vec::new();
        for (constraint, reference) in table.rules.foreign_keys() {
            if let Some(at) = constraint.columns.iter().position(is_column)
                && let Some(parent) = TableRef::find_now(self.transaction, &reference.name)?
            {
                let other = parent.schema.columns().get(reference.columns[at] as usize);
                partners.extend(other.map(|other| (constraint.name.clone(), other.data_type)));
            }
        }
        for own in self.referring_to(&table.name)? {
            if let Some(at) = own.reference.columns.iter().position(is_column) {
                let other = own.child.schema.columns().get(own.constraint.columns[at] as usize);
                partners.extend(other.map(|other| (own.constraint.name.clone(), other.data_type)));
            }
        }
        match partners.into_iter().find(|(_, other)| !comparable(data_type, other)) {
            Some((name, other)) => {
                let error = SqlError::types(format!("foreign key constraint \"{name}\" cannot be implemented"));
                Err(error.with_detail(format!("Types {} and {} are incompatible.", type_name(data_type), type_name(&other))))
            }
            None => Ok(()),
        }
    }
}

/// Columns by name, each once.
fn named(table: &TableRef, names: &[ast::Ident]) -> SqlResult<Vec<usize>> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let wanted = identifier(name);
        let own = table.schema.columns();
        let found = (0..own.len()).find(|at| table.visible[*at] && own[*at].name == wanted);
        let Some(column) = found else {
            let message = format!("column \"{wanted}\" referenced in foreign key constraint does not exist");
            return Err(SqlError::new("42703", message).at_span(name.span));
        };
        if columns.contains(&column) {
            return Err(SqlError::new("42830", "a foreign key must not name a column twice").at_span(name.span));
        }
        columns.push(column);
    }
    Ok(columns)
}

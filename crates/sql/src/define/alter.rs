//! ALTER TABLE, as far as what is said of a table changes: defaults, conditions, keys.

use super::{Defining, taken, too_much};
use crate::bind::change::{column_of, to_slots};
use crate::catalog::TableRef;
use crate::execute::Execution;
use crate::parse::{identifier, object_name};
use crate::{SqlError, SqlResult};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_format::catalog::{Constraint, ConstraintKind, Notes};
use pagefold_types::{Direction, Value};
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, TableConstraint};
use std::sync::Arc;

impl Defining<'_> {
    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable) -> SqlResult<String> {
        let name = object_name(&alter.name)?;
        for operation in &alter.operations {
            let table = match TableRef::find(self.transaction, &name) {
                Err(error) if error.sqlstate() == "42P01" && alter.if_exists => continue,
                found => found?,
            };
            self.alter_one(&table, operation)?;
        }
        Ok("ALTER TABLE".into())
    }

    fn alter_one(&mut self, table: &Arc<TableRef>, operation: &AlterTableOperation) -> SqlResult<()> {
        match operation {
            AlterTableOperation::AlterColumn { column_name, op } => {
                let column = column_of(table, column_name)?;
                let own = &table.schema.columns()[column];
                let default = match op {
                    AlterColumnOperation::SetDefault { value } => {
                        let text = value.to_string();
                        self.bind(|binder| binder.default_expression(&text, &own.data_type, &own.name))?;
                        Some(text)
                    }
                    AlterColumnOperation::DropDefault => None,
                    other => return Err(SqlError::unsupported(format!("ALTER COLUMN {other}"))),
                };
                let column = u32::try_from(column).unwrap_or(u32::MAX);
                self.say(table, |notes| {
                    let mut own = notes.column(column);
                    own.default.clone_from(&default);
                    notes.set_column(&own).map_err(too_much)
                })
            }
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => self.add_constraint(table, constraint),
            AlterTableOperation::DropConstraint { if_exists, name, .. } => self.drop_constraint(table, &identifier(name), *if_exists),
            other => Err(SqlError::unsupported(format!("ALTER TABLE ... {other}"))),
        }
    }

    /// Says something else of a table, of all its parts.
    fn say(&mut self, table: &TableRef, change: impl Fn(&mut Notes) -> SqlResult<()>) -> SqlResult<()> {
        for part in &table.parts {
            let mut notes = (*self.transaction.notes_of_table(&part.table)).clone();
            change(&mut notes)?;
            self.transaction.alter_table(&part.table, notes)?;
        }
        Ok(())
    }

    fn add_constraint(&mut self, table: &Arc<TableRef>, constraint: &TableConstraint) -> SqlResult<()> {
        match constraint {
            TableConstraint::Check(check) => {
                let text = check.expr.to_string();
                let count = table.rules.constraints.len();
                let name = check.name.as_ref().map_or_else(
                    || format!("{}_check{}", table.name, if count == 0 { String::new() } else { count.to_string() }),
                    identifier,
                );
                if table.rules.constraints.iter().any(|own| own.name == name) {
                    return Err(SqlError::new("42710", format!("constraint \"{name}\" for relation \"{}\" already exists", table.name)));
                }
                self.check_rows(table, &name, &text)?;
                self.say(table, |notes| {
                    let mut all = notes.constraints();
                    let mut made = Constraint::new(ConstraintKind::Check, name.clone());
                    made.condition = Some(text.clone());
                    all.push(made);
                    notes.set_constraints(&all).map_err(too_much)
                })
            }
            TableConstraint::Unique(unique) => {
                let mut columns = Vec::with_capacity(unique.columns.len());
                for column in &unique.columns {
                    let ast::Expr::Identifier(name) = &column.column.expr else {
                        return Err(SqlError::unsupported("a key of an expression"));
                    };
                    columns.push((column_of(table, name)?, Direction::Ascending));
                }
                let names: Vec<&str> = columns.iter().map(|(column, _)| table.schema.columns()[*column].name.as_str()).collect();
                let name = unique.name.as_ref().map_or_else(|| format!("{}_{}_key", table.name, names.join("_")), identifier);
                let attributes = IndexAttributes::new(name.clone(), columns, true).with_format(IndexFormat::Prefix, 8192);
                if table.is_divided() {
                    self.transaction.create_partitioned_index(&table.name, &attributes).map_err(|error| taken(error, &name))
                } else {
                    self.transaction.create_index(&table.first().table, attributes).map(drop).map_err(|error| taken(error, &name))
                }
            }
            other => Err(SqlError::unsupported(format!("ALTER TABLE ... ADD {other}"))),
        }
    }

    /// Refuses a condition that a row does not meet.
    fn check_rows(&mut self, table: &Arc<TableRef>, name: &str, text: &str) -> SqlResult<()> {
        // Nobody else changes rows from here on.
        self.say(table, |_| Ok(()))?;
        let (mut condition, plan, subplans) = self.bind(|binder| {
            let condition = binder.of_row(table, text, |binder, expr| binder.condition(expr, "CHECK"))?;
            let query = format!("SELECT * FROM {}", quoted(&table.name));
            let Some(ast::Statement::Query(query)) = crate::parse::parse(&query)?.pop() else {
                return Err(SqlError::new("XX000", "a query"));
            };
            let planned = binder.query(&query)?;
            Ok((condition, planned.plan, std::mem::take(&mut binder.subplans)))
        })?;
        to_slots(&mut condition);
        let view = self.transaction.read_view()?;
        let execution = Execution::new(&self.run, view, Vec::new(), subplans.into());
        let context = execution.context();
        let mut rows = crate::execute::open(&plan, &context)?;
        while let Some(row) = rows.next(&context)? {
            if context.evaluate(&condition, &row)? == Value::Boolean(false) {
                let message = format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", table.name);
                return Err(SqlError::new("23514", message)
                    .with_detail(crate::execute::change::failing_row(table, &row))
                    .of_constraint(name, &table.name));
            }
        }
        Ok(())
    }

    fn drop_constraint(&mut self, table: &Arc<TableRef>, name: &str, if_exists: bool) -> SqlResult<()> {
        if table.rules.constraints.iter().any(|own| own.name == name) {
            return self.say(table, |notes| {
                let all: Vec<Constraint> = notes.constraints().into_iter().filter(|own| own.name != name).collect();
                notes.set_constraints(&all).map_err(too_much)
            });
        }
        let is_key = (0..table.index_count()).any(|index| table.first().indexes[index].name() == name && table.is_unique(index));
        if is_key {
            if table.first().indexes.iter().any(|index| index.name() == name && index.attributes().is_of_key(&table.primary_key)) {
                return Err(SqlError::unsupported("dropping a primary key"));
            }
            return Ok(self.transaction.drop_index(name)?);
        }
        if if_exists {
            return Ok(());
        }
        Err(SqlError::new("42704", format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name)))
    }
}

/// The name of a table in a query.
fn quoted(name: &str) -> String {
    name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect::<Vec<_>>().join(".")
}

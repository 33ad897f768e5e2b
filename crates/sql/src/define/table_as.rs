//! CREATE TABLE AS: a table with the rows of a query.
//!
//! Without types its columns are those of the query, perhaps by other names. With types, and constraints, it is a table as CREATE TABLE makes it, and filled as by INSERT.
//!
//! Invariants:
//! - the query is bound before there is the table, so it never means that;
//! - columns whose values are always computed get none of the query; all others get one.

use super::Defining;
use super::partition::division;
use super::table::Said;
use crate::bind::Query;
use crate::bind::insert::Filler;
use crate::catalog::TableRef;
use crate::execute::{Execution, change};
use crate::parse::identifier;
use crate::plan::Plan;
use crate::rewrite::{NO_DATA, UNTYPED};
use crate::system::SystemTable;
use crate::{SqlError, SqlResult};
use pagefold_types::{Column, Value, ValueRef};
use sqlparser::ast;
use std::sync::Arc;

/// A query that was bound, with its subqueries and the tables of the database's own that it names.
pub(super) struct Filling {
    filler: Filler,
    subplans: Vec<Plan>,
    system: Vec<&'static SystemTable>,
}

impl Defining<'_> {
    pub(super) fn create_table_as(
        &mut self,
        name: &str,
        create: &ast::CreateTable,
        query: &ast::Query,
        options: &[(String, String)],
    ) -> SqlResult<String> {
        let is_typed = has_types(create)?;
        let filling = self.filling(create, query)?;
        if create.temporary {
            crate::temporary::add_name(crate::parse::short_name(name));
        }
        let said = match &filling.filler {
            Filler::Query(planned) if !is_typed => said_by(planned, name, create)?,
            _ => self.said(name, create)?,
        };
        let division = create.partition_by.as_deref().map(division).transpose()?;
        self.make(said, options, division.as_ref())?;
        let table = TableRef::find(self.transaction, name)?;
        let columns = columns_given(&table);
        if is_typed {
            check_count(&table, filling.filler.width(), columns.len())?;
        }
        if is_without_data(create) {
            return Ok("CREATE TABLE AS".into());
        }
        let rows = match filling {
            Filling { filler: Filler::Query(planned), subplans, system } if !is_typed && !table.is_divided() => {
                self.fill_as_it_is(&table, &planned.plan, (subplans, system))?
            }
            filling => self.fill(table, filling, &columns)?,
        };
        Ok(format!("SELECT {rows}"))
    }

    /// Binds the query.
    pub(super) fn filling(&mut self, create: &ast::CreateTable, query: &ast::Query) -> SqlResult<Filling> {
        let is_typed = has_types(create)?;
        self.bind(|binder| {
            let filler = binder.filler(query, is_typed)?;
            Ok(Filling { filler, subplans: std::mem::take(&mut binder.subplans), system: std::mem::take(&mut binder.system) })
        })
    }

    /// As INSERT does: values are assigned, and rows meet what is said of them.
    fn fill(&mut self, table: Arc<TableRef>, filling: Filling, columns: &[usize]) -> SqlResult<u64> {
        let Filling { filler, subplans, system } = filling;
        let plan = self.bind(|binder| binder.fill(table, filler, columns))?;
        let mut execution = Execution::new(&self.run, self.transaction.read_view()?, Vec::new(), subplans.into());
        execution.look_at(&system, self.transaction)?;
        match change::insert(&plan, self.transaction, &execution)? {
            change::Outcome::Done(changed) => Ok(changed.rows),
            change::Outcome::Again => Err(SqlError::new("XX000", "rows of a new table that somebody else has changed")),
        }
    }

    /// Nothing is said of the table but what the query says: its rows are taken as they come.
    fn fill_as_it_is(
        &mut self,
        table: &TableRef,
        plan: &Plan,
        (subplans, system): (Vec<Plan>, Vec<&'static SystemTable>),
    ) -> SqlResult<u64> {
        let view = self.transaction.read_view()?;
        let mut execution = Execution::new(&self.run, view, Vec::new(), subplans.into());
        execution.look_at(&system, self.transaction)?;
        let context = execution.context();
        let mut operator = crate::execute::open(plan, &context)?;
        let mut failed = None;
        let inserted = self.transaction.insert_rows(&table.first().table, |rows| {
            loop {
                match operator.next(&context) {
                    Ok(Some(row)) => {
                        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                        rows.push(&values)?;
                    }
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        failed = Some(error);
                        return Err(pagefold_engine::Error::Cancelled);
                    }
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(inserted?),
        }
    }
}

/// Columns that get a value of the query: all but those that are GENERATED ALWAYS.
fn columns_given(table: &TableRef) -> Vec<usize> {
    let is_computed =
        |column: usize| table.rules.generated[column].is_some() || table.rules.identity[column].is_some_and(|identity| identity.always);
    (0..table.schema.len()).filter(|column| table.visible[*column] && !is_computed(*column)).collect()
}

fn check_count(table: &TableRef, given: usize, wanted: usize) -> SqlResult<()> {
    if given == wanted {
        return Ok(());
    }
    let error = SqlError::syntax(format!("the query gives {given} columns for the {wanted} of table \"{}\"", table.name));
    Err(match wanted == table.schema.len() {
        true => error,
        false => error.with_detail("Columns that are GENERATED ALWAYS are not counted: they get no value of the query."),
    })
}

/// WITH NO DATA.
pub(super) fn is_without_data(create: &ast::CreateTable) -> bool {
    let is_mark = |name: &ast::ObjectName| matches!(name.0.as_slice(), [ast::ObjectNamePart::Identifier(name)] if name.value == NO_DATA);
    create.query.is_some() && matches!(create.inherits.as_deref(), Some([name]) if is_mark(name))
}

/// Has a column a type, other than the mark of those that have none?
fn has_type(column: &ast::ColumnDef) -> bool {
    let ast::DataType::Custom(name, _) = &column.data_type else { return true };
    !matches!(name.0.as_slice(), [ast::ObjectNamePart::Identifier(name)] if name.value == UNTYPED)
}

/// Are there definitions of columns, not names alone? Then of all of them: what has no type can have no constraint either.
fn has_types(create: &ast::CreateTable) -> SqlResult<bool> {
    let bare = create.columns.iter().find(|column| !has_type(column));
    match bare {
        Some(bare) if create.columns.iter().any(has_type) => {
            let message =
                format!("column \"{}\" has no type: CREATE TABLE AS takes types of all columns, or of none", identifier(&bare.name));
            Err(SqlError::syntax(message))
        }
        _ if !create.constraints.is_empty() && (bare.is_some() || create.columns.is_empty()) => {
            Err(SqlError::unsupported("constraints in CREATE TABLE AS without types of columns"))
        }
        _ => Ok(bare.is_none() && !create.columns.is_empty()),
    }
}

/// The table that has the columns of a query.
fn said_by(planned: &Query, name: &str, create: &ast::CreateTable) -> SqlResult<Said> {
    if create.columns.len() > planned.outputs.len() {
        return Err(SqlError::syntax("too many column names were specified"));
    }
    let mut said = Said::new(name);
    for (at, output) in planned.outputs.iter().enumerate() {
        let name = create.columns.get(at).map_or_else(|| output.name.clone(), |column| identifier(&column.name));
        if said.columns.iter().any(|column| column.name == name) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        said.columns.push(Column::new(name, output.data_type, true));
    }
    Ok(said)
}

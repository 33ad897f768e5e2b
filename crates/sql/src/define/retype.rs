//! ALTER COLUMN ... TYPE.
//!
//! A type that has all values of the rows exactly is a change of the definition alone: rows stay as they are stored. For any other one, and with USING, all rows are written anew: an empty table with
//! the new columns and the same indexes takes the place of the old one, whose rows are read meanwhile as they were.
//!
//! Invariant: from the first look at a row to the end of the transaction nobody else changes the table; what is read is committed, or of the own transaction, whatever its snapshot.

use super::Defining;
use super::alter::quoted;
use super::dependents::{Dependent, Going};
use crate::bind::change::to_slots;
use crate::bind::types;
use crate::catalog::TableRef;
use crate::execute::Execution;
use crate::execute::change::follow;
use crate::expression::{Expr, make, type_name};
use crate::parse::parse_expression;
use crate::print::printed;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::TableChange;
use pagefold_types::{DataType, Value, ValueRef};
use sqlparser::ast;
use std::sync::Arc;

/// Bytes of rows that are held at a time, about.
const ROWS_BYTES: usize = 4 << 20;

fn is_whole_number(data_type: &DataType) -> bool {
    matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

fn refers(expr: &Expr, column: usize) -> bool {
    expr.any(|part| matches!(part, Expr::Slot(slot) if *slot == column))
}

impl Defining<'_> {
    pub(super) fn set_type(
        &mut self,
        table: &Arc<TableRef>,
        column: usize,
        data_type: &ast::DataType,
        using: Option<&ast::Expr>,
    ) -> SqlResult<()> {
        let own = table.schema.columns()[column].clone();
        let data_type = types::data_type(data_type)?;
        self.refuse_type_of_key(table, column, &data_type)?;
        // Nobody makes a view of it from here on.
        self.say(table, |_| Ok(()))?;
        if let Some((Dependent::View(view), _)) = self.views_on(&[Going::Column(table.name.clone(), column, own.name.clone())]).first() {
            let error = SqlError::new("0A000", "cannot alter type of a column used by a view or rule");
            return Err(error.with_detail(format!("rule _RETURN on view {view} depends on column \"{}\"", own.name)));
        }
        if data_type == own.data_type && using.is_none() {
            return Ok(());
        }
        self.refuse_computed_from(table, column)?;
        let counts = table.rules.identity[column];
        if counts.is_some_and(|identity| identity.always) && !is_whole_number(&data_type) {
            return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        if let Some(identity) = counts {
            self.count_as(identity.sequence, &own.data_type, &data_type)?;
        }
        self.keep_default(table, column)?;
        let table = &TableRef::find(self.transaction, &table.name)?;
        if using.is_none() && data_type.converts_from(&own.data_type) {
            match self.change(table, &[TableChange::SetType { column: own.name.clone(), data_type }]) {
                // A value does not go exactly: it may be rounded, or is refused when its row is written.
                Err(error) if matches!(error.engine(), Some(Error::Value(_))) && !table.is_divided() => {}
                done => return done.and_then(|()| self.look_at_checks(&table.name, column)),
            }
        }
        let text = using.map_or_else(|| Ok(format!("\"{}\"", own.name.replace('"', "\"\""))), printed)?;
        self.refuse_written_anew(table, column, using.is_some())?;
        self.write_anew(table, column, data_type, &text, using.is_some())
    }

    /// Refuses a column that is computed, or that others are computed from.
    fn refuse_computed_from(&mut self, table: &Arc<TableRef>, column: usize) -> SqlResult<()> {
        let name = &table.schema.columns()[column].name;
        if table.rules.generated[column].is_some() {
            return Err(SqlError::unsupported(format!("another type of the generated column \"{name}\"")));
        }
        let rules = self.bind(|binder| binder.row_rules(table))?;
        if let Some((generated, _)) = rules.generated.iter().find(|(_, expr)| refers(expr, column)) {
            let error = SqlError::unsupported("cannot alter type of a column used by a generated column");
            let generated = &table.schema.columns()[*generated].name;
            return Err(error.with_detail(format!("Column \"{name}\" is used by generated column \"{generated}\".")));
        }
        Ok(())
    }

    /// A literal without a type is what the column had: as another type it might be read otherwise.
    fn keep_default(&mut self, table: &TableRef, column: usize) -> SqlResult<()> {
        let Some(text) = &table.rules.defaults[column] else { return Ok(()) };
        if !matches!(parse_expression(text), Ok(ast::Expr::Value(value)) if matches!(value.value, ast::Value::SingleQuotedString(_))) {
            return Ok(());
        }
        let typed = format!("CAST({text} AS {})", type_name(&table.schema.columns()[column].data_type));
        self.set_default(table, column, Some(&typed))
    }

    /// Rows are as they were, but conditions may say something else of a value of another type.
    fn look_at_checks(&mut self, table: &str, column: usize) -> SqlResult<()> {
        let table = TableRef::find(self.transaction, table)?;
        let rules = self.bind(|binder| binder.row_rules(&table))?;
        for (name, _) in rules.checks.iter().filter(|(_, expr)| refers(expr, column)) {
            let Some((_, text)) = table.rules.checks().find(|(own, _)| own == name) else { continue };
            self.check_rows(&table, name, text)?;
        }
        Ok(())
    }

    /// Refuses what other things than the rows themselves are computed from.
    fn refuse_written_anew(&mut self, table: &Arc<TableRef>, column: usize, is_using: bool) -> SqlResult<()> {
        let name = &table.schema.columns()[column].name;
        if table.is_divided() {
            return Err(SqlError::unsupported(format!(
                "a type of column \"{name}\" with which rows of a partitioned table are written anew"
            )));
        }
        let is_column = |other: &u32| *other as usize == column;
        let refers = table.rules.foreign_keys().any(|(constraint, _)| constraint.columns.iter().any(is_column));
        let is_referred = self.referring_to(&table.name)?.iter().any(|own| own.reference.columns.iter().any(is_column));
        if is_using && (refers || is_referred) {
            return Err(SqlError::unsupported(format!("USING of column \"{name}\", which is one of a foreign key")));
        }
        Ok(())
    }

    fn write_anew(&mut self, table: &Arc<TableRef>, column: usize, data_type: DataType, text: &str, is_using: bool) -> SqlResult<()> {
        let name = &table.schema.columns()[column].name;
        let cannot =
            |what: &str| SqlError::types(format!("{what} \"{name}\" cannot be cast automatically to type {}", type_name(&data_type)));
        let hint = format!("You might need to specify \"USING {name}::{}\".", type_name(&data_type));
        let bound = self.bind(|binder| {
            let typed = binder.of_row(table, text, |binder, expr| binder.expression(expr))?;
            let value = make::assign(typed, &data_type, name, binder.params)?.expr;
            let query = crate::parse::parse_query(&format!("SELECT * FROM {}", quoted(&table.name)))?;
            let planned = binder.query(&query)?;
            Ok((value, planned.plan, std::mem::take(&mut binder.subplans)))
        });
        let (mut value, plan, subplans) = bound.map_err(|error| match error.sqlstate() {
            "42804" if is_using => SqlError::types(format!(
                "result of USING clause for column \"{name}\" cannot be cast automatically to type {}",
                type_name(&data_type)
            )),
            "42804" => cannot("column").with_hint(hint),
            _ => error,
        })?;
        to_slots(&mut value);
        if let Some(default) = &table.rules.defaults[column] {
            let bound = self.bind(|binder| binder.default_expression(default, &data_type, name));
            // A value that does not fit is an error of who wants it.
            if bound.is_err_and(|error| error.sqlstate() == "42804") {
                return Err(cannot("default for column"));
            }
        }
        let view = self.transaction.newest_view()?;
        let execution = Execution::new(&self.run, view, Vec::new(), subplans.into());
        let context = execution.context();
        let mut rows = crate::execute::open(&plan, &context)?;
        self.transaction.write_table_anew(&table.name, name, data_type)?;
        let fresh = TableRef::find(self.transaction, &table.name)?;
        let rules = self.bind(|binder| binder.row_rules(&fresh))?;
        let (mut batch, mut bytes): (Vec<Vec<Value>>, usize) = (Vec::new(), 0);
        loop {
            let seen = rows.next(&context)?;
            let is_last = seen.is_none();
            if let Some(seen) = seen {
                // Columns that were dropped have their places.
                let mut seen = seen.into_iter();
                let place = |visible: &bool| if *visible { seen.next().unwrap_or(Value::Null) } else { Value::Null };
                let mut row: Vec<Value> = table.visible.iter().map(place).collect();
                row[column] = context.evaluate(&value, &row)?;
                follow(&fresh, &rules, &context, &mut row)?;
                bytes += crate::execute::bytes_of(&row);
                batch.push(row);
            }
            if bytes > ROWS_BYTES || is_last {
                let part = &fresh.first().table;
                let inserted = self.transaction.insert_rows(part, |to| {
                    batch.iter().try_for_each(|row| to.push(&row.iter().map(Value::as_ref).collect::<Vec<ValueRef<'_>>>()))
                });
                inserted.map_err(|error| crate::execute::change::of_key(error, &fresh))?;
                batch.clear();
                bytes = 0;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

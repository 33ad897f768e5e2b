//! What the catalog says of columns and rows, bound: defaults, generated columns, CHECK, limits of partitions.
//!
//! Invariant: what is said of a row is about that row alone: it has no subqueries.

use super::change::to_slots;
use super::view_change::Target;
use super::{Binder, Source};
use crate::catalog::TableRef;
use crate::expression::{Comparison, Expr, Typed, make};
use crate::parse::{parse_expression, short_name};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast;
use std::sync::Arc;

/// What every row of a table has to meet. Expressions are of all columns of the table.
#[derive(Debug, Default)]
pub(crate) struct RowRules {
    pub(crate) checks: Vec<(String, Expr)>,
    /// Columns whose values are computed, before anything is checked.
    pub(crate) generated: Vec<(usize, Expr)>,
    /// Names of views WITH CHECK OPTION, and what has to be true of each row.
    pub(crate) views: Vec<(String, Expr)>,
}

impl Binder<'_> {
    /// What a column has that is given no value.
    pub(crate) fn default_of(&mut self, table: &TableRef, column: usize) -> SqlResult<Expr> {
        let own = &table.schema.columns()[column];
        match &table.rules.defaults[column] {
            None => Ok(Expr::Literal(Value::Null)),
            Some(text) => self.default_expression(text, &own.data_type, &own.name),
        }
    }

    /// A default, from its text.
    pub(crate) fn default_expression(&mut self, text: &str, data_type: &DataType, column: &str) -> SqlResult<Expr> {
        let typed = self.constant(text, "DEFAULT expressions")?;
        Ok(make::assign(typed, data_type, column, self.params)?.expr)
    }

    /// A limit of a partition, from its text: the value of the column, and whether it is the one that was said. A number that was rounded would be another limit.
    pub(crate) fn limit_expression(&mut self, text: &str, data_type: &DataType, column: &str) -> SqlResult<(Expr, Expr)> {
        let typed = self.constant(text, "limits of partitions")?;
        let value = make::assign(typed.clone(), data_type, column, self.params)?.expr;
        let said = match (typed.data_type, data_type) {
            // Texts are read as what the column has, and floating-point numbers are as near as they can be.
            (_, data_type) if data_type.is_text() || matches!(data_type, DataType::Real | DataType::Double) => None,
            // As many digits as it has.
            (None, DataType::Decimal { .. }) => Some(make::cast_to_number(typed, self.params)?),
            (None, _) => None,
            (Some(_), _) => Some(typed),
        };
        let Some(said) = said else { return Ok((value, Expr::Literal(Value::Boolean(true)))) };
        let is_said = make::compare(Comparison::Equal, Typed::of(value.clone(), *data_type), said, self.params)?.expr;
        Ok((value, is_said))
    }

    /// An expression of no row.
    fn constant(&mut self, text: &str, place: &'static str) -> SqlResult<Typed> {
        let expr = parse_expression(text)?;
        let (scopes, subplans) = (std::mem::take(&mut self.scopes), self.subplans.len());
        let typed = self.without_aggregates(place, |binder| binder.expression(&expr));
        self.scopes = scopes;
        self.refuse_subqueries(subplans, place)?;
        typed
    }

    /// Those of the table, and what views let in.
    pub(super) fn target_rules(&mut self, target: &Target) -> SqlResult<RowRules> {
        let mut rules = self.row_rules(&target.table)?;
        rules.views.extend(target.view.iter().flat_map(|view| view.checks.iter().cloned()));
        Ok(rules)
    }

    /// Conditions and generated columns, of rows with all columns of the table.
    pub(crate) fn row_rules(&mut self, table: &Arc<TableRef>) -> SqlResult<RowRules> {
        let mut rules = RowRules::default();
        for (column, generated) in table.rules.generated.iter().enumerate() {
            let Some(text) = generated else { continue };
            let own = &table.schema.columns()[column];
            let typed = self.of_row(table, text, |binder, expr| binder.expression(expr))?;
            let mut expr = make::assign(typed, &own.data_type, &own.name, self.params)?.expr;
            to_slots(&mut expr);
            let mut refused = None;
            expr.visit(&mut |part| match part {
                Expr::Slot(slot) if table.rules.generated[*slot].is_some() => refused = Some("another generated column"),
                Expr::Sequence { .. } => refused = Some("a sequence"),
                Expr::Call { function, .. } if !function.is_immutable() => refused = Some("a function that gives other values later"),
                _ => {}
            });
            if let Some(what) = refused {
                return Err(SqlError::new("42P17", format!("generated column \"{}\" cannot refer to {what}", own.name)));
            }
            rules.generated.push((column, expr));
        }
        for (name, text) in table.rules.checks() {
            let mut expr = self.of_row(table, text, |binder, expr| binder.condition(expr, "CHECK"))?;
            to_slots(&mut expr);
            rules.checks.push((name.to_owned(), expr));
        }
        Ok(rules)
    }

    /// Binds an expression of the catalog on a row of a table.
    pub(crate) fn of_row<R>(
        &mut self,
        table: &Arc<TableRef>,
        text: &str,
        bind: impl FnOnce(&mut Self, &ast::Expr) -> SqlResult<R>,
    ) -> SqlResult<R> {
        let expr = parse_expression(text)?;
        let (scopes, subplans) = (std::mem::take(&mut self.scopes), self.subplans.len());
        // What is said of a partition is said of the whole, by its name.
        let name = table.whole_name().unwrap_or(&table.name);
        self.scope().add(short_name(name).to_owned(), super::scope::table_columns(table), Source::Given)?;
        let bound = self.without_aggregates("constraints", |binder| bind(binder, &expr));
        self.scopes = scopes;
        self.refuse_subqueries(subplans, "constraints and generated columns")?;
        bound
    }

    /// What the catalog says of a row is about that row alone.
    pub(super) fn refuse_subqueries(&self, before: usize, place: &str) -> SqlResult<()> {
        if self.subplans.len() == before { Ok(()) } else { Err(SqlError::unsupported(format!("a subquery in {place}"))) }
    }
}

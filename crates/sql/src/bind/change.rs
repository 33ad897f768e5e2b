//! UPDATE and DELETE, RETURNING, values that columns are given.
//!
//! UPDATE and DELETE are a query first: for each row that is to change where it is (part and RID, two columns behind those of the table) and what
//! it is to have. Its rows are collected completely, and then applied: a statement never meets what it has changed itself.

use super::beforehand::Beforehand;
use super::foreign_key::{Reach, References};
use super::from::conjuncts;
use super::rules::RowRules;
use super::select::{From, Limit, Select};
use super::view_change::{Doing, Target};
use super::{Binder, Output, Source};
use crate::catalog::TableRef;
use crate::expression::{Expr, Typed, make};
use crate::parse::{At, identifier, nearest, short_name};
use crate::plan::{self, Plan};
use crate::{SqlError, SqlResult};
use pagefold_types::DataType;
use sqlparser::ast::{self, Spanned};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Returning {
    pub(crate) outputs: Vec<Output>,
    /// Of all columns of the table, and behind them those of `beside`.
    pub(crate) exprs: Vec<Expr>,
    /// Columns that are wanted of relations beside the table: relation and column.
    pub(crate) beside: Vec<(usize, usize)>,
}

impl Returning {
    pub(super) fn exprs(returning: Option<&Returning>) -> impl Iterator<Item = &Expr> {
        returning.into_iter().flat_map(|returning| &returning.exprs)
    }
}

/// Rows that change, or go.
#[derive(Debug)]
pub(crate) struct ChangePlan {
    pub(crate) table: Arc<TableRef>,
    /// Part, RID, values of the assigned columns; all columns, if they are wanted.
    pub(crate) source: Plan,
    /// Columns that are assigned; of DELETE none.
    pub(crate) columns: Vec<usize>,
    pub(crate) is_delete: bool,
    /// Old values of all columns follow those that are assigned; then what RETURNING wants of relations beside the table.
    pub(crate) has_all: bool,
    pub(crate) rules: RowRules,
    pub(crate) references: References,
    pub(crate) returning: Option<Returning>,
    /// Of `returning`.
    pub(crate) beforehand: Vec<Beforehand>,
}

/// A value that a column is given.
pub(crate) enum Given {
    Default,
    Value(Typed),
}

impl Binder<'_> {
    pub(super) fn given(&mut self, expr: &ast::Expr) -> SqlResult<Given> {
        match expr {
            ast::Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default") => Ok(Given::Default),
            expr => Ok(Given::Value(self.without_aggregates("VALUES", |binder| binder.expression(expr))?)),
        }
    }

    /// SET: columns by number with what they get; not yet placed.
    pub(super) fn assignments(&mut self, target: &Target, assignments: &[ast::Assignment]) -> SqlResult<Vec<(usize, Expr)>> {
        let table = &target.table;
        let mut bound: Vec<(usize, Expr)> = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let span = assignment.value.span();
            let pairs: Vec<(&ast::ObjectName, Given)> = match &assignment.target {
                ast::AssignmentTarget::ColumnName(name) => vec![(name, self.given(&assignment.value)?)],
                ast::AssignmentTarget::Tuple(names) => names.iter().zip(self.row_of(&assignment.value, names.len())?).collect(),
            };
            for (name, given) in pairs {
                let parts = crate::parse::parts(name)?;
                let [ident] = parts.as_slice() else {
                    return Err(SqlError::syntax(format!("{name} is no column of the table that is changed")));
                };
                let column = target.column_of(ident, Doing::Update)?;
                if bound.iter().any(|(known, _)| *known == column) {
                    return Err(
                        SqlError::syntax(format!("multiple assignments to same column \"{}\"", identifier(ident))).at_span(ident.span)
                    );
                }
                let own = &table.schema.columns()[column];
                let is_default = matches!(given, Given::Default);
                if table.rules.generated[column].is_some() && is_default {
                    // It is computed in any case.
                    continue;
                }
                let only_default = |why: &str| {
                    let error = SqlError::new("428C9", format!("column \"{}\" can only be updated to DEFAULT", own.name));
                    Err(error.with_detail(why).at_span(ident.span))
                };
                if table.rules.generated[column].is_some() {
                    return only_default("It is a generated column.");
                }
                if table.rules.identity[column].is_some_and(|identity| identity.always) && !is_default {
                    return only_default("It is an identity column defined as GENERATED ALWAYS.");
                }
                let expr = match given {
                    Given::Default => self.default_of(table, column)?,
                    Given::Value(typed) => make::assign(typed, &own.data_type, &own.name, self.params).at_span(span)?.expr,
                };
                bound.push((column, expr));
            }
        }
        Ok(bound)
    }

    /// What so many columns are given together: values, or the row of a subquery.
    fn row_of(&mut self, value: &ast::Expr, columns: usize) -> SqlResult<Vec<Given>> {
        let as_many = |given: usize| match given == columns {
            true => Ok(()),
            false => Err(SqlError::syntax("number of columns does not match number of values").at_span(value.span())),
        };
        match value {
            ast::Expr::Tuple(values) => {
                as_many(values.len())?;
                values.iter().map(|value| self.given(value)).collect()
            }
            ast::Expr::Nested(value) if columns == 1 || matches!(**value, ast::Expr::Subquery(_)) => self.row_of(value, columns),
            ast::Expr::Function(call) if call.over.is_none() && call.name.to_string().eq_ignore_ascii_case("row") => {
                let ast::FunctionArguments::List(list) = &call.args else { return Err(SqlError::syntax("ROW without values")) };
                as_many(list.args.len())?;
                let value = |argument: &ast::FunctionArg| match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) => self.given(value),
                    other => Err(SqlError::unsupported(format!("{other} in ROW"))),
                };
                list.args.iter().map(value).collect()
            }
            ast::Expr::Subquery(query) => {
                let values = self.scalars(query)?;
                as_many(values.len())?;
                Ok(values.into_iter().map(Given::Value).collect())
            }
            value if columns == 1 => Ok(vec![self.given(value)?]),
            _ => {
                let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                Err(SqlError::new("0A000", message).at_span(value.span()))
            }
        }
    }

    pub(crate) fn update(&mut self, update: &ast::Update) -> SqlResult<ChangePlan> {
        if update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some() || !update.table.joins.is_empty() {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
        let (target, alias) = self.target_relation(&update.table.relation, Doing::Update)?;
        let mut from = vec![From::Relation(0)];
        match &update.from {
            None => {}
            Some(ast::UpdateTableFromKind::AfterSet(items) | ast::UpdateTableFromKind::BeforeSet(items)) => from.extend(self.from(items)?),
        }
        let assignments = self.without_aggregates("UPDATE", |binder| binder.assignments(&target, &update.assignments))?;
        self.change(target, &alias, from, assignments, update.selection.as_ref(), update.returning.as_deref(), false)
    }

    pub(crate) fn delete(&mut self, delete: &ast::Delete) -> SqlResult<ChangePlan> {
        let (ast::FromTable::WithFromKeyword(items) | ast::FromTable::WithoutKeyword(items)) = &delete.from;
        let [item] = items.as_slice() else { return Err(SqlError::unsupported("DELETE from several tables")) };
        if !delete.tables.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some() || !item.joins.is_empty() {
            return Err(SqlError::unsupported("this form of DELETE"));
        }
        let (target, alias) = self.target_relation(&item.relation, Doing::Delete)?;
        let mut from = vec![From::Relation(0)];
        if let Some(items) = &delete.using {
            from.extend(self.from(items)?);
        }
        self.change(target, &alias, from, Vec::new(), delete.selection.as_ref(), delete.returning.as_deref(), true)
    }

    /// The table that changes, as the first relation, with its two columns more.
    pub(super) fn target_relation(&mut self, factor: &ast::TableFactor, doing: Doing) -> SqlResult<(Target, String)> {
        let ast::TableFactor::Table { name, alias, args: None, .. } = factor else {
            return Err(SqlError::unsupported("changing what is no table"));
        };
        let target = self.target(name, doing)?;
        let table = &target.table;
        let short = short_name(target.name()).to_owned();
        let alias = alias.as_ref().map_or(short, |alias| identifier(&alias.name));
        let mut columns = super::scope::table_columns(table);
        // Nobody can name them.
        columns.extend(["\u{0}part", "\u{0}rid"].map(|name| Output { name: name.into(), data_type: DataType::BigInt }));
        let at = self.scope().add(alias.clone(), columns, Source::Table(Arc::clone(table)))?;
        self.scope().relations[at].seen = target.seen();
        Ok((target, alias))
    }

    #[allow(clippy::too_many_arguments, reason = "the clauses of the statement")]
    fn change(
        &mut self,
        target: Target,
        alias: &str,
        from: Vec<From>,
        assignments: Vec<(usize, Expr)>,
        selection: Option<&ast::Expr>,
        returning: Option<&[ast::SelectItem]>,
        is_delete: bool,
    ) -> SqlResult<ChangePlan> {
        // What a view does not show is not changed.
        let mut conditions = target.view.as_ref().map_or_else(Vec::new, |view| view.conditions.clone());
        conditions.iter_mut().for_each(|condition| self.scope().needs(0, condition));
        if let Some(condition) = selection {
            conditions.extend(conjuncts(self.without_aggregates("WHERE", |binder| binder.condition(condition, "WHERE"))?));
        }
        let has_returning = returning.is_some();
        let rules = if is_delete { RowRules::default() } else { self.target_rules(&target)? };
        let table = Arc::clone(&target.table);
        let columns: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
        let moves = columns.iter().any(|column| table.range_columns().contains(column));
        let mut reach = Reach { deletes: is_delete, ..Reach::default() };
        reach.updates.extend(columns.iter().copied().chain(rules.generated.iter().map(|(column, _)| *column)));
        let references = self.references(&table, reach)?;
        let has_all = has_returning
            || !rules.checks.is_empty()
            || !rules.views.is_empty()
            || !rules.generated.is_empty()
            || moves
            || !references.is_empty();
        let subqueries = self.subplans.len();
        let returning = self.returning_of(&target, alias, returning, true)?;
        let beforehand = self.beforehand(&table, subqueries, Returning::exprs(returning.as_ref()), "RETURNING")?;
        let mut projection: Vec<Expr> = table.place_columns().into_iter().map(|column| self.scope().column(0, column).expr).collect();
        projection.extend(assignments.into_iter().map(|(_, expr)| expr));
        if has_all {
            projection.extend((0..table.schema.len()).map(|column| self.scope().column(0, column).expr));
            let beside = returning.iter().flat_map(|returning| &returning.beside);
            projection.extend(beside.map(|(relation, column)| self.scope().column(*relation, *column).expr));
        }
        let visible = projection.len();
        let limit = Limit::default();
        let select = Select {
            from,
            conditions,
            groups: None,
            windows: Vec::new(),
            projection,
            visible,
            distinct: super::Distinct::None,
            order: Vec::new(),
            limit,
        };
        let source = plan::select::plan(self, select)?;
        Ok(ChangePlan { table, source, columns, is_delete, has_all, rules, references, returning, beforehand })
    }

    /// RETURNING, of the table and of what stands beside it in FROM or USING (`has_beside`).
    pub(super) fn returning_of(
        &mut self,
        target: &Target,
        alias: &str,
        items: Option<&[ast::SelectItem]>,
        has_beside: bool,
    ) -> SqlResult<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        let scopes = std::mem::take(&mut self.scopes);
        let bound = self.returning_beside(target, alias, scopes.last().filter(|_| has_beside), items);
        self.scopes = scopes;
        let (outputs, mut exprs) = bound?;
        let (width, mut beside) = (target.table.schema.len(), Vec::new());
        for expr in &mut exprs {
            expr.rewrite(&mut |part| match *part {
                Expr::Column { relation: 0, column } => *part = Expr::Slot(column),
                Expr::Column { relation, column } => {
                    let known = beside.iter().position(|own| *own == (relation, column));
                    let place = known.unwrap_or_else(|| {
                        beside.push((relation, column));
                        beside.len() - 1
                    });
                    *part = Expr::Slot(width + place);
                }
                _ => {}
            });
        }
        Ok(Some(Returning { outputs, exprs, beside }))
    }

    fn returning_beside(
        &mut self,
        target: &Target,
        alias: &str,
        of_statement: Option<&super::scope::Scope>,
        items: &[ast::SelectItem],
    ) -> SqlResult<(Vec<Output>, Vec<Expr>)> {
        let own = self.scope().add(alias.to_owned(), super::scope::table_columns(&target.table), Source::Given)?;
        self.scope().relations[own].seen = target.seen();
        for beside in of_statement.iter().flat_map(|scope| scope.relations.iter().skip(1)) {
            let at = self.scope().add(beside.name.clone(), beside.columns.clone(), Source::Given)?;
            self.scope().relations[at].is_visible = beside.is_visible;
        }
        self.returning(items)
    }
}

/// Columns of the one relation at their places.
pub(crate) fn to_slots(expr: &mut Expr) {
    expr.rewrite(&mut |expr| {
        if let Expr::Column { relation: 0, column } = expr {
            *expr = Expr::Slot(*column);
        }
    });
}

/// A column of a table by name.
pub(crate) fn column_of(table: &TableRef, name: &ast::Ident) -> SqlResult<usize> {
    let wanted = identifier(name);
    let columns = table.schema.columns();
    let exact = (0..columns.len()).find(|at| table.visible[*at] && columns[*at].name == wanted);
    let found = exact.or_else(|| {
        let mut like = (0..columns.len())
            .filter(|at| table.visible[*at] && name.quote_style.is_none() && columns[*at].name.eq_ignore_ascii_case(&wanted));
        like.next().filter(|_| like.next().is_none())
    });
    found.ok_or_else(|| {
        let error = SqlError::new("42703", format!("column \"{wanted}\" of relation \"{}\" does not exist", table.name)).at_span(name.span);
        match nearest(&wanted, columns.iter().map(|column| column.name.as_str())) {
            Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
            None => error,
        }
    })
}

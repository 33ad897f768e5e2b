//! INSERT, and what fills a new table.

use super::beforehand::Beforehand;
use super::change::{Given, Returning};
use super::foreign_key::{Reach, References};
use super::rules::RowRules;
use super::select::Query;
use super::view_change::{Doing, Target};
use super::{Binder, Source};
use crate::catalog::TableRef;
use crate::expression::{Expr, Typed, make};
use crate::forms::Overriding;
use crate::parse::{At, identifier, object_name, short_name};
use crate::plan::Plan;
use crate::{SqlError, SqlResult};
use sqlparser::ast;
use std::sync::Arc;

/// Rows that come into a table.
#[derive(Debug)]
pub(crate) struct InsertPlan {
    pub(crate) table: Arc<TableRef>,
    pub(crate) source: Plan,
    /// For each column of the table, of a row of the source.
    pub(crate) exprs: Vec<Expr>,
    pub(crate) rules: RowRules,
    pub(crate) references: References,
    pub(crate) conflict: Option<Conflict>,
    pub(crate) returning: Option<Returning>,
    /// The source reads the table: all its rows come before the first is inserted.
    pub(crate) reads_own: bool,
    /// Of `conflict` and `returning`.
    pub(crate) beforehand: Vec<Beforehand>,
}

/// ON CONFLICT.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// Of this index alone, by number; of any.
    pub(crate) index: Option<usize>,
    pub(crate) update: Option<ConflictUpdate>,
}

#[derive(Debug)]
pub(crate) struct ConflictUpdate {
    /// Of the row that is there, and behind it the row that was to come.
    pub(crate) assignments: Vec<(usize, Expr)>,
    pub(crate) condition: Option<Expr>,
    /// A view, and what its rows meet: one that it does not show is not changed.
    pub(crate) shown: Option<(String, Vec<Expr>)>,
}

impl ConflictUpdate {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.assignments.iter().map(|(_, expr)| expr).chain(&self.condition)
    }
}

/// What fills a new table: bound before there is one.
pub(crate) enum Filler {
    Query(Query),
    Rows(Vec<Vec<Given>>),
}

impl Filler {
    /// Columns that it gives.
    pub(crate) fn width(&self) -> usize {
        match self {
            Filler::Query(planned) => planned.outputs.len(),
            Filler::Rows(rows) => rows.first().map_or(0, Vec::len),
        }
    }
}

impl Binder<'_> {
    pub(crate) fn insert(&mut self, insert: &ast::Insert) -> SqlResult<InsertPlan> {
        if insert.or.is_some() || insert.ignore || insert.overwrite || insert.replace_into || !insert.assignments.is_empty() {
            return Err(SqlError::unsupported("this form of INSERT"));
        }
        let Some(overriding) = Overriding::of(insert) else { return Err(SqlError::unsupported("this form of INSERT")) };
        let ast::TableObject::TableName(name) = &insert.table else { return Err(SqlError::unsupported("INSERT into a function")) };
        let target = self.target(name, Doing::Insert)?;
        let targets = self.target_columns(&target, &insert.columns, insert_width(insert))?;
        let table = Arc::clone(&target.table);
        let is_either = |column: &usize| table.rules.identity[*column].is_some_and(|identity| !identity.always);
        if overriding == Overriding::User && targets.iter().any(is_either) {
            return Err(SqlError::unsupported("OVERRIDING USER VALUE for a column that is not GENERATED ALWAYS"));
        }
        let (source, exprs) = self.insert_source(&table, insert, (&targets, overriding))?;
        let reads_own = source.reads(&table.name) || self.subplans.iter().any(|plan| plan.reads(&table.name));
        let alias = insert.table_alias.as_ref().map_or_else(|| short_name(target.name()).to_owned(), |alias| identifier(&alias.alias));
        let subqueries = self.subplans.len();
        let conflict = match &insert.on {
            None => None,
            Some(ast::OnInsert::OnConflict(conflict)) => Some(self.conflict(&target, &alias, conflict)?),
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE").with_hint("ON CONFLICT (...) DO UPDATE SET ...")),
        };
        let update = conflict.iter().flat_map(|conflict| &conflict.update).flat_map(ConflictUpdate::exprs);
        let mut beforehand = self.beforehand(&table, subqueries, update, "ON CONFLICT")?;
        let subqueries = self.subplans.len();
        let returning = self.returning_of(&target, &alias, insert.returning.as_deref(), false)?;
        beforehand.extend(self.beforehand(&table, subqueries, Returning::exprs(returning.as_ref()), "RETURNING")?);
        let rules = self.target_rules(&target)?;
        let mut reach = Reach { inserts: true, ..Reach::default() };
        if let Some(update) = conflict.as_ref().and_then(|conflict| conflict.update.as_ref()) {
            reach.updates.extend(update.assignments.iter().map(|(column, _)| *column));
            reach.updates.extend(rules.generated.iter().map(|(column, _)| *column));
        }
        let references = self.references(&table, reach)?;
        Ok(InsertPlan { table, source, exprs, rules, references, conflict, returning, reads_own, beforehand })
    }

    /// Columns that are named, by number; all where none are, of which the first `given` get values.
    pub(super) fn target_columns(&mut self, target: &Target, names: &[ast::ObjectName], given: usize) -> SqlResult<Vec<usize>> {
        if names.is_empty() {
            return target.all_columns(given);
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let parts = crate::parse::parts(name)?;
            let [ident] = parts.as_slice() else { return Err(SqlError::syntax(format!("{name} is no column"))) };
            let column = target.column_of(ident, Doing::Insert)?;
            if columns.contains(&column) {
                return Err(
                    SqlError::new("42701", format!("column \"{}\" specified more than once", identifier(ident))).at_span(ident.span)
                );
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// The rows of INSERT, and for each column of the table what it gets of them.
    fn insert_source(
        &mut self,
        table: &TableRef,
        insert: &ast::Insert,
        (targets, overriding): (&[usize], Overriding),
    ) -> SqlResult<(Plan, Vec<Expr>)> {
        let Some(query) = &insert.source else {
            // DEFAULT VALUES
            let exprs = (0..table.schema.len()).map(|column| self.default_of(table, column)).collect::<SqlResult<_>>()?;
            return Ok((Plan::values(vec![Vec::new()]), exprs));
        };
        // Rows of VALUES are cast one by one, and may say DEFAULT.
        if let Some(values) = plain_values(query) {
            let mut rows = Vec::with_capacity(values.rows.len());
            for row in &values.rows {
                let row = &row.content;
                if row.len() != values.rows[0].content.len() {
                    return Err(SqlError::syntax("VALUES lists must all be the same length"));
                }
                rows.push(self.row_values(table, (targets, overriding), row, !insert.columns.is_empty())?);
            }
            let exprs = (0..table.schema.len()).map(Expr::Slot).collect();
            return Ok((Plan::values(rows), exprs));
        }
        let (planned, _) = self.subquery(query)?;
        check_width(planned.outputs.len(), targets, !insert.columns.is_empty())?;
        let exprs = self.query_values(table, &planned, (targets, overriding))?;
        Ok((planned.plan, exprs))
    }

    /// What each column of the table gets of the rows of a query that are for some of them.
    fn query_values(&mut self, table: &TableRef, planned: &Query, (targets, overriding): (&[usize], Overriding)) -> SqlResult<Vec<Expr>> {
        let mut exprs = Vec::with_capacity(table.schema.len());
        for column in 0..table.schema.len() {
            let data_type = table.schema.columns()[column].data_type;
            let given = match targets.iter().position(|target| *target == column).filter(|at| *at < planned.outputs.len()) {
                None => Given::Default,
                // A literal that nobody gave a type is read as one of the column's; a text is one already, and a cast would cut it.
                Some(at) if planned.is_untyped(at) && !data_type.is_text() => {
                    let slot = Typed::of(Expr::Slot(at), planned.outputs[at].data_type);
                    Given::Value(make::cast(slot, data_type, self.params)?)
                }
                Some(at) => Given::Value(Typed::of(Expr::Slot(at), planned.outputs[at].data_type)),
            };
            exprs.push(self.column_value(table, column, given, overriding)?);
        }
        Ok(exprs)
    }

    /// What is to fill a table that is not there yet. `by_rows`: values in rows are assigned one by one, as those of INSERT.
    pub(crate) fn filler(&mut self, query: &ast::Query, by_rows: bool) -> SqlResult<Filler> {
        let Some(values) = plain_values(query).filter(|_| by_rows) else { return self.query(query).map(Filler::Query) };
        let mut rows: Vec<Vec<Given>> = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let row = row.content.iter().map(|expr| self.given(expr)).collect::<SqlResult<Vec<Given>>>()?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                return Err(SqlError::syntax("VALUES lists must all be the same length"));
            }
            rows.push(row);
        }
        Ok(Filler::Rows(rows))
    }

    /// INSERT of that into these columns, as many as it gives.
    pub(crate) fn fill(&mut self, table: Arc<TableRef>, filler: Filler, targets: &[usize]) -> SqlResult<InsertPlan> {
        let (source, exprs) = match filler {
            Filler::Query(planned) => {
                let exprs = self.query_values(&table, &planned, (targets, Overriding::Nothing))?;
                (planned.plan, exprs)
            }
            Filler::Rows(rows) => {
                let width = table.schema.len();
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    let mut of_columns: Vec<Given> = (0..width).map(|_| Given::Default).collect();
                    targets.iter().zip(row).for_each(|(target, given)| of_columns[*target] = given);
                    let row = of_columns.into_iter().enumerate();
                    let row = row.map(|(column, given)| self.column_value(&table, column, given, Overriding::Nothing));
                    values.push(row.collect::<SqlResult<Vec<Expr>>>()?);
                }
                (Plan::values(values), (0..width).map(Expr::Slot).collect())
            }
        };
        self.plain_insert(table, source, exprs)
    }

    /// INSERT of rows of a source, and nothing else.
    pub(super) fn plain_insert(&mut self, table: Arc<TableRef>, source: Plan, exprs: Vec<Expr>) -> SqlResult<InsertPlan> {
        let rules = self.row_rules(&table)?;
        let references = self.references(&table, Reach { inserts: true, ..Reach::default() })?;
        Ok(InsertPlan {
            table,
            source,
            exprs,
            rules,
            references,
            conflict: None,
            returning: None,
            reads_own: false,
            beforehand: Vec::new(),
        })
    }

    /// What each column of the table has in a row of values for some of them.
    pub(super) fn row_values(
        &mut self,
        table: &TableRef,
        (targets, overriding): (&[usize], Overriding),
        row: &[ast::Expr],
        are_named: bool,
    ) -> SqlResult<Vec<Expr>> {
        check_width(row.len(), targets, are_named)?;
        let mut exprs = Vec::with_capacity(table.schema.len());
        for column in 0..table.schema.len() {
            let given = match targets.iter().position(|target| *target == column).and_then(|at| row.get(at)) {
                None => Given::Default,
                Some(expr) => self.given(expr)?,
            };
            exprs.push(self.column_value(table, column, given, overriding)?);
        }
        Ok(exprs)
    }

    fn column_value(&mut self, table: &TableRef, column: usize, given: Given, overriding: Overriding) -> SqlResult<Expr> {
        let own = &table.schema.columns()[column];
        let is_always = table.rules.identity[column].is_some_and(|identity| identity.always);
        match given {
            Given::Value(_) if is_always && overriding == Overriding::User => self.default_of(table, column),
            Given::Default => self.default_of(table, column),
            Given::Value(_) if table.rules.generated[column].is_some() => {
                let error = SqlError::new("428C9", format!("cannot insert a non-DEFAULT value into column \"{}\"", own.name));
                Err(error.with_detail("It is a generated column.").of_column(&table.name, &own.name))
            }
            Given::Value(_) if is_always && overriding == Overriding::Nothing => {
                let error = SqlError::new("428C9", format!("cannot insert a non-DEFAULT value into column \"{}\"", own.name));
                let error = error.with_detail("It is an identity column defined as GENERATED ALWAYS.").of_column(&table.name, &own.name);
                Err(error.with_hint("Use OVERRIDING SYSTEM VALUE to override."))
            }
            Given::Value(typed) => Ok(make::assign(typed, &own.data_type, &own.name, self.params)?.expr),
        }
    }

    fn conflict(&mut self, target: &Target, alias: &str, conflict: &ast::OnConflict) -> SqlResult<Conflict> {
        let table = &target.table;
        let index = match &conflict.conflict_target {
            None => None,
            Some(ast::ConflictTarget::Columns(names)) => {
                let mut columns = names.iter().map(|name| target.column_of(name, Doing::Insert)).collect::<SqlResult<Vec<usize>>>()?;
                columns.sort_unstable();
                let is_of = |index: &usize| {
                    let mut own: Vec<usize> = table.index_columns(*index).iter().map(|(column, _)| *column).collect();
                    own.sort_unstable();
                    table.is_unique(*index) && own == columns
                };
                let found = (0..table.index_count()).find(is_of);
                Some(found.ok_or_else(|| {
                    SqlError::new("42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification")
                })?)
            }
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                let wanted = object_name(name)?;
                let is_of = |index: &usize| table.index_name(*index) == wanted && table.is_unique(*index);
                let found = (0..table.index_count()).find(is_of);
                Some(found.ok_or_else(|| {
                    SqlError::new("42704", format!("constraint \"{wanted}\" for table \"{}\" does not exist", table.name))
                })?)
            }
        };
        let update = match &conflict.action {
            ast::OnConflictAction::DoNothing => None,
            ast::OnConflictAction::DoUpdate(_) if index.is_none() => {
                return Err(SqlError::syntax("ON CONFLICT DO UPDATE requires inference specification or constraint name"));
            }
            ast::OnConflictAction::DoUpdate(update) => {
                let scopes = std::mem::take(&mut self.scopes);
                self.scope().add(alias.to_owned(), super::scope::table_columns(table), Source::Given)?;
                self.scope().add("excluded".into(), super::scope::table_columns(table), Source::Given)?;
                for relation in &mut self.scope().relations {
                    relation.seen = target.seen();
                }
                let bound = self.conflict_update(target, update);
                self.scopes = scopes;
                Some(bound?)
            }
        };
        Ok(Conflict { index, update })
    }

    fn conflict_update(&mut self, target: &Target, update: &ast::DoUpdate) -> SqlResult<ConflictUpdate> {
        // Columns alone mean those of the row that is there: `excluded` is always named.
        self.scope().relations[1].is_visible = true;
        let width = target.table.schema.len();
        let mut assignments = self.assignments(target, &update.assignments)?;
        let mut condition = update.selection.as_ref().map(|condition| self.condition(condition, "WHERE")).transpose()?;
        let place = |expr: &mut Expr| {
            expr.rewrite(&mut |expr| {
                if let Expr::Column { relation, column } = expr {
                    *expr = Expr::Slot(*relation * width + *column);
                }
            });
        };
        assignments.iter_mut().for_each(|(_, expr)| place(expr));
        condition.iter_mut().for_each(place);
        let mut shown = target.view.as_ref().map(|view| (view.name.clone(), view.conditions.clone()));
        shown.iter_mut().flat_map(|(_, conditions)| conditions).for_each(place);
        Ok(ConflictUpdate { assignments, condition, shown })
    }
}

/// How many values INSERT gives, as far as that is seen before it is bound.
fn insert_width(insert: &ast::Insert) -> usize {
    let Some(query) = &insert.source else { return 0 };
    if let Some(values) = plain_values(query) {
        return values.rows.iter().map(|row| row.content.len()).max().unwrap_or(0);
    }
    let ast::SetExpr::Select(select) = &*query.body else { return 0 };
    let is_one = |item: &ast::SelectItem| matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. });
    if select.projection.iter().all(is_one) { select.projection.len() } else { 0 }
}

/// VALUES with nothing before or behind it.
fn plain_values(query: &ast::Query) -> Option<&ast::Values> {
    let ast::SetExpr::Values(values) = &*query.body else { return None };
    let is_alone = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    (is_alone && query.locks.is_empty()).then_some(values)
}

/// Fewer values than columns are those of the first, where no columns were named.
fn check_width(given: usize, targets: &[usize], are_named: bool) -> SqlResult<()> {
    if given > targets.len() {
        return Err(SqlError::syntax("INSERT has more expressions than target columns"));
    }
    if given < targets.len() && are_named {
        return Err(SqlError::syntax("INSERT has more target columns than expressions"));
    }
    Ok(())
}

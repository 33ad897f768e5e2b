//! INSERT, UPDATE, DELETE.
//!
//! UPDATE and DELETE are a query first: for each row that is to change where it is (part and RID, two columns behind those of the table) and what
//! it is to have. Its rows are collected completely, and then applied: a statement never meets what it has changed itself.

use super::beforehand::Beforehand;
use super::foreign_key::{Reach, References};
use super::from::conjuncts;
use super::select::{From, Limit, Query, Select};
use super::view_change::{Doing, Target};
use super::{Binder, Output, Source};
use crate::catalog::TableRef;
use crate::expression::{Comparison, Expr, Typed, make};
use crate::parse::{At, identifier, nearest, object_name, parse_expression, short_name};
use crate::plan::{self, Plan};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, Spanned};
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

/// What every row of a table has to meet. Expressions are of all columns of the table.
#[derive(Debug, Default)]
pub(crate) struct RowRules {
    pub(crate) checks: Vec<(String, Expr)>,
    /// Columns whose values are computed, before anything is checked.
    pub(crate) generated: Vec<(usize, Expr)>,
    /// Names of views WITH CHECK OPTION, and what has to be true of each row.
    pub(crate) views: Vec<(String, Expr)>,
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
}

impl ConflictUpdate {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.assignments.iter().map(|(_, expr)| expr).chain(&self.condition)
    }
}

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

/// A value that a column is given.
pub(crate) enum Given {
    Default,
    Value(Typed),
}

impl Binder<'_> {
    pub(crate) fn insert(&mut self, insert: &ast::Insert) -> SqlResult<InsertPlan> {
        if insert.or.is_some()
            || insert.ignore
            || insert.overwrite
            || insert.partitioned.is_some()
            || insert.replace_into
            || !insert.assignments.is_empty()
        {
            return Err(SqlError::unsupported("this form of INSERT"));
        }
        let ast::TableObject::TableName(name) = &insert.table else { return Err(SqlError::unsupported("INSERT into a function")) };
        let target = self.target(name, Doing::Insert)?;
        let targets = self.target_columns(&target, &insert.columns, insert_width(insert))?;
        let table = Arc::clone(&target.table);
        let (source, exprs) = self.insert_source(&table, insert, &targets)?;
        let reads_own = source.reads(&table.name) || self.subplans.iter().any(|plan| plan.reads(&table.name));
        let alias = insert.table_alias.as_ref().map_or_else(|| target.name().to_owned(), |alias| identifier(&alias.alias));
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
    fn insert_source(&mut self, table: &TableRef, insert: &ast::Insert, targets: &[usize]) -> SqlResult<(Plan, Vec<Expr>)> {
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
                rows.push(self.row_values(table, targets, row, !insert.columns.is_empty())?);
            }
            let exprs = (0..table.schema.len()).map(Expr::Slot).collect();
            return Ok((Plan::values(rows), exprs));
        }
        let (planned, _) = self.subquery(query)?;
        check_width(planned.outputs.len(), targets, !insert.columns.is_empty())?;
        let exprs = self.query_values(table, &planned, targets)?;
        Ok((planned.plan, exprs))
    }

    /// What each column of the table gets of the rows of a query that are for some of them.
    fn query_values(&mut self, table: &TableRef, planned: &Query, targets: &[usize]) -> SqlResult<Vec<Expr>> {
        let mut exprs = Vec::with_capacity(table.schema.len());
        for column in 0..table.schema.len() {
            let data_type = table.schema.columns()[column].data_type;
            let given = match targets.iter().position(|target| *target == column).filter(|at| *at < planned.outputs.len()) {
                None => Given::Default,
                // A literal that nobody gave a type is read as one of the column's; a text is one already, and a cast would cut it.
                Some(at) if planned.unknown.contains(&at) && !data_type.is_text() => {
                    let slot = Typed::of(Expr::Slot(at), planned.outputs[at].data_type);
                    Given::Value(make::cast(slot, data_type, self.params)?)
                }
                Some(at) => Given::Value(Typed::of(Expr::Slot(at), planned.outputs[at].data_type)),
            };
            exprs.push(self.column_value(table, column, given)?);
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
                let exprs = self.query_values(&table, &planned, targets)?;
                (planned.plan, exprs)
            }
            Filler::Rows(rows) => {
                let width = table.schema.len();
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    let mut of_columns: Vec<Given> = (0..width).map(|_| Given::Default).collect();
                    targets.iter().zip(row).for_each(|(target, given)| of_columns[*target] = given);
                    let row = of_columns.into_iter().enumerate().map(|(column, given)| self.column_value(&table, column, given));
                    values.push(row.collect::<SqlResult<Vec<Expr>>>()?);
                }
                (Plan::values(values), (0..width).map(Expr::Slot).collect())
            }
        };
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
    pub(super) fn row_values(&mut self, table: &TableRef, targets: &[usize], row: &[ast::Expr], are_named: bool) -> SqlResult<Vec<Expr>> {
        check_width(row.len(), targets, are_named)?;
        let mut exprs = Vec::with_capacity(table.schema.len());
        for column in 0..table.schema.len() {
            let given = match targets.iter().position(|target| *target == column).and_then(|at| row.get(at)) {
                None => Given::Default,
                Some(expr) => self.given(expr)?,
            };
            exprs.push(self.column_value(table, column, given)?);
        }
        Ok(exprs)
    }

    fn given(&mut self, expr: &ast::Expr) -> SqlResult<Given> {
        match expr {
            ast::Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default") => Ok(Given::Default),
            expr => Ok(Given::Value(self.without_aggregates("VALUES", |binder| binder.expression(expr))?)),
        }
    }

    fn column_value(&mut self, table: &TableRef, column: usize, given: Given) -> SqlResult<Expr> {
        let own = &table.schema.columns()[column];
        match given {
            Given::Default => self.default_of(table, column),
            Given::Value(_) if table.rules.generated[column].is_some() => {
                let error = SqlError::new("428C9", format!("cannot insert a non-DEFAULT value into column \"{}\"", own.name));
                Err(error.with_detail("It is a generated column.").of_column(&table.name, &own.name))
            }
            Given::Value(_) if table.rules.identity[column].is_some_and(|identity| identity.always) => {
                let error = SqlError::new("428C9", format!("cannot insert a non-DEFAULT value into column \"{}\"", own.name));
                Err(error.with_detail("It is an identity column defined as GENERATED ALWAYS.").of_column(&table.name, &own.name))
            }
            Given::Value(typed) => Ok(make::assign(typed, &own.data_type, &own.name, self.params)?.expr),
        }
    }

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
    fn target_rules(&mut self, target: &Target) -> SqlResult<RowRules> {
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
                Expr::NextValue(_) => refused = Some("a sequence"),
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
        self.scope().add(table.name.clone(), super::scope::table_columns(table), Source::Given)?;
        let bound = self.without_aggregates("constraints", |binder| bind(binder, &expr));
        self.scopes = scopes;
        self.refuse_subqueries(subplans, "constraints and generated columns")?;
        bound
    }

    /// What the catalog says of a row is about that row alone.
    pub(super) fn refuse_subqueries(&self, before: usize, place: &str) -> SqlResult<()> {
        if self.subplans.len() == before { Ok(()) } else { Err(SqlError::unsupported(format!("a subquery in {place}"))) }
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
        Ok(ConflictUpdate { assignments, condition })
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
    fn returning_of(
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

//! FROM: tables, views, queries of WITH, subqueries, joins.

use super::scope::{Merged, NAMELESS, table_columns};
use super::select::{From, Query};
use super::series::SERIES;
use super::{Binder, Output, Source, settled};
use crate::catalog::{self, Found};
use crate::expression::{Comparison, Expr, Typed, make};
use crate::forms::without_only;
use crate::parse::{At, identifier, object_name, parse_query, short_name};
use crate::plan::{JoinKind, Plan};
use crate::system::SystemTable;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, JoinConstraint, JoinOperator, Spanned, TableFactor};

/// Relations in a statement: views within views may double with each level.
const RELATIONS_MAX: usize = 1_000;

impl Binder<'_> {
    /// The relations of FROM come into the scope.
    pub(crate) fn from(&mut self, from: &[ast::TableWithJoins]) -> SqlResult<Vec<From>> {
        from.iter().map(|item| self.joins(item)).collect()
    }

    fn joins(&mut self, item: &ast::TableWithJoins) -> SqlResult<From> {
        let (first, merged) = (self.scope().relations.len(), self.scope().merged.len());
        let mut left = self.factor(&item.relation)?;
        for join in &item.joins {
            let middle = self.scope().relations.len();
            let right = self.factor(&join.relation)?;
            let end = self.scope().relations.len();
            let (kind, swapped, constraint) = match &join.join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (JoinKind::Inner, false, constraint),
                JoinOperator::CrossJoin(constraint) => (JoinKind::Inner, false, constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (JoinKind::Left, false, constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (JoinKind::Left, true, constraint),
                JoinOperator::FullOuter(constraint) => (JoinKind::Full, false, constraint),
                _ => return Err(SqlError::unsupported("this kind of join").at_span(join.relation.span())),
            };
            if swapped || kind == JoinKind::Full {
                self.refuse_lateral(middle..end, first..middle)?;
            }
            let on = match constraint {
                JoinConstraint::On(condition) => {
                    let bind = |binder: &mut Self| binder.condition(condition, "JOIN/ON");
                    conjuncts(self.within_join((first, merged), |binder| binder.without_aggregates("JOIN conditions", bind))?)
                }
                JoinConstraint::Using(names) => {
                    let names = names.iter().map(|name| Ok(crate::parse::parts(name)?[0].clone())).collect::<SqlResult<Vec<_>>>()?;
                    self.using(&names, first..middle, middle..end, (kind, swapped))?
                }
                JoinConstraint::Natural => {
                    let own = |range: std::ops::Range<usize>, binder: &mut Self| -> Vec<String> {
                        let relations = &binder.scope().relations[range];
                        let names = relations.iter().flat_map(|relation| relation.columns.iter().map(|column| column.name.clone()));
                        names.filter(|name| !name.starts_with(NAMELESS)).collect()
                    };
                    let (left, right) = (own(first..middle, self), own(middle..end, self));
                    let mut names: Vec<String> = left.into_iter().filter(|name| right.contains(name)).collect();
                    names.dedup();
                    let names: Vec<ast::Ident> = names.into_iter().map(|name| ast::Ident::with_quote('"', name)).collect();
                    self.using(&names, first..middle, middle..end, (kind, swapped))?
                }
                JoinConstraint::None if matches!(join.join_operator, JoinOperator::CrossJoin(_)) => Vec::new(),
                JoinConstraint::None => {
                    return Err(SqlError::syntax("JOIN needs ON or USING")
                        .at_span(join.relation.span())
                        .with_hint("All pairs: CROSS JOIN."));
                }
            };
            let (a, b) = if swapped { (right, left) } else { (left, right) };
            left = From::Join { kind, left: Box::new(a), right: Box::new(b), on };
        }
        Ok(left)
    }

    /// Binds what stands in a join, which sees no relations and merged columns of FROM before it.
    fn within_join<T>(&mut self, (first, merged): (usize, usize), bind: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let scope = self.scope();
        let before: Vec<Merged> = scope.merged.drain(..merged).collect();
        let hidden: Vec<usize> = (0..first).filter(|at| scope.relations[*at].is_visible).collect();
        hidden.iter().for_each(|at| scope.relations[*at].is_visible = false);
        let bound = bind(self);
        let scope = self.scope();
        hidden.iter().for_each(|at| scope.relations[*at].is_visible = true);
        scope.merged.splice(..0, before);
        bound
    }

    /// Rows of the second side of a RIGHT or FULL JOIN come without a row of the first: they can need none.
    fn refuse_lateral(&mut self, second: std::ops::Range<usize>, first: std::ops::Range<usize>) -> SqlResult<()> {
        let relations = &self.scope().relations;
        for relation in &relations[second] {
            let Source::Lateral(_, outer) = &relation.source else { continue };
            let is_of_first = |part: &Expr| matches!(part, Expr::Column { relation, .. } if first.contains(relation));
            if outer.iter().any(|expr| expr.any(is_of_first)) {
                let error = SqlError::new("42P10", "invalid reference to FROM-clause entry for a table on the other side of the join");
                return Err(error.with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference."));
            }
        }
        Ok(())
    }

    /// Columns of the same names on both sides: equal, and one from now on.
    fn using(
        &mut self,
        names: &[ast::Ident],
        left: std::ops::Range<usize>,
        right: std::ops::Range<usize>,
        (kind, swapped): (JoinKind, bool),
    ) -> SqlResult<Vec<Expr>> {
        let mut on = Vec::with_capacity(names.len());
        for name in names {
            let (a, mut hides) = self.one_column(name, left.clone())?;
            let (b, more) = self.one_column(name, right.clone())?;
            hides.extend(more);
            let equal = make::compare(Comparison::Equal, a.clone(), b.clone(), self.params)?;
            on.push(equal.expr);
            let typed = match (kind, swapped) {
                (JoinKind::Full, _) => crate::expression::function::call("coalesce", vec![a, b], self.params)?,
                (_, true) => b,
                _ => a,
            };
            self.scope().merged.push(Merged { name: identifier(name), typed, hides });
        }
        Ok(on)
    }

    /// The one column of this name in some relations.
    fn one_column(&mut self, name: &ast::Ident, relations: std::ops::Range<usize>) -> SqlResult<(Typed, Vec<(usize, usize)>)> {
        let wanted = identifier(name);
        let scope = self.scope();
        let is_within = |merged: &&Merged| merged.name == wanted && merged.hides.iter().all(|(relation, _)| relations.contains(relation));
        if let Some(merged) = scope.merged.iter().rev().find(is_within) {
            return Ok((merged.typed.clone(), merged.hides.clone()));
        }
        let mut found = Vec::new();
        for relation in relations {
            let columns = scope.relations[relation].columns.iter().enumerate();
            found.extend(columns.filter(|(_, column)| column.name == wanted).map(|(column, _)| (relation, column)));
        }
        match found.as_slice() {
            [(relation, column)] => Ok((scope.column(*relation, *column), vec![(*relation, *column)])),
            [] => Err(SqlError::new("42703", format!("column \"{wanted}\" specified in USING clause does not exist on both sides"))
                .at_span(name.span)),
            _ => {
                Err(SqlError::new("42702", format!("common column name \"{wanted}\" appears more than once on one side"))
                    .at_span(name.span))
            }
        }
    }

    pub(super) fn factor(&mut self, factor: &TableFactor) -> SqlResult<From> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                self.named(name, alias.as_ref()).map_err(|error| error.at_span(name.span())).map(From::Relation)
            }
            TableFactor::Table { name, alias, args: Some(arguments), with_ordinality: false, .. } => {
                self.table_function(name, alias.as_ref(), &arguments.args).map(From::Relation)
            }
            TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
                self.table_function(name, alias.as_ref(), args).map(From::Relation)
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                self.derived(subquery, alias.as_ref()).map(From::Relation)
            }
            TableFactor::Derived { lateral: true, subquery, alias, sample: None } => {
                // It is run for each row, as subqueries in expressions are.
                self.expressions += 1;
                let planned = self.subquery(subquery);
                self.expressions -= 1;
                let (planned, outer) = planned?;
                let unnamed = format!("\u{0}subquery {}", self.scope().relations.len());
                let source = lateral(planned.plan, outer);
                self.add(alias.as_ref(), &unnamed, planned.outputs, source).map(From::Relation)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.joins(table_with_joins),
            other => Err(SqlError::unsupported(format!("{other} in FROM")).at_span(other.span())),
        }
    }

    fn named(&mut self, name: &ast::ObjectName, alias: Option<&ast::TableAlias>) -> SqlResult<usize> {
        let (name, is_only) = without_only(name);
        let wanted = object_name(&name)?;
        if name.0.len() == 1
            && let Some(with) = self.with_query(&wanted)
        {
            let (plan, outputs) = self.with_source(&wanted, &with)?;
            return self.add(alias, &wanted, outputs, Source::Plan(plan));
        }
        if let Some(system) = SystemTable::named(&wanted) {
            if !self.system.contains(&system) {
                self.system.push(system);
            }
            return self.add(alias, system.name(), system.columns(), Source::Plan(Plan::System(system)));
        }
        let found = catalog::find(self.transaction, &wanted)?;
        if let Some(needs) = &mut self.needs {
            let name = if let Found::Table(table) = &found { &table.name } else { &wanted };
            needs.relations.insert(name.clone());
        }
        match found {
            Found::Table(table) if is_only && table.is_divided() => {
                Err(SqlError::unsupported(format!("ONLY of \"{wanted}\", which is divided")))
            }
            Found::Table(table) => {
                let columns = table_columns(&table);
                let short = short_name(&wanted).to_owned();
                self.add(alias, &short, columns, Source::Table(table))
            }
            Found::View(text) => {
                let query = parse_query(&text)?;
                // Names in a view are those that its maker meant: neither WITH nor columns of this statement.
                let (with, scopes) = (std::mem::take(&mut self.with), std::mem::take(&mut self.scopes));
                let (needs, entered) = (self.needs.take(), crate::temporary::Entered::new(None));
                self.failed = None;
                let planned = self.subquery(&query);
                drop(entered);
                (self.with, self.scopes, self.needs) = (with, scopes, needs);
                let (planned, _) = planned.map_err(|error| error.in_view(&wanted, self.failed.as_deref()))?;
                self.add(alias, &wanted, planned.outputs, Source::Plan(planned.plan))
            }
        }
    }

    /// What is bound as a query in FROM, which does not see what stands beside it.
    pub(super) fn derived_by(&mut self, bind: impl FnOnce(&mut Self) -> SqlResult<Query>) -> SqlResult<(Plan, Vec<Output>)> {
        let beside = {
            let scope = self.scope();
            (std::mem::take(&mut scope.relations), std::mem::take(&mut scope.merged))
        };
        let planned = self.subquery_by(bind);
        let scope = self.scope();
        (scope.relations, scope.merged) = beside;
        let (planned, outer) = planned?;
        let plan = if outer.is_empty() { planned.plan } else { planned.plan.within(outer) };
        Ok((plan, planned.outputs))
    }

    fn derived(&mut self, query: &ast::Query, alias: Option<&ast::TableAlias>) -> SqlResult<usize> {
        let (plan, outputs) = self.derived_by(|binder| binder.query(query))?;
        // Without a name its columns are named alone.
        let unnamed = format!("\u{0}subquery {}", self.scope().relations.len());
        self.add(alias, &unnamed, outputs, Source::Plan(plan))
    }

    /// generate_series(from, to [, step]).
    pub(super) fn table_function(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        arguments: &[ast::FunctionArg],
    ) -> SqlResult<usize> {
        let function = object_name(name)?;
        if function != SERIES {
            return Err(SqlError::new("42883", format!("function {function} does not exist, or gives no rows")).at_span(name.span()));
        }
        if !(2..=3).contains(&arguments.len()) {
            return Err(SqlError::new("42883", format!("{function} takes two or three numbers")));
        }
        // As PostgreSQL has one function for each type of numbers.
        let mut data_type = DataType::Integer;
        // Its arguments may name what stands before it, as if it were LATERAL.
        let (planned, outer) = self.subquery_by(|binder| {
            let mut bound = Vec::with_capacity(3);
            for argument in arguments {
                let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) = argument else {
                    return Err(SqlError::unsupported(format!("the argument {argument} of {function}")));
                };
                let typed = binder.without_aggregates("functions in FROM", |binder| binder.expression(argument))?;
                if !matches!(typed.data_type, Some(DataType::SmallInt | DataType::Integer)) {
                    data_type = DataType::BigInt;
                }
                bound.push(make::coerce(typed, &DataType::BigInt, binder.params)?.expr);
            }
            Ok(Query { plan: Plan::series(bound), outputs: vec![Output { name: function.clone(), data_type }], untyped: Vec::new() })
        })?;
        let column = Output { name: function.clone(), data_type };
        // The one column is called as the relation is.
        let output = match alias {
            Some(alias) if alias.columns.is_empty() => Output { name: identifier(&alias.name), ..column },
            _ => column,
        };
        self.add(alias, &function, vec![output], lateral(planned.plan, outer))
    }

    fn add(&mut self, alias: Option<&ast::TableAlias>, name: &str, columns: Vec<Output>, source: Source) -> SqlResult<usize> {
        self.relations += 1;
        if self.relations > RELATIONS_MAX {
            let message = format!("more than {RELATIONS_MAX} tables, views and subqueries, those of views each time they are used");
            return Err(SqlError::new("54001", message));
        }
        let Some(alias) = alias else { return self.scope().add(name.to_owned(), columns, source) };
        if alias.columns.iter().any(|column| column.data_type.is_some()) {
            return Err(SqlError::unsupported("types of columns in an alias").at_span(alias.name.span));
        }
        let names: Vec<String> = alias.columns.iter().map(|column| identifier(&column.name)).collect();
        let columns = renamed(columns, &names)?;
        self.scope().add(identifier(&alias.name), columns, source).at_span(alias.name.span)
    }

    /// VALUES as rows of a query.
    pub(crate) fn values(&mut self, rows: &[Vec<ast::Expr>]) -> SqlResult<(Plan, Vec<Output>)> {
        let width = rows.first().map_or(0, Vec::len);
        let mut bound: Vec<Vec<Typed>> = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != width {
                return Err(SqlError::syntax("VALUES lists must all be the same length"));
            }
            bound.push(self.without_aggregates("VALUES", |binder| row.iter().map(|value| binder.expression(value)).collect())?);
        }
        let mut outputs = Vec::with_capacity(width);
        for column in 0..width {
            let all: Vec<Typed> = bound.iter().map(|row| row[column].clone().known(self.params)).collect();
            let data_type = make::common_of(&all, "VALUES", self.params)?.unwrap_or(super::TEXT);
            for row in &mut bound {
                let typed = std::mem::replace(&mut row[column], Typed::null());
                row[column] = make::coerce(typed, &data_type, self.params)?;
            }
            outputs.push(Output { name: format!("column{}", column + 1), data_type });
        }
        let rows = bound.into_iter().map(|row| row.into_iter().map(|typed| typed.expr).collect()).collect();
        Ok((Plan::values(rows), outputs))
    }

    /// An expression whose type is known.
    pub(crate) fn settled(&self, typed: Typed) -> SqlResult<(Expr, DataType)> {
        settled(typed, self.params)
    }
}

/// What a query in FROM is that may name what stands before it.
fn lateral(plan: Plan, outer: Vec<Expr>) -> Source {
    let needs_others = outer.iter().any(|expr| expr.any(|part| matches!(part, Expr::Column { .. })));
    match (needs_others, outer.is_empty()) {
        (true, _) => Source::Lateral(plan, outer),
        (false, true) => Source::Plan(plan),
        (false, false) => Source::Plan(plan.within(outer)),
    }
}

/// The terms of an AND, or the condition alone.
pub(crate) fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(terms) => terms.into_iter().flat_map(conjuncts).collect(),
        Expr::Literal(Value::Boolean(true)) => Vec::new(),
        Expr::Or(branches) => common_terms(branches),
        other => vec![other],
    }
}

/// What all branches of an OR demand is demanded by itself: such a term may join two tables, or be answered by an index.
fn common_terms(branches: Vec<Expr>) -> Vec<Expr> {
    let mut branches: Vec<Vec<Expr>> = branches.into_iter().map(conjuncts).collect();
    if let Some(list) = as_list(&branches) {
        return vec![list];
    }
    let Some((first, others)) = branches.split_first() else { return Vec::new() };
    let is_common = |term: &&Expr| others.iter().all(|branch| branch.contains(term));
    // One that is not the same each time it is asked stays where it is.
    let common: Vec<Expr> = first.iter().filter(is_common).filter(|term| !term.any(Expr::is_volatile)).cloned().collect();
    branches.iter_mut().for_each(|branch| branch.retain(|term| !common.contains(term)));
    let mut all = common;
    if branches.iter().all(|branch| !branch.is_empty()) {
        all.push(Expr::Or(branches.into_iter().filter_map(crate::plan::together).collect()));
    }
    all
}

/// `a = 1 OR a = 2 OR a IN (3, 4)` as `a IN (1, 2, 3, 4)`: a list is searched, and an index finds its values.
fn as_list(branches: &[Vec<Expr>]) -> Option<Expr> {
    let mut of = None;
    let mut literals: Vec<Value> = Vec::with_capacity(branches.len());
    for branch in branches {
        let [term] = branch.as_slice() else { return None };
        let own = match term {
            Expr::Compare { comparison: Comparison::Equal, left, right } => match (&**left, &**right) {
                (own, Expr::Literal(value)) | (Expr::Literal(value), own) => {
                    literals.push(value.clone());
                    own
                }
                _ => return None,
            },
            Expr::In { of, list, negated: false, sorted: true } => {
                for expr in list {
                    let Expr::Literal(value) = expr else { return None };
                    literals.push(value.clone());
                }
                of
            }
            _ => return None,
        };
        if *of.get_or_insert(own) != own {
            return None;
        }
    }
    let of = of.filter(|of| matches!(of, Expr::Column { .. }))?.clone();
    literals.sort_unstable();
    literals.dedup();
    Some(Expr::In { of: Box::new(of), list: literals.into_iter().map(Expr::Literal).collect(), negated: false, sorted: true })
}

/// The first columns with other names.
pub(super) fn renamed(mut columns: Vec<Output>, names: &[String]) -> SqlResult<Vec<Output>> {
    if names.len() > columns.len() {
        return Err(SqlError::new("42P10", format!("{} columns available but {} columns specified", columns.len(), names.len())));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    Ok(columns)
}

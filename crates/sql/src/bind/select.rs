//! SELECT, set operations, ORDER BY, LIMIT.

use super::Source;
use super::aggregates::{KEYS, Keys, Place};
use super::from::conjuncts;
use super::grouping::{Groups, grouping_sets};
use super::names::output_name;
use super::needs::Wildcard;
use super::series::SERIES;
use super::{Binder, Output, WindowCall};
use crate::expression::{Expr, ParamTypes, Typed, make};
use crate::parse::{At, identifier};
use crate::plan::{self, JoinKind, Plan};
use crate::planned::LockingPlan;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::{LockWait, RowLock};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, LimitClause, OrderByKind, SelectItem, SetExpr, SetQuantifier, Spanned};
use std::cmp::Ordering;
use std::sync::Arc;

/// A query that is planned.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) plan: Plan,
    pub(crate) outputs: Vec<Output>,
    /// Columns that are literals in quotes, or NULL: text, if nobody says otherwise.
    pub(crate) untyped: Vec<Untyped>,
}

/// A column of literals that have no type yet.
#[derive(Debug)]
pub(crate) struct Untyped {
    pub(crate) at: usize,
    /// Those that are not NULL.
    texts: Vec<String>,
}

impl Query {
    pub(crate) fn is_untyped(&self, at: usize) -> bool {
        self.untyped.iter().any(|column| column.at == at)
    }

    /// The type of a column, if it has one.
    pub(super) fn type_of(&self, at: usize) -> Option<DataType> {
        (!self.is_untyped(at)).then_some(self.outputs[at].data_type)
    }

    /// The type of a column that has none becomes this one, or one that has all its digits and characters.
    pub(super) fn widened(&self, at: usize, to: DataType, what: &str, params: &ParamTypes) -> SqlResult<DataType> {
        let mut texts = self.untyped.iter().filter(|column| column.at == at).flat_map(|column| &column.texts);
        texts.try_fold(to, |to, text| {
            let wider = crate::expression::common_type([Some(to), Some(make::type_beside(text, &to, params)?)].into_iter(), what)?;
            Ok(wider.unwrap_or(to))
        })
    }
}

/// A join tree, of relations by number.
#[derive(Debug)]
pub(crate) enum From {
    Relation(usize),
    Join { kind: JoinKind, left: Box<From>, right: Box<From>, on: Vec<Expr> },
}

/// A SELECT, bound.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) from: Vec<From>,
    pub(crate) conditions: Vec<Expr>,
    /// Keys, aggregates, HAVING.
    pub(crate) groups: Option<Groups>,
    /// Calls of window functions.
    pub(crate) windows: Vec<WindowCall>,
    /// What comes out, and behind it what rows are ordered by.
    pub(crate) projection: Vec<Expr>,
    /// So many of the projection come out.
    pub(crate) visible: usize,
    pub(crate) distinct: Distinct,
    /// By place in the projection.
    pub(crate) order: Vec<SortKey>,
    pub(crate) limit: Limit,
}

/// Which rows are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Distinct {
    None,
    /// Those that are equal to one before.
    Rows,
    /// Those that are equal to one before in these places of the projection. The order begins with them.
    On(Vec<usize>),
}

/// What rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortKey {
    pub(crate) slot: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

impl SortKey {
    /// Order of two rows.
    pub(crate) fn compare(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
        for SortKey { slot, descending, nulls_first } in keys {
            let (x, y) = (&a[*slot], &b[*slot]);
            let order = match (x, y) {
                (Value::Null, Value::Null) => Ordering::Equal,
                (Value::Null, _) if *nulls_first => Ordering::Less,
                (_, Value::Null) if !*nulls_first => Ordering::Less,
                (Value::Null, _) | (_, Value::Null) => Ordering::Greater,
                (x, y) if *descending => y.cmp(x),
                (x, y) => x.cmp(y),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// LIMIT and OFFSET: expressions of no columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limit {
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    /// WITH TIES: rows that follow the last and are equal to it in these come, too.
    pub(crate) ties: Vec<SortKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// ORDER BY and LIMIT of a query, as they are written.
#[derive(Clone, Copy)]
pub(super) struct Tail<'q> {
    order: &'q [ast::OrderByExpr],
    limit: Option<&'q LimitClause>,
    fetch: Option<&'q ast::Fetch>,
}

impl Tail<'_> {
    pub(super) fn of(query: &ast::Query) -> SqlResult<Tail<'_>> {
        let order = match query.order_by.as_ref().map(|order| &order.kind) {
            None => &[][..],
            Some(OrderByKind::Expressions(order)) => order.as_slice(),
            Some(OrderByKind::All(_)) => return Err(SqlError::unsupported("ORDER BY ALL")),
        };
        Ok(Tail { order, limit: query.limit_clause.as_ref(), fetch: query.fetch.as_ref() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.limit.is_none() && self.fetch.is_none()
    }
}

impl Binder<'_> {
    /// A query with a scope of its own; what it needs of those around it.
    pub(crate) fn subquery(&mut self, query: &ast::Query) -> SqlResult<(Query, Vec<Expr>)> {
        self.subquery_by(|binder| binder.query(query))
    }

    /// What is bound as a query with a scope of its own.
    pub(super) fn subquery_by(&mut self, bind: impl FnOnce(&mut Self) -> SqlResult<Query>) -> SqlResult<(Query, Vec<Expr>)> {
        self.deeper(|binder| {
            binder.scopes.push(super::Scope::default());
            let planned = bind(binder);
            let scope = binder.scopes.pop().unwrap_or_default();
            Ok((planned?, scope.outer))
        })
    }

    /// A query in the innermost scope.
    pub(crate) fn query(&mut self, query: &ast::Query) -> SqlResult<Query> {
        refuse_other_forms(query)?;
        self.query_without_locks(query)
    }

    /// SELECT ... FOR UPDATE or FOR SHARE. Its rows are those of one table, so that each can be locked.
    pub(crate) fn locking_query(&mut self, query: &ast::Query) -> SqlResult<(LockingPlan, Vec<Output>)> {
        let [lock] = query.locks.as_slice() else { return Err(SqlError::unsupported("several FOR UPDATE or FOR SHARE")) };
        let wrong = |what: &str| SqlError::new("0A000", format!("FOR UPDATE and FOR SHARE are not allowed with {what}"));
        let SetExpr::Select(select) = &*query.body else { return Err(wrong("UNION, VALUES and the like")) };
        if query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties) {
            return Err(wrong("WITH TIES"));
        }
        if query.with.is_some() || select.distinct.is_some() || select.having.is_some() {
            return Err(wrong("WITH, DISTINCT and HAVING"));
        }
        let tail = Tail::of(query)?;
        self.locks = true;
        let planned = self.select(select, Tail { limit: None, fetch: None, ..tail });
        self.locks = false;
        let mut planned = planned?;
        let limit = self.limit(Tail { order: &[], ..tail }, &[])?;
        let table = match self.scope().relations.as_slice() {
            [relation] => match &relation.source {
                Source::Table(table) => {
                    if let Some(of) = &lock.of
                        && crate::parse::parts(of)?.last().is_none_or(|name| identifier(name) != relation.name)
                    {
                        let message = format!("relation \"{of}\" in FOR {} clause not found in FROM clause", lock.lock_type);
                        return Err(SqlError::new("42P01", message).at_span(of.span()));
                    }
                    Arc::clone(table)
                }
                _ => return Err(wrong("what is no table")),
            },
            _ => return Err(wrong("joins")),
        };
        let columns = planned.outputs.len() - 2;
        planned.outputs.truncate(columns);
        let plan = LockingPlan {
            table,
            source: planned.plan,
            columns,
            limit,
            lock: match lock.lock_type {
                ast::LockType::Share => RowLock::Shared,
                ast::LockType::Update => RowLock::Exclusive,
            },
            wait: match lock.nonblock {
                None => LockWait::Wait,
                Some(ast::NonBlock::Nowait) => LockWait::NoWait,
                Some(ast::NonBlock::SkipLocked) => LockWait::Skip,
            },
        };
        Ok((plan, planned.outputs))
    }

    /// Part and RID come out behind the columns of a query that locks rows.
    fn place_columns(&mut self, outputs: &mut Vec<Output>, projection: &mut Vec<Expr>) -> SqlResult<()> {
        let [relation] = self.scope().relations.as_mut_slice() else {
            return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE of several tables"));
        };
        let Source::Table(table) = &relation.source else {
            return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE of what is no table"));
        };
        let places = table.place_columns();
        for column in places {
            let output = Output { name: "\u{0}place".into(), data_type: DataType::BigInt };
            relation.columns.push(output.clone());
            relation.used.insert(column);
            outputs.push(output);
            projection.push(Expr::Column { relation: 0, column });
        }
        Ok(())
    }

    pub(crate) fn query_without_locks(&mut self, query: &ast::Query) -> SqlResult<Query> {
        let levels = self.with.len();
        let planned = self.with_queries(query.with.as_ref(), false).and_then(|()| self.body(&query.body, Tail::of(query)?));
        self.with.truncate(levels);
        planned
    }

    fn body(&mut self, body: &SetExpr, tail: Tail<'_>) -> SqlResult<Query> {
        match body {
            SetExpr::Select(select) => self.select(select, tail),
            SetExpr::Query(inner) => {
                let planned = self.deeper(|binder| binder.query(inner))?;
                self.ordered(planned, tail)
            }
            SetExpr::Values(values) => {
                let rows: Vec<Vec<ast::Expr>> = values.rows.iter().map(|row| row.content.clone()).collect();
                let (plan, outputs) = self.values(&rows)?;
                self.ordered(Query { plan, outputs, untyped: Vec::new() }, tail)
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let planned = self.deeper(|binder| binder.set_operation(left, *op, *set_quantifier, right))?;
                self.ordered(planned, tail)
            }
            SetExpr::Table(table) => {
                let name = table.table_name.clone().unwrap_or_default();
                let text = format!("SELECT * FROM {}", ast::Ident::with_quote('"', name));
                let query = crate::parse::parse_query(&text)?;
                self.body(&query.body, tail)
            }
            _ => Err(SqlError::unsupported("a statement within a query")),
        }
    }

    pub(super) fn arm(&mut self, body: &SetExpr) -> SqlResult<Query> {
        // Its relations are its own; what it needs of queries around is the outer row of all.
        let outer = std::mem::take(&mut self.scope().outer);
        *self.scope() = super::Scope { outer, ..super::Scope::default() };
        self.body(body, Tail { order: &[], limit: None, fetch: None })
    }

    /// UNION of many, one by one: their tree leans to the left.
    fn unions(&mut self, left: &SetExpr, quantifier: SetQuantifier, right: &SetExpr) -> SqlResult<Query> {
        let (mut arms, mut rest) = (vec![right], left);
        while let SetExpr::SetOperation { left, op: ast::SetOperator::Union, set_quantifier, right } = rest
            && *set_quantifier == quantifier
        {
            arms.push(right);
            rest = left;
        }
        let mut all = self.arm(rest)?;
        while let Some(next) = arms.pop() {
            let next = self.arm(next)?;
            all = self.combined(all, ast::SetOperator::Union, quantifier, next)?;
        }
        Ok(all)
    }

    fn set_operation(
        &mut self,
        left: &SetExpr,
        operator: ast::SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
    ) -> SqlResult<Query> {
        if operator == ast::SetOperator::Union {
            return self.unions(left, quantifier, right);
        }
        let (left, right) = (self.arm(left)?, self.arm(right)?);
        self.combined(left, operator, quantifier, right)
    }

    pub(super) fn combined(
        &mut self,
        left: Query,
        operator: ast::SetOperator,
        quantifier: SetQuantifier,
        right: Query,
    ) -> SqlResult<Query> {
        let all = is_all(quantifier)?;
        let (name, operation) = match operator {
            ast::SetOperator::Union => ("UNION", SetOperation::Union),
            ast::SetOperator::Intersect => ("INTERSECT", SetOperation::Intersect),
            ast::SetOperator::Except | ast::SetOperator::Minus => ("EXCEPT", SetOperation::Except),
        };
        check_columns(name, left.outputs.len(), right.outputs.len())?;
        let mut outputs = Vec::with_capacity(left.outputs.len());
        let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
        for (at, a) in left.outputs.iter().enumerate() {
            // A literal without a type takes that of the other arm.
            let data_type = match crate::expression::common_type([left.type_of(at), right.type_of(at)].into_iter(), name)? {
                Some(common) => left.widened(at, right.widened(at, common, name, self.params)?, name, self.params)?,
                None => super::TEXT,
            };
            of_left.push(self.column_as(&left, at, data_type)?);
            of_right.push(self.column_as(&right, at, data_type)?);
            outputs.push(Output { name: a.name.clone(), data_type });
        }
        let both = left.untyped.into_iter().filter_map(|mut column| {
            let other = right.untyped.iter().find(|other| other.at == column.at)?;
            column.texts.extend_from_slice(&other.texts);
            Some(column)
        });
        let untyped = both.collect();
        let plan = Plan::set_operation(operation, all, left.plan.projected(of_left), right.plan.projected(of_right));
        Ok(Query { plan, outputs, untyped })
    }

    /// A column of a query in a common type; what has none of its own is read as one.
    pub(super) fn column_as(&self, query: &Query, at: usize, data_type: DataType) -> SqlResult<Expr> {
        let slot = Typed::of(Expr::Slot(at), query.outputs[at].data_type);
        let brought = match query.is_untyped(at) {
            true => make::cast(slot, data_type, self.params),
            false => make::coerce(slot, &data_type, self.params),
        };
        Ok(brought?.expr)
    }

    /// ORDER BY and LIMIT of what is no SELECT: by columns that come out.
    pub(super) fn ordered(&mut self, query: Query, tail: Tail<'_>) -> SqlResult<Query> {
        let mut order = Vec::with_capacity(tail.order.len());
        for key in tail.order {
            let slot = match output_place(&key.expr, &query.outputs)? {
                Some(slot) => slot,
                None => {
                    let error = SqlError::unsupported("ORDER BY of a set operation by anything but a column that comes out");
                    return Err(error.at_span(key.expr.span()));
                }
            };
            order.push(sort_key(slot, key));
        }
        let limit = self.limit(tail, &order)?;
        let Query { plan, outputs, untyped } = query;
        Ok(Query { plan: plan.sorted(order).limited(limit), outputs, untyped })
    }

    fn limit(&mut self, tail: Tail<'_>, order: &[SortKey]) -> SqlResult<Limit> {
        let (limit, offset) = match tail.limit {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
            Some(_) => return Err(SqlError::unsupported("LIMIT BY")),
        };
        let (fetch, ties) = match tail.fetch {
            None => (None, &[][..]),
            Some(ast::Fetch { percent: true, .. }) => return Err(SqlError::unsupported("FETCH PERCENT")),
            Some(ast::Fetch { with_ties: true, .. }) if order.is_empty() => {
                return Err(SqlError::syntax("WITH TIES cannot be specified without ORDER BY clause"));
            }
            Some(ast::Fetch { with_ties, quantity, .. }) => (Some(quantity.as_ref()), if *with_ties { order } else { &[] }),
        };
        let mut bind = |expr: &ast::Expr, name: &'static str| -> SqlResult<Expr> {
            let relations = std::mem::take(&mut self.scope().relations);
            let typed = self.without_aggregates(name, |binder| binder.expression(expr));
            self.scope().relations = relations;
            Ok(make::coerce(typed?, &DataType::BigInt, self.params)?.expr)
        };
        let limit = match (limit, fetch) {
            (Some(limit), _) => Some(bind(limit, "LIMIT")?),
            (None, Some(Some(quantity))) => Some(bind(quantity, "FETCH")?),
            (None, Some(None)) => Some(Expr::Literal(Value::Int(1))),
            (None, None) => None,
        };
        let offset = offset.map(|offset| bind(offset, "OFFSET")).transpose()?;
        Ok(Limit { limit, offset, ties: ties.to_vec() })
    }

    fn select(&mut self, select: &ast::Select, tail: Tail<'_>) -> SqlResult<Query> {
        refuse_other_clauses(select)?;
        let mut from = self.from(&select.from)?;
        let conditions = match &select.selection {
            Some(condition) => conjuncts(self.without_aggregates("WHERE", |binder| binder.condition(condition, "WHERE"))?),
            None => Vec::new(),
        };
        from.extend(self.series_of(&select.projection)?);
        self.scope().aggregates = Place::Noted(Vec::new());
        self.named_windows(&select.named_window)?;
        let mut outputs = Vec::new();
        let mut projection = Vec::new();
        let mut untyped = Vec::new();
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(ast::Expr::Value(value)) | SelectItem::ExprWithAlias { expr: ast::Expr::Value(value), .. } = item
            {
                let text = super::string(&value.value);
                if value.value == ast::Value::Null || text.is_some() {
                    untyped.push(Untyped { at: projection.len(), texts: text.into_iter().collect() });
                }
            }
            self.select_item(item, &mut outputs, &mut projection)?;
        }
        if self.locks {
            self.place_columns(&mut outputs, &mut projection)?;
        }
        if select.projection.is_empty() && select.from.is_empty() {
            return Err(SqlError::syntax("SELECT without anything"));
        }
        let grouping = self.group_keys(&select.group_by, &outputs, &projection)?;
        let having = match &select.having {
            Some(having) => {
                conjuncts(self.without_windows("window functions are not allowed in HAVING", |binder| binder.condition(having, "HAVING"))?)
            }
            None => Vec::new(),
        };
        let visible = projection.len();
        let distinct = match &select.distinct {
            None | Some(ast::Distinct::All) => Distinct::None,
            Some(ast::Distinct::Distinct) => Distinct::Rows,
            Some(ast::Distinct::On(on)) if on.is_empty() => return Err(SqlError::syntax("DISTINCT ON without an expression")),
            Some(ast::Distinct::On(on)) => {
                let slots = on.iter().map(|expr| self.ordering_slot(expr, &outputs, &mut projection, false));
                Distinct::On(slots.collect::<SqlResult<_>>()?)
            }
        };
        let mut order = Vec::with_capacity(tail.order.len());
        for key in tail.order {
            let slot = self.ordering_slot(&key.expr, &outputs, &mut projection, distinct == Distinct::Rows)?;
            order.push(sort_key(slot, key));
        }
        if let Distinct::On(on) = &distinct {
            order_with_distinct(on, &mut order)?;
        }
        let limit = self.limit(tail, &order)?;
        let aggregates = self.scope().aggregates.take();
        if self.locks && (grouping.is_some() || !aggregates.is_empty()) {
            return Err(SqlError::new("0A000", "FOR UPDATE and FOR SHARE are not allowed with GROUP BY and aggregate functions"));
        }
        let mut windows = std::mem::take(&mut self.scope().windows.calls);
        if self.locks && !windows.is_empty() {
            return Err(SqlError::new("0A000", "FOR UPDATE and FOR SHARE are not allowed with window functions"));
        }
        let calls = std::mem::take(&mut self.scope().groupings);
        let is_grouped = grouping.is_some() || !aggregates.is_empty() || select.having.is_some() || !calls.is_empty();
        if self.scope().series.is_some() && (is_grouped || !windows.is_empty()) {
            return Err(SqlError::unsupported(format!("{SERIES} in the SELECT list beside aggregates, groups and windows")));
        }
        let (groups, projection) = if is_grouped {
            let last = self.scopes.len() - 1;
            let scope = &self.scopes[last];
            let grouping = grouping.unwrap_or_default();
            let mut keys = Keys::new(grouping.keys, &grouping.sets, scope);
            let having = having.into_iter().map(|expr| keys.of_groups(expr, scope)).collect::<SqlResult<Vec<Expr>>>()?;
            let places = grouping.places;
            let of_groups = |(at, expr)| match places.iter().find(|(place, _)| *place == at) {
                Some((_, key)) => Ok(Expr::Column { relation: KEYS, column: *key }),
                None => keys.of_groups(expr, scope),
            };
            let projection = projection.into_iter().enumerate().map(of_groups).collect::<SqlResult<Vec<Expr>>>()?;
            let mut failed = None;
            for call in &mut windows {
                call.exprs_mut(&mut |expr| {
                    let own = std::mem::replace(expr, Expr::Literal(Value::Null));
                    match keys.of_groups(own, scope) {
                        Ok(done) => *expr = done,
                        Err(error) => _ = failed.get_or_insert(error),
                    }
                });
            }
            if let Some(error) = failed {
                return Err(error);
            }
            let sets = grouping_sets(grouping.sets, &keys, calls)?;
            let keys = keys.keys.into_iter().map(|(key, _)| key).collect();
            (Some(Groups { keys, sets, aggregates, having }), projection)
        } else {
            (None, projection)
        };
        if let (Some(needs), Some(scope)) = (&mut self.needs, self.scopes.last()) {
            needs.note_columns(scope);
        }
        let select = Select { from, conditions, groups, windows, projection, visible, distinct, order, limit };
        let plan = plan::select::plan(self, select)?;
        Ok(Query { plan, outputs, untyped })
    }

    /// The place in the projection of what rows are ordered by, or told apart by.
    fn ordering_slot(&mut self, expr: &ast::Expr, outputs: &[Output], projection: &mut Vec<Expr>, must_come_out: bool) -> SqlResult<usize> {
        if let Some(slot) = output_place(expr, outputs)? {
            return Ok(slot);
        }
        let typed = self.expression(expr)?;
        let (own, _) = self.settled(typed)?;
        match projection.iter().position(|known| *known == own) {
            Some(slot) => Ok(slot),
            None if must_come_out => {
                let error = SqlError::new("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list");
                Err(error.at_span(expr.span()))
            }
            None => {
                projection.push(own);
                Ok(projection.len() - 1)
            }
        }
    }

    fn select_item(&mut self, item: &SelectItem, outputs: &mut Vec<Output>, projection: &mut Vec<Expr>) -> SqlResult<()> {
        let (name, expr) = match item {
            SelectItem::UnnamedExpr(expr) => (output_name(expr), expr),
            SelectItem::ExprWithAlias { alias, .. }
                if alias.quote_style.is_none() && ["isnull", "notnull"].contains(&alias.value.to_lowercase().as_str()) =>
            {
                let error = SqlError::unsupported(format!("{} behind an expression", alias.value)).at_span(alias.span);
                return Err(error.with_hint("Write IS NULL or IS NOT NULL."));
            }
            SelectItem::ExprWithAlias { expr, alias } => (identifier(alias), expr),
            SelectItem::Wildcard(options) => {
                refuse_wildcard_options(options)?;
                if self.scope().relations.is_empty() {
                    return Err(SqlError::syntax("SELECT * with no tables specified is not valid"));
                }
                return self.all_columns((None, options), outputs, projection);
            }
            SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                refuse_wildcard_options(options)?;
                let parts = crate::parse::parts(name)?;
                let relation = parts.last().and_then(|name| self.scope().relation_named(name));
                let Some(relation) = relation else {
                    return Err(SqlError::new("42P01", format!("missing FROM-clause entry for table \"{name}\"")).at_span(name.span()));
                };
                return self.all_columns((Some(relation), options), outputs, projection);
            }
            other => return Err(SqlError::unsupported(format!("{other} in SELECT"))),
        };
        let bound = self.expression(expr).and_then(|typed| self.settled(typed));
        let (expr, data_type) = bound.inspect_err(|_| self.failed = Some(name.clone()))?;
        outputs.push(Output { name, data_type });
        projection.push(expr);
        Ok(())
    }

    fn all_columns(
        &mut self,
        (relation, written): (Option<usize>, &ast::WildcardAdditionalOptions),
        outputs: &mut Vec<Output>,
        projection: &mut Vec<Expr>,
    ) -> SqlResult<()> {
        let all = self.scope().all_columns(relation);
        if self.needs.is_some() {
            let scope = self.scope();
            let of = |relation: usize| Some(scope.relations[relation].name.clone()).filter(|name| !name.starts_with('\0'));
            let columns = all.iter().map(|(relation, name, _)| (relation.and_then(of), name.clone())).collect();
            let wildcard = Wildcard { place: written.wildcard_token.0.span.start, is_qualified: relation.is_some(), columns };
            if let Some(needs) = &mut self.needs {
                needs.wildcards.push(wildcard);
            }
        }
        for (_, name, typed) in all {
            let (expr, data_type) = self.settled(typed)?;
            outputs.push(Output { name, data_type });
            projection.push(expr);
        }
        Ok(())
    }

    /// What comes out of RETURNING.
    pub(crate) fn returning(&mut self, items: &[SelectItem]) -> SqlResult<(Vec<Output>, Vec<Expr>)> {
        let (mut outputs, mut projection) = (Vec::new(), Vec::new());
        self.without_aggregates("RETURNING", |binder| {
            items.iter().try_for_each(|item| binder.select_item(item, &mut outputs, &mut projection))
        })?;
        Ok((outputs, projection))
    }
}

pub(super) fn sort_key(slot: usize, key: &ast::OrderByExpr) -> SortKey {
    let descending = key.options.asc == Some(false);
    SortKey { slot, descending, nulls_first: key.options.nulls_first.unwrap_or(descending) }
}

/// ORDER BY begins with what DISTINCT ON names, in any order; what it leaves out comes behind.
fn order_with_distinct(on: &[usize], order: &mut Vec<SortKey>) -> SqlResult<()> {
    let first = order.iter().take_while(|key| on.contains(&key.slot)).count();
    let has = |slot: &usize, order: &[SortKey]| order.iter().any(|key| key.slot == *slot);
    if first < order.len() && !on.iter().all(|slot| has(slot, &order[..first])) {
        return Err(SqlError::new("42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"));
    }
    for slot in on {
        if !has(slot, order) {
            order.push(SortKey { slot: *slot, descending: false, nulls_first: false });
        }
    }
    Ok(())
}

/// The place of what comes out that a number, or a name alone, in ORDER BY or GROUP BY means.
pub(super) fn output_place(expr: &ast::Expr, outputs: &[Output]) -> SqlResult<Option<usize>> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => {
                let place = text.parse::<usize>().ok().filter(|place| (1..=outputs.len()).contains(place));
                let error = || SqlError::new("42P10", format!("position {text} is not in select list")).at_span(expr.span());
                place.map(|place| Some(place - 1)).ok_or_else(error)
            }
            _ => Ok(None),
        },
        ast::Expr::Identifier(name) => {
            let wanted = identifier(name);
            let mut found = outputs.iter().enumerate().filter(|(_, output)| output.name == wanted).map(|(place, _)| place);
            Ok(found.next())
        }
        _ => Ok(None),
    }
}

/// Does a set operation keep rows that are equal?
pub(super) fn is_all(quantifier: SetQuantifier) -> SqlResult<bool> {
    match quantifier {
        SetQuantifier::All => Ok(true),
        SetQuantifier::Distinct | SetQuantifier::None => Ok(false),
        _ => Err(SqlError::unsupported("UNION BY NAME")),
    }
}

/// Both sides of a set operation have as many columns.
pub(super) fn check_columns(name: &str, left: usize, right: usize) -> SqlResult<()> {
    if left == right { Ok(()) } else { Err(SqlError::syntax(format!("each {name} query must have the same number of columns"))) }
}

pub(super) fn refuse_other_forms(query: &ast::Query) -> SqlResult<()> {
    if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() || !query.pipe_operators.is_empty() {
        return Err(SqlError::unsupported("this form of a query"));
    }
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE within a query"));
    }
    Ok(())
}

fn refuse_wildcard_options(options: &ast::WildcardAdditionalOptions) -> SqlResult<()> {
    let has = options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some();
    if has { Err(SqlError::unsupported("* with EXCLUDE, REPLACE or RENAME")) } else { Ok(()) }
}

fn refuse_other_clauses(select: &ast::Select) -> SqlResult<()> {
    let unsupported = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.value_table_mode.is_some(), "SELECT AS"),
        (select.exclude.is_some(), "EXCLUDE"),
    ];
    match unsupported.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(SqlError::unsupported(name)),
        None => Ok(()),
    }
}

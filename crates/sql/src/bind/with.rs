//! WITH: queries that have names, and those that ask themselves.
//!
//! A recursive query is `first UNION [ALL] step`. The step sees, under the name of the query, the rows that the last step gave that are new; it is run until there are none.
//!
//! A query that gives other rows each time it is run (`random`, `nextval`) is run once, and its rows are kept, if it is named more than once.
//!
//! Invariants:
//! - of its own clause a query sees those before it; under WITH RECURSIVE all, itself among them, but no circle of several;
//! - the step names its query once, where each of its rows comes to the rows of the step: its rows of the last step can be read once.

use super::from::renamed;
use super::select::{Query, SetOperation, Tail, check_columns, is_all, refuse_other_forms};
use super::with_change::changing;
use super::{Binder, Output};
use crate::expression::common_type;
use crate::parse::identifier;
use crate::plan::{JoinKind, Plan, RecursivePlan, SharedPlan};
use crate::{SqlError, SqlResult};
use pagefold_types::{DECIMAL_PRECISION_MAX, DataType};
use sqlparser::ast::{self, SetExpr, SetOperator};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Queries of one WITH, by name.
pub(super) type Level = HashMap<String, Arc<WithQuery>>;

/// What a name of WITH stands for.
pub(super) enum WithQuery {
    Query(NamedQuery),
    /// In a recursive query, itself.
    Itself(Itself),
    /// A statement that changes rows, by its number; what it returns.
    Change(usize, Option<Vec<Output>>),
    /// One that is being bound: who names it is one that it names.
    Waiting,
}

/// A query of WITH.
pub(super) struct NamedQuery {
    query: Box<ast::Query>,
    columns: Vec<String>,
    /// So many of the WITH clauses around it does it see.
    sees: usize,
    /// Of that clause, these names.
    names: Vec<String>,
    /// It stands behind WITH RECURSIVE.
    may_recurse: bool,
    /// So many subqueries in expressions are around it.
    depth: usize,
    /// How it is bound, if its rows are kept.
    shared: OnceLock<(Arc<SharedPlan>, Vec<Output>)>,
}

/// A recursive query, as it sees itself.
pub(super) struct Itself {
    number: usize,
    /// So many subqueries in expressions are around it.
    depth: usize,
    /// What comes out: not known in its first part, which must not name it.
    columns: Option<Vec<Output>>,
}

fn wrong(name: &str, what: &str) -> SqlError {
    SqlError::new("42P19", format!("recursive reference to query \"{name}\" must not appear {what}"))
}

impl Binder<'_> {
    /// The queries of a WITH come into sight. `may_change`: it is that of the statement, so they may change rows.
    pub(crate) fn with_queries(&mut self, with: Option<&ast::With>, may_change: bool) -> SqlResult<()> {
        let Some(with) = with else { return Ok(()) };
        self.with.push(HashMap::new());
        let sees = self.with.len();
        let all: Vec<String> = with.cte_tables.iter().map(|query| identifier(&query.alias.name)).collect();
        for (at, query) in with.cte_tables.iter().enumerate() {
            let (name, names) = (all[at].clone(), if with.recursive { &all[..] } else { &all[..at] });
            let columns: Vec<String> = query.alias.columns.iter().map(|column| identifier(&column.name)).collect();
            let found = match changing(&query.query) {
                Some(_) if !may_change => {
                    let message = "WITH clause containing a data-modifying statement must be at the top level";
                    return Err(SqlError::new("0A000", message));
                }
                Some(node) => {
                    let (number, outputs) = self.change_in_with(&query.query, node)?;
                    WithQuery::Change(number, outputs.map(|outputs| renamed(outputs, &columns)).transpose()?)
                }
                None => WithQuery::Query(NamedQuery {
                    query: query.query.clone(),
                    columns,
                    sees,
                    names: names.to_vec(),
                    may_recurse: with.recursive,
                    depth: self.expressions,
                    shared: OnceLock::new(),
                }),
            };
            if self.with[sees - 1].insert(name.clone(), Arc::new(found)).is_some() {
                return Err(SqlError::new("42712", format!("WITH query name \"{name}\" specified more than once")));
            }
        }
        Ok(())
    }

    /// The innermost query of WITH of this name.
    pub(super) fn with_query(&self, name: &str) -> Option<Arc<WithQuery>> {
        self.with.iter().rev().find_map(|level| level.get(name)).map(Arc::clone)
    }

    /// What gives the rows of a query of WITH that is named in FROM.
    pub(super) fn with_source(&mut self, name: &str, with: &WithQuery) -> SqlResult<(Plan, Vec<Output>)> {
        let named = match with {
            WithQuery::Query(named) => named,
            WithQuery::Itself(itself) => return self.itself(name, itself),
            WithQuery::Change(number, Some(outputs)) => return Ok((Plan::Kept(*number), outputs.clone())),
            WithQuery::Change(_, None) => {
                return Err(SqlError::new("0A000", format!("WITH query \"{name}\" does not have a RETURNING clause")));
            }
            WithQuery::Waiting => return Err(SqlError::unsupported("mutual recursion between WITH queries")),
        };
        if let Some((plan, outputs)) = named.shared.get() {
            plan.repeats.store(true, Ordering::Relaxed);
            return Ok((Plan::Shared(Arc::clone(plan)), outputs.clone()));
        }
        let drawn = self.drawn;
        let hidden = self.hide_with(name, named);
        let planned = match named.may_recurse {
            true => self.derived_by(|binder| binder.recursive(name, named)),
            false => self.derived_by(|binder| binder.query(&named.query)),
        };
        self.with = hidden;
        let (plan, outputs) = planned?;
        let outputs = renamed(outputs, &named.columns)?;
        // One that needs the row around it has other rows for each in any case.
        if self.drawn == drawn || matches!(plan, Plan::Within(_)) {
            return Ok((plan, outputs));
        }
        self.kept += 1;
        // What is run for each row of a query opens it as often.
        let repeats = AtomicBool::new(self.expressions > named.depth || !self.recursions.is_empty());
        let plan = Arc::new(SharedPlan { number: self.kept, input: plan, repeats });
        let (plan, outputs) = named.shared.get_or_init(|| (plan, outputs));
        Ok((Plan::Shared(Arc::clone(plan)), outputs.clone()))
    }

    /// While a query of WITH is bound, it sees those that it may, and no more. Gives what was seen.
    fn hide_with(&mut self, name: &str, named: &NamedQuery) -> Vec<Level> {
        let level = named.sees - 1;
        let mut own = self.with[level].clone();
        own.retain(|name, _| named.names.contains(name));
        if let Some(itself) = own.get_mut(name) {
            *itself = Arc::new(WithQuery::Waiting);
        }
        let mut seen: Vec<Level> = self.with[..level].to_vec();
        seen.push(own);
        std::mem::replace(&mut self.with, seen)
    }

    /// The rows of the step before.
    fn itself(&mut self, name: &str, itself: &Itself) -> SqlResult<(Plan, Vec<Output>)> {
        let Some(columns) = &itself.columns else {
            return Err(wrong(name, "within its non-recursive term")
                .with_hint("A recursive query is a query without its name, UNION or UNION ALL, and one with it."));
        };
        if self.expressions != itself.depth {
            return Err(wrong(name, "within a subquery of an expression"));
        }
        self.recursions[itself.number] += 1;
        if self.recursions[itself.number] > 1 {
            return Err(wrong(name, "more than once"));
        }
        Ok((Plan::Step(itself.number), columns.clone()))
    }

    /// A query that may name itself.
    fn recursive(&mut self, name: &str, named: &NamedQuery) -> SqlResult<Query> {
        let query = &named.query;
        let (number, depth, at) = (self.recursions.len(), self.expressions, self.with.len());
        self.recursions.push(0);
        let level = |columns| {
            let itself = WithQuery::Itself(Itself { number, depth, columns });
            HashMap::from([(name.to_owned(), Arc::new(itself))])
        };
        self.with.push(level(None));
        let SetExpr::SetOperation { left, op: op @ SetOperator::Union, set_quantifier, right } = &*query.body else {
            return self.query(query);
        };
        refuse_other_forms(query)?;
        self.with_queries(query.with.as_ref(), false)?;
        let first = self.deeper(|binder| binder.arm(left))?;
        let mut outputs = renamed(first.outputs.clone(), &named.columns)?;
        let tail = Tail::of(query)?;
        let mut step = self.step((number, at), right, &level, &outputs)?;
        if self.recursions[number] > 0
            && let Some(wider) = self.wider(&outputs, &step)?
        {
            // What the step makes of these is seen when it has them. What it has left of the first time nobody names.
            outputs = wider;
            step = self.step((number, at), right, &level, &outputs)?;
        }
        if self.recursions[number] == 0 {
            let both = self.combined(first, *op, *set_quantifier, step)?;
            return self.ordered(both, tail);
        }
        if !tail.is_empty() {
            return Err(SqlError::unsupported("ORDER BY, LIMIT and OFFSET of a recursive query")
                .with_hint("They may stand where the query is named."));
        }
        let all = is_all(*set_quantifier)?;
        if let Err(place) = has_step(&step.plan, number) {
            return Err(wrong(name, place));
        }
        let step = self.of_types(name, step, &outputs)?;
        let first = match first.outputs.iter().zip(&outputs).all(|(own, now)| own.data_type == now.data_type) {
            true => first.plan,
            false => {
                let exprs = (0..outputs.len()).map(|column| self.column_as(&first, column, outputs[column].data_type));
                let exprs = exprs.collect::<SqlResult<Vec<_>>>()?;
                first.plan.projected(exprs)
            }
        };
        let plan = Plan::Recursive(Arc::new(RecursivePlan { number, all, first, step }));
        Ok(Query { plan, outputs, untyped: Vec::new() })
    }

    /// Binds the step of a recursive query, which sees itself with these columns.
    fn step(
        &mut self,
        (number, at): (usize, usize),
        step: &SetExpr,
        level: &impl Fn(Option<Vec<Output>>) -> Level,
        outputs: &[Output],
    ) -> SqlResult<Query> {
        self.recursions[number] = 0;
        self.with[at] = level(Some(outputs.to_vec()));
        self.deeper(|binder| binder.arm(step))
    }

    /// Columns of decimals of which the step makes some with more digits: as many as there can be, with those behind the point that the step has. `None`: there are none.
    fn wider(&self, outputs: &[Output], step: &Query) -> SqlResult<Option<Vec<Output>>> {
        let mut wider = outputs.to_vec();
        let mut is_wider = false;
        for (at, own) in wider.iter_mut().enumerate().take(step.outputs.len()) {
            let (DataType::Decimal { scale, .. }, Some(DataType::Decimal { scale: of_step, .. })) = (own.data_type, step.type_of(at))
            else {
                continue;
            };
            let both = common_type([Some(own.data_type), step.type_of(at)].into_iter(), "UNION")?;
            if both != Some(own.data_type) {
                own.data_type = DataType::Decimal { precision: DECIMAL_PRECISION_MAX, scale: scale.max(of_step) };
                is_wider = true;
            }
        }
        Ok(is_wider.then_some(wider))
    }

    /// The step of a recursive query has the types of its first part.
    fn of_types(&self, name: &str, step: Query, outputs: &[Output]) -> SqlResult<Plan> {
        check_columns("UNION", outputs.len(), step.outputs.len())?;
        let mut exprs = Vec::with_capacity(outputs.len());
        for (at, first) in outputs.iter().enumerate() {
            let both = common_type([Some(first.data_type), step.type_of(at)].into_iter(), "UNION")?;
            let both = both.map(|both| step.widened(at, both, "UNION", self.params)).transpose()?;
            if let Some(both) = both.filter(|both| *both != first.data_type) {
                let message = format!(
                    "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                    at + 1,
                    first.data_type,
                    both
                );
                return Err(SqlError::new("42804", message).with_hint("Cast the output of the non-recursive term to the correct type."));
            }
            exprs.push(self.column_as(&step, at, first.data_type)?);
        }
        Ok(step.plan.projected(exprs))
    }
}

/// Are there rows of the step before in a plan? Where they must not be: what that place is.
fn has_step(plan: &Plan, number: usize) -> Result<bool, &'static str> {
    let refused = |plan: &Plan, place| match has_step(plan, number) {
        Ok(true) => Err(place),
        other => other,
    };
    match plan {
        Plan::Step(own) => Ok(*own == number),
        Plan::Values(_) | Plan::Series(_) | Plan::System(_) | Plan::Scan(_) | Plan::Count(_) | Plan::Kept(_) => Ok(false),
        Plan::Shared(plan) => has_step(&plan.input, number),
        Plan::Filter(plan) => has_step(&plan.input, number),
        Plan::Project(plan) => has_step(&plan.input, number),
        Plan::Within(plan) => has_step(&plan.input, number),
        Plan::Window(plan) => has_step(&plan.input, number),
        Plan::Distinct(input) => has_step(input, number),
        Plan::FirstOfEach(plan) => has_step(&plan.input, number),
        Plan::Sort(plan) => has_step(&plan.input, number),
        Plan::Cut(plan) => has_step(&plan.input, number),
        Plan::Limit(plan) => has_step(&plan.input, number),
        Plan::LookUp(plan) => has_step(&plan.first, number),
        Plan::Lateral(plan) => {
            let second = refused(&plan.second, "within LATERAL")?;
            Ok(has_step(&plan.first, number)? || second)
        }
        Plan::Expand(plan) => has_step(&plan.input, number),
        Plan::Aggregate(plan) => refused(&plan.input, "below an aggregate function or GROUP BY"),
        Plan::Hash(plan) => {
            const OUTER: &str = "within an outer join";
            let first = match plan.kind {
                JoinKind::Full => refused(&plan.first, OUTER),
                _ => has_step(&plan.first, number),
            }?;
            let second = match plan.kind {
                JoinKind::Inner => has_step(&plan.second, number),
                _ => refused(&plan.second, OUTER),
            }?;
            Ok(first || second)
        }
        Plan::Set(plan) => {
            let first = match plan.operation {
                SetOperation::Intersect => refused(&plan.first, "within INTERSECT"),
                _ => has_step(&plan.first, number),
            }?;
            let second = match plan.operation {
                SetOperation::Union => has_step(&plan.second, number),
                SetOperation::Intersect => refused(&plan.second, "within INTERSECT"),
                SetOperation::Except => refused(&plan.second, "within EXCEPT"),
            }?;
            Ok(first || second)
        }
        Plan::Recursive(plan) => {
            let first = has_step(&plan.first, number)?;
            let step = refused(&plan.step, "within the step of another recursive query")?;
            Ok(first || step)
        }
    }
}

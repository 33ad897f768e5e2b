//! Plans: how rows of a query are come by.
//!
//! * `select`: the plan of a SELECT: joins, groups, what comes out, order, limit
//! * `window`: calls of window functions
//! * `join`: in which order relations are joined, and how
//! * `access`: how the rows of one table are come by: which conditions the engine answers, by which index
//! * `constant`: which plans give the same rows each time
//! * `push`: conditions of a query that go into the queries it selects from
//! * `explain`: plans as text
//!
//! Invariants:
//! - rows are tuples of values; an expression of a plan names them by [`Expr::Slot`]: no column is left;
//! - a plan is shared: what is open of it (`execute`) has nothing of the session, and it can be opened again with other parameters;
//! - estimates decide how fast a plan is, never what it gives.

pub(crate) mod access;
mod constant;
mod explain;
mod join;
mod push;
pub(crate) mod select;
mod window;

use crate::bind::{GroupingSet, Limit, Noted, SetOperation, SortKey};
use crate::catalog::TableRef;
use crate::expression::AggregateKind;
use crate::expression::Expr;
use crate::system::SystemTable;
use access::Test;
pub(crate) use explain::Told;
pub(crate) use join::{place, rows_of};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::split_partition_name;
use pagefold_types::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
pub(crate) use window::WindowPlan;

/// How rows are come by.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// These rows.
    Values(Arc<Vec<Vec<Expr>>>),
    /// Numbers from, to, by step.
    Series(Arc<Vec<Expr>>),
    /// What there is.
    System(&'static SystemTable),
    Scan(Arc<ScanPlan>),
    Filter(Arc<FilterPlan>),
    Project(Arc<ProjectPlan>),
    /// A query in FROM that needs the outer row of the query it is in: here its own.
    Within(Arc<WithinPlan>),
    LookUp(Arc<LookUpPlan>),
    Hash(Arc<HashPlan>),
    Lateral(Arc<LateralPlan>),
    Expand(Arc<ExpandPlan>),
    Aggregate(Arc<AggregatePlan>),
    Window(Arc<WindowPlan>),
    Count(Arc<CountPlan>),
    Distinct(Arc<Plan>),
    FirstOfEach(Arc<FirstOfEachPlan>),
    Sort(Arc<SortPlan>),
    /// The first so many columns.
    Cut(Arc<CutPlan>),
    Limit(Arc<LimitPlan>),
    Set(Arc<SetPlan>),
    Recursive(Arc<RecursivePlan>),
    /// In the step of a recursive query: the new rows of the step before.
    Step(usize),
    /// A query of WITH that gives other rows each time it is run.
    Shared(Arc<SharedPlan>),
    /// Rows that a part of WITH has returned which changes rows, by its number.
    Kept(usize),
}

impl Default for Plan {
    /// No rows.
    fn default() -> Plan {
        Plan::Values(Arc::new(Vec::new()))
    }
}

/// Rows of a table.
#[derive(Debug)]
pub(crate) struct ScanPlan {
    pub(crate) table: Arc<TableRef>,
    /// Columns that are delivered, by number.
    pub(crate) columns: Vec<usize>,
    /// What the engine answers. Their values are computed when the scan is opened: of parameters, and in a join of the row before.
    pub(crate) tests: Vec<Test>,
    /// What is asked of the values that it delivers.
    pub(crate) residual: Option<Expr>,
    pub(crate) access: Access,
    /// One of these is true of each row that the residual lets through: no others are looked at by the index.
    pub(crate) keys: Option<Keys>,
    /// They come in the order of the index, and somebody relies on that.
    pub(crate) in_order: bool,
    /// Rows, by estimate.
    pub(crate) rows: f64,
}

/// Alternatives: of each the values of the first columns of an index.
pub(crate) type Keys = Vec<Vec<Test>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Page by page.
    Pages,
    /// By an index, by number in the list of the table's.
    Index { index: usize, direction: Direction, keys_only: bool },
    /// At most one row: all columns of a unique index are equal to something. Which tests, in the order of its columns.
    Unique { index: usize, tests: Vec<usize> },
}

#[derive(Debug)]
pub(crate) struct FilterPlan {
    pub(crate) input: Plan,
    pub(crate) condition: Expr,
}

#[derive(Debug)]
pub(crate) struct ProjectPlan {
    pub(crate) input: Plan,
    pub(crate) exprs: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct WithinPlan {
    pub(crate) input: Plan,
    pub(crate) outer: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    /// Each row of the first side comes, with NULLs where it has no partner.
    Left,
    /// Of both sides.
    Full,
    /// Rows of the first side that have a partner, each once, without it.
    Semi,
    /// Those that have none.
    Anti,
}

/// For each row of the first side, rows of a table by an index.
#[derive(Debug)]
pub(crate) struct LookUpPlan {
    pub(crate) kind: JoinKind,
    pub(crate) first: Plan,
    /// Its tests are computed of the row of the first side.
    pub(crate) second: Arc<ScanPlan>,
    /// Columns of the first side.
    pub(crate) width: usize,
    /// What is asked of both together.
    pub(crate) condition: Option<Expr>,
}

/// Rows of both sides whose keys are equal. Without keys: all pairs.
#[derive(Debug)]
pub(crate) struct HashPlan {
    pub(crate) kind: JoinKind,
    pub(crate) first: Plan,
    /// This one is read whole, into memory.
    pub(crate) second: Plan,
    pub(crate) first_keys: Vec<Expr>,
    pub(crate) second_keys: Vec<Expr>,
    pub(crate) condition: Option<Expr>,
    /// Columns of each side.
    pub(crate) widths: (usize, usize),
    /// NOT IN: a NULL on the second side is a partner of each, and one of the first side of all there are.
    pub(crate) nulls_match: bool,
}

/// For each row of the first side, the rows of a query that needs it: its outer row.
#[derive(Debug)]
pub(crate) struct LateralPlan {
    /// Inner or left.
    pub(crate) kind: JoinKind,
    pub(crate) first: Plan,
    pub(crate) second: Plan,
    /// Of a row of the first side.
    pub(crate) outer: Vec<Expr>,
    pub(crate) condition: Option<Expr>,
    /// Columns of each side.
    pub(crate) widths: (usize, usize),
}

/// Each row once for each set of keys. Behind its columns come the keys, NULL where the set has none, the values of GROUPING in that set, and its number.
#[derive(Debug)]
pub(crate) struct ExpandPlan {
    pub(crate) input: Plan,
    pub(crate) keys: Vec<Expr>,
    pub(crate) sets: Vec<GroupingSet>,
}

#[derive(Debug)]
pub(crate) struct AggregatePlan {
    pub(crate) input: Plan,
    pub(crate) keys: Vec<Expr>,
    pub(crate) aggregates: Vec<Noted>,
    /// Keys of groups that are there even if there is no row: of sets without keys.
    pub(crate) totals: Vec<Vec<Value>>,
}

/// How many rows a table has, as often as it is asked for.
#[derive(Debug)]
pub(crate) struct CountPlan {
    pub(crate) table: Arc<TableRef>,
    pub(crate) columns: usize,
}

/// Of rows that are equal in these columns the first. Such rows follow each other.
#[derive(Debug)]
pub(crate) struct FirstOfEachPlan {
    pub(crate) input: Plan,
    pub(crate) slots: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct SortPlan {
    pub(crate) input: Plan,
    pub(crate) keys: Vec<SortKey>,
    /// No more than so many of the first are wanted.
    pub(crate) limit: Limit,
}

#[derive(Debug)]
pub(crate) struct CutPlan {
    pub(crate) input: Plan,
    pub(crate) columns: usize,
}

#[derive(Debug)]
pub(crate) struct LimitPlan {
    pub(crate) input: Plan,
    pub(crate) limit: Limit,
}

#[derive(Debug)]
pub(crate) struct SetPlan {
    pub(crate) operation: SetOperation,
    pub(crate) all: bool,
    pub(crate) first: Plan,
    pub(crate) second: Plan,
}

/// The rows of a query, and those that a step makes of them, of these, and so on.
#[derive(Debug)]
pub(crate) struct RecursivePlan {
    /// By which [`Plan::Step`] names it.
    pub(crate) number: usize,
    /// Rows that were there before are new again.
    pub(crate) all: bool,
    pub(crate) first: Plan,
    pub(crate) step: Plan,
}

/// A query of WITH whose rows are computed once, however often it is named.
#[derive(Debug)]
pub(crate) struct SharedPlan {
    /// By which its rows are kept.
    pub(crate) number: usize,
    pub(crate) input: Plan,
    /// It is opened more than once. Known when all of the statement is bound.
    pub(crate) repeats: AtomicBool,
}

impl Plan {
    pub(crate) fn values(rows: Vec<Vec<Expr>>) -> Plan {
        Plan::Values(Arc::new(rows))
    }

    pub(crate) fn series(bounds: Vec<Expr>) -> Plan {
        Plan::Series(Arc::new(bounds))
    }

    pub(crate) fn filtered(self, conditions: Vec<Expr>) -> Plan {
        match together(conditions) {
            Some(condition) => Plan::Filter(Arc::new(FilterPlan { input: self, condition })),
            None => self,
        }
    }

    /// Other columns, of its own.
    pub(crate) fn projected(self, exprs: Vec<Expr>) -> Plan {
        if let Plan::Scan(scan) = &self
            && exprs.len() == scan.columns.len()
            && exprs.iter().enumerate().all(|(at, expr)| *expr == Expr::Slot(at))
        {
            return self;
        }
        Plan::Project(Arc::new(ProjectPlan { input: self, exprs }))
    }

    /// Groups, and aggregates of each.
    pub(crate) fn aggregated(self, keys: Vec<Expr>, aggregates: Vec<Noted>) -> Plan {
        let counts_rows =
            |noted: &Noted| noted.filter.is_none() && noted.aggregate.argument.is_none() && noted.aggregate.kind == AggregateKind::Count;
        match &self {
            // No row is looked at where only their number counts.
            Plan::Scan(scan)
                if keys.is_empty() && scan.tests.is_empty() && scan.residual.is_none() && aggregates.iter().all(counts_rows) =>
            {
                Plan::Count(Arc::new(CountPlan { table: Arc::clone(&scan.table), columns: aggregates.len() }))
            }
            _ => Plan::Aggregate(Arc::new(AggregatePlan { input: self, keys, aggregates, totals: Vec::new() })),
        }
    }

    /// Groups of each of these sets of keys, of rows with so many columns.
    pub(crate) fn expanded(self, keys: Vec<Expr>, sets: Vec<GroupingSet>, width: usize, aggregates: Vec<Noted>) -> Plan {
        let mut totals = Vec::new();
        for (number, set) in sets.iter().enumerate().filter(|(_, set)| !set.members.contains(&true)) {
            let mut total = vec![Value::Null; keys.len()];
            total.extend(set.calls.iter().cloned());
            total.push(Value::Int(number as i64));
            totals.push(total);
        }
        let count = keys.len() + sets.first().map_or(0, |set| set.calls.len()) + 1;
        let input = Plan::Expand(Arc::new(ExpandPlan { input: self, keys, sets }));
        let keys = (width..width + count).map(Expr::Slot).collect();
        Plan::Aggregate(Arc::new(AggregatePlan { input, keys, aggregates, totals }))
    }

    pub(crate) fn within(self, outer: Vec<Expr>) -> Plan {
        Plan::Within(Arc::new(WithinPlan { input: self, outer }))
    }

    pub(crate) fn sorted(self, keys: Vec<SortKey>) -> Plan {
        if keys.is_empty() { self } else { Plan::Sort(Arc::new(SortPlan { input: self, keys, limit: Limit::default() })) }
    }

    pub(crate) fn cut(self, from: usize, columns: usize) -> Plan {
        if from == columns { self } else { Plan::Cut(Arc::new(CutPlan { input: self, columns })) }
    }

    pub(crate) fn limited(self, limit: Limit) -> Plan {
        if limit.limit.is_none() && limit.offset.is_none() {
            return self;
        }
        // What sorts needs to keep no more than come out.
        let input = match self {
            Plan::Sort(sort) if limit.limit.is_some() && limit.ties.is_empty() => {
                let (input, keys) = (sort.input.clone(), sort.keys.clone());
                Plan::Sort(Arc::new(SortPlan { input, keys, limit: limit.clone() }))
            }
            other => other,
        };
        Plan::Limit(Arc::new(LimitPlan { input, limit }))
    }

    fn has_one_row_at_most(&self) -> bool {
        match self {
            Plan::Values(rows) => rows.len() <= 1,
            Plan::Aggregate(aggregate) => aggregate.keys.is_empty(),
            Plan::Count(_) => true,
            Plan::Project(project) => project.input.has_one_row_at_most(),
            Plan::Filter(filter) => filter.input.has_one_row_at_most(),
            _ => false,
        }
    }

    /// Does each row of a table that it reads come once at most?
    pub(crate) fn gives_rows_once(&self) -> bool {
        let is_one_side = |kind: JoinKind| matches!(kind, JoinKind::Semi | JoinKind::Anti);
        match self {
            Plan::Values(_) | Plan::Series(_) | Plan::System(_) | Plan::Scan(_) => true,
            Plan::Filter(plan) => plan.input.gives_rows_once(),
            Plan::Project(plan) => plan.input.gives_rows_once(),
            Plan::Cut(plan) => plan.input.gives_rows_once(),
            Plan::Sort(plan) => plan.input.gives_rows_once(),
            Plan::Limit(plan) => plan.input.gives_rows_once(),
            Plan::LookUp(plan) => is_one_side(plan.kind) && plan.first.gives_rows_once(),
            Plan::Hash(plan) => is_one_side(plan.kind) && plan.first.gives_rows_once(),
            _ => false,
        }
    }

    /// Is it the plan without rows?
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Plan::Values(rows) if rows.is_empty())
    }

    /// No more rows than these.
    pub(crate) fn first_rows(self, rows: i64) -> Plan {
        if self.has_one_row_at_most() {
            return self;
        }
        self.limited(Limit { limit: Some(Expr::Literal(Value::Int(rows))), ..Limit::default() })
    }

    pub(crate) fn distinct(self) -> Plan {
        Plan::Distinct(Arc::new(self))
    }

    pub(crate) fn first_of_each(self, slots: Vec<usize>) -> Plan {
        Plan::FirstOfEach(Arc::new(FirstOfEachPlan { input: self, slots }))
    }

    pub(crate) fn set_operation(operation: SetOperation, all: bool, first: Plan, second: Plan) -> Plan {
        Plan::Set(Arc::new(SetPlan { operation, all, first, second }))
    }
}

impl Plan {
    /// Does it read rows of this table? A partition and the table that it is of have rows in common.
    pub(crate) fn reads(&self, table: &str) -> bool {
        let whole = |name: &str| split_partition_name(name).map_or(name, |(whole, _)| whole).to_owned();
        let wanted = whole(table);
        let is_it = |own: &TableRef| whole(&own.name) == wanted;
        self.any(&|plan| match plan {
            Plan::Scan(scan) => is_it(&scan.table),
            Plan::LookUp(plan) => is_it(&plan.second.table),
            Plan::Count(plan) => is_it(&plan.table),
            _ => false,
        })
    }

    /// Is this so of it, or of a plan within it?
    pub(crate) fn any(&self, is_it: &dyn Fn(&Plan) -> bool) -> bool {
        is_it(self)
            || match self {
                Plan::Values(_) | Plan::Series(_) | Plan::System(_) | Plan::Step(_) | Plan::Scan(_) | Plan::Count(_) | Plan::Kept(_) => {
                    false
                }
                Plan::Filter(plan) => plan.input.any(is_it),
                Plan::Project(plan) => plan.input.any(is_it),
                Plan::Within(plan) => plan.input.any(is_it),
                Plan::LookUp(plan) => plan.first.any(is_it),
                Plan::Hash(plan) => plan.first.any(is_it) || plan.second.any(is_it),
                Plan::Lateral(plan) => plan.first.any(is_it) || plan.second.any(is_it),
                Plan::Expand(plan) => plan.input.any(is_it),
                Plan::Aggregate(plan) => plan.input.any(is_it),
                Plan::Window(plan) => plan.input.any(is_it),
                Plan::Distinct(input) => input.any(is_it),
                Plan::FirstOfEach(plan) => plan.input.any(is_it),
                Plan::Sort(plan) => plan.input.any(is_it),
                Plan::Cut(plan) => plan.input.any(is_it),
                Plan::Limit(plan) => plan.input.any(is_it),
                Plan::Set(plan) => plan.first.any(is_it) || plan.second.any(is_it),
                Plan::Recursive(plan) => plan.first.any(is_it) || plan.step.any(is_it),
                Plan::Shared(plan) => plan.input.any(is_it),
            }
    }
}

/// All of these conditions as one.
pub(crate) fn together(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    }
}

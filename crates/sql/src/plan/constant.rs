//! Which plans give the same rows however often they are opened in a statement: for whatever row around them, or for the same one.

use super::access::Test;
use super::{HashPlan, Plan, ScanPlan};
use crate::bind::Limit;
use crate::expression::Expr;
use pagefold_types::Value;

/// May it have another value the next time? A subquery is not looked into.
fn varies(expr: &Expr) -> bool {
    expr.any(|part| matches!(part, Expr::Outer(_) | Expr::Subquery { .. }) || part.is_volatile())
}

type IsIt<'t> = &'t dyn Fn(&Expr) -> bool;

fn scan_has(scan: &ScanPlan, is_it: IsIt<'_>) -> bool {
    let tests = scan.tests.iter().chain(scan.keys.iter().flatten().flatten());
    tests.map(Test::values).any(|values| values.into_iter().any(is_it)) || scan.residual.as_ref().is_some_and(is_it)
}

fn limit_has(limit: &Limit, is_it: IsIt<'_>) -> bool {
    [&limit.limit, &limit.offset].into_iter().flatten().any(is_it)
}

impl Plan {
    /// Are its rows the same each time?
    pub(crate) fn is_constant(&self) -> bool {
        !self.any(&Plan::varies_itself)
    }

    /// May its rows be others each time also for the same row around?
    pub(crate) fn is_volatile(&self, subplans: &[Plan]) -> bool {
        let is_it = |expr: &Expr| {
            expr.any(|part| match part {
                Expr::Subquery { number, .. } => subplans.get(*number).is_none_or(|plan| plan.is_volatile(subplans)),
                part => part.is_volatile(),
            })
        };
        self.any(&|plan| plan.has_itself(&is_it))
    }

    /// Does it vary, whatever the plans within do?
    fn varies_itself(&self) -> bool {
        match self {
            // They have a row of their own around what is within, or need the step before.
            Plan::Within(_) | Plan::Lateral(_) | Plan::Recursive(_) | Plan::Step(_) => true,
            plan => plan.has_itself(&varies),
        }
    }

    /// Is one of its own expressions so? Of windows it is said of any.
    fn has_itself(&self, is_it: IsIt<'_>) -> bool {
        match self {
            Plan::System(_) | Plan::Count(_) | Plan::Distinct(_) | Plan::FirstOfEach(_) | Plan::Cut(_) | Plan::Set(_) => false,
            Plan::Recursive(_) | Plan::Step(_) => false,
            // Their rows are kept.
            Plan::Shared(_) | Plan::Kept(_) => false,
            Plan::Values(rows) => rows.iter().flatten().any(is_it),
            Plan::Series(bounds) => bounds.iter().any(is_it),
            Plan::Scan(scan) => scan_has(scan, is_it),
            Plan::Filter(plan) => is_it(&plan.condition),
            Plan::Project(plan) => plan.exprs.iter().any(is_it),
            Plan::Within(plan) => plan.outer.iter().any(is_it),
            Plan::Lateral(plan) => plan.outer.iter().chain(&plan.condition).any(is_it),
            Plan::LookUp(plan) => scan_has(&plan.second, is_it) || plan.condition.as_ref().is_some_and(is_it),
            Plan::Hash(plan) => plan.first_keys.iter().chain(&plan.second_keys).chain(&plan.condition).any(is_it),
            Plan::Expand(plan) => plan.keys.iter().any(is_it),
            Plan::Aggregate(plan) => {
                let of_aggregates = plan
                    .aggregates
                    .iter()
                    .flat_map(|noted| noted.filter.iter().chain(&noted.aggregate.argument).chain(&noted.aggregate.order));
                plan.keys.iter().chain(of_aggregates).any(is_it)
            }
            Plan::Sort(plan) => limit_has(&plan.limit, is_it),
            Plan::Limit(plan) => limit_has(&plan.limit, is_it),
            Plan::Window(_) => true,
        }
    }

    /// Does it end after one row?
    pub(crate) fn gives_one_row(&self) -> bool {
        let is_one = |limit: &Limit| limit.ties.is_empty() && limit.limit == Some(Expr::Literal(Value::Int(1)));
        self.has_one_row_at_most() || matches!(self, Plan::Limit(plan) if is_one(&plan.limit))
    }
}

impl HashPlan {
    /// Are the rows of the second side, and their keys, the same each time?
    pub(crate) fn has_constant_second(&self) -> bool {
        self.second.is_constant() && !self.second_keys.iter().any(varies)
    }
}

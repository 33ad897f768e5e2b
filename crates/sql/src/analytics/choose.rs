//! What is run by batches: whatever can be, where that is asked for; else what is faster so, by estimate.
//!
//! Work is estimated in microseconds of one processor, from what queries of TPC-H took; it decides how fast a statement is, never what it gives.

use super::{Node, Operation};
use crate::execute::Execution;
use crate::expression::{Comparison, Expr};
use crate::plan::access::{Test, TestKind};
use crate::plan::{Access, Plan, ScanPlan, rows_of};

/// What the row executor does sooner than others begin.
const LITTLE_WORK: f64 = 5_000.0;
/// What it takes to begin.
const BEGINNING: f64 = 1_000.0;
/// What is run by batches may be so many times the work that rows are said to be. That is little where few rows are expected, and much more where more come: batches are as much work in any case.
const TRUST: f64 = 10.0;

/// When queries are run by batches: the setting `analytics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    Off,
    /// Where that is less work.
    #[default]
    Auto,
    /// Wherever it can be done.
    On,
}

/// What a plan is translated for.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'c> {
    /// To tell what would be done: nothing is evaluated.
    Told,
    Run(&'c Execution),
}

/// Whoever says what is run by batches.
#[derive(Clone, Copy)]
pub(crate) struct Chooser<'c> {
    pub(super) subplans: &'c [Plan],
    pub(super) mode: Mode<'c>,
    when: When,
}

impl<'c> Chooser<'c> {
    pub(crate) fn new(subplans: &'c [Plan], when: When, mode: Mode<'c>) -> Chooser<'c> {
        Chooser { subplans, mode, when }
    }

    /// Is a plan to be run by batches, as far as can be told without its values?
    pub(crate) fn is_chosen(&self, plan: &Plan) -> bool {
        // Nothing above sorts them.
        if follows_index(plan) {
            return false;
        }
        let told = Chooser { mode: Mode::Told, ..*self };
        match self.when {
            When::Off => false,
            When::On => !matches!(plan, Plan::Values(_) | Plan::Count(_)) && told.node(plan).is_some(),
            When::Auto => {
                if !has_work(plan) {
                    return false;
                }
                let by_rows = self.by_rows(plan);
                by_rows > LITTLE_WORK && told.node(plan).is_some_and(|node| BEGINNING + by_batches(&node) < by_rows * TRUST)
            }
        }
    }

    /// Work of the row executor.
    fn by_rows(&self, plan: &Plan) -> f64 {
        let rows = likely(plan);
        match plan {
            Plan::Scan(scan) => scan_by_rows(scan),
            Plan::Filter(filter) => {
                self.by_rows(&filter.input) + self.evaluated(std::slice::from_ref(&filter.condition), likely(&filter.input))
            }
            Plan::Project(project) => self.by_rows(&project.input) + self.evaluated(&project.exprs, rows),
            Plan::LookUp(plan) => self.by_rows(&plan.first) + likely(&plan.first) * 2.0 + rows * 0.6,
            Plan::Hash(plan) => {
                let (first, second) = (likely(&plan.first), likely(&plan.second));
                let pairs = if plan.first_keys.is_empty() { first * second * 0.1 } else { 0.0 };
                self.by_rows(&plan.first) + self.by_rows(&plan.second) + first * 0.3 + second * 0.5 + rows * 0.2 + pairs
            }
            Plan::Aggregate(plan) => {
                let input = likely(&plan.input);
                let each = if plan.keys.is_empty() { 0.02 } else { 0.25 } + 0.05 * plan.aggregates.len() as f64;
                self.by_rows(&plan.input) + input * each
            }
            Plan::Distinct(input) => self.by_rows(input) + likely(input) * 0.4,
            Plan::Sort(sort) => self.by_rows(&sort.input) + likely(&sort.input) * (0.1 + 0.03 * likely(&sort.input).max(2.0).log2()),
            Plan::Cut(cut) => self.by_rows(&cut.input),
            Plan::Limit(limit) => self.by_rows(&limit.input),
            Plan::Set(set) => self.by_rows(&set.first) + self.by_rows(&set.second) + if set.all { 0.0 } else { rows * 0.4 },
            _ => 0.0,
        }
    }

    /// Work of expressions, subqueries that need the row with all that they do.
    fn evaluated(&self, exprs: &[Expr], rows: f64) -> f64 {
        let mut each = 0.1;
        for expr in exprs {
            expr.visit(&mut |part| match part {
                Expr::Subquery { number, outer, .. } if !outer.is_empty() => {
                    each += self.subplans.get(*number).map_or(0.0, |plan| 2.0 + self.by_rows(plan));
                }
                _ => {}
            });
        }
        rows * each
    }
}

/// Rows of a plan, where what is equal to something may be more than plans expect: few values of a column are as rare as all together would make them.
fn likely(plan: &Plan) -> f64 {
    const MORE: f64 = 5.0;
    match plan {
        Plan::Scan(scan) if scan.access == Access::Pages => {
            let is_equal = |test: &&Test| {
                matches!(test.kind, TestKind::Compare { comparison: Comparison::Equal, .. } | TestKind::In { negated: false, .. })
            };
            let tests = i32::try_from(scan.tests.iter().filter(is_equal).count()).unwrap_or(i32::MAX);
            (scan.rows * MORE.powi(tests)).min((scan.table.rows() as f64).max(scan.rows))
        }
        Plan::Filter(plan) => (likely(&plan.input) * 0.3).max(1.0),
        Plan::Project(plan) => likely(&plan.input),
        Plan::Cut(plan) => likely(&plan.input),
        Plan::Sort(plan) => likely(&plan.input),
        Plan::LookUp(plan) => likely(&plan.first) * plan.second.rows.max(1.0),
        Plan::Hash(plan) => {
            let (first, second) = (likely(&plan.first), likely(&plan.second));
            if plan.first_keys.is_empty() { first * second } else { first.max(second) }
        }
        Plan::Aggregate(plan) => {
            if plan.keys.is_empty() {
                1.0
            } else {
                (likely(&plan.input) * 0.1).max(1.0)
            }
        }
        other => rows_of(other),
    }
}

fn scan_by_rows(scan: &ScanPlan) -> f64 {
    let each = 0.15 + if scan.residual.is_some() { 0.1 } else { 0.0 };
    match &scan.access {
        Access::Pages => scan.table.rows() as f64 * 0.1 + scan.rows * each,
        Access::Unique { .. } => 3.0,
        Access::Index { keys_only: true, .. } => scan.rows * (0.3 + each),
        Access::Index { .. } => scan.rows * (1.5 + each),
    }
}

/// Do its rows come in the order of an index, because that is asked for?
fn follows_index(plan: &Plan) -> bool {
    match plan {
        Plan::Scan(scan) => scan.in_order,
        Plan::Filter(plan) => follows_index(&plan.input),
        Plan::Project(plan) => follows_index(&plan.input),
        Plan::Cut(plan) => follows_index(&plan.input),
        Plan::Limit(plan) => follows_index(&plan.input),
        _ => false,
    }
}

/// Does a plan join, group, sort or compare rows?
fn has_work(plan: &Plan) -> bool {
    match plan {
        Plan::LookUp(_) | Plan::Hash(_) | Plan::Aggregate(_) | Plan::Distinct(_) | Plan::Sort(_) => true,
        Plan::Filter(plan) => has_work(&plan.input),
        Plan::Project(plan) => has_work(&plan.input),
        Plan::Cut(plan) => has_work(&plan.input),
        Plan::Limit(plan) => has_work(&plan.input),
        Plan::Set(plan) => !plan.all || has_work(&plan.first) || has_work(&plan.second),
        _ => false,
    }
}

/// Work by batches.
fn by_batches(node: &Node) -> f64 {
    match &node.operation {
        Operation::Scan(scan) => {
            scan.table_rows * (0.004 + 0.004 * scan.columns.len() as f64) + node.rows * 0.005 * node.kinds.len() as f64
        }
        Operation::Values(rows) => rows.len() as f64 * 0.1,
        Operation::Filter { input, .. } => by_batches(input) + input.rows * 0.02,
        Operation::Project { input, exprs } => by_batches(input) + input.rows * 0.01 * exprs.len() as f64,
        Operation::Join(join) => {
            let pairs = if join.keys.is_empty() { join.first.rows * join.second.rows * 0.01 } else { 0.0 };
            by_batches(&join.first) + by_batches(&join.second) + (join.first.rows + join.second.rows + node.rows) * 0.04 + pairs
        }
        Operation::Aggregate { input, aggregates, .. } => by_batches(input) + input.rows * (0.03 + 0.02 * aggregates.len() as f64),
        Operation::Distinct(input) => by_batches(input) + input.rows * 0.1,
        Operation::Sort { input, .. } => by_batches(input) + input.rows * 0.01 * input.rows.max(2.0).log2(),
        Operation::Limit { input, .. } => by_batches(input),
        Operation::Union(first, second) => by_batches(first) + by_batches(second),
    }
}

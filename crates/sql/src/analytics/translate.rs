//! Plans as trees of nodes.
//!
//! Invariants:
//! - the first columns of a [`Part`] are those of its plan; what stands behind them is there for who is above: columns that a subquery is joined by, or one where a plan has none;
//! - where the row executor stops early, and something below may fail, nothing is translated: batches look further.

use super::correlated::Correlation;
use super::scan::{TableScan, kinds};
use super::{Aggregate, AggregateFunction, Chooser, Kind, Mode, Node, Operation, Scalar, SortColumn};
use crate::bind::{Noted, SetOperation, SortKey};
use crate::execute::{ask, bounds, count_rows};
use crate::expression::{AggregateKind, Expr};
use crate::plan::access::{Test, TestKind};
use crate::plan::{Access, AggregatePlan, Plan, ScanPlan};
use pagefold_types::Value;
use std::sync::Arc;

/// A plan that was translated.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) node: Node,
    /// Columns of the plan.
    pub(super) width: usize,
}

impl Node {
    pub(super) fn filtered(self, conditions: Vec<Scalar>) -> Node {
        let mut conditions = conditions;
        let condition = match conditions.len() {
            0 => return self,
            1 => conditions.swap_remove(0),
            _ => Scalar::And(conditions),
        };
        let (kinds, rows, part) = (self.kinds.clone(), (self.rows * 0.3).max(1.0), self.part * 0.3);
        Node { operation: Operation::Filter { input: Box::new(self), condition }, kinds, rows, part }
    }

    pub(super) fn projected(self, exprs: Vec<Scalar>) -> Node {
        let (kinds, rows, part) = (exprs.iter().map(Scalar::kind).collect(), self.rows, self.part);
        Node { operation: Operation::Project { input: Box::new(self), exprs }, kinds, rows, part }
    }

    pub(super) fn column(&self, column: usize) -> Option<Scalar> {
        Some(Scalar::Column(column, *self.kinds.get(column)?))
    }

    /// May it fail for what its rows are?
    pub(super) fn may_fail(&self) -> bool {
        match &self.operation {
            Operation::Scan(_) | Operation::Values(_) => false,
            Operation::Filter { input, condition } => condition.can_fail() || input.may_fail(),
            Operation::Project { input, exprs } => exprs.iter().any(Scalar::can_fail) || input.may_fail(),
            Operation::Join(join) => join.may_fail() || join.first.may_fail() || join.second.may_fail(),
            // Sums may.
            Operation::Aggregate { .. } => true,
            Operation::Distinct(input) | Operation::Sort { input, .. } | Operation::Limit { input, .. } => input.may_fail(),
            Operation::Union(first, second) => first.may_fail() || second.may_fail(),
        }
    }

    /// Only these columns.
    pub(super) fn picked(self, columns: impl Iterator<Item = usize>) -> Option<Node> {
        let exprs = columns.map(|column| self.column(column)).collect::<Option<Vec<Scalar>>>()?;
        Some(self.projected(exprs))
    }
}

impl Part {
    pub(super) fn of(node: Node) -> Part {
        Part { width: node.kinds.len(), node }
    }

    /// Only the columns of the plan; `None` where it has none.
    pub(super) fn trimmed(self) -> Option<Node> {
        match self.width {
            0 => None,
            width if width == self.node.kinds.len() => Some(self.node),
            width => self.node.picked(0..width),
        }
    }
}

/// The terms of a condition.
pub(super) fn terms(condition: &Expr) -> &[Expr] {
    if let Expr::And(all) = condition { all } else { std::slice::from_ref(condition) }
}

/// A plan, and how it hangs on the row around it.
pub(super) type Translated = (Part, Correlation);

impl Chooser<'_> {
    /// A plan that needs no row around it.
    pub(crate) fn node(&self, plan: &Plan) -> Option<Node> {
        let (part, correlation) = self.part(plan)?;
        if correlation.is_there() { None } else { part.trimmed()?.without_others() }
    }

    pub(super) fn part(&self, plan: &Plan) -> Option<Translated> {
        match plan {
            Plan::Values(rows) => self.values(rows).map(free),
            Plan::Scan(scan) => self.scan(scan, &scan.tests.iter().collect::<Vec<_>>(), &[]),
            Plan::Filter(filter) => {
                let (input, correlation) = self.part(&filter.input)?;
                self.asked(input, correlation, terms(&filter.condition))
            }
            Plan::Project(project) => self.project(&project.input, &project.exprs),
            Plan::LookUp(look_up) => self.look_up(look_up),
            Plan::Hash(hash) => self.hash(hash),
            Plan::Aggregate(aggregate) => self.aggregate(aggregate),
            Plan::Count(count) => {
                let rows = match self.mode {
                    Mode::Told => vec![Value::Int(0); count.columns],
                    Mode::Run(execution) => count_rows(count, &execution.context()).ok()?,
                };
                let kinds = vec![Kind::Int; count.columns];
                Some(free(Part::of(Node { operation: Operation::Values(vec![rows]), kinds, rows: 1.0, part: 1.0 })))
            }
            Plan::Distinct(input) => {
                let (input, correlation) = self.part(input)?;
                let input = if correlation.is_there() { return None } else { input.trimmed()? };
                distinct(input).map(Part::of).map(free)
            }
            Plan::Sort(sort) => {
                let (part, correlation) = self.part(&sort.input)?;
                let limit = self.bounds(&sort.limit).and_then(|(offset, rows)| offset.checked_add(rows));
                if correlation.is_there() && sort.limit.limit.is_some() {
                    return None;
                }
                let node = sorted(part.node, &sort.keys, limit.filter(|rows| *rows < u64::MAX))?;
                Some((Part { node, width: part.width }, correlation))
            }
            Plan::Cut(cut) => {
                let (part, correlation) = self.part(&cut.input)?;
                Some((Part { width: cut.columns.min(part.width), ..part }, correlation))
            }
            Plan::Limit(limit) if limit.limit.ties.is_empty() && ends_with_all(&limit.input) => {
                let (part, correlation) = self.part(&limit.input)?;
                if correlation.is_there() || may_fail_late(&part.node) {
                    return None;
                }
                let (offset, rows) = self.bounds(&limit.limit)?;
                let rows = Some(rows).filter(|rows| *rows < u64::MAX);
                let (kinds, estimate) = (part.node.kinds.clone(), part.node.rows.min(rows.map_or(f64::MAX, |rows| rows as f64)));
                let operation = Operation::Limit { input: Box::new(part.node), offset, rows };
                Some(free(Part { node: Node { operation, kinds, rows: estimate, part: 1.0 }, width: part.width }))
            }
            Plan::Set(set) if set.operation == SetOperation::Union || !set.all => {
                let (first, second) = (self.node(&set.first)?, self.node(&set.second)?);
                if first.kinds != second.kinds {
                    return None;
                }
                if set.operation != SetOperation::Union {
                    return distinct(super::join::compared(first, second, set.operation)?).map(Part::of).map(free);
                }
                let (kinds, rows) = (first.kinds.clone(), first.rows + second.rows);
                let both = Node { operation: Operation::Union(Box::new(first), Box::new(second)), kinds, rows, part: 1.0 };
                Some(free(Part::of(if set.all { both } else { distinct(both)? })))
            }
            _ => None,
        }
    }

    /// LIMIT and OFFSET of the moment.
    fn bounds(&self, limit: &crate::bind::Limit) -> Option<(u64, u64)> {
        match self.mode {
            Mode::Told => Some((0, u64::MAX)),
            Mode::Run(execution) => bounds(limit, &execution.context()).ok(),
        }
    }

    fn values(&self, rows: &[Vec<Expr>]) -> Option<Part> {
        let width = rows.first().map_or(0, Vec::len);
        if width == 0 {
            return None;
        }
        let value = |expr: &Expr| match expr.any(|part| part.is_volatile() || matches!(part, Expr::Outer(_))) {
            true => None,
            false => self.value(expr),
        };
        let rows = rows.iter().map(|row| row.iter().map(value).collect()).collect::<Option<Vec<Vec<Value>>>>()?;
        if rows.iter().flatten().any(|value| matches!(value, Value::Interval(_))) {
            return None;
        }
        let mut kinds = Vec::with_capacity(width);
        for column in 0..width {
            let mut of_values = rows.iter().filter_map(|row| Kind::of_value(&row[column]));
            let kind = of_values.next().unwrap_or(Kind::Text);
            if of_values.any(|other| other != kind) {
                return None;
            }
            kinds.push(kind);
        }
        let count = rows.len() as f64;
        Some(Part::of(Node { operation: Operation::Values(rows), kinds, rows: count, part: 1.0 }))
    }

    /// Rows of a table for which these of its tests, which compare with nothing of another row, are true; tests that compare with the row around are what it hangs on. `more`: columns that are needed
    /// behind its own.
    pub(super) fn scan(&self, scan: &ScanPlan, tests: &[&Test], more: &[usize]) -> Option<Translated> {
        let (mut correlation, mut free_tests) = (Correlation::default(), Vec::new());
        let width = scan.columns.len();
        let mut columns = scan.columns.clone();
        columns.extend(more);
        for test in tests {
            let mut needs_outer = false;
            let mut is_refused = false;
            exprs_of(test).for_each(|expr| {
                needs_outer |= expr.any(|part| matches!(part, Expr::Outer(_)));
                is_refused |= expr.any(|part| part.is_volatile() || matches!(part, Expr::Slot(_)));
            });
            if is_refused {
                return None;
            }
            if !needs_outer {
                free_tests.push((*test).clone());
                continue;
            }
            let TestKind::Compare { comparison, value, data_type } = &test.kind else { return None };
            let column = columns.iter().position(|column| *column == test.column).unwrap_or_else(|| {
                columns.push(test.column);
                columns.len() - 1
            });
            let own = &scan.table.schema.columns().get(test.column)?.data_type;
            correlation.add(*comparison, value.clone(), super::join::as_compared(column, own, data_type));
        }
        if columns.is_empty() {
            let is_int = |column: &usize| Kind::of(&scan.table.schema.columns()[*column].data_type) == Some(Kind::Int);
            columns.push((0..scan.table.schema.len()).find(is_int).unwrap_or(0));
        }
        let kinds = kinds(&scan.table.schema, &columns)?;
        let table_rows = scan.table.rows() as f64;
        let rows = match free_tests.len() == scan.tests.len() {
            true => scan.rows,
            // Estimates are of all tests together.
            false => (table_rows * 0.3_f64.powi(i32::try_from(free_tests.len()).unwrap_or(0))).max(1.0),
        };
        let name = scan.table.name.clone();
        let mut table_scan = TableScan { name, view: None, parts: Vec::new(), columns, condition: None, table_rows };
        if let Mode::Run(execution) = self.mode {
            let asked = ScanPlan {
                table: Arc::clone(&scan.table),
                columns: Vec::new(),
                tests: free_tests,
                residual: None,
                access: Access::Pages,
                keys: None,
                in_order: false,
                rows: scan.rows,
            };
            let (condition, parts) = ask(&asked, &execution.context(), &[]).ok()?;
            table_scan.view = Some(execution.view.clone());
            table_scan.parts = parts.into_iter().map(|part| scan.table.parts[part].clone()).collect();
            table_scan.condition = condition;
        }
        let node = Node { operation: Operation::Scan(Box::new(table_scan)), kinds, rows, part: (rows / table_rows.max(1.0)).min(1.0) };
        let part = Part { node, width };
        match &scan.residual {
            None => Some((part, correlation)),
            Some(condition) => self.asked(part, correlation, terms(condition)),
        }
    }

    /// Rows for which all of these are true, asked in this order.
    pub(super) fn asked(&self, part: Part, correlation: Correlation, terms: &[Expr]) -> Option<Translated> {
        let (mut part, mut correlation) = (part, correlation);
        let mut waiting = Vec::new();
        for term in terms {
            if term.any(|part| matches!(part, Expr::Outer(_))) {
                correlation.ask(term.clone());
                continue;
            }
            if !super::correlated::has_correlated(term) {
                waiting.push(self.converted(term, &part.node.kinds)?);
                continue;
            }
            part.node = part.node.filtered(std::mem::take(&mut waiting));
            match self.existing(&mut part, term)? {
                true => {}
                false => {
                    let term = self.with_scalars(&mut part, term)?;
                    waiting.push(self.converted(&term, &part.node.kinds)?);
                }
            }
        }
        part.node = part.node.filtered(waiting);
        Some((part, correlation))
    }

    fn project(&self, input: &Plan, exprs: &[Expr]) -> Option<Translated> {
        // Without a table.
        if matches!(input, Plan::Values(rows) if rows.len() == 1 && rows[0].is_empty()) {
            return self.values(&[exprs.to_vec()]).map(free);
        }
        let (mut part, mut correlation) = self.part(input)?;
        let exprs: Vec<Expr> = exprs.iter().map(|expr| self.with_scalars(&mut part, expr)).collect::<Option<_>>()?;
        let kinds = part.node.kinds.clone();
        let mut made = exprs.iter().map(|expr| self.converted(expr, &kinds)).collect::<Option<Vec<Scalar>>>()?;
        let width = made.len();
        // What it hangs on comes along.
        let mut failed = false;
        correlation.columns_mut(&mut |column| match kinds.get(*column) {
            Some(kind) => {
                made.push(Scalar::Column(*column, *kind));
                *column = made.len() - 1;
            }
            None => failed = true,
        });
        if failed || made.is_empty() {
            return None;
        }
        Some((Part { node: part.node.projected(made), width }, correlation))
    }

    fn aggregate(&self, plan: &AggregatePlan) -> Option<Translated> {
        if !plan.totals.is_empty() {
            return None;
        }
        let (part, mut correlation) = self.part(&plan.input)?;
        let kinds = part.node.kinds.clone();
        let mut keys = plan.keys.iter().map(|key| self.converted(key, &kinds)).collect::<Option<Vec<Scalar>>>()?;
        let (own, of_row) = (keys.len(), correlation.group_by()?);
        keys.extend(of_row.iter().map(|column| part.node.column(*column)).collect::<Option<Vec<Scalar>>>()?);
        let mut aggregates = Vec::with_capacity(plan.aggregates.len());
        for noted in &plan.aggregates {
            aggregates.push(self.aggregate_call(noted, &kinds)?);
        }
        if keys.iter().any(|key| !key.kind().is_plain()) {
            return None;
        }
        let node = grouped(part.node, keys, aggregates, plan)?;
        if correlation.is_there() {
            // Behind the aggregates come the columns that it hangs on.
            let (all, count) = (node.kinds.len(), plan.aggregates.len());
            let order = (0..own).chain(all - count..all).chain(own..all - count);
            correlation.is_scalar = own == 0;
            correlation.regrouped(own + count);
            let node = node.picked(order)?;
            return Some((Part { node, width: own + count }, correlation));
        }
        Some(free(Part::of(node)))
    }

    fn aggregate_call(&self, noted: &Noted, kinds: &[Kind]) -> Option<Aggregate> {
        let call = noted.aggregate.clone();
        let mut argument = match &call.argument {
            Some(argument) => Some(self.converted(argument, kinds)?),
            None => None,
        };
        let of = argument.as_ref().map(Scalar::kind);
        let mut function = match (&call.kind, of) {
            (AggregateKind::Count, None) => AggregateFunction::CountRows,
            (AggregateKind::Count, Some(_)) => AggregateFunction::Count,
            (AggregateKind::Sum, Some(Kind::Int | Kind::Decimal)) => AggregateFunction::Sum,
            (AggregateKind::Average { .. }, Some(Kind::Int | Kind::Decimal)) => AggregateFunction::Average,
            (AggregateKind::Min, Some(Kind::Int | Kind::Decimal | Kind::Text)) => AggregateFunction::Min,
            (AggregateKind::Max, Some(Kind::Int | Kind::Decimal | Kind::Text)) => AggregateFunction::Max,
            _ => return None,
        };
        if let Some(filter) = &noted.filter {
            // The argument is evaluated of the rows that the filter lets through.
            let filter = self.converted(filter, kinds)?;
            let then = argument.take().unwrap_or(Scalar::Literal(Value::Boolean(true), Kind::Boolean));
            let kind = then.kind();
            argument = Some(Scalar::Case { branches: vec![(filter, then)], otherwise: None, kind });
            if function == AggregateFunction::CountRows {
                function = AggregateFunction::Count;
            }
        }
        Some(Aggregate { function, argument, kind: Kind::of(&call.data_type)?, call })
    }
}

fn free(part: Part) -> Translated {
    (part, Correlation::default())
}

/// Expressions that a test compares with.
pub(super) fn exprs_of(test: &Test) -> impl Iterator<Item = &Expr> {
    let (one, list): (Option<&Expr>, &[Expr]) = match &test.kind {
        TestKind::Compare { value, .. } => (Some(value), &[]),
        TestKind::Like { pattern, .. } => (Some(pattern), &[]),
        TestKind::In { values, .. } => (None, values),
        TestKind::Null { .. } | TestKind::Truth { .. } => (None, &[]),
    };
    one.into_iter().chain(list)
}

fn distinct(input: Node) -> Option<Node> {
    if input.kinds.iter().any(|kind| !kind.is_plain()) {
        return None;
    }
    let (kinds, rows, part) = (input.kinds.clone(), (input.rows * 0.5).max(1.0), input.part);
    Some(Node { operation: Operation::Distinct(Box::new(input)), kinds, rows, part })
}

fn sorted(input: Node, keys: &[SortKey], limit: Option<u64>) -> Option<Node> {
    let column = |key: &SortKey| {
        let is_plain = input.kinds.get(key.slot)?.is_plain();
        is_plain.then_some(SortColumn { column: key.slot, descending: key.descending, nulls_first: key.nulls_first })
    };
    let keys = keys.iter().map(column).collect::<Option<Vec<SortColumn>>>()?;
    let (kinds, rows, part) = (input.kinds.clone(), limit.map_or(input.rows, |limit| input.rows.min(limit as f64)), input.part);
    Some(Node { operation: Operation::Sort { input: Box::new(input), keys, limit }, kinds, rows, part })
}

/// Groups; with DISTINCT, of rows of which each is there once.
fn grouped(input: Node, keys: Vec<Scalar>, mut aggregates: Vec<Aggregate>, plan: &AggregatePlan) -> Option<Node> {
    let (mut input, mut keys) = (input, keys);
    // The least and the greatest are the same of all.
    let counts_once =
        |aggregate: &Aggregate| aggregate.call.distinct && !matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
    if aggregates.iter().any(counts_once) {
        let first = plan.aggregates.first()?;
        let is_same = |noted: &Noted| noted.aggregate.argument == first.aggregate.argument && noted.filter == first.filter;
        if !plan.aggregates.iter().all(is_same) || !aggregates.iter().all(counts_once) {
            return None;
        }
        let argument = aggregates.first()?.argument.clone()?;
        if !argument.kind().is_plain() {
            return None;
        }
        let (count, kind) = (keys.len(), argument.kind());
        let mut all = keys.clone();
        all.push(argument);
        input = distinct(input.projected(all))?;
        keys = keys.iter().enumerate().map(|(at, key)| Scalar::Column(at, key.kind())).collect();
        aggregates.iter_mut().for_each(|aggregate| aggregate.argument = Some(Scalar::Column(count, kind)));
    }
    let rows = if keys.is_empty() { 1.0 } else { (input.rows * 0.1).max(1.0) };
    let kinds = keys.iter().map(Scalar::kind).chain(aggregates.iter().map(|aggregate| aggregate.kind)).collect();
    let part = input.part;
    Some(Node { operation: Operation::Aggregate { input: Box::new(input), keys, aggregates }, kinds, rows, part })
}

/// Are all rows below it needed before the first one comes?
pub(crate) fn ends_with_all(plan: &Plan) -> bool {
    match plan {
        Plan::Sort(_) | Plan::Aggregate(_) | Plan::Count(_) | Plan::Window(_) => true,
        Plan::Filter(plan) => ends_with_all(&plan.input),
        Plan::Project(plan) => ends_with_all(&plan.input),
        Plan::Cut(plan) => ends_with_all(&plan.input),
        Plan::Limit(plan) => ends_with_all(&plan.input),
        _ => false,
    }
}

/// May something fail above what needs all rows?
fn may_fail_late(node: &Node) -> bool {
    match &node.operation {
        Operation::Filter { input, condition } => condition.can_fail() || may_fail_late(input),
        Operation::Project { input, exprs } => exprs.iter().any(Scalar::can_fail) || may_fail_late(input),
        Operation::Limit { input, .. } => may_fail_late(input),
        _ => false,
    }
}
